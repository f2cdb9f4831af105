//! One direction of a cable: drop-tail queue, transmitter, propagation.
//!
//! Accepted packets lie in one ring from their acceptance until their arrival; `sent` divides those that
//! have left the transmitter from those that still wait or are being sent. That border is only moved when
//! somebody asks for the queue or the queue looks full, so a packet costs a few additions. A ring that runs
//! empty begins again at its first slot: a burst may have made it large, and going round it would touch cold
//! memory for ever.

use crate::{ByteTime, Drop, Frame, NEVER, Nanos, Probability, Rng};

/// How much the queue holds, the packet in transmission included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// No limit.
    Unlimited,
    /// In packets.
    Packets(u32),
    /// In bytes.
    Bytes(u64),
}

/// Settings of a wire.
#[derive(Clone, Copy, Debug)]
pub struct WireConfig {
    /// Bits per second, above 0.
    pub rate_bps: u64,
    /// Propagation delay.
    pub delay: Nanos,
    /// Queue limit.
    pub limit: Limit,
    /// Independent loss of each packet, after it has used the link.
    pub loss: Probability,
}

/// What became of an offered packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Accepted, behind others: the next arrival is what it was.
    Behind,
    /// Accepted as the only one: the next arrival is at this time.
    First(Nanos),
    /// Refused.
    Dropped(Drop),
}

/// A packet on the wire: with the simulator's 40-byte packets just under a cache line.
#[derive(Clone, Copy, Default)]
struct Entry<P> {
    arrives: Nanos,
    departs: Nanos,
    packet: P,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireCounters {
    /// Packets that found the queue full.
    pub dropped_queue: u64,
    /// Packets that met a link that was down.
    pub dropped_down: u64,
    /// Packets lost at random.
    pub lost: u64,
    /// Packets that arrived.
    pub delivered: u64,
    /// Bytes that arrived.
    pub delivered_bytes: u64,
}

/// One direction of a cable.
pub struct Wire<P> {
    free_at: Nanos,
    byte_time: ByteTime,
    delay: Nanos,
    /// No packet arrives before this: a shorter delay does not let it overtake.
    arrives_floor: Nanos,
    limit_packets: u32,
    head: u32,
    sent: u32,
    tail: u32,
    mask: u32,
    up: bool,
    limit_bytes: u64,
    waiting_bytes: u64,
    ring: Vec<Entry<P>>,
    loss: Option<Box<Loss>>,
    counters: WireCounters,
}

struct Loss {
    probability: Probability,
    rng: Rng,
    /// Absolute ring positions of packets that will not arrive, ascending.
    doomed: std::collections::VecDeque<u32>,
}

impl<P: Frame> Wire<P> {
    /// An idle wire. `rng` decides its random losses.
    pub fn new(config: WireConfig, rng: Rng) -> Self {
        let (limit_packets, limit_bytes) = limits(config.limit);
        Self {
            free_at: 0,
            byte_time: ByteTime::new(config.rate_bps),
            delay: config.delay,
            arrives_floor: 0,
            limit_packets,
            head: 0,
            sent: 0,
            tail: 0,
            mask: 0,
            up: true,
            limit_bytes,
            waiting_bytes: 0,
            ring: Vec::new(),
            loss: (config.loss != Probability::ZERO)
                .then(|| Box::new(Loss { probability: config.loss, rng, doomed: Default::default() })),
            counters: WireCounters::default(),
        }
    }

    /// Offers a packet at `now`. Calls must not go back in time.
    #[inline(always)]
    pub fn offer(&mut self, now: Nanos, packet: P) -> Offer {
        self.offer_made(now, packet.bytes(), || packet)
    }

