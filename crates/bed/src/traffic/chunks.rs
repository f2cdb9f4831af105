//! Files that several connections carry together, in chunks: the distributor of the simulator (`anabranch_policy::transfer`) over
//! sockets of the kernel.
//!
//! An end that sends claims its next chunk when the kernel holds less than 16 KiB that it has not sent
//! (`TCP_NOTSENT_LOWAT`): so much a slow connection can claim too early, besides what Linux's scheduler has already given to
//! its subflows. In the simulator it is a chunk at most. The distributor knows at once what has arrived, as in the simulator: both
//! ends are threads of one program.

use std::{
    io,
    os::fd::AsFd as _,
    sync::{Arc, Mutex, MutexGuard},
};

use anabranch_policy::transfer::{Carriers, Chunks, Look};
use anabranch_scenario::model::{self, Scenario};
use nix::poll::PollFlags;

use super::{
    clock::{Stop, Wake},
    transfer::End,
};
use crate::Nanos;

/// The kernel tells of room when less than half of this is unsent.
const LOW_WATER_BYTES: u32 = 32 << 10;
/// One that has nothing to claim looks again after this: a connection may have been given up.
const IDLE: Nanos = 10_000_000;

/// A transfer so far.
#[derive(Debug)]
pub(super) struct TransferState {
    progress: Mutex<Progress>,
    give_up: Option<Nanos>,
}

#[derive(Debug)]
struct Progress {
    carriers: Carriers,
    /// Bytes that each connection has delivered.
    delivered_bytes: Vec<u64>,
    /// When each is looked at next.
    looks: Vec<Option<Nanos>>,
    completed_at: Option<Nanos>,
}

/// How a transfer has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferOutcome {
    /// When all had arrived.
    pub completed_at: Option<Nanos>,
    /// Bytes of the file that have arrived, each counted once.
    pub arrived_bytes: u64,
    /// Chunks that each connection has delivered.
    pub delivered: Vec<u64>,
    /// Chunks given to another connection because theirs had failed.
    pub claimed_again: u64,
}

impl TransferState {
    pub(super) fn new(model: &model::Transfer) -> Self {
        let connections = model.over.len();
        let progress = Progress {
            carriers: Carriers::new(Chunks::new(model.size_bytes, model.chunk_bytes), connections),
            delivered_bytes: vec![0; connections],
            looks: vec![None; connections],
            completed_at: None,
        };
        Self { progress: Mutex::new(progress), give_up: model.give_up }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().expect("nobody panics with it")
    }

    pub(super) fn outcome(&self) -> TransferOutcome {
        let progress = self.progress();
        let (carriers, distributor) = (&progress.carriers, progress.carriers.distributor());
        let (chunks, arrived) = (distributor.chunks(), distributor.arrived_chunks());
        let there = (0..chunks.count()).filter(|&chunk| arrived.contains(chunk));
        TransferOutcome {
            completed_at: progress.completed_at,
            arrived_bytes: there.map(|chunk| chunks.len(chunk)).sum(),
            delivered: (0..progress.looks.len()).map(|of| carriers.delivered_chunks(of)).collect(),
            claimed_again: distributor.claimed_again(),
        }
    }
}

/// The part of a connection in a transfer.
#[derive(Clone, Debug)]
pub(super) struct Share {
    transfer: Arc<TransferState>,
    carrier: usize,
}

/// Which transfer writes to a connection, and which one's chunks it delivers: its own, or those of a relay's input.
pub(super) fn shares(
    scenario: &Scenario,
    transfers: &[Arc<TransferState>],
    connection: usize,
) -> [Option<Share>; 2] {
    let behind =
        |&at: &usize| scenario.relays.iter().find(|relay| relay.input == at).map(|relay| relay.output);
    let delivers = |carrier: usize| std::iter::successors(Some(carrier), behind).last() == Some(connection);
    let share = |is_it: &dyn Fn(usize) -> bool| {
        scenario.transfers.iter().zip(transfers).find_map(|(model, transfer)| {
            let carrier = model.over.iter().position(|&carrier| is_it(carrier))?;
            Some(Share { transfer: Arc::clone(transfer), carrier })
        })
    };
    [share(&|carrier| carrier == connection), share(&delivers)]
}

/// What an end that sends does next.
enum Next {
    /// So many bytes in all are to be written.
    WriteUpTo(u64),
    /// Nothing can be claimed now.
    Nothing,
    /// All has arrived.
    Complete,
}

impl Share {
    fn claim(&self, now: Nanos) -> Next {
        let Progress { carriers, delivered_bytes, looks, completed_at } = &mut *self.transfer.progress();
        if completed_at.is_some() {
            return Next::Complete;
        }
        let Some(claim) = carriers.claim(self.carrier) else { return Next::Nothing };
        if let Some(after) = self.transfer.give_up
            && carriers.watch(self.carrier, delivered_bytes[self.carrier])
        {
            looks[self.carrier] = Some(now + after);
        }
        Next::WriteUpTo(claim.end)
    }

