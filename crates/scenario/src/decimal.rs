//! Exact decimal numbers, so that `"0.1 Mbit/s"` is 100,000 bit/s and nothing else.

/// `±mantissa · 10^exponent`, the mantissa without trailing zeros (zero is `0 · 10^0`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    negative: bool,
    mantissa: u64,
    exponent: i32,
}

/// Why a text is not a [`Decimal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    NotANumber,
    NotFinite,
    TooManyDigits,
}

/// Why a [`Decimal`] is not the integer that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    Negative,
    NotWhole,
    TooLarge,
}

const EXPONENT_LIMIT: i32 = 400;

impl Decimal {
    /// Parses `[+-]digits[.digits][e[+-]digits]`; at most 19 significant digits, `_` is ignored.
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        if ["inf", "infinity", "nan"].iter().any(|word| unsigned.eq_ignore_ascii_case(word)) {
            return Err(Fault::NotFinite);
        }
        let (number, exponent) = match unsigned.find(['e', 'E']) {
            Some(at) => (&unsigned[..at], parse_exponent(&unsigned[at + 1..])?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if !whole.starts_with(|c: char| c.is_ascii_digit())
            || (number.contains('.') && !fraction.starts_with(|c: char| c.is_ascii_digit()))
        {
            return Err(Fault::NotANumber);
        }
        let mut mantissa = 0u64;
        let mut pending = 0i32;
        let mut exponent = exponent;
        for (digits, is_fraction) in [(whole, false), (fraction, true)] {
            for c in digits.bytes().filter(|c| *c != b'_') {
                if !c.is_ascii_digit() {
                    return Err(Fault::NotANumber);
                }
                exponent = exponent.saturating_sub(i32::from(is_fraction));
                pending = pending.saturating_add(1);
                if c != b'0' {
                    mantissa = append(mantissa, pending, c - b'0').ok_or(Fault::TooManyDigits)?;
                    pending = 0;
                }
                if mantissa == 0 {
                    pending = 0;
                }
            }
        }
        if mantissa == 0 {
            return Ok(Self { negative: false, mantissa: 0, exponent: 0 });
        }
        let exponent = exponent.saturating_add(pending);
        if exponent.abs() > EXPONENT_LIMIT {
            return Err(Fault::TooManyDigits);
        }
        Ok(Self { negative, mantissa, exponent })
    }

    pub(crate) fn is_negative(self) -> bool {
        self.negative
    }

    /// The same divided by 100.
    pub(crate) fn percent(self) -> Self {
        if self.mantissa == 0 { self } else { Self { exponent: self.exponent - 2, ..self } }
    }

    /// This times `factor`, which must come out whole and fit.
    pub(crate) fn times(self, factor: u64) -> Result<u64, Misfit> {
        let (numerator, denominator) = self.fraction(factor)?;
        if numerator % denominator != 0 {
            return Err(Misfit::NotWhole);
        }
        u64::try_from(numerator / denominator).map_err(|_| Misfit::TooLarge)
    }

    /// This times `factor`, rounded to the nearest integer, halves up.
    pub(crate) fn times_rounded(self, factor: u64) -> Result<u64, Misfit> {
        let (numerator, denominator) = match self.fraction(factor) {
            Err(Misfit::NotWhole) => return Ok(0),
            other => other?,
        };
        u64::try_from(numerator.saturating_add(denominator / 2) / denominator).map_err(|_| Misfit::TooLarge)
    }

    /// `self * factor` as a fraction; [`Misfit::NotWhole`] if it is below 10^-18 and not 0.
    fn fraction(self, factor: u64) -> Result<(u128, u128), Misfit> {
        if self.negative {
            return Err(Misfit::Negative);
        }
        let product = u128::from(self.mantissa) * u128::from(factor);
        let power = 10u128.checked_pow(self.exponent.unsigned_abs());
        match (self.exponent >= 0, power) {
            (true, Some(power)) => product.checked_mul(power).map(|n| (n, 1)).ok_or(Misfit::TooLarge),
            (true, None) => Err(Misfit::TooLarge),
            (false, Some(power)) => Ok((product, power)),
            (false, None) => Err(Misfit::NotWhole),
        }
    }

    /// The nearest double.
    pub(crate) fn to_f64(self) -> f64 {
        self.to_string().parse().expect("a decimal is a floating-point literal")
    }
}

impl std::fmt::Display for Decimal {
    /// One text per number, also valid JSON: `3`, `-15e-1`, `2e9`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        match self.exponent {
            0 => write!(f, "{sign}{}", self.mantissa),
            exponent => write!(f, "{sign}{}e{exponent}", self.mantissa),
        }
    }
}

