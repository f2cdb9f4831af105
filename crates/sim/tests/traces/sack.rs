//! Recovery by selective acknowledgements: RFC 2018, 6675, with delayed acknowledgements (RFC 1122, 5681) and an
//! initial window of ten (RFC 6928).

use std::collections::BTreeSet;

use crate::golden::{Losses, one_path, trace};
use crate::packets::{Arrival, Lines};

const WIRE_MS: u64 = 20;
/// Of a segment, with headers, over either link.
const TRANSMISSION_US: u64 = 842;
const DELAYED_ACK_US: u64 = 200_000;

const TRANSPORT: &str = r#"profile = "rfc", segment = "1000 B", initial_ssthresh = "10 packets""#;

fn run(name: &str, segments: u64, losses: Losses<'_>) -> (Lines, Vec<Arrival>) {
    let lines = trace(name, &one_path(TRANSPORT, &format!("{segments} kB"), losses));
    lines.check(segments);
    let arrivals = lines.arrivals(WIRE_MS);
    (lines, arrivals)
}

/// One segment of a window of 11 is lost.
fn single_loss() -> (Lines, Vec<Arrival>) {
    let (lines, arrivals) = run("sack-single-loss", 30, &[("forward", 90_200, 90_500)]);
    assert_eq!(lines.lost(), [12]);
    (lines, arrivals)
}

/// Four segments of the last window are lost: one with many above it, one with three, one with one, and the last.
fn several_losses() -> (Lines, Vec<Arrival>) {
    let losses = [
        ("forward", 89_300, 89_700),
        ("forward", 92_700, 93_000),
        ("forward", 95_200, 95_600),
        ("forward", 96_900, 97_300),
    ];
    let (lines, arrivals) = run("sack-several-losses", 21, &losses);
    assert_eq!(lines.lost(), [11, 15, 18, 20]);
    (lines, arrivals)
}

/// A segment is lost, and its retransmissions too, by duplicates and by the timer.
fn lost_retransmission() -> (Lines, Vec<Arrival>) {
    let losses =
        [("forward", 90_200, 90_500), ("forward", 136_500, 136_800), ("forward", 1_136_500, 1_136_800)];
    let (lines, arrivals) = run("sack-lost-retransmission", 30, &losses);
    assert_eq!(lines.lost(), [12, 12, 12]);
    (lines, arrivals)
}

/// When a duplicate is one by RFC 6675 section 2: it brings new SACK information.
fn duplicates(arrivals: &[Arrival]) -> Vec<&Arrival> {
    arrivals.iter().filter(|arrival| arrival.duplicate && !arrival.sacks.is_empty()).collect()
}

#[test]
fn rfc_6928_2_ten_segments_leave_at_once() {
    let (lines, _) = single_loss();
    let first = lines.data()[0].time_us;
    assert!(lines.sent_at(first).into_iter().eq(0..10));
}

#[test]
fn rfc_5681_4_2_two_segments_or_the_delay_bring_an_acknowledgement() {
    let (lines, _) = single_loss();
    let acks = lines.acks();
    let in_order = acks.iter().filter(|line| line.sacks.is_empty()).map(|line| line.ack.expect("an ack"));
    let steps: Vec<u64> =
        std::iter::once(0).chain(in_order.clone()).zip(in_order).map(|(a, b)| b - a).collect();
    // After six pairs, one acknowledgement fills the gap; one segment is left for the timer.
    assert_eq!(steps, [2, 2, 2, 2, 2, 2, 13, 2, 2, 1]);
    let (before, last) = (acks[acks.len() - 2], acks[acks.len() - 1]);
    // The last segment was right behind the one before it.
    assert!((before.time_us + TRANSMISSION_US + DELAYED_ACK_US).abs_diff(last.time_us) <= 2);
}

#[test]
fn rfc_5681_4_2_a_segment_beyond_a_gap_and_one_that_fills_a_part_are_acknowledged_at_once() {
    // Segments that come while a gap is open; of the last trace, one comes twice.
    for ((lines, _), arrivals) in [(single_loss(), 12), (several_losses(), 8), (lost_retransmission(), 18)] {
        let gapped = lines.acks().into_iter().filter(|line| !line.sacks.is_empty());
        let times: Vec<u64> = gapped.map(|line| line.time_us).collect();
        assert_eq!(times.len(), arrivals);
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= TRANSMISSION_US - 1), "{times:?}");
    }
}

#[test]
fn rfc_2018_4_the_first_block_holds_the_segment_that_has_just_come() {
    for (lines, _) in [single_loss(), several_losses(), lost_retransmission()] {
        let mut known = BTreeSet::new();
        let mut reports = 0;
        for line in lines.acks().into_iter().filter(|line| !line.sacks.is_empty()) {
            let held: BTreeSet<u64> = line.sacks.iter().flat_map(|&(from, to)| from..to).collect();
            let fresh: Vec<u64> = held.difference(&known).copied().collect();
            if let [arrived] = fresh[..] {
                let (from, to) = line.sacks[0];
                assert!((from..to).contains(&arrived), "{line:?}");
                reports += 1;
            }
            known.extend(held);
        }
        assert!(reports >= 6, "{reports}");
    }
}

