//! Numbers with units: `"3 Mbit/s"`, `"50 ms"`, `"100 packets"`, `"0.1 %"`.

use crate::decimal::{Decimal, Fault, Misfit};

/// What a number measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    /// Nanoseconds.
    Time,
    /// Bits per second.
    Rate,
    /// Bytes.
    Bytes,
    /// Packets.
    Packets,
    /// Microwatts.
    Power,
    /// Picojoules per bit.
    EnergyPerBit,
}

/// One unit: how it is written, its size in base units, and spellings that are recognised to suggest it.
pub(crate) struct Unit {
    pub(crate) symbols: &'static [&'static str],
    factor: u64,
    mistaken: &'static [&'static str],
}

const fn unit(symbols: &'static [&'static str], factor: u64, mistaken: &'static [&'static str]) -> Unit {
    Unit { symbols, factor, mistaken }
}

const TIME: &[Unit] = &[
    unit(&["ns"], 1, &["nsec", "nanoseconds"]),
    unit(&["us", "µs", "μs"], 1_000, &["usec", "microseconds"]),
    unit(&["ms"], 1_000_000, &["msec", "msecs", "milliseconds"]),
    unit(&["s"], 1_000_000_000, &["sec", "secs", "second", "seconds"]),
    unit(&["min"], 60_000_000_000, &["m", "mins", "minute", "minutes"]),
    unit(&["h"], 3_600_000_000_000, &["hr", "hour", "hours"]),
];

const RATE: &[Unit] = &[
    unit(&["bit/s"], 1, &["bps", "b/s", "bits/s", "bit"]),
    unit(&["kbit/s"], 1_000, &["kbps", "kb/s", "kbits/s", "kbit", "kb"]),
    unit(&["Mbit/s"], 1_000_000, &["mbps", "mb/s", "mbits/s", "mbit", "mb"]),
    unit(&["Gbit/s"], 1_000_000_000, &["gbps", "gb/s", "gbits/s", "gbit", "gb"]),
];

const BYTES: &[Unit] = &[
    unit(&["B"], 1, &["byte", "bytes"]),
    unit(&["kB"], 1_000, &["k"]),
    unit(&["MB"], 1_000_000, &["m"]),
    unit(&["GB"], 1_000_000_000, &["g"]),
    unit(&["KiB"], 1 << 10, &[]),
    unit(&["MiB"], 1 << 20, &[]),
    unit(&["GiB"], 1 << 30, &[]),
];

const PACKETS: &[Unit] =
    &[unit(&["packets", "packet"], 1, &["p", "pkt", "pkts", "segment", "segments", "mss", "frames"])];

const POWER: &[Unit] = &[
    unit(&["uW", "µW", "μW"], 1, &["microwatt", "microwatts"]),
    unit(&["mW"], 1_000, &["milliwatt", "milliwatts"]),
    unit(&["W"], 1_000_000, &["watt", "watts"]),
];

const ENERGY_PER_BIT: &[Unit] = &[
    unit(&["pJ/bit"], 1, &["pJ/b"]),
    unit(&["nJ/bit"], 1_000, &["nJ/b", "mW/(Mbit/s)", "mW/Mbit/s", "mW/Mbps", "mW"]),
    unit(&["uJ/bit", "µJ/bit", "μJ/bit"], 1_000_000, &["uJ/b"]),
];

