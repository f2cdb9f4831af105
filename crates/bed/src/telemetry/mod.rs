//! What the kernel tells of the connections while they run, and what the emulator tells of its links.
//!
//! [`sockets`] reads one socket, [`memory`] what it and its subflows hold; neither decides when. A reading is a structure that grows from one kernel to the next: what an older kernel
//! does not tell is `None`, what a newer one tells besides is not looked at.

mod layout;
pub mod memory;
pub mod sockets;

pub use memory::{ConnectionMemory, Memory, SocketDiag};
pub use sockets::{Sample, SubflowSample};
