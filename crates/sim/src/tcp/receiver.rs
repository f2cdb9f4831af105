//! The receiving half: reassembly, selective acknowledgements, delayed acknowledgements.

use anabranch_scenario::model::{IpVersion, Transport};

use super::ack_timing::AckTiming;
use crate::{
    engine::timers::Lazy,
    packet::{MAX_SACK_BLOCKS, SackBlocks, unwrap},
};

/// Slots that stay when nothing is held; a larger ring is given back.
const KEPT: usize = 32;

/// An out-of-order segment that is held.
#[derive(Clone, Copy, Default)]
struct Held {
    data_seq: u32,
    len: u16,
    present: bool,
}

/// What an arriving segment was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The next one, and nothing was held back.
    InOrder,
    /// The next one, and held segments could follow it.
    FilledGap,
    /// Beyond a gap.
    OutOfOrder,
    /// Already here.
    Duplicate,
}

/// State of one receiving half.
#[derive(Default)]
pub(crate) struct Receiver {
    /// Next segment expected.
    pub(crate) next: u64,
    held: Vec<Held>,
    held_count: u32,
    /// Ranges of held segments, most recently changed first (RFC 2018 section 4).
    ranges: Vec<(u64, u64)>,
    /// The segment that has just come once more, if that is to be reported (RFC 2883).
    duplicate: Option<u32>,
    reports_duplicates: bool,
    /// SACK blocks that an acknowledgement has room for.
    sack_room: u8,
    /// RFC 7323 TS.Recent.
    ts_recent: u32,
    /// RFC 7323 Last.ACK.sent.
    last_ack_sent: u64,
    /// In-order segments that no acknowledgement has covered.
    pub(crate) unacknowledged: u32,
    pub(crate) delayed: Lazy,
    /// For those that answer at once now and then, or let their window grow.
    pub(crate) timing: Option<Box<AckTiming>>,
}

impl Receiver {
    pub(crate) fn new(transport: &Transport, ip_version: IpVersion) -> Self {
        let timed = transport.receive_buffer_tuning
            || transport.delayed_ack.is_some_and(|rule| rule.quick > 0 || rule.timeout_max > rule.timeout);
        let reports_duplicates = transport.undo && transport.recovery.is_selective();
        let sack_room = sack_room(transport.ack_bytes, ip_version);
        Self { timing: timed.then(Box::default), reports_duplicates, sack_room, ..Self::default() }
    }

    /// The peer opens the subflow again, with the segment `next` as its first.
    pub(crate) fn restart(&mut self, next: u64) {
        self.delayed.disarm();
        *self = Self {
            next,
            last_ack_sent: next,
            delayed: self.delayed,
            timing: self.timing.is_some().then(Box::default),
            reports_duplicates: self.reports_duplicates,
            sack_room: self.sack_room,
            ..Self::default()
        };
    }

    /// Takes the segment `number`; in-order payload goes to `deliver` as (data sequence number, length).
    pub(crate) fn accept(
        &mut self,
        number: u64,
        len: u16,
        data_seq: u32,
        tsval: u32,
        mut deliver: impl FnMut(u32, u16),
    ) -> Arrival {
        // RFC 7323 section 4.3, rule 2: only a segment that the next acknowledgement is about is echoed.
        if number <= self.last_ack_sent {
            self.ts_recent = tsval;
        }
        if number != self.next {
            return self.accept_elsewhere(number, Held { data_seq, len, present: true });
        }
        deliver(data_seq, len);
        self.next += 1;
        self.unacknowledged += 1;
        if self.held_count == 0 {
            return Arrival::InOrder;
        }
        while self.is_held(self.next) {
            let held = std::mem::take(self.slot(self.next));
            deliver(held.data_seq, held.len);
            self.held_count -= 1;
            self.next += 1;
            self.unacknowledged += 1;
        }
        if self.held_count == 0 && self.held.len() > KEPT {
            self.held = Vec::new();
        }
        let next = self.next;
        self.ranges.retain(|&(_, end)| end > next);
        Arrival::FilledGap
    }

