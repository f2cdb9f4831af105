//! What the schedulers share that choose a subset of the subflows: the state that a choice is made from, and when it is made
//! again. Inside the subset segments go where minRTT sends them.
//!
//! A choice holds for a round trip of the fastest subflow chosen, or until a subflow comes or goes. While a usable subflow has
//! no sample of its round-trip time, all are used. The probability of loss is the share of retransmissions, averaged over
//! choices. Data without end counts as `horizon` segments. A subflow outside of the subset stays open and idle (EE-MPTCP
//! makes it a backup with MP_PRIO); it carries reinjections that all of the subset have carried.

use super::{
    Answer, Candidate, Connection, Details, Pick, SSTHRESH_INFINITE, Scheduler, SchedulerParam,
    SchedulerUnit, Setup, eligible, is_again, minrtt::by_rtt, minrtt::fastest, none_has_room, rounds::Start,
};
use crate::{Reason, energy::Linear};

/// Parameter of those that reckon with what is left to send.
pub(super) const HORIZON: SchedulerParam = SchedulerParam::new(
    "horizon",
    SchedulerUnit::Packets,
    1000,
    (1, 1_000_000),
    "most segments that are planned for; data without end counts as so many",
);
/// Parameter of those that predict windows.
pub(super) const WINDOW_MAX: SchedulerParam = SchedulerParam::new(
    "window_max",
    SchedulerUnit::Packets,
    1000,
    (1, 1_000_000),
    "largest window that the model predicts",
);
/// Parameter of those that predict windows.
pub(super) const AFTER_TIMEOUT: SchedulerParam = SchedulerParam::new(
    "after_timeout",
    SchedulerUnit::Packets,
    1,
    (1, 100),
    "window that the model has after a timeout, the paper's CW(0)",
);

/// What a new value of the share of retransmissions weighs in the average.
const LOSS_GAIN: f64 = 0.125;

/// A subflow that can be chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// Index of the subflow.
    pub(crate) index: usize,
    /// Smoothed round-trip time in microseconds, above 0.
    pub(crate) rtt_us: u64,
    /// In segments.
    pub(crate) window: f64,
    pub(crate) ssthresh: f64,
    pub(crate) loss: f64,
    pub(crate) segment_bits: f64,
    pub(crate) radio: Linear,
}

impl Path {
    /// A window per round trip, in Mbit/s.
    pub(crate) fn rate_mbps(&self) -> f64 {
        self.window * self.segment_bits / self.rtt_us as f64
    }

    /// Energy of a bit at that rate, in nJ.
    pub(crate) fn energy_nj(&self) -> f64 {
        self.radio.energy_per_bit_nj(self.rate_mbps())
    }

    /// As the round model sees it.
    pub(crate) fn start(&self, initial: f64, most: f64) -> Start {
        let Self { rtt_us, window, ssthresh, loss, segment_bits, .. } = *self;
        Start { rtt_us, window, ssthresh, loss, initial, most, segment_bits }
    }
}

/// Chooses.
pub(crate) trait Choose {
    /// One bit for each of the paths, by the index of its subflow. `paths` is not empty, in the order of the scenario; so
    /// many `segments` are left to send, at least 1.
    fn choose(&mut self, paths: &[Path], segments: f64, weighed: &mut Weighed) -> u32;

    /// What its values are called and multiplied by in a log: the value of the subset chosen, then of the best other.
    fn value_names(&self) -> ([&'static str; 2], f64);
}

/// The subsets that a rule has weighed against one another, one bit per subflow, with their values; for logs.
pub(crate) type Weighed = Vec<(u32, f64)>;

/// The bits of the first so many of these paths that a rule's value is highest for; of equal values the fewest paths.
pub(super) fn best_prefix(
    paths: &[Path],
    weighed: &mut Weighed,
    mut value: impl FnMut(&[Path]) -> f64,
) -> u32 {
    let mut best = (f64::NEG_INFINITY, 0, 0);
    let mut bits = 0;
    for count in 1..=paths.len() {
        bits |= 1 << paths[count - 1].index;
        let value = value(&paths[..count]);
        weighed.push((bits, value));
        if value > best.0 {
            best = (value, count, bits);
        }
    }
    if best.1 == 0 { bits } else { best.2 }
}

/// Packets and retransmissions of a subflow when a choice was made last, and the average of their ratio.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Losses {
    packets: u64,
    retransmits: u64,
    pub(crate) share: f64,
}

impl Losses {
    pub(crate) fn note(&mut self, packets: u64, retransmits: u64) {
        let sent = packets - self.packets;
        if sent > 0 {
            let share = (retransmits - self.retransmits) as f64 / sent as f64;
            self.share += LOSS_GAIN * (share - self.share);
        }
        (self.packets, self.retransmits) = (packets, retransmits);
    }
}

/// minRTT over the subflows that a rule chooses.
pub(super) struct Subset<C> {
    rule: C,
    radios: Vec<Linear>,
    losses: Vec<Losses>,
    horizon: f64,
    /// One bit per subflow.
    chosen: u32,
    /// What it was chosen from.
    of: u32,
    renew_at_us: u64,
    /// What the choice was made among; empty while a subflow has no sample of its round-trip time.
    weighed: Weighed,
}

impl<C: Choose> Subset<C> {
    pub(super) fn new(rule: C, setup: &Setup<'_>, horizon: u32) -> Self {
        Self {
            rule,
            radios: setup.subflows.iter().map(|facts| facts.radio).collect(),
            losses: vec![Losses::default(); setup.subflows.len()],
            horizon: f64::from(horizon),
            chosen: 0,
            of: 0,
            renew_at_us: 0,
            weighed: Vec::new(),
        }
    }

