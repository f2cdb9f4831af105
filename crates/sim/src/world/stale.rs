//! Stale subflows by the rule of Linux (`stale_after`): what happens when the data level makes no progress.
//!
//! While data acknowledgements come, nothing does. When none has come for a period (the longest time that the timer of a
//! subflow still has, of those without a count of silence; 200 ms if all have one, as a subflow that is well has at every
//! second expiry, for a count begins with the first look), each subflow with data under way is looked at
//! ([`Watchdog::look_at`]). One that has been silent too often while another one is lively is stale: it gets no data until
//! something is acknowledged on it, and everything that the data level has not acknowledged is sent again on the others,
//! what these have under way themselves included (`__mptcp_retransmit_pending_data`: "keep it simple and re-inject the
//! whole mptcp level rtx queue"). Else, if a subflow is idle, it gets the oldest data again; a backup only if all
//! others are silent.
//!
//! Left out: data that the kernel has given to a subflow and that this one has not sent (here, but for schedulers
//! with queues, a subflow gets what its window lets out, there as much as its send buffer holds), which makes more to send
//! again there; and signs of life that deliver nothing, such as acknowledgements of duplicates. The period is reckoned when the timer was last set, in
//! the kernel when data was last given out.

use super::{Phase, World};
use crate::{
    engine::{heads::Key, timers::TimerKind},
    mptcp::stale::{HEAD_BYTES, LEAST_PERIOD, Watchdog},
};

/// What is to be sent again when the data level has made no progress.
enum Push {
    Nothing,
    /// Everything that is not acknowledged, wherever the scheduler puts it.
    All,
    /// The oldest data, on this idle subflow: the kernel asks no scheduler, so a backup gets it beside a regular one.
    Oldest(usize),
}

impl<K: Key> World<'_, K> {
    /// The first data that is under way has left a side: its timer runs from now on.
    #[cold]
    pub(super) fn watch_data(&mut self, number: usize, side: usize) {
        let Some(mut watchdog) = self.take_watchdog(number, side) else { return };
        watchdog.progress_at = self.now;
        if !watchdog.timer.is_armed() {
            watchdog.period = self.data_period(&watchdog, number, side);
            self.arm_data_timer(&mut watchdog, number, side);
        }
        self.put_back(watchdog, number, side);
    }

    /// Data wait for a subflow to have room: the timer runs, as it does in the kernel, which queues them at a subflow.
    pub(super) fn watch_waiting(&mut self, number: usize, side: usize) {
        let Some(mechanics) = &self.connections[number].sides[side].mechanics else { return };
        if mechanics.watchdog.as_ref().is_some_and(|watchdog| !watchdog.timer.is_armed())
            && self.connections[number].sides[side].send.candidate().is_some()
        {
            self.watch_data(number, side);
        }
    }

    fn take_watchdog(&mut self, number: usize, side: usize) -> Option<Box<Watchdog>> {
        self.connections[number].sides[side].mechanics.as_mut()?.watchdog.take()
    }

    fn put_back(&mut self, watchdog: Box<Watchdog>, number: usize, side: usize) {
        if let Some(mechanics) = &mut self.connections[number].sides[side].mechanics {
            mechanics.watchdog = Some(watchdog);
        }
    }

    fn arm_data_timer(&mut self, watchdog: &mut Watchdog, number: usize, side: usize) {
        watchdog.runs_from = watchdog.progress_at;
        let deadline = (watchdog.progress_at + watchdog.period).max(self.now + 1);
        let index = (2 * number + side) as u32;
        watchdog.timer.arm(deadline, &mut self.timers, TimerKind::Data, index);
        watchdog.period = self.data_period(watchdog, number, side);
    }

    /// The longest time that the timer of a subflow still has, of those without a count.
    fn data_period(&self, watchdog: &Watchdog, number: usize, side: usize) -> u64 {
        let endpoints = self.connections[number].endpoints(side).enumerate();
        let left = endpoints.filter(|&(subflow, _)| watchdog.count(subflow) == 0).filter_map(|(_, index)| {
            let endpoint = &self.endpoints[index];
            let runs = endpoint.phase == Phase::Established && endpoint.sender.outstanding() > 0;
            runs.then(|| endpoint.sender.timer.left(self.now))
        });
        left.max().filter(|&left| left > 0).unwrap_or(LEAST_PERIOD)
    }

    /// The timer of the data level of a side has come up.
    pub(super) fn data_timer(&mut self, number: usize, side: usize) {
        let Some(mut watchdog) = self.take_watchdog(number, side) else { return };
        let is_mptcp = self.connections[number].is_mptcp();
        let send = &mut self.connections[number].sides[side].send;
        let waits = is_mptcp && (send.una < send.next || send.candidate().is_some());
        let mut push = Push::Nothing;
        if waits {
            if watchdog.progress_at == watchdog.runs_from {
                watchdog.progress_at = self.now;
                push = self.look_for_silence(&mut watchdog, number, side);
                watchdog.period = self.data_period(&watchdog, number, side);
            }
            self.arm_data_timer(&mut watchdog, number, side);
        }
        self.put_back(watchdog, number, side);
        match push {
            Push::Nothing => {}
            Push::All => {
                self.connections[number].sides[side].send.reinject_all();
                self.schedule(number, side);
            }
            Push::Oldest(subflow) => {
                self.connections[number].sides[side].send.reinject_oldest(HEAD_BYTES);
                self.push_on(number, side, subflow);
                self.schedule(number, side);
            }
        }
    }

    /// Looks at the subflows of a side that makes no progress; what is to be sent again.
    fn look_for_silence(&mut self, watchdog: &mut Watchdog, number: usize, side: usize) -> Push {
        let (mut idle, mut idle_backup, mut least_count) = (None, None, u32::MAX);
        let mut stale = false;
        let all: Vec<usize> = self.connections[number].endpoints(side).collect();
        for (subflow, &index) in all.iter().enumerate() {
            let endpoint = &self.endpoints[index];
            if endpoint.phase != Phase::Established {
                continue;
            }
            if endpoint.sender.outstanding() == 0 {
                let kind = if endpoint.backup { &mut idle_backup } else { &mut idle };
                kind.get_or_insert(subflow);
                continue;
            }
            let delivered = endpoint.sender.delivered;
            if watchdog.look_at(subflow, delivered) && !endpoint.sender.is_stale() {
                let replaces = |(other, &index): (usize, &usize)| {
                    let endpoint = &self.endpoints[index];
                    let active = endpoint.phase == Phase::Established && !endpoint.sender.is_stale();
                    other != subflow && active && watchdog.is_lively(other)
                };
                if all.iter().enumerate().any(replaces) {
                    self.endpoints[index].sender.become_stale();
                    stale = true;
                }
            }
            least_count = least_count.min(watchdog.count(subflow));
        }
        match idle.or(idle_backup.filter(|_| least_count > 1)) {
            _ if stale => Push::All,
            Some(subflow) => Push::Oldest(subflow),
            None => Push::Nothing,
        }
    }
}
