//! A client that asks, waits for all of the answer, thinks and asks again: `request`.
//!
//! The latency of an exchange is the time from the writing of the request to the delivery of the last byte of its
//! answer. Left out: several requests under way at once, and the server's time.

use anabranch_link::{Nanos, Rng};
use anabranch_scenario::model::Request;

use super::{Application, Io, Latencies, NEVER};

/// Both ends.
pub(super) struct Client {
    model: Request,
    end: Nanos,
    rng: Rng,
    asked: u64,
    asked_at: Nanos,
    /// Size of the answer to the present request.
    response: u64,
    /// Bytes of all requests and of all answers so far, those under way included.
    totals: [u64; 2],
    latencies: Latencies,
}

impl Client {
    pub(super) fn new(model: Request, end: Nanos, rng: Rng, latencies: Latencies) -> Self {
        Self { model, end, rng, asked: 0, asked_at: 0, response: 0, totals: [0; 2], latencies }
    }

    fn ask(&mut self, io: &mut Io) {
        if io.now >= self.end || self.model.count.is_some_and(|count| self.asked >= count) {
            return;
        }
        let request = self.model.request.draw(&mut self.rng).max(1);
        self.response = self.model.response.draw(&mut self.rng).max(1);
        self.totals[0] += request;
        self.totals[1] += self.response;
        self.asked += 1;
        self.asked_at = io.now;
        io.write[0] += request;
        io.wants = [self.totals[1], self.totals[0]];
    }
}

impl Application for Client {
    fn opened(&mut self, side: usize, io: &mut Io) {
        if side == 0 {
            self.ask(io);
        }
    }

    fn delivered(&mut self, side: usize, _: u64, io: &mut Io) {
        io.wants[side] = NEVER;
        if side == 1 {
            io.write[1] += self.response;
            return;
        }
        self.latencies.record(io.now, io.now - self.asked_at);
        io.wake_at = Some(io.now.saturating_add(self.model.think.draw(&mut self.rng)));
    }

    fn woken(&mut self, io: &mut Io) {
        self.ask(io);
    }

    fn latencies(&self) -> Option<&Latencies> {
        Some(&self.latencies)
    }
}
