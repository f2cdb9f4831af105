//! Applications that answer: `telemetry` and `request`. The draws are those of the simulator.
//!
//! The opener writes first and the other end answers what it has received, never before: when both ends of an MPTCP
//! connection send before it is fully established, Linux 6.18 can lose some. For the same reason the second message
//! of `telemetry` over MPTCP waits for the first answer.

use std::{
    collections::VecDeque,
    io::{self, ErrorKind},
    os::fd::AsFd as _,
};

use anabranch_link::{Rng, Streams};
use anabranch_scenario::model::{self, Protocol, Request, Telemetry, Traffic};
use nix::poll::PollFlags;

use super::{
    clock::{Stop, Wake},
    pattern,
    transfer::{End, Read, write_up_to},
};
use crate::Nanos;

/// What both ends know.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    kind: Kind,
    end: Nanos,
    rng: Rng,
    protocol: Protocol,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Telemetry(Telemetry),
    Request(Request),
}

impl Exchange {
    /// The exchange of a connection, if its application has answers. `end` is when it stops.
    pub(super) fn new(model: &model::Connection, end: Nanos, streams: Streams) -> Option<Self> {
        let kind = match model.traffic {
            Traffic::Telemetry(telemetry) => Kind::Telemetry(telemetry),
            Traffic::Request(request) => Kind::Request(request),
            _ => return None,
        };
        Some(Self { kind, end, rng: model.application_draws(streams), protocol: model.protocol })
    }

    /// The opener's part, until nothing is left to ask and all answers are there, or the applications are to end.
    pub(super) fn ask(&self, end: End<'_>, stop: &Stop) -> io::Result<Wake> {
        let mut asker = Asker { end, stop, rng: self.rng.clone(), buffer: vec![0; pattern::LONGEST] };
        match self.kind {
            Kind::Telemetry(model) => asker.publish(&model, self.end, self.protocol),
            Kind::Request(model) => asker.request(&model, self.end),
        }
    }

    /// The other end's part.
    pub(super) fn answerer(&self) -> Answerer {
        let mut answerer = Answerer { kind: self.kind, rng: self.rng.clone(), expected: 0, response: 0 };
        answerer.expect();
        answerer
    }
}

/// The opener at work.
struct Asker<'a> {
    end: End<'a>,
    stop: &'a Stop,
    rng: Rng,
    buffer: Vec<u8>,
}

impl Asker<'_> {
    fn publish(&mut self, model: &Telemetry, end: Nanos, protocol: Protocol) -> io::Result<Wake> {
        let opened_at = self.stop.clock().now();
        let (message, answer) = (u64::from(model.message_bytes), u64::from(model.answer_bytes));
        let (mut planned, mut answered, mut waiting) = (0, 0, VecDeque::new());
        let mut plan = |rng: &mut Rng| {
            let due = opened_at.saturating_add(model.period.saturating_mul(planned));
            let late = rng.below(model.jitter + 1);
            let is_one_more = due < end && model.count.is_none_or(|count| planned < count);
            planned += u64::from(is_one_more);
            is_one_more.then_some(due + late)
        };
        let mut due = plan(&mut self.rng);
        while due.is_some() || !waiting.is_empty() {
            let holds = protocol == Protocol::Mptcp && answered == 0 && !waiting.is_empty();
            let next = due.filter(|_| !holds);
            let now = self.stop.clock().now();
            if next.is_some_and(|at| at <= now) {
                waiting.push_back(now);
                if write_up_to(self.end, self.end.written_bytes() + message, self.stop)? == Wake::Stopped {
                    return Ok(Wake::Stopped);
                }
                due = plan(&mut self.rng);
                continue;
            }
            let Some(received) = self.read(next)? else { return Ok(Wake::Stopped) };
            let now = self.stop.clock().now();
            for written in waiting.drain(..(received / answer - answered) as usize) {
                self.end.connection.record_latency(now, now.saturating_sub(written));
            }
            answered = received / answer;
        }
        Ok(Wake::Due)
    }

    fn request(&mut self, model: &Request, end: Nanos) -> io::Result<Wake> {
        let (mut asked, mut expected) = (0, 0);
        loop {
            let began = self.stop.clock().now();
            if began >= end || model.count.is_some_and(|count| asked >= count) {
                return Ok(Wake::Due);
            }
            let request = model.request.draw(&mut self.rng).max(1);
            expected += model.response.draw(&mut self.rng).max(1);
            asked += 1;
            if write_up_to(self.end, self.end.written_bytes() + request, self.stop)? == Wake::Stopped {
                return Ok(Wake::Stopped);
            }
            while self.end.delivered_bytes() < expected {
                if self.read(None)?.is_none() {
                    return Ok(Wake::Stopped);
                }
            }
            let now = self.stop.clock().now();
            self.end.connection.record_latency(now, now.saturating_sub(began));
            let think = model.think.draw(&mut self.rng);
            if self.stop.wait_until(now.saturating_add(think).min(end)) == Wake::Stopped {
                return Ok(Wake::Stopped);
            }
        }
    }

    /// Waits for answers, until `time` if there is one, and takes what has come: bytes received in all, or `None` if
    /// the applications are to end.
    fn read(&mut self, time: Option<Nanos>) -> io::Result<Option<u64>> {
        if self.stop.wait_for(self.end.socket.as_fd(), PollFlags::POLLIN, time) == Wake::Stopped {
            return Ok(None);
        }
        match self.end.read(&mut self.buffer)? {
            Read::Ended => {
                Err(io::Error::new(ErrorKind::UnexpectedEof, "the other end has closed the connection"))
            }
            Read::Bytes(_) | Read::Nothing => Ok(Some(self.end.delivered_bytes())),
        }
    }
}

/// The answering end: it draws the same sizes as the asker.
#[derive(Debug)]
pub(super) struct Answerer {
    kind: Kind,
    rng: Rng,
    /// Bytes in all after which the next answer is due.
    expected: u64,
    response: u64,
}

impl Answerer {
    fn expect(&mut self) {
        match &self.kind {
            Kind::Telemetry(model) => {
                self.expected += u64::from(model.message_bytes);
                self.response = u64::from(model.answer_bytes);
            }
            Kind::Request(model) => {
                self.expected += model.request.draw(&mut self.rng).max(1);
                self.response = model.response.draw(&mut self.rng).max(1);
                model.think.draw(&mut self.rng);
            }
        }
    }

    /// Writes what is due after what has been received.
    pub(super) fn answer(&mut self, end: End<'_>, stop: &Stop) -> io::Result<()> {
        let mut due = end.written_bytes();
        while end.delivered_bytes() >= self.expected {
            due += self.response;
            self.expect();
        }
        write_up_to(end, due, stop).map(|_| ())
    }
}
