//! Keys of what stands inside a medium: rates, their fallback, stations that differ.

use super::Need::{Default, Optional, Required};
use super::{Kind, RATE, Section, key};

pub(super) static RATES: Section = Section {
    name: "rates",
    doc: "A rate of a frame's body; rates are given in ascending order.",
    keys: &[
        key("rate", RATE, Required, "Bit rate."),
        key(
            "loss",
            Kind::Probability,
            Optional("`loss` of the medium"),
            "Loss of a frame sent at this rate.",
        ),
    ],
};

pub(super) static FALLBACK: Section = Section {
    name: "fallback",
    doc: "Automatic rate fallback (ARF, Kamerman and Monteban 1997), of each station for itself; a first frame at a \
          higher rate that fails leads back at once.",
    keys: &[
        key(
            "down",
            Kind::Integer { min: 1, max: 1_000 },
            Default("2"),
            "Transmissions in a row without acknowledgement that lead to the next lower rate.",
        ),
        key(
            "up",
            Kind::Integer { min: 1, max: 1_000 },
            Default("10"),
            "Acknowledged transmissions in a row that lead to the next higher rate.",
        ),
    ],
};

pub(super) static TRANSMITTER: Section = Section {
    name: "transmitter",
    doc: "What one station sends with, if it differs from the others: a station far away has a lower rate or more loss.",
    keys: &[
        key("station", Kind::Name, Required, "One of `stations`."),
        key("rate", RATE, Optional("`rate` of the medium"), "The rate it has, or begins with."),
        key("loss", Kind::Probability, Optional("`loss` of the medium"), "Loss of the frames it sends."),
        key(
            "rates",
            Kind::Tables(&RATES),
            Optional("`rates` of the medium"),
            "The rates it falls back among.",
        ),
    ],
};
