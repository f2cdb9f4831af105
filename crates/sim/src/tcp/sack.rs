//! Loss recovery by selective acknowledgements (RFC 6675).
//!
//! Where we differ: segments are counted, not bytes, so a segment is lost when three segments above it are
//! SACKed (RFC 6675's byte rule for full-sized segments); after a timeout SACK information is kept (the
//! receivers here never discard what they have reported); the rescue retransmission is never a segment whose
//! retransmission is under way, which the letter of NextSeg's rule 4 would send twice at once.

use anabranch_cc::CaState;
use anabranch_scenario::model::Transport;

use super::{
    ack::{Absorbed, Ack, Verdict},
    newreno::DUPLICATE_THRESHOLD,
    prr::Prr,
    segments::{LOST, RETRANSMITTED, SACKED},
    sender::{Method, Next, Sender},
    undo::Undo,
};

/// The scoreboard: counts over the segments between `una` and `next`; the marks are on the segments. RACK-TLP keeps
/// it too and differs in how it finds what is lost.
#[derive(Default)]
pub(crate) struct Scoreboard {
    sacked: u32,
    /// Lost segments that have not been sent again: none of their copies is under way.
    waiting: u32,
    /// Segments sent again though not taken for lost: two copies may be under way.
    doubled: u32,
    /// The three highest SACKed segments, plus one each, descending; 0 is none.
    highest: [u64; DUPLICATE_THRESHOLD as usize],
    /// All below has been examined for loss.
    pub(super) examined: u64,
    /// All lost segments below have been sent again.
    cursor: u64,
    /// The rescue retransmission of this recovery has been used (RFC 6675 section 4, NextSeg rule 4).
    rescued: bool,
    /// The first retransmission of a recovery is sent whatever the window says.
    forced: Option<u64>,
    /// Blocks of the last acknowledgement: what they cover has been marked.
    seen: Vec<(u64, u64)>,
    pub(super) prr: Option<Box<Prr>>,
    pub(super) undo: Option<Box<Undo>>,
}

impl Scoreboard {
    pub(crate) fn new(transport: &Transport) -> Self {
        Self {
            prr: transport.prr.then(Box::default),
            undo: transport.undo.then(Box::default),
            ..Self::default()
        }
    }

    /// Segments SACKed now.
    pub(super) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Whether a lost segment has not been sent again.
    pub(super) fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// SetPipe (RFC 6675 section 4).
    pub(crate) fn pipe(&self, una: u64, next: u64) -> u32 {
        (next - una) as u32 - self.sacked - self.waiting + self.doubled
    }

    /// A segment with these marks has been acknowledged cumulatively.
    pub(crate) fn forget(&mut self, flags: u8) {
        self.sacked -= u32::from(flags & SACKED != 0);
        self.waiting -= u32::from(flags & (LOST | RETRANSMITTED) == LOST);
        self.doubled -= u32::from(flags & (LOST | RETRANSMITTED) == RETRANSMITTED);
    }

    /// The last copy of a segment is taken for lost; `flags` is what it was marked with.
    pub(super) fn lose(&mut self, number: u64, flags: u8) {
        self.forget(flags);
        self.waiting += 1;
        self.cursor = self.cursor.min(number);
    }

    /// No segment from `una` on is lost any more, and none was being sent again.
    pub(super) fn take_back_losses(&mut self, una: u64) {
        self.waiting = 0;
        self.examined = una;
        self.forced = None;
    }

    /// Retransmissions begin at `una`, with the segment `forced` whatever the window says.
    pub(super) fn begin(&mut self, una: u64, forced: Option<u64>) {
        self.cursor = una;
        self.rescued = false;
        self.forced = forced;
    }

    /// Marks what an acknowledgement reports.
    #[inline(always)]
    pub(crate) fn absorb(sender: &mut Sender, ack: &Ack<'_>, absorbed: &mut Absorbed) {
        if ack.sacks.is_empty() {
            board(sender).seen.clear();
        } else {
            Self::mark_reported(sender, ack, absorbed);
        }
    }

