//! One direction of a cable with a queue discipline, a rate that follows a trace, losses in bursts or a varying delay.
//!
//! A packet waits in the queue, is in transmission, may be lost, and is then on its way until it arrives. With drop-tail,
//! constant rate, independent loss and constant delay the arrivals are, to the nanosecond, those of a [`crate::Wire`], which
//! is faster because it needs no event when a packet departs.
//!
//! Left out: a rate that a `change` sets on a link with a trace. Packets are whole: who looks at the far end for the first
//! half of a packet that a trace has divided does not find it.

use std::collections::VecDeque;

use anabranch_scenario::model::Trace;

use crate::{
    ByteTime, Drop, Frame, JitterConfig, Limit, LinkCounters, Loss, NEVER, Nanos, Rng,
    queue::{self, Discipline, Held, QueueConfig},
    trace::Schedule,
};

/// How fast a link sends.
#[derive(Clone, Debug)]
pub enum Rate {
    /// Bits per second, above 0.
    Constant(u64),
    /// As recorded.
    Trace(Trace),
}

/// Settings of a shaped link.
#[derive(Clone, Debug)]
pub struct ShapedConfig {
    /// How fast it sends.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Nanos,
    /// What it holds at most, the packet in transmission included.
    pub limit: Limit,
    /// Who waits and who is dropped.
    pub queue: QueueConfig,
    /// Loss of packets that have used the link.
    pub loss: Loss,
    /// Variation of the delay.
    pub jitter: Option<JitterConfig>,
}

/// Where a shaped link draws from.
#[derive(Clone, Debug)]
pub struct ShapedStreams {
    /// Random losses.
    pub loss: Rng,
    /// The queue discipline.
    pub queue: Rng,
    /// Variations of the delay.
    pub jitter: Rng,
}

/// What has become of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate<P> {
    /// It has reached the far end.
    Arrived(P),
    /// It is gone.
    Dropped(P, Drop),
}

enum Transmitter {
    Constant(ByteTime),
    Trace(Schedule),
}

/// The packet in transmission.
struct Sending<P> {
    packet: P,
    /// When its transmission ends, at a constant rate.
    ends: Nanos,
    /// What is still to be sent of it, by a trace.
    bytes_left: u32,
}

/// One direction of a cable. Whoever drives it calls [`Shaped::advance`] at the time of [`Shaped::next_event`].
pub struct Shaped<P> {
    transmitter: Transmitter,
    queue: Box<dyn Discipline<P>>,
    sending: Option<Sending<P>>,
    delay: Nanos,
    jitter: Option<(JitterConfig, Rng)>,
    loss: Option<(Loss, Rng)>,
    /// Packets on their way, in the order of arrival.
    flight: VecDeque<(Nanos, P)>,
    up: bool,
    /// The latest time that it has been brought to by an offer or a change.
    clock: Nanos,
    counters: LinkCounters,
}

impl<P: Frame> Shaped<P> {
    /// An idle link.
    pub fn new(config: ShapedConfig, streams: ShapedStreams) -> Self {
        let (transmitter, rate_bps) = match config.rate {
            Rate::Constant(rate_bps) => (Transmitter::Constant(ByteTime::new(rate_bps)), rate_bps),
            Rate::Trace(trace) => {
                let mean_bps = trace.mean_bps();
                (Transmitter::Trace(Schedule::new(trace)), mean_bps)
            }
        };
        Self {
            transmitter,
            queue: queue::new(config.queue, config.limit, rate_bps, streams.queue),
            sending: None,
            delay: config.delay,
            jitter: config.jitter.map(|jitter| (jitter, streams.jitter)),
            loss: (config.loss != Loss::NONE).then_some((config.loss, streams.loss)),
            flight: VecDeque::new(),
            up: true,
            clock: 0,
            counters: LinkCounters::default(),
        }
    }

    /// Lets a repetition of the trace, if there is one, begin at `zero`. To be called before any packet.
    pub fn begin_at(&mut self, zero: Nanos) {
        if let Transmitter::Trace(schedule) = &mut self.transmitter {
            schedule.begin_at(zero);
        }
    }