#[test]
fn rfc_2018_4_blocks_are_maximal_and_above_the_acknowledgement() {
    let (lines, _) = several_losses();
    for line in lines.acks() {
        for (at, &(from, to)) in line.sacks.iter().enumerate() {
            assert!(line.ack < Some(from) && from < to, "{line:?}");
            let apart = |&(start, end): &(u64, u64)| to < start || end < from;
            assert!(line.sacks[at + 1..].iter().all(apart), "{line:?}");
        }
        assert_eq!(line.bytes, 52 + if line.sacks.is_empty() { 0 } else { 4 + 8 * line.sacks.len() as u64 });
    }
}

#[test]
fn rfc_6675_5_step_3_the_first_two_duplicates_let_out_a_new_segment_each() {
    let (lines, arrivals) = single_loss();
    let duplicates = duplicates(&arrivals);
    assert_eq!(lines.sent_at(duplicates[0].time_us), [23]);
    assert_eq!(lines.sent_at(duplicates[1].time_us), [24]);
}

#[test]
fn rfc_6675_5_step_4_the_third_duplicate_brings_the_retransmission_at_once_and_only_once() {
    let (lines, arrivals) = single_loss();
    let third = duplicates(&arrivals)[2];
    assert_eq!(third.sacks, [(13, 16)]);
    assert_eq!(lines.sent_at(third.time_us), [12]);
    assert_eq!(lines.again().len(), 1);
}

#[test]
fn rfc_6675_5_step_c_new_data_leaves_only_while_the_pipe_is_below_half_the_flight() {
    let (lines, arrivals) = single_loss();
    let all = duplicates(&arrivals);
    let ssthresh = (lines.outstanding(&arrivals, all[0].time_us) - 1) / 2;
    assert_eq!(ssthresh, 5);
    let mut sent = 0;
    for duplicate in &all[3..] {
        let sacked: u64 = duplicate.sacks.iter().map(|&(from, to)| to - from).sum();
        // Of what is not SACKed, the hole counts once, for its retransmission (SetPipe, section 4).
        let pipe = lines.outstanding(&arrivals, duplicate.time_us - 2) - sacked;
        let new = lines.new_at(duplicate.time_us).len() as u64;
        assert_eq!(new, ssthresh.saturating_sub(pipe), "pipe {pipe}");
        sent += new;
    }
    assert_eq!(sent, 4, "the pipe has drained before the hole is filled");
}

#[test]
fn rfc_6675_4_a_segment_is_lost_once_three_above_it_are_sacked() {
    let (lines, arrivals) = several_losses();
    let (time_us, _) = *lines.again().iter().find(|&&(_, number)| number == 15).expect("it is sent again");
    let reports = arrivals.iter().find(|a| above(a, 15) >= 3).expect("three above it are SACKed");
    assert!(reports.time_us.abs_diff(time_us) <= 1);
}

#[test]
fn rfc_6675_4_next_seg_rule_3_repeats_a_segment_with_fewer_above_it_when_nothing_new_is_left() {
    let (lines, arrivals) = several_losses();
    let (time_us, _) = *lines.again().iter().find(|&&(_, number)| number == 18).expect("it is sent again");
    let latest = arrivals.iter().rfind(|arrival| arrival.time_us <= time_us + 1).expect("an acknowledgement");
    assert_eq!(above(latest, 18), 1);
    // Behind what is certainly lost (rule 1).
    assert_eq!(lines.sent_at(time_us), [15, 18]);
}

#[test]
fn rfc_6675_4_next_seg_rule_4_the_rescue_is_the_highest_segment_without_a_sack_above_it() {
    let (lines, arrivals) = several_losses();
    let (time_us, _) = *lines.again().iter().find(|&&(_, number)| number == 20).expect("it is sent again");
    assert_eq!(lines.sent_at(time_us), [20], "once in a recovery, alone");
    assert!(arrivals.iter().filter(|arrival| arrival.time_us <= time_us).all(|a| above(a, 20) == 0));
    assert_eq!(lines.again().len(), 4, "exactly one retransmission per hole, and no timeout");
}

fn above(arrival: &Arrival, number: u64) -> u64 {
    arrival.sacks.iter().map(|&(from, to)| to.saturating_sub(from.max(number))).sum()
}

#[test]
fn rfc_6298_5_a_lost_retransmission_waits_for_the_timer_which_doubles() {
    let (lines, _) = lost_retransmission();
    let of_hole = lines.again().into_iter().filter(|&(_, number)| number == 12);
    let times: Vec<u64> = of_hole.map(|(time_us, _)| time_us).collect();
    let waits: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(waits, [1_000_000, 2_000_000], "min_rto, then twice it");
}

#[test]
fn rfc_6675_5_1_after_a_timeout_only_what_is_not_sacked_is_sent_again() {
    let (lines, _) = lost_retransmission();
    let numbers: Vec<u64> = lines.again().into_iter().map(|(_, number)| number).collect();
    assert_eq!(numbers, [12, 29, 12, 12], "the second is the rescue of the recovery before");
}
