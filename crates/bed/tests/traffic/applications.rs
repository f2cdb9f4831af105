//! Our own senders and receivers.

use std::{io::Write as _, net::TcpStream, sync::atomic::Ordering, thread, time::Duration};

use anabranch_bed::{clock::monotonic, traffic::Applications};
use anabranch_scenario::model::{Direction, Traffic};

use crate::lab::{Lab, MS, PORT, SECOND, datagram_plan, file, ftp, load, plan, scenario, threads, wait_for};

const FILE_BYTES: u64 = 3_000_000;

/// Sends a file, which must arrive whole.
fn assert_whole(lab: &Lab, protocol: &str, from: &str, to: &str) {
    let scenario = scenario(protocol, file(FILE_BYTES));
    let applications = lab.start(&plan(from, to), &scenario).expect("the sockets can be made");
    let connection = &applications.connections()[0];
    wait_for("the file", || connection.completed_at().is_some() || connection.failure().is_some());
    let outcome = applications.stop().connections.remove(0);
    assert_eq!(outcome.failure, None);
    assert_eq!((outcome.written_bytes, outcome.delivered_bytes), (FILE_BYTES, FILE_BYTES));
    let times = [outcome.opened_at, outcome.established_at, outcome.completed_at];
    assert!(times.iter().all(Option::is_some) && times.is_sorted(), "{times:?}");
    lab.assert_nothing_left();
}

#[test]
fn a_file_over_tcp_arrives_whole() {
    let Some(lab) = Lab::new("a_file_over_tcp_arrives_whole") else { return };
    assert_whole(&lab, "tcp", "10.79.0.1", "10.79.0.2");
}

#[test]
fn a_file_over_mptcp_arrives_whole_and_uses_both_paths() {
    let Some(lab) = Lab::new("a_file_over_mptcp_arrives_whole_and_uses_both_paths") else { return };
    lab.add_second_subflow();
    let scenario = scenario("mptcp", ftp(None));
    let applications = lab.start(&plan("10.79.0.1", "10.79.0.2"), &scenario).expect("sockets");
    wait_for("data on the second path", || lab.client_sent_bytes(1) > 100_000);
    let outcome = applications.stop().connections.remove(0);
    assert_eq!(outcome.failure, None);
    lab.assert_nothing_left();
    assert_whole(&lab, "mptcp", "10.79.0.1", "10.79.0.2");
}

#[test]
fn files_arrive_whole_whichever_end_sends_and_use_both_paths() {
    let Some(lab) = Lab::new("files_arrive_whole_whichever_end_sends_and_use_both_paths") else { return };
    lab.add_second_subflow();
    for protocol in ["tcp", "mptcp"] {
        for (direction, ways) in [(Direction::Download, [0, 1]), (Direction::Both, [1, 1])] {
            let Traffic::File { start, bytes, .. } = file(FILE_BYTES) else { unreachable!() };
            let scenario = scenario(protocol, Traffic::File { start, bytes, direction });
            let applications = lab.start(&plan("10.79.0.1", "10.79.0.2"), &scenario).expect("sockets");
            let connection = &applications.connections()[0];
            wait_for("the file", || connection.completed_at().is_some() || connection.failure().is_some());
            let outcome = applications.stop().connections.remove(0);
            assert_eq!(outcome.failure, None, "{protocol}, {direction:?}");
            let [up, down] = ways.map(|files| files * FILE_BYTES);
            let counted = (outcome.written_bytes, outcome.delivered_bytes, outcome.downloaded_bytes);
            assert_eq!(counted, (up + down, up + down, down), "{protocol}, {direction:?}");
            lab.assert_nothing_left();
        }
    }
}

#[test]
fn a_file_arrives_whole_over_ipv6() {
    let Some(lab) = Lab::new("a_file_arrives_whole_over_ipv6") else { return };
    for protocol in ["tcp", "mptcp"] {
        assert_whole(&lab, protocol, "fd79:0::1", "fd79:0::2");
    }
}

#[test]
fn an_ftp_ends_at_its_stop_and_nothing_of_it_is_lost() {
    let Some(lab) = Lab::new("an_ftp_ends_at_its_stop_and_nothing_of_it_is_lost") else { return };
    for protocol in ["tcp", "mptcp"] {
        let scenario = scenario(protocol, ftp(Some(200 * MS)));
        let zero = monotonic();
        let applications = lab.start(&plan("10.79.0.1", "10.79.0.2"), &scenario).expect("sockets");
        wait_for("the stop", || monotonic() > zero + 300 * MS);
        let connection = &applications.connections()[0];
        wait_for("the rest", || {
            let written = connection.written_bytes();
            written > 0 && connection.delivered_bytes() == written
        });
        let outcome = applications.stop().connections.remove(0);
        assert_eq!(outcome.failure, None);
        assert_eq!(outcome.written_bytes, outcome.delivered_bytes);
        assert_eq!(outcome.completed_at, None, "only a file is ever complete");
        lab.assert_nothing_left();
    }
}

