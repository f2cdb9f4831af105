//! The connections made by iperf3.

use std::{
    io::ErrorKind,
    process::Command,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
};

use anabranch_bed::{
    BedError,
    clock::monotonic,
    traffic::iperf3::{Iperf3, Report},
};
use anabranch_scenario::model::Traffic;

use crate::common::skip_for;
use crate::lab::{Lab, MS, SECOND, file, ftp, plan, scenario, wait_for};

/// Made by iperf3 3.12 over two paths of 20 Mbit/s each, under mptcpize.
const SAMPLE: &[u8] = include_bytes!("../data/iperf3.json");

#[test]
fn the_sums_of_a_real_output_are_read() {
    let report = Report::parse(SAMPLE.to_vec()).expect("it is iperf3's");
    let summary = report.summary;
    assert_eq!((summary.sender.bytes, summary.receiver.bytes), (14_985_704, 14_187_768));
    assert_eq!((summary.sender.seconds, summary.receiver.seconds), (3.000678, 3.017497));
    assert_eq!(summary.receiver.bits_per_second, 37_614_666.725_435_02);
    assert_eq!((summary.retransmits, summary.congestion.as_deref()), (Some(54), Some("reno")));
    assert_eq!(report.json, SAMPLE);
}

#[test]
fn what_iperf3_complains_of_is_the_error() {
    let output = br#"{"start": {}, "intervals": [], "end": {}, "error": "unable to connect"}"#;
    let error = Report::parse(output.to_vec()).expect_err("it reports an error");
    assert_eq!(error.to_string(), "iperf3: unable to connect");
}

#[test]
fn output_that_is_cut_off_or_has_no_sums_is_an_error() {
    for (output, text) in [(&SAMPLE[..1000], "not its JSON"), (b"", "not its JSON"), (b"{}", "no sums")] {
        let error = Report::parse(output.to_vec()).expect_err("it is not whole").to_string();
        assert!(error.contains(text), "{error}");
    }
}

/// A lab, if the two programs are there.
fn lab(test: &str) -> Option<Lab> {
    let lab = Lab::new(test)?;
    for program in ["iperf3", "mptcpize"] {
        if let Err(error) = Command::new(program).arg("--version").output() {
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
            skip_for(test, &format!("{program} is missing"), "apt-get install iperf3 mptcpize");
            return None;
        }
    }
    Some(lab)
}

/// The numbers of the processes are kept in `children`.
fn start(lab: &Lab, protocol: &str, ends: (&str, &str), traffic: Traffic, children: &Children) -> Iperf3 {
    let scenario = scenario(protocol, traffic);
    let children = Arc::clone(children);
    let on_child = move |child| children.lock().unwrap_or_else(PoisonError::into_inner).push(child);
    let plan = plan(ends.0, ends.1);
    Iperf3::start(&plan, &scenario, &lab.hosts, monotonic() + 50 * MS, &lab.interrupt, on_child)
        .expect("the server listens")
}

type Children = Arc<Mutex<Vec<u32>>>;

fn assert_gone(children: &Children) {
    let children = children.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(children.len(), 2, "a server and a client");
    for child in &*children {
        assert!(!std::fs::exists(format!("/proc/{child}")).expect("it can be asked"), "{child} is left");
    }
}

#[test]
fn iperf3_sends_a_file_and_no_more_than_a_few_blocks_beyond() {
    let Some(lab) = lab("iperf3_sends_a_file_and_no_more_than_a_few_blocks_beyond") else { return };
    for (protocol, ends) in [
        ("tcp", ("10.79.0.1", "10.79.0.2")),
        ("mptcp", ("10.79.0.1", "10.79.0.2")),
        ("tcp", ("fd79:0::1", "fd79:0::2")),
    ] {
        let children = Children::default();
        let iperf3 = start(&lab, protocol, ends, file(3_000_000), &children);
        let report = iperf3.finish().remove(0).expect("it has run");
        let sent = report.summary.sender.bytes;
        // 125 kB is the largest block of which the file has a whole number.
        assert!((3_000_000..4_250_000).contains(&sent), "{sent}");
        assert!(report.summary.receiver.bytes <= sent);
        assert_eq!(report.summary.congestion.as_deref(), Some("reno"));
        assert_gone(&children);
        lab.assert_nothing_left();
    }
}

#[test]
fn iperf3_under_mptcpize_uses_both_paths() {
    let Some(lab) = lab("iperf3_under_mptcpize_uses_both_paths") else { return };
    lab.add_second_subflow();
    let children = Children::default();
    let ends = ("10.79.0.1", "10.79.0.2");
    let iperf3 = start(&lab, "mptcp", ends, ftp(Some(SECOND)), &children);
    let report = iperf3.finish().remove(0).expect("it has run");
    assert!(report.summary.receiver.bytes > 0);
    assert!(lab.client_sent_bytes(1) > 100_000, "the second path carries data");
    assert_gone(&children);
    lab.assert_nothing_left();
}

#[test]
fn an_interrupt_ends_iperf3() {
    let Some(lab) = lab("an_interrupt_ends_iperf3") else { return };
    let children = Children::default();
    let iperf3 = start(&lab, "tcp", ("10.79.0.1", "10.79.0.2"), ftp(None), &children);
    wait_for("data", || lab.client_sent_bytes(0) > 100_000);
    lab.interrupt.store(true, Ordering::Relaxed);
    let error = iperf3.finish().remove(0).expect_err("it was interrupted");
    assert_eq!(error.to_string(), "iperf3 of connection meter: interrupted");
    assert_gone(&children);
    lab.assert_nothing_left();
}

#[test]
fn a_client_that_cannot_connect_is_a_failure_with_iperf3s_own_words() {
    let test = "a_client_that_cannot_connect_is_a_failure_with_iperf3s_own_words";
    let Some(lab) = lab(test) else { return };
    let children = Children::default();
    // The client itself, where nobody listens.
    let iperf3 = start(&lab, "tcp", ("10.79.0.1", "10.79.0.1"), file(1000), &children);
    let error = iperf3.finish().remove(0).expect_err("nobody listens");
    assert!(matches!(error, BedError::Failed(_)));
    assert!(error.to_string().contains("Connection refused"), "{error}");
    assert_gone(&children);
    lab.assert_nothing_left();
}

#[test]
fn an_unknown_congestion_control_is_a_failure() {
    let Some(lab) = lab("an_unknown_congestion_control_is_a_failure") else { return };
    let mut plan = plan("10.79.0.1", "10.79.0.2");
    plan.connections[0].congestion = "nosuch".into();
    let scenario = scenario("tcp", file(1000));
    let zero = monotonic() + 50 * MS;
    let iperf3 = Iperf3::start(&plan, &scenario, &lab.hosts, zero, &lab.interrupt, |_| {});
    let error = iperf3.expect("the server listens").finish().remove(0).expect_err("no such control");
    assert!(error.to_string().contains("congestion"), "{error}");
    lab.assert_nothing_left();
}
