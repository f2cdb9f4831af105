//! MFVL: B12 of the algorithm reference, as a host sees it.

mod common;

use common::{
    Connection, acks_to_growth,
    mfvl::{
        Role::{Lia, MFast, MVegas},
        role, roles,
    },
};

const T_US: u64 = 50_000_000;
const LITERAL: [(&str, u32); 1] = [("literal", 1)];

fn connection(n: usize, set: &[(&str, u32)]) -> Connection {
    let mut connection = Connection::new(n, "mfvl", set);
    for k in 0..n {
        connection.set(k, 40, 2, 100_000);
        connection.sample(k, 100_000);
    }
    connection
}

/// Loss events at these times (seconds into the period), one retransmitted packet each, then the period's end.
fn period(connection: &mut Connection, losses_s: &[&[f64]]) {
    let retransmissions: Vec<Vec<(f64, u32)>> =
        losses_s.iter().map(|times| times.iter().map(|t| (*t, 1)).collect()).collect();
    period_with(connection, &retransmissions);
}

/// The same with a number of retransmitted packets per event.
fn period_with(connection: &mut Connection, losses: &[Vec<(f64, u32)>]) {
    let start_us = connection.conn.period_start_us;
    let mut events: Vec<(u64, usize, u32)> = Vec::new();
    for (k, losses) in losses.iter().enumerate() {
        events.extend(losses.iter().map(|(t, packets)| (start_us + (t * 1e6) as u64, k, *packets)));
    }
    events.sort_unstable();
    for (now_us, k, packets) in events {
        connection.now_us = now_us;
        connection.peers[k].retrans += packets;
        connection.fast_retransmit(k);
        connection.subflows[k].view.cwnd = 40;
    }
    let epoch = connection.conn.epoch;
    connection.now_us = start_us + T_US - 1;
    connection.ack(0, 1);
    assert_eq!(connection.conn.epoch, epoch, "no decision before the period ends");
    connection.now_us = start_us + T_US;
    connection.ack(0, 1);
    assert_eq!(connection.conn.epoch, epoch + 1, "one decision, at the first ACK after it");
}

#[test]
fn mfvl_begins_with_mvegas_everywhere_or_as_told() {
    assert_eq!(roles(&connection(2, &[])), [MVegas, MVegas]);
    assert_eq!(roles(&connection(2, &[("initial_fast", 1)])), [MFast, MVegas]);
    assert_eq!(roles(&connection(3, &[("initial_fast", 3)])), [MVegas, MVegas, MFast]);
}

#[test]
fn mfvl1_half_of_the_losses_coinciding_is_not_enough() {
    let mut connection = connection(2, &[]);
    period(&mut connection, &[&[5.0, 6.0, 7.0], &[5.1, 9.0]]);
    assert_eq!(connection.conn.mode, 0);
    assert_eq!(roles(&connection), [MVegas, MFast]);
}

#[test]
fn mfvl2_a_burst_against_one_loss_couples_either_way() {
    for matching in [0, 1] {
        let mut connection = connection(2, &[("matching", matching)]);
        period(&mut connection, &[&[5.0, 5.05, 5.1], &[5.02]]);
        assert_eq!((connection.conn.mode, roles(&connection)), (1, vec![Lia, Lia]), "matching {matching}");
    }
}

#[test]
fn mfvl3_no_loss_on_one_subflow_is_no_shared_bottleneck() {
    let mut connection = connection(2, &[]);
    period(&mut connection, &[&[], &[1.0, 2.0]]);
    assert_eq!(roles(&connection), [MFast, MVegas]);
}

#[test]
fn mfvl4_coinciding_losses_couple() {
    let mut connection = connection(2, &[]);
    period(&mut connection, &[&[5.0, 6.0], &[5.1, 6.1]]);
    assert_eq!((connection.conn.mode, roles(&connection)), (1, vec![Lia, Lia]));
}

#[test]
fn losses_exactly_an_interval_apart_do_not_coincide() {
    for (apart_s, want) in [(0.2, [MVegas, MVegas]), (0.199_999, [Lia, Lia])] {
        let mut connection = connection(2, &[]);
        period(&mut connection, &[&[5.0], &[5.0 + apart_s]]);
        assert_eq!(roles(&connection), want, "{apart_s} s");
    }
}

#[test]
fn one_to_one_gives_each_loss_one_partner_and_finds_the_most_pairs() {
    // Greedy by arrival: (1.00, 1.15) and (1.10, 1.25). All pairs would count 3 of 2.
    let mut matched = connection(2, &[("bn_thresh", 999)]);
    period(&mut matched, &[&[1.0, 1.1], &[1.15, 1.25]]);
    assert_eq!(roles(&matched), [Lia, Lia], "two pairs of two");
    // Two losses close to one: one pair of two, where all pairs count two.
    for (matching, want) in [(0, [MVegas, MVegas]), (1, [Lia, Lia])] {
        let mut connection = connection(2, &[("matching", matching)]);
        period(&mut connection, &[&[1.0, 9.0], &[1.05, 1.1]]);
        assert_eq!(roles(&connection), want, "matching {matching}");
    }
}

