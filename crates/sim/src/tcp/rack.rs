//! Loss recovery by time (RACK-TLP, RFC 8985): a segment is lost when one that was sent later has been delivered
//! and a reordering window has passed. The scoreboard is that of RFC 6675 recovery, and so is the order in which lost
//! segments are sent again.
//!
//! Where we differ: the minimum RTT is that of the connection, not of a window of minutes (paths here change only when
//! a scenario says so); the originals are examined in order of their numbers and the retransmissions in that of a
//! queue, which together is the order of sending without a list of its own; and of a retransmission that is SACKed, the
//! echoed timestamp is not asked, for by RFC 7323 it is that of an earlier segment: loss probes would find nothing.

use std::collections::VecDeque;

use anabranch_cc::CaState;
use anabranch_link::{NEVER, Nanos};

use super::{
    ack::{Absorbed, Ack, Verdict},
    newreno::DUPLICATE_THRESHOLD,
    probe::Probe,
    sack::Scoreboard,
    segments::{AGAIN, LOST, RETRANSMITTED, SACKED, Segment},
    sender::{Method, Next, Sender},
};

/// Recoveries without a DSACK after which the reordering window is small again (RFC 8985 section 6.2, step 4).
const PERSISTENCE: u8 = 16;

/// What the one timer of a subflow is set for: the three exclude each other (RFC 8985 section 8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Retransmission timeout (RFC 6298).
    #[default]
    Retransmission,
    /// The reordering window of some segments ends (section 6.2, step 5).
    Reordering,
    /// A loss probe is due (section 7.2).
    Probe,
}

/// State of RACK-TLP recovery.
pub(crate) struct Rack {
    pub(super) board: Scoreboard,
    pub(crate) probe: Probe,
    /// When and as which number the most recently sent of all delivered segments was sent (RACK.xmit_ts,
    /// RACK.end_seq).
    newest: Option<(u32, u64)>,
    /// The same among those of the acknowledgement that is being absorbed.
    arriving: Option<(u32, u64)>,
    /// Round trip of the newest (RACK.rtt).
    rtt_us: u32,
    /// One above the highest delivered number (RACK.fack) before the acknowledgement that is being absorbed, and
    /// with it.
    fack: u64,
    fack_arriving: u64,
    reordering_seen: bool,
    /// A DSACK of this round has been counted; the round ends at this number.
    dsack_round: Option<u64>,
    window_multiplier: u32,
    window_persists: u8,
    /// Retransmissions in the order of sending: number, and when. One that has been delivered, or found lost, may
    /// still stand here.
    again: VecDeque<(u64, u32)>,
    purpose: Purpose,
    /// When the reordering window of the youngest suspect ends.
    reordering_at: Nanos,
    /// When the retransmission timeout is due while the timer may be set for something else.
    retransmission_at: Nanos,
}

impl Rack {
    pub(crate) fn new(board: Scoreboard) -> Self {
        Self {
            board,
            probe: Probe::default(),
            newest: None,
            arriving: None,
            rtt_us: 0,
            fack: 0,
            fack_arriving: 0,
            reordering_seen: false,
            dsack_round: None,
            window_multiplier: 1,
            window_persists: 0,
            again: VecDeque::new(),
            purpose: Purpose::default(),
            reordering_at: NEVER,
            retransmission_at: NEVER,
        }
    }

    /// A segment has been acknowledged cumulatively.
    #[inline(never)]
    pub(super) fn acknowledged(&mut self, number: u64, segment: Segment, ack: &Ack<'_>, min_rtt_us: u32) {
        self.board.forget(segment.flags);
        if segment.flags & SACKED == 0 {
            self.delivered(number, segment, ack, min_rtt_us);
        }
    }

    /// A segment has been delivered that was as `segment` says before (section 6.2, steps 2 and 3).
    pub(super) fn delivered(&mut self, number: u64, segment: Segment, ack: &Ack<'_>, min_rtt_us: u32) {
        self.fack_arriving = self.fack_arriving.max(number + 1);
        if segment.flags & AGAIN != 0 {
            // It may be the original that has arrived. What is echoed is about this segment only if it is acknowledged
            // cumulatively (RFC 7323 section 4.1).
            let echoes_earlier =
                number < ack.number && (ack.echo_us.wrapping_sub(segment.sent_us) as i32) < 0;
            if echoes_earlier || ack.now_us.wrapping_sub(segment.sent_us) < min_rtt_us {
                return;
            }
        } else if number < self.fack {
            self.reordering_seen = true;
        }
        let sent = (segment.sent_us, number);
        if self.arriving.is_none_or(|newest| sent_after(sent, newest)) {
            self.arriving = Some(sent);
        }
    }

