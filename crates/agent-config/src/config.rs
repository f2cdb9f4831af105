//! The configuration and its reader; errors name the place and the nearest word.

use std::{
    fs,
    net::{IpAddr, SocketAddr},
    path::{Path as FilePath, PathBuf},
};

use anabranch_policy::{
    energy::{Linear, RADIOS, Radio},
    paths::{self, PATH_MANAGERS, PathManagerInfo},
};
use serde::Deserialize;
use toml::{Spanned, Value};

use crate::{ConfigError, Prefix, quantity};

/// Other names of path managers, as users ask for them.
pub const ALIASES: [(&str, &str); 1] = [("impact", "pcdc")];
/// Leaves connections alone.
pub const NONE: &str = "none";
/// From one probe of an interface to the next.
pub const PROBE_EVERY: &str = "30 s";

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
    /// Reads a file.
    ///
    /// # Errors
    /// [`ConfigError`] with file, line and column, what is expected and the nearest word.
    pub fn read(file: &FilePath) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(file)
            .map_err(|error| ConfigError(format!("reading {}: {error}", file.display())))?;
        Self::parse(&text, &file.display().to_string())
    }

    /// Reads a text; `name` stands in messages.
    ///
    /// # Errors
    /// As [`Config::read`].
    pub fn parse(text: &str, name: &str) -> Result<Self, ConfigError> {
        let at = |span: Option<std::ops::Range<usize>>, what: String| {
            let before = text.get(..span.map_or(0, |span| span.start)).unwrap_or(text);
            let line = before.matches('\n').count() + 1;
            let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
            ConfigError(format!("{name}:{line}:{column}: {what}"))
        };
        let file: File = toml::from_str(text).map_err(|error| {
            at(error.span(), with_nearest(error.message().lines().next().unwrap_or_default()))
        })?;
        let interfaces = file.interface.into_iter().map(|interface| {
            let span = interface.span();
            interface_rule(interface.into_inner()).map_err(|what| at(Some(span), what))
        });
        let connections = file.connection.into_iter().map(|connection| {
            let span = connection.span();
            connection_rule(connection.into_inner())
                .map_err(|(inner, what)| at(Some(inner.unwrap_or(span)), what))
        });
        let config = Self {
            set_pm_type: file.agent.set_pm_type,
            beside_managers: file.agent.beside_managers,
            state: file.agent.state,
            bpf: file.agent.bpf.unwrap_or(true),
            interfaces: interfaces.collect::<Result<_, _>>()?,
            connections: connections.collect::<Result<_, _>>()?,
        };
        config.check().map_err(|what| at(None, what))?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        let policies = || self.connections.iter().filter_map(|rule| rule.policy.as_ref());
        if policies().next().is_none() {
            return Err("there is no [[connection]] with a policy: the agent would do nothing".to_owned());
        }
        let mut allowed = self.interfaces.iter().filter(|rule| rule.allowed).peekable();
        if allowed.peek().is_none() {
            return Err("there is no [[interface]] that is allowed: the agent would do nothing".to_owned());
        }
        if let Some(policy) = policies().find(|policy| policy.info.reckons_energy)
            && let Some(rule) = allowed.find(|rule| rule.radio.is_none())
        {
            let (policy, interface) = (policy.info.name, &rule.name);
            return Err(format!("the policy `{policy}` needs the `radio` of the interface `{interface}`"));
        }
        Ok(())
    }

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

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    agent: AgentTable,
    #[serde(default)]
    interface: Vec<Spanned<InterfaceTable>>,
    #[serde(default)]
    connection: Vec<Spanned<ConnectionTable>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentTable {
    #[serde(default)]
    set_pm_type: bool,
    #[serde(default)]
    beside_managers: bool,
    state: Option<PathBuf>,
    bpf: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InterfaceTable {
    name: String,
    allowed: Option<bool>,
    #[serde(default)]
    role: Role,
    radio: Option<String>,
    #[serde(default)]
    power: PowerTable,
    cap: Option<String>,
    keepalive: Option<String>,
    probe: Option<ProbeTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProbeTable {
    to: SocketAddr,
    every: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PowerTable {
    b: Option<String>,
    theta: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConnectionTable {
    to: Option<String>,
    port: Option<u16>,
    policy: Spanned<Value>,
}

fn interface_rule(table: InterfaceTable) -> Result<InterfaceRule, String> {
    let preset = table.radio.as_deref().map(|name| {
        Radio::find(name).ok_or_else(|| {
            let names = RADIOS.iter().map(|radio| radio.name);
            unknown("radio", name, names)
        })
    });
    let preset = preset.transpose()?.map(|radio| radio.linear);
    let b = table.power.b.as_deref().map(quantity::nanojoules).transpose()?;
    let theta = table.power.theta.as_deref().map(quantity::milliwatts).transpose()?;
    let radio = match (preset, b, theta) {
        (None, None, None) => None,
        (Some(preset), b, theta) => Some(Linear {
            b_mw_per_mbps: b.unwrap_or(preset.b_mw_per_mbps),
            theta_mw: theta.unwrap_or(preset.theta_mw),
        }),
        (None, Some(b_mw_per_mbps), Some(theta_mw)) => Some(Linear { b_mw_per_mbps, theta_mw }),
        _ => return Err("`power` needs both `b` and `theta`, or a `radio` to begin with".to_owned()),
    };
    Ok(InterfaceRule {
        name: table.name,
        allowed: table.allowed.unwrap_or(true),
        role: table.role,
        radio,
        cap_bytes: table.cap.as_deref().map(quantity::bytes).transpose()?,
        keepalive: table.keepalive.as_deref().map(|text| interval("keepalive", text)).transpose()?,
        probe: table.probe.map(probe_rule).transpose()?,
    })
}

fn probe_rule(table: ProbeTable) -> Result<ProbeRule, String> {
    let every = interval("probe.every", table.every.as_deref().unwrap_or(PROBE_EVERY))?;
    Ok(ProbeRule { to: table.to, every })
}

/// A time in nanoseconds, of at least a second: nothing else wakes an idle agent more often.
fn interval(key: &str, text: &str) -> Result<u64, String> {
    match quantity::time(text)? {
        0..1_000_000_000 => Err(format!("`{key}` is \"{text}\", expected \"1 s\" or more")),
        time => Ok(time),
    }
}

/// Whether the agent can do it: it has one path per pair of addresses, so that `ndiffports` would do nothing.
pub fn is_offered(info: &PathManagerInfo) -> bool {
    info.name != "ndiffports"
}

type Misplaced = (Option<std::ops::Range<usize>>, String);

fn connection_rule(table: ConnectionTable) -> Result<ConnectionRule, Misplaced> {
    let to = table.to.as_deref().map(Prefix::read).transpose().map_err(|what| (None, what))?;
    let span = table.policy.span();
    let policy = policy(table.policy.get_ref()).map_err(|what| (Some(span), what))?;
    Ok(ConnectionRule { to, port: table.port, policy })
}

/// `"failover"` or `{ name = "failover", hold = "2 s" }`.
fn policy(value: &Value) -> Result<Option<Policy>, String> {
    let (name, params) = match value {
        Value::String(name) => (name, None),
        Value::Table(table) => match table.get("name") {
            Some(Value::String(name)) => (name, Some(table)),
            _ => return Err("`policy` needs a `name`".to_owned()),
        },
        _ => return Err("`policy` is a name or a table with a `name`".to_owned()),
    };
    if name == NONE {
        return Ok(None);
    }
    let plain = ALIASES.iter().find(|(alias, _)| alias == name).map_or(name.as_str(), |(_, plain)| *plain);
    let info = paths::find(plain).filter(|info| is_offered(info)).ok_or_else(|| {
        let names = PATH_MANAGERS.iter().filter(|info| is_offered(info)).map(|info| info.name);
        unknown("policy", name, names.chain(ALIASES.map(|(alias, _)| alias)).chain([NONE]))
    })?;
    let mut values = info.defaults();
    for (key, value) in params.into_iter().flatten().filter(|(key, _)| *key != "name") {
        let Some(at) = info.params.iter().position(|param| param.name == key) else {
            return Err(match info.params {
                [] => format!("the policy `{name}` has no parameters"),
                params => {
                    unknown(&format!("parameter of `{name}`"), key, params.iter().map(|param| param.name))
                }
            });
        };
        values[at] = quantity::param(&info.params[at], value)?;
    }
    Ok(Some(Policy { info, values }))
}

fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let all: Vec<String> = known.clone().map(|name| format!("`{name}`")).collect();
    let nearest = nearest(name, known).expect("there are some");
    format!("unknown {what} `{name}`, expected one of {}; the nearest name is `{nearest}`", all.join(", "))
}

/// The candidate that is most like a name.
fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates.min_by_key(|candidate| strsim::damerau_levenshtein(name, candidate))
}

/// Adds the nearest of the names that `serde` says it expects.
fn with_nearest(message: &str) -> String {
    let is_unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
    let mut names = message.split('`').skip(1).step_by(2);
    match (is_unknown, names.next()) {
        (true, Some(name)) => match nearest(name, names) {
            Some(nearest) => format!("{message}; the nearest name is `{nearest}`"),
            None => message.to_owned(),
        },
        _ => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        [[interface]]
        name = "wlan*"
        radio = "wifi"
        [[interface]]
        name = "wwan0"
        role = "metered"
        radio = "lte"
        power = { theta = "1 W" }
        cap = "2 GB"
        [[connection]]
        to = "192.0.2.0/24"
        port = 443
        policy = { name = "failover", hold = "2 s", dead_after = 3, jitter = 0.5 }
        [[connection]]
        to = "2001:db8::/32"
        policy = "none"
        [[connection]]
        policy = "impact"
    "#;

    #[test]
    fn the_first_rule_that_matches_counts() {
        let config = Config::parse(GOOD, "agent.toml").unwrap();
        assert_eq!(config.interface("wlan1").unwrap().role, Role::Primary);
        let wwan = config.interface("wwan0").unwrap();
        assert_eq!((wwan.role, wwan.cap_bytes), (Role::Metered, Some(2_000_000_000)));
        assert_eq!(wwan.radio, Some(Linear { b_mw_per_mbps: 52.0, theta_mw: 1000.0 }));
        assert_eq!(config.interface("eth0"), None);
        let name = |address: &str, port| {
            config.policy(address.parse().unwrap(), port).map(|policy| policy.info.name)
        };
        assert_eq!(name("192.0.2.9", 443), Some("failover"));
        assert_eq!(name("::ffff:192.0.2.9", 443), Some("failover"));
        assert_eq!(name("192.0.2.9", 80), Some("pcdc"));
        assert_eq!(name("192.0.3.9", 443), Some("pcdc"));
        assert_eq!(name("2001:db8:1::1", 443), None);
        assert_eq!(name("2001:db9::1", 443), Some("pcdc"));
        let failover = config.policy("192.0.2.9".parse().unwrap(), 443).unwrap();
        assert_eq!(failover.values, [3, 2_000_000_000, 500_000_000, 3_000_000_000, 500]);
    }

    #[test]
    fn the_example_of_the_documents_is_good() {
        let document = include_str!("../../../docs/agent.md");
        let example = document.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
        let config = Config::parse(example.expect("it has one"), "agent.md").unwrap();
        assert!(config.set_pm_type);
        assert_eq!(config.policy("192.0.2.7".parse().unwrap(), 443).unwrap().info.name, "failover");
    }

    #[test]
    fn the_shortest_prefix_is_everything() {
        let config =
            "[[interface]]\nname = \"*\"\n[[connection]]\nto = \"0.0.0.0/0\"\npolicy = \"fullmesh\"\n";
        let config = Config::parse(config, "agent.toml").unwrap();
        assert!(config.policy("203.0.113.1".parse().unwrap(), 1).is_some());
        assert!(config.policy("2001:db8::1".parse().unwrap(), 1).is_none());
        assert!(config.interface("anything").is_some());
    }

    /// The good configuration with one line replaced gives this message.
    #[track_caller]
    fn refused(line: &str, by: &str, message: &str) {
        assert!(GOOD.contains(line), "{line}");
        let error = Config::parse(&GOOD.replacen(line, by, 1), "agent.toml").expect_err(by);
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place_and_the_nearest_name() {
        refused(
            "role = ",
            "rolle = ",
            "agent.toml:7:9: unknown field `rolle`, expected one of `name`, `allowed`, `role`, `radio`, `power`, `cap`, \
             `keepalive`, `probe`; the nearest name is `role`",
        );
        refused(
            "\"metered\"",
            "\"metred\"",
            "agent.toml:7:16: unknown variant `metred`, expected one of `primary`, `backup`, `metered`; \
             the nearest name is `metered`",
        );
        refused(
            "\"failover\"",
            "\"failver\"",
            "agent.toml:14:18: unknown policy `failver`, expected one of `default`, `fullmesh`, \
             `dedicated-backup`, `failover`, `reestablish`, `cost`, `energy`, `pcdc`, `impact`, `none`; the nearest name \
             is `failover`",
        );
        refused(
            "hold",
            "hald",
            "agent.toml:14:18: unknown parameter of `failover` `hald`, expected one of `dead_after`, `hold`, `retry`, \
             `retry_max`, `jitter`; the nearest name is `hold`",
        );
        refused("\"2 s\"", "2", "agent.toml:14:18: `hold`: expected a time from \"0 s\" to \"3600 s\"");
        refused(
            "dead_after = 3",
            "dead_after = 0",
            "agent.toml:14:18: `dead_after`: expected a whole number from 1 to 100",
        );
        refused(
            "\"2 GB\"",
            "\"2 gigs\"",
            "agent.toml:5:9: \"2 gigs\" is not a size like \"2 GB\"; units are B, kB, MB, GB, KiB, MiB, GiB",
        );
        refused(
            "\"192.0.2.0/24\"",
            "\"192.0.2.0/33\"",
            "agent.toml:11:9: \"192.0.2.0/33\" is no address and no prefix like \"192.0.2.0/24\"",
        );
        refused("\"impact\"", "1", "agent.toml:19:18: `policy` is a name or a table with a `name`");
    }

    #[test]
    fn probes_and_keepalives_come_once_a_second_at_most() {
        let with = |line: &str| {
            let text =
                format!("[[interface]]\nname = \"c1\"\n{line}\n[[connection]]\npolicy = \"fullmesh\"\n");
            let config = Config::parse(&text, "agent.toml").map_err(|error| error.to_string())?;
            Ok::<_, String>((config.bpf, config.interfaces[0].keepalive, config.interfaces[0].probe))
        };
        let to = "192.0.2.1:443".parse().unwrap();
        assert_eq!(with(""), Ok((true, None, None)));
        assert_eq!(with("keepalive = \"2 min\""), Ok((true, Some(120_000_000_000), None)));
        let probe = Some(ProbeRule { to, every: 30_000_000_000 });
        assert_eq!(with("probe = { to = \"192.0.2.1:443\" }"), Ok((true, None, probe)));
        let refused = |line| with(line).unwrap_err();
        assert_eq!(
            refused("keepalive = \"20 ms\""),
            "agent.toml:1:1: `keepalive` is \"20 ms\", expected \"1 s\" or more"
        );
        assert_eq!(
            refused("probe = { to = \"192.0.2.1:443\", every = \"0 s\" }"),
            "agent.toml:1:1: `probe.every` is \"0 s\", expected \"1 s\" or more"
        );
        assert!(
            refused("probe = { to = \"192.0.2.1\" }").starts_with("agent.toml:3:16: invalid socket address")
        );
    }

    #[test]
    fn a_configuration_that_does_nothing_is_refused() {
        let said = |text| Config::parse(text, "agent.toml").unwrap_err().to_string();
        assert!(said("").contains("no [[connection]] with a policy"));
        assert!(said("[[connection]]\npolicy = \"fullmesh\"\n").contains("no [[interface]] that is allowed"));
        let energy = "[[interface]]\nname = \"wlan0\"\n[[connection]]\npolicy = \"energy\"\n";
        assert_eq!(
            said(energy),
            "agent.toml:1:1: the policy `energy` needs the `radio` of the interface `wlan0`"
        );
    }
}
