//! `packets.pcapng`: the packets of a run as they would lie on the wire, for Wireshark and its like.
//!
//! Each direction of a subflow and each datagram flow has two interfaces in the file, where its packets enter the
//! network and where they leave it; a packet that is at one and not at the other was lost. Time 0 is the scenario's.
//! What the simulator counts in segments becomes bytes here, from initial sequence numbers and keys that the seed
//! determines; these draws move no others.
//!
//! A packet has the simulator's size wherever its headers fit: in the profiles `rfc` and `linux` all but those of the
//! handshakes do. Where the size leaves no room for an option that a reader cannot do without (those of handshakes, and
//! of Multipath TCP), the packet is as long as its headers make it; where it has no room for timestamps, there are
//! none; where it has more than options can fill, the packet is shorter.
//!
//! Left out: the application's bytes (payload is zeros), the end of connections, which the simulator does not close,
//! and the options that `options.rs` names.

use std::{cmp::Reverse, collections::BinaryHeap, net::SocketAddr, path::PathBuf};

use anabranch_link::{Nanos, Rng, Streams};
use anabranch_record::pcapng::{self, Counts};
use anabranch_scenario::model::{self, IpVersion, Protocol, Scenario};

use super::{
    Shown,
    bytes::Bytes,
    headers::{Tcp, control, write_udp},
    keys::Keys,
    options::{Mapping, Opening, Options, TIMESTAMPS_BYTES},
    output::Output,
    paths::{Path, Paths, later_port},
};
use crate::{
    packet::{NO_SACK, Packet, flags},
    signal::Signal,
};

/// DSS options with their padding: a mapping with an acknowledgement, and an acknowledgement alone.
const DSS_DATA_BYTES: u16 = 20;
const DSS_ACK_BYTES: u16 = 12;
/// RFC 7323 section 2.3.
const LARGEST_SHIFT: u8 = 14;

/// A capture in the making.
pub(super) struct Capture {
    output: Output,
    /// How much of a packet is kept; `None`: all of it.
    snaplen: Option<u32>,
    streams: Streams,
    speakers: Vec<Speaker>,
    connections: Vec<Agreement>,
    datagrams: Vec<(SocketAddr, SocketAddr)>,
    /// By interface.
    counts: Vec<Counts>,
    later: BinaryHeap<Reverse<Later>>,
    made: u64,
    /// Scratch: a packet, and its block.
    packet: Vec<u8>,
    block: Vec<u8>,
}

/// A packet that has been made and leaves later; ordered by time, then by number.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Later {
    at: Nanos,
    number: u64,
    interface: u32,
    block: Vec<u8>,
}

/// An endpoint as its peer sees it.
struct Speaker {
    connection: usize,
    /// In the first life of the subflow.
    from: SocketAddr,
    to: SocketAddr,
    /// Names the streams from which its lives are drawn.
    name: String,
    lives: Vec<Life>,
    /// Address identifier of the subflow (RFC 8684 section 3.2).
    address: u8,
}

/// What a speaker chooses when its subflow is opened.
#[derive(Clone, Copy)]
struct Life {
    /// Initial sequence number; the first byte of payload has the one behind it.
    initial: u32,
    /// For the authentication of a join.
    nonce: u32,
    backup: bool,
}

impl Life {
    fn draw(draws: &mut Rng, backup: bool) -> Self {
        Self { initial: draws.next_u64() as u32, nonce: draws.next_u64() as u32, backup }
    }
}

impl Speaker {
    /// Draws what later lives need, up to this one.
    fn live(&mut self, life: usize, side: usize, streams: Streams) {
        while self.lives.len() <= life {
            let name = format!("{}/{side}/{}", self.name, self.lives.len());
            self.lives.push(Life::draw(&mut streams.stream(&name), false));
        }
    }
}

/// What is common to the endpoints of a connection.
struct Agreement {
    opening: Opening,
    /// The opener's speaker of the first subflow.
    first: usize,
    /// Headers of IP and TCP without options.
    fixed_bytes: u16,
    multipath: Option<Multipath>,
}

/// The data level.
struct Multipath {
    keys: Keys,
    /// Number of the first byte that a side sends.
    first_bytes: [u64; 2],
}

