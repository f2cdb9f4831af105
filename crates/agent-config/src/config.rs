//! What the configuration says, and which of its rules counts.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use anabranch_policy::{energy::Linear, paths::PathManagerInfo};
use serde::Deserialize;

use crate::Prefix;

/// What the agent is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Sets `net.mptcp.pm_type` to 1 when it begins, and back when it ends.
    pub set_pm_type: bool,
    /// Works although another path manager runs on this machine.
    pub beside_managers: bool,
    /// Keeps what interfaces with a cap have carried.
    pub state: Option<PathBuf>,
    /// Has the kernel tell of retransmission timeouts by a BPF program, if it can be.
    pub bpf: bool,
    /// Which interfaces may be used, and how; the first that matches counts.
    pub interfaces: Vec<InterfaceRule>,
    /// What is done with which connections; the first that matches counts.
    pub connections: Vec<ConnectionRule>,
}

/// What an interface is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Always.
    #[default]
    Primary,
    /// When the others fail.
    Backup,
    /// As a backup, but for the policies `cost` and `energy`, which know what it costs.
    Metered,
}

/// What is said of interfaces.
#[derive(Clone, Debug, PartialEq)]
pub struct InterfaceRule {
    /// Name, or the beginning of names before a `*`.
    pub name: String,
    /// Subflows may go by it.
    pub allowed: bool,
    /// What it is used for.
    pub role: Role,
    /// What its radio takes.
    pub radio: Option<Linear>,
    /// What it may carry in a period of the policy `cost`, both directions, all traffic.
    pub cap_bytes: Option<u64>,
    /// A subflow that has sent nothing for so many nanoseconds sends something.
    pub keepalive: Option<u64>,
    /// How it is found out whether there is an Internet behind it.
    pub probe: Option<ProbeRule>,
}

impl InterfaceRule {
    fn matches(&self, name: &str) -> bool {
        match self.name.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => self.name == name,
        }
    }
}

/// What is probed, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeRule {
    /// The end that is to answer.
    pub to: SocketAddr,
    /// From one probe to the next, in nanoseconds.
    pub every: u64,
}

/// What is done with connections.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionRule {
    /// Of the peer's address.
    pub to: Option<Prefix>,
    /// The peer's port.
    pub port: Option<u16>,
    /// The path manager and its parameters; none: they are left alone.
    pub policy: Option<Policy>,
}

/// A path manager with the values of its parameters.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Its entry in the registry.
    pub info: &'static PathManagerInfo,
    /// In the order of its parameters.
    pub values: Vec<u64>,
}

impl PartialEq for Policy {
    fn eq(&self, other: &Self) -> bool {
        (self.info.name, &self.values) == (other.info.name, &other.values)
    }
}

impl Policy {
    /// Whether it reckons with what metered interfaces cost.
    pub fn knows_cost(&self) -> bool {
        self.info.reckons_energy || self.info.name == "cost"
    }

    /// The length of its periods in nanoseconds, if it counts in periods.
    pub fn period(&self) -> Option<u64> {
        let place = self.info.params.iter().position(|param| param.name == "period")?;
        Some(self.values[place])
    }
}

impl Config {
    /// What is said of an interface; nothing if it may not be used.
    pub fn interface(&self, name: &str) -> Option<&InterfaceRule> {
        self.place(name).map(|place| &self.interfaces[place])
    }

    /// The place among the rules of the one for an interface that may be used.
    pub fn place(&self, name: &str) -> Option<usize> {
        let place = self.interfaces.iter().position(|rule| rule.matches(name))?;
        self.interfaces[place].allowed.then_some(place)
    }

    /// The lengths of the periods of data caps, each once.
    pub fn periods(&self) -> Vec<u64> {
        let policies = self.connections.iter().filter_map(|rule| rule.policy.as_ref());
        let mut periods: Vec<u64> = policies.filter_map(Policy::period).collect();
        periods.sort_unstable();
        periods.dedup();
        periods
    }

    /// What is done with connections to that end; nothing if they are left alone.
    pub fn policy(&self, to: IpAddr, port: u16) -> Option<&Policy> {
        let matches = |rule: &&ConnectionRule| {
            rule.to.is_none_or(|prefix| prefix.contains(to)) && rule.port.is_none_or(|own| own == port)
        };
        self.connections.iter().find(matches)?.policy.as_ref()
    }
}
