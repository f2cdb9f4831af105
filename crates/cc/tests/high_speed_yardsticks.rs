//! H-TCP, Compound, Hybla and Scalable over real numbers (A9 to A12 of the algorithm reference), written here a second
//! time, against the integer sources: within 1 % over 1,000 ACKs and more, losses included.

mod common;

use common::{Connection, assert_within};

const ACKS: u32 = 1000;

/// One subflow in congestion avoidance whose RTT has been `rtt_us` from the beginning.
fn avoiding(name: &str, set: &[(&str, u32)], cwnd: u32, rtt_us: u32) -> Connection {
    let mut connection = Connection::new(1, name, set);
    connection.set(0, cwnd, 2, rtt_us);
    connection.sample(0, rtt_us);
    connection
}

/// The window with what is counted towards the next packet.
fn window(connection: &Connection) -> f64 {
    let view = &connection.subflows[0].view;
    f64::from(view.cwnd) + f64::from(view.cwnd_cnt) / f64::from(view.cwnd)
}

#[test]
fn scalable() {
    for start in [10, 16, 20, 50, 200, 1000, 5000] {
        let mut connection = avoiding("scalable", &[], start, 100_000);
        let mut want = f64::from(start);
        for _ in 0..ACKS {
            connection.ack(0, 1);
            want += if want <= 16.0 { 1.0 / want } else { 0.01 };
        }
        let per = if connection.cwnd(0) < 16 { connection.cwnd(0) } else { 100 };
        let view = connection.subflows[0].view;
        let got = f64::from(view.cwnd) + f64::from(view.cwnd_cnt) / f64::from(per);
        assert_within(got, want, 1.0, &format!("from {start}"));
        let kept = if want <= 16.0 { 0.5 } else { 0.875 };
        let lost = f64::from(connection.fast_retransmit(0));
        // An eighth is taken in whole packets.
        assert!((lost - want * kept).abs() <= 1.0 + 0.01 * want, "from {start}: {lost}");
    }
}

#[test]
fn hybla() {
    for (start, rtt_us) in
        [(50, 10_000), (50, 40_000), (50, 100_000), (200, 300_000), (30, 600_000), (2000, 600_000)]
    {
        let mut connection = avoiding("hybla", &[], start, rtt_us);
        let rho = (f64::from(rtt_us) / 25_000.0).max(1.0);
        let mut want = f64::from(start);
        for _ in 0..ACKS {
            connection.ack(0, 1);
            want += rho * rho / want;
        }
        assert_within(window(&connection), want, 1.0, &format!("from {start}, {rtt_us} us"));
    }
}

#[test]
fn hybla_in_slow_start() {
    for rtt_us in [10_000, 30_000, 40_000, 77_000, 100_000] {
        let mut connection = Connection::new(1, "hybla", &[]);
        connection.sample(0, rtt_us);
        let increment = (f64::from(rtt_us) / 25_000.0).max(1.0).exp2() - 1.0;
        for _ in 0..ACKS {
            connection.ack(0, 1);
        }
        let want = 10.0 + f64::from(ACKS) * increment;
        assert_within(f64::from(connection.cwnd(0)), want, 1.0, &format!("{rtt_us} us"));
    }
}

/// The two losses leave no trace of the first epochs but beta, and D begins anew.
#[test]
fn htcp() {
    for (start, rtt_us, scaling) in [
        (100, 100_000, 1),
        (100, 100_000, 0),
        (200, 40_000, 1),
        (400, 20_000, 1),
        (300, 300_000, 1),
        (60, 200_000, 0),
    ] {
        let mut connection = avoiding("htcp", &[("rtt_scaling", scaling)], start, rtt_us);
        connection.round(0, rtt_us);
        connection.subflows[0].view.cwnd = start;
        let mut want = f64::from(connection.fast_retransmit(0));
        assert_within(want, f64::from(start) * 0.5, 1.0, "the first loss halves");
        let rtt_s = f64::from(rtt_us) / 1e6;
        let scale = if scaling == 1 { (0.1 / rtt_s).clamp(0.5, 10.0) } else { 1.0 };
        let start_us = connection.now_us;
        for _ in 0..3 * ACKS {
            connection.now_us += u64::from(rtt_us / connection.cwnd(0));
            connection.ack(0, 1);
            let d = (connection.now_us - start_us) as f64 / 1e6 - 1.0;
            let f = if d > 0.0 { 1.0 + 10.0 * d + (d / 2.0).powi(2) } else { 1.0 };
            want += 2.0 * 0.5 * (f / scale).max(1.0) / want;
        }
        assert_within(
            window(&connection),
            want,
            1.0,
            &format!("from {start}, {rtt_us} us, scaling {scaling}"),
        );
    }
}

/// A path of `packets_per_s` and 100 ms: the round-trip time of a window, all else empty.
fn rtt_s(packets_per_s: f64, window: f64) -> f64 {
    f64::max(0.1, window / packets_per_s)
}

/// Compound: the loss window per ACK, the delay window per round.
#[test]
fn compound() {
    for (start, packets_per_s) in [(50, 1e6), (100, 1e6), (200, 1500.0), (100, 600.0), (400, 3000.0)] {
        let mut connection = avoiding("compound", &[], start, 100_000);
        let (mut lwnd, mut dwnd) = (f64::from(start), 0.0f64);
        // The ACK that ends a round is the first of the next: its sample is of both.
        let (mut sum_s, mut samples, mut acks) = (0.1, 1.0, 0);
        while acks < ACKS {
            let cwnd = connection.cwnd(0);
            acks += cwnd;
            connection.round(0, (rtt_s(packets_per_s, f64::from(cwnd)) * 1e6) as u32);

            let win = lwnd + dwnd;
            let rtt = rtt_s(packets_per_s, win);
            let mean_s = (sum_s + rtt) / (samples + 1.0);
            let diff = win * (1.0 - 0.1 / mean_s);
            if diff < 30.0 {
                dwnd += (win.powf(0.75) / 8.0 - 1.0).max(0.0);
            } else {
                dwnd = (dwnd - diff).max(0.0);
            }
            samples = win.floor() - 1.0;
            sum_s = rtt * samples;
            for _ in 0..win as usize {
                lwnd += 1.0 / (lwnd + dwnd);
            }
        }
        // The delay window has a fraction that the window has not: it lies below the next packet.
        let (got, want) = (window(&connection), lwnd + dwnd);
        let what = format!("from {start}, {packets_per_s} packets/s");
        assert_within(want.clamp(got, got + 1.0), want, 1.0, &what);
    }
}
