//! Telemetry against real sockets: what is read is what was done to them.

mod lab;
mod memory;
mod mib;
mod sockets;
