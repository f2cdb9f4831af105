//! A half-duplex channel shared by the distributed coordination function (DCF) of IEEE 802.11.
//!
//! Modelled: carrier sense, interframe spaces, binary exponential backoff with post-backoff, collisions of
//! stations whose backoff ends in the same slot, link-layer acknowledgements and their loss, retries, retry
//! limits, RTS/CTS, a drop-tail queue per station, frame loss by noise that depends on the rate, rates of each
//! station and their fallback (`fallback.rs`), DSSS and OFDM frame lengths (`air.rs`). All stations hear each
//! other.
//!
//! Left out, and who could notice: hidden stations, capture, beacons, fragmentation, 802.11e's access categories
//! and frame aggregation (without which 802.11n and later are far slower than in practice), a station's
//! choice of rate per receiver. Noise never damages RTS and CTS. Propagation takes no time from the exchange.

mod air;
mod fallback;
mod from_scenario;
mod station;

use std::collections::VecDeque;

use crate::{Drop, Frame, GilbertElliott, NEVER, Nanos, Probability, Rng, wire::Limit};
use air::Rate;
use fallback::Ladder;
use station::Station;

pub use air::Framing;
pub use anabranch_scenario::model::{AfterFailure, Fallback};
pub use fallback::{RateStep, Transmitter};

/// Bytes of a link-layer acknowledgement, and of a CTS.
const ACK_BYTES: u32 = 14;
/// Bytes of an RTS.
const RTS_BYTES: u32 = 20;

/// Settings of a medium. The timing names are those of IEEE 802.11.
#[derive(Clone, Debug)]
pub struct MediumConfig {
    /// What each station sends with, in the order of their numbers.
    pub transmitters: Vec<Transmitter>,
    /// When stations change their rate; `None`: never.
    pub fallback: Option<Fallback>,
    /// Rate of RTS, CTS and link-layer acknowledgements, bits per second.
    pub basic_rate_bps: u64,
    /// Lowest rate that all stations understand, bits per second: that of the acknowledgement in EIFS.
    pub lowest_rate_bps: u64,
    /// Propagation delay.
    pub delay: Nanos,
    /// Queue limit of a station, the frame in transmission included.
    pub limit: Limit,
    /// Independent loss of each link-layer acknowledgement.
    pub ack_loss: Probability,
    /// Slot time, above 0.
    pub slot: Nanos,
    /// Short interframe space.
    pub sifs: Nanos,
    /// What surrounds a frame's bits.
    pub framing: Framing,
    /// MAC header and frame check sequence.
    pub mac_header_bytes: u32,
    /// First contention window; backoff is drawn from `0..=cw_min`.
    pub cw_min: u32,
    /// Largest contention window.
    pub cw_max: u32,
    /// Failures of a frame before it is dropped: of its transmission, or of its RTS.
    pub retry_limit: u32,
    /// Failures of a frame after an answered RTS before it is dropped.
    pub long_retry_limit: u32,
    /// Frames longer than this, MAC header included, are announced by RTS and CTS; `None`: never.
    pub rts_threshold_bytes: Option<u32>,
    /// What follows a frame that was not acknowledged.
    pub after_failure: AfterFailure,
    /// A frame that finds the medium busy begins with a backoff (section 10.3.4.2), and does not only wait for
    /// DIFS.
    pub backoff_when_busy: bool,
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
    /// What happened on the air.
    pub airtime: AirCounters,
}

/// What happened on the air since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AirCounters {
    /// Transmissions, retries included.
    pub transmissions: u64,
    /// Times that two or more stations sent in one slot.
    pub collisions: u64,
    /// Transmissions of a frame after its first one.
    pub retries: u64,
    /// Time taken by frames, their acknowledgements and the interframe spaces amid an exchange.
    pub busy: Nanos,
}

impl AirCounters {
    /// What has been counted since `begin`.
    pub fn since(self, begin: Self) -> Self {
        Self {
            transmissions: self.transmissions - begin.transmissions,
            collisions: self.collisions - begin.collisions,
            retries: self.retries - begin.retries,
            busy: self.busy - begin.busy,
        }
    }

