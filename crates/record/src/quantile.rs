//! Quantiles of values that are all known.

/// The quantile by nearest rank: the smallest value that at least `percent` per cent of the values do not exceed. It is
/// one of the values, never between two.
///
/// # Panics
/// If there are no values, they are not in ascending order, or `percent` is not from 1 to 100.
pub fn nearest_rank(ascending: &[u64], percent: u32) -> u64 {
    assert!((1..=100).contains(&percent), "{percent} is no per cent");
    debug_assert!(ascending.is_sorted(), "the values ascend");
    let rank = (ascending.len() as u128 * u128::from(percent)).div_ceil(100);
    ascending[usize::try_from(rank).expect("a rank is at most the number of values") - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantile_is_the_value_at_the_nearest_rank_above() {
        let values: Vec<u64> = (1..=20).map(|n| 10 * n).collect();
        let at = |percent| nearest_rank(&values, percent);
        assert_eq!([at(1), at(5), at(6), at(50), at(95), at(96), at(100)], [10, 10, 20, 100, 190, 200, 200]);
        assert_eq!(nearest_rank(&[7], 50), 7);
    }
}
