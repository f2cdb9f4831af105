//! The definitions over real numbers (parts A and B of the algorithm reference), written here a second time in
//! floating point, against the integer sources: within 1 % over 1,000 ACKs. LIA's is in `lia.rs`.
//!
//! The window of an integer source is compared with its counter added (`cwnd + cwnd_cnt / cwnd`).

mod common;

use common::{Connection, assert_within};

const ACKS: usize = 1000;

/// A path of `packets_per_s` and `base_s`: the round-trip time of a window, all else empty.
#[derive(Clone, Copy)]
struct Path {
    packets_per_s: f64,
    base_s: f64,
}

impl Path {
    fn rtt_s(&self, window: f64) -> f64 {
        self.base_s.max(window / self.packets_per_s)
    }
}

fn window(connection: &Connection) -> f64 {
    let view = &connection.subflows[0].view;
    f64::from(view.cwnd) + f64::from(view.cwnd_cnt) / f64::from(view.cwnd)
}

/// Drives the integer source on `path` for a thousand ACKs and on to the end of a round, an even number of them
/// (FAST rests in every other one); returns their number.
fn drive(connection: &mut Connection, path: Path) -> usize {
    let (mut acks, mut rounds) = (0, 0);
    while acks < ACKS || rounds % 2 == 1 {
        let cwnd = connection.cwnd(0);
        connection.round(0, (path.rtt_s(f64::from(cwnd)) * 1e6) as u32);
        acks += cwnd as usize;
        rounds += 1;
    }
    rounds
}

fn avoiding(name: &str, set: &[(&str, u32)], cwnd: u32, base_us: u32) -> Connection {
    let mut connection = Connection::new(1, name, set);
    connection.set(0, cwnd, 2, base_us);
    connection.sample(0, base_us);
    connection.call(0, |c, x, o| c.recovery_exit(x, o));
    connection
}

#[test]
fn reno() {
    for start in [10, 20, 50, 200, 1000] {
        let mut connection = avoiding("reno", &[], start, 100_000);
        let mut want = f64::from(start);
        for _ in 0..ACKS {
            connection.ack(0, 1);
            want += 1.0 / want;
        }
        assert_within(window(&connection), want, 1.0, &format!("from {start}"));
    }
}

/// RFC 9438, per ACK.
struct Cubic {
    cwnd: f64,
    w_max: f64,
    w_est: f64,
    k_s: f64,
}

impl Cubic {
    fn after_a_loss(cwnd: f64) -> Self {
        let beta = 0.7;
        let reduced = cwnd * beta;
        Self { cwnd: reduced, w_max: cwnd, w_est: reduced, k_s: ((cwnd - reduced) / 0.4).cbrt() }
    }

    fn w_cubic(&self, t_s: f64) -> f64 {
        0.4 * (t_s - self.k_s).powi(3) + self.w_max
    }

    fn ack(&mut self, t_s: f64, rtt_s: f64) {
        let alpha = if self.w_est >= self.w_max { 1.0 } else { 3.0 * 0.3 / 1.7 };
        self.w_est += alpha / self.cwnd;
        if self.w_cubic(t_s) < self.w_est {
            self.cwnd = self.w_est;
        } else {
            let target = self.w_cubic(t_s + rtt_s).clamp(self.cwnd, 1.5 * self.cwnd);
            self.cwnd += (target - self.cwnd) / self.cwnd;
        }
    }
}

/// From 100 packets: below, the one packet by which a whole window may be off is more than 1 %.
#[test]
fn cubic() {
    for (start, rtt_us) in
        [(100, 100_000), (200, 100_000), (300, 20_000), (400, 300_000), (1000, 50_000), (5000, 100_000)]
    {
        let mut connection = avoiding("cubic", &[], start, rtt_us);
        connection.fast_retransmit(0);
        let mut want = Cubic::after_a_loss(f64::from(start));
        let start_us = connection.now_us;
        for _ in 0..ACKS {
            connection.now_us += u64::from(rtt_us / connection.cwnd(0));
            connection.ack(0, 1);
            want.ack((connection.now_us - start_us) as f64 / 1e6, f64::from(rtt_us) / 1e6);
        }
        // What is counted towards the next packet has no fixed scale here: the window lies below the next integer.
        let whole = f64::from(connection.cwnd(0));
        assert_within(
            want.cwnd.clamp(whole, whole + 1.0),
            want.cwnd,
            1.0,
            &format!("from {start}, {rtt_us} us"),
        );
    }
}

