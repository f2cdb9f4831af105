//! Keys of relays.

use super::Dimension::Bytes;
use super::Need::{Default, Required};
use super::{BYTES_MAX, FAMILY, Kind, Section, key, quantity, time};

pub(super) static RELAY: Section = Section {
    name: "relay",
    doc: "A gateway that ends one connection and begins another (split TCP), as a SOCKS proxy does: what `in` delivers \
          at its `to` is written to `out`, which begins at that node, has no `traffic`, and is opened when `in` has \
          been accepted. The gateway reads no faster than `out` takes; the rest fills the receive buffer of `in`.",
    keys: &[
        key("name", Kind::Name, Required, "Unique among connections, datagram flows, relays and transfers."),
        FAMILY,
        key("in", Kind::Name, Required, "The connection that is read; its receive buffer is limited."),
        key("out", Kind::Name, Required, "The connection that is written to."),
        key(
            "buffer",
            quantity(Bytes, 1, BYTES_MAX),
            Default("64 kB"),
            "The most that has been read and not yet sent.",
        ),
        key("delay", time(0), Default("0 s"), "From the reading of a byte to its writing."),
    ],
};
