//! DAPS, delay-aware packet scheduling (Kuhn et al. 2014), as the out-of-tree module of mptcp-kau has it: a plan for the least
//! common multiple of the subflows' delays.
//!
//! A plan begins with the forward delay of each subflow, `D = srtt / 2` in whole milliseconds, at least 1, rounded to
//! `granularity`, and its window. Its length is the least common multiple of all D; at every multiple of its D a subflow is given as
//! many segments as its window had, in the order of the data. Each sends its part as its own window allows, so a slow
//! subflow begins at once with segments that belong behind those that a fast one has yet to send. Nothing that happens meanwhile
//! changes the plan.
//!
//! We differ in: the next plan begins when the last one is given out and a subflow has nothing left to send; a subflow that
//! has no sample of its round-trip time yet is taken to be as slow as the slowest; one that
//! is no longer usable is skipped in a plan; a plan ends after [`MOST_MS`] at the latest, and when a queue is full (`queue`);
//! windows are those of now, not averaged over round trips.

use super::{
    Answer, Candidate, Details, Pick, Scheduler, SchedulerInfo, SchedulerParam, SchedulerUnit, Sends,
    eligible, is_again, minrtt::by_rtt, minrtt::fastest, otias::QUEUE,
};
use crate::Reason;

pub(super) const INFO: SchedulerInfo = SchedulerInfo {
    name: "daps",
    title: "DAPS: a plan for the least common multiple of the delays, with queues (Kuhn et al. 2014)",
    tag: "A",
    params: &[
        SchedulerParam::new(
            "granularity",
            SchedulerUnit::Count,
            4,
            (1, 100),
            "multiple that delays are rounded to, in ms",
        ),
        QUEUE,
    ],
    sends: Sends::Queued,
    reckons_energy: false,
    weighs: false,
    make: |setup| {
        let &[granularity, most] = setup.params else { unreachable!("it has two parameters") };
        Box::new(Daps { granularity: u64::from(granularity), most, plan: Plan::default() })
    },
};

/// The longest plan: the least common multiple of a few delays can be years.
const MOST_MS: u64 = 10_000;

/// One subflow's part in a plan.
#[derive(Clone, Copy, Debug)]
struct Part {
    index: usize,
    delay_ms: u64,
    window: u32,
    /// When it is given segments next, in milliseconds since the plan began.
    next_ms: u64,
}

/// A plan, which is given out from the front.
#[derive(Clone, Debug, Default)]
struct Plan {
    /// By delay.
    parts: Vec<Part>,
    end_ms: u64,
    /// The part whose turn it is, and what is left of it.
    turn: usize,
    left: u32,
}

impl Plan {
    fn new(mut parts: Vec<Part>) -> Self {
        parts.sort_by_key(|part| (part.delay_ms, part.index));
        let all = parts.iter().try_fold(1, |multiple: u64, part| {
            let multiple = lcm(multiple, part.delay_ms);
            (multiple <= MOST_MS).then_some(multiple)
        });
        let mut plan = Self { parts, end_ms: all.unwrap_or(MOST_MS), turn: 0, left: 0 };
        plan.advance();
        plan
    }

    /// Begins the next turn; of equal times the one with the smaller delay.
    fn advance(&mut self) {
        let next = self.parts.iter_mut().enumerate().min_by_key(|(at, part)| (part.next_ms, *at));
        if let Some((at, part)) = next.filter(|(_, part)| part.next_ms <= self.end_ms) {
            (self.turn, self.left) = (at, part.window);
            part.next_ms += part.delay_ms;
        }
    }

    /// The subflow of the next segment.
    fn subflow(&self) -> Option<usize> {
        (self.left > 0).then(|| self.parts[self.turn].index)
    }

    /// The next segment is given out, or its whole turn is skipped.
    fn take(&mut self, segments: u32) {
        self.left -= segments;
        if self.left == 0 {
            self.advance();
        }
    }
}

fn lcm(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    (a / x).saturating_mul(b)
}

struct Daps {
    granularity: u64,
    most: u32,
    plan: Plan,
}

impl Daps {
    fn delay_ms(&self, srtt8_us: u32) -> u64 {
        let delay_us = u64::from(srtt8_us) / 16;
        let steps = (delay_us + self.granularity * 500) / (self.granularity * 1000);
        (steps * self.granularity).max(1)
    }

    /// A plan from what the subflows are now, if one of them has nothing left to send.
    fn renew(&mut self, subflows: &[Candidate], details: &dyn Details) {
        let mut idle = false;
        let mut parts = Vec::with_capacity(subflows.len());
        for (index, candidate) in eligible(subflows) {
            let subflow = details.subflow(index);
            idle |= subflow.queued == 0 && candidate.has_room;
            let delay_ms = self.delay_ms(candidate.srtt8_us);
            let next_ms = if candidate.srtt8_us == 0 { 0 } else { delay_ms };
            parts.push(Part { index, delay_ms, window: subflow.cwnd.max(1), next_ms });
        }
        let longest_ms = parts.iter().filter(|part| part.next_ms > 0).map(|part| part.delay_ms).max();
        for part in parts.iter_mut().filter(|part| part.next_ms == 0) {
            part.delay_ms = longest_ms.unwrap_or(1);
            part.next_ms = part.delay_ms;
        }
        if idle {
            self.plan = Plan::new(parts);
        }
    }
}

