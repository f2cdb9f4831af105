//! FlowQueue-CoDel: RFC 8290.
//!
//! Packets are hashed to queues by their flow. Queues take turns by deficit round robin: each may send `quantum` bytes
//! per round, and CoDel decides in each. A queue that was empty goes first for one quantum (it is "new"), which gives
//! flows that send little a short way. When too much is held, half of the largest queue, at most 64 packets, is dropped
//! from its head.
//!
//! We differ in: the hash is fixed, where RFC 8290 section 4.1 perturbs it by a random number, so that a run is a
//! function of its seed and the same on every engine; the limit counts the packet in transmission.
//!
//! Left out: flows that a host tells apart by more than their packets say.

use std::collections::VecDeque;

use super::{
    CoDelConfig, Discipline, Fifo, Held,
    codel::{Control, Fate},
};
use crate::{Frame, Limit, Nanos};

/// At most so many packets are dropped at once (RFC 8290 section 4.1).
const DROP_BATCH: usize = 64;

/// Settings of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCoDelConfig {
    /// Of each queue.
    pub codel: CoDelConfig,
    /// Number of queues, above 0.
    pub flows: u32,
    /// Bytes that a queue may send per round, above 0.
    pub quantum_bytes: u32,
}

struct Flow<P> {
    fifo: Fifo<P>,
    control: Control,
    deficit: i64,
    /// Whether it is in the list of new or of old queues.
    is_listed: bool,
}

pub(super) struct FqCoDel<P> {
    config: FqCoDelConfig,
    limit: Limit,
    flows: Vec<Flow<P>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    held: Held,
    largest_bytes: u32,
    marked: u64,
}

impl<P: Frame> FqCoDel<P> {
    pub(super) fn new(config: FqCoDelConfig, limit: Limit) -> Self {
        let flow = |_| Flow { fifo: Fifo::new(), control: Control::default(), deficit: 0, is_listed: false };
        Self {
            config,
            limit,
            flows: (0..config.flows).map(flow).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            held: Held::default(),
            largest_bytes: 0,
            marked: 0,
        }
    }

    fn forget(&mut self, before: Held, after: Held) {
        self.held.packets -= before.packets - after.packets;
        self.held.bytes -= before.bytes - after.bytes;
    }

    /// RFC 8290 section 4.1.
    fn drop_from_largest(&mut self, gone: &mut dyn FnMut(P)) {
        let listed = self.new.iter().chain(&self.old);
        // Of equals the one with the lowest number, whatever its place in the lists.
        let largest = listed
            .copied()
            .max_by_key(|&index| (self.flows[index as usize].fifo.bytes, std::cmp::Reverse(index)));
        let fifo = &mut self.flows[largest.expect("somebody holds too much") as usize].fifo;
        let before = fifo.held();
        for _ in 0..fifo.packets.len().div_ceil(2).min(DROP_BATCH) {
            if let Some((_, packet)) = fifo.pop() {
                gone(packet);
            }
        }
        let after = fifo.held();
        self.forget(before, after);
    }
}

/// Which queue a flow has: the finaliser of SplitMix64 (Steele, Lea and Flood 2014), scaled down.
fn queue_of(flow: u64, queues: u32) -> usize {
    let mut mixed = flow.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    ((u128::from(mixed) * u128::from(queues)) >> 64) as usize
}

impl<P: Frame> Discipline<P> for FqCoDel<P> {
    fn enqueue(&mut self, now: Nanos, packet: P, sending: Held, gone: &mut dyn FnMut(P)) {
        let bytes = packet.bytes();
        self.largest_bytes = self.largest_bytes.max(bytes);
        let index = queue_of(packet.flow(), self.config.flows);
        let flow = &mut self.flows[index];
        flow.fifo.push(now, packet);
        self.held = self.held.and(Held { packets: 1, bytes: u64::from(bytes) });
        if !flow.is_listed {
            flow.is_listed = true;
            flow.deficit = i64::from(self.config.quantum_bytes);
            self.new.push_back(index as u32);
        }
        while self.held.packets > 0 && self.held.and(sending).exceeds(self.limit) {
            self.drop_from_largest(gone);
        }
    }

