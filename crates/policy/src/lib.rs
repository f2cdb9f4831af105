//! What both engines decide and reckon alike: pure functions and state machines, without input, output or clock.
//!
//! [`energy`] turns the bytes that an interface carries into the energy that its radio takes; [`paths`] decides which
//! subflows a connection has.

pub mod energy;
pub mod paths;
