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

use std::collections::VecDeque;

use anabranch_link::Nanos;
use anabranch_policy::transfer::{Chunks, Distributor, HEADER_BYTES};
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
    pub(crate) distributor: Distributor,
    pub(crate) carriers: Vec<Carrier>,
    /// The side that writes.
    side: usize,
    give_up: Option<Nanos>,
    /// When all had arrived.
    pub(crate) completed_at: Option<Nanos>,
}

/// A connection at work for a transfer.
pub(crate) struct Carrier {
    pub(crate) writes_to: u32,
    /// The same, or the last of the connections that relays put behind it.
    pub(crate) delivered_by: u32,
    /// Bytes written so far.
    written: u64,
    /// Chunks that have not been delivered, each with the number of bytes after which it is.
    under_way: VecDeque<(u64, u64)>,
    /// Chunks that have been delivered.
    pub(crate) delivered: u64,
    has_failed: bool,
    /// Whether its timer is running.
    watched: bool,
    /// Bytes that had been delivered at the last look.
    seen: u64,
}

impl Transfer {
    pub(crate) fn new(model: &model::Transfer, relays: &[model::Relay], side: usize) -> Self {
        let behind = |&at: &usize| relays.iter().find(|relay| relay.input == at).map(|relay| relay.output);
        let carriers = model.over.iter().map(|&connection| Carrier {
            writes_to: connection as u32,
            delivered_by: std::iter::successors(Some(connection), behind).last().unwrap_or(connection) as u32,
            written: 0,
            under_way: VecDeque::new(),
            delivered: 0,
            has_failed: false,
            watched: false,
            seen: 0,
        });
        let chunks = Chunks::new(model.size_bytes, model.chunk_bytes);
        Self {
            distributor: Distributor::new(chunks, model.over.len()),
            carriers: carriers.collect(),
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
            for (at, carrier) in transfer.carriers.iter().enumerate() {
                let share = Share { transfer: index as u32, carrier: at as u32 };
                let connection = &mut self.connections[carrier.writes_to as usize];
                connection.fed_by = Some(Feeder::Transfer(share));
                connection.is_plain = false;
                self.connections[carrier.delivered_by as usize].delivers = Some(share);
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
        let Share { transfer: index, carrier: worker } = share;
        loop {
            let transfer = &mut self.transfers[index as usize];
            let side = transfer.side;
            let carrier = &mut transfer.carriers[worker as usize];
            let number = carrier.writes_to as usize;
            let connection = &self.connections[number];
            let is_busy = connection.sides[side].send.has_more();
            if is_busy || carrier.has_failed || !connection.is_open[side] {
                return;
            }
            let Some(chunk) = transfer.distributor.claim(worker as usize) else { return };
            let bytes = HEADER_BYTES + transfer.distributor.chunks().len(chunk);
            carrier.written += bytes;
            carrier.under_way.push_back((carrier.written, chunk));
            if carrier.under_way.len() == 1 {
                self.await_chunk(share);
            }
            self.watch_carrier(share);
            self.write(number, side, bytes);
        }
    }

    /// Has the connection say when the next chunk has been delivered.
    fn await_chunk(&mut self, share: Share) {
        let transfer = &self.transfers[share.transfer as usize];
        let carrier = &transfer.carriers[share.carrier as usize];
        let (number, reader) = (carrier.delivered_by as usize, 1 - transfer.side);
        let connection = &mut self.connections[number];
        connection.wants[reader] = carrier.under_way.front().map_or(NEVER, |&(end, _)| end);
        connection.listen(reader);
    }

    /// The next chunk of a connection has been delivered, if not more of them.
    pub(super) fn chunk_delivered(&mut self, share: Share, bytes: u64) {
        let transfer = &mut self.transfers[share.transfer as usize];
        let carrier = &mut transfer.carriers[share.carrier as usize];
        while let Some(&(end, chunk)) = carrier.under_way.front()
            && end <= bytes
        {
            carrier.under_way.pop_front();
            carrier.delivered += 1;
            transfer.distributor.arrived(share.carrier as usize, chunk);
        }
        if transfer.distributor.is_complete() && transfer.completed_at.is_none() {
            transfer.completed_at = Some(self.now);
        }
        let is_back = std::mem::replace(&mut carrier.has_failed, false);
        self.await_chunk(share);
        if is_back {
            self.refill(share);
        }
    }

    /// Begins to look at a connection from time to time, if that is wanted.
    fn watch_carrier(&mut self, share: Share) {
        let transfer = &mut self.transfers[share.transfer as usize];
        let carrier = &mut transfer.carriers[share.carrier as usize];
        let Some(give_up) = transfer.give_up else { return };
        if !std::mem::replace(&mut carrier.watched, true) {
            let reader = 1 - transfer.side;
            carrier.seen =
                self.connections[carrier.delivered_by as usize].sides[reader].receive.delivered_bytes;
            self.look_again(share, give_up);
        }
    }

    fn look_again(&mut self, share: Share, after: Nanos) {
        let carriers = self.transfers[..share.transfer as usize].iter().map(|of| of.carriers.len());
        let place = carriers.sum::<usize>() + share.carrier as usize;
        let timer = self.connections.len() + 2 * self.relays.len() + place;
        self.timers.push(self.now + after, TimerKind::Application, timer as u32);
    }

    /// The connection at a place among those of all transfers.
    pub(super) fn share_at(&self, mut place: usize) -> Share {
        for (index, transfer) in self.transfers.iter().enumerate() {
            if place < transfer.carriers.len() {
                return Share { transfer: index as u32, carrier: place as u32 };
            }
            place -= transfer.carriers.len();
        }
        unreachable!("a timer of no transfer")
    }

    /// Looks whether a connection has delivered anything.
    pub(super) fn look_at_carrier(&mut self, place: usize) {
        let share = self.share_at(place);
        let transfer = &mut self.transfers[share.transfer as usize];
        let carrier = &mut transfer.carriers[share.carrier as usize];
        let Some(give_up) = transfer.give_up else { return };
        let reader = &self.connections[carrier.delivered_by as usize].sides[1 - transfer.side];
        let delivered = reader.receive.delivered_bytes;
        let is_silent = std::mem::replace(&mut carrier.seen, delivered) == delivered;
        if carrier.under_way.is_empty() || carrier.has_failed {
            carrier.watched = false;
        } else if !is_silent {
            self.look_again(share, give_up);
        } else {
            carrier.has_failed = true;
            carrier.watched = false;
            let others = 0..transfer.carriers.len() as u32;
            if transfer.distributor.failed(share.carrier as usize) > 0 {
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
        let carriers = transfer.iter().flat_map(|share| &self.transfers[share.transfer as usize].carriers);
        let others = carriers.map(|carrier| carrier.writes_to as usize).filter(|&other| other != number);
        before.into_iter().chain([number]).chain(behind).chain(others).collect()
    }
}