    /// All that an acknowledgement delivers has been told.
    #[inline(never)]
    pub(super) fn absorbed(sender: &mut Sender, ack: &Ack<'_>, absorbed: &Absorbed) {
        let (una, next) = (sender.una, sender.next);
        let rack = state(sender);
        rack.fack = rack.fack_arriving;
        if let Some(sent) = rack.arriving.take() {
            rack.rtt_us = ack.now_us.wrapping_sub(sent.0);
            if rack.newest.is_none_or(|newest| sent_after(sent, newest)) {
                rack.newest = Some(sent);
            }
        }
        if rack.dsack_round.is_some_and(|end| una >= end) {
            rack.dsack_round = None;
        }
        if ack.duplicated().is_some() && rack.dsack_round.is_none() {
            rack.dsack_round = Some(next);
            rack.window_multiplier += 1;
            rack.window_persists = PERSISTENCE;
        }
        rack.probe.absorb(ack, absorbed);
    }

    /// A fast recovery was not needed: packets do change places on this path.
    pub(super) fn see_reordering(&mut self) {
        self.reordering_seen = true;
    }

    /// The reordering window (section 6.2, step 4).
    fn window_us(sender: &Sender, rack: &Rack) -> u32 {
        if !rack.reordering_seen {
            let recovering = matches!(sender.state, CaState::Recovery | CaState::Loss);
            if recovering || rack.board.sacked() >= DUPLICATE_THRESHOLD {
                return 0;
            }
        }
        let window = u64::from(rack.window_multiplier) * u64::from(sender.rtt.min_us) / 4;
        window.min(u64::from(sender.rtt.srtt8_us / 8)) as u32
    }

    /// Marks what is lost by now (section 6.2, step 5); returns how much that is.
    fn detect(sender: &mut Sender, now: Nanos) -> u32 {
        let Method::Rack(rack) = &sender.method else { unreachable!("called for RACK") };
        let Some(newest) = rack.newest else { return 0 };
        let now_us = (now / 1000) as u32;
        let patience_us = rack.rtt_us.wrapping_add(Self::window_us(sender, rack));
        let left_us = |sent_us: u32| sent_us.wrapping_add(patience_us).wrapping_sub(now_us) as i32;
        let mut wait_us = 0;
        let found = Self::detect_originals(sender, newest, &left_us, &mut wait_us)
            + Self::detect_again(sender, newest, &left_us, &mut wait_us);
        state(sender).reordering_at = if wait_us > 0 { now + 1000 * wait_us as Nanos } else { NEVER };
        found
    }

    fn detect_originals(
        sender: &mut Sender,
        newest: (u32, u64),
        left_us: &impl Fn(u32) -> i32,
        wait_us: &mut i32,
    ) -> u32 {
        let mut found = 0;
        let mut suspects = false;
        for number in state(sender).board.examined.max(sender.una)..sender.next {
            let segment = sender.segments.get(number);
            if segment.flags & (SACKED | LOST | RETRANSMITTED) == 0 {
                // What follows was sent later still, for the first time or again. (Only what has been sent again and
                // is not under way, after an undone recovery, may be younger than it; that only delays.)
                if !sent_after(newest, (segment.sent_us, number)) {
                    break;
                }
                let left = left_us(segment.sent_us);
                if left > 0 {
                    suspects = true;
                    *wait_us = left.max(*wait_us);
                } else {
                    Self::lose(sender, number);
                    found += 1;
                }
            }
            if !suspects {
                state(sender).board.examined = number + 1;
            }
        }
        found
    }

