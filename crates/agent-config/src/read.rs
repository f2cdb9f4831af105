//! The reader: errors name the place and the nearest word.

use std::{
    fs,
    net::SocketAddr,
    path::{Path as FilePath, PathBuf},
};

use anabranch_policy::{
    energy::{Linear, RADIOS, Radio},
    paths::{self, PATH_MANAGERS, PathManagerInfo},
};
use serde::Deserialize;
use toml::{Spanned, Value};

use crate::{Config, ConfigError, ConnectionRule, InterfaceRule, Policy, Prefix, ProbeRule, Role, quantity};

/// Other names of path managers, as users ask for them.
pub const ALIASES: [(&str, &str); 1] = [("impact", "pcdc")];
/// Leaves connections alone.
pub const NONE: &str = "none";
/// From one probe of an interface to the next.
pub const PROBE_EVERY: &str = "30 s";

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