#[test]
fn a_udp_flow_sends_every_packet_of_its_intervals() {
    let Some(lab) = Lab::new("a_udp_flow_sends_every_packet_of_its_intervals") else { return };
    let scenario = load(
        "[[datagram]]\nname = \"cbr\"\nfrom = \"C\"\nto = \"S\"\nrate = \"1 Mbit/s\"\npacket = \"1000 B\"\n\
         on = [[\"0 s\", \"10 s\"]]\n",
    );
    for (from, to, headers) in [("10.79.0.1", "10.79.0.2", 28), ("fd79:0::1", "fd79:0::2", 48)] {
        let on = vec![(0, 100 * MS), (150 * MS, 250 * MS)];
        let plan = datagram_plan(from, to, 1000 - headers, on);
        let applications = lab.start(&plan, &scenario).expect("the sockets can be made");
        let flow = &applications.datagrams()[0];
        wait_for("the last packet", || flow.received_packets() == 26);
        assert_eq!(flow.received_bytes(), 26_000);
        // The sender says how late it was when it has ended.
        wait_for("the sender's end", || threads() == 1);
        let outcome = applications.stop().datagrams.remove(0);
        assert_eq!((outcome.failure, outcome.sent_packets, outcome.refused_packets), (None, 26, 0));
        assert_eq!((outcome.received_packets, outcome.overflowed_packets), (26, 0));
        let lateness = outcome.lateness;
        assert_eq!(lateness.count, 26);
        assert!(lateness.max_ns > 0 && lateness.p50_ns <= lateness.p99_ns, "{lateness:?}");
        lab.assert_nothing_left();
    }
}

#[test]
fn a_connection_that_nobody_takes_is_a_failure_with_a_text() {
    let Some(lab) = Lab::new("a_connection_that_nobody_takes_is_a_failure_with_a_text") else { return };
    let scenario = scenario("tcp", file(1000));
    let mut plan = plan("10.79.0.1", "10.79.0.2");
    // The client itself, where nobody listens.
    plan.connections[0].server_address = "10.79.0.1".parse().expect("an address");
    let applications = lab.start(&plan, &scenario).expect("the sockets can be made");
    wait_for("the failure", || applications.connections()[0].failure().is_some());
    let outcome = applications.stop().connections.remove(0);
    let text = outcome.failure.expect("it has failed");
    assert!(text.starts_with(&format!("connecting from 10.79.0.1 to 10.79.0.1:{PORT}: Connection refused")));
    assert!(outcome.opened_at.is_some() && outcome.established_at.is_none());
    lab.assert_nothing_left();
}

#[test]
fn data_that_the_sender_did_not_write_are_a_failure_with_a_text() {
    let Some(lab) = Lab::new("data_that_the_sender_did_not_write_are_a_failure_with_a_text") else { return };
    let mut plan = plan("10.79.0.1", "10.79.0.2");
    plan.connections[0].open_at = 3600 * SECOND;
    let applications = lab.start(&plan, &scenario("tcp", file(1000))).expect("the sockets can be made");
    let stranger = lab.hosts[0].enter(|| TcpStream::connect(("10.79.0.2", PORT)));
    let mut stranger = stranger.expect("it can be entered").expect("the server listens");
    stranger.write_all(&[0xff; 4]).expect("the connection is open");
    wait_for("the failure", || applications.connections()[0].failure().is_some());
    drop(stranger);
    let outcome = applications.stop().connections.remove(0);
    let text = outcome.failure.expect("it has failed");
    assert!(text.starts_with("receiving, after 0 bytes: byte 0 is 0xff, but"), "{text}");
    lab.assert_nothing_left();
}

#[test]
fn an_unknown_congestion_control_is_named_at_the_start() {
    let Some(lab) = Lab::new("an_unknown_congestion_control_is_named_at_the_start") else { return };
    let mut plan = plan("10.79.0.1", "10.79.0.2");
    plan.connections[0].congestion = "nosuch".into();
    let error = lab.start(&plan, &scenario("tcp", file(1000))).expect_err("it is not registered");
    assert!(error.to_string().contains("congestion control \"nosuch\""), "{error}");
    lab.assert_nothing_left();
}

