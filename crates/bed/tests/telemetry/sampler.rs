//! Series and figures of invented readings: no kernel but in the last test, no clock.

use std::{collections::BTreeSet, net::SocketAddr, os::fd::AsFd as _};

use anabranch_bed::{
    plan::{ConnectionPlan, Plan},
    telemetry::{
        ConnectionReading, DatagramReading, EndMemory, LinkReading, Readings, Sample, Sampler, SubflowSample,
        mib, sockets,
    },
};
use anabranch_record::{
    metrics::{Engines, unregistered},
    model::{Measurements, Scope, Series, Summary},
};
use anabranch_scenario::model::{Protocol::Mptcp, Scenario};
use anabranch_sim::Control;

use crate::lab;

const SECOND: u64 = 1_000_000_000;

const SCENARIO: &str = r#"
name = "two-paths"
duration = "10 s"
measure = { from = "2 s", to = "8 s", interval = "1 s" }
node = [{ names = ["client", "left", "right", "server"] }]
link = [
    { name = "a", between = ["client", "left"], rate = "10 Mbit/s", delay = "10 ms", queue = "50 packets" },
    { name = "b", between = ["client", "right"], rate = "10 Mbit/s", delay = "10 ms", queue = "50 packets" },
    { name = "c", between = ["left", "server"], rate = "1 Gbit/s", delay = "1 us", queue = "unlimited" },
    { name = "d", between = ["right", "server"], rate = "1 Gbit/s", delay = "1 us", queue = "unlimited" },
]
[[connection]]
name = "up"
from = "client"
to = "server"
protocol = "mptcp"
congestion = "reno"
traffic = { kind = "file", size = "1 MB" }
subflow = [{ name = "first", via = ["left"] }, { name = "second", via = ["right"] }]
[[datagram]]
name = "noise"
from = "client"
to = "server"
rate = "1 Mbit/s"
packet = "500 B"
via = ["left"]
"#;

fn scenario() -> Scenario {
    anabranch_scenario::load(SCENARIO, "two-paths.toml", &[]).expect("a valid scenario").scenario
}

fn plan() -> Plan {
    let connection = ConnectionPlan {
        client: 0,
        server: 1,
        client_addresses: vec!["10.0.0.1".parse().expect("one"), "10.0.1.1".parse().expect("two")],
        server_address: "10.0.9.1".parse().expect("three"),
        port: 5000,
        paths: vec![0, 2],
        joins: Vec::new(),
        open_at: 0,
        congestion: "reno".into(),
        pacing: false,
    };
    Plan {
        events: Vec::new(),
        agents: Vec::new(),
        seed: 1,
        hosts: Vec::new(),
        paths: Vec::new(),
        connections: vec![connection],
        datagrams: Vec::new(),
        algorithms: Vec::new(),
        notes: Vec::new(),
    }
}

/// A subflow from nowhere that has done nothing.
fn blank() -> SubflowSample {
    let nowhere = "0.0.0.0:0".parse().expect("an address");
    SubflowSample::decode(&[0; 248], None, nowhere, nowhere).expect("long enough")
}

fn subflow(id: u32, local: &str, bytes_acked: u64, packets: u32) -> SubflowSample {
    SubflowSample {
        id: Some(id),
        local: local.parse::<SocketAddr>().expect("an address"),
        remote: "10.0.9.1:5000".parse().expect("an address"),
        state: 1,
        // The SYN counts as one.
        bytes_acked: bytes_acked + 1,
        data_segs_out: packets,
        cwnd_packets: 10,
        ssthresh_packets: None,
        srtt_us: 20_000,
        min_rtt_us: Some(20_500 - id),
        ..blank()
    }
}

/// Readings at a moment at which nothing has happened except with these subflows.
fn readings(subflows: Vec<SubflowSample>, delivered_bytes: u64) -> Readings {
    let sample =
        Sample { is_mptcp: true, token: Some(1), bytes_retrans: Some(0), subflows, ..Sample::default() };
    Readings {
        connections: vec![ConnectionReading {
            sender: Some(sample),
            delivered_bytes,
            opened_at: Some(0),
            ..ConnectionReading::default()
        }],
        datagrams: vec![DatagramReading::default()],
        links: vec![LinkReading::default(); 8],
        lost_on_paths: vec![0; 4],
    }
}

fn up(subflow: &str) -> Scope {
    Scope::Subflow("up".into(), subflow.into())
}

