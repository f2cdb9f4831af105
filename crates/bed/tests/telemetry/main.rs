//! Telemetry against real sockets: what is read is what was done to them.

mod capture;
mod energy;
mod lab;
mod memory;
mod mib;
mod sampler;
mod sockets;
