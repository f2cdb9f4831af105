//! Quantities with units as in scenario files: `"500 ms"`, `"2 GB"`, `"1288 mW"`, `"52 nJ/bit"`.

use anabranch_policy::paths::{PathManagerParam, PathManagerUnit};
use toml::Value;

/// A unit, and how many base units it is.
type Unit = (&'static str, u64);

/// In nanoseconds.
const TIMES: &[Unit] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
/// In bytes.
const SIZES: &[Unit] = &[
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];
/// In microwatts.
const POWERS: &[Unit] = &[("uW", 1), ("mW", 1_000), ("W", 1_000_000)];
/// In picojoules per bit.
const SLOPES: &[Unit] = &[("pJ/bit", 1), ("nJ/bit", 1_000), ("uJ/bit", 1_000_000)];

/// A time with its unit, in nanoseconds.
///
/// # Errors
/// What is expected.
pub fn time(text: &str) -> Result<u64, String> {
    parse(text, TIMES, "a time like \"2 s\"")
}

/// A size in bytes.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    parse(text, SIZES, "a size like \"2 GB\"")
}

/// A power in milliwatts.
pub(crate) fn milliwatts(text: &str) -> Result<f64, String> {
    Ok(parse(text, POWERS, "a power like \"1288 mW\"")? as f64 / 1e3)
}

/// An energy per bit in nanojoules, which is mW per Mbit/s.
pub(crate) fn nanojoules(text: &str) -> Result<f64, String> {
    Ok(parse(text, SLOPES, "an energy per bit like \"52 nJ/bit\"")? as f64 / 1e3)
}

fn parse(text: &str, units: &[Unit], expected: &str) -> Result<u64, String> {
    let wrong = || {
        let symbols: Vec<&str> = units.iter().map(|(symbol, _)| *symbol).collect();
        format!("\"{text}\" is not {expected}; units are {}", symbols.join(", "))
    };
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
    let (number, symbol) = text.split_at(split);
    let (_, factor) = units.iter().find(|(unit, _)| *unit == symbol.trim()).ok_or_else(wrong)?;
    scaled(number, *factor).ok_or_else(wrong)
}

/// A decimal number times a factor, if that is a whole number of 64 bits.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // At most 15 digits behind the point: the product with a factor below 2^42 fits in 128 bits.
    if whole.is_empty() || fraction.len() > 15 || fraction.contains('.') {
        return None;
    }
    let denominator = 10u128.pow(fraction.len() as u32);
    let behind: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let numerator = u128::from(whole.parse::<u64>().ok()?) * denominator + behind;
    let product = numerator.checked_mul(u128::from(factor))?;
    if !product.is_multiple_of(denominator) {
        return None;
    }
    u64::try_from(product / denominator).ok()
}

/// The value of a path manager's parameter, in the registry's unit.
pub(crate) fn param(param: &PathManagerParam, value: &Value) -> Result<u64, String> {
    let read = match (param.unit, value) {
        (PathManagerUnit::Time, Value::String(text)) => time(text)?,
        (PathManagerUnit::Bytes, Value::String(text)) => bytes(text)?,
        (PathManagerUnit::Count, Value::Integer(number)) => {
            u64::try_from(*number).map_err(|_| expected(param))?
        }
        (PathManagerUnit::Bool, Value::Boolean(value)) => u64::from(*value),
        (PathManagerUnit::Permille, Value::Float(share)) if (0.0..=1000.0).contains(share) => {
            (share * 1000.0).round() as u64
        }
        (PathManagerUnit::Permille, Value::Integer(share @ 0..=1)) => *share as u64 * 1000,
        _ => return Err(expected(param)),
    };
    if (param.min..=param.max).contains(&read) { Ok(read) } else { Err(expected(param)) }
}

fn expected(param: &PathManagerParam) -> String {
    let PathManagerParam { name, min, max, .. } = param;
    let range = match param.unit {
        PathManagerUnit::Time => format!("a time from {} to {}", seconds(*min), seconds(*max)),
        PathManagerUnit::Bytes => format!("a size from \"{min} B\" to \"{max} B\""),
        PathManagerUnit::Count => format!("a whole number from {min} to {max}"),
        PathManagerUnit::Bool => "true or false".to_owned(),
        PathManagerUnit::Permille => format!("a number from {} to {}", *min as f64 / 1e3, *max as f64 / 1e3),
    };
    format!("`{name}`: expected {range}")
}

fn seconds(nanoseconds: u64) -> String {
    match nanoseconds {
        0 => "\"0 s\"".to_owned(),
        below if below < 1_000_000_000 => format!("\"{} ms\"", below / 1_000_000),
        whole => format!("\"{} s\"", whole / 1_000_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_whole_numbers_of_their_base_units() {
        assert_eq!((time("1.5 s"), time("20ms")), (Ok(1_500_000_000), Ok(20_000_000)));
        assert_eq!((bytes("2 GB"), bytes("1.5 KiB")), (Ok(2_000_000_000), Ok(1536)));
        assert_eq!((milliwatts("1.288 W"), nanojoules("52 nJ/bit")), (Ok(1288.0), Ok(52.0)));
        for wrong in
            ["", "s", "5", "5 parsec", "-1 s", "1.5 ns", "1e3 s", "1.2.3 s", "99999999999999999999 s", ". s"]
        {
            assert!(time(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            bytes("2 gb"),
            Err("\"2 gb\" is not a size like \"2 GB\"; units are B, kB, MB, GB, KiB, MiB, GiB".to_owned())
        );
    }
}
