//! BBR v1: the integers of section A14 of the algorithm reference, the modes and what moves between them (sections
//! 4.2 and 4.3 of draft-cardwell-iccrg-bbr-congestion-control-00).
#![allow(unsafe_code)]

mod common;

use anabranch_cc::{
    CaState, Conn, Context, Controller, MAX_PEERS, OUT_CWND, OUT_PACING, Out, Peer, SSTHRESH_INFINITE, View,
};
use common::controller;
use proptest::prelude::*;

// SAFETY: these are the functions of host/formulas.c, with these types; all but the filter only take and return numbers.
unsafe extern "C" {
    safe fn ab_formula_bbr_rate(delivered: u32, interval_us: u32) -> u32;
    safe fn ab_formula_bbr_bdp(bw: u32, rtt_us: u32, gain: u32) -> u32;
    safe fn ab_formula_bbr_pacing(bw: u32, mss: u32, gain: u32) -> u64;
    fn ab_formula_windowed_max(filter: *mut u32, window: u32, time: u32, value: u32) -> u32;
}

const RTT_US: u32 = 40_000;
/// The rate of the path, in packets of 1000 bytes per second; its BDP is 40 packets.
const PATH: u32 = 1000;
const MSS: u32 = 1000;

/// One subflow, whose host is the test.
struct Flow {
    controller: Controller,
    view: View,
    pacing: u64,
}

impl Flow {
    fn new(set: &[(&str, u32)]) -> Self {
        let view = View {
            now_us: 1_000_000,
            cwnd: 10,
            cwnd_clamp: 1 << 20,
            ssthresh: SSTHRESH_INFINITE,
            mss: MSS,
            n_usable: 1,
            ..View::default()
        };
        let mut flow = Self { controller: controller("bbr", set), view, pacing: 0 };
        flow.call(Controller::init);
        flow
    }

