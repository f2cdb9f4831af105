//! The agent: a path manager in user space for the connections that this machine opens.
//!
//! [`Config`] says which interfaces may be used, and which policy of `anabranch_policy::paths` decides for which connections: the same
//! code that the simulator runs. [`run`] shows the policies what the kernel lists and carries out what they decide.

mod act;
mod claim;
mod clock;
mod control;
mod keepalive;
mod ledger;
mod log;
mod managed;
mod network;
mod probe;
mod report;
mod run;
mod schema;
mod timeouts;

pub use anabranch_agent_config::{Config, ConnectionRule, InterfaceRule, Policy, ProbeRule, Role};
pub use control::why;
pub use run::run;
pub use schema::schema;
