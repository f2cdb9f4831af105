//! What buffers hold over time, where it is known exactly.

#[allow(unreachable_pub)] // public for whichever test binary uses it
mod common;

use anabranch_record::model::{Measurements, Scope};
use common::{connection, figure, parse, run, subflow};

fn host(run: &Measurements, name: &str, metric: &str) -> f64 {
    figure(run, &Scope::Node(name.into()), metric)
}

/// Points of a series.
fn points<'a>(run: &'a Measurements, scope: &Scope, metric: &str) -> &'a [(u64, f64)] {
    let found = run.series.iter().find(|one| one.scope == *scope && one.metric == metric);
    &found.unwrap_or_else(|| panic!("no {metric} of {scope:?}")).points
}

/// Two hosts with two paths between them.
fn two_paths(top: &str, loss: &str, flows: &str) -> Measurements {
    let text = format!(
        r#"
name = "buffers"
duration = "20 s"
{top}
transport = {{ profile = "ns2" }}
node = [{{ names = ["S", "near", "far", "D"] }}]
link = [
    {{ name = "a", between = ["S", "near"], rate = "10 Mbit/s", delay = "5 ms", queue = "50 packets", loss = "{loss}" }},
    {{ name = "b", between = ["S", "far"], rate = "10 Mbit/s", delay = "100 ms", queue = "50 packets" }},
    {{ name = "c", between = ["near", "D"], rate = "1 Gbit/s", delay = "1 ms", queue = "unlimited" }},
    {{ name = "d", between = ["far", "D"], rate = "1 Gbit/s", delay = "1 ms", queue = "unlimited" }},
]
{flows}"#
    );
    run(&parse(&text), 1)
}

const TCP: &str = r#"
[[connection]]
name = "tcp"
from = "S"
to = "D"
congestion = "reno"
subflow = [{ via = ["near"] }]
"#;

const MPTCP: &str = r#"
[[connection]]
name = "mptcp"
from = "S"
to = "D"
protocol = "mptcp"
congestion = "reno"
scheduler = "roundrobin"
subflow = [{ name = "near", via = ["near"] }, { name = "far", via = ["far"] }]
"#;

const MEASURED: &str = "measure = { from = \"5 s\", memory = true }";

#[test]
fn a_sender_that_its_buffer_limits_holds_all_of_it_all_the_time() {
    let limited = format!("{TCP}transport.send_buffer = \"8 kB\"\n");
    let run = two_paths(MEASURED, "0 %", &limited);
    // Eight segments: every acknowledgement lets the next one out at once.
    assert_eq!(connection(&run, "tcp", "send_memory_mean_bytes"), 8000.0);
    assert_eq!(connection(&run, "tcp", "send_memory_peak_bytes"), 8000.0);
    assert_eq!(connection(&run, "tcp", "receive_memory_peak_bytes"), 0.0, "the application reads at once");
    assert_eq!(
        (host(&run, "S", "send_memory_peak_bytes"), host(&run, "D", "send_memory_peak_bytes")),
        (8000.0, 0.0)
    );
}

#[test]
fn a_tcp_receiver_holds_what_has_come_behind_a_gap() {
    let run = two_paths(MEASURED, "2 %", TCP);
    let held = connection(&run, "tcp", "receive_memory_peak_bytes");
    assert!(held > 0.0 && held % 1000.0 == 0.0, "whole segments: {held}");
    assert_eq!(subflow(&run, "tcp", "0", "out_of_order_peak_bytes"), held, "all of it at the subflow");
    assert_eq!(host(&run, "D", "receive_memory_peak_bytes"), held);
    assert_eq!(host(&run, "S", "receive_memory_peak_bytes"), 0.0);
    let figures = &run.summary.figures;
    let at_data_level = Scope::Connection("tcp".into());
    assert!(!figures.iter().any(|of| of.scope == at_data_level && of.metric == "out_of_order_peak_bytes"));
}

#[test]
fn two_paths_of_different_delay_fill_the_queue_at_the_data_level() {
    // So few packets that no queue overflows.
    let run = two_paths(MEASURED, "0 %", &(MPTCP.to_owned() + "transport.window_cap = \"40 packets\"\n"));
    let peak = connection(&run, "mptcp", "out_of_order_peak_bytes");
    let mean = connection(&run, "mptcp", "out_of_order_mean_bytes");
    assert!(0.0 < mean && mean < peak && peak <= connection(&run, "mptcp", "out_of_order_max_bytes"));
    // With nothing lost no subflow holds anything, so the receiver holds what the data level does.
    for path in ["near", "far"] {
        assert_eq!(subflow(&run, "mptcp", path, "out_of_order_peak_bytes"), 0.0);
    }
    assert_eq!(connection(&run, "mptcp", "receive_memory_mean_bytes"), mean);
    // What is held out of order is not acknowledged at the data level: the sender holds it, too.
    let scope = Scope::Connection("mptcp".into());
    let sent = points(&run, &scope, "send_memory_bytes");
    let received = points(&run, &scope, "receive_memory_bytes");
    assert_eq!((sent.len(), received.len()), (200, 200));
    assert!(sent.iter().zip(received).all(|(sent, received)| sent.1 >= received.1));
}

#[test]
fn a_host_holds_what_its_connections_hold_together() {
    let run = two_paths(MEASURED, "1 %", &(MPTCP.to_owned() + TCP));
    for metric in ["send_memory_mean_bytes", "receive_memory_mean_bytes"] {
        let both = connection(&run, "tcp", metric) + connection(&run, "mptcp", metric);
        let hosts = host(&run, "S", metric) + host(&run, "D", metric);
        assert!((both - hosts).abs() < 1e-6 * both, "{metric}: {both} {hosts}");
    }
    let scope = |name: &str| Scope::Node(name.into());
    assert_eq!(points(&run, &scope("D"), "receive_memory_bytes").len(), 200);
}

#[test]
fn memory_is_measured_only_where_the_scenario_asks_for_it_and_changes_nothing_else() {
    let with = two_paths(MEASURED, "1 %", MPTCP);
    let without = two_paths("measure = { from = \"5 s\" }", "1 %", MPTCP);
    let is_new = |scope: &Scope, metric: &str| {
        let gauged = metric.contains("memory")
            || (metric.contains("out_of_order") && metric != "out_of_order_max_bytes");
        gauged || matches!(scope, Scope::Node(_))
    };
    let figures = with.summary.figures.iter().filter(|of| !is_new(&of.scope, of.metric));
    assert!(figures.eq(without.summary.figures.iter()));
    assert!(with.series.iter().filter(|of| !is_new(&of.scope, of.metric)).eq(without.series.iter()));
}
