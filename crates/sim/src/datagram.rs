//! UDP flows: packets of fixed size that leave as `anabranch_draw::departures` says.

use anabranch_draw::{Departures, Nanos, Streams};
use anabranch_scenario::model::Datagram;

use crate::packet::{NO_SACK, Packet, flags};

/// A flow while it runs.
pub(crate) struct DatagramFlow {
    route: u32,
    bytes: u16,
    departures: Departures,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) received_bytes: u64,
}

impl DatagramFlow {
    pub(crate) fn new(model: &Datagram, route: u32, streams: Streams) -> Self {
        Self {
            route,
            bytes: u16::try_from(model.packet_bytes).expect("the scenario checked the size"),
            departures: model.departures(streams),
            sent: 0,
            received: 0,
            received_bytes: 0,
        }
    }

    /// When the first packet leaves; [`anabranch_draw::NEVER`] if none does.
    pub(crate) fn first(&self) -> Nanos {
        self.departures.due()
    }

    /// The packet that is due, and when the next one leaves.
    pub(crate) fn send(&mut self, index: u32) -> (Packet, Nanos) {
        let packet = Packet {
            route: self.route,
            seq: self.sent as u32,
            ack: index,
            data_seq: 0,
            data_ack: 0,
            wnd: 0,
            tsval: 0,
            tsecr: 0,
            sack: NO_SACK,
            bytes: self.bytes,
            flags: flags::DATAGRAM,
        };
        self.sent += 1;
        self.departures.advance();
        (packet, self.departures.due())
    }

    /// A packet has reached the other end.
    pub(crate) fn arrived(&mut self, bytes: u16) {
        self.received += 1;
        self.received_bytes += u64::from(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_draw::{NEVER, Pattern};

    const MS: Nanos = 1_000_000;

    fn flow(on: Vec<(Nanos, Nanos)>, phase_jitter: Nanos) -> DatagramFlow {
        let model = Datagram {
            name: "cbr".into(),
            from: 0,
            to: 1,
            hops: Vec::new(),
            rate_bps: 1_000_000,
            packet_bytes: 1000,
            ip_version: anabranch_scenario::model::IpVersion::V4,
            on,
            phase_jitter,
            pattern: Pattern::Cbr,
        };
        DatagramFlow::new(&model, 0, Streams::new(1))
    }

    fn times(mut flow: DatagramFlow) -> Vec<Nanos> {
        let mut times = Vec::new();
        let mut at = flow.first();
        while at != NEVER {
            times.push(at);
            at = flow.send(0).1;
        }
        times
    }

    #[test]
    fn packets_keep_the_rate_within_the_intervals() {
        let sent = times(flow(vec![(5 * MS, 25 * MS), (100 * MS, 101 * MS)], 0));
        assert_eq!(sent, [5 * MS, 13 * MS, 21 * MS, 100 * MS], "1000 bytes at 1 Mbit/s take 8 ms");
    }

    #[test]
    fn an_interval_begins_within_its_jitter() {
        let from = 50 * MS;
        let start = flow(vec![(from, 200 * MS)], 10 * MS).first();
        assert!(start != from && start.abs_diff(from) <= 10 * MS, "{start}");
    }
}
