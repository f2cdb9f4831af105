//! A half-duplex channel shared by the distributed coordination function (DCF) of IEEE 802.11.
//!
//! Modelled: carrier sense, interframe spaces, binary exponential backoff with post-backoff, collisions of
//! stations whose backoff ends in the same slot, link-layer acknowledgements, retries, a retry limit, a
//! drop-tail queue per station, frame loss by noise. All stations hear each other.
//!
//! Left out, and who could notice: hidden stations, capture, RTS/CTS, rate fallback, beacons and the
//! extended interframe space (a station waits DIFS after a collision, too). Acknowledgements are never lost.

use std::collections::VecDeque;

use crate::{ByteTime, Drop, Frame, GilbertElliott, NEVER, Nanos, Probability, Rng, wire::Limit};

/// Bytes of a link-layer acknowledgement.
const ACK_BYTES: u32 = 14;

/// Settings of a medium. The timing names are those of IEEE 802.11.
#[derive(Clone, Copy, Debug)]
pub struct MediumConfig {
    /// Rate of a frame's body, bits per second.
    pub rate_bps: u64,
    /// Rate of a link-layer acknowledgement, bits per second.
    pub basic_rate_bps: u64,
    /// Propagation delay.
    pub delay: Nanos,
    /// Queue limit of a station, the frame in transmission included.
    pub limit: Limit,
    /// Independent loss of each transmission.
    pub loss: Probability,
    /// Slot time.
    pub slot: Nanos,
    /// Short interframe space.
    pub sifs: Nanos,
    /// Preamble and PLCP header before every frame.
    pub preamble: Nanos,
    /// MAC header and frame check sequence.
    pub mac_header_bytes: u32,
    /// First contention window; backoff is drawn from `0..=cw_min`.
    pub cw_min: u32,
    /// Largest contention window.
    pub cw_max: u32,
    /// Transmissions of a frame before it is dropped.
    pub retry_limit: u32,
}

impl MediumConfig {
    fn difs(&self) -> Nanos {
        self.sifs + 2 * self.slot
    }
}

/// What an event of the medium brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery<P> {
    /// The packet has reached the next node.
    Arrived(P),
    /// The packet was given up at its station.
    GivenUp(P),
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediumCounters {
    /// Packets offered.
    pub offered: u64,
    /// Packets that found their station's queue full.
    pub dropped_queue: u64,
    /// Packets that met a medium that was down.
    pub dropped_down: u64,
    /// Packets given up after the retry limit.
    pub lost: u64,
    /// Packets that arrived.
    pub delivered: u64,
    /// Bytes that arrived.
    pub delivered_bytes: u64,
    /// Transmissions, retries included.
    pub transmissions: u64,
    /// Times that two or more stations sent in one slot.
    pub collisions: u64,
}

struct Station<P> {
    queue: VecDeque<P>,
    queued_bytes: u64,
    /// When the frame at the head got there.
    head_since: Nanos,
    /// Slots of backoff left, counted from the end of DIFS after `idle_since`.
    backoff: u32,
    window: u32,
    attempts: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nobody sends; the medium has been idle since then.
    Idle(Nanos),
    /// A frame's body ends then.
    Frame(Nanos),
    /// The exchange (acknowledgement or its absence) ends then.
    Tail(Nanos),
}

/// The medium with its stations.
pub struct Medium<P> {
    config: MediumConfig,
    byte_time: ByteTime,
    ack_time: Nanos,
    stations: Vec<Station<P>>,
    phase: Phase,
    senders: Vec<usize>,
    in_flight: VecDeque<(Nanos, P)>,
    rng: Rng,
    /// Losses in bursts, in place of `config.loss`.
    bursts: Option<Box<GilbertElliott>>,
    up: bool,
    counters: MediumCounters,
}

