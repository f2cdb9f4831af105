//! Recovery as in 1988: Tahoe's fast retransmit, slow start and go-back-N (Jacobson 1988; A1 of the algorithm reference).

use crate::golden::{Losses, one_path, trace};
use crate::packets::{Arrival, Lines};

const WIRE_MS: u64 = 20;
const SEGMENTS: u64 = 60;

/// Sixteen segments at first and congestion avoidance from there.
const TRANSPORT: &str = r#"profile = "ns2", recovery = "tahoe", limited_transmit = false,
    initial_window = "16 packets", initial_ssthresh = "16 packets""#;

fn run(name: &str, losses: Losses<'_>) -> (Lines, Vec<Arrival>) {
    let lines = trace(name, &one_path(TRANSPORT, "60 kB", losses));
    lines.check(SEGMENTS);
    let arrivals = lines.arrivals(WIRE_MS);
    (lines, arrivals)
}

/// The first segment of the first window is lost.
fn single_loss() -> (Lines, Vec<Arrival>) {
    let (lines, arrivals) = run("tahoe-single-loss", &[("forward", 43_500, 44_300)]);
    assert_eq!(lines.lost(), [0]);
    (lines, arrivals)
}

#[test]
fn a1_the_third_duplicate_brings_the_retransmission_and_the_rest_nothing() {
    let (lines, arrivals) = single_loss();
    let duplicates: Vec<_> = arrivals.iter().filter(|arrival| arrival.duplicate).collect();
    assert_eq!(duplicates.len(), 15);
    for (at, duplicate) in duplicates.iter().enumerate() {
        let sent = lines.sent_at(duplicate.time_us);
        assert_eq!(sent, if at == 2 { vec![0] } else { vec![] }, "duplicate {at}");
    }
}

/// Segments that leave within `since_us` and a round trip.
fn sent_within(lines: &Lines, since_us: u64, until_us: u64) -> usize {
    lines.data().iter().filter(|line| (since_us..until_us).contains(&line.time_us)).count()
}

/// From 16: a window of one, then 2, 4, 8 and, in congestion avoidance, 9.
#[test]
fn a1_the_windows_after_the_loss_are_1_2_4_8_9() {
    let (lines, arrivals) = single_loss();
    let third = arrivals.iter().filter(|arrival| arrival.duplicate).nth(2).expect("three duplicates").time_us;
    let after: Vec<u64> =
        arrivals.iter().filter(|a| !a.duplicate && a.time_us > third).map(|a| a.time_us).collect();
    // Each round trip begins with the acknowledgement of the first segment of the one before.
    let mut first = 0;
    let mut windows = vec![sent_within(&lines, third, after[0])];
    while windows.len() < 5 {
        let acked = if windows.len() == 1 { 1 } else { windows[windows.len() - 1] };
        windows.push(sent_within(&lines, after[first], after[first + acked]));
        first += acked;
    }
    assert_eq!(windows, [1, 2, 4, 8, 9]);
}
