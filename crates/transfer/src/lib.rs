//! Files over several dedicated sockets at once, from both ends, with little memory: MPTCP-IoT (Hwang and Yoo, Sensors 2020,
//! 20(5):1436) as a tool.
//!
//! [`wire`] is what sender and receiver say to each other.

pub mod wire;
