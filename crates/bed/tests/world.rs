//! What the simulator can, on a real kernel: scenarios whose figures have known bounds.

mod common;

use common::{
    texts::{BOTH, TWO_PATHS, connection},
    turn::{Run, Turn},
};

/// Two paths of 8 and 4 Mbit/s between `phone` and `server`, with what else the scenario says.
fn two_paths(duration: &str, more: &str) -> String {
    format!(
        r#"
        name = "world"
        duration = "{duration}"
        {TWO_PATHS}
        [transport]
        profile = "linux"

        {more}
        "#
    )
}

/// An MPTCP connection over both paths, and what else its table says.
fn both_paths(traffic: &str) -> String {
    connection("data", BOTH, &format!("traffic = {{ {traffic} }}"))
}

#[test]
fn a_download_uses_both_paths_and_is_counted_where_it_is_sent() {
    let Some(turn) = Turn::begin("a_download_uses_both_paths_and_is_counted_where_it_is_sent") else {
        return;
    };
    let download = both_paths(r#"kind = "ftp", direction = "download""#);
    let run = turn.result(&two_paths("3 s", &download), &[]);
    run.assert_sound();
    for (subflow, least_bps) in [("wifi", 3e6), ("cell", 1e6)] {
        let throughput_bps = run.figure("subflows", &["data", subflow, "throughput_bps"]);
        assert!(throughput_bps > least_bps, "{subflow}: {throughput_bps}");
        assert!(run.figure("subflows", &["data", subflow, "mean_cwnd_packets"]) > 5.0, "the server's window");
    }
    let goodput_bps = run.figure("connections", &["data", "goodput_bps"]);
    assert!((5e6..11.6e6).contains(&goodput_bps), "{goodput_bps} of 12 Mbit/s less headers");
    let down = run.figure("links", &["phone-wifi/reverse", "throughput_bps"]);
    let up = run.figure("links", &["phone-wifi", "throughput_bps"]);
    assert!(up < down / 10.0, "acknowledgements alone go up: {up} and {down}");
}

#[test]
fn a_file_each_way_is_complete_when_both_have_come() {
    let Some(turn) = Turn::begin("a_file_each_way_is_complete_when_both_have_come") else { return };
    for protocol in ["tcp", "mptcp"] {
        let mut both = both_paths(r#"kind = "file", size = "500 kB", direction = "both""#);
        if protocol == "tcp" {
            both = both.replace("mptcp", "tcp").replace("lia", "reno");
            both = both.replace(r#", { name = "cell", via = ["cell"] }"#, "");
        }
        let run = turn.result(&two_paths("4 s", &both), &[]);
        run.assert_sound();
        let of = |metric| run.figure("connections", &["data", metric]);
        assert_eq!(of("bytes_delivered"), 1e6, "{protocol}");
        assert_eq!(of("goodput_up_bps"), of("goodput_down_bps"), "{protocol}");
        let completion_s = of("completion_s");
        // 4 Mbit each way over at least 8 and at most 12 Mbit/s, and slow start.
        assert!((0.33..2.0).contains(&completion_s), "{protocol}: {completion_s}");
    }
}

/// Counters of a node over the run, by nstat's names.
fn counter(run: &Run, node: &str, name: &str) -> i64 {
    let text = std::fs::read(run.path.join("counters.json")).expect("it lies in the folder");
    let all: serde_json::Value = serde_json::from_slice(&text).expect("it is JSON");
    all[node][name].as_i64().unwrap_or(0)
}

/// Runs a scenario with a measurement window; the throughput of both subflows in it.
fn throughputs(turn: &Turn, scenario: &str, from: &str, to: &str) -> (Run, [f64; 2]) {
    let scenario =
        scenario.replace("[transport]", &format!("[measure]\nfrom = \"{from}\"\nto = \"{to}\"\n[transport]"));
    let run = turn.result(&scenario, &[]);
    run.assert_sound();
    let of = |subflow| run.figure("subflows", &["data", subflow, "throughput_bps"]);
    let throughputs = ["wifi", "cell"].map(of);
    (run, throughputs)
}

fn events(list: &[(&str, &str, &str)]) -> String {
    let event = |(at, subflow, action): &(&str, &str, &str)| {
        format!(
            "[[event]]\nat = \"{at}\"\nconnection = \"data\"\nsubflow = \"{subflow}\"\naction = \"{action}\"\n"
        )
    };
    list.iter().map(event).collect()
}

/// Less than an acknowledgement now and then.
const SILENT_BPS: f64 = 50e3;

#[test]
fn subflows_start_late_close_and_open_again() {
    let Some(turn) = Turn::begin("subflows_start_late_close_and_open_again") else { return };
    let connection =
        both_paths(r#"kind = "ftp""#).replace(r#"name = "cell","#, r#"name = "cell", start = "1 s","#);
    let events = events(&[("2 s", "cell", "close"), ("3 s", "cell", "open")]);
    let scenario = two_paths("4 s", &(connection + &events));
    for (from, to, cell_is_open) in
        [("0 s", "0.95 s", false), ("2.2 s", "2.95 s", false), ("3.4 s", "4 s", true)]
    {
        let (run, [wifi_bps, cell_bps]) = throughputs(&turn, &scenario, from, to);
        assert!(wifi_bps > 3e6, "{from} to {to}: {wifi_bps}");
        assert_eq!(cell_bps > SILENT_BPS, cell_is_open, "{from} to {to}: {cell_bps}");
        assert_eq!(counter(&run, "phone", "MPTcpExtMPJoinSynTx"), 2, "late, and again");
        assert!(counter(&run, "phone", "MPTcpExtMPRstTx") > 0, "it is reset, not finished");
    }
}

#[test]
fn a_lost_address_is_told_on_the_other_path_and_may_come_back() {
    let Some(turn) = Turn::begin("a_lost_address_is_told_on_the_other_path_and_may_come_back") else {
        return;
    };
    let connection = both_paths(r#"kind = "ftp", direction = "download""#);
    let events = events(&[("1 s", "wifi", "remove"), ("2.2 s", "wifi", "open")]);
    let scenario = two_paths("4 s", &(connection + &events));
    for (from, to, wifi_is_open) in [("1.3 s", "2.1 s", false), ("3 s", "4 s", true)] {
        let (run, [wifi_bps, cell_bps]) = throughputs(&turn, &scenario, from, to);
        assert!(cell_bps > 1e6, "{from} to {to}: {cell_bps}");
        assert_eq!(wifi_bps > SILENT_BPS, wifi_is_open, "{from} to {to}: {wifi_bps}");
        assert_eq!(counter(&run, "phone", "MPTcpExtRmAddrTx"), 1);
        assert_eq!(counter(&run, "server", "MPTcpExtRmAddr"), 1, "the server has heard it");
    }
}

#[test]
fn a_subflow_becomes_a_backup_and_a_regular_one_again() {
    let Some(turn) = Turn::begin("a_subflow_becomes_a_backup_and_a_regular_one_again") else { return };
    let events = events(&[("1 s", "wifi", "backup"), ("2.5 s", "wifi", "regular")]);
    let scenario = two_paths("4 s", &(both_paths(r#"kind = "ftp""#) + &events));
    for (from, to, is_regular) in [("1.5 s", "2.4 s", false), ("3 s", "4 s", true)] {
        let (run, [wifi_bps, cell_bps]) = throughputs(&turn, &scenario, from, to);
        assert!(cell_bps > 1e6, "{from} to {to}: {cell_bps}");
        assert_eq!(wifi_bps > SILENT_BPS, is_regular, "{from} to {to}: {wifi_bps}");
        assert_eq!(counter(&run, "server", "MPTcpExtMPPrioRx"), 2);
    }
}

#[test]
fn an_announced_address_is_joined_from_the_path_of_its_subflow() {
    let Some(turn) = Turn::begin("an_announced_address_is_joined_from_the_path_of_its_subflow") else {
        return;
    };
    let connection =
        both_paths(r#"kind = "ftp""#).replace(r#"name = "cell","#, r#"name = "cell", announced = true,"#);
    let (run, [wifi_bps, cell_bps]) = throughputs(&turn, &two_paths("3 s", &connection), "1 s", "3 s");
    assert!(wifi_bps > 3e6 && cell_bps > 1e6, "{wifi_bps} and {cell_bps}");
    assert_eq!(counter(&run, "server", "MPTcpExtAddAddrTx"), 1);
    assert_eq!(counter(&run, "phone", "MPTcpExtAddAddr"), 1);
}

#[test]
fn flows_of_a_workload_are_those_of_the_simulator_and_are_measured_together() {
    let Some(turn) = Turn::begin("flows_of_a_workload_are_those_of_the_simulator_and_are_measured_together")
    else {
        return;
    };
    let flows = r#"kind = "flows", interval = "40 ms", stop = "2 s", direction = "download",
        size = { distribution = "pareto", mean = "10 kB", shape = 1.5, max = "60 kB" }"#;
    let mptcp = both_paths(&flows.replace('\n', " "));
    let (tcp, _) = mptcp.split_once("subflow = [").expect("it is there");
    for connection in [tcp.replace("mptcp", "tcp").replace("lia", "cubic"), mptcp.clone()] {
        let text = two_paths("4 s", &connection);
        let scenario = anabranch_scenario::load(&text, "test.toml", &[]).expect("it is valid").scenario;
        let expected = anabranch_scenario::workload::expand(&scenario, 1);
        let bytes = expected.connections.iter().map(|flow| match flow.traffic {
            anabranch_scenario::model::Traffic::File { bytes, .. } => bytes,
            _ => unreachable!("flows carry files"),
        });
        let run = turn.result(&text, &[]);
        run.assert_sound();
        let of = |metric| run.figure("connections", &["data", metric]);
        assert_eq!(of("flows_started"), expected.connections.len() as f64);
        assert_eq!(of("flows_completed"), expected.connections.len() as f64, "there are two seconds left");
        let bytes: u64 = bytes.sum();
        assert_eq!(of("bytes_delivered"), bytes as f64);
        // A round trip to open, half a one for the request to have come, half a one for the first window.
        assert!(of("completion_p50_s") > 0.024 && of("completion_max_s") < 1.0);
        assert!(of("packets_sent") >= (bytes as f64 / 1448.0).ceil());
        assert!(run.summary["subflows"]["data"].is_null(), "flows have no figures of their own");
    }
}

/// What `data` delivers at `server` goes on over TCP to `cloud`.
fn relayed(traffic: &str, relay: &str) -> String {
    let connection = both_paths(traffic)
        .replace("subflow = [", "transport.receive_buffer = \"200 kB\"\n        subflow = [");
    format!(
        r#"{connection}
        [[connection]]
        name = "onward"
        from = "server"
        to = "cloud"
        congestion = "reno"
        [[relay]]
        name = "gateway"
        in = "data"
        out = "onward"
        {relay}
        "#
    )
}

fn onward_link(rate: &str) -> String {
    format!(r#"{{ between = ["server", "cloud"], rate = "{rate}", delay = "10 ms", queue = "50 packets" }},"#)
}

#[test]
fn a_relay_hands_a_file_on_whole_and_holds_no_more_than_its_buffer() {
    let Some(turn) = Turn::begin("a_relay_hands_a_file_on_whole_and_holds_no_more_than_its_buffer") else {
        return;
    };
    // Faster and slower behind the relay than before it.
    for (onward_rate, relay) in [("20 Mbit/s", "delay = \"20 ms\""), ("3 Mbit/s", "")] {
        let relay = format!("buffer = \"64 kB\"\n{relay}");
        let text = two_paths("5 s", &relayed(r#"kind = "file", size = "600 kB""#, &relay))
            .replace(r#""cell", "server"] }]"#, r#""cell", "server", "cloud"] }]"#)
            .replace("link = [", &format!("link = [\n{}", onward_link(onward_rate)));
        let run = turn.result(&text, &[]);
        run.assert_sound();
        let of = |name, metric| run.figure("connections", &[name, metric]);
        assert_eq!(of("data", "bytes_delivered"), 600e3);
        assert_eq!(of("onward", "bytes_delivered"), 600e3);
        assert_eq!(of("gateway", "bytes_relayed"), 600e3);
        let held = of("gateway", "buffer_max_bytes");
        assert!(held > 0.0 && held <= 64e3, "{held}");
        let [data_s, onward_s, both_s] = ["data", "onward", "gateway"].map(|name| of(name, "completion_s"));
        assert!(both_s > data_s && both_s > onward_s, "{data_s}, {onward_s}, {both_s}");
        if onward_rate == "3 Mbit/s" {
            // 4.8 Mbit and their headers at 3 Mbit/s; what the relay does not read waits with the sender.
            assert!(both_s > 1.6, "{both_s}");
            assert!(data_s > 1.0, "the slow side holds the fast one back: {data_s}");
        }
    }
}

#[test]
fn a_middlebox_makes_tcp_of_a_connection_and_keeps_joins_away() {
    let Some(turn) = Turn::begin("a_middlebox_makes_tcp_of_a_connection_and_keeps_joins_away") else {
        return;
    };
    for (ip, strips, link, fallback) in [
        ("v4", "mptcp", "wifi", 1.0),
        ("v6", "mptcp", "wifi", 1.0),
        ("v4", "joins", "cell", 0.0),
        ("v6", "mptcp", "cell", 0.0),
    ] {
        let connection = both_paths(r#"kind = "file", size = "500 kB""#)
            .replace("subflow = [", &format!("ip = \"{ip}\"\n        subflow = ["));
        let ends = format!("\"phone\", \"{link}\"]");
        let text = two_paths("3 s", &connection).replace(&ends, &format!("{ends}, strips = \"{strips}\""));
        let run = turn.result(&text, &[]);
        run.assert_sound();
        let of = |metric| run.figure("connections", &["data", metric]);
        assert_eq!((of("fallback"), of("bytes_delivered")), (fallback, 500e3), "{ip}, {strips} on {link}");
        assert!(of("completion_s") > 0.5, "8 Mbit/s alone carry it");
        let notes = run.manifest["environment"]["notes"].to_string();
        assert!(notes.contains("subflow cell was never opened"), "{ip}, {strips} on {link}: {notes}");
    }
}