fn points(series: &[Series], scope: &Scope, metric: &str) -> Vec<(u64, f64)> {
    let mut found = series.iter().filter(|one| one.scope == *scope && one.metric == metric);
    let points = found.next().unwrap_or_else(|| panic!("no {metric} of {scope:?}")).points.clone();
    assert!(found.next().is_none(), "{metric} of {scope:?} is there twice");
    points
}

fn figure(summary: &Summary, scope: &Scope, metric: &str) -> Option<f64> {
    let mut found = summary.figures.iter().filter(|one| one.scope == *scope && one.metric == metric);
    let value = found.next().map(|figure| figure.value);
    assert!(found.next().is_none(), "{metric} of {scope:?} is there twice");
    value
}

/// Takes a reading whenever one is due, of what `at` gives for whole seconds.
fn run(mut at: impl FnMut(u64) -> Readings) -> Sampler {
    let mut sampler = Sampler::new(&scenario(), &plan());
    while let Some(due) = sampler.due() {
        sampler.take(due, &at(due / SECOND));
    }
    sampler
}

#[test]
fn names_are_the_simulator_s_but_for_what_no_kernel_tells() {
    let simulated =
        anabranch_sim::run(&scenario(), 1, &Control::default()).expect("nobody interrupts the run");
    let mut completed = readings(Vec::new(), 1_000_000);
    completed.connections[0].completed_at = Some(5 * SECOND);
    let sampler = run(|second| {
        let one = |id, local| subflow(id, local, 100_000 * second, 100);
        match second {
            0..5 => readings(vec![one(1, "10.0.0.1:1"), one(2, "10.0.1.1:2")], 200_000 * second),
            _ => completed.clone(),
        }
    });
    let summary = sampler.summary().expect("the window has passed");
    let names = |summary: &Summary| -> BTreeSet<(Scope, &'static str)> {
        summary.figures.iter().map(|figure| (figure.scope.clone(), figure.metric)).collect()
    };
    let missing: BTreeSet<_> = names(&simulated.summary).difference(&names(&summary)).cloned().collect();
    let connection = Scope::Connection("up".into());
    let expected = [
        (connection.clone(), "duplicates"),
        (connection.clone(), "out_of_order_max_bytes"),
        (connection, "reinjections"),
        (up("first"), "fast_retransmits"),
        (up("second"), "fast_retransmits"),
    ];
    assert_eq!(missing, expected.into());
    let of_both = |all: &[Series]| -> BTreeSet<(Scope, &'static str)> {
        all.iter().map(|series| (series.scope.clone(), series.metric)).collect()
    };
    let series = sampler.series();
    assert!(of_both(&series).is_superset(&of_both(&simulated.series)), "{:?}", of_both(&simulated.series));
    let measured = Measurements { summary, series, ..Measurements::default() };
    assert_eq!(unregistered(Engines::Kernel, &measured), [""; 0], "the dictionary knows every name");
}

#[test]
fn a_window_from_the_start_on_counts_what_came_before_the_first_reading() {
    let overrides = [("measure.from".to_owned(), "0 s".to_owned())];
    let loaded = anabranch_scenario::load(SCENARIO, "two-paths.toml", &overrides).expect("a valid scenario");
    let mut sampler = Sampler::new(&loaded.scenario, &plan());
    while let Some(due) = sampler.due() {
        let mut readings = readings(Vec::new(), 300 + due / SECOND);
        readings.datagrams[0] = DatagramReading { sent: 3, received: 2, received_bytes: 1000 };
        // The first reading comes late.
        sampler.take(due + 5_000_000, &readings);
    }
    let summary = sampler.summary().expect("the window has passed");
    let of = |flow: &str, metric| figure(&summary, &Scope::Connection(flow.into()), metric);
    assert_eq!(of("noise", "packets_sent"), Some(3.0));
    assert_eq!(of("up", "bytes_delivered"), Some(308.0));
}

