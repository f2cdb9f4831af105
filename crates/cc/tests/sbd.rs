//! Shared-bottleneck detection after RFC 8382 (B13 of the algorithm reference): what MFVL publishes and decides with
//! `detector = rfc8382`.

mod common;

use common::{
    Connection, acks_to_growth,
    mfvl::{
        Role::{Lia, MFast, MVegas},
        roles,
    },
};

const T_US: u64 = 350_000;
const M: usize = 30;
const N: usize = 50;
/// MFVL decides at the end of every base interval.
const EVERY_INTERVAL: [(&str, u32); 2] = [("detector", 1), ("period", T_US as u32)];

/// The figures of a flow as RFC 8382 defines them.
#[derive(Clone, Copy, Debug)]
struct Figures {
    skew: f64,
    var_ms: f64,
    freq: f64,
    loss: f64,
}

const BOTTLENECK: Figures = Figures { skew: 0.02, var_ms: 5.0, freq: 0.1, loss: 0.0 };

/// The words that a flow with these figures publishes (`sbd_publish`).
fn words(f: Figures) -> [u64; 4] {
    let q16 = |x: f64| (x * 65536.0) as u64;
    let crossings = (f.freq * N as f64).round() as u64;
    [q16(1.0 + f.skew) | q16(f.loss) << 32, (f.var_ms * 1e6) as u64 | crossings << 32 | 1 << 40, 0, 0]
}

/// What a subflow has published, if it has been there for M intervals.
fn published(connection: &Connection, k: usize) -> Option<Figures> {
    let [first, second, ..] = connection.peers[k].public;
    let q16 = |x: u64| (x & 0xffff_ffff) as f64 / 65536.0;
    (second >> 40 & 1 == 1).then(|| Figures {
        skew: q16(first) - 1.0,
        var_ms: (second & 0xffff_ffff) as f64 / 1e6,
        freq: (second >> 32 & 0xff) as f64 / N as f64,
        loss: q16(first >> 32),
    })
}

fn connection(n: usize, set: &[(&str, u32)]) -> Connection {
    let mut connection = Connection::new(n, "mfvl", set);
    for k in 0..n {
        connection.set(k, 10, 2, 100_000);
        connection.sample(k, 100_000);
    }
    connection
}

/// One base interval at whose end the subflows have these figures; `None`: they have not yet any.
fn interval(connection: &mut Connection, figures: &[Option<Figures>]) {
    for (peer, figures) in connection.peers.iter_mut().zip(figures) {
        peer.public = figures.map_or([0; 4], words);
    }
    connection.now_us += T_US;
    connection.sample(0, 100_000);
}

/// Whether two flows with these figures are put into one group.
fn grouped(a: Figures, b: Figures) -> bool {
    let mut connection = connection(2, &EVERY_INTERVAL);
    interval(&mut connection, &[Some(a), Some(b)]);
    connection.conn.mode == 1
}

#[test]
fn b13_flows_with_close_figures_share_a_bottleneck_and_those_with_other_frequencies_do_not() {
    let other = Figures { skew: 0.05, var_ms: 5.3, freq: 0.14, loss: 0.0 };
    assert!(grouped(BOTTLENECK, other));
    assert!(!grouped(BOTTLENECK, Figures { freq: 0.30, ..other }));
}

#[test]
fn each_step_splits_at_its_threshold() {
    let with = |change: fn(&mut Figures, f64), value: f64| {
        let mut figures = BOTTLENECK;
        change(&mut figures, value);
        figures
    };
    // The change, a value, one just close enough to it, one just too far away.
    type Case = (fn(&mut Figures, f64), f64, f64, f64);
    let cases: [Case; 4] = [
        (|f, x| f.freq = x, 0.10, 0.18, 0.20),
        (|f, x| f.var_ms = x, 10.0, 9.001, 9.0),
        (|f, x| f.skew = x, -0.10, 0.049, 0.051),
        (|f, x| f.loss = x, 0.10, 0.0905, 0.0895),
    ];
    for (index, (change, value, close, far)) in cases.into_iter().enumerate() {
        for (other, want) in [(close, true), (far, false)] {
            assert_eq!(grouped(with(change, value), with(change, other)), want, "step {index}, {other}");
            assert_eq!(
                grouped(with(change, other), with(change, value)),
                want,
                "step {index}, {other}, turned"
            );
        }
    }
    assert!(grouped(with(|f, x| f.loss = x, 0.049), with(|f, x| f.loss = x, 0.0)), "low losses do not count");
}

