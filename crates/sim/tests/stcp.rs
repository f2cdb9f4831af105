//! STCP on the dumbbell of its paper (section I2 of the algorithm reference); what the figures say is in
//! `docs/algorithms/stcp.md`.

#![allow(clippy::print_stdout)] // the figures are shown with --nocapture

#[allow(unreachable_pub)] // public for whichever test binary uses it
mod common;

use anabranch_record::model::Measurements;
use common::{connection, link};

/// One flow beside a datagram flow of `background` kbit/s: 1 Mbit/s, 240 ms, a queue of 50 packets, 150 s.
fn dumbbell(congestion: &str, background: u32) -> Measurements {
    let datagrams = if background == 0 {
        String::new()
    } else {
        format!(
            r#"
[[datagram]]
name = "background"
from = "S2"
to = "D2"
rate = "{background} kbit/s"
packet = "1000 B"
"#
        )
    };
    common::run(
        &common::parse(&format!(
            r#"
name = "dumbbell"
duration = "150 s"
transport = {{ profile = "ns2" }}
node = [{{ names = ["S1", "S2", "R1", "R2", "D1", "D2"] }}]
link = [
  {{ name = "bottleneck", between = ["R1", "R2"], rate = "1 Mbit/s", delay = "110 ms", queue = "50 packets" }},
  {{ between = ["S1", "R1"], rate = "10 Mbit/s", delay = "5 ms", queue = "50 packets" }},
  {{ between = ["S2", "R1"], rate = "10 Mbit/s", delay = "5 ms", queue = "50 packets" }},
  {{ between = ["R2", "D1"], rate = "10 Mbit/s", delay = "5 ms", queue = "50 packets" }},
  {{ between = ["R2", "D2"], rate = "10 Mbit/s", delay = "5 ms", queue = "50 packets" }},
]
connection = [{{ name = "flow", from = "S1", to = "D1", congestion = {congestion} }}]
{datagrams}"#
        )),
        1,
    )
}

/// Goodput in kbit/s, and drops at the bottleneck.
fn figures(congestion: &str, background: u32) -> (f64, f64) {
    let run = dumbbell(congestion, background);
    let (goodput, drops) = (connection(&run, "flow", "goodput_bps") / 1e3, link(&run, "bottleneck", "drops"));
    println!("{background} kbit/s, {congestion}: {goodput:.1} kbit/s, {drops} drops");
    (goodput, drops)
}

const BACKGROUND: [u32; 6] = [0, 100, 200, 300, 400, 500];

/// The paper has 2.6 % over NewReno on average over its background rates, without intervals; all that it gives of the
/// set-up is the queue, the delay and the duration. Here: no drop at any rate, and 1 % to 4 % over NewReno.
#[test]
fn the_largest_queue_estimate_keeps_the_window_below_the_full_queue() {
    for background in BACKGROUND {
        let (stcp, drops) = figures("\"stcp\"", background);
        let (newreno, _) = figures("\"reno\"", background);
        assert_eq!(drops, 0.0, "{background}");
        assert!((1.01..=1.04).contains(&(stcp / newreno)), "{background}: {stcp} {newreno}");
    }
}

/// With the queue that the paper configures, the flow holds back only where it has the link for itself (I-S1-4). Beside
/// datagrams it grows into the full queue by ssthresh packets per round trip, and loses to NewReno.
#[test]
fn the_configured_queue_hardly_ever_holds_the_window_beside_other_traffic() {
    for background in BACKGROUND.into_iter().filter(|rate| *rate > 0) {
        let (stcp, drops) = figures("{ name = \"stcp\", queue_max = \"50 packets\" }", background);
        let (newreno, drops_of_newreno) = figures("\"reno\"", background);
        assert!(stcp < newreno && drops > 2.0 * drops_of_newreno, "{background}: {stcp} {newreno}");
    }
}

/// Reading R2: the factor falls to nothing when the link is full, and the window grows into the full queue.
#[test]
fn own_throughput_for_bandwidth_never_holds_the_window() {
    for background in BACKGROUND {
        let (stcp, drops) = figures("{ name = \"stcp\", bandwidth = \"throughput\" }", background);
        let (newreno, drops_of_newreno) = figures("\"reno\"", background);
        assert!(stcp < newreno && drops > drops_of_newreno, "{background}: {stcp} {newreno}");
    }
}