#[test]
fn window_borders_are_the_readings_at_its_ends() {
    // Squares tell one second from another.
    let sampler = run(|second| {
        let mut readings = readings(
            vec![subflow(1, "10.0.0.1:1", 1000 * second * second, 7 * second as u32)],
            500 * second * second,
        );
        readings.lost_on_paths = vec![second, 1000, 2 * second, 1000];
        readings.links[1] = LinkReading {
            queued: second as u32,
            drops: second,
            losses: 0,
            marks: 0,
            packets: 10 * second,
            bytes: 125_000 * second,
            air: None,
        };
        readings.datagrams[0] =
            DatagramReading { sent: 3 * second, received: 2 * second, received_bytes: 1000 * second };
        readings
    });
    let summary = sampler.summary().expect("the window has passed");
    let of = |scope: &Scope, metric| figure(&summary, scope, metric);
    let connection = Scope::Connection("up".into());
    // From 2 s to 8 s.
    assert_eq!(of(&connection, "bytes_delivered"), Some(500.0 * (64.0 - 4.0)));
    assert_eq!(of(&connection, "goodput_bps"), Some(500.0 * 60.0 * 8.0 / 6.0));
    assert_eq!(of(&connection, "completion_s"), None);
    assert_eq!(of(&connection, "packets_sent"), Some(7.0 * 6.0));
    assert_eq!(of(&connection, "drops"), Some(6.0 + 12.0), "of both paths forth");
    let first = up("first");
    assert_eq!(of(&first, "throughput_bps"), Some(1000.0 * 60.0 * 8.0 / 6.0));
    assert_eq!(of(&first, "loss_rate"), Some(6.0 / 42.0));
    assert_eq!(of(&first, "mean_cwnd_packets"), Some(10.0));
    assert_eq!(of(&first, "mean_srtt_s"), Some(0.02));
    assert_eq!(of(&first, "min_rtt_s"), Some(0.020_499));
    let link = Scope::Link("a/reverse".into());
    assert_eq!(of(&link, "packets"), Some(60.0));
    assert_eq!(of(&link, "utilization"), Some(0.1));
    assert_eq!(of(&link, "mean_queue_packets"), Some(5.0), "the mean of 2 to 8");
    let datagrams = Scope::Connection("noise".into());
    assert_eq!(of(&datagrams, "packets_received"), Some(12.0));
    assert_eq!(of(&Scope::Run, "packet_hops"), Some(100.0), "over the whole run, as the simulator counts");
    let series = sampler.series();
    let delivered = points(&series, &connection, "goodput_bps");
    assert_eq!(delivered.len(), 10);
    assert_eq!(delivered[2], (3 * SECOND, 500.0 * 5.0 * 8.0));
    assert_eq!(points(&series, &link, "queue_packets")[9], (10 * SECOND, 10.0));
}

#[test]
fn a_late_reading_counts_with_its_own_time() {
    let mut sampler = Sampler::new(&scenario(), &plan());
    let mut late = |at: u64| sampler.take(at, &readings(vec![subflow(1, "10.0.0.1:1", at, 1)], at));
    late(SECOND);
    late(2 * SECOND + SECOND / 2);
    // Two seconds have no reading; the next is for the eighth, at which the window ends.
    late(3 * SECOND);
    late(6 * SECOND);
    late(8 * SECOND + SECOND / 4);
    assert_eq!(sampler.missed(), 3);
    let summary = sampler.summary().expect("the window has passed");
    let rate = 8.0 * 1e9;
    assert_eq!(figure(&summary, &Scope::Connection("up".into()), "goodput_bps"), Some(rate));
    assert_eq!(figure(&summary, &up("first"), "throughput_bps"), Some(rate));
    let series = sampler.series();
    for metric in ["throughput_bps", "cwnd_packets"] {
        let times: Vec<_> = points(&series, &up("first"), metric).iter().map(|point| point.0).collect();
        assert_eq!(times, [4, 10, 12, 24, 33].map(|quarters| quarters * SECOND / 4));
    }
    assert!(points(&series, &up("first"), "throughput_bps").iter().all(|point| point.1 == rate));
}

#[test]
fn a_subflow_that_is_not_open_has_no_points() {
    let sampler = run(|second| {
        let mut subflows = vec![subflow(1, "10.0.0.1:1", 0, 0)];
        if second >= 4 {
            subflows.push(subflow(2, "10.0.1.1:2", 1000 * (second - 4), 5));
        }
        readings(subflows, 0)
    });
    assert_eq!(sampler.unopened().count(), 0);
    assert_eq!(sampler.fallen_back().count(), 0);
    let series = sampler.series();
    for metric in ["cwnd_packets", "throughput_bps", "retransmits", "drops", "rto_s"] {
        assert_eq!(points(&series, &up("first"), metric).len(), 10, "{metric}");
        assert_eq!(points(&series, &up("second"), metric)[0].0, 4 * SECOND, "{metric}");
    }
    assert!(points(&series, &up("first"), "ssthresh_packets").is_empty(), "it has no bound");
    let sampler = run(|_| readings(vec![subflow(1, "10.0.0.1:1", 0, 0)], 0));
    assert_eq!(sampler.unopened().collect::<Vec<_>>(), [("up", "second")]);
    let summary = sampler.summary().expect("the window has passed");
    assert_eq!(figure(&summary, &up("second"), "packets_sent"), Some(0.0));
    assert_eq!(figure(&summary, &up("second"), "mean_cwnd_packets"), None);
}