    /// Offers a packet of `bytes`, which `make` makes once it is accepted: right where it will lie, because
    /// copying what has just been written piece by piece would stall.
    #[inline(always)]
    pub fn offer_made(&mut self, now: Nanos, bytes: u32, make: impl FnOnce() -> P) -> Offer {
        if self.looks_full(bytes) && !self.has_room(now, bytes) {
            self.counters.dropped_queue += 1;
            return Offer::Dropped(Drop::Queue);
        }
        if !self.up {
            self.counters.dropped_down += 1;
            return Offer::Dropped(Drop::Down);
        }
        let departs = self.free_at.max(now).saturating_add(self.byte_time.of(bytes));
        self.free_at = departs;
        if self.loss.is_some() {
            self.draw_loss();
        }
        let arrives = departs.saturating_add(self.delay).max(self.arrives_floor);
        let alone = self.head == self.tail;
        let slot = self.next_slot();
        slot.arrives = arrives;
        slot.departs = departs;
        slot.packet = make();
        if self.limit_bytes != u64::MAX {
            self.waiting_bytes += u64::from(bytes);
        }
        if alone { Offer::First(arrives) } else { Offer::Behind }
    }

    fn draw_loss(&mut self) {
        if let Some(loss) = &mut self.loss
            && loss.rng.chance(loss.probability)
        {
            loss.doomed.push_back(self.tail);
        }
    }

    #[inline(always)]
    fn looks_full(&self, bytes: u32) -> bool {
        self.tail.wrapping_sub(self.sent) >= self.limit_packets
            || self.waiting_bytes + u64::from(bytes) > self.limit_bytes
    }

    #[cold]
    fn has_room(&mut self, now: Nanos, bytes: u32) -> bool {
        self.settle(now);
        !self.looks_full(bytes)
    }

    /// Moves the border between sent and waiting packets to `now`.
    fn settle(&mut self, now: Nanos) {
        while self.sent != self.tail && self.ring[(self.sent & self.mask) as usize].departs <= now {
            if self.limit_bytes != u64::MAX {
                self.waiting_bytes -= u64::from(self.ring[(self.sent & self.mask) as usize].packet.bytes());
            }
            self.sent = self.sent.wrapping_add(1);
        }
    }

    #[inline(always)]
    fn next_slot(&mut self) -> &mut Entry<P> {
        if self.tail.wrapping_sub(self.head) as usize == self.ring.len() {
            self.grow();
        }
        let slot = (self.tail & self.mask) as usize;
        self.tail = self.tail.wrapping_add(1);
        &mut self.ring[slot]
    }

    #[cold]
    fn grow(&mut self) {
        let old = self.ring.len();
        let new = (2 * old).max(4);
        let mut ring = vec![Entry::default(); new];
        let mut position = self.head;
        while position != self.tail {
            let (from, to) = ((position & self.mask) as usize, position as usize & (new - 1));
            ring[to] = self.ring[from];
            position = position.wrapping_add(1);
        }
        self.ring = ring;
        self.mask = new as u32 - 1;
    }

    /// The packet that arrives next.
    ///
    /// # Panics
    /// If the wire is empty.
    #[inline(always)]
    pub fn front(&self) -> &P {
        assert!(self.head != self.tail, "an arrival was due");
        &self.ring[(self.head & self.mask) as usize].packet
    }

    /// The packet that was accepted last, to be changed in place: writing a part of a packet just before it
    /// is copied would stall the copy.
    ///
    /// # Panics
    /// If the wire is empty.
    #[inline(always)]
    pub fn back_mut(&mut self) -> &mut P {
        assert!(self.head != self.tail, "a packet has been accepted");
        &mut self.ring[(self.tail.wrapping_sub(1) & self.mask) as usize].packet
    }

    /// Takes the packet that arrives next off the wire: false if it was lost on the way.
    ///
    /// # Panics
    /// If the wire is empty.
    #[inline(always)]
    pub fn pop(&mut self) -> bool {
        let bytes = self.front().bytes();
        let position = self.head;
        if self.sent == position {
            if self.limit_bytes != u64::MAX {
                self.waiting_bytes -= u64::from(bytes);
            }
            self.sent = position.wrapping_add(1);
        }
        self.head = position.wrapping_add(1);
        let lost = self.loss.is_some() && self.is_doomed(position);
        if self.head == self.tail {
            (self.head, self.sent, self.tail) = (0, 0, 0);
        }
        if lost {
            return false;
        }
        self.counters.delivered += 1;
        self.counters.delivered_bytes += u64::from(bytes);
        true
    }

