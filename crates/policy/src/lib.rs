//! What both engines decide and reckon alike: pure functions and state machines, without input, output or clock.
//!
//! [`energy`] turns the bytes that an interface carries into the energy that its radio takes. [`scheduler`] says which
//! subflow of a connection carries the next segment; [`paths`] decides which subflows it has; [`transfer`] spreads a file over
//! several connections.

pub mod energy;
pub mod paths;
mod reason;
pub mod scheduler;
pub mod transfer;

pub use reason::Reason;