impl Scheduler for Daps {
    fn pick(&mut self, subflows: &[Candidate], details: &dyn Details) -> Pick {
        if is_again(subflows) {
            return fastest(subflows);
        }
        let may_be_used = |index: usize| eligible(subflows).any(|(eligible, _)| eligible == index);
        loop {
            let Some(index) = self.plan.subflow() else {
                self.renew(subflows, details);
                match self.plan.subflow() {
                    Some(_) => continue,
                    None => return Pick::Wait,
                }
            };
            if !may_be_used(index) {
                self.plan.take(self.plan.left);
            } else if details.subflow(index).queued < self.most {
                self.plan.take(1);
                return Pick::Queue(index);
            } else {
                return Pick::Wait;
            }
        }
    }

    fn why(&self, subflows: &[Candidate], _: &dyn Details, answer: Answer) -> Reason {
        if is_again(subflows) {
            return by_rtt(subflows, answer.subflow());
        }
        let left = ("left_segments", u64::from(self.plan.left));
        match answer {
            Answer::Takes(_) => Reason::new("plan", &[left, ("plan_ms", self.plan.end_ms)]),
            Answer::Leaves(_) if self.plan.left > 0 => Reason::new("queue-full", &[left]),
            Answer::Leaves(_) => Reason::new("plan-given-out", &[]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Subflow, testing::Still, testing::candidate, testing::make_with};
    use super::*;

    fn still(queued: [u32; 2]) -> Still {
        let subflow = |queued| Subflow { cwnd: 10, queued, ..Subflow::default() };
        Still { subflows: queued.map(subflow).to_vec(), ..Still::default() }
    }

    fn picks(
        daps: &mut dyn Scheduler,
        candidates: [Candidate; 2],
        queued: [u32; 2],
        count: usize,
    ) -> Vec<Pick> {
        (0..count).map(|_| daps.pick(&candidates, &still(queued))).collect()
    }

    #[test]
    fn daps1_fifty_segments_for_the_path_of_10_ms_then_ten_for_that_of_50_ms() {
        let mut daps = make_with("daps", &[1, 1000], &[1; 2]);
        let plan = picks(&mut *daps, [candidate(20, true), candidate(100, true)], [0, 0], 60);
        assert_eq!(plan[..50], [Pick::Queue(0); 50]);
        assert_eq!(plan[50..], [Pick::Queue(1); 10]);
    }

    #[test]
    fn the_next_plan_waits_until_a_subflow_has_sent_its_part() {
        let mut daps = make_with("daps", &[1, 1000], &[1; 2]);
        let both = [candidate(20, true), candidate(100, true)];
        picks(&mut *daps, both, [0, 0], 60);
        assert_eq!(picks(&mut *daps, both, [3, 4], 1), [Pick::Wait]);
        assert_eq!(picks(&mut *daps, both, [0, 4], 1), [Pick::Queue(0)]);
    }

    #[test]
    fn delays_are_rounded_to_the_granularity_and_at_least_1_ms() {
        let daps = Daps { granularity: 4, most: 1, plan: Plan::default() };
        let delays = [0, 4, 20, 27, 28, 100].map(|rtt_ms| daps.delay_ms(8000 * rtt_ms));
        assert_eq!(delays, [1, 4, 12, 12, 16, 52]);
    }

    #[test]
    fn a_subflow_that_goes_is_skipped_and_a_full_queue_waited_for() {
        let mut daps = make_with("daps", &[1, 5], &[1; 2]);
        let both = [candidate(20, true), candidate(100, true)];
        assert_eq!(picks(&mut *daps, both, [0, 0], 1), [Pick::Queue(0)]);
        assert_eq!(picks(&mut *daps, both, [5, 0], 1), [Pick::Wait]);
        let gone = Candidate { usable: false, ..both[0] };
        assert_eq!(picks(&mut *daps, [gone, both[1]], [5, 0], 2), [Pick::Queue(1); 2]);
        assert_eq!(
            picks(&mut *daps, [gone, Candidate { usable: false, ..both[1] }], [0, 0], 1),
            [Pick::Wait]
        );
    }

    #[test]
    fn a_subflow_without_a_sample_gets_one_window_in_a_plan() {
        let mut daps = make_with("daps", &[1, 1000], &[1; 2]);
        let plan = picks(&mut *daps, [candidate(20, true), candidate(0, true)], [0, 0], 20);
        assert_eq!(plan, [[Pick::Queue(0); 10], [Pick::Queue(1); 10]].concat());
    }

    #[test]
    fn delays_without_a_small_common_multiple_make_a_plan_of_ten_seconds() {
        let part = |index, delay_ms| Part { index, delay_ms, window: 1, next_ms: delay_ms };
        assert_eq!(Plan::new(vec![part(0, 997), part(1, 991)]).end_ms, MOST_MS);
        assert_eq!(Plan::new(vec![part(0, 12), part(1, 52)]).end_ms, 156);
    }
}
