//! Does the emulator keep what it was set to? Rate, delay, loss and queue limits, measured end to end with UDP
//! packets of our own, without TCP.

mod probe;
pub mod stand;

use std::{fmt, net::UdpSocket, thread, time::Duration};

use anabranch_scenario::model::{Hop, Loss, QueueLimit, Wire};

use crate::{
    BedError, Nanos,
    emulator::{Report, Summary},
    host::{Awake, Session},
};
use probe::{Arrival, Load, Probed, SMALLEST_BYTES};
use stand::{Stand, parallel_links};

/// What is within this of its setting is right.
const TOLERANCE: f64 = 0.02;
/// Size of a full packet.
const FULL_BYTES: usize = 1500;
/// A rate so high, and a window so small, that packets never wait.
const FAST_BPS: u64 = 10_000_000_000;
const WINDOW: u64 = 2_000;
/// Nothing limits the packets under way.
const NO_WINDOW: u64 = u64::MAX;
const MS: Nanos = 1_000_000;
/// The same losses are drawn every time, so that a calibration fails because of the emulator and never by chance.
const SEED: u64 = 42;
/// Longer than any packet stays away that is still to come, if links have no delay.
const QUIET: Duration = Duration::from_millis(300);
/// Rates, in Mbit/s.
const RATES: [u64; 4] = [1, 5, 20, 100];
/// Delays, in milliseconds.
const DELAYS: [u64; 4] = [1, 10, 60, 300];
/// Probabilities of loss.
const LOSSES: [f64; 2] = [0.01, 0.1];
/// Queue limits; a full packet takes [`SLOW_PACKET`] at the rate they are measured at.
const LIMITS: [QueueLimit; 2] = [QueueLimit::Packets(50), QueueLimit::Bytes(60_000)];
/// More packets than either limit lets in, and no more than are sent at once on a busy machine.
const BURST: u64 = 60;
/// Time between two packets over a delayed link, and between two over the link without a delay. By the golden
/// ratio of the two, packets of one kind meet those of the other in every phase: in a fixed one, the emulator
/// would always, or never, be awake already for one of them.
const DELAY_INTERVALS: [Nanos; 2] = [5 * MS, 3_090_170];
/// How long each delay is measured.
const DELAY_TIME: Nanos = 4_000 * MS;
const SLOW_BPS: u64 = 600_000;
const SLOW_PACKET: Nanos = 20 * MS;

/// One comparison of a setting with what was measured.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Check {
    /// What was set, such as `rate`.
    pub what: &'static str,
    /// Unit of `set` and `measured`.
    pub unit: &'static str,
    /// The setting.
    pub set: f64,
    /// The measurement.
    pub measured: f64,
    /// Standard error of the measurement that chance alone explains, relative to the setting.
    pub standard_error: f64,
    /// The check passes if the measurement is within this of the setting, relative to it: the larger of 2 %
    /// and three standard errors.
    pub bound: f64,
    /// Further figures for the reader.
    pub note: String,
}

impl Check {
    fn new(what: &'static str, unit: &'static str, set: f64, measured: f64, standard_error: f64) -> Self {
        let bound = TOLERANCE.max(3.0 * standard_error);
        Self { what, unit, set, measured, standard_error, bound, note: String::new() }
    }

    /// Deviation of the measurement relative to the setting.
    pub fn deviation(&self) -> f64 {
        (self.measured - self.set) / self.set
    }

    /// Whether the emulator kept to the setting.
    pub fn passed(&self) -> bool {
        self.deviation().abs() <= self.bound
    }
}

/// Everything that was measured.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Calibration {
    /// One per setting.
    pub checks: Vec<Check>,
    /// How late the emulator was in all of this.
    pub lateness: Summary,
    /// How long it did not look at its devices.
    pub gaps: Summary,
    /// It ran under `SCHED_FIFO`.
    pub realtime: bool,
}