impl<P: Frame> Medium<P> {
    /// An idle medium of `stations` stations.
    pub fn new(config: MediumConfig, stations: usize, rng: Rng) -> Self {
        let idle = || Station {
            queue: VecDeque::new(),
            queued_bytes: 0,
            head_since: 0,
            backoff: 0,
            window: config.cw_min,
            attempts: 0,
        };
        Self {
            byte_time: ByteTime::new(config.rate_bps),
            ack_time: config.preamble + ByteTime::new(config.basic_rate_bps).of(ACK_BYTES),
            config,
            stations: (0..stations).map(|_| idle()).collect(),
            phase: Phase::Idle(0),
            senders: Vec::new(),
            in_flight: VecDeque::new(),
            rng,
            bursts: None,
            up: true,
            counters: MediumCounters::default(),
        }
    }

    /// A station offers a packet at `now`; `Err` says why it was refused.
    pub fn offer(&mut self, now: Nanos, station: usize, packet: P) -> Result<(), Drop> {
        self.counters.offered += 1;
        if !self.up {
            self.counters.dropped_down += 1;
            return Err(Drop::Down);
        }
        let bytes = u64::from(packet.bytes());
        let station = &mut self.stations[station];
        let full = match self.config.limit {
            Limit::Unlimited => false,
            Limit::Packets(limit) => station.queue.len() >= limit as usize,
            Limit::Bytes(limit) => station.queued_bytes + bytes > limit,
        };
        if full {
            self.counters.dropped_queue += 1;
            return Err(Drop::Queue);
        }
        if station.queue.is_empty() {
            station.head_since = now;
        }
        station.queue.push_back(packet);
        station.queued_bytes += bytes;
        Ok(())
    }

    /// When [`Medium::advance`] is to be called next; [`NEVER`] if nothing is going on. Every offer and
    /// every advance may change it.
    pub fn next_event(&self) -> Nanos {
        let phase = match self.phase {
            Phase::Idle(since) => {
                (0..self.stations.len()).map(|station| self.ready_at(station, since)).min().unwrap_or(NEVER)
            }
            Phase::Frame(end) | Phase::Tail(end) => end,
        };
        self.in_flight.front().map_or(phase, |&(arrives, _)| arrives.min(phase))
    }

    /// When a station would begin to send if nobody did before: after DIFS and its backoff, or at once if the
    /// medium has been idle for longer than that when its packet comes.
    fn ready_at(&self, station: usize, idle_since: Nanos) -> Nanos {
        let station = &self.stations[station];
        if station.queue.is_empty() {
            return NEVER;
        }
        let counted = idle_since + self.config.difs() + u64::from(station.backoff) * self.config.slot;
        counted.max(station.head_since)
    }

    /// Brings the medium to `now`, which is the time [`Medium::next_event`] gave. What happens to packets
    /// goes to `deliver`.
    pub fn advance(&mut self, now: Nanos, mut deliver: impl FnMut(Delivery<P>)) {
        if let Some(&(arrives, packet)) = self.in_flight.front()
            && arrives <= now
        {
            self.in_flight.pop_front();
            self.counters.delivered += 1;
            self.counters.delivered_bytes += u64::from(packet.bytes());
            deliver(Delivery::Arrived(packet));
            return;
        }
        match self.phase {
            Phase::Idle(since) => self.begin_exchange(now, since),
            Phase::Frame(end) => self.end_frame(end, deliver),
            Phase::Tail(end) => self.phase = Phase::Idle(end),
        }
    }

    fn begin_exchange(&mut self, now: Nanos, idle_since: Nanos) {
        self.senders.clear();
        let counting_from = idle_since + self.config.difs();
        for index in 0..self.stations.len() {
            if self.ready_at(index, idle_since) == now {
                self.senders.push(index);
            } else {
                let slots = now.saturating_sub(counting_from) / self.config.slot;
                let station = &mut self.stations[index];
                station.backoff = station.backoff.saturating_sub(u32::try_from(slots).unwrap_or(u32::MAX));
            }
        }
        let longest = self.senders.iter().map(|&s| self.stations[s].queue[0].bytes()).max().unwrap_or(0);
        let body = self.config.preamble + self.byte_time.of(longest + self.config.mac_header_bytes);
        self.counters.transmissions += self.senders.len() as u64;
        self.phase = Phase::Frame(now + body);
    }