fn parse_exponent(text: &str) -> Result<i32, Fault> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit() || c == b'_') {
        return Err(Fault::NotANumber);
    }
    text.replace('_', "").parse().map_err(|_| Fault::TooManyDigits)
}

fn append(mantissa: u64, shift: i32, digit: u8) -> Option<u64> {
    let power = 10u64.checked_pow(shift.unsigned_abs());
    let shifted = match (mantissa, power) {
        (0, _) => 0,
        (_, power) => mantissa.checked_mul(power?)?,
    };
    shifted.checked_add(u64::from(digit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times(text: &str, factor: u64) -> Result<u64, Misfit> {
        Decimal::parse(text).unwrap().times(factor)
    }

    #[test]
    fn tenths_are_exact() {
        assert_eq!(times("0.1", 1_000_000), Ok(100_000));
        assert_eq!(times("1.000000001", 1_000_000_000), Ok(1_000_000_001));
        assert_eq!(times("3e-3", 1000), Ok(3));
        assert_eq!(times("1.23e2", 1), Ok(123));
    }

    #[test]
    fn what_does_not_fit_is_told_apart() {
        assert_eq!(times("0.5", 1), Err(Misfit::NotWhole));
        assert_eq!(times("1e-300", 1), Err(Misfit::NotWhole));
        assert_eq!(times("1e20", 1), Err(Misfit::TooLarge));
        assert_eq!(times("1e300", 1), Err(Misfit::TooLarge));
        assert_eq!(times("-1", 1), Err(Misfit::Negative));
        assert_eq!(times("-0", 1), Ok(0));
    }

    #[test]
    fn faults_are_told_apart() {
        for text in ["", ".5", "5.", "1e", "e5", "1.2.3", "0x10", "--1", "1 000", "٣"] {
            assert_eq!(Decimal::parse(text), Err(Fault::NotANumber), "{text}");
        }
        for text in ["nan", "-inf", "Infinity"] {
            assert_eq!(Decimal::parse(text), Err(Fault::NotFinite), "{text}");
        }
        for text in ["12345678901234567890123", "1e99999999999", "1e401"] {
            assert_eq!(Decimal::parse(text), Err(Fault::TooManyDigits), "{text}");
        }
    }

    #[test]
    fn rounding_is_to_nearest() {
        let rounded = |text: &str| Decimal::parse(text).unwrap().times_rounded(1024);
        assert_eq!(rounded("0.5"), Ok(512));
        assert_eq!(rounded("0.00048828125"), Ok(1));
        assert_eq!(rounded("0.0004882"), Ok(0));
        assert_eq!(rounded("1e-200"), Ok(0));
    }

    proptest! {
        #[test]
        fn an_integer_with_a_shifted_point_is_the_same_integer(value in 0u64..1_000_000_000_000, shift in 0usize..12) {
            let digits = format!("{value:013}");
            let (whole, fraction) = digits.split_at(digits.len() - shift);
            let text = if shift == 0 { whole.to_owned() } else { format!("{whole}.{fraction}") };
            prop_assert_eq!(times(&text, 10u64.pow(shift as u32)), Ok(value));
        }

        #[test]
        fn the_text_of_a_decimal_is_that_decimal(mantissa: u64, exponent in -350i32..350) {
            let decimal = Decimal::parse(&format!("{mantissa}e{exponent}")).ok();
            let again = decimal.map(|d| Decimal::parse(&d.to_string()).unwrap());
            prop_assert_eq!(decimal, again);
            prop_assert!(decimal.is_some() || mantissa > 9_999_999_999_999_999_999);
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in "\\PC{0,40}") {
            let _ = Decimal::parse(&text);
        }
    }
}