#[test]
fn a_subflow_opened_again_goes_on_counting() {
    let closed = SubflowSample { state: 7, ..blank() };
    // Identifiers as the kernel gives them, and none, as before Linux 6.5.
    for id in [Some(3), None] {
        let sampler = run(|second| {
            let old = |bytes, packets| SubflowSample {
                id: id.map(|_| 2),
                ..subflow(2, "10.0.1.1:2000", bytes, packets)
            };
            let new = |bytes, packets| SubflowSample { id, ..subflow(3, "10.0.1.1:3000", bytes, packets) };
            let second_path = match second {
                0..=3 => vec![old(1000 * second, second as u32)],
                // For a while both are there, then the old one is there without its figures, then none.
                4 => vec![old(3500, 4), new(0, 0)],
                5 => vec![SubflowSample { local: "10.0.1.1:2000".parse().expect("one"), ..closed.clone() }],
                6 => vec![],
                7 => vec![new(100, 1)],
                // Counters that begin again without a new port are a new opening too.
                _ => vec![new(10, 1)],
            };
            readings(second_path, 0)
        });
        let summary = sampler.summary().expect("the window has passed");
        // At 2 s 2000 bytes and 2 packets; at 8 s 3500 + 100 + 10 and 4 + 1 + 1.
        assert_eq!(figure(&summary, &up("second"), "packets_sent"), Some(4.0));
        assert_eq!(figure(&summary, &up("second"), "throughput_bps"), Some(1610.0 * 8.0 / 6.0));
        let series = sampler.series();
        let rates: Vec<f64> =
            points(&series, &up("second"), "throughput_bps").iter().map(|p| p.1 / 8.0).collect();
        assert_eq!(rates, [1000.0, 1000.0, 1000.0, 500.0, 0.0, 0.0, 100.0, 10.0, 0.0, 0.0]);
        let cwnd_at: Vec<_> =
            points(&series, &up("second"), "cwnd_packets").iter().map(|p| p.0 / SECOND).collect();
        assert_eq!(cwnd_at, [1, 2, 3, 4, 7, 8, 9, 10], "while it was open");
    }
}

#[test]
fn a_socket_that_has_been_closed_keeps_its_counts() {
    let sampler = run(|second| {
        let mut readings = readings(vec![subflow(1, "10.0.0.1:1", 1000 * second, second as u32)], 0);
        if second > 5 {
            readings.connections[0].sender = None;
        }
        readings
    });
    let summary = sampler.summary().expect("the window has passed");
    assert_eq!(figure(&summary, &up("first"), "packets_sent"), Some(3.0), "from 2 s to 5 s");
    assert_eq!(figure(&summary, &Scope::Connection("up".into()), "reinjected_bytes"), Some(0.0));
}

#[test]
fn a_connection_that_is_tcp_after_all_is_named() {
    let sampler = run(|second| {
        let mut readings = readings(vec![subflow(1, "10.0.0.1:1", 0, 0)], 0);
        // Later readings do not undo it.
        readings.connections[0].sender.as_mut().expect("it is open").is_mptcp = second != 3;
        readings
    });
    assert_eq!(sampler.fallen_back().collect::<Vec<_>>(), ["up"]);
}

#[test]
fn figures_need_a_whole_window() {
    let mut sampler = Sampler::new(&scenario(), &plan());
    for second in 1..8 {
        sampler.take(second * SECOND, &readings(vec![], 0));
        assert!(sampler.summary().is_none(), "at {second} s");
    }
    sampler.take(8 * SECOND, &readings(vec![], 0));
    assert!(sampler.summary().is_some());
}

#[test]
fn memory_is_a_series_of_the_connection() {
    let sampler = run(|second| {
        let mut readings = readings(vec![], 0);
        let receive_bytes = 1000 * second;
        readings.connections[0].memory[1] = Some(EndMemory { send_bytes: 0, receive_bytes });
        readings
    });
    let series = sampler.series();
    let connection = Scope::Connection("up".into());
    assert_eq!(points(&series, &connection, "receive_memory_bytes")[3], (4 * SECOND, 4000.0));
    assert_eq!(points(&series, &connection, "send_memory_bytes")[3], (4 * SECOND, 0.0));
}