    #[inline(never)]
    fn mark_reported(sender: &mut Sender, ack: &Ack<'_>, absorbed: &mut Absorbed) {
        let una = sender.una;
        let limit = sender.next;
        let seen = std::mem::take(&mut board(sender).seen);
        for &(from, to) in ack.sacks {
            let (from, to) = (from.max(una), to.min(limit));
            let known = seen.iter().find(|&&(start, end)| start <= from && from < end);
            for number in known.map_or(from, |&(_, end)| end.min(to))..to {
                Self::mark_sacked(sender, number, ack, absorbed);
            }
        }
        let board = board(sender);
        board.seen = seen;
        board.seen.clear();
        board.seen.extend_from_slice(ack.sacks);
    }

    fn mark_sacked(sender: &mut Sender, number: u64, ack: &Ack<'_>, absorbed: &mut Absorbed) {
        let segment = sender.segments.get(number);
        if segment.flags & SACKED != 0 {
            return;
        }
        sender.segments.get_mut(number).flags = segment.flags & !(LOST | RETRANSMITTED) | SACKED;
        let board = board(sender);
        board.forget(segment.flags);
        board.sacked += 1;
        absorbed.sacked += 1;
        let mut candidate = number + 1;
        for kept in &mut board.highest {
            if candidate > *kept {
                std::mem::swap(kept, &mut candidate);
            }
        }
        if let Method::Rack(rack) = &mut sender.method {
            rack.delivered(number, segment, ack, sender.rtt.min_us);
        }
        sender.deliver(segment, absorbed, ack.now_us);
    }

    /// IsLost (RFC 6675 section 4): three SACKed segments above.
    pub(super) fn find_lost(sender: &mut Sender, absorbed: &mut Absorbed) {
        let una = sender.una;
        let board = board(sender);
        let third = board.highest[DUPLICATE_THRESHOLD as usize - 1];
        let from = board.examined.max(una);
        if third <= from {
            return;
        }
        board.examined = third;
        for number in from..third - 1 {
            if Self::mark_lost(sender, number) {
                absorbed.newly_lost += 1;
            }
        }
    }

    fn mark_lost(sender: &mut Sender, number: u64) -> bool {
        let segment = sender.segments.get_mut(number);
        let flags = segment.flags;
        if flags & (SACKED | LOST) != 0 {
            return false;
        }
        segment.flags |= LOST;
        let board = board(sender);
        match flags & RETRANSMITTED {
            0 => board.waiting += 1,
            _ => board.doubled -= 1,
        }
        true
    }

    #[inline(always)]
    pub(crate) fn judge(sender: &mut Sender, absorbed: &Absorbed) -> Verdict {
        if sender.is_to_be_undone() {
            return Verdict::Undo;
        }
        match sender.state {
            CaState::Recovery | CaState::Loss if sender.una >= sender.recover => Verdict::Leave,
            CaState::Recovery | CaState::Loss => Verdict::Continue,
            // IsLost(HighACK + 1): the oldest one is lost if any is.
            _ if sender.outstanding() > 0 && sender.segments.get(sender.una).flags & LOST != 0 => {
                Verdict::Enter
            }
            _ if absorbed.duplicate && sender.dupacks >= DUPLICATE_THRESHOLD => Verdict::Enter,
            _ => Verdict::Continue,
        }
    }

    pub(crate) fn enter(sender: &mut Sender) {
        let una = sender.una;
        Self::mark_lost(sender, una);
        let under_way = sender.segments.get(una).flags & RETRANSMITTED != 0;
        board(sender).begin(una, (!under_way).then_some(una));
    }

    pub(crate) fn time_out(sender: &mut Sender) {
        let (una, next) = (sender.una, sender.next);
        let mut waiting = 0;
        for number in una..next {
            let segment = sender.segments.get_mut(number);
            segment.flags &= !RETRANSMITTED;
            if segment.flags & SACKED == 0 {
                segment.flags |= LOST;
                waiting += 1;
            }
        }
        let board = board(sender);
        board.waiting = waiting;
        board.doubled = 0;
        board.examined = next;
        board.cursor = una;
        board.rescued = true;
        board.forced = None;
    }

