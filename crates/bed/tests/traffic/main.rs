//! The applications over real sockets, between two namespaces.

// Every item is for this one binary.
#![allow(unreachable_pub)]

mod applications;
mod iperf3;
mod lab;
mod schedule;