/// The largest one-to-one matching, by a second method: points on a line, sorted, two pointers.
fn most_pairs(a: &[f64], b: &[f64], interval_s: f64) -> usize {
    let (mut i, mut j, mut pairs) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        if (a[i] - b[j]).abs() < interval_s {
            (i, j, pairs) = (i + 1, j + 1, pairs + 1);
        } else if a[i] < b[j] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

proptest::proptest! {
    #[test]
    fn matching_as_events_arrive_is_the_largest_matching(
        mut a in proptest::collection::vec(0u32..3000, 1..25),
        mut b in proptest::collection::vec(0u32..3000, 1..25),
        threshold in 0u32..1000,
    ) {
        for times in [&mut a, &mut b] {
            times.sort_unstable();
            times.dedup();
        }
        let [a_s, b_s] = [&a, &b].map(|ms| ms.iter().map(|t| f64::from(*t) / 1000.0).collect::<Vec<_>>());
        let mut connection = connection(2, &[("bn_thresh", threshold), ("interval", 100_500)]);
        period(&mut connection, &[&a_s, &b_s]);
        let pairs = most_pairs(&a_s, &b_s, 0.1005);
        let coupled = pairs * 1000 > threshold as usize * a.len().min(b.len());
        proptest::prop_assert_eq!(connection.conn.mode == 1, coupled, "{} pairs", pairs);
    }
}

#[test]
fn equal_retransmissions_keep_the_assignment() {
    let mut connection = connection(2, &[("initial_fast", 2)]);
    period(&mut connection, &[&[1.0], &[5.0]]);
    assert_eq!(roles(&connection), [MVegas, MFast]);
}

#[test]
fn packets_not_events_decide_the_roles() {
    let mut connection = connection(2, &[]);
    period_with(&mut connection, &[vec![(1.0, 9)], vec![(3.0, 2), (5.0, 2), (7.0, 2)]]);
    assert_eq!(roles(&connection), [MVegas, MFast]);
}

#[test]
fn a_period_counts_its_own_losses_and_retransmissions_only() {
    let mut connection = connection(2, &[]);
    period(&mut connection, &[&[1.0, 2.0, 3.0], &[5.0]]);
    assert_eq!(roles(&connection), [MVegas, MFast]);
    period(&mut connection, &[&[5.0], &[1.0, 2.0]]);
    assert_eq!(roles(&connection), [MFast, MVegas]);
    period(&mut connection, &[&[5.0, 6.0], &[5.1, 6.1]]);
    assert_eq!(roles(&connection), [Lia, Lia]);
    period(&mut connection, &[&[1.0, 5.0], &[3.0]]);
    assert_eq!((connection.conn.mode, roles(&connection)), (0, vec![MVegas, MFast]));
}

#[test]
fn events_of_two_periods_do_not_coincide() {
    let mut connection = connection(2, &[]);
    period(&mut connection, &[&[49.95], &[1.0]]);
    period(&mut connection, &[&[20.0], &[0.05]]);
    assert_eq!(connection.conn.mode, 0);
}

#[test]
fn whole_periods_without_an_ack_are_skipped() {
    let mut connection = connection(2, &[]);
    let start_us = connection.conn.period_start_us;
    connection.now_us = start_us + 3 * T_US + 7;
    connection.ack(1, 1);
    assert_eq!((connection.conn.epoch, connection.conn.period_start_us), (1, start_us + 3 * T_US));
}

#[test]
fn literal_overwrites_the_coupled_choice_and_corrected_does_not() {
    // Check 2: all pairs 3 of min(3, 1); R_1 = 3 > R_2 = 1, so lines 37 to 40 run as well.
    for (set, want) in [(&[][..], [Lia, Lia]), (&LITERAL, [MVegas, MFast])] {
        let mut connection = connection(2, set);
        period(&mut connection, &[&[5.0, 5.05, 5.1], &[5.02]]);
        assert_eq!(roles(&connection), want);
    }
    let mut connection = connection(2, &LITERAL);
    period(&mut connection, &[&[5.0, 6.0], &[5.1, 6.1]]);
    assert_eq!(roles(&connection), [Lia, Lia], "equal retransmissions leave line 31 in force");
}

#[test]
fn literal_counts_one_event_per_packet() {
    // Two bursts of 3 that coincide once, 9 pairs of min(6, 6); as loss events 1 of 2, not above 0.5.
    let losses = [vec![(5.0, 3), (20.0, 3)], vec![(5.1, 3), (30.0, 3)]];
    for (set, want) in [(&[][..], [MVegas, MVegas]), (&LITERAL, [Lia, Lia])] {
        let mut connection = connection(2, set);
        period_with(&mut connection, &losses);
        assert_eq!(roles(&connection), want);
    }
}

#[test]
fn literal_never_resets_match() {
    // First period: one coincidence of two packets each, 4 pairs; MFast goes to the first subflow (4 < 5).
    // Second: none, 2 packets each. 4 / min(2, 2) is above the threshold, 0 / 2 is not.
    let first = [vec![(5.0, 2), (30.0, 1), (40.0, 1)], vec![(5.1, 2), (10.0, 1), (20.0, 1), (25.0, 1)]];
    for (set, want) in [(&[][..], [MFast, MVegas]), (&LITERAL, [Lia, Lia])] {
        let mut connection = connection(2, set);
        period_with(&mut connection, &first);
        assert_eq!(roles(&connection), [MFast, MVegas]);
        period(&mut connection, &[&[1.0, 2.0], &[11.0, 12.0]]);
        assert_eq!(roles(&connection), want);
    }
}

#[test]
fn hysteresis_keeps_mfast_until_another_subflow_is_clearly_better() {
    for (hysteresis, want) in [(0, [MVegas, MFast]), (200, [MFast, MVegas]), (99, [MVegas, MFast])] {
        let mut connection = connection(2, &[("initial_fast", 1), ("hysteresis", hysteresis)]);
        period_with(&mut connection, &[vec![(1.0, 10)], vec![(5.0, 9)]]);
        assert_eq!(roles(&connection), want, "hysteresis {hysteresis} permille");
    }
}

#[test]
fn more_subflows_are_coupled_in_groups_and_the_best_of_the_rest_runs_mfast() {
    let mut connection = connection(5, &[]);
    // 0 and 2 coincide, 2 and 4 coincide (0 and 4 do not): one group. 1 and 3 stand alone; 3 loses less.
    period(&mut connection, &[&[5.0], &[20.0, 21.0], &[5.15], &[30.0], &[5.3]]);
    assert_eq!(roles(&connection), [Lia, MVegas, Lia, MFast, Lia]);
}

#[test]
fn lia_couples_the_members_of_its_group_only() {
    // Equal windows and RTTs of 10: two members grow by 1 per 40 packets, three would by 1 per 90.
    let mut connection = connection(3, &[]);
    period(&mut connection, &[&[5.0], &[5.1], &[20.0]]);
    assert_eq!(roles(&connection), [Lia, Lia, MFast]);
    for k in 0..3 {
        connection.set(k, 10, 2, 100_000);
        connection.subflows[k].view.cwnd_cnt = 0;
    }
    assert_eq!(acks_to_growth(&mut connection, 0), 40);
}

#[test]
fn three_subflows_without_one_minimum_keep_the_assignment() {
    let mut connection = connection(3, &[("initial_fast", 2)]);
    period(&mut connection, &[&[1.0], &[10.0, 11.0], &[20.0]]);
    assert_eq!(roles(&connection), [MVegas, MFast, MVegas]);
}

#[test]
fn a_lone_subflow_keeps_its_assignment() {
    for (initial_fast, want) in [(0, MVegas), (1, MFast)] {
        let mut connection = connection(2, &[("initial_fast", initial_fast)]);
        connection.peers[1].usable = 0;
        let start_us = connection.conn.period_start_us;
        connection.now_us = start_us + T_US;
        connection.ack(0, 1);
        assert_eq!((connection.conn.epoch, role(&connection, 0)), (1, want));
    }
}

#[test]
fn a_change_of_role_keeps_window_threshold_and_base_rtt() {
    let mut connection = connection(2, &[]);
    connection.sample(1, 80_000);
    period(&mut connection, &[&[1.0, 2.0], &[5.0]]);
    connection.set(1, 40, 2, 100_000);
    connection.sample(1, 100_000);
    assert_eq!((connection.cwnd(1), connection.ssthresh(1)), (40, 2));
    // MFast with base 80 ms and average 100 ms: 20 + 0.25 (0.8 * 40 + 100) = 53. Without the base it would be
    // below the threshold of multiplicative increase.
    for round in 0..2 {
        connection.subflows[1].view.round_start = 1;
        connection.ack(1, 1);
        connection.subflows[1].view.round_start = 0;
        connection.now_us += 100_000;
        assert_eq!(connection.cwnd(1), [40, 53][round]);
    }
}

#[test]
fn a_subflow_beyond_the_slots_runs_mvegas_alone() {
    let mut connection = connection(1, &[]);
    connection.subflows[0].view.self_index = 8;
    let before = connection.conn.words;
    connection.now_us += T_US;
    connection.ack(0, 1);
    assert_eq!(connection.fast_retransmit(0), 30);
    assert_eq!(connection.conn.words, before);
}
