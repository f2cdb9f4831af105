//! One station of a medium: its queue, its backoff, its retries.

use std::collections::VecDeque;

use super::{MediumConfig, fallback::Ladder};
use crate::{Drop, Frame, NEVER, Nanos, Rng, wire::Limit};

pub(super) struct Station<P> {
    pub(super) queue: VecDeque<P>,
    queued_bytes: u64,
    /// When the frame at the head got there.
    head_since: Nanos,
    /// Since when the medium has been idle for this station; ahead while it waits for an answer, or lets pass one
    /// that it may not hear.
    pub(super) idle_from: Nanos,
    /// Slots of backoff left, counted from the end of DIFS after `idle_from`.
    backoff: u32,
    /// No frame was left when the backoff ended.
    is_rested: bool,
    window: u32,
    /// Transmissions of the frame at the head.
    pub(super) transmissions: u32,
    /// Failures of the frame at the head that count against the retry limit.
    failures: u32,
    /// Failures of the frame at the head after an answered RTS.
    long_failures: u32,
    /// The frame at the head has arrived, only its acknowledgement has not.
    pub(super) has_arrived: bool,
    pub(super) ladder: Ladder,
}

impl<P: Frame> Station<P> {
    pub(super) fn new(cw_min: u32, ladder: Ladder) -> Self {
        Self {
            queue: VecDeque::new(),
            queued_bytes: 0,
            head_since: 0,
            idle_from: 0,
            backoff: 0,
            is_rested: true,
            window: cw_min,
            transmissions: 0,
            failures: 0,
            long_failures: 0,
            has_arrived: false,
            ladder,
        }
    }

    /// Takes a packet into the queue. `finds_busy`: the medium is not free, and such a frame begins with a backoff.
    pub(super) fn offer(
        &mut self,
        now: Nanos,
        packet: P,
        config: &MediumConfig,
        finds_busy: bool,
        rng: &mut Rng,
    ) -> Result<(), Drop> {
        let bytes = u64::from(packet.bytes());
        let full = match config.limit {
            Limit::Unlimited => false,
            Limit::Packets(limit) => self.queue.len() >= limit as usize,
            Limit::Bytes(limit) => self.queued_bytes + bytes > limit,
        };
        if full {
            return Err(Drop::Queue);
        }
        if self.queue.is_empty() {
            self.head_since = now;
            if finds_busy && self.is_rested {
                self.draw_backoff(rng);
            }
        }
        self.queue.push_back(packet);
        self.queued_bytes += bytes;
        Ok(())
    }

    /// When it would begin to send if nobody did before: after DIFS and its backoff, or at once if the medium has
    /// been idle for longer than that when its packet comes.
    pub(super) fn ready_at(&self, config: &MediumConfig) -> Nanos {
        if self.queue.is_empty() {
            return NEVER;
        }
        self.backoff_ends_at(config).max(self.head_since)
    }

    fn backoff_ends_at(&self, config: &MediumConfig) -> Nanos {
        self.idle_from + config.difs() + u64::from(self.backoff) * config.slot
    }

    /// Another station begins to send at `now`: the backoff freezes.
    pub(super) fn freeze(&mut self, now: Nanos, config: &MediumConfig) {
        self.is_rested |= self.queue.is_empty() && self.backoff_ends_at(config) <= now;
        let slots = now.saturating_sub(self.idle_from + config.difs()) / config.slot;
        self.backoff = self.backoff.saturating_sub(u32::try_from(slots).unwrap_or(u32::MAX));
    }

    /// The RTS of the frame at the head was answered.
    pub(super) fn reserve(&mut self) {
        self.failures = 0;
    }

    /// A transmission was not acknowledged: backs off further and gives `None`, or gives up the frame.
    pub(super) fn fail(
        &mut self,
        now: Nanos,
        config: &MediumConfig,
        was_reserved: bool,
        rng: &mut Rng,
    ) -> Option<P> {
        let (failures, limit) = if was_reserved {
            (&mut self.long_failures, config.long_retry_limit)
        } else {
            (&mut self.failures, config.retry_limit)
        };
        *failures += 1;
        if *failures >= limit {
            return Some(self.finish(now, config, rng));
        }
        self.window = (2 * self.window + 1).min(config.cw_max);
        self.draw_backoff(rng);
        None
    }

    /// Takes the frame at the head; the station backs off before its next one.
    pub(super) fn finish(&mut self, now: Nanos, config: &MediumConfig, rng: &mut Rng) -> P {
        let packet = self.queue.pop_front().expect("the sender had a frame");
        self.queued_bytes -= u64::from(packet.bytes());
        self.head_since = now;
        self.forget_head(config);
        self.draw_backoff(rng);
        packet
    }

    fn forget_head(&mut self, config: &MediumConfig) {
        (self.transmissions, self.failures, self.long_failures) = (0, 0, 0);
        self.has_arrived = false;
        self.window = config.cw_min;
    }

    fn draw_backoff(&mut self, rng: &mut Rng) {
        self.backoff = rng.below(u64::from(self.window) + 1) as u32;
        self.is_rested = false;
    }

    /// Gives up everything; packets that have not arrived go to `dropped`.
    pub(super) fn clear(&mut self, now: Nanos, config: &MediumConfig, mut dropped: impl FnMut(P)) {
        if self.has_arrived {
            self.queue.pop_front();
        }
        self.queue.drain(..).for_each(&mut dropped);
        self.queued_bytes = 0;
        self.forget_head(config);
        self.idle_from = now;
    }
}
