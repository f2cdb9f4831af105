//! What leaves otherwise than at once when a scheduler has given it out: from the queues of the subflows, and copies.

use anabranch_policy::scheduler::eligible;

use super::{Side, World, output::candidate};
use crate::{engine::heads::Key, mptcp::later::Later};

impl<K: Key> World<'_, K> {
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
        let later = side.mechanics.as_mut().and_then(|mechanics| mechanics.later.as_mut());
        later.expect("a scheduler that queues has queues").queue(subflow, number, len);
    }

    /// Sends what waits for the windows of the subflows; says whether anything has left, so that the scheduler may give out more.
    pub(super) fn send_queued(&mut self, connection: usize, side: usize) -> bool {
        let mut sent = false;
        for (subflow, index) in self.connections[connection].endpoints(side).enumerate() {
            while self.can_send(index) {
                let state = &mut self.connections[connection].sides[side];
                let una = state.send.una;
                let Some(later) = state.later() else { return sent };
                let Some((number, len)) = later.front(subflow, una) else { break };
                later.pop(subflow);
                let last = number + 1 == state.send.next && !state.send.has_more();
                self.send_new(index, number, len, last);
                if number == una {
                    self.watch_data(connection, side);
                }
                sent = true;
            }
        }
        sent
    }

    /// Sends on every subflow what it has not carried, then new data on those that have carried everything.
    pub(super) fn send_copies(&mut self, connection: usize, side: usize) {
        if !matches!(self.connections[connection].sides[side].later(), Some(Later::Copies(_))) {
            return;
        }
        self.survey(connection, side);
        let subflows: Vec<usize> = eligible(&self.candidates).map(|(subflow, _)| subflow).collect();
        for subflow in subflows {
            let index = self.connections[connection].first as usize + side + 2 * subflow;
            while self.can_send(index) {
                let Some((number, len)) = self.next_copy(connection, side, subflow) else { break };
                let send = &self.connections[connection].sides[side].send;
                let last = number + 1 == send.next && !send.has_more();
                let first = number == send.una;
                self.send_new(index, number, len, last);
                if first {
                    self.watch_data(connection, side);
                }
            }
        }
    }

    /// What a subflow sends next, of what is not acknowledged or else of what is new; it counts as sent.
    fn next_copy(&mut self, connection: usize, side: usize, subflow: usize) -> Option<(u64, u16)> {
        let Side { send, mechanics, .. } = &mut self.connections[connection].sides[side];
        let cursor = mechanics.as_mut()?.later.as_mut()?.cursor(subflow)?;
        let (number, len) = match send.not_carried(*cursor, subflow as u32) {
            Some((number, len)) => {
                send.copied(number, subflow as u32);
                (number, len)
            }
            None => {
                *cursor = send.next;
                let (number, len) = (send.next, send.next_len()?);
                send.sent(number, len, subflow as u32);
                (number, len)
            }
        };
        *cursor = number + 1;
        Some((number, len))
    }

    /// Whether a new segment can leave on a subflow now.
    fn can_send(&mut self, index: usize) -> bool {
        candidate(&mut self.endpoints[index], self.now).has_room
    }
}
