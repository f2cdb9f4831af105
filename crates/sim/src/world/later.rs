//! What leaves otherwise than at once when a scheduler has given it out: from the queues of the subflows, and copies.

use anabranch_policy::scheduler::eligible;

use super::{Phase, World};
use crate::{engine::heads::Key, tcp::sender::Next};

impl<K: Key> World<'_, K> {
    /// The scheduler has nothing to give out at the moment; says whether something has left since, so that it may have.
    #[cold]
    pub(super) fn attend(&mut self, connection: usize, side: usize) -> bool {
        let state = &self.connections[connection].sides[side];
        let (later, remedy) = (state.later.is_some(), state.remedy.is_some());
        if later && self.send_queued(connection, side) {
            return true;
        }
        if later {
            self.send_copies(connection, side);
        }
        if remedy {
            self.relieve(connection, side);
        }
        false
    }

    /// A segment waits for a subflow.
    #[cold]
    pub(super) fn queue(
        &mut self,
        connection: usize,
        side: usize,
        subflow: usize,
        (number, len): (u64, u16),
    ) {
        let side = &mut self.connections[connection].sides[side];
        side.send.sent(number, len, subflow as u32);
        let later = side.later.as_mut().expect("a scheduler that queues has queues");
        later.queue(subflow, number, len);
    }

    /// Sends what waits for the windows of the subflows; says whether anything has left.
    fn send_queued(&mut self, connection: usize, side: usize) -> bool {
        let mut sent = false;
        for (subflow, index) in self.connections[connection].endpoints(side).enumerate() {
            while self.can_send(index) {
                let state = &mut self.connections[connection].sides[side];
                let Some(later) = &mut state.later else { return sent };
                let Some((number, len)) = later.front(subflow, state.send.una) else { break };
                later.pop(subflow);
                let last = number + 1 == state.send.next && !state.send.has_more();
                self.send_new(index, number, len, last);
                sent = true;
            }
        }
        sent
    }

    /// Sends on every subflow what it has not carried, then new data on those that have carried everything.
    fn send_copies(&mut self, connection: usize, side: usize) {
        let (candidates, n) = self.candidates(connection, side, 0);
        for (subflow, _) in eligible(&candidates[..n]) {
            let index = self.connections[connection].first as usize + side + 2 * subflow;
            while self.can_send(index) {
                let state = &mut self.connections[connection].sides[side];
                let Some(cursor) = state.later.as_mut().and_then(|later| later.cursor(subflow)) else {
                    return;
                };
                let (number, len) = match state.send.not_carried(*cursor, subflow as u32) {
                    Some((number, len)) => {
                        state.send.copied(number, subflow as u32);
                        (number, len)
                    }
                    None => {
                        *cursor = state.send.next;
                        let Some(len) = state.send.next_len() else { break };
                        let number = state.send.next;
                        state.send.sent(number, len, subflow as u32);
                        (number, len)
                    }
                };
                *cursor = number + 1;
                let last = *cursor == state.send.next && !state.send.has_more();
                self.send_new(index, number, len, last);
            }
        }
    }

    /// Whether a new segment can leave on a subflow now.
    fn can_send(&mut self, index: usize) -> bool {
        let endpoint = &mut self.endpoints[index];
        let usable = endpoint.phase == Phase::Established && !endpoint.sender.is_stale();
        let pauses = endpoint.pacer.as_ref().is_some_and(|pacer| pacer.waits_until(self.now).is_some());
        usable && !pauses && endpoint.sender.next_to_send() == Next::New
    }
}
