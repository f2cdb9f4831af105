//! One subflow's TCP: the sending half, the receiving half, when acknowledgements leave, pacing, round-trip times and
//! loss recovery.
//!
//! Sequence numbers count segments: a segment is cut once and never re-cut, so its number identifies its
//! bytes. Left out, and who could notice: urgent data, FIN and TIME-WAIT (a connection ends when its data
//! is acknowledged) and window probes (no scenario closes the window for good).

pub(crate) mod ack;
pub(crate) mod ack_timing;
pub(crate) mod ecn;
mod episode;
pub(crate) mod newreno;
pub(crate) mod pacer;
pub(crate) mod probe;
pub(crate) mod prr;
pub(crate) mod rack;
pub(crate) mod receiver;
pub(crate) mod rtt;
pub(crate) mod sack;
pub(crate) mod segments;
pub(crate) mod sender;
pub(crate) mod super_packet;
pub(crate) mod tahoe;
mod undo;
