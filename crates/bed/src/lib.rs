//! The test bed: the scenarios of the simulator, run by the TCP and MPTCP of the running Linux kernel.
//!
//! Every node at which traffic begins or ends is a network namespace; every link, router and shared medium of
//! the scenario lies in the emulator, one thread that drives the state machines of `anabranch-link` by the
//! real clock and moves packets between the TUN devices of the namespaces.
//!
//! ```text
//!   namespace of a node                       emulator                        namespace of a node
//!   application - kernel TCP - if0 (TUN) == wires, media, routers == if0 (TUN) - kernel TCP - application
//!                            \ if1 (TUN) ==/
//! ```
//!
//! [`plan`] turns a scenario into what is to be built, [`host`] builds it and takes it away again, [`emulator`]
//! carries the packets, [`traffic`] is the applications, [`telemetry`] watches the sockets, [`run`] makes a
//! run folder of it all.

pub mod calibrate;
pub mod clock;
pub mod emulator;
mod error;
pub mod host;
pub mod plan;
pub mod run;
pub mod telemetry;
pub mod traffic;

pub use error::BedError;

/// A point or span of time in nanoseconds; in a run, counted from its beginning on `CLOCK_MONOTONIC`.
pub type Nanos = u64;
