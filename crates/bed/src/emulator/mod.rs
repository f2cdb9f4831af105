//! The links of a scenario in real time. Being built.

/// Sees every packet, for captures.
pub trait Tap: Send {
    /// A packet has entered (`leaves == false`) or left (`true`) the emulated network on a route, at a time of
    /// `CLOCK_REALTIME` in nanoseconds.
    fn packet(&mut self, route: usize, leaves: bool, at_ns: u64, bytes: &[u8]);
}