    /// Looks at the connection if it is time. When the next look is due.
    fn look(&self, now: Nanos) -> Option<Nanos> {
        let Progress { carriers, delivered_bytes, looks, .. } = &mut *self.transfer.progress();
        let due = looks[self.carrier]?;
        if due <= now {
            let found = carriers.look(self.carrier, delivered_bytes[self.carrier]);
            let goes_on = found == Look::Again;
            looks[self.carrier] = self.transfer.give_up.filter(|_| goes_on).map(|after| now + after);
        }
        looks[self.carrier]
    }

    /// So many bytes in all have been delivered at the end of its relays.
    pub(super) fn delivered(&self, bytes: u64, now: Nanos) {
        let Progress { carriers, delivered_bytes, completed_at, .. } = &mut *self.transfer.progress();
        delivered_bytes[self.carrier] = bytes;
        carriers.delivered(self.carrier, bytes);
        if carriers.distributor().is_complete() {
            completed_at.get_or_insert(now);
        }
    }
}

/// Claims and writes chunks until all have arrived, [`Wake::Due`], or the applications are to end, [`Wake::Stopped`].
pub(super) fn carry(end: End<'_>, share: &Share, stop: &Stop) -> io::Result<Wake> {
    end.socket.set_tcp_notsent_lowat(LOW_WATER_BYTES)?;
    let mut target = 0;
    loop {
        if stop.is_raised() {
            return Ok(Wake::Stopped);
        }
        let look_at = share.look(stop.clock().now());
        let left = target - end.written_bytes();
        if left > 0 && end.write(left)? > 0 {
            continue;
        }
        match stop.wait_for(end.socket.as_fd(), PollFlags::POLLOUT, look_at) {
            Wake::Stopped => return Ok(Wake::Stopped),
            Wake::Ready if left == 0 => {}
            Wake::Ready | Wake::Due => continue,
        }
        match share.claim(stop.clock().now()) {
            Next::WriteUpTo(bytes) => target = bytes,
            Next::Complete => return Ok(Wake::Due),
            Next::Nothing => {
                stop.wait_until(stop.clock().now() + IDLE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_scenario::model::Direction;

    use super::*;

    const GIVE_UP: Nanos = 1_000;

    /// A file of four chunks of 84 bytes, 100 with their headers, over two connections.
    fn shares() -> [Share; 2] {
        let model = model::Transfer {
            name: "file".to_owned(),
            over: vec![0, 1],
            size_bytes: 4 * 84,
            chunk_bytes: 84,
            start: 0,
            direction: Direction::Upload,
            give_up: Some(GIVE_UP),
        };
        let transfer = Arc::new(TransferState::new(&model));
        [0, 1].map(|carrier| Share { transfer: Arc::clone(&transfer), carrier })
    }

    fn claim(share: &Share, now: Nanos) -> Option<u64> {
        match share.claim(now) {
            Next::WriteUpTo(bytes) => Some(bytes),
            Next::Nothing | Next::Complete => None,
        }
    }

    #[test]
    fn a_transfer_is_complete_when_every_chunk_has_been_delivered() {
        let [one, other] = shares();
        assert_eq!((claim(&one, 0), claim(&one, 0)), (Some(100), Some(200)));
        assert_eq!((claim(&other, 0), claim(&other, 0), claim(&other, 0)), (Some(100), Some(200), None));
        one.delivered(199, 7);
        other.delivered(200, 8);
        assert_eq!(one.transfer.outcome().delivered, [1, 2]);
        assert_eq!(one.transfer.outcome().completed_at, None);
        one.delivered(200, 9);
        one.delivered(200, 10);
        let outcome = one.transfer.outcome();
        assert_eq!((outcome.completed_at, outcome.arrived_bytes, outcome.claimed_again), (Some(9), 336, 0));
        assert!(matches!(other.claim(11), Next::Complete));
    }

    #[test]
    fn chunks_of_a_silent_connection_go_to_the_other_until_it_delivers_again() {
        let [one, other] = shares();
        assert_eq!(one.look(0), None, "nothing is under way");
        claim(&one, 0);
        claim(&one, 0);
        one.delivered(50, 500);
        assert_eq!(one.look(999), Some(GIVE_UP));
        assert_eq!(one.look(GIVE_UP), Some(2 * GIVE_UP), "it has delivered half a chunk");
        assert_eq!(one.look(2 * GIVE_UP), None, "it is given up");
        assert_eq!(claim(&one, 2 * GIVE_UP), None);
        let taken: Vec<_> = (0..5).map(|_| claim(&other, 2 * GIVE_UP)).collect();
        assert_eq!(taken, [Some(100), Some(200), Some(300), Some(400), None]);
        other.delivered(300, 3_000);
        one.delivered(100, 3_001);
        assert_eq!(one.transfer.outcome().claimed_again, 2);
        other.delivered(400, 3_002);
        assert_eq!(one.transfer.outcome().completed_at, Some(3_002));
    }
}
