//! Loss recovery by selective acknowledgements (RFC 6675).
//!
//! Where we differ: segments are counted, not bytes, so a segment is lost when three segments above it are
//! SACKed (RFC 6675's byte rule for full-sized segments); after a timeout SACK information is kept (the
//! receivers here never discard what they have reported).

use anabranch_cc::CaState;

use super::{
    newreno::DUPLICATE_THRESHOLD,
    segments::{LOST, RETRANSMITTED, SACKED},
    sender::{Absorbed, Method, Next, Sender, Verdict},
};

/// The scoreboard: counts over the segments between `una` and `next`; the marks are on the segments.
#[derive(Default)]
pub(crate) struct Scoreboard {
    sacked: u32,
    lost: u32,
    /// Lost segments whose retransmission is out.
    retransmitted: u32,
    /// The three highest SACKed segments, plus one each, descending; 0 is none.
    highest: [u64; DUPLICATE_THRESHOLD as usize],
    /// All below has been examined for loss.
    examined: u64,
    /// All lost segments below have been sent again.
    cursor: u64,
    /// The rescue retransmission of this recovery has been used (RFC 6675 section 4, NextSeg rule 4).
    rescued: bool,
    /// The first retransmission of a recovery is sent whatever the window says.
    forced: Option<u64>,
    /// Blocks of the last acknowledgement: what they cover has been marked.
    seen: Vec<(u64, u64)>,
}

impl Scoreboard {
    pub(crate) fn pipe(&self, una: u64, next: u64) -> u32 {
        (next - una) as u32 - self.sacked - self.lost + self.retransmitted
    }

    /// A segment with these marks has been acknowledged cumulatively.
    pub(crate) fn forget(&mut self, flags: u8) {
        self.sacked -= u32::from(flags & SACKED != 0);
        self.lost -= u32::from(flags & LOST != 0);
        self.retransmitted -= u32::from(flags & RETRANSMITTED != 0);
    }

    pub(crate) fn absorb(sender: &mut Sender, sacks: &[(u64, u64)], absorbed: &mut Absorbed, now_us: u32) {
        let una = sender.una;
        let limit = sender.next;
        let seen = std::mem::take(&mut board(sender).seen);
        for &(from, to) in sacks {
            let (from, to) = (from.max(una), to.min(limit));
            let known = seen.iter().find(|&&(start, end)| start <= from && from < end);
            for number in known.map_or(from, |&(_, end)| end.min(to))..to {
                Self::mark_sacked(sender, number, absorbed, now_us);
            }
        }
        let board = board(sender);
        board.seen = seen;
        board.seen.clear();
        board.seen.extend_from_slice(sacks);
        if absorbed.sacked > 0 {
            Self::find_lost(sender, absorbed);
        }
    }

    fn mark_sacked(sender: &mut Sender, number: u64, absorbed: &mut Absorbed, now_us: u32) {
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
        sender.deliver(segment, absorbed, now_us);
    }

    /// IsLost (RFC 6675 section 4): three SACKed segments above.
    fn find_lost(sender: &mut Sender, absorbed: &mut Absorbed) {
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
        let fresh = segment.flags & (SACKED | LOST) == 0;
        if fresh {
            segment.flags |= LOST;
            board(sender).lost += 1;
        }
        fresh
    }

    pub(crate) fn judge(sender: &mut Sender, absorbed: &Absorbed) -> Verdict {
        let (una, recover) = (sender.una, sender.recover);
        let lost = board(sender).lost;
        match sender.state {
            CaState::Recovery | CaState::Loss if una >= recover => Verdict::Leave,
            CaState::Recovery | CaState::Loss => Verdict::Continue,
            _ if lost > 0 => Verdict::Enter,
            _ if absorbed.duplicate && sender.dupacks >= DUPLICATE_THRESHOLD => Verdict::Enter,
            _ => Verdict::Continue,
        }
    }

    pub(crate) fn enter(sender: &mut Sender) {
        let una = sender.una;
        Self::mark_lost(sender, una);
        let board = board(sender);
        board.cursor = una;
        board.rescued = false;
        board.forced = Some(una);
    }

    pub(crate) fn time_out(sender: &mut Sender) {
        let (una, next) = (sender.una, sender.next);
        for number in una..next {
            sender.segments.get_mut(number).flags &= !RETRANSMITTED;
            Self::mark_lost(sender, number);
        }
        let board = board(sender);
        board.retransmitted = 0;
        board.examined = next;
        board.cursor = una;
        board.rescued = true;
        board.forced = None;
    }

    /// NextSeg (RFC 6675 section 4).
    pub(crate) fn next_to_send(sender: &mut Sender) -> Next {
        let (una, next, cwnd) = (sender.una, sender.next, sender.cwnd);
        let state = sender.state;
        let early = match state {
            CaState::Open if sender.limited_transmit && sender.dupacks < DUPLICATE_THRESHOLD => {
                sender.dupacks
            }
            _ => 0,
        };
        let board = board(sender);
        if let Some(number) = board.forced
            && number >= una
        {
            return Next::Retransmit(number);
        }
        if board.pipe(una, next) >= cwnd + early {
            return Next::Wait;
        }
        if !matches!(state, CaState::Recovery | CaState::Loss) || board.lost == board.retransmitted {
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

    /// NextSeg's last resort, when there is nothing new to send: one retransmission of the highest segment
    /// that is neither SACKed nor sent again, once per recovery.
    pub(crate) fn rescue(sender: &mut Sender) -> Option<u64> {
        let (una, next, cwnd) = (sender.una, sender.next, sender.cwnd);
        if sender.state != CaState::Recovery {
            return None;
        }
        let board = board(sender);
        if board.rescued || board.pipe(una, next) >= cwnd {
            return None;
        }
        board.rescued = true;
        (una..next).rev().find(|&number| sender.segments.get(number).flags & (SACKED | RETRANSMITTED) == 0)
    }

    pub(crate) fn sent_again(sender: &mut Sender, number: u64) {
        let flags = sender.segments.get(number).flags;
        let board = board(sender);
        if board.forced == Some(number) {
            board.forced = None;
        }
        if flags & (LOST | RETRANSMITTED) == LOST {
            board.retransmitted += 1;
            sender.segments.get_mut(number).flags |= RETRANSMITTED;
        }
    }
}

fn board(sender: &mut Sender) -> &mut Scoreboard {
    match &mut sender.method {
        Method::Sack(board) => board,
        Method::NewReno(_) => unreachable!("called for SACK"),
    }
}
