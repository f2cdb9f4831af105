//! Golden packet traces, and the rules of the RFCs checked on them.
//!
//! The traces lie in `golden/traces/` and are reviewed like code: a change of one is a change of results.

mod golden;
mod handshake;
mod mptcp;
mod newreno;
mod packets;
mod rack;
mod receiver;
mod sack;
mod subflows;
mod tahoe;
