//! The data-level send queue: what the application has to send, cut into segments, with the subflows that
//! have carried each.

use std::collections::VecDeque;

/// Segments for which memory stays when none is outstanding.
const KEPT: usize = 16;

/// A data-level segment that has been sent and is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct DataSegment {
    len: u16,
    queued_again: bool,
    /// One bit per subflow that has carried it.
    carried_by: u32,
}

/// What is to be sent next at the data level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) number: u64,
    pub(crate) len: u16,
    pub(crate) carried_by: u32,
    pub(crate) reinjection: bool,
}

/// State of the sending side of a connection.
pub(crate) struct MetaSender {
    /// Oldest unacknowledged data-level segment.
    pub(crate) una: u64,
    /// Next data-level segment to be cut.
    pub(crate) next: u64,
    outstanding: VecDeque<DataSegment>,
    reinject: VecDeque<u64>,
    /// First byte not cut yet.
    next_byte: u64,
    /// First byte not acknowledged.
    una_byte: u64,
    /// Bytes the application has written so far; `None`: always more.
    written: Option<u64>,
    segment_bytes: u16,
    send_buffer: u64,
    /// First byte that the receiver has not yet allowed.
    window_edge: u64,
    /// Whether the segments have to be remembered (MPTCP) or the subflow's are enough (TCP).
    remembers: bool,
    /// Reinjected segments so far.
    pub(crate) reinjections: u64,
    /// Copies that a redundant scheduler has sent so far, the first of each segment not among them.
    pub(crate) copies: u64,
}

impl MetaSender {
    pub(crate) fn new(segment_bytes: u16, send_buffer: Option<u64>, remembers: bool) -> Self {
        Self {
            una: 0,
            next: 0,
            outstanding: VecDeque::new(),
            reinject: VecDeque::new(),
            next_byte: 0,
            una_byte: 0,
            written: Some(0),
            segment_bytes,
            send_buffer: send_buffer.unwrap_or(u64::MAX),
            window_edge: 0,
            remembers,
            reinjections: 0,
            copies: 0,
        }
    }

    /// The application has this much to send in all; `None`: without end.
    pub(crate) fn write(&mut self, bytes: Option<u64>) {
        self.written = bytes;
    }

    /// The application has so many bytes more to send.
    pub(crate) fn write_more(&mut self, bytes: u64) {
        self.written = self.written.map(|written| written + bytes);
    }

    /// Bytes that the application has written and that have not been cut.
    pub(crate) fn unsent_bytes(&self) -> u64 {
        self.written.map_or(u64::MAX, |written| written - self.next_byte)
    }

    /// The application stops: what is cut is still delivered.
    pub(crate) fn stop(&mut self) {
        self.written = Some(self.next_byte.min(self.written.unwrap_or(u64::MAX)));
    }

    /// The length of the next new segment, if the application, the send buffer and the receiver's window let
    /// one out.
    #[inline]
    pub(crate) fn next_len(&self) -> Option<u16> {
        let left = self.written.map_or(u64::MAX, |written| written - self.next_byte);
        let len = left.min(u64::from(self.segment_bytes));
        let end = self.next_byte + len;
        let fits = len > 0 && end <= self.window_edge && end - self.una_byte <= self.send_buffer;
        fits.then_some(len as u16)
    }

