//! Stations that always have a frame to send, beside closed forms: one station alone, G. Bianchi's model
//! ("Performance analysis of the IEEE 802.11 distributed coordination function", IEEE JSAC 18(3), 2000), a refinement of
//! it, the retry limit (Wu et al., INFOCOM 2002) and the rate anomaly (Heusse et al., INFOCOM 2003).
//!
//! `cargo test -p anabranch-link saturation -- --nocapture` shows the figures of docs/medium.md.

#![allow(clippy::print_stdout)]

use super::*;

/// Bytes of a packet in Bianchi's paper: 8184 bits of payload.
const PAYLOAD: u32 = 1023;

/// Bianchi's table II: FHSS at 1 Mbit/s.
fn fhss(stations: usize, window: u32, stages: u32, retry_limit: u32) -> MediumConfig {
    MediumConfig {
        transmitters: vec![Transmitter::fixed(1_000_000, Probability::ZERO); stations],
        fallback: None,
        basic_rate_bps: 1_000_000,
        lowest_rate_bps: 1_000_000,
        delay: US,
        limit: Limit::Packets(2),
        ack_loss: Probability::ZERO,
        slot: 50 * US,
        sifs: 28 * US,
        framing: Framing { preamble: 128 * US, control_preamble: 128 * US, symbol: None, extension: 0 },
        mac_header_bytes: 34,
        cw_min: window - 1,
        cw_max: (window << stages) - 1,
        retry_limit,
        long_retry_limit: retry_limit,
        rts_threshold_bytes: None,
        after_failure: AfterFailure::Nothing,
        backoff_when_busy: false,
    }
}

/// Access by binary exponential backoff, as a model has it.
struct Access {
    stations: usize,
    window: u32,
    stages: u32,
    /// Transmissions of a frame; `None`: without limit.
    limit: Option<u32>,
    /// Slots added to the mean of a backoff at each stage: one half in Bianchi's chain, whose backoff is drawn from
    /// 0 to W - 1 and which takes one slot for the transmission; none in the refinement.
    more: f64,
}

impl Access {
    /// Probability that a station sends in a slot if each of its transmissions fails with probability `p`:
    /// transmissions over slots, stage by stage.
    fn tau(&self, p: f64) -> f64 {
        let (mut transmissions, mut slots, mut reached) = (0.0, 0.0, 1.0);
        for stage in 0..self.limit.unwrap_or(2_000) {
            let window = f64::from(self.window << stage.min(self.stages));
            transmissions += reached;
            slots += reached * (window / 2.0 + self.more);
            reached *= p;
        }
        transmissions / slots
    }

    /// The fixed point of `tau` and p = 1 - (1 - tau)^(n - 1), by bisection.
    fn solve(&self) -> (f64, f64) {
        let others = self.stations as i32 - 1;
        let (mut low, mut high) = (0.0_f64, 1.0_f64);
        for _ in 0..100 {
            let p = (low + high) / 2.0;
            if 1.0 - (1.0 - self.tau(p)).powi(others) > p {
                low = p;
            } else {
                high = p;
            }
        }
        let p = (low + high) / 2.0;
        (self.tau(p), p)
    }
}

/// Times of the FHSS exchange in microseconds: of a success, and of a collision.
const SUCCESS_US: f64 = 128.0 + 272.0 + 8184.0 + 28.0 + 1.0 + 128.0 + 112.0 + 128.0 + 1.0;
const COLLISION_US: f64 = 128.0 + 272.0 + 8184.0 + 128.0 + 1.0;
const SLOT_US: f64 = 50.0;
const PAYLOAD_US: f64 = 8184.0;

/// Normalised throughput (equation 13 of the paper) and collision probability.
fn bianchi(stations: usize, window: u32, stages: u32, limit: Option<u32>) -> (f64, f64) {
    let (tau, p) = Access { stations, window, stages, limit, more: 0.5 }.solve();
    let n = stations as i32;
    let idle = (1.0 - tau).powi(n);
    let success = f64::from(n) * tau * (1.0 - tau).powi(n - 1);
    let collision = 1.0 - idle - success;
    let slot = idle * SLOT_US + success * SUCCESS_US + collision * COLLISION_US;
    (success * PAYLOAD_US / slot, p)
}