    /// NextSeg (RFC 6675 section 4).
    #[inline(always)]
    pub(crate) fn next_to_send(sender: &mut Sender) -> Next {
        let (una, next, cwnd) = (sender.una, sender.next, sender.cwnd);
        let state = sender.state;
        let limited_transmit = sender.limited_transmit;
        let board = board(sender);
        if let Some(number) = board.forced
            && number >= una
        {
            // While the pacer held it back, it may have been reported.
            if sender.segments.get(number).flags & SACKED == 0 {
                return Next::Retransmit(number);
            }
            self::board(sender).forced = None;
        }
        let board = self::board(sender);
        let recovering = matches!(state, CaState::Recovery | CaState::Loss);
        // Limited transmit (RFC 3042) follows from the pipe (RFC 6675 section 5, step 3): each SACKed segment
        // has left it. Without it, SACKed segments make room only once recovery has begun.
        let kept = if recovering || limited_transmit { 0 } else { board.sacked };
        if board.pipe(una, next) + kept >= cwnd {
            return Next::Wait;
        }
        if !recovering || board.waiting == 0 {
            return Next::New;
        }
        let mut number = board.cursor.max(una);
        while number < next {
            if sender.segments.get(number).flags & (LOST | RETRANSMITTED) == LOST {
                break;
            }
            number += 1;
        }
        self::board(sender).cursor = number;
        if number < next { Next::Retransmit(number) } else { Next::New }
    }

    /// NextSeg when there is nothing new to send. Rule 3: the lowest segment with SACKed ones above it that
    /// has not been sent again, though it is not taken for lost. Rule 4: the rescue retransmission, once per
    /// recovery, of the highest segment that is neither SACKed nor sent again.
    pub(crate) fn last_resort(sender: &mut Sender) -> Option<u64> {
        let (una, next, cwnd) = (sender.una, sender.next, sender.cwnd);
        let board = board(sender);
        let (from, highest) = (board.examined.max(una), board.highest[0]);
        let rescued = board.rescued;
        if board.pipe(una, next) >= cwnd || sender.state != CaState::Recovery {
            return None;
        }
        let idle = |&number: &u64| sender.segments.get(number).flags & (SACKED | RETRANSMITTED) == 0;
        let below = (from..highest).find(idle);
        if below.is_some() || rescued {
            return below;
        }
        let rescue = (una..next).rev().find(idle);
        self::board(sender).rescued = true;
        rescue
    }

    /// A segment has been sent again. A rescue retransmission leaves no mark: it must not count in the pipe
    /// (HighRxt stays, RFC 6675 section 4).
    pub(crate) fn sent_again(sender: &mut Sender, number: u64) {
        let flags = sender.segments.get(number).flags;
        debug_assert!(flags & (SACKED | RETRANSMITTED) == 0, "segment {number} is not missing");
        let may_rescue = matches!(sender.method, Method::Sack(_));
        let board = board(sender);
        board.forced = None;
        match flags & LOST {
            0 if may_rescue && number >= board.highest[0] => return,
            0 => board.doubled += 1,
            _ => board.waiting -= 1,
        }
        sender.segments.get_mut(number).flags |= RETRANSMITTED;
    }
}

#[inline(always)]
pub(super) fn board(sender: &mut Sender) -> &mut Scoreboard {
    match &mut sender.method {
        Method::Sack(board) => board,
        Method::Rack(rack) => &mut rack.board,
        Method::NewReno(_) => unreachable!("called for SACK"),
    }
}

#[cfg(test)]
mod tests {
    use anabranch_scenario::model::{Recovery, Transport};

    use super::*;
    use crate::testing::{Alone, transport};

    fn sender() -> Alone {
        Alone::new(Recovery::Sack, 10)
    }

    #[test]
    fn rfc_6675_4_the_pipe_counts_what_is_under_way() {
        let mut sender = sender();
        let mut pipe = |ack, sacks: &[(u64, u64)]| {
            sender.absorb(ack, sacks);
            sender.0.in_flight()
        };
        assert_eq!(pipe(0, &[(2, 3)]), 9, "a SACKed segment has arrived");
        assert_eq!(pipe(0, &[(2, 4)]), 8);
        assert_eq!(pipe(0, &[(2, 5)]), 5, "0 and 1 are lost: three above them are SACKed");
        assert_eq!(pipe(5, &[]), 5, "what was lost or SACKed is acknowledged: nothing leaves the network");
    }