    fn detect_again(
        sender: &mut Sender,
        newest: (u32, u64),
        left_us: &impl Fn(u32) -> i32,
        wait_us: &mut i32,
    ) -> u32 {
        let mut found = 0;
        let mut again = std::mem::take(&mut state(sender).again);
        while let Some(&(number, sent_us)) = again.front() {
            if Self::is_under_way(sender, number, sent_us) {
                if !sent_after(newest, (sent_us, number)) || left_us(sent_us) > 0 {
                    break;
                }
                Self::lose(sender, number);
                found += 1;
            }
            again.pop_front();
        }
        for &(number, sent_us) in &again {
            if !sent_after(newest, (sent_us, number)) {
                break;
            }
            if Self::is_under_way(sender, number, sent_us) {
                *wait_us = left_us(sent_us).max(*wait_us);
            }
        }
        if !again.is_empty() {
            state(sender).again = again;
        }
        found
    }

    fn is_under_way(sender: &Sender, number: u64, sent_us: u32) -> bool {
        let segment = (number >= sender.una).then(|| sender.segments.get(number));
        segment.is_some_and(|segment| segment.flags & RETRANSMITTED != 0 && segment.sent_us == sent_us)
    }

    /// The last copy of a segment is taken for lost.
    fn lose(sender: &mut Sender, number: u64) {
        let segment = sender.segments.get_mut(number);
        let flags = segment.flags;
        segment.flags = flags & !RETRANSMITTED | LOST;
        state(sender).board.lose(number, flags);
    }

    #[inline(never)]
    pub(super) fn judge(sender: &mut Sender, absorbed: &mut Absorbed, now: Nanos) -> Verdict {
        if sender.is_to_be_undone() {
            return Verdict::Undo;
        }
        let recovering = matches!(sender.state, CaState::Recovery | CaState::Loss);
        let over = recovering && sender.una >= sender.recover;
        if over {
            let rack = state(sender);
            rack.window_persists = rack.window_persists.saturating_sub(1);
            if rack.window_persists == 0 {
                rack.window_multiplier = 1;
            }
        }
        absorbed.newly_lost += Self::detect(sender, now);
        let rack = state(sender);
        let repaired = rack.probe.take_repaired();
        match (recovering, over) {
            (true, true) => Verdict::Leave,
            (true, false) => Verdict::Continue,
            _ if rack.board.has_waiting() => Verdict::Enter,
            _ if repaired => Verdict::Repaired,
            _ => Verdict::Continue,
        }
    }

    /// NextSeg (RFC 6675 section 4), of what is lost and what is new.
    #[inline(never)]
    pub(super) fn next_to_send(sender: &mut Sender) -> Next {
        Scoreboard::next_to_send(sender)
    }

    #[inline(never)]
    pub(super) fn enter(sender: &mut Sender) {
        let lost = |&number: &u64| sender.segments.get(number).flags & (LOST | RETRANSMITTED) == LOST;
        let first = (sender.una..sender.next).find(lost);
        let una = sender.una;
        let rack = state(sender);
        rack.probe.forget();
        rack.board.begin(una, first);
    }

    /// The retransmission timer has expired: the oldest segment is lost, and what the delivery of later ones would
    /// prove lost by now (section 6.3).
    #[inline(never)]
    pub(super) fn time_out(sender: &mut Sender, now: Nanos) {
        let now_us = (now / 1000) as u32;
        let Method::Rack(rack) = &sender.method else { unreachable!("called for RACK") };
        let patience_us = rack.rtt_us.wrapping_add(Self::window_us(sender, rack));
        let una = sender.una;
        for number in una..sender.next {
            let segment = sender.segments.get(number);
            let waits = segment.flags & (LOST | RETRANSMITTED) == LOST;
            let left_us = segment.sent_us.wrapping_add(patience_us).wrapping_sub(now_us) as i32;
            if segment.flags & SACKED == 0 && !waits && (number == una || left_us <= 0) {
                Self::lose(sender, number);
            }
        }
        let rack = state(sender);
        rack.probe.forget();
        rack.reordering_at = NEVER;
        rack.board.begin(una, Some(una));
    }

    /// A segment has been sent again.
    #[inline(never)]
    pub(super) fn sent_again(sender: &mut Sender, number: u64, now_us: u32) {
        Scoreboard::sent_again(sender, number);
        state(sender).again.push_back((number, now_us));
    }

    /// The retransmission timeout begins anew.
    pub(super) fn restart_retransmission(&mut self, deadline: Nanos) {
        self.retransmission_at = deadline;
    }