impl Capture {
    pub(super) fn new(scenario: &Scenario, seed: u64, file: PathBuf, snaplen: Option<u32>) -> Self {
        let streams = Streams::new(seed);
        let Paths { endpoints, datagrams } = Paths::new(scenario);
        let mut output = Output::create(file);
        let mut head = Vec::new();
        pcapng::begin_section(&mut head, "anabranch");
        let paths = endpoints.iter().chain(&datagrams);
        let mut interfaces = 0;
        for path in paths {
            for point in ["in", "out"] {
                let name = format!("{} ({point})", path.name);
                pcapng::describe_interface(&mut head, &name, snaplen.unwrap_or(0));
                interfaces += 1;
            }
        }
        output.write(&head);
        let mut paths = endpoints.iter();
        let (mut speakers, mut connections) = (Vec::new(), Vec::new());
        for (index, connection) in scenario.connections.iter().enumerate() {
            connections.push(agree(connection, speakers.len(), streams));
            speakers.extend(speak(connection, index, streams, &mut paths));
        }
        Self {
            output,
            snaplen,
            streams,
            speakers,
            connections,
            datagrams: datagrams.iter().map(|path| (path.from, path.to)).collect(),
            counts: vec![Counts::default(); interfaces],
            later: BinaryHeap::new(),
            made: 0,
            packet: Vec::new(),
            block: Vec::new(),
        }
    }

    /// An endpoint has made a packet, which enters the network at `at`; whether it is a backup now.
    pub(super) fn sent(&mut self, shown: Shown<'_>, at: Nanos, backup: bool) {
        if shown.packet.has(flags::SYN) {
            let life = shown.bytes.life(shown.endpoint, shown.packet.seq);
            self.speakers[shown.endpoint].live(life, shown.endpoint & 1, self.streams);
            self.speakers[shown.endpoint].lives[life].backup = backup;
        }
        let bytes = self.describe(shown);
        self.keep(shown.now, at, 2 * shown.endpoint as u32, bytes);
    }

    /// An endpoint's packet has left the network.
    pub(super) fn arrived(&mut self, shown: Shown<'_>) {
        let bytes = self.describe(shown);
        self.keep(shown.now, shown.now, 2 * shown.endpoint as u32 + 1, bytes);
    }

    /// A packet of a datagram flow enters the network (`point` 0) or leaves it (1).
    pub(super) fn datagram(&mut self, now: Nanos, flow: usize, packet: &Packet, point: u32) {
        let (from, to) = self.datagrams[flow];
        self.packet.clear();
        let bytes = write_udp(&mut self.packet, from, to, packet.bytes);
        self.keep(now, now, 2 * (self.speakers.len() + flow) as u32 + point, bytes);
    }

    /// Writes the headers of an endpoint's packet; returns its length.
    fn describe(&mut self, Shown { endpoint, packet, sacks, bytes, .. }: Shown<'_>) -> u32 {
        let speaker = &self.speakers[endpoint];
        let lives = [(endpoint, packet.seq), (endpoint ^ 1, packet.ack)]
            .map(|(endpoint, segment)| bytes.life(endpoint, segment));
        let [life, peer] = [speaker.lives[lives[0]], self.speakers[endpoint ^ 1].lives[lives[1]]];
        let own = |segment: u32| first_behind(life.initial, bytes.before(endpoint, segment));
        let peers = |segment: u32| first_behind(peer.initial, bytes.before(endpoint ^ 1, segment));
        let agreement = &self.connections[speaker.connection];
        let opens = packet.has(flags::SYN);
        let acknowledges = packet.has(flags::ACK);
        let payload = bytes.payload(endpoint, packet);
        let room = packet.bytes.saturating_sub(agreement.fixed_bytes + payload);
        let clock = (packet.tsval, if acknowledges { packet.tsecr } else { 0 });
        let mut options = Options::new();
        if opens {
            options.opening(agreement.opening, clock);
        } else if agreement.opening.timestamps {
            options.timestamps(clock);
        }
        if let Some(multipath) = &agreement.multipath {
            let speakers = &self.speakers[agreement.first..];
            Level { multipath, speakers, speaker, lives: [life, peer], endpoint, bytes }
                .write(&mut options, packet);
        }
        if packet.sack != NO_SACK {
            let blocks = sacks.peek(packet.sack);
            let sequence = |&(from, to): &(u32, u32)| (peers(from), peers(to));
            options.blocks(blocks.as_slice().iter().map(sequence));
        }
        let mut bits = 0;
        for (is_set, bit) in [
            (opens, control::SYN),
            (Signal::of(packet) == Some(Signal::Reset), control::RST),
            (acknowledges, control::ACK),
            (packet.has(flags::PUSH), control::PSH),
            (packet.has(flags::ECE), control::ECE),
            (packet.has(flags::CWR), control::CWR),
        ] {
            bits |= if is_set { bit } else { 0 };
        }
        let shift = if opens { 0 } else { agreement.opening.window_shift };
        let window = packet.has(flags::WINDOW).then_some(packet.wnd >> shift);
        let (mut from, mut to) = (speaker.from, speaker.to);
        let opener = lives[endpoint & 1];
        if opener > 0 {
            let client = if endpoint & 1 == 0 { &mut from } else { &mut to };
            client.set_port(later_port(client.port(), opener, self.speakers.len() / 2));
        }
        let tcp = Tcp {
            from,
            to,
            ecn: match (packet.has(flags::CE), packet.has(flags::ECT)) {
                (true, _) => 0b11,
                (false, true) => 0b10,
                (false, false) => 0,
            },
            seq: if opens { life.initial } else { own(packet.seq) },
            ack: if acknowledges { peers(packet.ack) } else { 0 },
            control: bits,
            window: window.map_or(u16::MAX, |window| u16::try_from(window).unwrap_or(u16::MAX)),
            options: options.padded(room),
            payload,
        };
        self.packet.clear();
        tcp.write(&mut self.packet)
    }

