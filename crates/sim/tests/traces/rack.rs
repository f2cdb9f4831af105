//! Recovery by time: RACK-TLP (RFC 8985) with proportional rate reduction (RFC 9937), and recoveries undone (RFC 3522,
//! 2883).

use crate::golden::{Losses, one_path, trace};
use crate::packets::{Arrival, Lines};

const WIRE_MS: u64 = 20;

const TRANSPORT: &str = r#"profile = "rfc", segment = "1000 B", initial_ssthresh = "10 packets",
    delayed_ack = { timeout = "40 ms" }, recovery = "rack", prr = true"#;

fn run(name: &str, segments: u64, losses: Losses<'_>) -> (Lines, Vec<Arrival>) {
    let lines = trace(name, &one_path(&TRANSPORT.replace('\n', " "), &format!("{segments} kB"), losses));
    lines.check(segments);
    let arrivals = lines.arrivals(WIRE_MS);
    (lines, arrivals)
}

/// Two segments of a window of 11 are lost, and the first retransmission of one of them.
fn several_losses() -> (Lines, Vec<Arrival>) {
    let losses = [("forward", 90_200, 90_500), ("forward", 92_700, 93_000), ("forward", 137_400, 137_700)];
    let (lines, arrivals) = run("rack-several-losses", 60, &losses);
    assert_eq!(lines.lost(), [12, 15, 12]);
    (lines, arrivals)
}

/// All of the last window is lost.
fn tail_loss() -> (Lines, Vec<Arrival>) {
    let (lines, arrivals) = run("rack-tail-loss", 30, &[("forward", 100_000, 160_000)]);
    assert!(lines.lost().into_iter().eq(21..30));
    (lines, arrivals)
}

/// From 100 ms on the way forth takes 400 ms instead of 20: nothing is lost, but a timeout comes first.
fn delay() -> (Lines, Vec<Arrival>) {
    let transport = TRANSPORT.replace('\n', " ") + r#", min_rto = "200 ms", undo = true"#;
    let later =
        "\n[[change]]\nlink = \"wire\"\ndirection = \"forward\"\nat = \"100 ms\"\ndelay = \"400 ms\"\n";
    let lines = trace("rack-spurious-timeout", &(one_path(&transport, "60 kB", &[]) + later));
    lines.check(60);
    assert!(lines.lost().is_empty());
    let arrivals = lines.arrivals(WIRE_MS);
    (lines, arrivals)
}

/// What an acknowledgement reports as delivered, of the segments from `from` on.
fn delivered(arrival: &Arrival, from: u64) -> u64 {
    let sacked: u64 = arrival.sacks.iter().map(|&(start, end)| end - start).sum();
    (arrival.ack + sacked).saturating_sub(from)
}

#[test]
fn rfc_8985_6_2_recovery_begins_at_the_third_sacked_segment_where_nothing_was_reordered() {
    let (lines, arrivals) = several_losses();
    let third = arrivals.iter().find(|arrival| delivered(arrival, 12) == 3).expect("three are SACKed");
    assert_eq!(lines.sent_at(third.time_us), [12]);
    assert_eq!(lines.again()[0].1, 12);
}

#[test]
fn rfc_8985_3_2_a_lost_retransmission_needs_no_timeout() {
    let (lines, arrivals) = several_losses();
    let of_hole: Vec<u64> =
        lines.again().into_iter().filter(|&(_, number)| number == 12).map(|(time_us, _)| time_us).collect();
    assert_eq!(of_hole.len(), 2);
    // The next packet that left after the first retransmission tells of its loss.
    let later = lines.data().into_iter().find(|line| line.time_us > of_hole[0]).expect("a later packet");
    let number = later.seq.expect("a segment");
    let report = arrivals
        .iter()
        .find(|arrival| arrival.sacks.iter().any(|&(from, to)| (from..to).contains(&number)))
        .expect("it arrives");
    assert!(of_hole[1].abs_diff(report.time_us) <= 1);
    assert!(of_hole[1] - of_hole[0] < 60_000, "a round trip, not a timeout");
}

