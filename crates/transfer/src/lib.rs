//! Files over several dedicated sockets at once, from both ends, with little memory: MPTCP-IoT (Hwang and Yoo, Sensors 2020,
//! 20(5):1436) as a tool.
//!
//! [`wire`] is what sender and receiver say to each other, [`security`] who may say it. [`sender`] and [`receiver`] are the two ends,
//! [`path`] the ways between them, and [`memory`] what they may take.
//!
//! Threads and blocking calls, no asynchronous runtime: a device has a handful of paths.

mod backup;
mod channel;
mod clock;
mod hash;
pub mod memory;
pub mod path;
pub mod receiver;
pub mod security;
pub mod sender;
mod sockets;
mod stop;
mod tree;
pub mod wire;

pub use backup::{BackupWay, NoBackups};
pub use channel::ChannelError;
pub use sockets::SocketMemory;
pub use stop::Stop;
