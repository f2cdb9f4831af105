//! Applications and workloads beside closed forms. Times are compared to within 10 ns: each transmission time is rounded
//! down to a nanosecond.

#[allow(unreachable_pub)] // public for whichever test binary uses it
mod common;

use anabranch_record::model::{Measurements, Scope};
use anabranch_scenario::{model::Traffic, workload};
use anabranch_sim::{Control, Records};
use common::{connection, parse, run, subflow};

/// One way of the path, in seconds; its rate is 10 Mbit/s.
const DELAY_S: f64 = 0.02;
/// Headers of TCP over IPv4 with timestamps, and a packet without payload, in the profile `rfc`.
const HEADER: f64 = 52.0;

/// The first message leaves together with the third packet of the handshake, which goes before it.
const BEHIND_HANDSHAKE_S: f64 = HEADER * 8.0 / 1e7;

/// How long so many bytes take on the wire.
fn transmission_s(bytes: f64) -> f64 {
    bytes * 8.0 / 1e7
}

/// One way for a packet with so much payload on an idle path.
fn one_way_s(payload: f64) -> f64 {
    DELAY_S + transmission_s(HEADER + payload)
}

fn text(duration: &str, flows: &str) -> String {
    format!(
        r#"
        name = "applications"
        duration = "{duration}"
        measure.interval = "0 s"
        transport.profile = "rfc"
        node = [{{ names = ["C", "A", "B", "S"] }}]
        link = [
          {{ name = "wire", between = ["C", "S"], rate = "10 Mbit/s", delay = "20 ms", queue = "unlimited" }},
          {{ between = ["C", "A"], rate = "4 Mbit/s", delay = "5 ms", queue = "50 packets" }},
          {{ between = ["A", "S"], rate = "100 Mbit/s", delay = "1 ms", queue = "unlimited" }},
          {{ between = ["C", "B"], rate = "3 Mbit/s", delay = "15 ms", queue = "50 packets" }},
          {{ between = ["B", "S"], rate = "100 Mbit/s", delay = "1 ms", queue = "unlimited" }},
        ]
        {flows}"#
    )
}

/// A TCP connection from C to S over the wire.
fn flow(traffic: &str) -> String {
    format!(
        r#"
        [[connection]]
        name = "flow"
        from = "C"
        to = "S"
        congestion = "reno"
        traffic = {{ {traffic} }}
        "#
    )
}

fn measured(duration: &str, flows: &str, seed: u64) -> Measurements {
    run(&parse(&text(duration, flows)), seed)
}

fn of_flow(duration: &str, traffic: &str) -> impl Fn(&str) -> f64 + use<> {
    let run = measured(duration, &flow(traffic), 1);
    move |metric| connection(&run, "flow", metric)
}

#[track_caller]
fn same_time(measured_s: f64, expected_s: f64) {
    assert!((measured_s - expected_s).abs() < 1e-8, "{measured_s} s, expected {expected_s} s");
}

#[track_caller]
fn within(value: f64, expected: f64, tolerance: f64) {
    assert!((value / expected - 1.0).abs() <= tolerance, "{value}, expected {expected}");
}

