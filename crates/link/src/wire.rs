//! One direction of a cable: drop-tail queue, transmitter, propagation.
//!
//! Accepted packets lie in one ring from their acceptance until their arrival; `sent` divides those that
//! have left the transmitter from those that still wait or are being sent. That border is only moved when
//! somebody asks for the queue or the queue looks full, so a packet costs a few additions. A ring that runs
//! empty begins again at its first slot: a burst may have made it large, and going round it would touch cold
//! memory for ever.

use crate::{ByteTime, Drop, Frame, LinkCounters, NEVER, Nanos, Probability, Rng};

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

/// A packet on the wire; the simulator's 40-byte packets make it one cache line.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Entry<P> {
    arrives: Nanos,
    departs: Nanos,
    packet: P,
}

/// One direction of a cable. The first cache line holds all that accepting a packet takes on a plain wire.
#[repr(C, align(64))]
pub struct Wire<P> {
    free_at: Nanos,
    per_byte: u64,
    delay: Nanos,
    /// Its length is 0 or a power of two.
    ring: Box<[Entry<P>]>,
    head: u32,
    sent: u32,
    tail: u32,
    limit_packets: u32,
    shift: u8,
    /// Up, without a limit in bytes, random loss or a floor of arrivals: most wires, most of the time.
    plain: bool,
    up: bool,
    delivered: u64,
    delivered_bytes: u64,
    /// No packet arrives before this: a shorter delay does not let it overtake.
    arrives_floor: Nanos,
    limit_bytes: u64,
    waiting_bytes: u64,
    loss: Option<Box<Loss>>,
    drops: Option<Box<Drops>>,
}