    /// Offers a packet at `now`. What is dropped, be it this packet or others, goes to `fate`. Senders may offer ahead of
    /// time, so `now` may be later than the next event; an offer for a time before that of the last one counts as made
    /// with it. The time of the next event may change.
    pub fn offer(&mut self, now: Nanos, packet: P, mut fate: impl FnMut(Fate<P>)) {
        let now = self.catch_up(now, &mut fate);
        if !self.up {
            self.counters.dropped_down += 1;
            fate(Fate::Dropped(packet, Drop::Down));
            return;
        }
        let was_idle = self.is_idle();
        let sending = self.in_transmission();
        let dropped = &mut self.counters.dropped_queue;
        self.queue.enqueue(now, packet, sending, &mut |packet| {
            *dropped += 1;
            fate(Fate::Dropped(packet, Drop::Queue));
        });
        if was_idle {
            match &mut self.transmitter {
                Transmitter::Constant(_) => self.send_next(now, &mut fate),
                Transmitter::Trace(schedule) => schedule.skip_to_after(now),
            }
        }
    }

    /// When [`Shaped::advance`] is to be called next; [`NEVER`] if the link is empty.
    pub fn next_event(&self) -> Nanos {
        let arrival = self.flight.front().map_or(NEVER, |&(arrives, _)| arrives);
        self.next_departure().min(arrival)
    }

    fn next_departure(&self) -> Nanos {
        match &self.transmitter {
            Transmitter::Constant(_) => self.sending.as_ref().map_or(NEVER, |sending| sending.ends),
            Transmitter::Trace(_) if self.is_idle() => NEVER,
            Transmitter::Trace(schedule) => schedule.time(),
        }
    }

    /// Brings the link to `now`, which is the time that [`Shaped::next_event`] gave. At most one packet arrives;
    /// if more do at that time, so often is there an event.
    pub fn advance(&mut self, now: Nanos, mut fate: impl FnMut(Fate<P>)) {
        self.settle(now, &mut fate);
        if let Some(&(arrives, packet)) = self.flight.front()
            && arrives <= now
        {
            self.flight.pop_front();
            self.counters.delivered += 1;
            self.counters.delivered_bytes += u64::from(packet.bytes());
            fate(Fate::Arrived(packet));
        }
    }

    fn is_idle(&self) -> bool {
        self.sending.is_none() && self.queue.waiting().packets == 0
    }

    fn in_transmission(&self) -> Held {
        match &self.sending {
            None => Held::default(),
            Some(sending) => Held { packets: 1, bytes: u64::from(sending.packet.bytes()) },
        }
    }

    /// Brings the transmitter to `now`, or leaves it where it is already; returns where.
    fn catch_up(&mut self, now: Nanos, fate: &mut dyn FnMut(Fate<P>)) -> Nanos {
        self.clock = self.clock.max(now);
        self.settle(self.clock, fate);
        self.clock
    }

    /// Lets happen what departs up to `now`.
    fn settle(&mut self, now: Nanos, fate: &mut dyn FnMut(Fate<P>)) {
        loop {
            let at = self.next_departure();
            if at > now || at == NEVER {
                return;
            }
            if let Transmitter::Constant(_) = self.transmitter {
                let sent = self.sending.take().expect("a departure was due");
                self.depart(at, sent.packet, fate);
                self.send_next(at, fate);
            } else {
                self.use_opportunity(at, fate);
            }
        }
    }

    /// Takes the next packet out of the queue into transmission.
    fn take_next(&mut self, now: Nanos, fate: &mut dyn FnMut(Fate<P>)) -> Option<P> {
        let dropped = &mut self.counters.dropped_queue;
        self.queue.dequeue(now, &mut |packet| {
            *dropped += 1;
            fate(Fate::Dropped(packet, Drop::Queue));
        })
    }

    fn send_next(&mut self, now: Nanos, fate: &mut dyn FnMut(Fate<P>)) {
        let Transmitter::Constant(byte_time) = self.transmitter else {
            unreachable!("a trace sends by itself")
        };
        match self.take_next(now, fate) {
            None => self.queue.rest(now),
            Some(packet) => {
                let ends = now.saturating_add(byte_time.of(packet.bytes()));
                self.sending = Some(Sending { packet, ends, bytes_left: 0 });
            }
        }
    }