#[test]
fn rfc_9937_6_2_what_leaves_in_recovery_is_in_proportion_to_what_is_delivered() {
    let (lines, arrivals) = several_losses();
    let begins = arrivals.iter().position(|arrival| delivered(arrival, 12) == 3).expect("recovery begins");
    // 12 to 24 are outstanding then, two of them known to be delivered before; the window was 11.
    let (flight, ssthresh) = (11, 5);
    let start_us = arrivals[begins].time_us;
    for arrival in &arrivals[begins..begins + 5] {
        let counted = delivered(arrival, 12) - 2;
        let span = start_us - 1..=arrival.time_us + 1;
        let sent = lines.data().into_iter().filter(|line| span.contains(&line.time_us));
        assert_eq!(sent.count() as u64, (counted * ssthresh).div_ceil(flight), "at {} us", arrival.time_us);
    }
}

#[test]
fn rfc_9937_7_the_window_after_recovery_is_ssthresh() {
    let (lines, arrivals) = several_losses();
    let end = arrivals.iter().find(|arrival| arrival.ack >= 25).expect("recovery ends");
    assert_eq!(lines.outstanding(&arrivals, end.time_us), 5);
}

#[test]
fn rfc_8985_7_2_a_probe_of_the_newest_segment_leaves_after_two_round_trips() {
    let (lines, arrivals) = tail_loss();
    let (time_us, number) = lines.again()[0];
    assert_eq!(number, 29);
    let last = arrivals.iter().rfind(|arrival| arrival.time_us < time_us).expect("an acknowledgement");
    let waited_us = time_us - last.time_us;
    // Round trips of 43.7 ms, and more in the first window, whose last segment waits for nine others.
    assert!((2 * 43_000..2 * 53_000).contains(&waited_us), "{waited_us}");
    assert!(waited_us < 1_000_000, "before the timeout");
}

#[test]
fn rfc_8985_7_4_the_answer_to_the_probe_begins_fast_recovery_of_all_that_is_lost() {
    let (lines, arrivals) = tail_loss();
    let answer = arrivals.iter().find(|arrival| arrival.sacks == [(29, 30)]).expect("the probe is answered");
    let again = lines.again();
    assert!(again[1].0.abs_diff(answer.time_us) <= 1);
    let numbers: Vec<u64> = again.iter().map(|&(_, number)| number).collect();
    assert_eq!(numbers, [29, 21, 22, 23, 24, 25, 26, 27, 28], "each once");
}

#[test]
fn rfc_8985_7_3_a_probe_is_new_data_if_there_is_some_whatever_the_window_says() {
    let (lines, arrivals) = delay();
    let window = 12;
    let last = arrivals.iter().rfind(|arrival| arrival.time_us < 200_000).expect("an acknowledgement");
    assert_eq!(lines.outstanding(&arrivals, last.time_us), window);
    let probe = lines.data().into_iter().find(|line| line.time_us > last.time_us + 10).expect("the probe");
    assert!(!probe.again && probe.time_us < 300_000, "{probe:?}");
    assert_eq!(lines.outstanding(&arrivals, probe.time_us), window + 1);
    let (timeout_us, number) = lines.again()[0];
    assert_eq!(
        (number, timeout_us),
        (last.ack, probe.time_us + 200_000),
        "section 7.3: the timeout begins anew"
    );
}

#[test]
fn rfc_4015_3_2_after_a_spurious_timeout_the_window_is_that_of_before_and_new_data_follows() {
    let (lines, arrivals) = delay();
    let again = lines.again();
    assert_eq!(again.len(), 1, "{again:?}");
    let first = arrivals.iter().find(|arrival| arrival.time_us > again[0].0).expect("an original arrives");
    assert_eq!(lines.outstanding(&arrivals, first.time_us), 12);
}

#[test]
fn rfc_2883_4_1_a_duplicate_is_reported_once_below_the_acknowledgement() {
    let (lines, _) = delay();
    let reports: Vec<_> = lines.acks().into_iter().filter(|line| !line.sacks.is_empty()).collect();
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0].sacks, [(21, 22)]);
    assert!(reports[0].ack > Some(21));
    assert_eq!(reports[0].bytes, 52 + 4 + 8);
}
