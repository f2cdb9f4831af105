//! What a scheduler has given out that leaves later: from queues of the subflows, or as copies that every subflow sends at its
//! own pace. What they do is in `world/later.rs`.

use std::collections::VecDeque;

use anabranch_policy::scheduler::Sends;

use super::meta_sender::MetaSender;

/// State of one sending side, by subflow.
#[derive(Debug)]
pub(crate) enum Later {
    /// Numbers and lengths of the segments that wait.
    Queues(Vec<VecDeque<(u64, u16)>>),
    /// Below this number, the subflow has carried all that is not acknowledged.
    Copies(Vec<u64>),
}

impl Later {
    /// For a scheduler that sends so; `None`: at once.
    pub(crate) fn new(sends: Sends, subflows: usize) -> Option<Box<Self>> {
        match sends {
            Sends::OneByOne => None,
            Sends::Queued => Some(Box::new(Self::Queues(vec![VecDeque::new(); subflows]))),
            Sends::Copies => Some(Box::new(Self::Copies(vec![0; subflows]))),
        }
    }

    /// Segments that wait for a subflow's window.
    pub(crate) fn queued(&self, subflow: usize) -> u32 {
        match self {
            Self::Queues(queues) => queues[subflow].len() as u32,
            Self::Copies(_) => 0,
        }
    }

    /// A segment is for this subflow.
    pub(crate) fn queue(&mut self, subflow: usize, number: u64, len: u16) {
        match self {
            Self::Queues(queues) => queues[subflow].push_back((number, len)),
            Self::Copies(_) => unreachable!("a scheduler of copies queues nothing"),
        }
    }

    /// The next segment that leaves on a subflow from its queue; those acknowledged meanwhile need not.
    pub(crate) fn front(&mut self, subflow: usize, acknowledged: u64) -> Option<(u64, u16)> {
        let Self::Queues(queues) = self else { return None };
        let queue = &mut queues[subflow];
        while queue.front().is_some_and(|(number, _)| *number < acknowledged) {
            queue.pop_front();
        }
        queue.front().copied()
    }

    /// The front of its queue has left.
    pub(crate) fn pop(&mut self, subflow: usize) {
        if let Self::Queues(queues) = self {
            queues[subflow].pop_front();
        }
    }

    /// The subflow fails or ends: what waits for it is for the others, and its copies begin anew.
    pub(crate) fn take_back(&mut self, subflow: u32, send: &mut MetaSender) {
        match self {
            Self::Queues(queues) => {
                for (number, _) in queues[subflow as usize].drain(..) {
                    send.take_back(number, subflow);
                }
            }
            Self::Copies(cursors) => cursors[subflow as usize] = 0,
        }
    }

    /// Where a subflow's copies go on.
    pub(crate) fn cursor(&mut self, subflow: usize) -> Option<&mut u64> {
        match self {
            Self::Queues(_) => None,
            Self::Copies(cursors) => Some(&mut cursors[subflow]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender() -> MetaSender {
        let mut send = MetaSender::new(1000, None, true);
        send.open_window(None);
        send.write(None);
        send
    }

    #[test]
    fn what_waits_for_a_subflow_that_fails_is_reinjected_in_order_and_may_return_to_it() {
        let mut send = sender();
        let mut later = Later::new(Sends::Queued, 2).expect("there are queues");
        for number in 0..4 {
            send.sent(number, 1000, 1);
            later.queue(1, number, 1000);
        }
        assert_eq!((later.queued(0), later.queued(1), later.front(1, 1)), (0, 4, Some((1, 1000))));
        later.take_back(1, &mut send);
        assert_eq!((later.queued(1), later.front(1, 0)), (0, None));
        let candidate = send.candidate().expect("a reinjection");
        assert_eq!((candidate.number, candidate.carried_by, candidate.reinjection), (1, 0, true));
    }
}
