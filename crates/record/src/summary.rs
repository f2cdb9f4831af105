//! `summary.json` and `summary.csv`: the figures of a run, nested and in long form.

use std::{collections::BTreeMap, fmt::Write};

use serde::{Serialize, Serializer};

use crate::{
    Error, FORMAT,
    model::{Figure, Scope, Summary},
};

/// A JSON object whose members keep the order in which they were added.
struct Ordered<'a, V> {
    members: Vec<(&'a str, V)>,
    index: BTreeMap<&'a str, usize>,
}

impl<V> Default for Ordered<'_, V> {
    fn default() -> Self {
        Self { members: Vec::new(), index: BTreeMap::new() }
    }
}

impl<V> Ordered<'_, V> {
    fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

impl<'a, V: Default> Ordered<'a, V> {
    fn entry(&mut self, name: &'a str) -> &mut V {
        let position = *self.index.entry(name).or_insert_with(|| {
            self.members.push((name, V::default()));
            self.members.len() - 1
        });
        &mut self.members[position].1
    }
}

impl<V: Serialize> Serialize for Ordered<'_, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.members.iter().map(|(name, value)| (name, value)))
    }
}

type Metrics<'a> = Ordered<'a, f64>;

#[derive(Serialize)]
struct Nested<'a> {
    format: u32,
    run: Metrics<'a>,
    connections: Ordered<'a, Metrics<'a>>,
    subflows: Ordered<'a, Ordered<'a, Metrics<'a>>>,
    links: Ordered<'a, Metrics<'a>>,
    #[serde(skip_serializing_if = "Ordered::is_empty")]
    interfaces: Ordered<'a, Ordered<'a, Metrics<'a>>>,
    #[serde(skip_serializing_if = "Ordered::is_empty")]
    nodes: Ordered<'a, Metrics<'a>>,
}

/// `summary.json` in the engine's order of figures.
pub(crate) fn to_json(summary: &Summary) -> Result<String, Error> {
    check(summary)?;
    let mut nested = Nested {
        format: FORMAT,
        run: Ordered::default(),
        connections: Ordered::default(),
        subflows: Ordered::default(),
        links: Ordered::default(),
        interfaces: Ordered::default(),
        nodes: Ordered::default(),
    };
    for Figure { scope, metric, value } in &summary.figures {
        let metrics = match scope {
            Scope::Run => &mut nested.run,
            Scope::Connection(name) => nested.connections.entry(name),
            Scope::Subflow(connection, name) => nested.subflows.entry(connection).entry(name),
            Scope::Link(name) => nested.links.entry(name),
            Scope::Interface(node, link) => nested.interfaces.entry(node).entry(link),
            Scope::Node(name) => nested.nodes.entry(name),
        };
        *metrics.entry(metric) = *value;
    }
    let mut text = serde_json::to_string_pretty(&nested).expect("strings and finite numbers are JSON");
    text.push('\n');
    Ok(text)
}

/// `summary.csv` (RFC 4180, but with line feeds) in the engine's order of figures. The column `node` is there if a
/// figure is of a node.
pub(crate) fn to_csv(summary: &Summary) -> String {
    let has_nodes = summary.figures.iter().any(|figure| columns(&figure.scope).node.is_some());
    let node_title = if has_nodes { ",node" } else { "" };
    let mut text = format!("scope,connection,subflow,link{node_title},metric,value\n");
    for Figure { scope, metric, value } in &summary.figures {
        let columns = columns(scope);
        text.push_str(columns.kind);
        let node = has_nodes.then_some(columns.node);
        for field in [columns.connection, columns.subflow, columns.link].into_iter().chain(node) {
            text.push(',');
            push_field(&mut text, field.unwrap_or_default());
        }
        let value = serde_json::Number::from_f64(*value).expect("checked to be finite");
        writeln!(text, ",{metric},{value}").expect("a string takes all text");
    }
    text
}

/// A scope as the long tables have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Columns<'a> {
    pub(crate) kind: &'static str,
    pub(crate) connection: Option<&'a str>,
    pub(crate) subflow: Option<&'a str>,
    pub(crate) link: Option<&'a str>,
    pub(crate) node: Option<&'a str>,
}

pub(crate) fn columns(scope: &Scope) -> Columns<'_> {
    let none = Columns::default();
    match scope {
        Scope::Run => Columns { kind: "run", ..none },
        Scope::Connection(name) => Columns { kind: "connection", connection: Some(name), ..none },
        Scope::Subflow(connection, name) => {
            Columns { kind: "subflow", connection: Some(connection), subflow: Some(name), ..none }
        }
        Scope::Link(name) => Columns { kind: "link", link: Some(name), ..none },
        Scope::Interface(node, link) => {
            Columns { kind: "interface", link: Some(link), node: Some(node), ..none }
        }
        Scope::Node(name) => Columns { kind: "node", node: Some(name), ..none },
    }
}

