//! Controlled delay (CoDel): RFC 8289.
//!
//! When a packet leaves the queue, the time that it has spent there is compared with a target. Once it has been above the
//! target for a whole interval, packets are dropped from the head, the n-th one `interval / sqrt(n)` after the one
//! before, until the time falls below the target or no more than one large packet waits.
//!
//! Where a packet is marked instead of dropped, it is sent, and the next mark or drop comes when the next drop would.
//! The root is exact to a nanosecond, where implementations approximate it.
//!
//! Left out: nothing of the RFC. Its MAXPACKET is the largest packet that has come so far.

use super::{Discipline, Fifo, Held, mark};
use crate::{Frame, Limit, Nanos};

/// Settings of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelConfig {
    /// Acceptable standing delay (TARGET of RFC 8289).
    pub target: Nanos,
    /// Over which the delay must have been above the target; above 0 (INTERVAL).
    pub interval: Nanos,
    /// Whether packets that can be are marked instead of dropped.
    pub ecn: bool,
}

/// The state machine of one queue; its variables are those of RFC 8289 section 5.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Control {
    /// When the delay will have been above the target for an interval; `None` while it is below.
    first_above: Option<Nanos>,
    drop_next: Nanos,
    count: u32,
    last_count: u32,
    dropping: bool,
}

/// Where packets go that are not sent, and what has been marked.
pub(super) struct Fate<'a, P> {
    pub(super) gone: &'a mut dyn FnMut(P),
    pub(super) marked: &'a mut u64,
}

/// `from + interval / sqrt(count)`: `control_law` of RFC 8289 section 5.
fn control_law(from: Nanos, interval: Nanos, count: u32) -> Nanos {
    let squared = u128::from(interval) * u128::from(interval) / u128::from(count.max(1));
    from.saturating_add(squared.isqrt() as Nanos)
}

impl Control {
    /// Takes the head of the queue and says whether it may be dropped: `dodequeue` of RFC 8289 section 5.
    fn look<P: Frame>(
        &mut self,
        now: Nanos,
        config: CoDelConfig,
        largest_bytes: u32,
        fifo: &mut Fifo<P>,
    ) -> (Option<P>, bool) {
        let Some((since, packet)) = fifo.pop() else {
            self.first_above = None;
            return (None, false);
        };
        if now.saturating_sub(since) < config.target || fifo.bytes <= u64::from(largest_bytes) {
            self.first_above = None;
            return (Some(packet), false);
        }
        let above = *self.first_above.get_or_insert(now.saturating_add(config.interval));
        (Some(packet), now >= above)
    }

    /// The next packet to send: `deque` of RFC 8289 section 5.
    pub(super) fn dequeue<P: Frame>(
        &mut self,
        now: Nanos,
        config: CoDelConfig,
        largest_bytes: u32,
        fifo: &mut Fifo<P>,
        fate: &mut Fate<'_, P>,
    ) -> Option<P> {
        let (mut packet, mut may_drop) = self.look(now, config, largest_bytes, fifo);
        if self.dropping {
            self.dropping = may_drop;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                let head = packet.as_mut().expect("what may be dropped is there");
                if mark(config.ecn, head, fate.marked) {
                    self.drop_next = control_law(self.drop_next, config.interval, self.count);
                    return packet;
                }
                (fate.gone)(*head);
                (packet, may_drop) = self.look(now, config, largest_bytes, fifo);
                self.dropping = may_drop;
                if may_drop {
                    self.drop_next = control_law(self.drop_next, config.interval, self.count);
                }
            }
        } else if may_drop {
            let head = packet.as_mut().expect("what may be dropped is there");
            if !mark(config.ecn, head, fate.marked) {
                (fate.gone)(*head);
                packet = self.look(now, config, largest_bytes, fifo).0;
            }
            self.dropping = true;
            // Soon after the last time, the rate of drops that was right then is a good start.
            let more = self.count - self.last_count;
            let is_soon = now.saturating_sub(self.drop_next) < config.interval.saturating_mul(16);
            self.count = if more > 1 && is_soon { more } else { 1 };
            self.drop_next = control_law(now, config.interval, self.count);
            self.last_count = self.count;
        }
        packet
    }
}

pub(super) struct CoDel<P> {
    config: CoDelConfig,
    limit: Limit,
    fifo: Fifo<P>,
    control: Control,
    largest_bytes: u32,
    marked: u64,
}

impl<P: Frame> CoDel<P> {
    pub(super) fn new(config: CoDelConfig, limit: Limit) -> Self {
        let control = Control::default();
        Self { config, limit, fifo: Fifo::new(), control, largest_bytes: 0, marked: 0 }
    }
}

impl<P: Frame> Discipline<P> for CoDel<P> {
    fn enqueue(&mut self, now: Nanos, packet: P, sending: Held, gone: &mut dyn FnMut(P)) {
        self.largest_bytes = self.largest_bytes.max(packet.bytes());
        if self.fifo.held().and(sending).leaves_no_room(self.limit, packet.bytes()) {
            gone(packet);
        } else {
            self.fifo.push(now, packet);
        }
    }

    fn dequeue(&mut self, now: Nanos, gone: &mut dyn FnMut(P)) -> Option<P> {
        let mut fate = Fate { gone, marked: &mut self.marked };
        self.control.dequeue(now, self.config, self.largest_bytes, &mut self.fifo, &mut fate)
    }

