//! The round model of EE-MPTCP against the simulator, over losses and round-trip times.

#[allow(unreachable_pub)] // public for whichever test binary uses it
mod common;

use anabranch_policy::scheduler::{
    SSTHRESH_INFINITE,
    rounds::{Rounds, Start, estimate},
};
use common::{connection, mean, parse, run};

const SEEDS: u64 = 40;
const LOSSES: [f64; 6] = [0.0, 0.001, 0.005, 0.01, 0.02, 0.05];
const RTTS_MS: [u64; 4] = [10, 50, 100, 200];
/// Segments of 1000 bytes.
const FILE: u64 = 1000;

/// Seconds from the first segment to the last at the receiver, which is half a round trip before its acknowledgement.
fn simulated_s(ssthresh: Option<u32>, loss: f64, rtt_ms: u64) -> f64 {
    let ssthresh =
        ssthresh.map_or(String::new(), |packets| format!(", initial_ssthresh = \"{packets} packets\""));
    let text = format!(
        r#"
name = "rounds"
duration = "1000 s"
measure = {{ interval = "0 s" }}
transport = {{ profile = "rfc", segment = "1000 B", delayed_ack = "off"{ssthresh} }}
node = [{{ names = ["S", "D"] }}]
link = [{{ between = ["S", "D"], rate = "10 Gbit/s", delay = "{}", queue = "unlimited", loss = {loss}, reverse = {{ loss = 0 }} }}]
connection = [{{ name = "file", from = "S", to = "D", congestion = "reno", traffic = {{ kind = "file", size = "{FILE} kB" }} }}]
"#,
        format_args!("{} us", rtt_ms * 500)
    );
    let scenario = parse(&text);
    let runs: Vec<_> = (0..SEEDS).map(|seed| run(&scenario, seed)).collect();
    mean(&runs, |run| connection(run, "file", "completion_s")) - rtt_ms as f64 / 1e3
}

/// The model's time for the same, from an initial window of ten segments.
fn predicted_s(ssthresh: Option<u32>, loss: f64, rtt_ms: u64) -> f64 {
    let start = Start {
        rtt_us: 1000 * rtt_ms,
        window: 10.0,
        ssthresh: f64::from(ssthresh.unwrap_or(SSTHRESH_INFINITE)),
        loss,
        initial: 1.0,
        most: 1e6,
        segment_bits: 8000.0,
    };
    let time_us = estimate(&mut [Rounds::new(start)], FILE as f64).time_us;
    (time_us - 500 * rtt_ms) as f64 / 1e6
}

#[test]
fn without_losses_the_model_is_right_to_a_thousandth_which_is_the_time_on_the_wire() {
    for rtt_ms in RTTS_MS {
        let (simulated, predicted) = (simulated_s(None, 0.0, rtt_ms), predicted_s(None, 0.0, rtt_ms));
        // A window of 500 segments of 1060 bytes takes 0.4 ms at 10 Gbit/s.
        assert!((simulated - predicted).abs() < 0.0005, "{rtt_ms} ms: {simulated} and {predicted} s");
    }
}

/// Simulated seconds and the model's error, a row per loss.
fn errors(ssthresh: Option<u32>) -> String {
    let mut rows = String::new();
    for loss in LOSSES {
        rows += &format!("| {} % |", loss * 100.0);
        for rtt_ms in RTTS_MS {
            let (simulated, predicted) =
                (simulated_s(ssthresh, loss, rtt_ms), predicted_s(ssthresh, loss, rtt_ms));
            // Adding zero makes a negative one positive.
            let percent = ((predicted / simulated - 1.0) * 100.0).round() + 0.0;
            rows += &format!(" {simulated:.2}, {percent:+} % |");
        }
        rows += "\n";
    }
    rows
}

#[test]
fn the_errors_in_the_docs_are_those_of_the_model() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schedulers/ee-mptcp.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    for ssthresh in [None, Some(10)] {
        let rows = errors(ssthresh);
        assert!(page.contains(&rows), "docs/schedulers/ee-mptcp.md must contain for {ssthresh:?}\n{rows}");
    }
}
