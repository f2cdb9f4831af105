//! Files that several connections carry together: between the distributor of chunks (`anabranch_policy::transfer`) and the
//! connections.
//!
//! A connection claims its next chunk when everything that it has been given has left, so that what a slow one has claimed
//! too early is less than a chunk. A chunk is written with its header; it has arrived when its last byte has been delivered,
//! at the end of the relays if there are any, and the distributor knows at once.
//!
//! Left out, and who could notice: an application that fills the send buffer before anything of it leaves (MPTCP-IoT's
//! blocking `write`; with a send buffer far above what a path holds, the slow connection would claim too much, and the
//! transfer would end later; `TCP_NOTSENT_LOWAT` prevents that on Linux), messages by which a receiver tells what has arrived,
//! taking back what a failed connection has not sent yet, and reading and writing the file.

use anabranch_link::Nanos;
use anabranch_policy::transfer::{Carriers, Chunks, Look};
use anabranch_scenario::model;

use super::{Connection, World};
use crate::{
    app::NEVER,
    engine::{heads::Key, timers::TimerKind},
};

/// One of the connections of a transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) transfer: u32,
    /// Its place among them.
    pub(crate) carrier: u32,
}

/// What writes to a connection that has no application of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Feeder {
    Relay(u32),
    Transfer(Share),
}

/// A transfer at work.
pub(crate) struct Transfer {
    pub(crate) carriers: Carriers,
    /// The connections, by their places among them.
    pub(crate) ways: Vec<Way>,
    /// The side that writes.
    side: usize,
    give_up: Option<Nanos>,
    /// When all had arrived.
    pub(crate) completed_at: Option<Nanos>,
}

/// Between which connections a part of a transfer goes.
pub(crate) struct Way {
    pub(crate) writes_to: u32,
    /// The same, or the last of the connections that relays put behind it.
    pub(crate) delivered_by: u32,
}

impl Transfer {
    pub(crate) fn new(model: &model::Transfer, relays: &[model::Relay], side: usize) -> Self {
        let behind = |&at: &usize| relays.iter().find(|relay| relay.input == at).map(|relay| relay.output);
        let ways = model.over.iter().map(|&connection| Way {
            writes_to: connection as u32,
            delivered_by: std::iter::successors(Some(connection), behind).last().unwrap_or(connection) as u32,
        });
        let chunks = Chunks::new(model.size_bytes, model.chunk_bytes);
        Self {
            carriers: Carriers::new(chunks, model.over.len()),
            ways: ways.collect(),
            side,
            give_up: model.give_up,
            completed_at: None,
        }
    }
}

