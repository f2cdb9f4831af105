//! What a path manager sees, and what it answers.

use super::Nanos;
use crate::{Reason, energy::Linear};

/// What has become of the subflow of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// There is none.
    #[default]
    Closed,
    /// Its handshake is under way.
    Opening,
    /// Data may flow.
    Established,
}

/// What there is to see of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Path {
    /// Number of the local interface; equal numbers are one interface.
    pub local: u32,
    /// Number of the peer's interface.
    pub remote: u32,
    /// The configuration calls it a backup.
    pub spare: bool,
    /// Bytes that it may carry in one period, if there is a limit.
    pub cap_bytes: Option<u64>,
    /// Whether the peer's address is known: the connection was opened to it, or it was announced.
    pub known: bool,
    /// Whether the local interface is there and has a link.
    pub link_up: bool,
    /// Of its subflow.
    pub state: State,
    /// When that state began.
    pub since: Nanos,
    /// Whether its subflow is a backup (RFC 8684 section 3.3.8), or would be opened as one.
    pub backup: bool,
    /// Retransmission timeouts in a row of the local end; 0 as soon as something is acknowledged.
    pub timeouts: u32,
    /// Smoothed round-trip time; 0 before the first sample.
    pub srtt_us: u32,
    /// Bytes on the wire, of both directions, since the connection was opened.
    pub carried_bytes: u64,
    /// Power of the radio that it goes by, if it goes by one.
    pub radio: Option<Linear>,
    /// Congestion window of the local end in segments.
    pub cwnd_segments: u32,
    /// Its slow-start threshold in segments;
    /// [`SSTHRESH_INFINITE`](crate::scheduler::SSTHRESH_INFINITE) before the first loss.
    pub ssthresh_segments: u32,
    /// Payload of a full segment.
    pub segment_bytes: u32,
    /// Data packets that the local end has sent since the connection was opened, retransmissions included.
    pub sent_packets: u64,
    /// Those among them that were retransmissions.
    pub retransmits: u64,
}

impl Path {
    /// Whether data sent on it is answered, as far as can be told.
    pub fn answers(&self) -> bool {
        self.state == State::Established && self.link_up && self.timeouts == 0
    }

    /// Whether it is of no use now: no subflow, no link, or so many timeouts in a row.
    pub fn fails(&self, dead_after: u32) -> bool {
        self.state != State::Established || !self.link_up || self.timeouts >= dead_after
    }
}

/// What there is to see of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The present.
    pub now: Nanos,
    /// Whether further subflows may be opened (RFC 8684 section 3.1: after the first data acknowledgement).
    pub may_join: bool,
    /// Bytes of data that have reached the applications of both ends, each once.
    pub delivered_bytes: u64,
    /// Bytes that the local application has written and no subflow has been given; `u64::MAX`: without end.
    pub unsent_bytes: u64,
    /// For jitter: drawn by the host for this observation, even in `[0, 1000]`.
    pub draw_permille: u32,
    /// The paths.
    pub paths: &'a [Path],
}

/// What to do with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Open a subflow.
    Open,
    /// Close its subflow with a reset (RFC 8684 section 3.6).
    Close,
    /// Make it a backup: its subflow stays open and carries data only when no regular one can (section 3.3.8).
    Backup,
    /// Make it a regular one.
    Regular,
    /// Nothing; the reason is worth telling.
    Keep,
}

impl Action {
    /// One word, as it stands in logs.
    pub fn name(self) -> &'static str {
        match self {
            Action::Open => "open",
            Action::Close => "close",
            Action::Backup => "backup",
            Action::Regular => "regular",
            Action::Keep => "keep",
        }
    }
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Index of the path.
    pub path: usize,
    /// What to do.
    pub action: Action,
    /// Why.
    pub reason: Reason,
}

impl Decision {
    pub(super) fn new(
        path: usize,
        action: Action,
        code: &'static str,
        numbers: &[(&'static str, u64)],
    ) -> Self {
        Self { path, action, reason: Reason::new(code, numbers) }
    }
}