#[test]
fn a_flow_passes_a_bottleneck_below_c_s_and_having_done_so_up_to_c_h_or_with_losses_above_p_l() {
    let skewed = |skew, loss| Some(Figures { skew, loss, ..BOTTLENECK });
    for (skew, loss, want) in [(0.099, 0.0, 1), (0.101, 0.0, 0), (0.9, 0.051, 1), (0.9, 0.049, 0)] {
        let mut connection = connection(2, &EVERY_INTERVAL);
        interval(&mut connection, &[skewed(skew, loss); 2]);
        assert_eq!(connection.conn.mode, want, "skew {skew}, loss {loss}");
    }
    let mut connection = connection(2, &EVERY_INTERVAL);
    for (skew, want) in [(0.2, 0), (0.0, 1), (0.2, 1), (0.299, 1), (0.301, 0), (0.2, 0)] {
        interval(&mut connection, &[skewed(skew, 0.0); 2]);
        assert_eq!(connection.conn.mode, want, "skew {skew}");
    }
}

#[test]
fn a_flow_without_m_intervals_is_in_no_group() {
    let mut connection = connection(2, &EVERY_INTERVAL);
    interval(&mut connection, &[Some(BOTTLENECK), None]);
    assert_eq!(connection.conn.mode, 0);
}

#[test]
fn neighbours_in_order_count_not_the_ends_of_a_row() {
    let mut connection = connection(3, &EVERY_INTERVAL);
    let figures = [0.26, 0.10, 0.18].map(|freq| Some(Figures { freq, ..BOTTLENECK }));
    interval(&mut connection, &figures);
    assert_eq!(roles(&connection), [Lia, Lia, Lia]);
}

#[test]
fn a_later_step_splits_the_groups_of_the_earlier_one() {
    let mut connection = connection(4, &EVERY_INTERVAL);
    // By frequency one row of four; by variability {0, 2} and {1, 3}.
    let figures = [(0.10, 5.0), (0.18, 50.0), (0.26, 5.2), (0.18, 49.0)];
    interval(&mut connection, &figures.map(|(freq, var_ms)| Some(Figures { freq, var_ms, ..BOTTLENECK })));
    assert_eq!(roles(&connection), [Lia; 4]);
    // LIA among two of equal windows of 10 and equal round-trip times: 1 packet per 40, among four 1 per 160.
    assert_eq!(acks_to_growth(&mut connection, 0), 40);
}

#[test]
fn a_period_follows_the_groups_of_most_of_its_intervals() {
    for (together, want) in [(6, [Lia, Lia]), (5, [MVegas, MFast])] {
        let mut connection = connection(2, &[("detector", 1), ("period", 10 * T_US as u32)]);
        connection.peers[0].retrans = 1;
        for k in 0..10 {
            let apart = Figures { freq: 0.5, ..BOTTLENECK };
            interval(
                &mut connection,
                &[Some(BOTTLENECK), Some(if k < together { BOTTLENECK } else { apart })],
            );
        }
        assert_eq!(roles(&connection), want, "{together} of 10");
        assert_eq!((connection.conn.epoch, connection.conn.coupled_epochs), (1, connection.conn.mode));
    }
}

#[test]
fn losses_do_not_couple_with_this_detector() {
    let mut connection = connection(2, &[("detector", 1), ("literal", 1)]);
    for k in [0, 1, 0, 1] {
        connection.peers[k].retrans += 1;
        connection.fast_retransmit(k);
    }
    connection.now_us += 50_000_000;
    connection.ack(0, 1);
    assert_eq!((connection.conn.epoch, connection.conn.mode), (1, 0));
}