    /// Decides what the timer is for while something is outstanding; returns when it is due.
    pub(crate) fn timer(sender: &mut Sender) -> Nanos {
        let calm = !matches!(sender.state, CaState::Recovery | CaState::Loss);
        let srtt8_us = sender.rtt.srtt8_us;
        let outstanding = sender.outstanding();
        let rack = state(sender);
        let probe_at = if calm && rack.board.sacked() == 0 {
            rack.probe.due(srtt8_us, outstanding).map(|due| due.min(rack.retransmission_at))
        } else {
            None
        };
        let (purpose, deadline) = match (rack.reordering_at, probe_at) {
            (NEVER, None) => (Purpose::Retransmission, rack.retransmission_at),
            (NEVER, Some(probe_at)) => (Purpose::Probe, probe_at),
            (reordering_at, _) => (Purpose::Reordering, reordering_at),
        };
        rack.purpose = purpose;
        deadline
    }

    /// What the timer that has expired was set for.
    pub(crate) fn purpose(&self) -> Purpose {
        self.purpose
    }
}

/// Whether a segment was sent after another (RACK_sent_after): by time, then by number. Times wrap.
fn sent_after((sent_us, number): (u32, u64), (other_us, other): (u32, u64)) -> bool {
    let later_us = sent_us.wrapping_sub(other_us) as i32;
    later_us > 0 || (later_us == 0 && number > other)
}

pub(super) fn state(sender: &mut Sender) -> &mut Rack {
    match &mut sender.method {
        Method::Rack(rack) => rack,
        _ => unreachable!("called for RACK"),
    }
}

#[cfg(test)]
mod tests {
    use anabranch_scenario::model::Recovery;

    use super::*;
    use crate::testing::Alone;

    const MS: u32 = 1000;

    /// Ten segments sent at 0 ms; a round trip takes 100 ms.
    fn sender() -> Alone {
        let mut sender = Alone::new(Recovery::Rack, 10);
        sender.0.rtt.sample(100 * MS);
        sender
    }

    fn reordering_at_us(sender: &mut Alone) -> Option<u64> {
        let at = state(&mut sender.0).reordering_at;
        (at != NEVER).then_some(at / 1000)
    }

    #[test]
    fn rfc_8985_6_2_one_later_delivery_and_a_reordering_window_mean_loss() {
        let mut sender = sender();
        assert_eq!(sender.at(100 * MS, 0).ack(0, &[(1, 2)]).0, Verdict::Continue);
        assert_eq!(reordering_at_us(&mut sender), Some(125_000), "a quarter of the least round trip");
        assert_eq!(sender.at(125 * MS - 1, 0).wait().0, Verdict::Continue);
        let (verdict, sent) = sender.at(125 * MS, 0).wait();
        assert_eq!((verdict, sent[0]), (Verdict::Enter, 0));
        assert_eq!(reordering_at_us(&mut sender), None);
    }

    #[test]
    fn rfc_8985_6_2_without_reordering_three_sacked_segments_need_no_window() {
        let mut sender = sender();
        assert_eq!(sender.at(100 * MS, 0).ack(0, &[(1, 3)]).0, Verdict::Continue);
        let (verdict, sent) = sender.ack(0, &[(1, 4)]);
        assert_eq!((verdict, sent[0]), (Verdict::Enter, 0));
    }

    #[test]
    fn rfc_8985_6_2_reordering_once_seen_keeps_the_window_open() {
        let mut sender = sender();
        sender.at(100 * MS, 0).ack(0, &[(1, 2)]);
        sender.at(101 * MS, 0).ack(2, &[]);
        let (verdict, _) = sender.at(102 * MS, 0).ack(2, &[(3, 7)]);
        assert_eq!(verdict, Verdict::Continue, "four SACKed segments above it do not mean loss now");
        assert_eq!(sender.at(127 * MS, 0).wait().0, Verdict::Enter, "a window of 25 ms has passed");
    }

    #[test]
    fn rfc_8985_6_2_a_segment_that_fills_its_own_gap_by_retransmission_is_no_reordering() {
        let mut sender = sender();
        sender.at(100 * MS, 0).ack(0, &[(1, 4)]);
        sender.at(200 * MS, 100 * MS).ack(4, &[]);
        assert!(!state(&mut sender.0).reordering_seen);
    }

