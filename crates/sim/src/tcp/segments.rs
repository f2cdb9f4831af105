//! The segments a sender has cut and not yet seen acknowledged, in a ring by number. The ring follows the
//! window both ways: going round one that an early burst made large would touch cold memory for ever.

/// What a sender remembers of a segment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Segment {
    /// Number of the data-level segment that it carries, modulo 2^32.
    pub(crate) data_seq: u32,
    /// When it was last sent, in microseconds (wrapping).
    pub(crate) sent_us: u32,
    /// Delivery-rate estimation: packets delivered when it was last sent.
    pub(crate) delivered: u32,
    /// Delivery-rate estimation: when the newest of those was delivered.
    pub(crate) delivered_us: u32,
    /// Delivery-rate estimation: when the first packet of its flight was sent.
    pub(crate) first_sent_us: u32,
    /// Payload.
    pub(crate) len: u16,
    /// [`SACKED`], [`LOST`], [`RETRANSMITTED`], [`APP_LIMITED`], [`AGAIN`].
    pub(crate) flags: u8,
}

/// Selectively acknowledged.
pub(crate) const SACKED: u8 = 1 << 0;
/// Taken for lost.
pub(crate) const LOST: u8 = 1 << 1;
/// Sent again, and a copy may still be under way.
pub(crate) const RETRANSMITTED: u8 = 1 << 2;
/// Sent while the application kept the sender waiting.
pub(crate) const APP_LIMITED: u8 = 1 << 3;
/// Sent more than once.
pub(crate) const AGAIN: u8 = 1 << 4;

/// Slots of the smallest ring.
const SMALLEST: usize = 8;
/// A ring of more than this many times the segments that it holds is too large; it is then halved.
const SPARSE: u64 = 8;

/// The ring. Numbers from the oldest unacknowledged one to the newest are valid.
#[derive(Default)]
pub(crate) struct Segments {
    ring: Vec<Segment>,
}

impl Segments {
    /// Stores the segment `number`; `oldest` is the oldest one still needed.
    #[inline]
    pub(crate) fn push(&mut self, oldest: u64, number: u64, segment: Segment) {
        if number - oldest >= self.ring.len() as u64 {
            self.grow(oldest, number);
        }
        *self.get_mut(number) = segment;
    }

    #[cold]
    fn grow(&mut self, oldest: u64, number: u64) {
        self.resize(oldest, number, (2 * self.ring.len()).max(SMALLEST));
    }

    /// The segments from `oldest` to before `next` are all that is needed: gives memory back if that is little.
    #[inline]
    pub(crate) fn settle(&mut self, oldest: u64, next: u64) {
        if self.ring.len() > SMALLEST && (next - oldest) * SPARSE < self.ring.len() as u64 {
            self.resize(oldest, next, self.ring.len() / 2);
        }
    }

    #[cold]
    fn resize(&mut self, oldest: u64, next: u64, len: usize) {
        let mut resized = vec![Segment::default(); len.max(SMALLEST)];
        let mask = resized.len() as u64 - 1;
        for kept in oldest..next {
            resized[(kept & mask) as usize] = *self.get_mut(kept);
        }
        self.ring = resized;
    }

    /// The segment `number`.
    #[inline]
    pub(crate) fn get_mut(&mut self, number: u64) -> &mut Segment {
        let mask = self.ring.len() - 1;
        &mut self.ring[number as usize & mask]
    }

    /// A copy of the segment `number`.
    #[inline]
    pub(crate) fn get(&self, number: u64) -> Segment {
        self.ring[number as usize & (self.ring.len() - 1)]
    }
}