/// The same for what the standard says of frozen counters (Bianchi and Tinnirello 2005, Tinnirello et al. 2010): a
/// counter does not advance during a transmission, so that only a station that has just sent and draws 0 can take
/// the first slot after it. A transmission and the idle slot behind it are one slot of the chain; a drawn 0, once
/// in W successes, repeats the success without contention.
fn refined(stations: usize, window: u32, stages: u32, limit: Option<u32>) -> (f64, f64) {
    let (tau, p) = Access { stations, window, stages, limit, more: 0.0 }.solve();
    let n = stations as i32;
    let idle = (1.0 - tau).powi(n);
    let success = f64::from(n) * tau * (1.0 - tau).powi(n - 1);
    let collision = 1.0 - idle - success;
    let frames = f64::from(window) / f64::from(window - 1);
    let slot =
        idle * SLOT_US + success * (frames * SUCCESS_US + SLOT_US) + collision * (COLLISION_US + SLOT_US);
    let repeated = (1.0 - p) * (frames - 1.0);
    (success * frames * PAYLOAD_US / slot, p / (1.0 + repeated))
}

/// Collisions are rare among few stations: the fewer there are, the longer the run.
fn seconds(stations: usize) -> u64 {
    4_000 / stations as u64 + 400
}

/// Normalised throughput and share of transmissions that collide, over `seconds`.
fn measured(config: MediumConfig, seconds: u64) -> (f64, f64) {
    let stations = config.transmitters.len();
    let mut medium = of_stations(config);
    let mut colliding = 0;
    let end = seconds * 1_000_000 * US;
    let mut now = 0;
    while now < end {
        for station in 0..stations {
            while medium.offer(now, station, Tagged { station, bytes: PAYLOAD }).is_ok() {}
        }
        now = medium.next_event();
        let before = medium.counters().airtime.collisions;
        medium.advance(now, |_| {});
        if medium.counters().airtime.collisions > before {
            colliding += medium.senders.len();
        }
    }
    let counters = medium.counters();
    let throughput = counters.delivered as f64 * PAYLOAD_US * 1_000.0 / now as f64;
    (throughput, colliding as f64 / counters.airtime.transmissions as f64)
}

fn assert_near(what: &str, value: f64, expected: f64, tolerance: f64) {
    let ratio = value / expected;
    assert!((ratio - 1.0).abs() <= tolerance, "{what}: {value:.4} for {expected:.4}");
}

/// Throughput within 10 % of Bianchi's model, as the project asks, and within 1 % of the refinement; 500 s are 55,000
/// exchanges. Collisions within 3 % of the refinement, with a standard error of 1 %: it neglects zeros drawn after a
/// collision. Of two stations each knows from a collision what the other does next, and both models' assumption
/// that failures are independent is worst: only throughput is compared.
#[test]
fn saturation_throughput_is_within_ten_percent_of_bianchi_and_one_of_the_refinement() {
    println!("| W | m | n | measured | Bianchi | ratio | refined | ratio | p measured | Bianchi | refined |");
    for (window, stages) in [(32, 3), (32, 5), (128, 3)] {
        for stations in [2, 5, 10, 20, 50] {
            let (s, p) = measured(fhss(stations, window, stages, u32::MAX), seconds(stations));
            let (bianchi_s, bianchi_p) = bianchi(stations, window, stages, None);
            let (refined_s, refined_p) = refined(stations, window, stages, None);
            println!(
                "| {window} | {stages} | {stations} | {s:.4} | {bianchi_s:.4} | {:.3} | {refined_s:.4} | {:.3} | \
                 {p:.4} | {bianchi_p:.4} | {refined_p:.4} |",
                s / bianchi_s,
                s / refined_s
            );
            let what = format!("W = {window}, m = {stages}, n = {stations}");
            assert_near(&what, s, bianchi_s, 0.10);
            assert_near(&what, s, refined_s, 0.01);
            if stations > 2 {
                assert_near(&format!("p, {what}"), p, refined_p, 0.03);
            }
        }
    }
}

/// Wu et al.: frames are given up after their seventh transmission; five doublings.
#[test]
fn the_retry_limit_changes_throughput_as_its_model_says() {
    for stations in [5, 20, 50] {
        let (s, p) = measured(fhss(stations, 32, 5, 7), seconds(stations));
        let (refined_s, refined_p) = refined(stations, 32, 5, Some(7));
        println!("n = {stations}, 7 transmissions: S {s:.4} of {refined_s:.4}, p {p:.4} of {refined_p:.4}");
        let what = format!("n = {stations}");
        assert_near(&what, s, refined_s, 0.01);
        assert_near(&format!("p, {what}"), p, refined_p, 0.03);
    }
}

