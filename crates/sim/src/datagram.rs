//! UDP flows: packets of fixed size at a constant rate, during given intervals.

use anabranch_link::{ByteTime, NEVER, Nanos, Rng};
use anabranch_scenario::model::Datagram;

use crate::packet::{NO_SACK, Packet, flags};

/// A flow while it runs.
pub(crate) struct DatagramFlow {
    route: u32,
    bytes: u16,
    gap: Nanos,
    /// Intervals with their phase drawn, the current one first.
    on: std::collections::VecDeque<(Nanos, Nanos)>,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) received_bytes: u64,
}

impl DatagramFlow {
    pub(crate) fn new(model: &Datagram, route: u32, rng: &mut Rng) -> Self {
        Self {
            route,
            bytes: u16::try_from(model.packet_bytes).expect("the scenario checked the size"),
            gap: ByteTime::new(model.rate_bps).of(model.packet_bytes).max(1),
            on: model.intervals(|bound| rng.below(bound)).collect(),
            sent: 0,
            received: 0,
            received_bytes: 0,
        }
    }

    /// When the first packet leaves; [`NEVER`] if none does.
    pub(crate) fn first(&self) -> Nanos {
        self.on.front().map_or(NEVER, |&(from, _)| from)
    }

    /// The packet that leaves at `now`, and when the next one does.
    pub(crate) fn send(&mut self, now: Nanos, index: u32) -> (Packet, Nanos) {
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
        let next = now + self.gap;
        let (_, ends) = *self.on.front().expect("the flow is on");
        if next < ends {
            return (packet, next);
        }
        self.on.pop_front();
        (packet, self.first())
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
    use anabranch_link::Streams;

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
        };
        DatagramFlow::new(&model, 0, &mut Streams::new(1).stream("cbr"))
    }

    fn times(mut flow: DatagramFlow) -> Vec<Nanos> {
        let mut times = Vec::new();
        let mut at = flow.first();
        while at != NEVER {
            times.push(at);
            at = flow.send(at, 0).1;
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