impl<K: Key> World<'_, K> {
    /// Ties the transfers of the scenario to their connections.
    pub(super) fn add_transfers(&mut self) {
        let scenario = self.scenario;
        for (index, model) in scenario.transfers.iter().enumerate() {
            let side = usize::from(model.direction == model::Direction::Download);
            let transfer = Transfer::new(model, &scenario.relays, side);
            for (at, way) in transfer.ways.iter().enumerate() {
                let share = Share { transfer: index as u32, carrier: at as u32 };
                let connection = &mut self.connections[way.writes_to as usize];
                connection.fed_by = Some(Feeder::Transfer(share));
                connection.is_plain = false;
                self.connections[way.delivered_by as usize].delivers = Some(share);
            }
            self.transfers.push(transfer);
        }
    }

    /// Something has changed at a connection that somebody writes to.
    pub(super) fn feed(&mut self, feeder: Feeder) {
        match feeder {
            Feeder::Relay(relay) => self.relay(relay as usize),
            Feeder::Transfer(share) => self.refill(share),
        }
    }

    /// Claims and writes chunks as long as all that has been written has left.
    fn refill(&mut self, share: Share) {
        let Share { transfer: index, carrier } = share;
        loop {
            let transfer = &mut self.transfers[index as usize];
            let (side, number) = (transfer.side, transfer.ways[carrier as usize].writes_to as usize);
            let connection = &self.connections[number];
            if connection.sides[side].send.has_more() || !connection.is_open[side] {
                return;
            }
            let Some(claim) = transfer.carriers.claim(carrier as usize) else { return };
            if transfer.carriers.next_end(carrier as usize) == Some(claim.end) {
                self.await_chunk(share);
            }
            self.watch_carrier(share);
            self.write(number, side, claim.bytes);
        }
    }

    /// Has the connection say when the next chunk has been delivered.
    fn await_chunk(&mut self, share: Share) {
        let transfer = &self.transfers[share.transfer as usize];
        let end = transfer.carriers.next_end(share.carrier as usize);
        let (number, reader) =
            (transfer.ways[share.carrier as usize].delivered_by as usize, 1 - transfer.side);
        let connection = &mut self.connections[number];
        connection.wants[reader] = end.unwrap_or(NEVER);
        connection.listen(reader);
    }

    /// The next chunk of a connection has been delivered, if not more of them.
    pub(super) fn chunk_delivered(&mut self, share: Share, bytes: u64) {
        let transfer = &mut self.transfers[share.transfer as usize];
        let is_back = transfer.carriers.delivered(share.carrier as usize, bytes);
        if transfer.carriers.distributor().is_complete() && transfer.completed_at.is_none() {
            transfer.completed_at = Some(self.now);
        }
        self.await_chunk(share);
        if is_back {
            self.refill(share);
        }
    }

    /// Bytes that have been delivered at the end of the relays.
    fn delivered_by(&self, share: Share) -> u64 {
        let transfer = &self.transfers[share.transfer as usize];
        let number = transfer.ways[share.carrier as usize].delivered_by as usize;
        self.connections[number].sides[1 - transfer.side].receive.delivered_bytes
    }

    /// Begins to look at a connection from time to time, if that is wanted.
    fn watch_carrier(&mut self, share: Share) {
        let delivered = self.delivered_by(share);
        let transfer = &mut self.transfers[share.transfer as usize];
        let Some(give_up) = transfer.give_up else { return };
        if transfer.carriers.watch(share.carrier as usize, delivered) {
            self.look_again(share, give_up);
        }
    }

    fn look_again(&mut self, share: Share, after: Nanos) {
        let carriers = self.transfers[..share.transfer as usize].iter().map(|of| of.ways.len());
        let place = carriers.sum::<usize>() + share.carrier as usize;
        let timer = self.connections.len() + 2 * self.relays.len() + place;
        self.timers.push(self.now + after, TimerKind::Application, timer as u32);
    }

    /// The connection at a place among those of all transfers.
    pub(super) fn share_at(&self, mut place: usize) -> Share {
        for (index, transfer) in self.transfers.iter().enumerate() {
            if place < transfer.ways.len() {
                return Share { transfer: index as u32, carrier: place as u32 };
            }
            place -= transfer.ways.len();
        }
        unreachable!("a timer of no transfer")
    }

    /// Looks whether a connection has delivered anything.
    pub(super) fn look_at_carrier(&mut self, place: usize) {
        let share = self.share_at(place);
        let delivered = self.delivered_by(share);
        let transfer = &mut self.transfers[share.transfer as usize];
        let Some(give_up) = transfer.give_up else { return };
        match transfer.carriers.look(share.carrier as usize, delivered) {
            Look::Over | Look::Failed(0) => {}
            Look::Again => self.look_again(share, give_up),
            Look::Failed(_) => {
                let others = 0..transfer.ways.len() as u32;
                others.for_each(|carrier| self.refill(Share { carrier, ..share }));
            }
        }
    }

    /// The connections that what happens at one may touch: those of its relays and of its transfer, and itself.
    pub(super) fn tied_to(&self, number: usize) -> Vec<usize> {
        let Connection { feeds, fed_by, .. } = self.connections[number];
        let before = match fed_by {
            Some(Feeder::Relay(relay)) => Some(self.relays[relay as usize].input as usize),
            Some(Feeder::Transfer(_)) | None => None,
        };
        let behind = feeds.map(|relay| self.relays[relay as usize].output as usize);
        let delivers = self.connections[number].delivers;
        let transfer = match fed_by {
            Some(Feeder::Transfer(share)) => Some(share),
            Some(Feeder::Relay(_)) | None => delivers,
        };
        let carriers = transfer.iter().flat_map(|share| &self.transfers[share.transfer as usize].ways);
        let others = carriers.map(|way| way.writes_to as usize).filter(|&other| other != number);
        before.into_iter().chain([number]).chain(behind).chain(others).collect()
    }
}