#[test]
fn a_small_file_takes_a_handshake_and_one_way_and_downward_another_one() {
    let up = of_flow("1 s", r#"kind = "file", size = "1000 B""#);
    // The third packet of the handshake leaves before the data.
    let handshake = 2.0 * one_way_s(0.0);
    same_time(up("completion_s"), handshake + transmission_s(HEADER) + one_way_s(1000.0));
    let down = of_flow("1 s", r#"kind = "file", size = "1000 B", direction = "download""#);
    same_time(down("completion_s"), handshake + one_way_s(0.0) + one_way_s(1000.0));
    assert_eq!(down("bytes_delivered"), 1000.0);
    assert_eq!(down("packets_sent"), 1.0, "figures are of the side that sends");
}

#[test]
fn a_file_each_way_is_complete_when_both_have_arrived() {
    let both = of_flow("10 s", r#"kind = "file", size = "1 MB", direction = "both""#);
    assert_eq!(both("bytes_delivered"), 2e6);
    assert_eq!(both("goodput_up_bps"), both("goodput_down_bps"));
    assert_eq!(both("goodput_bps"), both("goodput_up_bps") + both("goodput_down_bps"));
    let down = of_flow("10 s", r#"kind = "file", size = "1 MB", direction = "download""#);
    within(both("completion_s"), down("completion_s"), 0.1);
}

#[test]
fn equal_windows_both_ways_travel_as_blocks() {
    // The window of each direction queues as one block, and what acknowledges it rides in the block of the other
    // direction (Zhang, Shenker, Clark 1991, the effects of two-way traffic): a cycle takes the block and one way. The
    // tolerance covers the start.
    let packet_s = transmission_s(HEADER + 1448.0);
    for (window, recovery) in [(60, "newreno"), (100, "sack"), (200, "rack")] {
        let transport =
            format!("transport = {{ window_cap = \"{window} packets\", recovery = \"{recovery}\" }}\n");
        let run = measured("20 s", &(flow(r#"kind = "ftp", direction = "both""#) + &transport), 1);
        let block_s = f64::from(window) * packet_s;
        for metric in ["goodput_up_bps", "goodput_down_bps"] {
            let expected = f64::from(window) * 1448.0 * 8.0 / (block_s + DELAY_S);
            within(connection(&run, "flow", metric), expected, 0.02);
        }
        assert_eq!(connection(&run, "flow", "retransmits"), 0.0, "no loss, so nothing is sent again");
    }
}

#[test]
fn a_download_over_two_paths_opens_the_second_and_uses_both() {
    for join in ["immediately", "established"] {
        let flows = format!(
            r#"
            [[connection]]
            name = "flow"
            from = "C"
            to = "S"
            protocol = "mptcp"
            congestion = "reno"
            traffic = {{ kind = "ftp", direction = "download" }}
            transport.join = "{join}"
            subflow = [{{ name = "a", via = ["A"] }}, {{ name = "b", via = ["B"] }}]
            "#
        );
        let run = measured("20 s", &flows, 1);
        within(connection(&run, "flow", "goodput_bps"), 7e6 * 1428.0 / 1500.0, 0.1);
        within(subflow(&run, "flow", "a", "throughput_bps"), 4e6 * 1428.0 / 1500.0, 0.1);
    }
}

#[test]
fn an_acceptor_that_is_to_send_first_repeats_its_answer_when_the_third_packet_is_lost() {
    let lost = r#"
        [[change]]
        at = "30 ms"
        link = "wire"
        direction = "forward"
        loss = 1
        [[change]]
        at = "60 ms"
        link = "wire"
        direction = "forward"
        loss = 0"#;
    for protocol in ["tcp", "mptcp"] {
        let traffic = flow(r#"kind = "file", size = "1000 B", direction = "download""#);
        let traffic = traffic + &format!("protocol = \"{protocol}\"\n") + lost;
        let run = measured("3 s", &traffic, 1);
        // The answer leaves after one way, and again after the initial timeout of 1 s; then a round trip and one way.
        let completion = connection(&run, "flow", "completion_s");
        assert!((1.08..1.09).contains(&completion), "{protocol}: {completion}");
    }
}

#[test]
fn an_answer_takes_a_round_trip_and_the_two_transmissions() {
    let flow = of_flow("10 s", r#"kind = "telemetry", period = "100 ms", size = "200 B", ack = "4 B""#);
    let expected = one_way_s(200.0) + one_way_s(4.0);
    for metric in ["latency_p50_s", "latency_p95_s", "latency_p99_s"] {
        same_time(flow(metric), expected);
    }
    same_time(flow("latency_max_s"), expected + BEHIND_HANDSHAKE_S);
    // From the end of the handshake on, one each period; the last one's answer is still under way.
    assert_eq!(flow("messages"), 99.0 + f64::from(0.04 + 9.9 + expected < 10.0));
    assert_eq!(flow("goodput_up_bps"), 100.0 * 200.0 * 8.0 / 10.0);
}

#[test]
fn telemetry_ends_with_its_count() {
    let flow = of_flow(
        "10 s",
        r#"kind = "telemetry", period = "10 ms", jitter = "10 ms", size = "1 kB", count = 37"#,
    );
    assert_eq!((flow("messages"), flow("bytes_delivered")), (37.0, 37.0 * 1004.0));
}

#[test]
fn an_exchange_of_single_segments_takes_a_round_trip_and_the_two_transmissions() {
    let flow = of_flow("10 s", r#"kind = "request", response = "1 kB", think = "500 ms", count = 7"#);
    let expected = one_way_s(200.0) + one_way_s(1000.0);
    same_time(flow("latency_p50_s"), expected);
    same_time(flow("latency_max_s"), expected + BEHIND_HANDSHAKE_S);
    same_time(flow("latency_mean_s"), expected + BEHIND_HANDSHAKE_S / 7.0);
    assert_eq!(flow("messages"), 7.0);
}

#[test]
fn an_answer_of_an_initial_window_takes_as_long_as_its_segments() {
    let flow = of_flow("10 s", r#"kind = "request", response = "14480 B", count = 1"#);
    let segments = DELAY_S + 10.0 * transmission_s(HEADER + 1448.0);
    same_time(flow("latency_max_s"), BEHIND_HANDSHAKE_S + one_way_s(200.0) + segments);
}

#[test]
fn rfc_5681_4_1_a_window_is_the_initial_one_again_after_a_silence_of_a_timeout() {
    let latencies = |think: &str| {
        let response = r#"kind = "request", response = "60 kB", count = 5, think = "#;
        let flow = of_flow("60 s", &format!("{response}\"{think}\""));
        (flow("latency_p50_s"), flow("latency_max_s"))
    };
    let (median, first) = latencies("5 s");
    same_time(median + BEHIND_HANDSHAKE_S, first);
    let (median, first) = latencies("100 ms");
    assert!(median < first - 2.0 * DELAY_S, "a round trip less: {median} s after {first} s");
}

#[test]
fn a_constant_source_delivers_its_rate() {
    for direction in ["upload", "download"] {
        let traffic =
            format!(r#"kind = "cbr", rate = "2 Mbit/s", size = "5000 B", direction = "{direction}""#);
        let run = measured("20 s", &flow(&traffic), 1);
        let goodput = connection(&run, "flow", "goodput_bps");
        // One write is 20 ms; the handshake and the way take 62 ms.
        assert!((1_990_000.0..=2e6).contains(&goodput), "{direction}: {goodput}");
    }
}

#[test]
fn bursts_deliver_rate_times_on_over_on_plus_off_within_three_standard_errors() {
    // In 1000 s the standard error of an exponential source's share, sqrt(2 on^2 off^2 / ((on + off)^3 1000 s)), is
    // 1.1 % of the time, or 2.2 % of the rate.
    let run = measured(
        "1000 s",
        &flow(r#"kind = "onoff", rate = "2 Mbit/s", size = "1 kB", mean_on = "500 ms", mean_off = "500 ms""#),
        1,
    );
    within(connection(&run, "flow", "goodput_bps"), 1e6, 0.067);
}

#[test]
fn datagrams_keep_the_mean_rate_of_their_pattern() {
    let datagrams = |pattern: &str, name: &str| {
        format!(
            "[[datagram]]\nname = \"{name}\"\nfrom = \"C\"\nto = \"S\"\nrate = \"1 Mbit/s\"\npacket = \"500 B\"\n\
             pattern = \"{pattern}\"\n"
        )
    };
    let bursts = "mean_on = \"200 ms\"\nmean_off = \"300 ms\"\n";
    let flows = datagrams("cbr", "cbr")
        + &datagrams("poisson", "poisson")
        + &datagrams("exponential", "exponential")
        + bursts
        + &datagrams("pareto", "pareto")
        + bursts
        + "shape = 1.9\n";
    let run = measured("500 s", &flows, 1);
    let rate = |name| connection(&run, name, "throughput_bps");
    within(rate("cbr"), 1e6, 1e-3);
    // 125,000 packets: 0.3 % is one standard error.
    within(rate("poisson"), 1e6, 0.01);
    // 2.7 % is one standard error, as above; the variance of these Pareto bursts is infinite.
    within(rate("exponential"), 4e5, 0.081);
    within(rate("pareto"), 4e5, 0.15);
}

#[test]
fn a_workload_on_an_idle_path_completes_each_flow_in_the_closed_form() {
    let traffic = r#"kind = "flows", interval = "500 ms", size = "1000 B", stop = "99 s""#;
    let scenario = parse(&text("100 s", &flow(traffic)));
    let Traffic::Flows(flows) = scenario.connections[0].traffic else { panic!("it is a workload") };
    let streams = anabranch_link::Streams::new(3);
    let members = workload::members(&flows, "flow", scenario.duration, streams);
    let measured = run(&scenario, 3);
    let figure = |metric| connection(&measured, "flow", metric);
    assert_eq!(figure("flows_started"), members.len() as f64);
    assert_eq!(figure("flows_completed"), members.len() as f64);
    assert_eq!(figure("bytes_delivered"), 1000.0 * members.len() as f64);
    // A flow alone; few of the 200 meet another one within the 2 ms that its packets take.
    let alone = 2.0 * one_way_s(0.0) + transmission_s(HEADER) + one_way_s(1000.0);
    same_time(figure("completion_p50_s"), alone);
    assert!(figure("completion_max_s") < alone + 0.002);
    let scopes = measured.summary.figures.iter().map(|figure| &figure.scope);
    let of_members = scopes.filter(|scope| matches!(scope, Scope::Connection(name) if name.contains('/')));
    assert_eq!(of_members.count(), 0, "members are measured together");
}

#[test]
fn flows_that_begin_together_share_the_wire() {
    let traffic = r#"kind = "flows", arrivals = "synchronised", count = 50, size = "100 kB""#;
    let flow = of_flow("60 s", traffic);
    assert_eq!((flow("flows_started"), flow("flows_completed")), (50.0, 50.0));
    // 5 MB on 10 Mbit/s; slow start and the handshakes leave it idle for less than a tenth.
    within(flow("completion_max_s"), 5e6 * 8.0 / 1e7 * 1500.0 / 1448.0, 0.1);
}

#[test]
fn the_seed_decides_what_random_applications_do() {
    let flows = flow(
        r#"kind = "flows", interval = "100 ms", size = { distribution = "pareto", mean = "20 kB", shape = 1.3 }"#,
    ) + "[[connection]]\nname = \"web\"\nfrom = \"C\"\nto = \"S\"\ncongestion = \"cubic\"\n\
           traffic = { kind = \"request\", response = { distribution = \"pareto\", min = \"2 kB\", shape = 1.2, \
           max = \"1 MB\" }, think = { distribution = \"exponential\", mean = \"200 ms\" } }\n\
           [[datagram]]\nname = \"noise\"\nfrom = \"S\"\nto = \"C\"\nrate = \"1 Mbit/s\"\npacket = \"200 B\"\n\
           pattern = \"poisson\"\n";
    let of_seed = |seed| measured("20 s", &flows, seed);
    assert_eq!(of_seed(1), of_seed(1));
    let figures = |seed| {
        let run = of_seed(seed);
        [("flow", "flows_started"), ("web", "messages"), ("noise", "packets_sent")]
            .map(|(name, metric)| connection(&run, name, metric))
    };
    assert!(figures(1).iter().zip(figures(2)).all(|(one, two)| *one > 10.0 && *one != two));
}

#[test]
fn cross_traffic_has_any_congestion_control() {
    /// Packets of all windows together, however many algorithms there are.
    const WINDOWS: usize = 320;
    let names: Vec<&str> = anabranch_cc::algorithms().iter().map(|algorithm| algorithm.name()).collect();
    let cap = WINDOWS / names.len();
    let flows: String = names
        .iter()
        .map(|name| {
            format!(
                "[[connection]]\nname = \"{name}\"\nfrom = \"C\"\nto = \"S\"\ncongestion = \"{name}\"\n\
                 transport.window_cap = \"{cap} packets\"\n"
            )
        })
        .collect();
    let cross =
        "[[datagram]]\nname = \"cbr\"\nfrom = \"C\"\nto = \"S\"\nrate = \"1 Mbit/s\"\npacket = \"500 B\"\n";
    let run = measured("20 s", &(flows + cross), 1);
    // The least there is: a packet per round trip with all windows in the queue, which those by delay come near.
    let packet_per_round_bps = 1e7 * 1448.0 / 1500.0 / WINDOWS as f64;
    for name in &names {
        assert!(connection(&run, name, "goodput_bps") > packet_per_round_bps, "{name} gets a share");
    }
    // Up to 0.4 s of data wait in the queue at the end.
    within(connection(&run, "cbr", "throughput_bps"), 1e6, 0.02);
}

#[test]
fn a_workload_that_is_recorded_has_the_same_figures() {
    let traffic = r#"kind = "flows", arrivals = "synchronised", count = 3, size = "20 kB""#;
    let scenario = parse(&text("5 s", &flow(traffic)));
    let folder = tempfile::tempdir().expect("a folder");
    for records in [Records::default(), Records { events: true, ..Records::default() }] {
        let recorded = anabranch_sim::record(&scenario, 1, &Control::default(), folder.path(), records);
        let recorded = recorded.expect("it runs");
        assert_eq!(connection(&recorded, "flow", "flows_completed"), 3.0);
        assert_eq!(recorded.summary, run(&scenario, 1).summary);
    }
}