    /// A segment that is not the next one has come.
    #[inline(never)]
    fn accept_elsewhere(&mut self, number: u64, held: Held) -> Arrival {
        if number < self.next || self.is_held(number) {
            self.duplicate = self.reports_duplicates.then_some(number as u32);
            return Arrival::Duplicate;
        }
        self.hold(number, held);
        Arrival::OutOfOrder
    }

    /// A packet without payload has brought the peer's clock.
    pub(crate) fn note_timestamp(&mut self, tsval: u32) {
        self.ts_recent = tsval;
    }

    fn slot(&mut self, number: u64) -> &mut Held {
        let mask = self.held.len() - 1;
        &mut self.held[number as usize & mask]
    }

    fn is_held(&mut self, number: u64) -> bool {
        self.held_count > 0 && number - self.next < self.held.len() as u64 && self.slot(number).present
    }

    fn hold(&mut self, number: u64, held: Held) {
        if number - self.next >= self.held.len() as u64 {
            let mut larger =
                vec![Held::default(); ((number - self.next + 1) as usize).next_power_of_two().max(8)];
            let mask = larger.len() - 1;
            for kept in self.next..self.next + self.held.len() as u64 {
                larger[kept as usize & mask] = *self.slot(kept);
            }
            self.held = larger;
        }
        *self.slot(number) = held;
        self.held_count += 1;
        let mut range = (number, number + 1);
        self.ranges.retain(|&(from, to)| {
            let touches = to == range.0 || from == range.1;
            if touches {
                range = (range.0.min(from), range.1.max(to));
            }
            !touches
        });
        self.ranges.insert(0, range);
    }

    /// Bytes held out of order.
    pub(crate) fn held_bytes(&self) -> u64 {
        let mask = self.held.len().wrapping_sub(1);
        let held = self.ranges.iter().flat_map(|&(from, to)| from..to);
        held.map(|number| u64::from(self.held[number as usize & mask].len)).sum()
    }

    /// Whether an acknowledgement has blocks to report.
    pub(crate) fn has_blocks(&self) -> bool {
        self.held_count > 0 || self.duplicate.is_some()
    }

    /// The blocks an acknowledgement reports: a duplicate, then what holds it too (RFC 2883 section 4), then the
    /// newest first (RFC 2018 section 4).
    pub(crate) fn sack_blocks(&self) -> SackBlocks {
        let duplicate = self.duplicate.map(|low| unwrap(low, self.next));
        let holds = |&&(from, to): &&(u64, u64)| duplicate.is_some_and(|number| (from..to).contains(&number));
        let holder = self.ranges.iter().find(holds);
        let others = self.ranges.iter().filter(|range| !holds(range));
        let first = duplicate.map(|number| (number, number + 1));
        let all = first.iter().chain(holder).chain(others);
        let mut blocks = SackBlocks::default();
        for &(from, to) in all.take(usize::from(self.sack_room)) {
            blocks.blocks[usize::from(blocks.len)] = (from as u32, to as u32);
            blocks.len += 1;
        }
        blocks
    }

    /// An acknowledgement leaves; returns the timestamp that it echoes.
    pub(crate) fn acknowledged(&mut self) -> u32 {
        self.last_ack_sent = self.next;
        self.unacknowledged = 0;
        self.duplicate = None;
        self.delayed.disarm();
        self.ts_recent
    }
}

/// Blocks that fit the option space of an acknowledgement beside its other options (RFC 9293 section 3.1: 40 bytes of
/// options; RFC 2018 section 3: 2 and 8 per block, padded to 4 and 8). A packet of unlikely size has room for one.
fn sack_room(ack_bytes: u32, ip_version: IpVersion) -> u8 {
    const OPTIONS: u32 = 40;
    let headers = match ip_version {
        IpVersion::V4 => 40,
        IpVersion::V6 => 60,
    };
    let room = OPTIONS.saturating_sub(ack_bytes.saturating_sub(headers)).saturating_sub(4) / 8;
    room.clamp(1, MAX_SACK_BLOCKS as u32) as u8
}