    #[cold]
    fn renew(&mut self, subflows: &[Candidate], details: &dyn Details, connection: &Connection) {
        let mut paths = Vec::with_capacity(subflows.len());
        let mut segment_bytes = 1;
        for (index, candidate) in eligible(subflows) {
            let subflow = details.subflow(index);
            self.losses[index].note(subflow.packets, subflow.retransmits);
            segment_bytes = subflow.segment_bytes.max(1);
            paths.push(Path {
                index,
                rtt_us: u64::from(candidate.srtt8_us >> 3),
                window: f64::from(subflow.cwnd),
                ssthresh: f64::from(subflow.ssthresh.min(SSTHRESH_INFINITE)),
                loss: self.losses[index].share,
                segment_bits: f64::from(subflow.segment_bytes) * 8.0,
                radio: self.radios[index],
            });
        }
        self.weighed.clear();
        if paths.iter().any(|path| path.rtt_us == 0) {
            (self.chosen, self.renew_at_us) = (self.of, connection.now_us);
            return;
        }
        if paths.is_empty() {
            return;
        }
        let left = connection.unsent_bytes.div_ceil(u64::from(segment_bytes)) as f64;
        self.chosen = self.rule.choose(&paths, left.clamp(1.0, self.horizon), &mut self.weighed);
        let chosen = paths.iter().filter(|path| self.chosen & 1 << path.index != 0);
        self.renew_at_us = connection.now_us + chosen.map(|path| path.rtt_us).min().unwrap_or(0);
    }
}

impl<C: Choose> Scheduler for Subset<C> {
    fn pick(&mut self, subflows: &[Candidate], details: &dyn Details) -> Pick {
        let of = eligible(subflows).fold(0, |bits, (index, _)| bits | 1 << index);
        let connection = details.connection();
        if of != self.of || connection.now_us >= self.renew_at_us {
            self.of = of;
            self.renew(subflows, details, &connection);
        }
        let is_chosen = |index: usize| self.chosen & 1 << index != 0;
        let mut all_carried = true;
        let mut best = None;
        for (index, subflow) in
            eligible(subflows).filter(|&(index, subflow)| is_chosen(index) && !subflow.carried)
        {
            all_carried = false;
            let rank = (subflow.srtt8_us, index);
            if subflow.has_room && best.is_none_or(|best| rank < best) {
                best = Some(rank);
            }
        }
        match best {
            Some((_, index)) => Pick::Subflow(index),
            None if all_carried => fastest(subflows),
            None => none_has_room(subflows),
        }
    }

    fn why(&self, subflows: &[Candidate], _: &dyn Details, answer: Answer) -> Reason {
        if is_again(subflows) {
            return by_rtt(subflows, answer.subflow());
        }
        let chosen = ("chosen_subflows", u64::from(self.chosen));
        let Some(values) = values(&self.rule, &self.weighed, self.chosen) else {
            return Reason::new("not-measured", &[chosen]);
        };
        let mut numbers = vec![chosen, values.own];
        if let Some((bits, value)) = values.other {
            numbers.extend([("other_subflows", u64::from(bits)), value]);
        }
        let code = if matches!(answer, Answer::Takes(_)) { "chosen" } else { "left-out" };
        Reason::new(code, &numbers)
    }