#[test]
fn means_and_peaks_of_memory_are_of_the_window_and_of_both_ends_hosts() {
    let text = SCENARIO.replace(r#"interval = "1 s""#, r#"interval = "1 s", memory = true"#);
    let scenario = anabranch_scenario::load(&text, "two-paths.toml", &[]).expect("a valid scenario").scenario;
    let mut sampler = Sampler::new(&scenario, &plan());
    while let Some(due) = sampler.due() {
        let mut readings = readings(vec![], 0);
        let held = due / SECOND * 100;
        let end = |send_bytes, receive_bytes| Some(EndMemory { send_bytes, receive_bytes });
        readings.connections[0].memory = [end(3 * held, 0), end(0, held)];
        sampler.take(due, &readings);
    }
    let summary = sampler.summary().expect("the window has passed");
    let of = |scope: &Scope, metric| figure(&summary, scope, metric);
    // The window has the readings at 2 s to 8 s.
    let connection = Scope::Connection("up".into());
    assert_eq!(of(&connection, "send_memory_peak_bytes"), Some(2400.0));
    assert_eq!(of(&connection, "receive_memory_mean_bytes"), Some(500.0));
    let [client, server] = ["client", "server"].map(|name| Scope::Node(name.into()));
    assert_eq!(of(&client, "send_memory_mean_bytes"), Some(1500.0));
    assert_eq!(
        (of(&client, "receive_memory_peak_bytes"), of(&server, "send_memory_peak_bytes")),
        (Some(0.0), Some(0.0))
    );
    assert_eq!(of(&server, "receive_memory_peak_bytes"), Some(800.0));
    let series = sampler.series();
    assert_eq!(points(&series, &server, "receive_memory_bytes")[9], (10 * SECOND, 1000.0));
}

#[test]
fn a_real_transfer_has_the_figures_of_what_was_sent() {
    lab::in_namespace("a_real_transfer_has_the_figures_of_what_was_sent", || {
        const BYTES: u64 = 2_000_000;
        lab::add_endpoint();
        let mut pair = lab::connect(Mptcp, Mptcp);
        pair.transfer(1);
        lab::sample_until(&pair.client, Mptcp, |sample| {
            sample.subflows.len() == 2 && sample.subflows.iter().all(|subflow| subflow.bytes_acked > 0)
        });
        let read = |socket: &std::net::TcpStream, delivered| {
            let sample = sockets::sample(socket.as_fd(), Mptcp).expect("an open socket can be read");
            let mut readings = readings(Vec::new(), delivered);
            readings.connections[0].sender = Some(sample);
            readings
        };
        let mut sampler = Sampler::new(&scenario(), &plan());
        sampler.take(2 * SECOND, &read(&pair.client, 1));
        pair.transfer(BYTES as usize);
        let acked = lab::sample_until(&pair.client, Mptcp, |sample| {
            sample.bytes_acked == Some(BYTES + 1)
                && sample.subflows.iter().all(|subflow| subflow.unacked_packets == 0)
        });
        sampler.take(8 * SECOND, &read(&pair.client, BYTES + 1));
        assert_eq!((sampler.unopened().count(), sampler.fallen_back().count()), (0, 0));
        let summary = sampler.summary().expect("the window has passed");
        let of = |scope: &Scope, metric| figure(&summary, scope, metric).expect("it has a value");
        let connection = Scope::Connection("up".into());
        assert_eq!(of(&connection, "bytes_delivered"), BYTES as f64);
        let reinjected = of(&connection, "reinjected_bytes");
        assert_eq!(Some(reinjected), acked.bytes_retrans.map(|bytes| bytes as f64));
        let carried: f64 =
            ["first", "second"].map(|name| of(&up(name), "throughput_bps") * 6.0 / 8.0).iter().sum();
        // A probe of a closed window sends a byte a second time and counts apart.
        let probes =
            mib::Counters::read().expect("the kernel has /proc").get("MPTcpExtWinProbe").unwrap_or(0);
        let (least, most) = (BYTES as f64, BYTES as f64 + reinjected + probes as f64);
        assert!((least..=most).contains(&carried.round()), "{carried} bytes of {least} to {most}");
        assert!(of(&connection, "packets_sent") >= BYTES as f64 / 65536.0);
    });
}