/// Counters of what went wrong.
#[derive(Default)]
struct Drops {
    queue: u64,
    down: u64,
    lost: u64,
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
        let ByteTime { per_byte, shift } = ByteTime::new(config.rate_bps);
        let loss = (config.loss != Probability::ZERO)
            .then(|| Box::new(Loss { probability: config.loss, rng, doomed: Default::default() }));
        let mut wire = Self {
            free_at: 0,
            per_byte,
            delay: config.delay,
            ring: Box::default(),
            head: 0,
            sent: 0,
            tail: 0,
            limit_packets,
            shift,
            plain: false,
            up: true,
            delivered: 0,
            delivered_bytes: 0,
            arrives_floor: 0,
            limit_bytes,
            waiting_bytes: 0,
            loss,
            drops: None,
        };
        wire.note_plain();
        wire
    }

    fn note_plain(&mut self) {
        self.plain =
            self.up && self.limit_bytes == u64::MAX && self.loss.is_none() && self.arrives_floor == 0;
    }

    #[inline(always)]
    fn byte_time(&self) -> ByteTime {
        ByteTime { per_byte: self.per_byte, shift: self.shift }
    }

    /// Offers a packet at `now`. Calls must not go back in time.
    #[inline(always)]
    pub fn offer(&mut self, now: Nanos, packet: P) -> Offer {
        self.offer_made(now, packet.bytes(), |slot| *slot = packet)
    }

    /// Offers a packet of `bytes`, which `write` writes once it is accepted: right where it will lie, because
    /// copying what has just been written piece by piece would stall, and so would writing a piece of what is
    /// to be copied.
    #[inline(always)]
    pub fn offer_made(&mut self, now: Nanos, bytes: u32, write: impl FnOnce(&mut P)) -> Offer {
        if self.holds_limit() && !self.has_room_for_one(now) {
            return Offer::Dropped(self.drop_for(|drops| &mut drops.queue, Drop::Queue));
        }
        if !self.plain
            && let Some(drop) = self.refuses(now, bytes)
        {
            return Offer::Dropped(drop);
        }
        let departs = self.free_at.max(now).saturating_add(self.byte_time().of(bytes));
        self.free_at = departs;
        let arrives = departs.saturating_add(self.delay);
        let arrives = if self.plain { arrives } else { arrives.max(self.arrives_floor) };
        let alone = self.head == self.tail;
        let slot = self.next_slot();
        slot.arrives = arrives;
        slot.departs = departs;
        write(&mut slot.packet);
        if alone { Offer::First(arrives) } else { Offer::Behind }
    }

    #[inline(always)]
    fn holds_limit(&self) -> bool {
        self.tail.wrapping_sub(self.sent) >= self.limit_packets
    }

    #[cold]
    fn has_room_for_one(&mut self, now: Nanos) -> bool {
        self.settle(now);
        !self.holds_limit()
    }

    /// What only some wires have to ask before they accept a packet; if they do, its part in it is done.
    fn refuses(&mut self, now: Nanos, bytes: u32) -> Option<Drop> {
        if self.limit_bytes != u64::MAX {
            let bytes = u64::from(bytes);
            if self.waiting_bytes + bytes > self.limit_bytes {
                self.settle(now);
            }
            if self.waiting_bytes + bytes > self.limit_bytes {
                return Some(self.drop_for(|drops| &mut drops.queue, Drop::Queue));
            }
        }
        if !self.up {
            return Some(self.drop_for(|drops| &mut drops.down, Drop::Down));
        }
        if self.limit_bytes != u64::MAX {
            self.waiting_bytes += u64::from(bytes);
        }
        if let Some(loss) = &mut self.loss
            && loss.rng.chance(loss.probability)
        {
            loss.doomed.push_back(self.tail);
        }
        None
    }

    #[cold]
    fn drop_for(&mut self, counter: impl FnOnce(&mut Drops) -> &mut u64, why: Drop) -> Drop {
        *counter(self.drops.get_or_insert_default()) += 1;
        why
    }

    #[inline(always)]
    fn slot_of(&self, position: u32) -> usize {
        position as usize & self.ring.len().wrapping_sub(1)
    }

    /// Moves the border between sent and waiting packets to `now`.
    fn settle(&mut self, now: Nanos) {
        while self.sent != self.tail && self.ring[self.slot_of(self.sent)].departs <= now {
            if self.limit_bytes != u64::MAX {
                self.waiting_bytes -= u64::from(self.ring[self.slot_of(self.sent)].packet.bytes());
            }
            self.sent = self.sent.wrapping_add(1);
        }
    }

    #[inline(always)]
    fn next_slot(&mut self) -> &mut Entry<P> {
        if self.tail.wrapping_sub(self.head) as usize == self.ring.len() {
            self.grow();
        }
        let slot = self.slot_of(self.tail);
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
            let (from, to) = (self.slot_of(position), position as usize & (new - 1));
            ring[to] = self.ring[from];
            position = position.wrapping_add(1);
        }
        self.ring = ring.into_boxed_slice();
    }

    /// The packet that arrives next.
    ///
    /// # Panics
    /// If the wire is empty.
    #[inline(always)]
    pub fn front(&self) -> &P {
        assert!(self.head != self.tail, "an arrival was due");
        &self.ring[self.slot_of(self.head)].packet
    }

    /// Takes the packet that arrives next off the wire: false if it was lost on the way.
    ///
    /// # Panics
    /// If the wire is empty.
    #[inline(always)]
    pub fn pop(&mut self) -> bool {
        let bytes = self.front().bytes();
        let position = self.head;
        let waits = self.sent == position;
        self.head = position.wrapping_add(1);
        if waits {
            self.sent = self.head;
        }
        let arrived = self.plain || !self.takes_off(position, waits, bytes);
        if arrived {
            self.delivered += 1;
            self.delivered_bytes += u64::from(bytes);
        }
        if self.head == self.tail {
            (self.head, self.sent, self.tail) = (0, 0, 0);
        }
        arrived
    }

    /// The part of [`Wire::pop`] that only some wires have; says whether the packet was lost.
    fn takes_off(&mut self, position: u32, waits: bool, bytes: u32) -> bool {
        if waits && self.limit_bytes != u64::MAX {
            self.waiting_bytes -= u64::from(bytes);
        }
        self.loss.is_some() && self.is_doomed(position)
    }

    fn is_doomed(&mut self, position: u32) -> bool {
        let Some(loss) = &mut self.loss else { return false };
        let doomed = loss.doomed.front() == Some(&position);
        if doomed {
            loss.doomed.pop_front();
            self.drops.get_or_insert_default().lost += 1;
        }
        doomed
    }

    /// When the next packet arrives; [`NEVER`] if the wire is empty.
    #[inline(always)]
    pub fn next_arrival(&self) -> Nanos {
        if self.head == self.tail { NEVER } else { self.ring[self.slot_of(self.head)].arrives }
    }

    /// Packets in the queue at `now`, the one in transmission included.
    pub fn queued(&mut self, now: Nanos) -> u32 {
        self.settle(now);
        self.tail.wrapping_sub(self.sent)
    }

    /// Counters since the start.
    pub fn counters(&self) -> LinkCounters {
        let drops = self.drops.as_deref().unwrap_or(&Drops { queue: 0, down: 0, lost: 0 });
        LinkCounters {
            dropped_queue: drops.queue,
            dropped_down: drops.down,
            lost: drops.lost,
            delivered: self.delivered,
            delivered_bytes: self.delivered_bytes,
            marked: 0,
        }
    }

    /// Changes the rate; what waits goes on at the new one, the packet in transmission with its rest.
    /// Returns the time of the next arrival.
    pub fn set_rate(&mut self, now: Nanos, rate_bps: u64) -> Nanos {
        let old = self.byte_time();
        ByteTime { per_byte: self.per_byte, shift: self.shift } = ByteTime::new(rate_bps);
        self.settle(now);
        self.reschedule(now, Some(old))
    }

    /// Changes the delay for all that has not left the transmitter. Returns the time of the next arrival.
    pub fn set_delay(&mut self, now: Nanos, delay: Nanos) -> Nanos {
        self.settle(now);
        self.delay = delay;
        self.arrives_floor = match self.sent.wrapping_sub(self.head) {
            0 => self.arrives_floor,
            _ => self.ring[self.slot_of(self.sent.wrapping_sub(1))].arrives,
        };
        self.note_plain();
        self.reschedule(now, None)
    }

    fn reschedule(&mut self, now: Nanos, old_rate: Option<ByteTime>) -> Nanos {
        let mut position = self.sent;
        let mut free_at = now;
        while position != self.tail {
            let slot = self.slot_of(position);
            if let Some(old) = old_rate {
                let bytes = self.ring[slot].packet.bytes();
                let whole = self.byte_time().of(bytes);
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
        self.note_plain();
    }

    /// Takes the link down or up. Going down gives all packets on the wire to `dropped`. Returns the time of
    /// the next arrival.
    pub fn set_up(&mut self, now: Nanos, up: bool, mut dropped: impl FnMut(P)) -> Nanos {
        self.up = up;
        self.note_plain();
        if !up {
            while self.head != self.tail {
                dropped(self.ring[self.slot_of(self.head)].packet);
                self.drops.get_or_insert_default().down += 1;
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