    fn call<R>(&mut self, event: impl FnOnce(&mut Controller, Context<'_>, &mut Out) -> R) -> R {
        let mut out = Out::default();
        let (peers, mut conn) = ([Peer::default(); MAX_PEERS], Conn::default());
        let context = Context { view: &self.view, peers: &peers, conn: &mut conn };
        let result = event(&mut self.controller, context, &mut out);
        if out.mask & OUT_CWND != 0 {
            self.view.cwnd = out.cwnd;
        }
        if out.mask & OUT_PACING != 0 {
            self.pacing = out.pacing_bytes_per_s;
        }
        result
    }

    /// A round trip after the last ACK: one for `delivered` packets sent since then, which come at `rate`.
    fn round(&mut self, rate: u32, rtt_us: u32) {
        let delivered = self.view.cwnd.min(rate * (rtt_us / 1000) / 1000).max(1);
        self.ack(delivered, (u64::from(delivered) * 1_000_000 / u64::from(rate)) as u32, rtt_us, rtt_us);
    }

    /// An ACK after `pause_us` for `delivered` packets that were delivered in `interval_us`.
    fn ack(&mut self, delivered: u32, interval_us: u32, rtt_us: u32, pause_us: u32) {
        let view = &mut self.view;
        view.now_us += u64::from(pause_us);
        view.rs_prior_delivered = view.delivered;
        view.delivered += u64::from(delivered);
        (view.rs_delivered, view.rs_interval_us) = (delivered, interval_us);
        (view.acked, view.acked_sacked) = (delivered, delivered);
        (view.rtt_us, view.rtt_valid, view.srtt8_us) = (rtt_us, 1, 8 * rtt_us);
        self.call(Controller::rate);
    }

    /// Until the pipe is full and the queue has gone.
    fn settled(set: &[(&str, u32)]) -> Self {
        let mut flow = Self::new(set);
        flow.view.in_flight = 100;
        for _ in 0..12 {
            flow.round(PATH, RTT_US);
        }
        flow.view.in_flight = 40;
        flow.view.prior_in_flight = 40;
        flow.round(PATH, RTT_US);
        flow
    }

    /// Pacing over the rate of the path, in hundredths, less the margin of 1 %.
    fn gain_percent(&self) -> u64 {
        (self.pacing * 10_000 / 99 + u64::from(PATH * MSS) / 2) / u64::from(PATH * MSS)
    }
}

#[test]
fn bbr1_a_thousand_packets_per_second_and_40_ms_are_80_packets_at_gain_2() {
    let bw = ab_formula_bbr_rate(1, 1000);
    assert_eq!(bw, 16777);
    assert_eq!(ab_formula_bbr_bdp(bw, 40_000, 512), 80);
    assert_eq!(ab_formula_bbr_bdp(bw, 40_000, 256), 40, "rounded up");
}

#[test]
fn pacing_stays_one_percent_below_gain_times_the_rate() {
    // 16777 / 2^24 packets per microsecond times 1000 bytes, less 1 %.
    assert_eq!(ab_formula_bbr_pacing(16777, 1000, 256), 989_987);
    assert_eq!(ab_formula_bbr_pacing(16777, 1000, 739), 989_987 * 739 / 256);
}

proptest! {
    #[test]
    fn rate_bdp_and_pacing_are_exact_up_to_their_bounds(
        delivered in 1u32..1_000_000, interval_us in 1u32..10_000_000, rtt_us in 1u32..1 << 24, mss in 1u32..65536,
    ) {
        let bw = ab_formula_bbr_rate(delivered, interval_us);
        prop_assert_eq!(
            u64::from(bw),
            ((u64::from(delivered) << 24) / u64::from(interval_us)).min((1 << 29) - 1)
        );
        let packets = ((u128::from(bw) * u128::from(rtt_us) * 739) >> 8).div_ceil(1 << 24);
        prop_assert_eq!(u128::from(ab_formula_bbr_bdp(bw, rtt_us, 739)), packets);
        let bytes = (((u128::from(bw) * u128::from(mss) * 739) >> 8) * 990_000) >> 24;
        prop_assert_eq!(u128::from(ab_formula_bbr_pacing(bw, mss, 739)), bytes);
    }

    /// Never above the exact maximum; never below what came in the last quarter of the window.
    #[test]
    fn the_windowed_maximum_is_one_of_the_window(
        samples in proptest::collection::vec((0u32..3, 1u32..1000), 1..200),
    ) {
        let (mut filter, mut time, mut seen) = ([0; 6], 0, Vec::new());
        for (step, value) in samples {
            time += step;
            seen.push((time, value));
            // SAFETY: the filter has the six elements that the function reads and writes.
            let max = unsafe { ab_formula_windowed_max(filter.as_mut_ptr(), 10, time, value) };
            let of_last = |age: u32| seen.iter().filter(|s| time - s.0 <= age).map(|s| s.1).max().unwrap_or(0);
            prop_assert!(max <= of_last(10) && max >= of_last(2), "{max} {} {}", of_last(10), of_last(2));
        }
    }
}

#[test]
fn startup_begins_with_the_window_in_a_millisecond_and_then_in_the_first_round_trip() {
    let mut flow = Flow::new(&[]);
    assert_eq!(flow.pacing, ab_formula_bbr_pacing(ab_formula_bbr_rate(10, 1000), MSS, 739));
    flow.round(PATH, RTT_US);
    let of_window = ab_formula_bbr_pacing(ab_formula_bbr_rate(10, RTT_US), MSS, 739);
    let of_sample = ab_formula_bbr_pacing(ab_formula_bbr_rate(10, 10_000), MSS, 739);
    assert_eq!(flow.pacing, of_window.max(of_sample));
}

#[test]
fn startup_adds_what_is_delivered_and_ends_after_three_rounds_without_a_quarter_more() {
    let mut flow = Flow::new(&[]);
    flow.view.in_flight = 1000;
    for rate in [250, 500, 1000] {
        let before = flow.view.cwnd;
        flow.round(rate, RTT_US);
        assert_eq!(flow.view.cwnd, before + flow.view.acked_sacked, "at {rate}");
        assert_eq!(flow.gain_percent(), u64::from(rate) * 289 / 1000, "2.887 (739/256) times {rate}");
    }
    for round in 1..=2 {
        flow.round(1249, RTT_US);
        assert!(flow.gain_percent() > 288, "still STARTUP after round {round}");
    }
    flow.round(1249, RTT_US);
    assert_eq!(flow.gain_percent(), 43, "DRAIN: 88/256 of 1249");
}

#[test]
fn a_quarter_more_keeps_startup_going() {
    let mut flow = Flow::new(&[]);
    flow.view.in_flight = 1000;
    for rate in [400, 410, 420, 530, 540, 550] {
        flow.round(rate, RTT_US);
        assert!(flow.gain_percent() >= u64::from(rate) * 288 / 1000, "at {rate}");
    }
}

#[test]
fn drain_lasts_until_the_queue_has_gone() {
    let mut flow = Flow::new(&[]);
    flow.view.in_flight = 100;
    for _ in 0..8 {
        flow.round(PATH, RTT_US);
        assert!([288, 289, 34].contains(&flow.gain_percent()), "{}", flow.gain_percent());
    }
    assert_eq!(flow.gain_percent(), 34, "88/256");
    // BDP 40, and room for three bursts of two segments.
    flow.view.in_flight = 47;
    flow.round(PATH, RTT_US);
    assert_eq!(flow.gain_percent(), 34);
    flow.view.in_flight = 46;
    flow.round(PATH, RTT_US);
    assert!(flow.gain_percent() >= 75, "PROBE_BW");
}

#[test]
fn probe_bw_goes_round_five_quarters_three_quarters_and_six_times_one() {
    let mut flow = Flow::settled(&[]);
    assert_eq!(flow.gain_percent(), 125, "random 0: the probing phase");
    // Above 1.25 BDP with the room for bursts, so that the phase has filled the pipe.
    flow.view.prior_in_flight = 60;
    let mut gains = Vec::new();
    for _ in 0..16 {
        flow.round(PATH, RTT_US + 1);
        gains.push(flow.gain_percent());
    }
    let cycle = [75, 100, 100, 100, 100, 100, 100, 125];
    assert_eq!(gains, [cycle, cycle].concat());
}

#[test]
fn the_probing_phase_lasts_until_it_has_filled_the_pipe_or_lost_a_packet() {
    let mut flow = Flow::settled(&[]);
    for _ in 0..5 {
        flow.round(PATH, RTT_US + 1);
        assert_eq!(flow.gain_percent(), 125, "only 40 in flight");
    }
    flow.view.rs_losses = 1;
    flow.round(PATH, RTT_US + 1);
    assert_eq!(flow.gain_percent(), 75);
}

#[test]
fn where_probe_bw_begins_is_random_but_never_in_the_draining_phase() {
    for random in 0..14 {
        let mut flow = Flow::new(&[]);
        flow.view.random = random;
        flow.view.in_flight = 40;
        while flow.gain_percent() > 125 || flow.gain_percent() < 75 {
            flow.round(PATH, RTT_US);
        }
        let gain = flow.gain_percent();
        assert!(gain == if random % 7 == 0 { 125 } else { 100 }, "random {random}: {gain}");
    }
}

#[test]
fn f1_the_window_in_equilibrium_is_twice_the_bdp_and_room_for_bursts() {
    let mut flow = Flow::settled(&[("aggregation", 0)]);
    flow.view.prior_in_flight = 60;
    let mut windows = Vec::new();
    for _ in 0..16 {
        flow.round(PATH, RTT_US + 1);
        windows.push(flow.view.cwnd);
    }
    // The RTprop is 40 ms: 2 x 40, and 3 bursts of 2; two more in the probing phase.
    let cycle = [86, 86, 86, 86, 86, 86, 86, 88];
    assert_eq!(windows[..], [cycle, cycle].concat());
}

#[test]
fn probe_rtt_comes_after_ten_seconds_lasts_200_ms_and_a_round_and_gives_the_window_back() {
    let mut flow = Flow::settled(&[("aggregation", 0)]);
    let begin = flow.view.now_us;
    while flow.view.cwnd > 4 {
        flow.round(PATH, RTT_US + 100);
        assert!(flow.view.now_us - begin < 11_000_000);
    }
    let entered = flow.view.now_us;
    assert!((9_900_000..10_200_000).contains(&(entered - begin)), "{}", entered - begin);
    flow.view.in_flight = 5;
    flow.round(PATH, RTT_US + 100);
    assert_eq!(flow.view.cwnd, 4, "in_flight has not come down yet");
    flow.view.in_flight = 4;
    let low = flow.view.now_us;
    while flow.view.cwnd == 4 {
        flow.round(100, RTT_US + 100);
    }
    let lasted = flow.view.now_us - low;
    assert!((200_000..=330_000).contains(&lasted), "{lasted}");
    assert!(flow.view.cwnd >= 80, "{}", flow.view.cwnd);
    assert!(flow.gain_percent() >= 75, "the samples of PROBE_RTT do not count: {}", flow.gain_percent());
}

#[test]
fn a_lower_round_trip_time_puts_probe_rtt_off() {
    let mut flow = Flow::settled(&[]);
    for _ in 0..1000 {
        flow.round(PATH, RTT_US);
        assert!(flow.view.cwnd > 4);
    }
}

#[test]
fn recovery_conserves_packets_for_a_round_and_then_the_window_comes_back() {
    let mut flow = Flow::settled(&[("aggregation", 0)]);
    let before = flow.view.cwnd;
    assert_eq!(flow.call(Controller::loss), SSTHRESH_INFINITE, "ssthresh plays no part");
    flow.view.ca_state = CaState::Recovery as u8;
    (flow.view.in_flight, flow.view.rs_losses) = (30, 3);
    let prior = flow.view.delivered - 5; // sent before the recovery
    let in_the_round = |flow: &mut Flow, delivered: u32| {
        flow.view.delivered += u64::from(delivered);
        (flow.view.rs_prior_delivered, flow.view.acked_sacked) = (prior, delivered);
        flow.view.now_us += 1000;
        flow.call(Controller::rate);
    };
    in_the_round(&mut flow, 2);
    assert_eq!(flow.view.cwnd, 32, "what is in flight and what this ACK has freed");
    (flow.view.in_flight, flow.view.rs_losses) = (31, 0);
    in_the_round(&mut flow, 1);
    assert_eq!(flow.view.cwnd, 32);
    flow.round(PATH, RTT_US);
    assert!(flow.view.cwnd > 32 && flow.view.cwnd <= 32 + flow.view.acked_sacked, "the round is over");
    flow.view.ca_state = CaState::Open as u8;
    flow.ack(1, 1000, RTT_US, 1000);
    assert!(flow.view.cwnd >= before - 2, "{} of {before}", flow.view.cwnd);
}

#[test]
fn a_timeout_keeps_the_model() {
    let mut flow = Flow::settled(&[("aggregation", 0)]);
    let (before, pacing) = (flow.view.cwnd, flow.pacing);
    flow.call(Controller::loss);
    (flow.view.cwnd, flow.view.ca_state) = (1, CaState::Loss as u8);
    flow.call(Controller::rto);
    flow.ack(1, 1000, RTT_US, RTT_US);
    assert_eq!(flow.view.cwnd, 4, "the least window");
    flow.view.ca_state = CaState::Open as u8;
    flow.ack(1, 1000, RTT_US, 1000);
    assert!(flow.view.cwnd >= before - 2 && flow.pacing >= pacing * 3 / 5);
}

#[test]
fn a_sample_limited_by_the_application_counts_only_if_it_is_higher() {
    let mut flow = Flow::settled(&[]);
    flow.view.prior_in_flight = 60;
    flow.view.rs_app_limited = 1;
    for _ in 0..30 {
        flow.round(PATH / 2, RTT_US);
    }
    assert!([75, 100, 125].contains(&flow.gain_percent()), "{}", flow.gain_percent());
    flow.round(2 * PATH, RTT_US);
    assert!(flow.gain_percent() >= 150, "{}", flow.gain_percent());
}

#[test]
fn the_rate_falls_when_ten_rounds_have_not_reached_it() {
    let mut flow = Flow::settled(&[]);
    flow.view.prior_in_flight = 60;
    let rounds = (1..40).find(|_| {
        flow.round(PATH / 2, RTT_US);
        flow.gain_percent() <= 125 / 2 + 1
    });
    assert!(rounds.is_some_and(|rounds| (10..=18).contains(&rounds)), "{rounds:?}");
}

#[test]
fn after_a_pause_of_the_application_packets_leave_at_the_estimated_rate() {
    let mut flow = Flow::settled(&[]);
    assert_eq!(flow.gain_percent(), 125);
    flow.view.app_limited = 1;
    flow.view.now_us += 3_000_000;
    flow.call(Controller::idle_restart);
    assert_eq!(flow.gain_percent(), 100);
}

#[test]
fn what_acks_bring_at_once_beyond_the_rate_is_added_to_the_window() {
    let window = |aggregation| {
        let mut flow = Flow::settled(&[("aggregation", aggregation)]);
        flow.view.prior_in_flight = 60;
        // ACKs have fallen behind the rate, and begin anew.
        flow.ack(1, 1000, RTT_US, 1_000_000);
        for _ in 0..16 {
            // Forty packets within a millisecond, once per round trip, which the rate spreads over all of it.
            flow.ack(20, 20_000, RTT_US, 1000);
            flow.ack(20, 20_000, RTT_US, RTT_US - 1000);
        }
        flow.view.cwnd
    };
    assert_eq!(window(1) - window(0), 40);
}