    #[test]
    fn rfc_6675_4_next_seg_rules_3_and_4_follow_when_nothing_new_is_left() {
        let mut sender = sender();
        sender.absorb(0, &[(1, 4)]);
        sender.0.enter_recovery(8);
        sender.absorb(0, &[(6, 8), (1, 4)]);
        assert_eq!(sender.0.in_flight(), 4, "4, 5, 8 and 9; 0 is lost");
        let mut pipes = Vec::new();
        let mut sent = Vec::new();
        sender.0.cwnd = 5;
        let Next::Retransmit(first) = sender.0.next_to_send() else { panic!("the hole comes first") };
        sender.0.sent(first, sender.0.segments.get(first), 1040, 0);
        assert_eq!(Scoreboard::last_resort(&mut sender.0), None, "the window is full");
        sender.0.cwnd = 20;
        while let Some(number) = Scoreboard::last_resort(&mut sender.0) {
            sender.0.sent(number, sender.0.segments.get(number), 1040, 0);
            sent.push(number);
            pipes.push(sender.0.in_flight());
        }
        assert_eq!(sent, [4, 5, 9], "rule 3 in order, then one rescue");
        assert_eq!(pipes, [6, 7, 7], "two copies count as two; the rescue does not count");
    }

    #[test]
    fn rfc_6675_5_step_3_each_sacked_segment_lets_out_one_new_segment() {
        let mut sender = sender();
        assert_eq!(sender.ack(0, &[(1, 2)]), (Verdict::Continue, vec![10]));
        assert_eq!(sender.ack(0, &[(1, 3)]), (Verdict::Continue, vec![11]));
        assert_eq!(sender.ack(0, &[(1, 4)]), (Verdict::Enter, vec![0]));
    }

    #[test]
    fn without_limited_transmit_sacked_segments_keep_their_room_until_recovery() {
        let settings = Transport {
            recovery: Recovery::Sack,
            initial_window: 10,
            limited_transmit: false,
            ..transport()
        };
        let mut sender = Alone::with(&settings);
        assert_eq!(sender.ack(0, &[(1, 2)]), (Verdict::Continue, vec![]));
        assert_eq!(sender.ack(0, &[(1, 3)]), (Verdict::Continue, vec![]));
        assert_eq!(sender.ack(0, &[(1, 4)]), (Verdict::Enter, vec![0]));
        assert_eq!(sender.ack(0, &[(1, 6)]).1, [] as [u64; 0], "the pipe is 5, the window too");
        assert_eq!(sender.ack(0, &[(1, 8)]).1, [10, 11]);
    }

    #[test]
    fn a_retransmission_under_way_is_not_repeated_when_the_next_recovery_begins() {
        let mut sender = sender();
        sender.ack(0, &[(1, 4)]);
        assert_eq!(sender.ack(0, &[(1, 10)]).1, [10, 11, 12, 13], "one new segment for each that has left");
        // 10 is lost, and that is seen before the first recovery ends.
        assert_eq!(sender.ack(0, &[(11, 14), (1, 10)]).1, [10, 14, 15, 16]);
        assert_eq!(sender.ack(10, &[(11, 14)]).0, Verdict::Leave);
        let (verdict, sent) = sender.ack(10, &[(11, 15)]);
        assert_eq!(verdict, Verdict::Enter, "a loss after the first recovery began is a new one");
        assert!(!sent.contains(&10), "{sent:?}");
    }

    #[test]
    fn rfc_6675_5_1_after_a_timeout_all_that_is_not_sacked_is_sent_again_in_order() {
        let mut sender = sender();
        sender.ack(0, &[(3, 5)]);
        assert_eq!(sender.time_out(), [0]);
        sender.0.cwnd = 20;
        let sent = sender.send();
        assert_eq!(sent[..9], [1, 2, 5, 6, 7, 8, 9, 10, 11]);
        assert!(sent[9..].iter().copied().eq(12..12 + sent.len() as u64 - 9), "then new data: {sent:?}");
    }

    #[test]
    fn a_block_that_is_told_again_changes_nothing() {
        let mut sender = sender();
        let (first, _) = sender.absorb(0, &[(2, 4)]);
        let (second, _) = sender.absorb(0, &[(2, 4)]);
        assert_eq!((first.sacked, first.duplicate), (2, true));
        assert_eq!((second.sacked, second.duplicate), (0, false), "RFC 6675 section 2: no new information");
        assert_eq!(sender.0.in_flight(), 8);
    }
}
