//! Amounts of bytes, as they are written in arguments and shown.

/// Bytes from a number and perhaps one of `K`, `M`, `G`, `T`, each 1,024 times the one before.
pub(super) fn parse(text: &str) -> Result<u64, String> {
    let wrong = || format!("\"{text}\" is no amount of bytes; expected a number as 65536, 256K, 2M or 1G");
    let text = text.trim().trim_end_matches(['B', 'i']);
    let (digits, shift) = match text.char_indices().next_back() {
        Some((at, unit)) if !unit.is_ascii_digit() => {
            let step = "KMGT".find(unit.to_ascii_uppercase()).ok_or_else(wrong)?;
            (&text[..at], 10 * (step as u32 + 1))
        }
        _ => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).ok_or_else(wrong)
}

/// Bytes with a unit, for people.
pub(super) fn show(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let step = (bytes.max(1).ilog2() / 10).min(4);
    match step {
        0 => format!("{bytes} B"),
        step => {
            let tenths = (u128::from(bytes) * 10) >> (10 * step);
            format!("{}.{} {}", tenths / 10, tenths % 10, units[step as usize])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024_and_anything_else_is_refused() {
        for (text, bytes) in
            [("1", 1), ("256K", 256 << 10), ("256k", 256 << 10), ("2MiB", 2 << 20), ("3G", 3 << 30)]
        {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "K", "0", "-1", "1.5M", "1X", "99999999999T"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(
            [0, 1023, 1536, 1 << 20, u64::MAX].map(show),
            ["0 B", "1023 B", "1.5 KiB", "1.0 MiB", "16777215.9 TiB"]
        );
    }
}