#[test]
fn the_other_detector_publishes_nothing() {
    let mut connection = connection(2, &[]);
    for _ in 0..200 {
        connection.now_us += 100_000;
        connection.sample(0, 100_000);
    }
    assert_eq!(connection.peers[0].public, [0; 4]);
}

/// A sequence of numbers in 0.0 .. 1.0 (xorshift64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// One ACK as the yardstick sees it.
#[derive(Clone, Copy)]
struct Sample {
    at_us: u64,
    delay_us: f64,
    delivered: u64,
    retrans: u32,
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    sum / n
}

/// RFC 8382 section 3.2 from all samples at once; the last one only ends the interval before it.
fn yardstick(samples: &[Sample]) -> Figures {
    let number = |sample: &Sample| (sample.at_us - samples[0].at_us) / T_US;
    let intervals: Vec<&[Sample]> = samples.chunk_by(|a, b| number(a) == number(b)).collect();
    let ended = intervals.len() - 1;
    let means: Vec<f64> =
        intervals[..ended].iter().map(|interval| mean(interval.iter().map(|s| s.delay_us))).collect();
    let last = |n: usize, end: usize| end.saturating_sub(n)..end;
    // What is reckoned at the end of interval `end - 1`, over M intervals; the first has no mean before it.
    let over_m = |end: usize| {
        let (mut skew, mut deviations, mut counted) = (0.0, 0.0, 0.0);
        for i in last(M, end).filter(|i| *i > 0) {
            let long_mean = mean(means[last(M, i)].iter().copied());
            for sample in intervals[i] {
                skew += f64::from(u8::from(sample.delay_us < long_mean));
                skew -= f64::from(u8::from(sample.delay_us > long_mean));
                deviations += (sample.delay_us - means[i - 1]).abs();
                counted += 1.0;
            }
        }
        if counted > 0.0 { (skew / counted, deviations / counted) } else { (0.0, 0.0) }
    };
    let mut side = 0.0;
    let mut crossings = Vec::new();
    for end in 1..=ended {
        let beyond = means[end - 1] - mean(means[last(M, end)].iter().copied());
        let is_out = beyond.abs() > 0.7 * over_m(end).1;
        crossings.push(is_out && side * beyond < 0.0);
        if is_out {
            side = beyond;
        }
    }
    let (first, next) = (&intervals[last(N, ended).start][0], &intervals[ended][0]);
    let lost = f64::from(next.retrans - first.retrans);
    let (skew, var_us) = over_m(ended);
    Figures {
        skew,
        var_ms: var_us / 1e3,
        freq: crossings[last(N, ended)].iter().filter(|crosses| **crosses).count() as f64 / N as f64,
        loss: lost / (lost + (next.delivered - first.delivered) as f64),
    }
}

/// A delay that follows a queue which fills and drains (`cycle_s`), with noise; one ACK every 5 to 25 ms and now and
/// then none for up to a second.
fn sequence(seed: u64, cycle_s: f64, queue_us: f64, noise_us: f64, tick_us: f64) -> Vec<Sample> {
    let mut random = Random(seed);
    let (mut at_us, mut delivered, mut retrans) = (1_000_000, 0, 0);
    let mut samples = Vec::new();
    for _ in 0..3000 {
        at_us += 5_000 + (20_000.0 * random.next()) as u64;
        if random.next() < 0.01 {
            at_us += (1e6 * random.next()) as u64;
        }
        delivered += 1 + (3.0 * random.next()) as u64;
        retrans += u32::from(random.next() < 0.03);
        let queue = queue_us * (at_us as f64 / 1e6 / cycle_s).fract();
        let delay_us = ((20_000.0 + queue + noise_us * random.next()) / tick_us).floor() * tick_us;
        samples.push(Sample { at_us, delay_us, delivered, retrans });
    }
    samples
}

fn take(connection: &mut Connection, sample: &Sample, offset_us: u32) {
    connection.now_us = sample.at_us;
    let view = &mut connection.subflows[0].view;
    view.delivered = sample.delivered;
    view.total_retrans = sample.retrans;
    view.owd_us = offset_us.wrapping_add(sample.delay_us as u32);
    connection.sample(0, 100_000);
}