/// Vegas of ns-2 and MVegas over real numbers, one round at a time.
struct Vegas {
    cwnd: f64,
    band: Option<Band>,
    up: bool,
}

struct Band {
    a: f64,
    b: f64,
    prev: Option<f64>,
}

impl Vegas {
    fn round(&mut self) {
        for _ in 0..self.cwnd as usize {
            if self.up {
                self.cwnd += 1.0 / self.cwnd;
            }
        }
    }

    fn decide(&mut self, path: Path, rtt_s: f64) {
        let diff = self.cwnd * (rtt_s - path.base_s) / rtt_s;
        let (alpha, beta, k) = (1.0, 3.0, 2.0);
        let (low, high) = self.band.as_ref().map_or((alpha, beta), |band| (alpha + band.a, beta + band.b));
        self.up = diff < low;
        if diff > high {
            self.cwnd -= 1.0;
        }
        if let Some(band) = &mut self.band {
            let phi = match band.prev {
                None => 1.0,
                Some(prev) if diff <= 1e-9 && prev <= 1e-9 => 1.0,
                Some(_) if diff <= 1e-9 => k * alpha,
                Some(prev) => (prev / diff).min(8.0),
            };
            if diff < low {
                band.a = (band.a + phi).min(k * alpha);
                band.b = (band.b + phi).min(beta);
            } else if diff > high {
                band.b = (band.b - phi).max(alpha + 1.0);
            }
            band.prev = Some(diff);
        }
    }
}

fn vegas_family(name: &str, start: u32, path: Path) {
    let mut connection = avoiding(name, &[], start, (path.base_s * 1e6) as u32);
    let rounds = drive(&mut connection, path);
    let band = (name == "mvegas").then_some(Band { a: 1.0, b: 2.0, prev: None });
    let mut want = Vegas { cwnd: f64::from(start), band, up: true };
    // The sample of the ACK that ends a round belongs to that round, as it is older than the decision.
    let (mut sum_s, mut samples) = (0.0, 0.0);
    for _ in 0..rounds {
        let rtt_s = path.rtt_s(want.cwnd);
        want.decide(path, (sum_s + rtt_s) / (samples + 1.0));
        samples = want.cwnd - 1.0;
        sum_s = rtt_s * samples;
        want.round();
    }
    assert_within(window(&connection), want.cwnd, 1.0, &format!("{name} from {start}"));
}

const PATH: Path = Path { packets_per_s: 600.0, base_s: 0.1 };

#[test]
fn vegas() {
    for start in [40, 60, 70, 90] {
        vegas_family("vegas", start, PATH);
    }
}

#[test]
fn mvegas() {
    for start in [40, 60, 70, 90] {
        vegas_family("mvegas", start, PATH);
    }
}

/// FAST over real numbers: an update at the start of every other round.
fn fast_family(name: &str, start: u32, path: Path) {
    let (alpha, gamma) = (if name == "fast" { 20.0 } else { 100.0 }, 0.5);
    let sigma = if name == "fast" { 1.0 } else { 0.5 };
    let set = [("alpha", alpha as u32), ("mi_threshold", 0)];
    let mut connection = avoiding(name, &set, start, (path.base_s * 1e6) as u32);
    let rounds = drive(&mut connection, path);

    let mut cwnd = f64::from(start);
    let mut avg_s = path.base_s;
    for round in 0..rounds {
        let rtt_s = path.rtt_s(cwnd);
        let eta = (1.0f64 / 256.0).min(3.0 / cwnd);
        let packets = cwnd as usize;
        avg_s += eta * (rtt_s - avg_s);
        let target =
            (2.0 * cwnd).min((1.0 - gamma) * cwnd + sigma * gamma * (path.base_s / avg_s * cwnd + alpha));
        for _ in 1..packets {
            avg_s += eta * (rtt_s - avg_s);
        }
        if round % 2 == 0 {
            cwnd = target.max(2.0);
        }
    }
    assert_within(window(&connection), cwnd, 1.0, &format!("{name} from {start}"));
}

#[test]
fn fast() {
    for start in [30, 60, 100] {
        fast_family("fast", start, PATH);
    }
}

#[test]
fn mfast() {
    for start in [30, 60, 100] {
        fast_family("mfast", start, PATH);
    }
}
