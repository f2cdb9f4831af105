//! Namespaces, devices, addresses and routes: what a plan needs on the machine, and its removal.

pub mod namespace;
pub mod tun;

pub use namespace::Namespace;
