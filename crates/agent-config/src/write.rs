//! A configuration as TOML, exact to the last digit: what is read from it is the same configuration.

use std::fmt::Write as _;

use anabranch_policy::{energy::Linear, paths::PathManagerUnit};

use crate::{Config, InterfaceRule, NONE, Policy, ProbeRule, Role};

impl Config {
    /// The text of a file that says the same.
    pub fn to_toml(&self) -> String {
        let mut text = String::from("[agent]\n");
        let mut line = |line: String| {
            text += &line;
            text.push('\n');
        };
        line(format!("set_pm_type = {}", self.set_pm_type));
        line(format!("beside_managers = {}", self.beside_managers));
        line(format!("bpf = {}", self.bpf));
        if let Some(file) = &self.state {
            line(format!("state = {}", quoted(&file.display().to_string())));
        }
        for rule in &self.interfaces {
            line(interface(rule));
        }
        for rule in &self.connections {
            line("\n[[connection]]".to_owned());
            if let Some(prefix) = rule.to {
                line(format!("to = \"{prefix}\""));
            }
            if let Some(port) = rule.port {
                line(format!("port = {port}"));
            }
            line(match &rule.policy {
                None => format!("policy = \"{NONE}\""),
                Some(policy) => format!("policy = {{ {} }}", fields(policy)),
            });
        }
        text
    }
}

fn interface(rule: &InterfaceRule) -> String {
    let role = match rule.role {
        Role::Primary => "primary",
        Role::Backup => "backup",
        Role::Metered => "metered",
    };
    let mut text = format!("\n[[interface]]\nname = {}\nrole = \"{role}\"", quoted(&rule.name));
    if !rule.allowed {
        text += "\nallowed = false";
    }
    if let Some(bytes) = rule.cap_bytes {
        write!(text, "\ncap = \"{bytes} B\"").expect("a string takes text");
    }
    if let Some(Linear { b_mw_per_mbps, theta_mw }) = rule.radio {
        // Read as whole pJ/bit and uW, of which these are thousandths.
        let (slope, base) = ((b_mw_per_mbps * 1e3).round() as u64, (theta_mw * 1e3).round() as u64);
        write!(text, "\npower = {{ b = \"{slope} pJ/bit\", theta = \"{base} uW\" }}")
            .expect("a string takes text");
    }
    if let Some(time) = rule.keepalive {
        write!(text, "\nkeepalive = \"{time} ns\"").expect("a string takes text");
    }
    if let Some(ProbeRule { to, every }) = rule.probe {
        write!(text, "\nprobe = {{ to = \"{to}\", every = \"{every} ns\" }}").expect("a string takes text");
    }
    text
}

/// Name and all parameters, in the units that no rounding needs.
fn fields(policy: &Policy) -> String {
    let mut text = format!("name = \"{}\"", policy.info.name);
    for (param, value) in policy.info.params.iter().zip(&policy.values) {
        let shown = match param.unit {
            PathManagerUnit::Time => format!("\"{value} ns\""),
            PathManagerUnit::Bytes => format!("\"{value} B\""),
            PathManagerUnit::Count => value.to_string(),
            PathManagerUnit::Bool => (*value != 0).to_string(),
            PathManagerUnit::Permille => format!("{}.{:03}", value / 1000, value % 1000),
        };
        write!(text, ", {} = {shown}", param.name).expect("a string takes text");
    }
    text
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control.is_control() => {
                write!(quoted, "\\u{:04X}", u32::from(control)).expect("a string takes text");
            }
            other => quoted.push(other),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_as_the_same_configuration() {
        let all: String = anabranch_policy::paths::PATH_MANAGERS
            .iter()
            .filter(|info| crate::is_offered(info))
            .map(|info| format!("[[connection]]\nport = 7\npolicy = \"{}\"\n", info.name))
            .collect();
        let text = format!(
            r#"
            [agent]
            set_pm_type = true
            bpf = false
            state = 'C:\state "x"'
            [[interface]]
            name = "wlan*"
            radio = "wifi"
            [[interface]]
            name = "wwan0"
            role = "metered"
            power = {{ b = "0.0371 uJ/bit", theta = "1.2881 W" }}
            cap = "2.5 GB"
            keepalive = "25.5 s"
            probe = {{ to = "[2001:db8::7]:443", every = "1 min" }}
            [[interface]]
            name = "eth0"
            role = "backup"
            allowed = false
            [[connection]]
            to = "192.0.2.0/24"
            policy = {{ name = "failover", hold = "1.25 ms", jitter = 0.125 }}
            [[connection]]
            to = "2001:db8::1"
            policy = "none"
            {all}
            "#
        );
        let config = Config::parse(&text, "agent.toml").unwrap();
        let written = config.to_toml();
        assert_eq!(Config::parse(&written, "agent.toml"), Ok(config), "{written}");
    }
}
