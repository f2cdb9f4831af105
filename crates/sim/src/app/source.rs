//! Writes of a fixed size at a rate, always or in bursts: `cbr` and `onoff`.
//!
//! What the transport cannot take at once waits in the application's end of the connection, without bound. Left out:
//! a source that adapts its rate to the connection, as a video player does.

use anabranch_draw::{Departures, Nanos, Rng};
use anabranch_scenario::model::{Direction, Source};

use super::{Application, Io, NEVER};

/// A source; it begins when its end may write.
pub(super) struct Writer {
    model: Source,
    side: usize,
    end: Nanos,
    rng: Rng,
    departures: Option<Departures>,
}

impl Writer {
    pub(super) fn new(model: Source, end: Nanos, rng: Rng) -> Self {
        let side = usize::from(model.direction == Direction::Download);
        Self { model, side, end, rng, departures: None }
    }
}

impl Application for Writer {
    fn opened(&mut self, side: usize, io: &mut Io) {
        if side != self.side {
            return;
        }
        let interval = [(io.now, self.end)];
        let rng = || self.rng.clone();
        let departures = Departures::new(interval, self.model.gap(), self.model.pattern, rng);
        io.wake_at = Some(departures.due()).filter(|&due| due != NEVER);
        self.departures = Some(departures);
    }

    fn delivered(&mut self, _: usize, _: u64, _: &mut Io) {}

    fn woken(&mut self, io: &mut Io) {
        let Some(departures) = &mut self.departures else { return };
        io.write[self.side] += u64::from(self.model.write_bytes);
        departures.advance();
        io.wake_at = Some(departures.due()).filter(|&due| due != NEVER);
    }
}
