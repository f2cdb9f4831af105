//! Packet traces as text, one line per packet sent, for people and for golden tests.
//!
//! A packet that is lost has two lines: one where it was sent, one where it was lost.

use std::fmt::Write as _;

use anabranch_link::Nanos;

use crate::{
    packet::{NO_SACK, Packet, SackPool, flags},
    signal::Signal,
};

/// Lines of a trace.
#[derive(Default)]
pub(crate) struct Trace {
    lines: Vec<(Nanos, String)>,
    limit: usize,
    /// When the first packet beyond the limit was sent.
    full_since: Option<Nanos>,
}

impl Trace {
    /// A trace of at most `limit` packets sent, and those lost meanwhile.
    pub(crate) fn new(limit: usize) -> Self {
        Self { lines: Vec::new(), limit, full_since: None }
    }

    /// An endpoint has sent a packet.
    pub(crate) fn sent(&mut self, now: Nanos, endpoint: u32, packet: &Packet, sacks: &SackPool) {
        if self.lines.len() < self.limit {
            self.note(now, endpoint, if endpoint & 1 == 0 { ">" } else { "<" }, packet, Some(sacks));
        } else {
            self.full_since.get_or_insert(now);
        }
    }

    /// A packet was lost; to be told when the run is over.
    pub(crate) fn lost(&mut self, now: Nanos, sink: u32, packet: &Packet) {
        if self.full_since.is_some_and(|since| now >= since) {
            return;
        }
        self.note(now, sink ^ 1, "lost", packet, None);
    }

    fn note(&mut self, now: Nanos, endpoint: u32, what: &str, packet: &Packet, sacks: Option<&SackPool>) {
        let mut line = format!("{:>12.6} {} {what:<1}", now as f64 / 1e9, endpoint / 2);
        describe(&mut line, packet, sacks);
        self.lines.push((now, line));
    }

    /// The trace in order of time.
    pub(crate) fn finish(mut self) -> String {
        self.lines.sort_by_key(|&(now, _)| now);
        self.lines.into_iter().fold(String::new(), |text, (_, line)| text + &line + "\n")
    }
}

fn describe(line: &mut String, packet: &Packet, sacks: Option<&SackPool>) {
    for (flag, name) in
        [(flags::SYN, " SYN"), (flags::MP_CAPABLE, " MP_CAPABLE"), (flags::MP_JOIN, " MP_JOIN")]
    {
        if packet.has(flag) {
            line.push_str(name);
        }
    }
    for (flag, name) in [(flags::ECT, " ECT"), (flags::CE, " CE"), (flags::ECE, " ECE"), (flags::CWR, " CWR")]
    {
        if packet.has(flag) {
            line.push_str(name);
        }
    }
    if let Some(signal) = Signal::of(packet) {
        write!(line, " {}", signal.word()).expect("writing to a string");
    }
    if packet.has(flags::DATA) {
        write!(line, " seq {}", packet.seq).expect("writing to a string");
    }
    if packet.has(flags::RETRANSMIT) {
        line.push_str(" again");
    }
    if packet.has(flags::ACK) {
        write!(line, " ack {}", packet.ack).expect("writing to a string");
    }
    if let (Some(sacks), true) = (sacks, packet.sack != NO_SACK) {
        for (from, to) in sacks.peek(packet.sack).as_slice() {
            write!(line, " sack {from}-{to}").expect("writing to a string");
        }
    }
    if packet.has(flags::DATA_ACK) {
        if packet.has(flags::DATA) {
            write!(line, " dsn {}", packet.data_seq).expect("writing to a string");
        }
        write!(line, " dack {}", packet.data_ack).expect("writing to a string");
    }
    write!(line, " ({} B)", packet.bytes).expect("writing to a string");
}
