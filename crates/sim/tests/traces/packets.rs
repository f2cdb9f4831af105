//! The lines of a trace, and questions about them.

/// What a line tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The side with the data has sent a packet.
    Forth,
    /// The other side has.
    Back,
    /// A packet was lost.
    Lost,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) time_us: u64,
    pub(crate) subflow: u32,
    pub(crate) what: What,
    pub(crate) syn: bool,
    pub(crate) capable: bool,
    pub(crate) join: bool,
    /// What it says about subflows and addresses.
    pub(crate) signal: Option<String>,
    /// Number of the segment, if it carries one.
    pub(crate) seq: Option<u64>,
    /// Whether the segment has been sent before.
    pub(crate) again: bool,
    pub(crate) ack: Option<u64>,
    pub(crate) sacks: Vec<(u64, u64)>,
    pub(crate) dsn: Option<u64>,
    pub(crate) dack: Option<u64>,
    pub(crate) bytes: u64,
}

impl Line {
    /// Reads one line.
    ///
    /// # Panics
    /// If it is none.
    pub(crate) fn parse(text: &str) -> Self {
        let mut words = text.split_whitespace();
        let mut word = || words.next().unwrap_or_else(|| panic!("{text:?} ends early"));
        let (seconds, micros) = word().split_once('.').expect("seconds with a fraction");
        let mut line = Self {
            time_us: number(seconds) * 1_000_000 + number(micros),
            subflow: number(word()) as u32,
            what: match word() {
                ">" => What::Forth,
                "<" => What::Back,
                "lost" => What::Lost,
                other => panic!("{other:?} in {text:?}"),
            },
            syn: false,
            capable: false,
            join: false,
            signal: None,
            seq: None,
            again: false,
            ack: None,
            sacks: Vec::new(),
            dsn: None,
            dack: None,
            bytes: 0,
        };
        loop {
            match word() {
                "SYN" => line.syn = true,
                "MP_CAPABLE" => line.capable = true,
                "MP_JOIN" => line.join = true,
                "RST" => line.signal = Some("RST".to_owned()),
                other if other.contains('=') => line.signal = Some(other.to_owned()),
                "again" => line.again = true,
                "seq" => line.seq = Some(number(word())),
                "ack" => line.ack = Some(number(word())),
                "dsn" => line.dsn = Some(number(word())),
                "dack" => line.dack = Some(number(word())),
                "sack" => {
                    let (from, to) = word().split_once('-').expect("a range");
                    line.sacks.push((number(from), number(to)));
                }
                bytes => {
                    line.bytes = number(bytes.trim_start_matches('('));
                    assert_eq!((word(), words.next()), ("B)", None), "{text:?}");
                    return line;
                }
            }
        }
    }

    /// Whether it is a segment that leaves.
    pub(crate) fn is_data(&self) -> bool {
        self.what == What::Forth && self.seq.is_some()
    }

    /// Whether it is an acknowledgement without payload, of an open subflow, that leaves.
    pub(crate) fn is_ack(&self) -> bool {
        self.what == What::Back && !self.syn
    }
}

fn number(digits: &str) -> u64 {
    digits.parse().unwrap_or_else(|error| panic!("{digits:?}: {error}"))
}

/// A whole trace.
pub(crate) struct Lines(pub(crate) Vec<Line>);

impl Lines {
    /// Those of one subflow.
    pub(crate) fn of(&self, subflow: u32) -> Lines {
        Lines(self.0.iter().filter(|line| line.subflow == subflow).cloned().collect())
    }

    /// Segments sent, in order.
    pub(crate) fn data(&self) -> Vec<&Line> {
        self.0.iter().filter(|line| line.is_data()).collect()
    }

    /// Acknowledgements sent by the receiver, in order.
    pub(crate) fn acks(&self) -> Vec<&Line> {
        self.0.iter().filter(|line| line.is_ack()).collect()
    }

    /// Segments lost, in order, as numbers.
    pub(crate) fn lost(&self) -> Vec<u64> {
        self.0.iter().filter(|line| line.what == What::Lost).filter_map(|line| line.seq).collect()
    }

    /// Segments sent again, in order, as (time in microseconds, number).
    pub(crate) fn again(&self) -> Vec<(u64, u64)> {
        let again = self.data().into_iter().filter(|line| line.again);
        again.map(|line| (line.time_us, line.seq.expect("a segment"))).collect()
    }

    /// Segments sent at this time, as numbers. Traces round times down to a microsecond.
    pub(crate) fn sent_at(&self, time_us: u64) -> Vec<u64> {
        let then = |line: &&&Line| line.time_us.abs_diff(time_us) <= 1;
        self.data().iter().filter(then).filter_map(|line| line.seq).collect()
    }

    /// New segments sent at this time, as numbers.
    pub(crate) fn new_at(&self, time_us: u64) -> Vec<u64> {
        let again: Vec<_> = self.again();
        let repeated =
            |number: u64| again.iter().any(|&(at, seq)| at.abs_diff(time_us) <= 1 && seq == number);
        self.sent_at(time_us).into_iter().filter(|&number| !repeated(number)).collect()
    }

    /// Acknowledgements of one subflow where and when they reach the sender: over a wire of so many milliseconds,
    /// then the access link of 1 ms, at 10 Mbit/s both.
    pub(crate) fn arrivals(&self, wire_ms: u64) -> Vec<Arrival> {
        let mut last = 0;
        let mut arrivals = Vec::new();
        for line in self.acks() {
            let ack = line.ack.expect("an acknowledgement");
            let time_us = line.time_us + 1000 * (wire_ms + 1) + 2 * 8 * line.bytes / 10;
            arrivals.push(Arrival { time_us, ack, duplicate: ack == last, sacks: line.sacks.clone() });
            last = ack;
        }
        arrivals
    }

    /// Segments sent up to this time that no acknowledgement has covered, given the arrivals.
    pub(crate) fn outstanding(&self, arrivals: &[Arrival], time_us: u64) -> u64 {
        let sent =
            self.data().iter().filter(|line| line.time_us <= time_us + 1).filter_map(|line| line.seq).max();
        let acks = arrivals.iter().filter(|arrival| arrival.time_us <= time_us + 1);
        sent.map_or(0, |seq| seq + 1) - acks.map(|arrival| arrival.ack).max().unwrap_or(0)
    }

    /// What holds of every trace: segments are first sent in order and marked when sent again, every segment is
    /// acknowledged in the end, and a lost one is sent again.
    ///
    /// # Panics
    /// If it does not.
    pub(crate) fn check(&self, segments: u64) {
        let fresh: Vec<u64> =
            self.data().iter().filter(|line| !line.again).filter_map(|line| line.seq).collect();
        assert!(fresh.iter().copied().eq(0..segments), "first transmissions in order: {fresh:?}");
        let mut sent = 0;
        for line in self.data() {
            let number = line.seq.expect("a segment");
            assert_eq!(line.again, number < sent, "{line:?}");
            sent = sent.max(number + 1);
        }
        assert_eq!(self.acks().last().and_then(|line| line.ack), Some(segments));
        for lost in self.lost() {
            assert!(self.again().iter().any(|&(_, number)| number == lost), "{lost} is sent again");
        }
    }
}

/// An acknowledgement at the sender.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) time_us: u64,
    pub(crate) ack: u64,
    /// Whether it acknowledges no more than the one before (RFC 5681 section 2).
    pub(crate) duplicate: bool,
    pub(crate) sacks: Vec<(u64, u64)>,
}
