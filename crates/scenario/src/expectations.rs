//! What a key expects, in words: for messages and for the reference.

use crate::keys::Kind;
use crate::quantity::Dimension::{self, Bytes, EnergyPerBit, Packets, Power, Rate, Time};

impl Kind {
    /// What it is in a word or two, for tables.
    pub(crate) fn short(&self) -> String {
        let noun = |dimension: &Dimension| match dimension {
            Time => "time",
            Rate => "rate",
            Bytes => "size",
            Packets => "packets",
            Power => "power",
            EnergyPerBit => "energy per bit",
        };
        match self {
            Kind::Text => "text".to_owned(),
            Kind::Name => "name".to_owned(),
            Kind::Names(_) => "names".to_owned(),
            Kind::Quantity { dimension, .. } => noun(dimension).to_owned(),
            Kind::Limit { dimension, .. } => format!("{} or `\"unlimited\"`", noun(dimension)),
            Kind::Queue => "packets, size or `\"unlimited\"`".to_owned(),
            Kind::Thousandths { .. } => "number".to_owned(),
            Kind::Draw { dimension, .. } => format!("{} or table", noun(dimension)),
            Kind::Probability => "probability".to_owned(),
            Kind::OneOf(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
            Kind::When => "time or `\"uniform(from, to)\"`".to_owned(),
            Kind::Intervals => "pairs of times".to_owned(),
            Kind::Congestion | Kind::Scheduler | Kind::PathManager => "name or table".to_owned(),
            Kind::OrTable(kind, _) => format!("{}; or table", kind.short()),
            Kind::TableOrOff(_) => "table or `\"off\"`".to_owned(),
            Kind::Table(_) => "table".to_owned(),
            Kind::Tables(_) => "tables".to_owned(),
            Kind::Bool | Kind::Integer { .. } => self.expected(),
        }
    }

    /// What is expected, for messages.
    pub(crate) fn expected(&self) -> String {
        let with_units = |dimension: Dimension| {
            format!(
                "{} such as {:?} (units: {})",
                dimension.noun(),
                dimension.example(),
                dimension.symbols().join(", ")
            )
        };
        match self {
            Kind::Text => "text in quotes".to_owned(),
            Kind::Name => "a name in quotes".to_owned(),
            Kind::Names(1) => "an array of names in quotes".to_owned(),
            Kind::Names(least) => format!("an array of at least {least} names in quotes"),
            Kind::Bool => "true or false".to_owned(),
            Kind::Integer { min, max } => format!("an integer from {min} to {max}"),
            Kind::Quantity { dimension, .. } => with_units(*dimension),
            Kind::Limit { dimension, .. } => format!("{} or \"unlimited\"", with_units(*dimension)),
            Kind::Queue => format!(
                "\"100 packets\", a size such as \"64 kB\" (units: {}) or \"unlimited\"",
                Bytes.symbols().join(", ")
            ),
            Kind::Thousandths { min, max } => format!(
                "a number from {} to {} such as 1.5, with at most three decimals",
                f64::from(*min) / 1e3,
                f64::from(*max) / 1e3
            ),
            Kind::Draw { dimension, .. } => format!(
                "{}, or a table such as {{ distribution = \"exponential\", mean = {:?} }}",
                with_units(*dimension),
                dimension.example()
            ),
            Kind::Probability => "a number from 0 to 1 or a percentage such as \"0.1 %\"".to_owned(),
            Kind::OneOf(words) => format!("one of {}", words.join(", ")),
            Kind::When => format!("{} or \"uniform(0 s, 1 s)\"", with_units(Time)),
            Kind::Intervals => {
                "pairs of times such as [[\"5 s\", \"15 s\"], [\"35 s\", \"45 s\"]]".to_owned()
            }
            Kind::Congestion => {
                "a congestion control such as \"reno\" or a table such as { name = \"reno\" }".to_owned()
            }
            Kind::Scheduler => {
                "a scheduler such as \"minrtt\" or a table such as { name = \"blest\", lambda = 1.2 }"
                    .to_owned()
            }
            Kind::PathManager => {
                "a path manager such as \"fullmesh\" or a table such as { name = \"fullmesh\" }".to_owned()
            }
            Kind::OrTable(kind, _) => kind.expected(),
            Kind::TableOrOff(_) => "a table or \"off\"".to_owned(),
            Kind::Table(section) => format!("a table such as [{}]", section.name),
            Kind::Tables(section) => format!("tables that begin with [[{}]]", section.name),
        }
    }
}
