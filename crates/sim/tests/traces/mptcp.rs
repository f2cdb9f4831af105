//! Opening subflows and moving data between them: RFC 8684.

use crate::golden::{lossy, paths, trace};
use crate::packets::{Line, Lines, What};

/// Windows of four, so that the traces stay short.
const TRANSPORT: &str =
    r#"profile = "rfc", segment = "1000 B", window_cap = "4 packets", min_rto = "100 ms""#;

/// Two paths, nothing lost.
fn join() -> Lines {
    trace("mptcp-join", &paths(TRANSPORT, "60 kB", &[10, 20], ""))
}

/// Of two joins one loses its third packet, the other its fourth.
fn join_with_losses() -> Lines {
    let changes =
        lossy("wire1", ("forward", 90_000, 90_500)) + &lossy("wire2", ("reverse", 140_000, 140_500));
    trace("mptcp-join-lost", &paths(TRANSPORT, "120 kB", &[10, 20, 30], &changes))
}

/// The second path loses everything from 160 ms to 2 s.
fn reinjection() -> Lines {
    trace(
        "mptcp-reinjection",
        &paths(TRANSPORT, "80 kB", &[10, 20], &lossy("wire1", ("forward", 160_000, 2_000_000))),
    )
}

/// The packets of a handshake in order: without data, on this subflow, up to the first segment.
fn handshake(lines: &Lines) -> Vec<&Line> {
    lines.0.iter().take_while(|line| line.seq.is_none()).collect()
}

fn is_third(line: &Line) -> bool {
    line.what == What::Forth && line.join && !line.syn
}

fn is_fourth(line: &Line) -> bool {
    line.is_ack() && line.ack == Some(0)
}

#[test]
fn rfc_8684_3_1_the_first_three_packets_carry_mp_capable_and_data_follows_at_once() {
    let first = join().of(0);
    let opening = handshake(&first);
    let seen: Vec<_> = opening.iter().map(|line| (line.what, line.syn, line.capable, line.ack)).collect();
    let (forth, back) = (What::Forth, What::Back);
    assert_eq!(seen, [(forth, true, true, None), (back, true, true, Some(0)), (forth, false, true, Some(0))]);
    assert_eq!(first.data()[0].time_us, opening[2].time_us);
}

#[test]
fn rfc_8684_3_1_subflows_join_at_the_first_data_acknowledgement_and_not_before() {
    let lines = join();
    let first = lines.0.iter().find(|line| line.is_ack() && line.dack > Some(0)).expect("a DATA_ACK");
    let arrives = first.time_us + 11_000 + 2 * 8 * first.bytes / 10;
    let joins: Vec<&Line> = lines.0.iter().filter(|line| line.join && line.syn).collect();
    assert!(joins[0].time_us.abs_diff(arrives) <= 1, "{:?}", joins[0]);
}

#[test]
fn rfc_8684_3_2_a_join_takes_four_packets_and_no_data_leaves_before_the_fourth() {
    let second = join().of(1);
    let opening = handshake(&second);
    let seen: Vec<_> = opening.iter().map(|line| (line.what, line.syn, line.join)).collect();
    let (forth, back) = (What::Forth, What::Back);
    assert_eq!(seen, [(forth, true, true), (back, true, true), (forth, false, true), (back, false, false)]);
    let fourth = opening[3];
    let arrives = fourth.time_us + 21_000 + 2 * 8 * fourth.bytes / 10;
    assert!(second.data()[0].time_us.abs_diff(arrives) <= 1, "and data leaves as soon as it has come");
}

#[test]
fn rfc_8684_3_2_a_lost_third_packet_is_repeated_until_the_fourth_comes() {
    let second = join_with_losses().of(1);
    let lost: Vec<&Line> = second.0.iter().filter(|line| line.what == What::Lost).collect();
    assert!(lost.len() == 1 && lost[0].join && !lost[0].syn, "{lost:?}");
    check_repeated_third(&second, 1);
}

