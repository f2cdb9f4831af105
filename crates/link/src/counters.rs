//! What one direction of a cable counts.

/// What a direction has done since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets that the queue dropped.
    pub dropped_queue: u64,
    /// Packets that met a link that was down.
    pub dropped_down: u64,
    /// Packets lost at random.
    pub lost: u64,
    /// Packets that arrived.
    pub delivered: u64,
    /// Bytes that arrived.
    pub delivered_bytes: u64,
    /// Packets that the queue marked instead of dropping them.
    pub marked: u64,
}