fn push_field(text: &mut String, field: &str) {
    if field.contains([',', '"', '\n', '\r']) {
        text.push('"');
        text.push_str(&field.replace('"', "\"\""));
        text.push('"');
    } else {
        text.push_str(field);
    }
}

fn check(summary: &Summary) -> Result<(), Error> {
    let mut seen = BTreeMap::new();
    for Figure { scope, metric, value } in &summary.figures {
        if !value.is_finite() {
            return Err(Error::Measurements(format!("{metric} of {scope:?} is {value}")));
        }
        if seen.insert((scope, metric), ()).is_some() {
            return Err(Error::Measurements(format!("{metric} of {scope:?} is given twice")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(scope: Scope, metric: &'static str, value: f64) -> Figure {
        Figure { scope, metric, value }
    }

    fn example() -> Summary {
        Summary {
            figures: vec![
                figure(Scope::Run, "jain_index", 0.1 + 0.2),
                figure(Scope::Connection("meter".into()), "goodput_bps", 3e6),
                figure(Scope::Subflow("meter".into(), "path2".into()), "drops", 12.0),
                figure(Scope::Subflow("meter".into(), "path1".into()), "drops", 0.0),
                figure(Scope::Link("r1-r2/reverse".into()), "mean_queue_packets", 1e-7),
                figure(Scope::Connection("meter".into()), "retransmits", 1.0),
            ],
        }
    }

    #[test]
    fn json_is_nested_in_the_order_of_the_engine() {
        let expected = r#"{
  "format": 1,
  "run": {
    "jain_index": 0.30000000000000004
  },
  "connections": {
    "meter": {
      "goodput_bps": 3000000.0,
      "retransmits": 1.0
    }
  },
  "subflows": {
    "meter": {
      "path2": {
        "drops": 12.0
      },
      "path1": {
        "drops": 0.0
      }
    }
  },
  "links": {
    "r1-r2/reverse": {
      "mean_queue_packets": 1e-7
    }
  }
}
"#;
        assert_eq!(to_json(&example()).unwrap(), expected);
    }

    #[test]
    fn csv_is_long_and_quotes_what_needs_it() {
        let mut summary = example();
        summary.figures.truncate(3);
        summary.figures.push(figure(Scope::Link("a,\"b\"".into()), "drops", 2.0));
        let expected = "scope,connection,subflow,link,metric,value\n\
                        run,,,,jain_index,0.30000000000000004\n\
                        connection,meter,,,goodput_bps,3000000.0\n\
                        subflow,meter,path2,,drops,12.0\n\
                        link,,,\"a,\"\"b\"\"\",drops,2.0\n";
        assert_eq!(to_csv(&summary), expected);
    }

    #[test]
    fn nodes_and_interfaces_have_objects_and_a_column_where_there_are_any() {
        let mut summary = example();
        summary.figures.truncate(2);
        summary.figures.push(figure(Scope::Interface("phone".into(), "lte".into()), "energy_linear_j", 2.5));
        summary.figures.push(figure(Scope::Node("phone".into()), "send_memory_peak_bytes", 9.0));
        let json = to_json(&summary).unwrap();
        let nested: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(nested["interfaces"]["phone"]["lte"]["energy_linear_j"], 2.5);
        assert_eq!(nested["nodes"]["phone"]["send_memory_peak_bytes"], 9.0);
        let expected = "scope,connection,subflow,link,node,metric,value\n\
                        run,,,,,jain_index,0.30000000000000004\n\
                        connection,meter,,,,goodput_bps,3000000.0\n\
                        interface,,,lte,phone,energy_linear_j,2.5\n\
                        node,,,,phone,send_memory_peak_bytes,9.0\n";
        assert_eq!(to_csv(&summary), expected);
    }

    #[test]
    fn a_figure_that_is_not_a_number_or_given_twice_is_refused() {
        let mut summary = example();
        summary.figures.push(figure(Scope::Run, "rtt_s", f64::NAN));
        assert!(to_json(&summary).unwrap_err().to_string().contains("rtt_s of Run is NaN"));
        let mut summary = example();
        summary.figures.push(figure(Scope::Run, "jain_index", 1.0));
        assert!(to_json(&summary).unwrap_err().to_string().contains("given twice"));
    }
}