    /// RFC 8290 section 4.2.
    fn dequeue(&mut self, now: Nanos, gone: &mut dyn FnMut(P)) -> Option<P> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.config.quantum_bytes);
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let before = flow.fifo.held();
            let mut fate = Fate { gone: &mut *gone, marked: &mut self.marked };
            let (config, largest) = (self.config.codel, self.largest_bytes);
            let packet = flow.control.dequeue(now, config, largest, &mut flow.fifo, &mut fate);
            let after = flow.fifo.held();
            if let Some(packet) = packet {
                flow.deficit -= i64::from(packet.bytes());
                self.forget(before, after);
                return Some(packet);
            }
            list.pop_front();
            if is_new {
                // It waits for its turn behind the old ones, so that it cannot become new again at once.
                self.old.push_back(index);
            } else {
                flow.is_listed = false;
            }
            self.forget(before, after);
        }
    }

    fn waiting(&self) -> Held {
        self.held
    }

    fn clear(&mut self, gone: &mut dyn FnMut(P)) {
        for index in self.new.drain(..).chain(self.old.drain(..)) {
            let flow = &mut self.flows[index as usize];
            flow.fifo.clear(gone);
            flow.is_listed = false;
        }
        self.held = Held::default();
    }

    fn marked(&self) -> u64 {
        self.marked
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MS, Tagged, dequeue, enqueue, packet};
    use super::*;

    const CONFIG: FqCoDelConfig = FqCoDelConfig {
        codel: CoDelConfig { target: 5 * MS, interval: 100 * MS, ecn: false },
        flows: 1024,
        quantum_bytes: 1514,
    };

    fn queue(limit: Limit) -> FqCoDel<Tagged> {
        FqCoDel::new(CONFIG, limit)
    }

    /// Sends one packet after the other for so many bytes, with 30 of each flow always waiting: bytes by flow.
    fn share(flows: &[(u64, u32)], total: u64) -> Vec<u64> {
        let mut queue = queue(Limit::Unlimited);
        let mut sent = vec![0; flows.len()];
        while sent.iter().sum::<u64>() < total {
            for &(flow, bytes) in flows {
                while queue.flows[queue_of(flow, 1024)].fifo.packets.len() < 30 {
                    enqueue(&mut queue, 0, packet(flow, 0, bytes));
                }
            }
            let packet = dequeue(&mut queue, 0).0.expect("packets wait");
            let flow = flows.iter().position(|&(flow, _)| flow == packet.flow).expect("one of them");
            sent[flow] += u64::from(packet.bytes);
        }
        sent
    }

    #[test]
    fn flows_get_equal_bytes_whatever_their_packets_are() {
        let sent = share(&[(1, 1500), (2, 100), (3, 700)], 30_000_000);
        // A deficit is at most a quantum, and a flow may be a packet ahead: 2 of 1514 B each.
        for bytes in &sent {
            assert!(bytes.abs_diff(10_000_000) < 2 * 2 * 1514, "{sent:?}");
        }
    }

    #[test]
    fn no_flow_starves_among_many() {
        let mut queues = std::collections::BTreeSet::new();
        let alone = |&flow: &u64| queues.insert(queue_of(flow, 1024));
        let flows: Vec<(u64, u32)> = (0..200).filter(alone).map(|flow| (flow, 1000)).collect();
        assert!(flows.len() > 150, "{} of 200 have a queue for themselves", flows.len());
        let sent = share(&flows, 20_000_000);
        let mean = 20_000_000 / flows.len() as u64;
        assert!(sent.iter().all(|bytes| bytes.abs_diff(mean) < 2 * 2 * 1514), "{sent:?}");
    }

    #[test]
    fn a_flow_that_was_away_goes_first_for_a_quantum() {
        let mut queue = queue(Limit::Unlimited);
        (0..100).for_each(|n| drop(enqueue(&mut queue, 0, packet(1, n, 100))));
        for _ in 0..20 {
            dequeue(&mut queue, 0);
        }
        (0..3).for_each(|n| drop(enqueue(&mut queue, 0, packet(2, n, 1500))));
        let flows: Vec<_> =
            (0..3).filter_map(|_| dequeue(&mut queue, 0).0).map(|packet| packet.flow).collect();
        assert_eq!(flows, [2, 2, 1], "the second packet makes a debt, the third waits for the turn");
    }

    #[test]
    fn too_much_is_taken_from_the_head_of_the_largest_queue() {
        let mut queue = queue(Limit::Packets(40));
        (0..10).for_each(|n| drop(enqueue(&mut queue, 0, packet(1, n, 100))));
        (0..30).for_each(|n| drop(enqueue(&mut queue, 0, packet(2, n, 1500))));
        let gone = enqueue(&mut queue, 0, packet(1, 10, 100));
        let numbers: Vec<u64> = gone.iter().map(|packet| packet.number).collect();
        assert!(gone.iter().all(|packet| packet.flow == 2));
        assert_eq!(numbers, (0..15).collect::<Vec<_>>(), "half of 30");
        assert_eq!(queue.waiting(), Held { packets: 26, bytes: 11 * 100 + 15 * 1500 });
    }

    #[test]
    fn codel_drops_from_the_flow_that_stands_and_from_no_other() {
        let mut queue = queue(Limit::Unlimited);
        let mut dropped = Vec::new();
        for step in 0..2_000 {
            let now = step * MS;
            while queue.flows[queue_of(1, 1024)].fifo.packets.len() < 100 {
                enqueue(&mut queue, now, packet(1, 0, 1500));
            }
            if step % 10 == 0 {
                enqueue(&mut queue, now, packet(2, 0, 100));
            }
            dropped.extend(dequeue(&mut queue, now).1);
        }
        assert!(dropped.len() > 20 && dropped.iter().all(|packet| packet.flow == 1), "{}", dropped.len());
    }

    #[test]
    fn a_cleared_queue_holds_nothing_and_works_on() {
        let mut queue = queue(Limit::Unlimited);
        (0..20).for_each(|n| drop(enqueue(&mut queue, 0, packet(n % 4, n, 500))));
        let mut gone = 0;
        queue.clear(&mut |_| gone += 1);
        assert_eq!((gone, queue.waiting(), dequeue(&mut queue, 0).0), (20, Held::default(), None));
        enqueue(&mut queue, 0, packet(3, 9, 500));
        assert_eq!(dequeue(&mut queue, 0).0.map(|packet| packet.number), Some(9));
    }
}
