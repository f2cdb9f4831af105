//! The loop of the emulator: packets in, time on, packets out.
//!
//! An arrival at an inner hop that is handled late is offered to the next link at the time it was due, so
//! only the last step, into the exit, is late, however many hops a packet has passed. A packet that comes in
//! is stamped when it is read; what was due before is handled first, so that no link's clock goes back.

use std::{collections::BTreeMap, io, net::IpAddr};

use anabranch_scenario::model::Strips;

use super::{
    Tap,
    buffers::Buffers,
    counters::{Counters, Report, Times},
    headers::{self, Headers},
    middlebox,
    network::{Network, Outcome},
};
use crate::{BedError, Nanos};

/// Packets that are read from one device before the others have their turn.
const BATCH: usize = 64;
/// The largest IP packet.
const LARGEST_PACKET: usize = 65_535;

/// What the engine needs of the world: a clock, and devices that take and give packets.
pub(crate) trait Machine {
    /// The time; never goes back.
    fn now(&mut self) -> Nanos;

    /// Waits until a device may have a packet, somebody rings, or the time has come. Writes the devices that
    /// may have packets to `ready`, and says whether somebody rang.
    fn wait(&mut self, until: Nanos, ready: &mut Vec<usize>) -> io::Result<bool>;

    /// Reads a packet of a device into `start` and, what does not fit, into `rest`; returns its size.
    /// [`io::ErrorKind::WouldBlock`] says that there is none.
    fn read(&mut self, device: usize, start: &mut [u8], rest: &mut [u8]) -> io::Result<usize>;

    /// Gives a packet to a device.
    fn write(&mut self, device: usize, packet: &[u8]) -> io::Result<()>;
}

/// The emulated network between the devices of a machine.
pub(crate) struct Engine<M> {
    machine: M,
    network: Network,
    lookup: BTreeMap<(IpAddr, IpAddr), usize>,
    buffers: Buffers,
    /// Where the end of a packet goes that is larger than its buffer.
    rest: Box<[u8]>,
    tap: Option<Box<dyn Tap>>,
    /// To be added to the machine's clock for the tap's times.
    to_realtime: Nanos,
    ready: Vec<usize>,
    /// When the devices were last looked at.
    looked: Nanos,
    lateness: Times,
    gaps: Times,
    strays: u64,
    largest_bytes: u32,
    wakeups: u64,
    refusal: Option<io::Error>,
}

impl<M: Machine> Engine<M> {
    /// An engine at rest. `lookup` gives the route of packets by source and destination; `to_realtime` is the
    /// difference between `CLOCK_REALTIME` and the machine's clock.
    pub(crate) fn new(
        mut machine: M,
        network: Network,
        lookup: BTreeMap<(IpAddr, IpAddr), usize>,
        tap: Option<Box<dyn Tap>>,
        to_realtime: Nanos,
    ) -> Self {
        Self {
            looked: machine.now(),
            machine,
            network,
            lookup,
            buffers: Buffers::new(),
            rest: vec![0; LARGEST_PACKET].into_boxed_slice(),
            tap,
            to_realtime,
            ready: Vec::new(),
            lateness: Times::new(),
            gaps: Times::new(),
            strays: 0,
            largest_bytes: 0,
            wakeups: 0,
            refusal: None,
        }
    }

    /// Lets out what is due, waits for something to happen, lets in what has come. Says whether somebody rang.
    ///
    /// # Errors
    /// [`BedError::System`] if a device is gone.
    pub(crate) fn turn(&mut self) -> Result<bool, BedError> {
        let now = self.machine.now();
        self.let_out(now);
        self.gaps.record(self.machine.now() - self.looked);
        let rang = self
            .machine
            .wait(self.network.next_event(), &mut self.ready)
            .map_err(BedError::system("waiting for packets"))?;
        self.looked = self.machine.now();
        self.wakeups += 1;
        for index in 0..self.ready.len() {
            self.let_in(self.ready[index])?;
        }
        Ok(rang)
    }

    fn let_in(&mut self, device: usize) -> Result<(), BedError> {
        for _ in 0..BATCH {
            let buffer = self.buffers.take();
            let slot = self.buffers.get_mut(buffer);
            let room = slot.len();
            let length = match self.machine.read(device, slot, &mut self.rest) {
                Ok(length) => length,
                Err(error) => {
                    self.buffers.give_back(buffer);
                    if error.kind() == io::ErrorKind::WouldBlock {
                        return Ok(());
                    }
                    return Err(BedError::system(format!("reading from device {device}"))(error));
                }
            };
            if length > room {
                self.buffers.extend(buffer, &self.rest[..length - room]);
            }
            let now = self.machine.now();
            self.let_out(now);
            let packet = &self.buffers.get(buffer)[..length];
            let addresses = headers::addresses(packet);
            let Some(&route) = addresses.and_then(|addresses| self.lookup.get(&addresses)) else {
                self.strays += 1;
                self.buffers.give_back(buffer);
                continue;
            };
            if let Some(tap) = &mut self.tap {
                tap.packet(route, false, now.wrapping_add(self.to_realtime), packet);
            }
            let bytes = length as u32;
            let headers = Headers::of(packet);
            self.largest_bytes = self.largest_bytes.max(bytes);
            self.network.offer(now, route, buffer, bytes, headers);
        }
        Ok(())
    }

    /// Lets all that is due until then happen.
    fn let_out(&mut self, until: Nanos) {
        while let Some(outcome) = self.network.advance(until) {
            let buffer = match outcome {
                Outcome::Lost(parcel) => parcel.buffer,
                Outcome::Delivered { due, exit, parcel } => {
                    if parcel.marked {
                        headers::mark(self.buffers.get_mut(parcel.buffer));
                    }
                    let strips = self.network.strips(parcel.route);
                    if strips != Strips::Nothing {
                        let packet = &mut self.buffers.get_mut(parcel.buffer)[..parcel.bytes as usize];
                        middlebox::strip(packet, strips);
                    }
                    let packet = &self.buffers.get(parcel.buffer)[..parcel.bytes as usize];
                    let now = self.machine.now();
                    self.lateness.record(now - due);
                    match self.machine.write(exit, packet) {
                        Ok(()) => {
                            if let Some(tap) = &mut self.tap {
                                let route = parcel.route as usize;
                                tap.packet(route, true, now.wrapping_add(self.to_realtime), packet);
                            }
                        }
                        Err(error) => {
                            self.network.refuse(parcel);
                            self.refusal = Some(error);
                        }
                    }
                    parcel.buffer
                }
            };
            self.buffers.give_back(buffer);
        }
    }

    /// Brings the network to the present and writes down its counters.
    pub(crate) fn count(&mut self, counters: &mut Counters) {
        let now = self.machine.now();
        self.let_out(now);
        self.network.count(now, counters);
        counters.at_ns = now;
        counters.strays = self.strays;
        counters.largest_bytes = self.largest_bytes;
        counters.lateness = self.lateness.summary();
    }

    /// Ends the emulation; packets that are under way are gone.
    pub(crate) fn finish(mut self, cpu_ns: Nanos, realtime: bool) -> Report {
        let mut counters = Counters::default();
        self.count(&mut counters);
        Report {
            counters,
            lateness: self.lateness,
            gaps: self.gaps,
            cpu_ns,
            wakeups: self.wakeups,
            realtime,
            refusal: self.refusal.map(|error| error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