    /// Whether the application has written more than has been cut.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.written.is_none_or(|written| self.next_byte < written)
    }

    /// Whether there is anything to send: new data or reinjections.
    pub(crate) fn has_any(&self) -> bool {
        self.has_more() || !self.reinject.is_empty()
    }

    /// What is to be sent next: reinjections before new data.
    #[inline]
    pub(crate) fn candidate(&mut self) -> Option<Candidate> {
        while let Some(&number) = self.reinject.front() {
            if let Some(segment) = self.get(number) {
                let (len, carried_by) = (segment.len, segment.carried_by);
                return Some(Candidate { number, len, carried_by, reinjection: true });
            }
            self.reinject.pop_front();
        }
        let Some(len) = self.next_len() else {
            self.give_back();
            return None;
        };
        Some(Candidate { number: self.next, len, carried_by: 0, reinjection: false })
    }

    /// Nothing is to be sent: if nothing is under way either, the memory of a burst is given back.
    #[cold]
    #[inline(never)]
    fn give_back(&mut self) {
        if self.outstanding.is_empty() && self.outstanding.capacity() > KEPT {
            self.outstanding = VecDeque::new();
            self.reinject = VecDeque::new();
        }
    }

    /// The send buffer holds so many bytes from now on; it never shrinks below what it holds. Whether it has grown.
    pub(crate) fn resize_buffer(&mut self, bytes: u64) -> bool {
        bytes > std::mem::replace(&mut self.send_buffer, bytes)
    }

    /// Whether nothing but the receiver's window keeps the next new segment back.
    pub(crate) fn is_held_back(&self) -> bool {
        let left = self.unsent_bytes();
        left > 0 && self.next_byte + left.min(u64::from(self.segment_bytes)) > self.window_edge
    }

    /// The oldest segment that the receiver has not acknowledged.
    pub(crate) fn oldest(&self) -> Option<Candidate> {
        let segment = self.outstanding.front()?;
        let (len, carried_by) = (segment.len, segment.carried_by);
        Some(Candidate { number: self.una, len, carried_by, reinjection: true })
    }

    /// A segment that no queue asked for has been given to one more subflow.
    pub(crate) fn sent_again(&mut self, number: u64, subflow: u32) {
        self.reinjections += 1;
        if let Some(segment) = self.get_mut(number) {
            segment.carried_by |= 1 << subflow;
        }
    }

    /// The first segment from this number on that a subflow has not carried, with its length.
    pub(crate) fn not_carried(&self, from: u64, subflow: u32) -> Option<(u64, u16)> {
        let numbers = from.max(self.una)..self.next;
        let with_segment = numbers.filter_map(|number| self.get(number).map(|segment| (number, segment)));
        let mut open = with_segment.filter(|(_, segment)| segment.carried_by & 1 << subflow == 0);
        open.next().map(|(number, segment)| (number, segment.len))
    }

    /// A copy of a segment has been given to one more subflow.
    pub(crate) fn copied(&mut self, number: u64, subflow: u32) {
        self.copies += 1;
        if let Some(segment) = self.get_mut(number) {
            segment.carried_by |= 1 << subflow;
        }
    }

    /// The next reinjection is not needed: every subflow that could carry it has done so and will deliver it, or
    /// time out and queue it again.
    pub(crate) fn give_up_reinjection(&mut self) {
        if let Some(number) = self.reinject.pop_front()
            && let Some(segment) = self.get_mut(number)
        {
            segment.queued_again = false;
        }
    }

    /// A candidate has been given to a subflow.
    #[inline]
    pub(crate) fn sent(&mut self, number: u64, len: u16, subflow: u32) {
        if number < self.next {
            self.reinject.pop_front();
            self.reinjections += 1;
            if let Some(segment) = self.get_mut(number) {
                segment.carried_by |= 1 << subflow;
                segment.queued_again = false;
            }
            return;
        }
        if self.remembers {
            self.outstanding.push_back(DataSegment { len, queued_again: false, carried_by: 1 << subflow });
        }
        self.next += 1;
        self.next_byte += u64::from(len);
    }

    /// Queues a segment again, for another subflow; nothing happens if it has been acknowledged.
    pub(crate) fn reinject(&mut self, number: u64) {
        if let Some(segment) = self.get_mut(number)
            && !segment.queued_again
        {
            segment.queued_again = true;
            self.reinject.push_back(number);
        }
    }

    /// Queues everything that is not acknowledged again, for any subflow, whichever have carried it.
    pub(crate) fn reinject_all(&mut self) {
        for segment in &mut self.outstanding {
            segment.queued_again = true;
            segment.carried_by = 0;
        }
        self.reinject = (self.una..self.next).collect();
    }

    /// Queues the oldest segments again, so many bytes at most.
    pub(crate) fn reinject_oldest(&mut self, bytes: u64) {
        let ends = self.outstanding.iter().scan(0, |end, segment| {
            *end += u64::from(segment.len);
            Some(*end)
        });
        let count = ends.take_while(|&end| end <= bytes).count() as u64;
        for number in self.una..self.una + count {
            self.reinject(number);
        }
    }

    /// First byte that the receiver has not allowed.
    #[cfg(test)]
    pub(crate) fn window_edge(&self) -> u64 {
        self.window_edge
    }

    /// A subflow has gone that had this segment under way: it is for another one, or for its successor.
    pub(crate) fn take_back(&mut self, number: u64, subflow: u32) {
        if let Some(segment) = self.get_mut(number) {
            segment.carried_by &= !(1 << subflow);
        }
        self.reinject(number);
    }

    /// The connection falls back to TCP before anything has been sent: its one subflow remembers what it carries.
    pub(crate) fn fall_back(&mut self) {
        assert_eq!(self.next, 0, "data has been sent");
        self.remembers = false;
    }

    /// Bytes cut so far.
    #[cfg(test)]
    pub(crate) fn cut_bytes(&self) -> u64 {
        self.next_byte
    }

    /// Bytes that the application has written so far; `None`: always more.
    #[cfg(test)]
    pub(crate) fn written_bytes(&self) -> Option<u64> {
        self.written
    }

    /// Bytes cut and not acknowledged at the data level.
    pub(crate) fn unacknowledged_bytes(&self) -> u64 {
        self.next_byte - self.una_byte
    }

    /// What the receiver allows beyond what it has acknowledged; `u64::MAX`: everything.
    pub(crate) fn window_bytes(&self) -> u64 {
        if self.window_edge == u64::MAX { u64::MAX } else { self.window_edge - self.una_byte }
    }

    fn get(&self, number: u64) -> Option<&DataSegment> {
        self.outstanding.get(usize::try_from(number.checked_sub(self.una)?).ok()?)
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut DataSegment> {
        self.outstanding.get_mut(usize::try_from(number.checked_sub(self.una)?).ok()?)
    }

    /// A data acknowledgement with the window beyond it (`None`: unlimited). MPTCP only.
    pub(crate) fn acknowledged(&mut self, number: u64, window: Option<u32>) {
        while self.una < number {
            let segment = self.outstanding.pop_front().expect("only what was sent is acknowledged");
            self.una_byte += u64::from(segment.len);
            self.una += 1;
        }
        if number == self.una {
            self.open_window(window);
        }
    }

    /// The only subflow has acknowledged this many segments and bytes. TCP only.
    #[inline]
    pub(crate) fn acknowledged_bytes(&mut self, segments: u64, bytes: u64, window: Option<u32>) {
        self.una += segments;
        self.una_byte += bytes;
        self.open_window(window);
    }

    /// The receiver allows this much beyond what it has acknowledged; a window never shrinks.
    #[inline]
    pub(crate) fn open_window(&mut self, window: Option<u32>) {
        let edge = window.map_or(u64::MAX, |window| self.una_byte + u64::from(window));
        self.window_edge = self.window_edge.max(edge);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(send_buffer: Option<u64>) -> MetaSender {
        let mut sender = MetaSender::new(1000, send_buffer, true);
        sender.open_window(None);
        sender
    }

    fn send(sender: &mut MetaSender, subflow: u32) -> Option<u64> {
        let candidate = sender.candidate()?;
        sender.sent(candidate.number, candidate.len, subflow);
        Some(candidate.number)
    }

    #[test]
    fn the_last_segment_of_a_file_is_what_is_left() {
        let mut sender = sender(None);
        sender.write(Some(2500));
        let lens: Vec<u16> = std::iter::from_fn(|| {
            let candidate = sender.candidate()?;
            sender.sent(candidate.number, candidate.len, 0);
            Some(candidate.len)
        })
        .collect();
        assert_eq!(lens, [1000, 1000, 500]);
        sender.acknowledged(3, None);
        assert_eq!((sender.una_byte, sender.unacknowledged_bytes()), (2500, 0));
    }

    #[test]
    fn the_send_buffer_bounds_what_is_unacknowledged() {
        let mut sender = sender(Some(2500));
        sender.write(None);
        assert_eq!(send(&mut sender, 0), Some(0));
        assert_eq!(send(&mut sender, 0), Some(1));
        assert_eq!(send(&mut sender, 0), None);
        sender.acknowledged(1, None);
        assert_eq!(send(&mut sender, 0), Some(2));
    }

    #[test]
    fn the_window_is_relative_to_the_data_acknowledgement() {
        let mut sender = MetaSender::new(1000, None, true);
        sender.write(None);
        assert_eq!(sender.candidate(), None, "no window has been offered");
        sender.open_window(Some(2000));
        assert_eq!(
            (send(&mut sender, 0), send(&mut sender, 0), send(&mut sender, 0)),
            (Some(0), Some(1), None)
        );
        sender.acknowledged(1, Some(2000));
        assert_eq!(send(&mut sender, 0), Some(2));
    }

    #[test]
    fn a_reinjection_goes_before_new_data_and_knows_its_carriers() {
        let mut sender = sender(None);
        sender.write(None);
        send(&mut sender, 0);
        send(&mut sender, 1);
        sender.reinject(0);
        sender.reinject(0);
        let candidate = sender.candidate().expect("a reinjection");
        assert_eq!((candidate.number, candidate.carried_by, candidate.reinjection), (0, 1, true));
        sender.sent(0, candidate.len, 1);
        assert_eq!(send(&mut sender, 0), Some(2));
        assert_eq!(sender.reinjections, 1);
    }

    #[test]
    fn a_reinjection_that_is_given_up_can_be_queued_again() {
        let mut sender = sender(None);
        sender.write(None);
        send(&mut sender, 0);
        sender.reinject(0);
        sender.give_up_reinjection();
        assert_eq!(send(&mut sender, 1), Some(1));
        sender.reinject(0);
        assert_eq!(send(&mut sender, 1), Some(0));
        assert_eq!(sender.reinjections, 1);
    }

    #[test]
    fn the_memory_of_a_burst_is_given_back_when_all_of_it_is_acknowledged() {
        let mut sender = sender(None);
        sender.write(Some(100_000));
        while send(&mut sender, 0).is_some() {}
        assert!(sender.outstanding.capacity() >= 100);
        sender.acknowledged(99, None);
        assert_eq!((sender.candidate(), sender.outstanding.len()), (None, 1), "one is under way");
        sender.acknowledged(100, None);
        assert_eq!((sender.candidate(), sender.outstanding.capacity()), (None, 0));
    }

    #[test]
    fn all_that_is_not_acknowledged_goes_again_in_order_even_to_its_carrier() {
        let mut sender = sender(None);
        sender.write(None);
        for subflow in [0, 1, 1, 0] {
            send(&mut sender, subflow);
        }
        sender.acknowledged(1, None);
        sender.reinject(3);
        sender.reinject_all();
        assert_eq!(
            sender.candidate().map(|candidate| (candidate.number, candidate.carried_by)),
            Some((1, 0))
        );
        let again: Vec<_> = (0..4).map(|_| send(&mut sender, 1)).collect();
        assert_eq!(again, [Some(1), Some(2), Some(3), Some(4)], "the last one is new");
    }

    #[test]
    fn of_the_oldest_data_whole_segments_go_again_that_fit() {
        let mut sender = sender(None);
        sender.write(None);
        (0..4).for_each(|_| assert!(send(&mut sender, 0).is_some()));
        sender.reinject_oldest(2999);
        let again: Vec<_> = (0..3).map(|_| send(&mut sender, 1)).collect();
        assert_eq!(again, [Some(0), Some(1), Some(4)]);
    }

    #[test]
    fn what_is_acknowledged_is_not_reinjected() {
        let mut sender = sender(None);
        sender.write(None);
        send(&mut sender, 0);
        sender.reinject(0);
        sender.acknowledged(1, None);
        assert_eq!(send(&mut sender, 1), Some(1));
        sender.reinject(0);
        assert_eq!(send(&mut sender, 1), Some(2));
    }
}
