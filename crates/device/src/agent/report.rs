//! What the agent can be asked for: the last decisions of a connection, and its counters as OpenMetrics (version 1.0).

use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Write as _,
};

use anabranch_netlink::mptcp::Token;

/// Lines that are kept for a connection.
const KEPT: usize = 32;

/// Counters since the agent began, and what was said of the connections that are managed.
#[derive(Default)]
pub(super) struct Report {
    said: BTreeMap<Token, VecDeque<String>>,
    /// By action and reason.
    decisions: BTreeMap<(&'static str, &'static str), u64>,
    pub(super) refusals: u64,
    pub(super) looks: u64,
    pub(super) lost_events: u64,
}

/// Subflows of one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Subflows {
    pub(super) regular: u64,
    pub(super) backup: u64,
}

impl Report {
    /// Keeps a line about a connection.
    pub(super) fn keep(&mut self, token: Token, at_ms: u64, line: &str) {
        let said = self.said.entry(token).or_default();
        if said.len() == KEPT {
            said.pop_front();
        }
        said.push_back(format!("{}.{:03} {line}", at_ms / 1000, at_ms % 1000));
    }

    /// Counts a decision that was carried out.
    pub(super) fn count(&mut self, action: &'static str, reason: &'static str) {
        *self.decisions.entry((action, reason)).or_default() += 1;
    }

    /// Forgets a connection that is over.
    pub(super) fn forget(&mut self, token: Token) {
        self.said.remove(&token);
    }

    /// What was said of a connection last, oldest first, each line after the seconds since 1970; nothing if it is not managed.
    pub(super) fn why(&self, token: Token) -> Option<String> {
        let said = self.said.get(&token)?;
        Some(said.iter().fold(String::new(), |text, line| text + line + "\n"))
    }

    /// In the text format of OpenMetrics. `subflows` are by name of interface.
    pub(super) fn metrics(
        &self,
        managed: usize,
        left_alone: usize,
        subflows: &BTreeMap<&str, Subflows>,
    ) -> String {
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, samples: &[(String, u64)]| {
            writeln!(text, "# TYPE {name} {kind}\n# HELP {name} {help}").expect("a string takes text");
            let suffix = if kind == "counter" { "_total" } else { "" };
            for (labels, value) in samples {
                writeln!(text, "{name}{suffix}{labels} {value}").expect("a string takes text");
            }
        };
        let states = [("managed", managed), ("left-alone", left_alone)];
        let states = states.map(|(state, count)| (format!("{{state=\"{state}\"}}"), count as u64));
        family("anabranch_agent_connections", "gauge", "Connections of Multipath TCP.", &states);
        let by_dev = subflows.iter().flat_map(|(dev, of)| {
            let labels = |backup: bool| format!("{{dev=\"{}\",backup=\"{backup}\"}}", escaped(dev));
            [(labels(false), of.regular), (labels(true), of.backup)]
        });
        let by_dev: Vec<_> = by_dev.collect();
        family("anabranch_agent_subflows", "gauge", "Established subflows of managed connections.", &by_dev);
        let decisions = self.decisions.iter().map(|((action, reason), count)| {
            (format!("{{action=\"{action}\",reason=\"{reason}\"}}"), *count)
        });
        let decisions: Vec<_> = decisions.collect();
        family("anabranch_agent_decisions", "counter", "Decisions carried out.", &decisions);
        let single = |value| [(String::new(), value)];
        family(
            "anabranch_agent_refusals",
            "counter",
            "Decisions that the kernel refused.",
            &single(self.refusals),
        );
        family("anabranch_agent_looks", "counter", "Looks at all connections.", &single(self.looks));
        let help = "Gaps in the events of the kernel, after which everything was listed anew.";
        family("anabranch_agent_lost_events", "counter", help, &single(self.lost_events));
        text + "# EOF\n"
    }
}

/// A label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_of_a_connection_are_kept() {
        let mut report = Report::default();
        for at_ms in 0..40 {
            report.keep(Token(7), at_ms, "line");
        }
        let why = report.why(Token(7)).unwrap();
        assert_eq!((why.lines().count(), why.lines().next()), (KEPT, Some("0.008 line")));
        report.forget(Token(7));
        assert_eq!(report.why(Token(7)), None);
    }

    #[test]
    fn metrics_are_in_the_format_of_openmetrics() {
        let mut report = Report { looks: 5, ..Report::default() };
        report.count("open", "again");
        report.count("open", "again");
        let subflows = BTreeMap::from([("wl\"an", Subflows { regular: 1, backup: 0 })]);
        let metrics = report.metrics(1, 2, &subflows);
        let samples: Vec<&str> = metrics.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                "anabranch_agent_connections{state=\"managed\"} 1",
                "anabranch_agent_connections{state=\"left-alone\"} 2",
                "anabranch_agent_subflows{dev=\"wl\\\"an\",backup=\"false\"} 1",
                "anabranch_agent_subflows{dev=\"wl\\\"an\",backup=\"true\"} 0",
                "anabranch_agent_decisions_total{action=\"open\",reason=\"again\"} 2",
                "anabranch_agent_refusals_total 0",
                "anabranch_agent_looks_total 5",
                "anabranch_agent_lost_events_total 0",
            ]
        );
        assert!(metrics.ends_with("# EOF\n"));
    }
}