/// Bianchi's sum over stages is his closed form (equation 9), so that the fixed point is that of the paper.
#[test]
fn the_sum_over_stages_is_bianchis_closed_form() {
    for p in [0.1, 0.3, 0.45] {
        let access = Access { stations: 2, window: 32, stages: 3, limit: None, more: 0.5 };
        let (w, m) = (32.0, 3);
        let closed =
            2.0 * (1.0 - 2.0 * p) / ((1.0 - 2.0 * p) * (w + 1.0) + p * w * (1.0 - f64::powi(2.0 * p, m)));
        assert_near("tau", access.tau(p), closed, 1e-9);
    }
}

/// 802.11a at 54 Mbit/s, packets of 1500 B, no backoff: DIFS 34, frame 248, SIFS 16, acknowledgement 28 us.
#[test]
fn one_station_without_backoff_takes_exactly_the_time_of_its_exchanges() {
    let ofdm = Framing { preamble: 20 * US, control_preamble: 20 * US, symbol: Some(4 * US), extension: 0 };
    let config = MediumConfig {
        transmitters: vec![Transmitter::fixed(54_000_000, Probability::ZERO)],
        basic_rate_bps: 24_000_000,
        slot: 9 * US,
        sifs: 16 * US,
        framing: ofdm,
        cw_min: 0,
        cw_max: 0,
        ..config()
    };
    let mut medium = of_stations(config);
    let frames = 1_000;
    let (arrived, _) = saturate(&mut medium, 1, 1500, frames * 326 * US);
    // One more frame has begun when the time is over.
    let busy = frames * (248 + 16 + 28) * US + 248 * US;
    assert_eq!((arrived[0], medium.counters().airtime.busy), (frames, busy));
}

#[test]
fn stations_have_equal_shares_in_the_long_run() {
    for stations in [2, 10, 50] {
        let mut medium = of_stations(fhss(stations, 32, 5, 7));
        let (arrived, _) = saturate(&mut medium, stations, PAYLOAD, 2_000_000_000 * US);
        let (sum, squares) = arrived.iter().fold((0.0, 0.0), |(sum, squares), &count| {
            (sum + count as f64, squares + (count as f64).powi(2))
        });
        let jain = sum * sum / (stations as f64 * squares);
        println!("n = {stations}: Jain's index {jain:.5}");
        assert!(jain > 0.99, "{jain} of {stations} stations");
    }
}

/// A station at 1 Mbit/s among stations at 11 Mbit/s: all have as many frames, and what each has follows from the
/// time of one frame of each. Contention is that of the refinement; a collision lasts as long as its longest
/// frame, that of the slow station if it takes part.
#[test]
fn a_slow_station_pulls_the_others_down_to_its_throughput() {
    for stations in [2, 5] {
        let mut transmitters = vec![Transmitter::fixed(11_000_000, Probability::ZERO); stations];
        transmitters[0] = Transmitter::fixed(1_000_000, Probability::ZERO);
        let config = MediumConfig {
            transmitters,
            basic_rate_bps: 1_000_000,
            after_failure: AfterFailure::Nothing,
            retry_limit: u32::MAX,
            ..config()
        };
        let seconds = 400;
        let mut medium = of_stations(config);
        let (arrived, _) = saturate(&mut medium, stations, 1500, seconds * 1_000_000 * US);

        let (tau, p) = Access { stations, window: 32, stages: 5, limit: None, more: 0.0 }.solve();
        let frame = |mbps: f64| 192.0 + 1534.0 * 8.0 / mbps;
        let tail = 10.0 + 192.0 + 112.0 + 50.0;
        let (slot, repeats) = (20.0, 32.0 / 31.0);
        let n = stations as f64;
        let each = tau * (1.0 - p);
        let success = |mbps| each * (repeats * (frame(mbps) + tail) + slot);
        let idle = (1.0 - tau).powi(stations as i32);
        let slow_collides = tau * p;
        let fast_collide = 1.0 - idle - n * each - slow_collides;
        let mean_slot = idle * slot
            + success(1.0)
            + (n - 1.0) * success(11.0)
            + slow_collides * (frame(1.0) + 50.0 + slot)
            + fast_collide * (frame(11.0) + 50.0 + slot);
        let expected = each * repeats / mean_slot * 1e6 * seconds as f64;
        println!("n = {stations}: {arrived:?} frames, {expected:.0} expected");
        for (station, &count) in arrived.iter().enumerate() {
            // 20,000 to 30,000 frames per station; the order of successes scatters more than a Poisson process.
            assert_near(&format!("station {station} of {stations}"), count as f64, expected, 0.03);
        }
    }
}
