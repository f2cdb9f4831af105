//! The applications over real sockets, between two namespaces.

// Every item is for this one binary.
#![allow(unreachable_pub)]

mod applications;
#[path = "../common/mod.rs"]
mod common;
mod iperf3;
mod lab;
mod schedule;