    /// Puts the packet that has been described into the file, when it is its turn.
    fn keep(&mut self, now: Nanos, at: Nanos, interface: u32, bytes: u32) {
        let kept = self.snaplen.map_or(bytes, |snaplen| bytes.min(snaplen)) as usize;
        self.packet.resize(kept, 0);
        self.block.clear();
        pcapng::packet(&mut self.block, interface, at, &self.packet, bytes);
        self.write_later(now);
        if at > now {
            self.made += 1;
            let (number, block) = (self.made, self.block.clone());
            self.later.push(Reverse(Later { at, number, interface, block }));
        } else {
            self.counts[interface as usize].seen += 1;
            self.output.write(&self.block);
        }
    }

    /// Writes the packets that have left meanwhile.
    fn write_later(&mut self, now: Nanos) {
        while let Some(Reverse(Later { at, .. })) = self.later.peek()
            && *at <= now
        {
            let Reverse(Later { interface, block, .. }) = self.later.pop().expect("it has just been there");
            self.counts[interface as usize].seen += 1;
            self.output.write(&block);
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.output.has_failed()
    }

    /// Ends the file at the end of the run.
    pub(super) fn finish(mut self, end: Nanos) -> Output {
        self.write_later(end);
        let mut statistics = Vec::new();
        for (interface, counts) in self.counts.iter().enumerate() {
            pcapng::interface_statistics(&mut statistics, interface as u32, end, counts);
        }
        self.output.write(&statistics);
        self.output
    }
}

/// The endpoints of a connection.
fn speak<'p>(
    model: &model::Connection,
    connection: usize,
    streams: Streams,
    paths: &mut impl Iterator<Item = &'p Path>,
) -> Vec<Speaker> {
    let mut speakers = Vec::new();
    for (number, subflow) in model.subflows.iter().enumerate() {
        let name = format!("capture/{}/{}", model.name, subflow.name);
        let mut draws = streams.stream(&name);
        for path in paths.by_ref().take(2) {
            speakers.push(Speaker {
                connection,
                from: path.from,
                to: path.to,
                name: name.clone(),
                lives: vec![Life::draw(&mut draws, subflow.backup)],
                address: number as u8,
            });
        }
    }
    speakers
}

fn agree(model: &model::Connection, first: usize, streams: Streams) -> Agreement {
    let transport = &model.transport;
    let small = |bytes: u32| u16::try_from(bytes).unwrap_or(u16::MAX);
    let fixed_bytes = match model.ip_version {
        IpVersion::V4 => 40,
        IpVersion::V6 => 60,
    };
    let (data, ack) = match model.protocol {
        Protocol::Tcp => (0, 0),
        Protocol::Mptcp => (DSS_DATA_BYTES, DSS_ACK_BYTES),
    };
    let (header_bytes, ack_bytes) = (small(transport.header_bytes), small(transport.ack_bytes));
    let has_room = |bytes: u16, options: u16| bytes >= fixed_bytes + options + TIMESTAMPS_BYTES;
    let opening = Opening {
        // RFC 6691: options are not subtracted from it.
        maximum_segment: small(
            (transport.segment_bytes + transport.header_bytes).saturating_sub(u32::from(fixed_bytes)),
        ),
        window_shift: window_shift(transport.receive_buffer),
        selective: transport.recovery.is_selective(),
        timestamps: has_room(header_bytes, data) && has_room(ack_bytes, ack),
    };
    let multipath = (model.protocol == Protocol::Mptcp).then(|| {
        let keys = Keys::new(&mut streams.stream(&format!("capture/{}", model.name)));
        let first_bytes = [0, 1].map(|side| keys.initial_data_number(side).wrapping_add(1));
        Multipath { keys, first_bytes }
    });
    Agreement { opening, first, fixed_bytes, multipath }
}

