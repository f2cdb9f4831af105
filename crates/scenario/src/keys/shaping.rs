//! Keys of queue disciplines, losses in bursts and varying delays.

use super::Dimension::{Bytes, Packets};
use super::Need::{Default, Optional, Required};
use super::{DATAGRAM_MAX, Kind, PACKETS_MAX, Section, key, quantity, time};

/// A limit, or a table.
pub(super) const QUEUE: Kind = Kind::OrTable(&Kind::Queue, &DISCIPLINE);
/// A probability, or a table.
pub(super) const LOSS: Kind = Kind::OrTable(&Kind::Probability, &BURSTS);
/// A time, or a table.
pub(super) const JITTER: Kind = Kind::OrTable(&RANGE, &VARIATION);

static RANGE: Kind = time(0);

static DISCIPLINE: Section = Section {
    name: "queue",
    doc: "A queue discipline; see [links.md](links.md). The limit counts the packet in transmission.",
    keys: &[
        key(
            "kind",
            Kind::OneOf(&["drop-tail", "red", "codel", "fq_codel"]),
            Required,
            "Drop-tail, RED (Floyd and Jacobson 1993), CoDel (RFC 8289) or FQ-CoDel (RFC 8290).",
        ),
        key(
            "limit",
            Kind::Queue,
            Optional("`codel`: 1000 packets, `fq_codel`: 10240 packets, otherwise **required**"),
            "How much the queue holds.",
        ),
        key(
            "ecn",
            Kind::Bool,
            Default("false"),
            "Packets of senders that can are marked instead of dropped; all but `drop-tail`.",
        ),
        key(
            "min",
            quantity(Packets, 1, PACKETS_MAX),
            Optional("5 packets"),
            "`red`: average queue from which on packets are dropped at random.",
        ),
        key(
            "max",
            quantity(Packets, 1, PACKETS_MAX),
            Optional("3 times `min`"),
            "`red`: average queue from which on the probability is no longer proportional.",
        ),
        key("max_p", Kind::Probability, Optional("0.1"), "`red`: probability of a drop at `max`."),
        key(
            "weight",
            Kind::Probability,
            Optional("0.002"),
            "`red`: weight of the newest queue length in the average.",
        ),
        key(
            "gentle",
            Kind::Bool,
            Optional("true"),
            "`red`: the probability grows to 1 at twice `max`; otherwise all packets are dropped from `max` on.",
        ),
        key("target", time(0), Optional("5 ms"), "`codel`, `fq_codel`: time in the queue that may last."),
        key(
            "interval",
            time(1),
            Optional("100 ms"),
            "`codel`, `fq_codel`: for so long it must have been longer before packets are dropped.",
        ),
        key(
            "flows",
            Kind::Integer { min: 1, max: 65_536 },
            Optional("1024"),
            "`fq_codel`: number of queues that flows are hashed to.",
        ),
        key(
            "quantum",
            quantity(Bytes, 1, DATAGRAM_MAX),
            Optional("1514 B"),
            "`fq_codel`: what a queue may send in its turn.",
        ),
    ],
};

static BURSTS: Section = Section {
    name: "loss",
    doc: "Losses in bursts: a channel with a good and a bad state (Gilbert 1960, Elliott 1963). The share of time in the bad \
          state is p / (p + r), its mean length 1 / r packets.",
    keys: &[
        key("kind", Kind::OneOf(&["gilbert-elliott"]), Required, "The model."),
        key("p", Kind::Probability, Required, "Change from good to bad, before each packet."),
        key("r", Kind::Probability, Required, "Change from bad to good, before each packet; above 0."),
        key("loss_good", Kind::Probability, Default("0 %"), "Loss in the good state."),
        key("loss_bad", Kind::Probability, Default("100 %"), "Loss in the bad state."),
    ],
};

static VARIATION: Section = Section {
    name: "jitter",
    doc: "A further delay of each packet, drawn independently. Its mean is half of the range.",
    keys: &[
        key("range", time(1), Required, "Twice the mean."),
        key(
            "distribution",
            Kind::OneOf(&["uniform", "exponential", "normal"]),
            Default("uniform"),
            "`uniform`: from 0 to the range; `exponential`: without a bound; `normal`: with a standard deviation of a sixth \
             of the range, cut at 0 and at the range.",
        ),
        key(
            "reorder",
            Kind::Bool,
            Default("false"),
            "Whether packets may overtake; otherwise one that would arrives together with its predecessor.",
        ),
    ],
};
