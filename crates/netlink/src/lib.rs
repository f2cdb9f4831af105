//! The path manager of Linux's Multipath TCP, and links, addresses and routes, by netlink.
//!
//! [`mptcp`] speaks the generic netlink family `mptcp_pm`: endpoints, limits, announcements, subflows, and the events of
//! connections. [`diag`] lists the connections that there are and their subflows, with figures. [`rtnetlink`] reads links,
//! addresses and routes and tells of their changes. [`wire`] takes bytes apart and puts them together; it has no socket, so that
//! tests and fuzzers drive it with any bytes.
//!
//! A socket belongs to the network namespace that its thread is in when it is opened, and stays there.
//!
//! # Example
//! ```no_run
//! use std::time::Duration;
//! use anabranch_netlink::mptcp::{Endpoint, EndpointFlags, Event, Events, PathManager};
//!
//! let mut manager = PathManager::open()?;
//! let wifi = Endpoint { flags: EndpointFlags::SUBFLOW, ..Endpoint::new("10.0.2.1".parse().unwrap()) };
//! manager.add_endpoint(&wifi)?;
//!
//! let mut events = Events::open()?;
//! while let Some(event) = events.wait(Duration::from_secs(1))? {
//!     match event {
//!         Event::SubflowClosed(closed) => drop(closed.subflow),
//!         Event::Lost => { /* list again whatever was learnt from events */ }
//!         _ => {}
//!     }
//! }
//! # Ok::<(), anabranch_netlink::NetlinkError>(())
//! ```
//!
//! # What it leaves out
//! - Asynchronous runtimes: a request blocks for as long as the kernel works on it, which is inside of the system call; event
//!   sockets have a file descriptor for the caller's `poll(2)`.
//! - Changing links, addresses, routes or rules, and reading rules.
//! - The addresses that the kernel keeps per connection (`GET_ADDR` with a token, Linux 6.10): earlier kernels ignore the token
//!   and list their endpoints instead, which would be taken for the connection's.

pub mod diag;
mod error;
mod generic;
mod listener;
pub mod mptcp;
pub mod rtnetlink;
mod socket;
pub mod wire;

pub use error::{NetlinkError, Refusal};
pub use listener::{Listener, Notification};
