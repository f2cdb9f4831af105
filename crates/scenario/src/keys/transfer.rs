//! Keys of transfers.

use super::Dimension::Bytes;
use super::Need::{Default, Optional, Required};
use super::{BYTES_MAX, FAMILY, Kind, Section, key, quantity, time};

pub(super) static TRANSFER: Section = Section {
    name: "transfer",
    doc: "A file that several connections carry together, in chunks, as MPTCP-IoT does with one socket per path: each claims \
          its next chunk when it has sent the one before. Of two connections the first works upwards from the beginning of \
          the file and the second downwards from its end.",
    keys: &[
        key("name", Kind::Name, Required, "Unique among connections, datagram flows, relays and transfers."),
        FAMILY,
        key(
            "over",
            Kind::Names(1),
            Required,
            "The connections, in order; none has `traffic`. They begin at one node and lead, by way of relays or not, to one \
             node.",
        ),
        key("size", quantity(Bytes, 1, BYTES_MAX), Required, "Of the file."),
        key(
            "chunk",
            quantity(Bytes, 1, BYTES_MAX),
            Default("64 KiB"),
            "Of a chunk; the last one may be shorter. On a connection 16 bytes precede each.",
        ),
        key("start", time(0), Default("0 s"), "When the connections are opened."),
        key(
            "direction",
            Kind::OneOf(&["upload", "download"]),
            Default("upload"),
            "`upload`: the node that opens the connections sends; `download`: the other one does.",
        ),
        key(
            "give_up",
            time(1_000_000),
            Optional("never"),
            "A connection that has chunks to deliver and has delivered nothing since it was last looked at, so long ago, has \
             failed: its chunks go to the others, and it gets no more until it delivers one.",
        ),
    ],
};
