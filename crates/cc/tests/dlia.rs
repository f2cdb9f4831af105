//! D-LIA (part B7 of the algorithm reference): LIA's increase, a decrease that follows the distance of losses.

mod common;

use anabranch_cc::Controller;
use common::{Connection, subflows};
use proptest::prelude::*;

const EQUAL: [u32; 2] = [100_000, 100_000];

/// Loses at the given windows, one after the other.
fn losses(connection: &mut Connection, windows: &[u32]) -> Vec<u32> {
    let lose = |window: &u32| {
        connection.subflows[0].view.cwnd = *window;
        connection.fast_retransmit(0)
    };
    windows.iter().map(lose).collect()
}

/// Share that the last loss left, in percent: the word behind the state of LIA.
fn beta_percent(connection: &Connection) -> u32 {
    let bytes = connection.subflows[0].controller.state_bytes();
    u32::from_ne_bytes(bytes[12..16].try_into().expect("four bytes"))
}

#[test]
fn dlia1_losses_at_40_25_and_16() {
    let mut connection = subflows("dlia", &[], [40, 40], EQUAL);
    for (window, left, beta) in [(40, 20, 50), (25, 14, 57), (16, 10, 64)] {
        assert_eq!(losses(&mut connection, &[window]), [left]);
        assert_eq!(beta_percent(&connection), beta, "after the loss at {window}");
    }
}

#[test]
fn losses_close_together_keep_90_percent_and_losses_far_apart_half() {
    let mut connection = subflows("dlia", &[], [100, 100], EQUAL);
    let mut window = 100_000;
    for _ in 0..10 {
        window = losses(&mut connection, &[window])[0];
    }
    assert_eq!(beta_percent(&connection), 90);
    losses(&mut connection, &[1_000_000]);
    losses(&mut connection, &[10_000_000, 100_000_000]);
    assert_eq!(beta_percent(&connection), 50);
}

#[test]
fn the_window_keeps_two_packets() {
    assert_eq!(losses(&mut subflows("dlia", &[], [3, 3], EQUAL), &[3, 2, 2]), [2, 2, 2]);
}

#[test]
fn a_subflow_that_has_lost_its_peers_keeps_the_adaptive_decrease() {
    let mut connection = subflows("dlia", &[], [40, 40], EQUAL);
    losses(&mut connection, &[40]);
    connection.peers[1].usable = 0;
    assert_eq!(losses(&mut connection, &[25]), [14]);
    // One that heard of a peer, but has had no loss with it.
    let mut connection = Connection::new(1, "dlia", &[]);
    connection.set(0, 40, 1, 100_000);
    connection.call(0, Controller::peer_join);
    assert_eq!(losses(&mut connection, &[40, 25]), [20, 14]);
}

#[test]
fn without_ever_a_peer_it_is_reno() {
    let mut connection = Connection::new(1, "dlia", &[]);
    connection.set(0, 40, 1, 100_000);
    assert_eq!(losses(&mut connection, &[40, 25, 16]), [20, 12, 8]);
}

proptest! {
    #[test]
    fn the_increase_is_lias(
        windows in [2u32..500, 2u32..500],
        rtts_us in [1_000u32..1_000_000, 1_000u32..1_000_000],
        precision in 0u32..2,
        acked in proptest::collection::vec(1u32..4, 1..500),
    ) {
        let [mut dlia, mut lia] =
            ["dlia", "lia"].map(|name| subflows(name, &[("precision", precision)], windows, rtts_us));
        for packets in acked {
            dlia.ack(0, packets);
            lia.ack(0, packets);
            prop_assert_eq!(dlia.cwnd(0), lia.cwnd(0));
        }
    }

    /// Real numbers: the share moves by a quarter towards w' / w. Whole percent may be one off in each step.
    #[test]
    fn the_share_is_that_of_real_numbers_to_the_percent(windows in proptest::collection::vec(200u32..5000, 1..20)) {
        let mut connection = subflows("dlia", &[], [200, 200], EQUAL);
        let (mut beta, mut before) = (0.5f64, 2.0);
        for window in windows {
            let left = losses(&mut connection, &[window])[0];
            beta = (0.25 * (before / f64::from(window)).min(1.0) + 0.75 * beta).clamp(0.5, 0.9);
            // The error of a step, below 1.25 percent, shrinks by a quarter in the next: at most 5 in all.
            let got = f64::from(beta_percent(&connection)) / 100.0;
            prop_assert!(got <= beta + 1e-9 && got >= beta - 0.05, "{got} and {beta}");
            before = f64::from(left);
        }
    }
}
