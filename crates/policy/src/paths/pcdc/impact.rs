//! The impact factor and what follows from it (S4: Chen et al., LCN 2020, eqs. (5) and (6)).

/// A million: an impact factor of 1.
pub const ONE_PPM: i64 = 1_000_000;

/// The impact factor of a subflow in millionths, `1 - TP_i / TP_0`, of the throughput without it and with all, in
/// the same unit. Positive if it contributes, negative if it harms; rounded up to the next millionth, so that a difference
/// below one is 0 only on the harmful side. Without a baseline it is 0, or the least number if there is throughput
/// without the subflow.
pub fn impact_ppm(without: u64, with_all: u64) -> i64 {
    if with_all == 0 {
        return if without == 0 { 0 } else { i64::MIN };
    }
    let share = u128::from(without) * ONE_PPM as u128 / u128::from(with_all);
    ONE_PPM - i64::try_from(share).unwrap_or(i64::MAX)
}

/// The subflows to use, by index: those with a factor above 0 (the paper's equation removes only those below, its pseudocode
/// takes only those above); if there is none, the one with the largest (house rule).
pub fn subset(impacts_ppm: &[i64]) -> Vec<usize> {
    let positive: Vec<usize> = (0..impacts_ppm.len()).filter(|&at| impacts_ppm[at] > 0).collect();
    if positive.is_empty() { ranked(impacts_ppm).into_iter().take(1).collect() } else { positive }
}

/// All subflows by falling factor; of equal ones the first comes first.
pub fn ranked(impacts_ppm: &[i64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..impacts_ppm.len()).collect();
    order.sort_by_key(|&at| (std::cmp::Reverse(impacts_ppm[at]), at));
    order
}