    #[test]
    fn rfc_8985_6_2_a_lost_retransmission_is_found_by_what_was_sent_after_it() {
        let mut sender = sender();
        sender.at(100 * MS, 0).ack(0, &[(1, 4)]);
        let (_, sent) = sender.at(101 * MS, 0).ack(0, &[(1, 10)]);
        assert_eq!(sent, [10, 11, 12, 13]);
        let (_, sent) = sender.at(201 * MS, 0).ack(0, &[(10, 11), (1, 10)]);
        assert_eq!(sent[0], 0, "10 was sent after it");
        let (_, sent) = sender.at(202 * MS, 0).ack(0, &[(10, 14), (1, 10)]);
        assert!(!sent.contains(&0), "but not after this retransmission: {sent:?}");
    }

    #[test]
    fn rfc_8985_6_2_an_acknowledgement_that_echoes_the_original_tells_nothing_of_the_retransmission() {
        let mut sender = sender();
        sender.at(100 * MS, 0).ack(0, &[(1, 4)]);
        let newest = state(&mut sender.0).newest;
        sender.at(110 * MS, 0).ack(4, &[]);
        assert_eq!(state(&mut sender.0).newest, newest);
        let mut sender = self::sender();
        sender.at(100 * MS, 0).ack(0, &[(1, 4)]);
        sender.at(200 * MS, 100 * MS).ack(4, &[]);
        assert_eq!(state(&mut sender.0).newest, Some((100 * MS, 0)));
    }

    #[test]
    fn rfc_8985_6_2_the_window_grows_once_a_round_that_brings_a_dsack_and_shrinks_after_sixteen_recoveries() {
        let mut sender = sender();
        sender.at(100 * MS, 0).ack(2, &[(0, 1)]);
        sender.ack(3, &[(0, 1)]);
        assert_eq!(state(&mut sender.0).window_multiplier, 2, "once a round");
        let end = sender.0.next;
        sender.ack(end, &[]);
        sender.ack(end, &[(0, 1)]);
        assert_eq!(state(&mut sender.0).window_multiplier, 3);
        for n in 0..16 {
            assert_eq!(state(&mut sender.0).window_multiplier, 3, "after {n} recoveries");
            sender.time_out();
            let end = sender.0.next;
            assert_eq!(sender.ack(end, &[]).0, Verdict::Leave);
        }
        assert_eq!(state(&mut sender.0).window_multiplier, 1);
    }

    #[test]
    fn rfc_8985_6_2_the_window_is_at_most_a_smoothed_round_trip() {
        let mut sender = sender();
        state(&mut sender.0).reordering_seen = true;
        state(&mut sender.0).window_multiplier = 9;
        let Method::Rack(rack) = &sender.0.method else { unreachable!("it is RACK") };
        assert_eq!(Rack::window_us(&sender.0, rack), 100 * MS);
    }

    #[test]
    fn rfc_8985_6_3_a_timeout_takes_the_oldest_for_lost_and_what_a_round_trip_ago_was_sent() {
        let mut sender = sender();
        let (_, sent) = sender.at(100 * MS, 0).ack(5, &[]);
        assert_eq!(sent, [10, 11, 12, 13, 14]);
        assert_eq!(sender.at(150 * MS, 0).time_out(), [5]);
        let lost = |number| sender.0.segments.get(number).flags & LOST != 0;
        assert!((5..10).all(lost) && !(10..15).any(lost));
        assert_eq!(sender.0.in_flight(), 6, "the retransmission and five that may still arrive");
    }

    #[test]
    fn what_was_sent_in_a_recovery_and_is_lost_begins_the_next() {
        let mut sender = sender();
        sender.at(100 * MS, 0).ack(0, &[(1, 4)]);
        let (_, sent) = sender.at(101 * MS, 0).ack(0, &[(1, 10)]);
        assert_eq!(sent, [10, 11, 12, 13]);
        assert_eq!(sender.at(201 * MS, 100 * MS).ack(10, &[(11, 12)]).0, Verdict::Leave);
        assert_eq!(sender.wait().0, Verdict::Enter);
    }
}