    fn chosen(&self) -> Option<u32> {
        Some(self.chosen)
    }
}

/// What a log tells of a choice.
pub(crate) struct Values {
    /// Of the subset chosen.
    pub(crate) own: (&'static str, u64),
    /// The best other subset, one bit per subflow, and its value.
    pub(crate) other: Option<(u32, (&'static str, u64))>,
}

/// The values of what has been chosen and of the best other; none if there was nothing to weigh.
pub(crate) fn values(rule: &impl Choose, weighed: &Weighed, chosen: u32) -> Option<Values> {
    let &(_, own) = weighed.iter().find(|(bits, _)| *bits == chosen)?;
    let ([name, name_of_other], scale) = rule.value_names();
    // Beyond 2^63 they count as that: a cast saturates.
    let told = |value: f64| (value * scale).abs() as u64;
    let others = weighed.iter().copied().filter(|(bits, _)| *bits != chosen);
    let other = others.reduce(|best, other| if other.1 * scale > best.1 * scale { other } else { best });
    let other = other.map(|(bits, value)| (bits, (name_of_other, told(value))));
    Some(Values { own: (name, told(own)), other })
}

#[cfg(test)]
pub(super) fn path(index: usize, rtt_ms: u64, window: f64, radio: Linear) -> Path {
    let rtt_us = 1000 * rtt_ms;
    Path { index, rtt_us, window, ssthresh: 1e9, loss: 0.0, segment_bits: 8000.0, radio }
}

#[cfg(test)]
mod tests {
    use super::super::{Facts, Subflow, testing::Still, testing::candidate};
    use super::*;

    /// Notes what it is asked, and chooses the second subflow if that is there.
    struct Second(Vec<(usize, f64)>);

    impl Choose for Second {
        fn choose(&mut self, paths: &[Path], segments: f64, weighed: &mut Weighed) -> u32 {
            self.0.push((paths.len(), segments));
            weighed.extend([(0b01, 3.0), (0b11, 5.0), (1 << paths[paths.len() - 1].index, 7.0)]);
            1 << paths[paths.len() - 1].index
        }

        fn value_names(&self) -> ([&'static str; 2], f64) {
            (["length", "other_length"], 10.0)
        }
    }

    fn subset() -> Subset<Second> {
        let facts = [Facts { weight: 1, radio: Linear::WIFI }; 2];
        Subset::new(Second(Vec::new()), &Setup { params: &[], subflows: &facts }, 500)
    }

    fn still(now_us: u64, unsent_bytes: u64) -> Still {
        let subflow = Subflow { cwnd: 10, segment_bytes: 1000, ..Subflow::default() };
        let connection = Connection { now_us, unsent_bytes, ..Connection::default() };
        Still { subflows: vec![subflow; 2], connection }
    }

    #[test]
    fn minrtt_chooses_inside_the_subset_and_waits_for_it() {
        let mut subset = subset();
        let fast = candidate(20, true);
        assert_eq!(subset.pick(&[fast, candidate(100, true)], &still(0, 9000)), Pick::Subflow(1));
        assert_eq!(subset.pick(&[fast, candidate(100, false)], &still(1, 8000)), Pick::Wait);
        let carried = Candidate { carried: true, ..candidate(100, true) };
        assert_eq!(subset.pick(&[fast, carried], &still(2, 8000)), Pick::Subflow(0), "a reinjection");
    }

    #[test]
    fn a_choice_holds_for_a_round_trip_of_the_fastest_chosen_or_until_a_subflow_goes() {
        let mut subset = subset();
        let both = [candidate(20, true), candidate(100, true)];
        for now_us in [0, 50_000, 99_999, 100_000, 150_000] {
            subset.pick(&both, &still(now_us, 9000));
        }
        assert_eq!(subset.rule.0, [(2, 9.0), (2, 9.0)]);
        let gone = Candidate { usable: false, ..both[1] };
        assert_eq!(subset.pick(&[both[0], gone], &still(150_001, u64::MAX)), Pick::Subflow(0));
        assert_eq!(subset.rule.0[2..], [(1, 500.0)], "without end it is the horizon");
    }

    #[test]
    fn while_a_subflow_has_no_sample_all_are_used() {
        let mut subset = subset();
        let fresh = candidate(0, false);
        assert_eq!(subset.pick(&[candidate(20, true), fresh], &still(0, 9000)), Pick::Subflow(0));
        assert!(subset.rule.0.is_empty());
        let known = candidate(100, true);
        assert_eq!(subset.pick(&[candidate(20, true), known], &still(0, 9000)), Pick::Subflow(1));
    }

    #[test]
    fn why_tells_the_subset_its_value_and_the_best_other() {
        let mut subset = subset();
        let both = [candidate(20, true), candidate(100, true)];
        subset.pick(&both, &still(0, 9000));
        let numbers =
            [("chosen_subflows", 0b10), ("length", 70), ("other_subflows", 0b11), ("other_length", 50)];
        let chosen = subset.why(&both, &still(0, 9000), Answer::Takes(1));
        assert_eq!((chosen.code, chosen.numbers), ("chosen", numbers.to_vec()));
        assert_eq!(subset.why(&both, &still(0, 9000), Answer::Leaves(0)).code, "left-out");
        assert_eq!(subset.chosen(), Some(0b10));
    }

    #[test]
    fn loss_is_the_average_share_of_retransmissions() {
        let mut losses = Losses::default();
        losses.note(100, 0);
        assert_eq!(losses.share, 0.0);
        losses.note(200, 8);
        assert_eq!(losses.share, 0.01);
        losses.note(200, 8);
        assert_eq!(losses.share, 0.01, "nothing was sent");
    }
}
