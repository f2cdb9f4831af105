//! The ways of loss recovery beside each other, on one flow over 10 Mbit/s and 40 ms.
#![allow(clippy::print_stdout)] // the figures of docs/validation.md, with --nocapture

#[allow(unreachable_pub)] // public for whichever test binary uses it
mod common;

use anabranch_record::model::Measurements;

/// `recovery`, `prr` and `undo`.
type Way = (&'static str, &'static str, &'static str);

const NEWRENO: Way = ("newreno", "false", "false");
const SACK: Way = ("sack", "false", "false");
const SACK_PRR: Way = ("sack", "true", "false");
const RACK: Way = ("rack", "false", "false");
const LINUX: Way = ("rack", "true", "true");

fn run((recovery, prr, undo): Way, more: &[(&str, &str)], seed: u64) -> Measurements {
    let way = [("transport.recovery", recovery), ("transport.prr", prr), ("transport.undo", undo)];
    let overrides = [&way[..], more].concat();
    common::run(&common::scenario("validation/single-flow.toml", &overrides), seed)
}

fn mean(runs: &[Measurements], metric: &str) -> f64 {
    common::mean(runs, |run| common::subflow(run, "flow", "0", metric))
}

#[test]
fn without_loss_all_measure_the_same() {
    let capped = [("transport.window_cap", "60 packets")];
    let expected = run(NEWRENO, &capped, 1);
    assert!(common::subflow(&expected, "flow", "0", "drops") == 0.0);
    for way in [SACK, SACK_PRR, RACK, LINUX] {
        assert_eq!(run(way, &capped, 1), expected, "{way:?}");
    }
}

#[test]
fn under_random_loss_rack_needs_fewer_timeouts_than_sack_and_carries_no_less() {
    let lossy = [("link.bottleneck.loss", "2 %"), ("link.bottleneck.reverse.loss", "0 %")];
    let measure = |way: Way| {
        let runs: Vec<Measurements> = (1..=20).map(|seed| run(way, &lossy, seed)).collect();
        let (goodput, timeouts) = (mean(&runs, "throughput_bps") / 1e6, mean(&runs, "timeouts"));
        let recoveries = mean(&runs, "fast_retransmits");
        println!("{way:?}: {goodput:.3} Mbit/s, {recoveries:.1} fast recoveries, {timeouts:.2} timeouts");
        (goodput, timeouts)
    };
    let [newreno, sack, _, rack, linux] = [NEWRENO, SACK, SACK_PRR, RACK, LINUX].map(measure);
    assert!(sack.1 < newreno.1 && rack.1 < sack.1 / 2.0 && linux.1 < sack.1 / 2.0);
    assert!(rack.0 > sack.0 && linux.0 > sack.0);
}