/// A mean is rounded down to 1 us, so a deviation may be 1 us off and a sample of a mean that lies on a tick may change
/// sides; Q16 is good to 2e-5.
fn assert_close(got: Figures, want: Figures, place: &str) {
    assert!((got.skew - want.skew).abs() < 0.01, "{place}: skew {got:?}, want {want:?}");
    assert!((got.var_ms - want.var_ms).abs() < 0.002, "{place}: var {got:?}, want {want:?}");
    assert!((got.freq - want.freq).abs() < 1e-9, "{place}: freq {got:?}, want {want:?}");
    assert!((got.loss - want.loss).abs() < 2e-5, "{place}: loss {got:?}, want {want:?}");
}

#[test]
fn the_figures_are_those_of_the_rfc_reckoned_in_floating_point() {
    // An offset of clocks near the wrap makes no difference.
    let kinds = [(1.0, 0.0, 8_000.0, 1.0), (2.5, 30_000.0, 5_000.0, 1.0), (7.0, 60_000.0, 1_000.0, 1000.0)];
    for (index, (cycle_s, queue_us, noise_us, tick_us)) in kinds.into_iter().enumerate() {
        let samples = sequence(index as u64 + 1, cycle_s, queue_us, noise_us, tick_us);
        let mut connection = Connection::new(1, "mfvl", &[("detector", 1)]);
        connection.subflows[0].view.owd_valid = 1;
        let (mut compared, mut intervals) = (0, 0);
        for (k, sample) in samples.iter().enumerate() {
            take(&mut connection, sample, u32::MAX - 25_000);
            let number = |k: usize| (samples[k].at_us - samples[0].at_us) / T_US;
            if k == 0 || number(k) == number(k - 1) {
                continue;
            }
            intervals += 1;
            let place = format!("sequence {index}, sample {k}");
            match published(&connection, 0) {
                None => assert!(intervals < M, "{place}: after {intervals} intervals"),
                Some(figures) => {
                    assert!(intervals >= M, "{place}: after {intervals} intervals");
                    assert_close(figures, yardstick(&samples[..=k]), &place);
                    compared += 1;
                }
            }
        }
        assert!(compared > 2 * N, "sequence {index}: {compared} intervals compared");
    }
}

#[test]
fn without_a_one_way_delay_round_trip_times_take_its_place_and_a_change_forgets() {
    let samples = sequence(5, 2.5, 30_000.0, 5_000.0, 1.0);
    let mut one_way = Connection::new(1, "mfvl", &[("detector", 1)]);
    let mut round_trip = Connection::new(1, "mfvl", &[("detector", 1)]);
    one_way.subflows[0].view.owd_valid = 1;
    for sample in &samples[..1500] {
        take(&mut one_way, sample, 0);
        round_trip.now_us = sample.at_us;
        round_trip.subflows[0].view.delivered = sample.delivered;
        round_trip.subflows[0].view.total_retrans = sample.retrans;
        round_trip.sample(0, sample.delay_us as u32);
    }
    assert!(published(&one_way, 0).is_some());
    assert_eq!(one_way.peers[0].public, round_trip.peers[0].public);
    round_trip.subflows[0].view.owd_valid = 1;
    take(&mut round_trip, &samples[1500], 0);
    assert!(published(&round_trip, 0).is_none());
}

#[test]
fn after_m_intervals_of_silence_everything_is_forgotten() {
    for (silence_us, kept) in [(M as u64 * T_US - 100_000, true), (M as u64 * T_US + T_US, false)] {
        let samples = sequence(6, 2.5, 30_000.0, 5_000.0, 1.0);
        let mut connection = Connection::new(1, "mfvl", &[("detector", 1)]);
        connection.subflows[0].view.owd_valid = 1;
        for sample in &samples[..1500] {
            take(&mut connection, sample, 0);
        }
        let last = Sample { at_us: samples[1499].at_us + silence_us - T_US, ..samples[1499] };
        take(&mut connection, &last, 0);
        assert_eq!(published(&connection, 0).is_some(), kept, "{silence_us} us");
    }
}
