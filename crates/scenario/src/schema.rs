//! JSON Schema (draft 2020-12) of scenario files, from the key tables.

use anabranch_cc::algorithms;
use anabranch_policy::{paths::PATH_MANAGERS, scheduler::SCHEDULERS};
use serde_json::{Map, Value, json};

use crate::congestion;
use crate::keys::{Key, Kind, Need, SCENARIO, Section};
use crate::path_manager;
use crate::quantity::Dimension;
use crate::scheduler;

const NUMBER: &str = r"\d[\d_]*(\.\d[\d_]*)?([eE][+-]?\d+)?";

/// JSON Schema of scenario files, as pretty-printed text; editors complete and check with it.
///
/// It knows keys, types and units. What needs the whole file (names that refer to something, paths, ranges
/// of quantities) is checked by [`crate::load`] alone.
pub fn schema() -> String {
    let mut schema = section_schema(&SCENARIO);
    let top = schema.as_object_mut().expect("a section is an object");
    top.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    top.insert("title".to_owned(), json!("Anabranch scenario"));
    format!("{schema:#}\n")
}

fn section_schema(section: &Section) -> Value {
    let properties: Map<String, Value> =
        section.keys.iter().map(|key| (key.name.to_owned(), key_schema(key))).collect();
    let required: Vec<&str> =
        section.keys.iter().filter(|key| matches!(key.need, Need::Required)).map(|key| key.name).collect();
    json!({
        "type": "object",
        "description": section.doc,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn key_schema(key: &Key) -> Value {
    let mut schema = kind_schema(&key.kind);
    let entries = schema.as_object_mut().expect("every kind is an object");
    let doc = match key.need {
        Need::Required => key.doc.to_owned(),
        Need::Default("") => format!("{} Default: empty.", key.doc),
        Need::Default(text) => format!("{} Default: {text}.", key.doc),
        Need::Optional(text) => format!("{} Without it: {text}.", key.doc),
    };
    entries.insert("description".to_owned(), json!(doc));
    schema
}

fn kind_schema(kind: &Kind) -> Value {
    let name = json!({ "type": "string", "pattern": r"^([A-Za-z0-9_.-]|\{i([/%][1-9][0-9]*)?\})+$" });
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Name => name,
        Kind::Names(least) => json!({ "type": "array", "items": name, "minItems": least }),
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Quantity { dimension, .. } => text_like(&format!("^{}$", quantity_pattern(*dimension))),
        Kind::Limit { dimension, .. } => {
            text_like(&format!("^({}|unlimited)$", quantity_pattern(*dimension)))
        }
        Kind::Queue => {
            let (packets, bytes) = (quantity_pattern(Dimension::Packets), quantity_pattern(Dimension::Bytes));
            text_like(&format!("^({packets}|{bytes}|unlimited)$"))
        }
        Kind::Thousandths { min, max } => {
            json!({ "type": "number", "minimum": f64::from(*min) / 1e3, "maximum": f64::from(*max) / 1e3 })
        }
        Kind::Draw { dimension, section, .. } => json!({ "anyOf": [
            text_like(&format!("^{}$", quantity_pattern(*dimension))),
            section_schema(section),
        ] }),
        Kind::Probability => json!({ "anyOf": [
            { "type": "number", "minimum": 0, "maximum": 1 },
            { "type": "string", "pattern": format!(r"^{NUMBER}\s*%$") },
        ] }),
        Kind::OneOf(words) => json!({ "enum": words }),
        Kind::When => {
            let time = quantity_pattern(Dimension::Time);
            text_like(&format!(r"^({time}|uniform\(\s*{time}\s*,\s*{time}\s*\))$"))
        }
        Kind::Intervals => {
            let time = text_like(&format!("^{}$", quantity_pattern(Dimension::Time)));
            json!({
                "type": "array",
                "minItems": 1,
                "items": { "type": "array", "items": time, "minItems": 2, "maxItems": 2 },
            })
        }
        Kind::Congestion => congestion_schema(),
        Kind::Scheduler => scheduler_schema(),
        Kind::PathManager => path_manager_schema(),
        Kind::OrTable(kind, section) => {
            json!({ "anyOf": [kind_schema(kind), section_schema(section)] })
        }
        Kind::TableOrOff(section) => json!({ "anyOf": [{ "const": "off" }, section_schema(section)] }),
        Kind::Table(section) => section_schema(section),
        Kind::Tables(section) => json!({ "type": "array", "items": section_schema(section) }),
    }
}

fn text_like(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

fn quantity_pattern(dimension: Dimension) -> String {
    let symbols: Vec<&str> = dimension.units().iter().flat_map(|unit| unit.symbols).copied().collect();
    format!(r"{NUMBER}\s*({})", symbols.join("|"))
}

fn scheduler_schema() -> Value {
    let tables = SCHEDULERS.iter().map(|info| {
        let mut properties = Map::from_iter([("name".to_owned(), json!({ "const": info.name }))]);
        for param in scheduler::params(info) {
            let doc = format!("{} Expected: {}.", param.doc, congestion::expected(&param));
            properties.insert(param.name.to_owned(), json!({ "description": doc }));
        }
        json!({
            "type": "object",
            "description": info.title,
            "properties": properties,
            "required": ["name"],
            "additionalProperties": false,
        })
    });
    let names: Vec<&str> = SCHEDULERS.iter().map(|info| info.name).collect();
    let mut any = vec![json!({ "enum": names })];
    any.extend(tables);
    json!({ "anyOf": any })
}

fn congestion_schema() -> Value {
    let names: Vec<&str> = congestion::names().collect();
    let tables = algorithms().iter().map(|algorithm| {
        let mut properties = Map::from_iter([("name".to_owned(), json!({ "const": algorithm.name() }))]);
        for param in algorithm.params() {
            let doc = format!("{} Expected: {}.", param.doc, congestion::expected(param));
            properties.insert(param.name.to_owned(), json!({ "description": doc }));
        }
        json!({
            "type": "object",
            "description": algorithm.title(),
            "properties": properties,
            "required": ["name"],
            "additionalProperties": false,
        })
    });
    let mut any = vec![json!({ "enum": names })];
    any.extend(tables);
    any.extend(congestion::NAMED.iter().map(|named| {
        json!({
            "type": "object",
            "description": named.title,
            "properties": { "name": { "const": named.name } },
            "required": ["name"],
            "additionalProperties": false,
        })
    }));
    json!({ "anyOf": any })
}

fn path_manager_schema() -> Value {
    let names: Vec<&str> = path_manager::names().collect();
    let mut any = vec![json!({ "enum": names })];
    any.extend(PATH_MANAGERS.iter().map(|info| {
        let mut properties = Map::from_iter([("name".to_owned(), json!({ "const": info.name }))]);
        for param in info.params {
            let doc = format!("{} Expected: {}.", param.doc, path_manager::expected(param));
            properties.insert(param.name.to_owned(), json!({ "description": doc }));
        }
        json!({
            "type": "object",
            "description": info.title,
            "properties": properties,
            "required": ["name"],
            "additionalProperties": false,
        })
    }));
    any.push(json!({
        "type": "object",
        "properties": { "name": { "const": path_manager::STATIC } },
        "required": ["name"],
        "additionalProperties": false,
    }));
    json!({ "anyOf": any })
}
