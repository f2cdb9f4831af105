//! A publisher and whoever acknowledges its messages: `telemetry`, as MQTT with QoS 1 (OASIS MQTT 5.0 section 4.3.2:
//! PUBLISH is answered by PUBACK).
//!
//! A message is written when it is due, whatever has become of the one before. The latency of a message is the time
//! from its writing to the delivery of the last byte of its answer. Left out: the exchange of CONNECT and CONNACK,
//! keep-alives, and messages that are published again after a connection is lost.

use std::collections::VecDeque;

use anabranch_link::{Nanos, Rng};
use anabranch_scenario::model::Telemetry;

use super::{Application, Io, Latencies};

/// Both ends.
pub(super) struct Publisher {
    model: Telemetry,
    end: Nanos,
    rng: Rng,
    opened_at: Nanos,
    /// Messages for which a time has been set.
    planned: u64,
    /// When messages without an answer were written.
    waiting: VecDeque<Nanos>,
    /// Messages received, and answers received.
    received: [u64; 2],
    latencies: Latencies,
}

impl Publisher {
    pub(super) fn new(model: Telemetry, end: Nanos, rng: Rng, latencies: Latencies) -> Self {
        let waiting = VecDeque::new();
        Self { model, end, rng, opened_at: 0, planned: 0, waiting, received: [0; 2], latencies }
    }

    fn plan(&mut self, io: &mut Io) {
        let due = self.opened_at.saturating_add(self.planned.saturating_mul(self.model.period));
        let late = self.rng.below(self.model.jitter + 1);
        if due >= self.end || self.model.count.is_some_and(|count| self.planned >= count) {
            return;
        }
        self.planned += 1;
        io.wake_at = Some(due + late);
    }
}

impl Application for Publisher {
    fn opened(&mut self, side: usize, io: &mut Io) {
        if side == 1 {
            io.wants[1] = u64::from(self.model.message_bytes);
            return;
        }
        io.wants[0] = u64::from(self.model.answer_bytes);
        self.opened_at = io.now;
        self.plan(io);
    }

    fn delivered(&mut self, side: usize, bytes: u64, io: &mut Io) {
        let answer = u64::from(self.model.answer_bytes);
        let size = if side == 1 { u64::from(self.model.message_bytes) } else { answer };
        let whole = bytes / size;
        let new = whole - std::mem::replace(&mut self.received[side], whole);
        io.wants[side] = (whole + 1) * size;
        if side == 1 {
            io.write[1] += new * answer;
            return;
        }
        for written in self.waiting.drain(..new as usize) {
            self.latencies.record(io.now, io.now - written);
        }
    }

    fn woken(&mut self, io: &mut Io) {
        self.waiting.push_back(io.now);
        io.write[0] += u64::from(self.model.message_bytes);
        self.plan(io);
    }

    fn latencies(&self) -> Option<&Latencies> {
        Some(&self.latencies)
    }
}
