//! The congestion controls of `algorithms/` in the stock Linux kernel.
//!
//! The build compiles each algorithm together with the shim in `bpf/` into a BPF object that holds a
//! `tcp_congestion_ops` named `ab_<algorithm>`. [`Attached::load`] registers it; dropping the value, or the
//! end of the process, takes the name away again (connections that use it keep it until they close).
//! Sockets choose it by `TCP_CONGESTION`; on an MPTCP socket that reaches every subflow.
//!
//! [`Pins`] holds registrations beyond the end of the process, in the BPF file system.
//!
//! [`Timeouts`] tells of retransmission timeouts of subflows.
//!
//! How kernel hooks become events, and what this host cannot see, is described in `docs/kernel.md`.

mod counters;
mod error;
mod host;
mod load;
mod objects;
mod pinned;
mod select;
mod timeouts;

pub use counters::{Counters, EVENTS};
pub use error::KernelError;
pub use host::{OLDEST_RELEASE, check_host};
pub use load::{Attached, kernel_name};
pub use objects::{available, elf};
pub use pinned::{Connection, Loading, PinError, Pinned, Pins};
pub use select::pin_choice;
pub use timeouts::{Timeout, Timeouts};