    fn waiting(&self) -> Held {
        self.fifo.held()
    }

    fn clear(&mut self, gone: &mut dyn FnMut(P)) {
        self.fifo.clear(gone);
    }

    fn marked(&self) -> u64 {
        self.marked
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, Tagged, dequeue, enqueue, packet};
    use super::*;

    const CONFIG: CoDelConfig = CoDelConfig { target: 5 * MS, interval: 100 * MS, ecn: false };

    fn codel(config: CoDelConfig) -> CoDel<Tagged> {
        CoDel::new(config, Limit::Unlimited)
    }

    /// A standing queue of an unresponsive flow: one packet goes each millisecond, and so many come that 100 always
    /// wait. Times of drops (and marks) and what was sent.
    fn stand(queue: &mut CoDel<Tagged>, until: Nanos, capable: bool) -> (Vec<Nanos>, Vec<Tagged>) {
        let (mut drops, mut sent) = (Vec::new(), Vec::new());
        let mut now = 0;
        while now < until {
            while queue.waiting().packets < 100 {
                enqueue(queue, now, Tagged { ecn_capable: capable, ..packet(0, 0, 1000) });
            }
            let (packet, gone) = dequeue(queue, now);
            let packet = packet.expect("the queue stands");
            drops.extend(gone.iter().map(|_| now));
            drops.extend(packet.marked.then_some(now));
            sent.push(packet);
            now += MS;
        }
        (drops, sent)
    }

    /// The first drop comes an interval after the first packet that was above the target; the n-th one
    /// `interval / sqrt(n - 1)` after the one before, at the next departure.
    fn expected(first: Nanos, until: Nanos) -> Vec<Nanos> {
        let at_departure = |time: f64| (time / MS as f64).ceil() as Nanos * MS;
        let (mut time, mut times) = (first as f64, Vec::new());
        for n in 1.. {
            if at_departure(time) >= until {
                return times;
            }
            times.push(at_departure(time));
            time += 100e6 / f64::from(n).sqrt();
        }
        unreachable!("the times grow without bound")
    }

    #[test]
    fn drops_follow_the_control_law() {
        let (drops, _) = stand(&mut codel(CONFIG), 3_000 * MS, false);
        // A packet leaves 5 ms after it has come first at 5 ms.
        assert_eq!(drops, expected(105 * MS, 3_000 * MS));
    }

    #[test]
    fn marks_follow_the_same_law_and_nothing_is_dropped() {
        let mut queue = codel(CoDelConfig { ecn: true, ..CONFIG });
        let (marks, sent) = stand(&mut queue, 3_000 * MS, true);
        assert_eq!(marks, expected(105 * MS, 3_000 * MS));
        assert_eq!(queue.marked as usize, sent.iter().filter(|packet| packet.marked).count());
        let mut queue = codel(CoDelConfig { ecn: true, ..CONFIG });
        let (_, sent) = stand(&mut queue, 3_000 * MS, false);
        assert!(sent.iter().all(|packet| !packet.marked), "a flow without ECN is dropped from");
        assert_eq!(queue.marked, 0);
    }

    #[test]
    fn the_root_of_the_control_law_is_exact_to_a_nanosecond() {
        assert_eq!(control_law(7, 100 * MS, 1), 7 + 100 * MS);
        assert_eq!(control_law(0, 100 * MS, 4), 50 * MS);
        for count in 1..10_000 {
            let exact = 100e6 / f64::from(count).sqrt();
            assert!((control_law(0, 100 * MS, count) as f64 - exact).abs() <= 1.0, "count {count}");
        }
    }

    #[test]
    fn a_burst_that_drains_within_an_interval_is_left_alone() {
        let mut queue = codel(CONFIG);
        (0..100).for_each(|n| drop(enqueue(&mut queue, 0, packet(0, n, 1000))));
        for n in 0..100 {
            let (packet, gone) = dequeue(&mut queue, n * MS);
            assert_eq!((packet.expect("one is left").number, gone.len()), (n, 0));
        }
    }

    #[test]
    fn one_large_packet_may_wait_for_ever() {
        let mut queue = codel(CONFIG);
        for n in 0..50 {
            enqueue(&mut queue, 50 * n * MS, packet(0, n, 1000));
            if n > 0 {
                let (packet, gone) = dequeue(&mut queue, 50 * n * MS);
                assert_eq!((packet.expect("two wait").number, gone.len()), (n - 1, 0));
            }
        }
    }

    #[test]
    fn after_a_short_rest_dropping_goes_on_at_the_rate_it_had() {
        let mut queue = codel(CONFIG);
        stand(&mut queue, 2_000 * MS, false);
        let before = queue.control.count;
        queue.fifo.clear(&mut |_| {});
        assert_eq!(dequeue(&mut queue, 2_000 * MS).0, None);
        (0..300).for_each(|n| drop(enqueue(&mut queue, 2_000 * MS, packet(0, n, 1000))));
        let mut now = 2_010 * MS;
        while !queue.control.dropping {
            dequeue(&mut queue, now);
            now += MS;
        }
        assert_eq!(queue.control.count, before - 1, "of {before} drops, the first began with 1");
    }
}
