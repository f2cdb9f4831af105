//! Parameters as text: `0.5`, `500 ms`, `3 packets`, `exact`, `true`; the same as in scenario files.

use anabranch_cc::{Algorithm, Param, Unit};

use super::nearest;
use crate::DeviceError;

/// Factors of the units of time, in microseconds.
const TIMES: [(&str, u32); 5] = [("us", 1), ("µs", 1), ("ms", 1_000), ("s", 1_000_000), ("min", 60_000_000)];

/// The algorithm's parameters as stored, in the registry's order: the defaults, but for `settings`.
///
/// # Errors
/// [`DeviceError::Input`] with what is expected.
pub(super) fn stored(algorithm: &Algorithm, settings: &[(String, String)]) -> Result<Vec<u32>, DeviceError> {
    let params = algorithm.params();
    let mut values: Vec<u32> = params.iter().map(|param| param.default).collect();
    for (key, text) in settings {
        let Some(at) = params.iter().position(|param| param.name == key) else {
            return Err(unknown(algorithm, key));
        };
        let param = &params[at];
        let value = parse(param, text.trim()).filter(|value| (param.min..=param.max).contains(value));
        values[at] = value.ok_or_else(|| {
            let name = algorithm.name();
            DeviceError::Input(format!(
                "`{name}`: parameter `{key}` is `{text}`, expected {}",
                expected(param)
            ))
        })?;
    }
    Ok(values)
}

fn unknown(algorithm: &Algorithm, key: &str) -> DeviceError {
    let name = algorithm.name();
    let nearest = nearest(key, algorithm.params().iter().map(|param| param.name));
    DeviceError::Input(match nearest {
        Some(nearest) => format!("`{name}` has no parameter `{key}`; the nearest name is `{nearest}`"),
        None => format!("`{name}` has no parameters"),
    })
}

/// The stored integer, if the text is a value of the parameter's unit.
fn parse(param: &Param, text: &str) -> Option<u32> {
    let value = match param.unit {
        Unit::Count => scaled(text, 1)?,
        Unit::Packets => {
            let number = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet"));
            scaled(number.unwrap_or(text).trim_end(), 1)?
        }
        Unit::Micros => {
            let split = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
            let (number, unit) = text.split_at(split);
            let factor = TIMES.iter().find(|(name, _)| *name == unit.trim())?.1;
            scaled(number, factor)?
        }
        Unit::Q10 | Unit::Q16 | Unit::Permille => rounded(text, param.unit.scale())?,
        Unit::Bool => u128::from(text.parse::<bool>().ok()?),
        Unit::Choice => param.choices.iter().position(|choice| *choice == text)? as u128,
    };
    u32::try_from(value).ok()
}

/// A decimal number as numerator and denominator, a power of ten: at most 18 digits before and behind the point, so
/// that a product with a 32-bit factor fits.
fn decimal(text: &str) -> Option<(u128, u128)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let are_digits = |part: &str| part.len() <= 18 && part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    let denominator = 10u128.pow(fraction.len() as u32);
    let behind = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    Some((whole.parse::<u128>().ok()? * denominator + behind, denominator))
}

/// The number times `factor`, if that is a whole number.
fn scaled(text: &str, factor: u32) -> Option<u128> {
    let (numerator, denominator) = decimal(text)?;
    let product = numerator * u128::from(factor);
    product.is_multiple_of(denominator).then_some(product / denominator)
}

/// The number times `factor`, rounded to the nearest whole number.
fn rounded(text: &str, factor: u32) -> Option<u128> {
    let (numerator, denominator) = decimal(text)?;
    Some((numerator * u128::from(factor) + denominator / 2) / denominator)
}

fn expected(param: &Param) -> String {
    let range = || format!("{} to {}", param.shown(param.min), param.shown(param.max));
    match param.unit {
        Unit::Count | Unit::Packets => format!("a whole number, {}", range()),
        Unit::Micros => format!("a time with its unit (us, ms, s, min), {}", range()),
        Unit::Q10 | Unit::Q16 | Unit::Permille => format!("a number, {}", range()),
        Unit::Bool => "true or false".to_owned(),
        Unit::Choice => format!("one of {}", param.choices.join(", ")),
    }
}

/// Name of the unit, for programs.
pub(super) fn unit(param: &Param) -> &'static str {
    match param.unit {
        Unit::Count => "number",
        Unit::Packets => "packets",
        Unit::Micros => "time",
        Unit::Q10 | Unit::Q16 | Unit::Permille => "real",
        Unit::Bool => "bool",
        Unit::Choice => "choice",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, key: &str, text: &str) -> Result<u32, String> {
        let algorithm = anabranch_cc::find(name).expect("it is in the registry");
        let at = algorithm.params().iter().position(|param| param.name == key);
        let values = stored(algorithm, &[(key.to_owned(), text.to_owned())]);
        values.map(|values| values[at.expect("it is a parameter")]).map_err(|error| error.to_string())
    }

    #[test]
    fn every_unit_is_read_as_scenarios_write_it() {
        assert_eq!(of("mfvl", "period", "500 ms"), Ok(500_000));
        assert_eq!(of("mfvl", "period", "1.5s"), Ok(1_500_000));
        assert_eq!(of("mfvl", "bn_thresh", "0.25"), Ok(250));
        assert_eq!(of("mfvl", "literal", "true"), Ok(1));
        assert_eq!(of("mfvl", "vegas_k", "3"), Ok(3));
        assert_eq!(of("fast", "gamma", "0.3"), Ok(307));
        assert_eq!(of("vegas", "alpha", "2 packets"), Ok(2));
        assert_eq!(of("vegas", "alpha", "2"), Ok(2));
        assert!(of("lia", "precision", "exact").is_ok());
    }

    #[test]
    fn every_default_is_read_back_as_it_is_shown() {
        for algorithm in anabranch_cc::algorithms() {
            for param in algorithm.params() {
                for value in [param.default, param.min, param.max] {
                    let text = param.shown(value);
                    assert_eq!(parse(param, &text), Some(value), "{algorithm:?} {}: {text}", param.name);
                }
            }
        }
    }

    #[test]
    fn what_is_wrong_is_answered_with_what_is_expected() {
        assert_eq!(
            of("lia", "precision", "half").unwrap_err(),
            "`lia`: parameter `precision` is `half`, expected one of exact, kernel"
        );
        assert_eq!(
            of("mfvl", "period", "500").unwrap_err(),
            "`mfvl`: parameter `period` is `500`, expected a time with its unit (us, ms, s, min), 1 ms to 3600 s"
        );
        for text in ["1e3", "-1", "", "1.0000000001", "99999999999999999999", "0"] {
            assert!(of("vegas", "alpha", text).is_err(), "{text}");
        }
        assert_eq!(
            stored(anabranch_cc::find("mfvl").unwrap(), &[("peroid".into(), "1 s".into())])
                .unwrap_err()
                .to_string(),
            "`mfvl` has no parameter `peroid`; the nearest name is `period`"
        );
    }
}