impl Calibration {
    /// Whether every check passed.
    pub fn passed(&self) -> bool {
        self.checks.iter().all(Check::passed)
    }
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for check in &self.checks {
            writeln!(
                f,
                "{} {:<6} set {:>8} {:<7} measured {:>11.4}  {:+.2} % of {:.2} % allowed{}{}",
                if check.passed() { "PASS" } else { "FAIL" },
                check.what,
                check.set,
                check.unit,
                check.measured,
                100.0 * check.deviation(),
                100.0 * check.bound,
                if check.note.is_empty() { "" } else { "; " },
                check.note
            )?;
        }
        let us = |ns: Nanos| ns / 1000;
        let Summary { count, p50_ns, p90_ns, p99_ns, p999_ns, max_ns } = self.lateness;
        writeln!(
            f,
            "lateness of {count} packets: p50 {} us, p90 {} us, p99 {} us, p99.9 {} us, max {} us; {}",
            us(p50_ns),
            us(p90_ns),
            us(p99_ns),
            us(p999_ns),
            us(max_ns),
            if self.realtime { "SCHED_FIFO" } else { "not under SCHED_FIFO" }
        )?;
        write!(f, "not looking: p99 {} us, max {} us", us(self.gaps.p99_ns), us(self.gaps.max_ns))
    }
}

/// Measures the emulator: below a minute, or, with fewer packets, wider bounds of chance and the shorter half
/// of the delays if it is to be `quick`, below ten seconds.
///
/// # Errors
/// As [`Stand::new`], [`BedError::Failed`] if so few packets arrive that there is nothing to measure.
///
/// # Panics
/// If the emulator's thread does.
pub fn calibrate(session: &Session, quick: bool) -> Result<Calibration, BedError> {
    let part = if quick { 10 } else { 1 };
    let plain = Wire::plain(FAST_BPS, 0);
    let rates = RATES.map(|mbps| Wire {
        rate_bps: mbps * 1_000_000,
        // Enough for a sender that is kept from the processor for a fifth of a second.
        queue: QueueLimit::Bytes((mbps * 1_000_000 / 8 / 5).max(10 * FULL_BYTES as u64)),
        ..plain
    });
    let no_delay = plain;
    let delays = DELAYS.map(|ms| Wire { delay: ms * MS, ..plain });
    let losses = LOSSES.map(|p| Wire { loss: Loss::Bernoulli(p), ..plain });
    let limits = LIMITS.map(|queue| Wire { rate_bps: SLOW_BPS, queue, ..plain });
    let wires: Vec<Wire> =
        rates.into_iter().chain([no_delay]).chain(delays).chain(losses).chain(limits).collect();
    let scenario = parallel_links(&wires.iter().map(|&wire| (wire, plain)).collect::<Vec<_>>());
    let paths: Vec<_> = (0..wires.len()).map(|link| vec![Hop::Wire { link, forward: true }]).collect();
    let stand = Stand::new(session, &scenario, SEED, &paths)?;
    let _awake = Awake::begin();

    let mut checks = Vec::new();
    let mut path = 0..;
    let mut sockets = || stand.sockets(path.next().expect("endless"));
    for mbps in RATES {
        checks.push(rate(&sockets()?, mbps, 3000 * MS / part)?);
    }
    let undelayed = sockets()?;
    for ms in DELAYS {
        let pair = sockets()?;
        if !quick || ms <= 10 {
            checks.push(delay(&pair, &undelayed, ms, DELAY_TIME / part)?);
        }
    }
    for probability in LOSSES {
        checks.push(loss(&sockets()?, probability, part)?);
    }
    for limit in LIMITS {
        checks.push(queue(&sockets()?, limit)?);
    }
    let Report { counters, gaps, realtime, .. } = stand.stop()?;
    Ok(Calibration { checks, lateness: counters.lateness, gaps: gaps.summary(), realtime })
}

fn too_few(what: &str, arrived: usize) -> BedError {
    BedError::Failed(format!(
        "calibration of {what}: only {arrived} packets arrived; is a firewall in the way?"
    ))
}

/// Bytes over time at the far end of a link that always has something to send.
fn rate(sockets: &(UdpSocket, UdpSocket), mbps: u64, time: Nanos) -> Result<Check, BedError> {
    let packet_time = FULL_BYTES as u64 * 8_000 / mbps;
    let interval = packet_time / 2;
    let load = Load { packets: time / interval, bytes: FULL_BYTES, interval, window: NO_WINDOW };
    let Probed { arrivals, .. } = probe::run(sockets, load, QUIET)?;
    let [first, .., last] = arrivals[..] else { return Err(too_few("the rate", arrivals.len())) };
    let bits = ((arrivals.len() - 1) * FULL_BYTES * 8) as f64;
    let measured = bits / (last.arrived - first.arrived) as f64 * 1e3;
    let mut check = Check::new("rate", "Mbit/s", mbps as f64, measured, 0.0);
    check.note = format!("{} packets", arrivals.len());
    Ok(check)
}

/// One-way delays of single packets.
#[derive(Clone, Copy)]
struct Delays {
    median: Nanos,
    p99: Nanos,
}

