//! What the simulator counts in segments, in bytes: of every endpoint's subflow, and of the data level above.

use anabranch_scenario::model::Scenario;

use super::{lives::Lives, numbers::Numbers};
use crate::packet::{Packet, flags};

/// The payload of all connections so far.
pub(super) struct Bytes {
    endpoints: Vec<Endpoint>,
    /// Data-level segments by connection and side.
    data: Vec<[Numbers; 2]>,
}

struct Endpoint {
    connection: usize,
    /// What the simulator counts as headers of a data packet.
    header_bytes: u16,
    segments: Lives,
}

impl Bytes {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let mut endpoints = Vec::new();
        for (connection, model) in scenario.connections.iter().enumerate() {
            let header_bytes = u16::try_from(model.transport.header_bytes).unwrap_or(u16::MAX);
            for _ in 0..2 * model.subflows.len() {
                endpoints.push(Endpoint { connection, header_bytes, segments: Lives::default() });
            }
        }
        Self { endpoints, data: scenario.connections.iter().map(|_| Default::default()).collect() }
    }

    /// Learns what a packet carries that leaves `endpoint`.
    pub(super) fn note(&mut self, endpoint: usize, packet: &Packet) {
        if packet.has(flags::SYN) {
            self.endpoints[endpoint].segments.begin(packet.seq);
        }
        if packet.has(flags::DATA) {
            let len = self.payload(endpoint, packet);
            let from = &mut self.endpoints[endpoint];
            from.segments.note(packet.seq, len);
            if packet.has(flags::DATA_ACK) {
                self.data[from.connection][endpoint & 1].note(packet.data_seq, len);
            }
        }
    }

    /// Length of the payload of an endpoint's packet.
    pub(super) fn payload(&self, endpoint: usize, packet: &Packet) -> u16 {
        if packet.has(flags::DATA) { packet.bytes - self.endpoints[endpoint].header_bytes } else { 0 }
    }

    /// How often the subflow of `endpoint` had been opened again when it sent the segment.
    pub(super) fn life(&self, endpoint: usize, segment: u32) -> usize {
        self.endpoints[endpoint].segments.of(segment)
    }

    /// Bytes that `endpoint` sends before a segment, since its subflow was opened.
    pub(super) fn before(&self, endpoint: usize, segment: u32) -> u64 {
        self.endpoints[endpoint].segments.bytes_before(segment)
    }

    /// Bytes of the data level that the side of `endpoint` sends before a segment.
    pub(super) fn data_before(&self, endpoint: usize, segment: u32) -> u64 {
        self.data[self.endpoints[endpoint].connection][endpoint & 1].bytes_before(segment)
    }
}