    fn use_opportunity(&mut self, at: Nanos, fate: &mut dyn FnMut(Fate<P>)) {
        let mut bytes = Trace::OPPORTUNITY_BYTES;
        while bytes > 0 {
            let Some(mut sending) = self.sending.take().or_else(|| {
                let packet = self.take_next(at, fate)?;
                Some(Sending { packet, ends: NEVER, bytes_left: packet.bytes() })
            }) else {
                break;
            };
            let used = bytes.min(sending.bytes_left);
            bytes -= used;
            sending.bytes_left -= used;
            if sending.bytes_left == 0 {
                self.depart(at, sending.packet, fate);
            } else {
                self.sending = Some(sending);
            }
        }
        if self.is_idle() {
            self.queue.rest(at);
        }
        if let Transmitter::Trace(schedule) = &mut self.transmitter {
            schedule.step();
        }
    }

    /// A packet has left the transmitter: it is lost or on its way.
    fn depart(&mut self, at: Nanos, packet: P, fate: &mut dyn FnMut(Fate<P>)) {
        if let Some((loss, rng)) = &mut self.loss
            && loss.loses(rng)
        {
            self.counters.lost += 1;
            fate(Fate::Dropped(packet, Drop::Loss));
            return;
        }
        let mut arrives = at.saturating_add(self.delay);
        let mut place = self.flight.len();
        let mut reorder = false;
        if let Some((jitter, rng)) = &mut self.jitter {
            arrives = arrives.saturating_add(jitter.draw(rng));
            reorder = jitter.reorder;
        }
        if reorder {
            place = self.flight.partition_point(|&(other, _)| other <= arrives);
        } else if let Some(&(before, _)) = self.flight.back() {
            arrives = arrives.max(before);
        }
        self.flight.insert(place, (arrives, packet));
    }

    /// Packets in the queue, the one in transmission included.
    pub fn queued(&self) -> u32 {
        self.queue.waiting().and(self.in_transmission()).packets
    }

    /// Counters since the start.
    pub fn counters(&self) -> LinkCounters {
        LinkCounters { marked: self.queue.marked(), ..self.counters }
    }

    /// Changes the rate; the packet in transmission goes on with its rest.
    ///
    /// # Panics
    /// If the rate follows a trace.
    pub fn set_rate(&mut self, now: Nanos, rate_bps: u64, mut fate: impl FnMut(Fate<P>)) {
        let now = self.catch_up(now, &mut fate);
        let Transmitter::Constant(byte_time) = &mut self.transmitter else {
            panic!("the scenario refuses changes of the rate of a link with a trace");
        };
        let old = std::mem::replace(byte_time, ByteTime::new(rate_bps));
        if let Some(sending) = &mut self.sending {
            let bytes = sending.packet.bytes();
            let (whole, old_whole) = (byte_time.of(bytes), old.of(bytes).max(1));
            let left = (sending.ends - now).min(old_whole);
            let left = (u128::from(whole) * u128::from(left) / u128::from(old_whole)) as u64;
            sending.ends = now.saturating_add(left);
        }
        self.queue.set_rate(rate_bps);
    }

    /// Changes the delay for all that has not left the transmitter. A packet never overtakes because of that.
    pub fn set_delay(&mut self, now: Nanos, delay: Nanos, mut fate: impl FnMut(Fate<P>)) {
        self.catch_up(now, &mut fate);
        self.delay = delay;
    }

    /// Changes the loss for packets that have not left the transmitter. `rng` is used if there was none before.
    pub fn set_loss(&mut self, now: Nanos, loss: Loss, rng: Rng, mut fate: impl FnMut(Fate<P>)) {
        self.catch_up(now, &mut fate);
        let rng = self.loss.take().map_or(rng, |(_, rng)| rng);
        self.loss = Some((loss, rng));
    }

    /// Takes the link down or up. Going down drops all packets on it.
    pub fn set_up(&mut self, now: Nanos, up: bool, mut fate: impl FnMut(Fate<P>)) {
        let now = self.catch_up(now, &mut fate);
        self.up = up;
        if up {
            return;
        }
        let mut lose = |packet| {
            self.counters.dropped_down += 1;
            fate(Fate::Dropped(packet, Drop::Down));
        };
        self.flight.drain(..).for_each(|(_, packet)| lose(packet));
        if let Some(sending) = self.sending.take() {
            lose(sending.packet);
        }
        self.queue.clear(&mut lose);
        self.queue.rest(now);
    }
}

#[cfg(test)]
mod tests;
