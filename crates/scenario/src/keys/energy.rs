//! Keys of interfaces, whose radios take energy.

use super::Dimension::{EnergyPerBit, Power};
use super::Need::{Default, Optional, Required};
use super::{FAMILY, Kind, Section, key, quantity, time};

/// 1 kW.
const POWER_MAX: u64 = 1_000_000_000;
/// 1 mJ/bit.
const SLOPE_MAX: u64 = 1_000_000_000;

const POWER_KIND: Kind = quantity(Power, 0, POWER_MAX);
const SLOPE: Kind = quantity(EnergyPerBit, 0, SLOPE_MAX);
const PRESET: &str = "that of the radio";

/// Names of the radios, as in [`anabranch_policy::energy::RADIOS`].
const RADIO_NAMES: &[&str] = &["wifi", "lte", "3g"];

pub(super) static INTERFACE: Section = Section {
    name: "interface",
    doc: "The radio by which a node is attached to a link or medium. Interfaces have energy figures; they change nothing \
          about how packets travel.",
    keys: &[
        key("node", Kind::Name, Required, "The node."),
        key(
            "link",
            Kind::Name,
            Required,
            "A link that ends at the node, or a medium that it is a station of.",
        ),
        FAMILY,
        key(
            "radio",
            Kind::OneOf(RADIO_NAMES),
            Required,
            "The constants of both energy models: `wifi` and `lte` of EE-MPTCP 2022 and Huang et al. 2012, `3g` of the \
             latter alone.",
        ),
        key("power", Kind::Table(&POWER), Optional("the constants of the radio"), "Constants that differ."),
    ],
};

static POWER: Section = Section {
    name: "power",
    doc: "Constants of the energy models (docs/energy.md). A slope in nJ/bit is the same number in mW per Mbit/s.",
    keys: &[
        key("b", SLOPE, Optional(PRESET), "Linear model: slope."),
        key("theta", POWER_KIND, Optional(PRESET), "Linear model: power while anything is carried."),
        key("alpha_up", SLOPE, Optional(PRESET), "Huang's model: slope of what the node sends."),
        key("alpha_down", SLOPE, Optional(PRESET), "Huang's model: slope of what the node receives."),
        key("beta", POWER_KIND, Optional(PRESET), "Huang's model: power of a transfer beside its slopes."),
        key("promotion", POWER_KIND, Optional(PRESET), "Huang's model: power of the promotion from idle."),
        key("promotion_time", time(0), Optional(PRESET), "Its length."),
        key("tail", POWER_KIND, Optional(PRESET), "Huang's model: power after the last packet (3G: DCH)."),
        key("tail_time", time(0), Optional(PRESET), "For how long."),
        key("second_tail", POWER_KIND, Optional(PRESET), "Power after that (3G: FACH)."),
        key("second_tail_time", time(0), Optional(PRESET), "For how long; \"0 s\" for Wi-Fi and LTE."),
        key("idle", POWER_KIND, Optional(PRESET), "Huang's model: power of a wake-up of the idle radio."),
        key("idle_on", time(0), Optional(PRESET), "How long a wake-up lasts."),
        key("idle_period", time(1), Optional(PRESET), "From one wake-up to the next."),
    ],
};

/// The key `measure.energy_bin`.
pub(super) const ENERGY_BIN: super::Key = key(
    "energy_bin",
    time(1),
    Default("100 ms"),
    "Length of the bins in which the traffic of an [[interface]] is looked at; a bin with traffic is active as a whole.",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_radios_are_those_of_the_registry() {
        let registry = anabranch_policy::energy::RADIOS.map(|info| info.name);
        assert_eq!(RADIO_NAMES, registry);
    }
}