    /// The figures of the summary, for a window of so many seconds.
    pub fn figures(self, window_s: f64) -> [(&'static str, f64); 4] {
        [
            ("airtime_share", self.busy as f64 / 1e9 / window_s),
            ("transmissions", self.transmissions as f64),
            ("collisions", self.collisions as f64),
            ("retries", self.retries as f64),
        ]
    }
}

/// The medium with its stations.
pub struct Medium<P> {
    config: MediumConfig,
    basic_rate: Rate,
    ack_time: Nanos,
    /// What the others wait for after a failure, and what the senders do.
    after_failure: [Nanos; 2],
    /// Stations that become ready within this time of the first collide with it.
    vulnerable: Nanos,
    stations: Vec<Station<P>>,
    /// End of the frame on the air; `None`: there is none.
    frame_end: Option<Nanos>,
    senders: Vec<usize>,
    in_flight: VecDeque<(Nanos, P)>,
    rng: Rng,
    /// Losses in bursts, in place of `config.loss`.
    bursts: Option<Box<GilbertElliott>>,
    up: bool,
    counters: MediumCounters,
}

impl<P: Frame> Medium<P> {
    /// An idle medium with one station per transmitter.
    ///
    /// # Panics
    /// If a transmitter does not begin with a rate that it has.
    pub fn new(config: MediumConfig, rng: Rng) -> Self {
        let basic_rate = Rate::new(config.basic_rate_bps);
        let ack_time = config.framing.control(basic_rate, ACK_BYTES);
        let after_failure = match config.after_failure {
            AfterFailure::Acknowledgement => [config.sifs + ack_time; 2],
            AfterFailure::Nothing => [0; 2],
            AfterFailure::Extended => {
                let lowest = Rate::new(config.lowest_rate_bps);
                // aRxPHYStartDelay is as long as the preamble: 192 us with DSSS, 20 us with OFDM.
                let timeout = config.sifs + config.slot + config.framing.control_preamble;
                [config.sifs + config.framing.control(lowest, ACK_BYTES), timeout]
            }
        };
        let station = |transmitter| Station::new(config.cw_min, Ladder::new(transmitter, config.fallback));
        Self {
            basic_rate,
            ack_time,
            after_failure,
            vulnerable: if config.after_failure == AfterFailure::Extended { config.slot } else { 1 },
            stations: config.transmitters.iter().map(station).collect(),
            config,
            frame_end: None,
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
        let station = &mut self.stations[station];
        let finds_busy = self.config.backoff_when_busy
            && (self.frame_end.is_some() || now < station.idle_from + self.config.difs());
        let taken = station.offer(now, packet, &self.config, finds_busy, &mut self.rng);
        self.counters.dropped_queue += u64::from(taken.is_err());
        taken
    }

    /// When [`Medium::advance`] is to be called next; [`NEVER`] if nothing is going on. Every offer and
    /// every advance may change it.
    pub fn next_event(&self) -> Nanos {
        let next = self.frame_end.unwrap_or_else(|| {
            self.stations.iter().map(|station| station.ready_at(&self.config)).min().unwrap_or(NEVER)
        });
        self.in_flight.front().map_or(next, |&(arrives, _)| arrives.min(next))
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
        match self.frame_end.take() {
            None => self.begin_exchange(now),
            Some(end) => self.end_frame(end, deliver),
        }
    }

    fn begin_exchange(&mut self, now: Nanos) {
        self.senders.clear();
        let mut end = now;
        for index in 0..self.stations.len() {
            let ready_at = self.stations[index].ready_at(&self.config);
            if ready_at < now + self.vulnerable {
                self.senders.push(index);
                end = end.max(ready_at + self.first_frame(index));
            } else {
                self.stations[index].freeze(now, &self.config);
            }
        }
        if let [alone] = self.senders[..]
            && self.is_announced(alone)
        {
            // CTS and data follow the RTS, each after SIFS.
            end += 2 * self.config.sifs + self.ack_time + self.data_frame(alone);
            self.stations[alone].reserve();
        }
        let air = &mut self.counters.airtime;
        for &index in &self.senders {
            let station = &mut self.stations[index];
            air.transmissions += 1;
            air.retries += u64::from(station.transmissions > 0);
            station.transmissions += 1;
        }
        air.busy += end - now;
        self.frame_end = Some(end);
    }

    /// Whether the frame at the head of a station goes behind RTS and CTS.
    fn is_announced(&self, station: usize) -> bool {
        let bytes = self.stations[station].queue[0].bytes() + self.config.mac_header_bytes;
        self.config.rts_threshold_bytes.is_some_and(|threshold| bytes > threshold)
    }

    /// Time of what a station begins with: an RTS, or its data.
    fn first_frame(&self, station: usize) -> Nanos {
        if self.is_announced(station) {
            self.config.framing.control(self.basic_rate, RTS_BYTES)
        } else {
            self.data_frame(station)
        }
    }

    fn data_frame(&self, station: usize) -> Nanos {
        let station = &self.stations[station];
        let bytes = station.queue[0].bytes() + self.config.mac_header_bytes;
        self.config.framing.data(station.ladder.rate(), bytes)
    }

    fn end_frame(&mut self, end: Nanos, deliver: impl FnMut(Delivery<P>)) {
        let first = self.senders[0];
        let has_collided = self.senders.len() > 1;
        let is_damaged = match &mut self.bursts {
            Some(bursts) => bursts.loses(&mut self.rng),
            None => self.happens(self.stations[first].ladder.loss()),
        };
        if has_collided || is_damaged {
            self.counters.airtime.collisions += u64::from(has_collided);
            self.fail(end, deliver);
            return;
        }
        let answered = end + self.config.sifs + self.ack_time;
        self.counters.airtime.busy += answered - end;
        self.stations.iter_mut().for_each(|station| station.idle_from = answered);
        if !self.stations[first].has_arrived {
            let after = self.in_flight.back().map_or(0, |&(arrives, _)| arrives);
            let packet = self.stations[first].queue[0];
            self.in_flight.push_back(((end + self.config.delay).max(after), packet));
            self.stations[first].has_arrived = true;
        }
        if self.happens(self.config.ack_loss) {
            self.miss_acknowledgement(answered);
        } else {
            let station = &mut self.stations[first];
            station.ladder.succeeded();
            station.finish(end, &self.config, &mut self.rng);
        }
    }

    /// A draw that leaves the stream alone where nothing can happen.
    fn happens(&mut self, probability: Probability) -> bool {
        probability != Probability::ZERO && self.rng.chance(probability)
    }

    /// No acknowledgement came, and none was sent.
    fn fail(&mut self, end: Nanos, mut deliver: impl FnMut(Delivery<P>)) {
        let [others_wait, senders_wait] = self.after_failure;
        self.stations.iter_mut().for_each(|station| station.idle_from = end + others_wait);
        let has_collided = self.senders.len() > 1;
        for index in 0..self.senders.len() {
            let sender = self.senders[index];
            let is_announced = self.is_announced(sender);
            let station = &mut self.stations[sender];
            station.idle_from = end + senders_wait;
            // A collided RTS says nothing about the rate of the data.
            if !(has_collided && is_announced) {
                station.ladder.failed();
            }
            let had_arrived = station.has_arrived;
            let was_reserved = is_announced && !has_collided;
            let given_up = station.fail(end, &self.config, was_reserved, &mut self.rng);
            if let Some(packet) = given_up.filter(|_| !had_arrived) {
                self.counters.lost += 1;
                deliver(Delivery::GivenUp(packet));
            }
        }
    }

    /// The frame has arrived and its acknowledgement, which ended at `answered`, did not: the sender takes it for
    /// lost, and the receiver will drop the repetition. To the sender the acknowledgement is a damaged frame.
    fn miss_acknowledgement(&mut self, answered: Nanos) {
        let sender = self.senders[0];
        let was_reserved = self.is_announced(sender);
        let station = &mut self.stations[sender];
        if self.config.after_failure == AfterFailure::Extended {
            station.idle_from = answered + self.after_failure[0];
        }
        station.ladder.failed();
        station.fail(answered, &self.config, was_reserved, &mut self.rng);
    }

    /// Packets waiting at all stations.
    pub fn queued(&self) -> u32 {
        self.stations.iter().map(|station| station.queue.len() as u32).sum()
    }

    /// Counters since the start.
    pub fn counters(&self) -> MediumCounters {
        self.counters
    }

    /// Changes the rate, from the next frame on: all stations have this one alone.
    pub fn set_rate(&mut self, rate_bps: u64) {
        self.stations.iter_mut().for_each(|station| station.ladder.set_rate(rate_bps));
    }

    /// Changes the propagation delay, from the next frame on; never lets a packet overtake.
    pub fn set_delay(&mut self, delay: Nanos) {
        self.config.delay = delay;
    }

    /// Changes the loss at all rates, from the next frame on.
    pub fn set_loss(&mut self, loss: Probability) {
        self.stations.iter_mut().for_each(|station| station.ladder.set_loss(loss));
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
        let mut count = 0;
        let mut lose = |packet| {
            count += 1;
            dropped(packet);
        };
        self.in_flight.drain(..).for_each(|(_, packet)| lose(packet));
        for station in &mut self.stations {
            station.clear(now, &self.config, &mut lose);
        }
        self.counters.dropped_down += count;
        self.frame_end = None;
    }
}

#[cfg(test)]
mod tests;
