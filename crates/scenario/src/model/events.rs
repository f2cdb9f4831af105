//! What happens to the subflows of a connection while it runs.

use super::Nanos;

/// An event of one subflow; of several at one time the order is that of the file, with what `start` makes at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Nanos,
    /// Index into `Scenario::connections`; that one is MPTCP.
    pub connection: usize,
    /// Index of the subflow in its connection.
    pub subflow: usize,
    /// What the node `from` does.
    pub action: Action,
}

/// What an end does with a subflow (RFC 8684).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Opens it, for the first time or again.
    Open,
    /// Closes it with a reset (section 3.6).
    Close,
    /// Loses its address, and says so on the other subflows (section 3.4.2).
    Remove,
    /// Makes it a backup (section 3.3.8).
    Backup,
    /// Makes it a regular one (section 3.3.8).
    Regular,
}