impl Dimension {
    pub(crate) fn units(self) -> &'static [Unit] {
        match self {
            Dimension::Time => TIME,
            Dimension::Rate => RATE,
            Dimension::Bytes => BYTES,
            Dimension::Packets => PACKETS,
            Dimension::Power => POWER,
            Dimension::EnergyPerBit => ENERGY_PER_BIT,
        }
    }

    /// "a time", with its article.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Dimension::Time => "a time",
            Dimension::Rate => "a rate",
            Dimension::Bytes => "a size",
            Dimension::Packets => "a number of packets",
            Dimension::Power => "a power",
            Dimension::EnergyPerBit => "an energy per bit",
        }
    }

    /// A value to show.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Dimension::Time => "50 ms",
            Dimension::Rate => "3 Mbit/s",
            Dimension::Bytes => "64 kB",
            Dimension::Packets => "100 packets",
            Dimension::Power => "1288 mW",
            Dimension::EnergyPerBit => "52 nJ/bit",
        }
    }

    /// The units' first spellings.
    pub(crate) fn symbols(self) -> Vec<&'static str> {
        self.units().iter().map(|unit| unit.symbols[0]).collect()
    }

    /// `value` base units in the largest unit that leaves it whole.
    pub(crate) fn show(self, value: u64) -> String {
        let whole = |unit: &&Unit| value.is_multiple_of(unit.factor) && (value > 0 || unit.factor == 1);
        let unit = self.units().iter().filter(whole).max_by_key(|unit| unit.factor);
        let unit = unit.expect("every number is a multiple of the base unit");
        let symbol = if self == Dimension::Packets && value == 1 { "packet" } else { unit.symbols[0] };
        format!("{} {symbol}", value / unit.factor)
    }
}

/// What is wrong with a quantity, and what may have been meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) what: String,
    pub(crate) suggestion: Option<String>,
}

impl From<String> for Wrong {
    fn from(what: String) -> Self {
        Self { what, suggestion: None }
    }
}

/// A quantity of one of the dimensions, in base units.
pub(crate) fn parse(text: &str, dimensions: &[Dimension]) -> Result<(u64, Dimension), Wrong> {
    let (number, symbol) = split(text);
    let decimal = number_of(text, number)?;
    if symbol.is_empty() {
        return Err(format!("{} has no unit", shown(text)).into());
    }
    for dimension in dimensions {
        if let Some(unit) = dimension.units().iter().find(|unit| unit.symbols.contains(&symbol)) {
            let value = decimal.times(unit.factor).map_err(|misfit| misfit_text(text, misfit, *dimension))?;
            return Ok((value, *dimension));
        }
    }
    let meant = dimensions.iter().flat_map(|dimension| dimension.units()).find(|unit| {
        let mut spellings = unit.mistaken.iter().chain(unit.symbols);
        spellings.any(|known| known.eq_ignore_ascii_case(symbol))
    });
    Err(Wrong {
        what: format!("{} has the unknown unit {}", shown(text), shown(symbol)),
        suggestion: meant.map(|unit| format!("{number} {}", unit.symbols[0])),
    })
}

/// A probability: a percentage as text.
pub(crate) fn parse_percent(text: &str) -> Result<Decimal, Wrong> {
    let (number, symbol) = split(text);
    let decimal = number_of(text, number)?;
    match symbol {
        "%" => Ok(decimal.percent()),
        "" => Err(format!("{} is text without a unit", shown(text)).into()),
        other => Err(format!("{} has the unknown unit {}", shown(text), shown(other)).into()),
    }
}

/// What is wrong with a number that was given.
pub(crate) fn fault_text(text: &str, fault: Fault) -> String {
    match fault {
        Fault::NotANumber => format!("{} does not begin with a number", shown(text)),
        Fault::NotFinite => format!("{} is not a finite number", shown(text)),
        Fault::TooManyDigits => format!("{} has more digits than can be kept exactly (19)", shown(text)),
    }
}

/// User text for a message: quoted, escaped and not too long.
pub(crate) fn shown(text: &str) -> String {
    const LIMIT: usize = 48;
    match text.char_indices().nth(LIMIT) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", &text[..end]),
    }
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let number_char = |at: usize, c: char| {
        let before = text[..at].chars().next_back();
        c.is_ascii_digit()
            || matches!(c, '.' | '_')
            || (matches!(c, '+' | '-') && matches!(before, None | Some('e' | 'E')))
            || (matches!(c, 'e' | 'E')
                && before.is_some_and(|b| b.is_ascii_digit())
                && text[at + 1..].starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-')))
    };
    let end = text.char_indices().find(|(at, c)| !number_char(*at, *c)).map_or(text.len(), |(at, _)| at);
    if end == 0 || matches!(&text[..end], "+" | "-") {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        return (&text[..end], text[end..].trim_start());
    }
    (&text[..end], text[end..].trim_start())
}