#[test]
fn rfc_8684_3_2_a_lost_fourth_packet_is_sent_again_when_the_third_is() {
    let third = join_with_losses().of(2);
    let lost: Vec<&Line> = third.0.iter().filter(|line| line.what == What::Lost).collect();
    assert!(lost.len() == 1 && !lost[0].join && lost[0].seq.is_none(), "{lost:?}");
    check_repeated_third(&third, 2);
}

/// The third packet leaves twice, a timeout apart; data follows the fourth that has not been lost.
fn check_repeated_third(lines: &Lines, fourths: usize) {
    let opening = handshake(lines);
    let thirds: Vec<u64> = opening.iter().filter(|line| is_third(line)).map(|line| line.time_us).collect();
    let answers: Vec<u64> = opening.iter().filter(|line| is_fourth(line)).map(|line| line.time_us).collect();
    assert_eq!((thirds.len(), answers.len()), (2, fourths));
    let syns: Vec<u64> = opening.iter().filter(|line| line.syn).map(|line| line.time_us).collect();
    // One sample of the round trip: three times itself (RFC 6298 section 2.2).
    let rto_us = 3 * (thirds[0] - syns[0]);
    assert!((thirds[1] - thirds[0]).abs_diff(rto_us) <= 3, "{thirds:?}");
    assert!(lines.data()[0].time_us > *answers.last().expect("a fourth packet"));
}

#[test]
fn rfc_8684_3_3_data_acknowledgements_are_cumulative_over_all_subflows() {
    for (lines, segments) in [(join(), 60), (join_with_losses(), 120), (reinjection(), 80)] {
        let dacks: Vec<u64> = lines.acks().iter().filter_map(|line| line.dack).collect();
        assert!(dacks.is_sorted(), "{dacks:?}");
        assert_eq!(dacks.last(), Some(&segments));
        let mut fresh: Vec<u64> = lines.data().iter().filter_map(|line| line.dsn).collect();
        fresh.sort_unstable();
        fresh.dedup();
        assert!(fresh.into_iter().eq(0..segments), "every data segment has been sent");
    }
}

#[test]
fn without_loss_no_data_segment_is_sent_twice() {
    let mut sent: Vec<u64> = join().data().iter().filter_map(|line| line.dsn).collect();
    sent.sort_unstable();
    assert!(sent.into_iter().eq(0..60));
}

#[test]
fn rfc_8684_3_3_6_a_timeout_moves_the_outstanding_data_to_the_other_subflow() {
    let lines = reinjection();
    let second = lines.of(1);
    let mut lost = lost_dsn(&second);
    lost.sort_unstable();
    lost.dedup();
    assert_eq!(lost.len(), 4, "a window: {lost:?}");
    let (timeout_us, _) = second.again()[0];
    let others = lines.of(0);
    for dsn in lost {
        let moved: Vec<&Line> = others.data().into_iter().filter(|line| line.dsn == Some(dsn)).collect();
        assert_eq!(moved.len(), 1, "{dsn} goes over the other subflow once");
        assert!(!moved[0].again && moved[0].time_us >= timeout_us, "as a new segment there: {:?}", moved[0]);
    }
    let first = others.data().into_iter().find(|line| line.time_us >= timeout_us).expect("a segment");
    assert_eq!(first.dsn, Some(lost_dsn(&second)[0]), "before any new data");
}

#[test]
fn rfc_8684_3_3_6_the_original_subflow_still_delivers_what_it_was_given() {
    let second = reinjection().of(1);
    let given = second.data().iter().filter_map(|line| line.seq).max().expect("it carried data") + 1;
    assert_eq!(second.acks().last().and_then(|line| line.ack), Some(given));
    let again = second.again();
    let (first, rest) = again.split_first().expect("it timed out");
    assert_eq!(rest[0].1, first.1, "the same segment");
    let waits: Vec<u64> = again.windows(2).take(3).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(waits[1].abs_diff(2 * waits[0]) <= 2, "RFC 6298 section 5.5: {waits:?}");
}

fn lost_dsn(lines: &Lines) -> Vec<u64> {
    lines.0.iter().filter(|line| line.what == What::Lost).filter_map(|line| line.dsn).collect()
}