/// The least shift with which a window as large as the buffer can be told.
fn window_shift(receive_buffer: Option<u64>) -> u8 {
    let fits = |shift: &u8| receive_buffer.is_some_and(|bytes| bytes >> shift <= u64::from(u16::MAX));
    (0..LARGEST_SHIFT).find(fits).unwrap_or(LARGEST_SHIFT)
}

/// Sequence number of a byte that so many are before, given the initial sequence number.
fn first_behind(initial: u32, before: u64) -> u32 {
    initial.wrapping_add(1).wrapping_add(before as u32)
}

/// The data level as one endpoint sees it.
struct Level<'a> {
    multipath: &'a Multipath,
    /// Those of the connection, and all behind.
    speakers: &'a [Speaker],
    speaker: &'a Speaker,
    /// The own life of the subflow, and the peer's.
    lives: [Life; 2],
    endpoint: usize,
    bytes: &'a Bytes,
}

impl Level<'_> {
    /// Writes the option of Multipath TCP that a packet carries.
    fn write(&self, options: &mut Options, packet: &Packet) {
        let side = self.endpoint & 1;
        let keys = &self.multipath.keys;
        let handshake = (packet.has(flags::SYN), packet.has(flags::ACK));
        if packet.has(flags::MP_CAPABLE) {
            match handshake {
                (true, false) => options.capable(&[]),
                (true, true) => options.capable(&[keys.keys[side]]),
                (false, _) => options.capable(&[keys.keys[side], keys.keys[side ^ 1]]),
            }
        } else if packet.has(flags::MP_JOIN) {
            let address = self.speaker.address;
            let [Life { nonce, backup, .. }, peer] = self.lives;
            let nonces = if side == 0 { [nonce, peer.nonce] } else { [peer.nonce, nonce] };
            match handshake {
                (true, false) => options.join(backup, address, keys.token(side ^ 1), nonce),
                (true, true) => {
                    options.join_answer(backup, address, &keys.authentication(side, nonces), nonce);
                }
                (false, _) => options.join_end(&keys.authentication(side, nonces)),
            }
        } else if let Some(signal) = Signal::of(packet) {
            let room = options.room() as u16;
            // Linux, too, leaves out the acknowledgement beside what needs its place.
            if signal != Signal::Reset && self.signal_bytes(signal) + DSS_ACK_BYTES <= room {
                options.data_ack(self.data_number(self.endpoint ^ 1, packet.data_ack));
            }
            self.write_signal(options, signal);
        } else if packet.has(flags::DATA_ACK) {
            let data_ack = self.data_number(self.endpoint ^ 1, packet.data_ack);
            if packet.has(flags::DATA) {
                let map = Mapping {
                    data: self.data_number(self.endpoint, packet.data_seq) as u32,
                    subflow: first_behind(0, self.bytes.before(self.endpoint, packet.seq)),
                    len: self.bytes.payload(self.endpoint, packet),
                };
                options.mapping(data_ack as u32, map);
            } else {
                options.data_ack(data_ack);
            }
        }
    }

    fn signal_bytes(&self, signal: Signal) -> u16 {
        signal.option_bytes(if self.speaker.from.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 })
    }

    fn write_signal(&self, options: &mut Options, signal: Signal) {
        let side = self.endpoint & 1;
        let address = |side: usize, subflow: u32| self.speakers[2 * subflow as usize + side].from.ip();
        match signal {
            Signal::Reset => options.reset(),
            Signal::Priority { backup } => options.priority(backup),
            Signal::AddAddress(subflow) => {
                let address = address(side, subflow);
                let code = self.multipath.keys.announcement(side, subflow as u8, address);
                options.add_address(subflow as u8, address, Some(code));
            }
            Signal::AddAddressEcho(subflow) => {
                options.add_address(subflow as u8, address(side ^ 1, subflow), None);
            }
            Signal::RemoveAddress(subflow) => options.remove_address(subflow as u8),
        }
    }

    /// Data sequence number of the first byte of a segment that `endpoint` sends.
    fn data_number(&self, endpoint: usize, segment: u32) -> u64 {
        self.multipath.first_bytes[endpoint & 1].wrapping_add(self.bytes.data_before(endpoint, segment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_7323_2_3_the_shift_is_the_least_that_tells_the_whole_buffer() {
        assert_eq!(window_shift(Some(65_535)), 0);
        assert_eq!(window_shift(Some(65_536)), 1);
        assert_eq!(window_shift(Some(6 << 20)), 7, "as Linux with its usual buffer");
        assert_eq!(window_shift(Some(1 << 40)), LARGEST_SHIFT);
        assert_eq!(window_shift(None), LARGEST_SHIFT);
    }
}
