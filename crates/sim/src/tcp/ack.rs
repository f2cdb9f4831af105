//! What an acknowledgement says, what it changes, and what recovery makes of it.

/// An acknowledgement as it arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack<'a> {
    /// Everything below has arrived.
    pub(crate) number: u64,
    /// So has this, newest first (RFC 2018).
    pub(crate) sacks: &'a [(u64, u64)],
    /// Whether it carries no payload: only then can it be a duplicate (RFC 5681 section 2).
    pub(crate) pure: bool,
    /// The timestamp that it echoes (RFC 7323 TSecr).
    pub(crate) echo_us: u32,
    pub(crate) now_us: u32,
}

impl Ack<'_> {
    /// The segments that have arrived once more, if the first block says so (RFC 2883 section 4).
    pub(crate) fn duplicated(&self) -> Option<(u64, u64)> {
        let &(from, to) = self.sacks.first()?;
        let within = self.sacks.get(1).is_some_and(|&(start, end)| start <= from && to <= end);
        (to <= self.number || within).then_some((from, to))
    }
}

/// What recovery makes of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing changes.
    Continue,
    /// Loss has been detected: ask for ssthresh and enter recovery.
    Enter,
    /// Loss has been detected: ask for ssthresh, and begin anew as after a timeout (Tahoe).
    StartOver,
    /// Recovery is over: the window becomes ssthresh.
    Leave,
    /// The recovery has proved spurious: ask for the window to return to.
    Undo,
    /// A loss probe has repaired a loss: the window becomes the ssthresh that is to be asked for, and nothing
    /// is left to recover (RFC 8985 section 7.4.2).
    Repaired,
}

/// Delivery rate over the flight of the newest segment that an acknowledgement covers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateSample {
    pub(crate) prior_delivered: u32,
    pub(crate) delivered: u32,
    pub(crate) snd_us: u32,
    pub(crate) rcv_us: u32,
    pub(crate) app_limited: bool,
    pub(super) taken: bool,
}

impl RateSample {
    /// Over which the packets were delivered; 0: there is no sample.
    #[inline]
    pub(crate) fn interval_us(&self) -> u32 {
        self.snd_us.max(self.rcv_us)
    }
}

/// What an acknowledgement has changed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Absorbed {
    /// Segments acknowledged cumulatively.
    pub(crate) acked: u32,
    /// Those of them that no earlier acknowledgement has reported or implied as delivered: what may raise the
    /// window.
    pub(crate) fresh: u32,
    pub(crate) sacked: u32,
    pub(crate) newly_lost: u32,
    pub(crate) acked_bytes: u64,
    pub(crate) prior_in_flight: u32,
    pub(crate) duplicate: bool,
    pub(crate) round_start: bool,
    pub(crate) rate: RateSample,
    /// The timestamps option (RFC 7323), in microseconds modulo 2^32; means nothing unless `stamped`.
    pub(crate) tsval_us: u32,
    pub(crate) tsecr_us: u32,
    pub(crate) stamped: bool,
    /// Not an acknowledgement at all, but the end of a silence of so long.
    pub(crate) idle_us: u32,
    /// For those that toss coins: a random number.
    pub(crate) random: u32,
}
