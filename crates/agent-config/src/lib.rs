//! The configuration of the device agent (docs/agent.md): what `anabranchd agent` reads, and what a scenario can name for one of its
//! nodes, so that the simulator and the test bed decide as the device would.
//!
//! [`Config`] reads it; [`Config::to_toml`] writes one back, for the test bed, which gives interfaces and peers its own names.

mod config;
mod prefix;
mod quantity;
mod read;
mod write;

pub use config::{Config, ConnectionRule, InterfaceRule, Policy, ProbeRule, Role};
pub use prefix::Prefix;
pub use quantity::time;
pub use read::{ALIASES, NONE, PROBE_EVERY, is_offered};

/// Why a configuration was refused: file, line and column, what is expected and the nearest word, ready to print.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);