#[test]
fn an_interrupt_ends_every_thread() {
    let Some(lab) = Lab::new("an_interrupt_ends_every_thread") else { return };
    let mut plan = plan("10.79.0.1", "10.79.0.2");
    // One that runs, one that has not been opened yet.
    plan.connections.push(plan.connections[0].clone());
    plan.connections[1].port += 1;
    plan.connections[1].open_at = 3600 * SECOND;
    let mut scenario = scenario("mptcp", ftp(None));
    scenario.connections.push(scenario.connections[0].clone());
    let applications = lab.start(&plan, &scenario).expect("the sockets can be made");
    wait_for("data", || applications.connections()[0].delivered_bytes() > 0);
    assert_eq!(threads(), 4);
    lab.interrupt.store(true, Ordering::Relaxed);
    wait_for("the threads to end", || threads() == 0);
    let outcomes = applications.stop().connections;
    assert!(outcomes.iter().all(|outcome| outcome.failure.is_none()), "{outcomes:?}");
    assert_eq!((outcomes[1].opened_at, outcomes[1].written_bytes), (None, 0));
    lab.assert_nothing_left();
}

#[test]
fn stopping_leaves_nothing_even_if_the_other_end_cannot_be_told() {
    let test = "stopping_leaves_nothing_even_if_the_other_end_cannot_be_told";
    let Some(lab) = Lab::new(test) else { return };
    for protocol in ["tcp", "mptcp"] {
        let scenario = scenario(protocol, ftp(None));
        let applications = lab.start(&plan("10.79.0.1", "10.79.0.2"), &scenario).expect("sockets");
        wait_for("data", || applications.connections()[0].delivered_bytes() > 0);
        lab.cut(true);
        assert_eq!(applications.stop().connections.remove(0).failure, None);
        lab.assert_nothing_left();
        lab.cut(false);
    }
}

#[test]
fn dropping_the_applications_ends_them_too() {
    let Some(lab) = Lab::new("dropping_the_applications_ends_them_too") else { return };
    let applications: Applications =
        lab.start(&plan("10.79.0.1", "10.79.0.2"), &scenario("tcp", ftp(None))).expect("sockets");
    wait_for("data", || applications.connections()[0].sockets().is_some());
    drop(applications);
    lab.assert_nothing_left();
}

#[test]
fn applications_that_answer_measure_every_answer() {
    let Some(lab) = Lab::new("applications_that_answer_measure_every_answer") else { return };
    let telemetry =
        r#"kind = "telemetry", period = "20 ms", jitter = "10 ms", size = "300 B", ack = "4 B", count = 8"#;
    let request = r#"kind = "request", count = 5, think = { distribution = "exponential", mean = "5 ms" },
        response = { distribution = "pareto", mean = "30 kB", shape = 1.3, max = "1 MB" }"#
        .replace('\n', " ");
    for protocol in ["tcp", "mptcp"] {
        for (traffic, answers) in [(telemetry, 8), (request.as_str(), 5)] {
            let scenario = load(&format!(
                "[[connection]]\nname = \"meter\"\nfrom = \"C\"\nto = \"S\"\nprotocol = \"{protocol}\"\n\
                 congestion = \"reno\"\ntraffic = {{ {traffic} }}\n"
            ));
            let applications = lab.start(&plan("10.79.0.1", "10.79.0.2"), &scenario).expect("sockets");
            let connection = &applications.connections()[0];
            wait_for("the last answer", || connection.latencies() == answers);
            let outcome = applications.stop().connections.remove(0);
            assert_eq!(outcome.failure, None, "{protocol}, {traffic}");
            assert_eq!(outcome.written_bytes, outcome.delivered_bytes);
            assert!(outcome.latencies.iter().all(|latency| latency.taken > 0 && latency.taken < SECOND));
            lab.assert_nothing_left();
        }
    }
}

#[test]
fn a_source_writes_what_is_due() {
    let Some(lab) = Lab::new("a_source_writes_what_is_due") else { return };
    let scenario = load(
        "[[connection]]\nname = \"meter\"\nfrom = \"C\"\nto = \"S\"\ncongestion = \"reno\"\n\
         traffic = { kind = \"cbr\", rate = \"800 kbit/s\", size = \"1 kB\", stop = \"500 ms\" }\n",
    );
    let applications = lab.start(&plan("10.79.0.1", "10.79.0.2"), &scenario).expect("sockets");
    // One write each 10 ms, from the opening on, which takes less than a few milliseconds.
    wait_for("the last write", || applications.connections()[0].delivered_bytes() >= 48_000);
    thread::sleep(Duration::from_millis(50));
    let outcome = applications.stop().connections.remove(0);
    assert_eq!(outcome.failure, None);
    assert!((48_000..=50_000).contains(&outcome.delivered_bytes), "{}", outcome.delivered_bytes);
    assert_eq!(outcome.written_bytes, outcome.delivered_bytes);
    lab.assert_nothing_left();
}