#[cfg(test)]
mod tests {
    use anabranch_scenario::model::Recovery;

    use super::*;
    use crate::testing::transport;

    fn receiver(undo: bool) -> Receiver {
        let settings = Transport { undo, recovery: Recovery::Sack, ..transport() };
        Receiver::new(&settings, IpVersion::V4)
    }

    #[test]
    fn timestamps_leave_room_for_three_blocks_and_a_data_acknowledgement_for_one() {
        assert_eq!(sack_room(52, IpVersion::V4), 3, "RFC 2018 section 3");
        assert_eq!(sack_room(64, IpVersion::V4), 1, "12 bytes of DSS");
        assert_eq!(sack_room(84, IpVersion::V6), 1);
        assert_eq!(sack_room(40, IpVersion::V4), 3);
        assert_eq!(sack_room(1000, IpVersion::V4), 1);
    }

    fn take(receiver: &mut Receiver, number: u64) -> (Arrival, Vec<u32>) {
        let mut delivered = Vec::new();
        let arrival =
            receiver.accept(number, 1000, number as u32, number as u32, |data, _| delivered.push(data));
        (arrival, delivered)
    }

    #[test]
    fn segments_are_delivered_once_and_in_order() {
        let mut receiver = self::receiver(false);
        assert_eq!(take(&mut receiver, 0), (Arrival::InOrder, vec![0]));
        assert_eq!(take(&mut receiver, 2), (Arrival::OutOfOrder, vec![]));
        assert_eq!(take(&mut receiver, 20), (Arrival::OutOfOrder, vec![]));
        assert_eq!(take(&mut receiver, 2), (Arrival::Duplicate, vec![]));
        assert_eq!(take(&mut receiver, 1), (Arrival::FilledGap, vec![1, 2]));
        assert_eq!(take(&mut receiver, 1), (Arrival::Duplicate, vec![]));
        assert_eq!(receiver.next, 3);
        assert!(receiver.has_blocks());
    }

    #[test]
    fn the_first_block_holds_the_segment_that_has_just_come() {
        let mut receiver = self::receiver(false);
        for number in [2, 5, 8, 11, 3] {
            take(&mut receiver, number);
        }
        assert_eq!(receiver.sack_blocks().as_slice(), [(2, 4), (11, 12), (8, 9)], "RFC 2018 section 4");
        take(&mut receiver, 4);
        assert_eq!(
            receiver.sack_blocks().as_slice(),
            [(2, 6), (11, 12), (8, 9)],
            "two ranges have become one"
        );
    }

    #[test]
    fn rfc_2883_4_a_duplicate_comes_first_and_then_the_block_that_holds_it() {
        let mut receiver = self::receiver(true);
        for number in [0, 2, 3, 5, 6, 8] {
            take(&mut receiver, number);
        }
        take(&mut receiver, 2);
        assert_eq!(receiver.sack_blocks().as_slice(), [(2, 3), (2, 4), (8, 9)]);
        receiver.acknowledged();
        assert_eq!(receiver.sack_blocks().as_slice(), [(8, 9), (5, 7), (2, 4)], "it is reported once");
        take(&mut receiver, 0);
        assert_eq!(receiver.sack_blocks().as_slice(), [(0, 1), (8, 9), (5, 7)], "below what is acknowledged");
        let mut silent = self::receiver(false);
        take(&mut silent, 0);
        take(&mut silent, 0);
        assert!(!silent.has_blocks());
    }

    #[test]
    fn only_a_segment_that_the_next_acknowledgement_is_about_is_echoed() {
        let mut receiver = self::receiver(false);
        take(&mut receiver, 0);
        assert_eq!(receiver.acknowledged(), 0);
        take(&mut receiver, 1);
        take(&mut receiver, 2);
        take(&mut receiver, 4);
        assert_eq!(receiver.acknowledged(), 1, "RFC 7323: the earliest unacknowledged segment");
    }
}