    fn end_frame(&mut self, end: Nanos, mut deliver: impl FnMut(Delivery<P>)) {
        self.phase = Phase::Tail(end + self.config.sifs + self.ack_time);
        let collided = self.senders.len() > 1;
        let noise = match &mut self.bursts {
            Some(bursts) => bursts.loses(&mut self.rng),
            None => self.config.loss != Probability::ZERO && self.rng.chance(self.config.loss),
        };
        if !collided && !noise {
            let packet = self.finish(end, self.senders[0]);
            let after = self.in_flight.back().map_or(0, |&(arrives, _)| arrives);
            self.in_flight.push_back(((end + self.config.delay).max(after), packet));
            return;
        }
        self.counters.collisions += u64::from(collided);
        for index in 0..self.senders.len() {
            if let Some(packet) = self.fail(end, self.senders[index]) {
                deliver(Delivery::GivenUp(packet));
            }
        }
    }

    /// A transmission was not acknowledged: back off further, or give the frame up.
    fn fail(&mut self, now: Nanos, index: usize) -> Option<P> {
        let station = &mut self.stations[index];
        station.attempts += 1;
        if station.attempts >= self.config.retry_limit {
            self.counters.lost += 1;
            return Some(self.finish(now, index));
        }
        station.window = (2 * station.window + 1).min(self.config.cw_max);
        station.backoff = self.rng.below(u64::from(station.window) + 1) as u32;
        None
    }

    /// Takes the head frame of a station, which backs off before its next one.
    fn finish(&mut self, now: Nanos, index: usize) -> P {
        let station = &mut self.stations[index];
        let packet = station.queue.pop_front().expect("the sender had a frame");
        station.queued_bytes -= u64::from(packet.bytes());
        station.head_since = now;
        station.attempts = 0;
        station.window = self.config.cw_min;
        station.backoff = self.rng.below(u64::from(station.window) + 1) as u32;
        packet
    }

    /// Packets waiting at all stations.
    pub fn queued(&self) -> u32 {
        self.stations.iter().map(|station| station.queue.len() as u32).sum()
    }

    /// Counters since the start.
    pub fn counters(&self) -> MediumCounters {
        self.counters
    }

    /// Changes the rate, from the next frame on.
    pub fn set_rate(&mut self, rate_bps: u64) {
        self.byte_time = ByteTime::new(rate_bps);
    }

    /// Changes the propagation delay, from the next frame on; never lets a packet overtake.
    pub fn set_delay(&mut self, delay: Nanos) {
        self.config.delay = delay;
    }

    /// Changes the loss, from the next frame on.
    pub fn set_loss(&mut self, loss: Probability) {
        self.config.loss = loss;
    }

    /// Lets noise come in bursts, from the next frame on, or no longer; each transmission is one step of the channel.
    pub fn set_bursts(&mut self, bursts: Option<GilbertElliott>) {
        self.bursts = bursts.map(Box::new);
    }

    /// Takes the medium down or up. Going down gives all packets to `dropped`.
    pub fn set_up(&mut self, now: Nanos, up: bool, mut dropped: impl FnMut(P)) {
        self.up = up;
        if up {
            return;
        }
        let lost = self.in_flight.drain(..).map(|(_, packet)| packet);
        for packet in lost.chain(self.stations.iter_mut().flat_map(|station| station.queue.drain(..))) {
            self.counters.dropped_down += 1;
            dropped(packet);
        }
        for station in &mut self.stations {
            station.queued_bytes = 0;
            station.attempts = 0;
            station.window = self.config.cw_min;
        }
        self.phase = Phase::Idle(now);
    }
}

#[cfg(test)]
mod tests;
