//! The JSON Schema of the configuration, for editors: `docs/schema/agent.schema.json`.

use anabranch_agent_config::{ALIASES, NONE, PROBE_EVERY, is_offered};
use anabranch_policy::{
    energy::RADIOS,
    paths::{PATH_MANAGERS, PathManagerParam, PathManagerUnit},
};
use serde_json::{Map, Value, json};

/// The schema (draft 2020-12). Policies and their parameters are those of the registry.
pub fn schema() -> Value {
    let offered = || PATH_MANAGERS.iter().filter(|info| is_offered(info));
    let names = offered().map(|info| info.name);
    let names: Vec<&str> = names.chain(ALIASES.map(|(alias, _)| alias)).chain([NONE]).collect();
    let radios: Vec<&str> = RADIOS.iter().map(|radio| radio.name).collect();
    let mut policies = vec![json!({ "enum": names })];
    for info in offered() {
        let aliases = ALIASES.iter().filter(|(_, plain)| *plain == info.name).map(|(alias, _)| *alias);
        let names: Vec<&str> = std::iter::once(info.name).chain(aliases).collect();
        let mut properties = Map::new();
        properties.insert("name".to_owned(), json!({ "enum": names }));
        properties.extend(info.params.iter().map(|param| (param.name.to_owned(), of_param(param))));
        policies.push(json!({
            "type": "object", "title": info.title, "additionalProperties": false, "required": ["name"],
            "properties": properties,
        }));
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of anabranchd agent",
        "type": "object",
        "additionalProperties": false,
        "required": ["interface", "connection"],
        "properties": {
            "agent": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "set_pm_type": {
                        "type": "boolean", "default": false,
                        "description": "Set net.mptcp.pm_type to 1 when the agent begins, and back when it ends.",
                    },
                    "beside_managers": {
                        "type": "boolean", "default": false,
                        "description": "Work although NetworkManager or mptcpd runs.",
                    },
                    "state": {
                        "type": "string",
                        "description": "File that keeps what interfaces with a cap have carried.",
                    },
                    "bpf": {
                        "type": "boolean", "default": true,
                        "description": "Have the kernel tell of retransmission timeouts by a BPF program, if it can be.",
                    },
                },
            },
            "interface": {
                "type": "array", "minItems": 1,
                "description": "Which interfaces may be used, and how; the first that matches counts.",
                "items": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["name"],
                    "properties": {
                        "name": { "type": "string", "description": "Name, or the beginning of names before a *." },
                        "allowed": { "type": "boolean", "default": true, "description": "Subflows may go by it." },
                        "role": {
                            "enum": ["primary", "backup", "metered"], "default": "primary",
                            "description": "metered: a backup, but for the policies cost and energy.",
                        },
                        "radio": { "enum": radios, "description": "The constants of the linear model of energy." },
                        "power": {
                            "type": "object",
                            "additionalProperties": false,
                            "description": "Constants that differ.",
                            "properties": {
                                "b": { "type": "string", "description": "Slope, as \"52 nJ/bit\"." },
                                "theta": { "type": "string", "description": "Base power, as \"1288 mW\"." },
                            },
                        },
                        "cap": {
                            "type": "string",
                            "description": "What it may carry in a period of the policy cost, as \"2 GB\".",
                        },
                        "keepalive": {
                            "type": "string",
                            "description": "A subflow that has sent nothing for so long sends something, as \"2 min\".",
                        },
                        "probe": {
                            "type": "object",
                            "additionalProperties": false,
                            "required": ["to"],
                            "description": "A TCP connection now and then, to find out whether there is an Internet behind it.",
                            "properties": {
                                "to": { "type": "string", "description": "Address and port, as \"192.0.2.1:443\"." },
                                "every": {
                                    "type": "string", "default": PROBE_EVERY,
                                    "description": "From one to the next, at least \"1 s\".",
                                },
                            },
                        },
                    },
                },
            },
            "connection": {
                "type": "array", "minItems": 1,
                "description": "What is done with connections that this machine opens; the first that matches counts.",
                "items": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["policy"],
                    "properties": {
                        "to": { "type": "string", "description": "The peer's address, or a prefix." },
                        "port": { "type": "integer", "minimum": 0, "maximum": 65535, "description": "The peer's port." },
                        "policy": { "anyOf": policies },
                    },
                },
            },
        },
    })
}

fn of_param(param: &PathManagerParam) -> Value {
    let PathManagerParam { min, max, default, doc, .. } = *param;
    let thousandths = |value: u64| value as f64 / 1e3;
    match param.unit {
        PathManagerUnit::Time => {
            json!({ "type": "string", "description": format!("{doc} A time, as \"2 s\".") })
        }
        PathManagerUnit::Bytes => {
            json!({ "type": "string", "description": format!("{doc} A size, as \"2 MB\".") })
        }
        PathManagerUnit::Count => {
            json!({ "type": "integer", "minimum": min, "maximum": max, "default": default, "description": doc })
        }
        PathManagerUnit::Bool => json!({ "type": "boolean", "default": default != 0, "description": doc }),
        PathManagerUnit::Permille => json!({
            "type": "number", "minimum": thousandths(min), "maximum": thousandths(max),
            "default": thousandths(default), "description": doc,
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    #[test]
    fn the_schema_in_docs_is_this_one() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/agent.schema.json");
        let now = serde_json::to_string_pretty(&super::schema()).expect("it is JSON") + "\n";
        if std::env::var_os("ANABRANCH_ACCEPT").is_some() {
            fs::write(&file, &now).expect("it can be written");
        }
        let written = fs::read_to_string(&file).unwrap_or_default();
        assert!(written == now, "ANABRANCH_ACCEPT=1 cargo test -p anabranch-device --lib schema");
    }
}
