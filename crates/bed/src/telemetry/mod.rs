//! What the kernel tells of the connections while they run, and what the emulator tells of its links.
//!
//! [`sockets`] reads one socket, [`memory`] what it and its subflows hold, [`mib`] the counters of a namespace;
//! none of them decides when. The [`sampler`] says when, and makes series and figures of what was read. The
//! kernel's structures grow from one release to the next: what an older kernel does not tell is `None`, what a
//! newer one tells besides is not looked at. [`capture`] writes packets into a file.

pub mod capture;
mod diag;
mod elsewhere;
pub mod energy;
mod host_memory;
mod layout;
mod links;
pub mod memory;
pub mod mib;
mod readings;
pub mod sampler;
pub mod sockets;
mod subflow;
mod summary;
mod workload;

pub use diag::{SocketDiag, SocketMemory};
pub use elsewhere::Elsewhere;
pub use energy::EnergySampler;
pub use memory::{ConnectionMemory, Memory};
pub use readings::{ConnectionReading, DatagramReading, EndMemory, LinkReading, Readings};
pub use sampler::Sampler;
pub use sockets::{Sample, SubflowSample};