    fn is_doomed(&mut self, position: u32) -> bool {
        let Some(loss) = &mut self.loss else { return false };
        let doomed = loss.doomed.front() == Some(&position);
        if doomed {
            loss.doomed.pop_front();
            self.counters.lost += 1;
        }
        doomed
    }

    /// When the next packet arrives; [`NEVER`] if the wire is empty.
    #[inline(always)]
    pub fn next_arrival(&self) -> Nanos {
        if self.head == self.tail { NEVER } else { self.ring[(self.head & self.mask) as usize].arrives }
    }

    /// Packets in the queue at `now`, the one in transmission included.
    pub fn queued(&mut self, now: Nanos) -> u32 {
        self.settle(now);
        self.tail.wrapping_sub(self.sent)
    }

    /// Counters since the start.
    pub fn counters(&self) -> WireCounters {
        self.counters
    }

    /// Changes the rate; what waits goes on at the new one, the packet in transmission with its rest.
    /// Returns the time of the next arrival.
    pub fn set_rate(&mut self, now: Nanos, rate_bps: u64) -> Nanos {
        let old = std::mem::replace(&mut self.byte_time, ByteTime::new(rate_bps));
        self.settle(now);
        self.reschedule(now, Some(old))
    }

    /// Changes the delay for all that has not left the transmitter. Returns the time of the next arrival.
    pub fn set_delay(&mut self, now: Nanos, delay: Nanos) -> Nanos {
        self.settle(now);
        self.delay = delay;
        self.arrives_floor = match self.sent.wrapping_sub(self.head) {
            0 => self.arrives_floor,
            _ => self.ring[(self.sent.wrapping_sub(1) & self.mask) as usize].arrives,
        };
        self.reschedule(now, None)
    }

    fn reschedule(&mut self, now: Nanos, old_rate: Option<ByteTime>) -> Nanos {
        let mut position = self.sent;
        let mut free_at = now;
        while position != self.tail {
            let slot = (position & self.mask) as usize;
            if let Some(old) = old_rate {
                let bytes = self.ring[slot].packet.bytes();
                let whole = self.byte_time.of(bytes);
                let in_transmission = position == self.sent;
                let time = if in_transmission {
                    let old_whole = old.of(bytes).max(1);
                    let left = (self.ring[slot].departs - now).min(old_whole);
                    (u128::from(whole) * u128::from(left) / u128::from(old_whole)) as u64
                } else {
                    whole
                };
                free_at = free_at.saturating_add(time);
                self.ring[slot].departs = free_at;
            }
            let arrives = self.ring[slot].departs.saturating_add(self.delay);
            self.ring[slot].arrives = arrives.max(self.arrives_floor);
            position = position.wrapping_add(1);
        }
        if old_rate.is_some() {
            self.free_at = free_at;
        }
        self.next_arrival()
    }

    /// Changes the random loss for packets offered from now on. `rng` is used if there was none before.
    pub fn set_loss(&mut self, probability: Probability, rng: Rng) {
        match &mut self.loss {
            Some(loss) => loss.probability = probability,
            None => self.loss = Some(Box::new(Loss { probability, rng, doomed: Default::default() })),
        }
    }

    /// Takes the link down or up. Going down gives all packets on the wire to `dropped`. Returns the time of
    /// the next arrival.
    pub fn set_up(&mut self, now: Nanos, up: bool, mut dropped: impl FnMut(P)) -> Nanos {
        self.up = up;
        if !up {
            while self.head != self.tail {
                dropped(self.ring[(self.head & self.mask) as usize].packet);
                self.counters.dropped_down += 1;
                self.head = self.head.wrapping_add(1);
            }
            self.sent = self.tail;
            self.waiting_bytes = 0;
            self.free_at = now;
            if let Some(loss) = &mut self.loss {
                loss.doomed.clear();
            }
        }
        self.next_arrival()
    }
}

fn limits(limit: Limit) -> (u32, u64) {
    match limit {
        Limit::Unlimited => (u32::MAX, u64::MAX),
        Limit::Packets(packets) => (packets, u64::MAX),
        Limit::Bytes(bytes) => (u32::MAX, bytes),
    }
}

#[cfg(test)]
mod tests;