fn number_of(text: &str, number: &str) -> Result<Decimal, Wrong> {
    let decimal = Decimal::parse(number).map_err(|fault| fault_text(text, fault))?;
    if decimal.is_negative() {
        return Err(format!("{} is negative", shown(text)).into());
    }
    Ok(decimal)
}

fn misfit_text(text: &str, misfit: Misfit, dimension: Dimension) -> String {
    match misfit {
        Misfit::Negative => format!("{} is negative", shown(text)),
        Misfit::NotWhole => {
            let base = dimension.units()[0].symbols.last().expect("a unit has a symbol");
            format!("{} is not a whole number of {}", shown(text), plural(base))
        }
        Misfit::TooLarge => format!("{} is too large", shown(text)),
    }
}

fn plural(symbol: &str) -> &str {
    match symbol {
        "packet" => "packets",
        "ns" => "nanoseconds",
        "B" => "bytes",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Dimension; 4] = [Dimension::Time, Dimension::Rate, Dimension::Bytes, Dimension::Packets];

    fn one(text: &str, dimension: Dimension) -> Result<u64, String> {
        parse(text, &[dimension]).map(|(value, _)| value).map_err(|wrong| match wrong.suggestion {
            None => wrong.what,
            Some(suggestion) => format!("{}; {suggestion}?", wrong.what),
        })
    }

    #[test]
    fn quantities_are_exact() {
        assert_eq!(one("0.1 Mbit/s", Dimension::Rate), Ok(100_000));
        assert_eq!(one("1.5 s", Dimension::Time), Ok(1_500_000_000));
        assert_eq!(one("50ms", Dimension::Time), Ok(50_000_000));
        assert_eq!(one("1e3 B", Dimension::Bytes), Ok(1000));
        assert_eq!(one("6 MiB", Dimension::Bytes), Ok(6_291_456));
        assert_eq!(one("20 µs", Dimension::Time), Ok(20_000));
        assert_eq!(one("1 packet", Dimension::Packets), Ok(1));
        assert_eq!(parse("64 kB", &[Dimension::Packets, Dimension::Bytes]), Ok((64_000, Dimension::Bytes)));
        assert_eq!(parse_percent("0.1 %").map(Decimal::to_f64), Ok(0.001));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |text, dimension| one(text, dimension).unwrap_err();
        assert_eq!(wrong("3 Mbps", Dimension::Rate), r#""3 Mbps" has the unknown unit "Mbps"; 3 Mbit/s?"#);
        assert_eq!(wrong("5", Dimension::Time), r#""5" has no unit"#);
        assert_eq!(wrong("-5 s", Dimension::Time), r#""-5 s" is negative"#);
        assert_eq!(wrong("nan s", Dimension::Time), r#""nan s" is not a finite number"#);
        assert_eq!(wrong("- s", Dimension::Time), r#""- s" does not begin with a number"#);
        assert_eq!(wrong("soon", Dimension::Time), r#""soon" does not begin with a number"#);
        assert_eq!(wrong("", Dimension::Time), r#""" does not begin with a number"#);
        assert_eq!(wrong("0.5 ns", Dimension::Time), r#""0.5 ns" is not a whole number of nanoseconds"#);
        assert_eq!(
            wrong("1.5 packets", Dimension::Packets),
            r#""1.5 packets" is not a whole number of packets"#
        );
        assert_eq!(wrong("1e30 s", Dimension::Time), r#""1e30 s" is too large"#);
        assert_eq!(wrong("7 parsec", Dimension::Time), r#""7 parsec" has the unknown unit "parsec""#);
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(value: u64, index in 0usize..4) {
            let read = parse(&ALL[index].show(value), &ALL);
            let exact = value <= 9_999_999_999_999_999_999;
            prop_assert!(read == Ok((value, ALL[index])) || (!exact && read.is_err()));
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in "\\PC{0,60}") {
            let _ = parse(&text, &ALL);
            let _ = parse_percent(&text);
        }
    }
}