fn delays_of(
    sockets: &(UdpSocket, UdpSocket),
    ms: u64,
    time: Nanos,
    interval: Nanos,
) -> Result<Delays, BedError> {
    let load = Load { packets: time / interval, bytes: SMALLEST_BYTES, interval, window: NO_WINDOW };
    let Probed { arrivals, .. } = probe::run(sockets, load, QUIET + Duration::from_millis(ms))?;
    let delay = |arrival: &Arrival| arrival.arrived.saturating_sub(arrival.sent);
    let mut delays: Vec<Nanos> = arrivals.iter().map(delay).collect();
    if delays.is_empty() {
        return Err(too_few("the delay", 0));
    }
    delays.sort_unstable();
    Ok(Delays { median: delays[delays.len() / 2], p99: delays[delays.len() * 99 / 100] })
}

/// The delay that a link adds to that of a link without any, measured at the same time. What both have in
/// common, the way through sockets and kernel and the waking of the emulator when a packet comes, can be more
/// than 2 % of a millisecond; it is in the note.
fn delay(
    sockets: &(UdpSocket, UdpSocket),
    undelayed: &(UdpSocket, UdpSocket),
    ms: u64,
    time: Nanos,
) -> Result<Check, BedError> {
    let [interval, undelayed_interval] = DELAY_INTERVALS;
    let (delays, overhead) = thread::scope(|scope| {
        let overhead = scope.spawn(|| delays_of(undelayed, 0, time, undelayed_interval));
        let delays = delays_of(sockets, ms, time, interval);
        (delays, overhead.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let (delays, overhead) = (delays?, overhead?);
    let added = delays.median.saturating_sub(overhead.median);
    let us = |time: Nanos| time as f64 / 1e3;
    let late_us = |delay: Nanos| us(delay) - us(ms * MS);
    let mut check = Check::new("delay", "ms", ms as f64, added as f64 / 1e6, 0.0);
    check.note = format!(
        "without the overhead of {:.0} us; with it, median late by {:.0} us, p99 by {:.0} us",
        us(overhead.median),
        late_us(delays.median),
        late_us(delays.p99)
    );
    Ok(check)
}

/// The share of packets that do not arrive; so many are sent that 2 % of it are two standard errors (of
/// `1 / part` of them, less).
fn loss(sockets: &(UdpSocket, UdpSocket), probability: f64, part: u64) -> Result<Check, BedError> {
    // Relative variance of a binomial share: (1 - p) / (p n).
    let packets = ((1.0 - probability) / probability / (TOLERANCE / 2.0).powi(2)) as u64 / part;
    let load = Load { packets, bytes: SMALLEST_BYTES, interval: 0, window: WINDOW };
    let Probed { arrivals, .. } = probe::run(sockets, load, QUIET)?;
    let lost = packets - arrivals.len() as u64;
    let measured = lost as f64 / packets as f64;
    let standard_error = ((1.0 - probability) / probability / packets as f64).sqrt();
    let mut check = Check::new("loss", "", probability, measured, standard_error);
    check.note = format!(
        "{lost} of {packets} packets, standard error {:.2} %, deviation {:+.1} of them",
        100.0 * standard_error,
        check.deviation() / standard_error
    );
    Ok(check)
}

/// How much of a burst a slow link keeps. The burst must be in before the link has sent its first packet, or
/// there would be room again; a sender that was interrupted tries again.
fn queue(sockets: &(UdpSocket, UdpSocket), limit: QueueLimit) -> Result<Check, BedError> {
    let (what, unit, set, each) = match limit {
        QueueLimit::Packets(packets) => ("queue", "packets", f64::from(packets), 1.0),
        QueueLimit::Bytes(bytes) => ("queue", "bytes", bytes as f64, FULL_BYTES as f64),
        QueueLimit::Unlimited => unreachable!("only limits are measured"),
    };
    let load = Load { packets: BURST, bytes: FULL_BYTES, interval: 0, window: NO_WINDOW };
    for _ in 0..5 {
        let Probed { arrivals, sending } = probe::run(sockets, load, QUIET)?;
        if sending < SLOW_PACKET / 2 {
            let mut check = Check::new(what, unit, set, arrivals.len() as f64 * each, 0.0);
            check.note = format!("{} packets of a burst of {}", arrivals.len(), load.packets);
            return Ok(check);
        }
    }
    let busy = "calibration of a queue: no burst got out in 10 ms; end what keeps the machine busy";
    Err(BedError::Failed(busy.to_owned()))
}
