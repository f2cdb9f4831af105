//! The subflow that takes the least energy per bit first: a house definition of eMTCP (Chen, Yuan, Muntean, WCNC 2013) after
//! what EE-MPTCP says of it.
//!
//! The energy of a bit is `b + theta / x` with the linear model of the subflow's radio and its rate x = cwnd * segment / srtt. A
//! dearer subflow is used when the cheaper ones are full and its energy per bit is at most `cap`. With `order = "listed"`
//! the scenario's order takes the place of the energies: Wi-Fi first, whatever the constants say, which is what
//! EE-MPTCP describes as eMPTCP.
//!
//! A subflow without a sample of its round-trip time has no rate and is the dearest.

use super::{
    Answer, Candidate, Details, Pick, Scheduler, SchedulerInfo, SchedulerParam, SchedulerUnit, Sends,
    eligible, is_again, none_has_room,
};
use crate::{Reason, energy::Linear};

pub(super) const INFO: SchedulerInfo = SchedulerInfo {
    name: "emtcp",
    title: "eMTCP, house definition: least energy per bit first (after Chen et al. 2013)",
    tag: "C",
    params: &[
        SchedulerParam::choice(
            "order",
            &["energy", "listed"],
            "energy|listed: by energy per bit, or as the scenario lists subflows",
        ),
        SchedulerParam::new(
            "cap",
            SchedulerUnit::Count,
            NO_CAP,
            (1, NO_CAP),
            "most energy per bit of any subflow but the first in that order, in nJ; the largest value stands for no limit",
        ),
    ],
    sends: Sends::OneByOne,
    reckons_energy: true,
    weighs: false,
    make: |setup| {
        let &[order, cap] = setup.params else { unreachable!("it has two parameters") };
        let radios = setup.subflows.iter().map(|facts| facts.radio).collect();
        let cap_nj = if cap == NO_CAP { f64::INFINITY } else { f64::from(cap) };
        Box::new(Emtcp { radios, listed: order == 1, cap_nj })
    },
};

/// Stands for no limit.
const NO_CAP: u32 = 1_000_000;

struct Emtcp {
    radios: Vec<Linear>,
    listed: bool,
    cap_nj: f64,
}

/// Energy per bit in nJ at `cwnd * segment / srtt`.
fn energy_nj(radio: &Linear, candidate: &Candidate, details: &dyn Details, index: usize) -> f64 {
    let subflow = details.subflow(index);
    let srtt_us = f64::from(candidate.srtt8_us) / 8.0;
    if srtt_us == 0.0 {
        return f64::INFINITY;
    }
    radio.energy_per_bit_nj(f64::from(subflow.cwnd) * f64::from(subflow.segment_bytes) * 8.0 / srtt_us)
}

impl Scheduler for Emtcp {
    fn pick(&mut self, subflows: &[Candidate], details: &dyn Details) -> Pick {
        let mut first: Option<(f64, u32, usize)> = None;
        let mut with_room: Option<(f64, u32, usize)> = None;
        let mut energy_of_pick = 0.0;
        for (index, subflow) in eligible(subflows).filter(|(_, subflow)| !subflow.carried) {
            let energy = energy_nj(&self.radios[index], subflow, details, index);
            let rank = if self.listed { (0.0, 0, index) } else { (energy, subflow.srtt8_us, index) };
            if first.is_none_or(|best| rank < best) {
                first = Some(rank);
            }
            if subflow.has_room && with_room.is_none_or(|best| rank < best) {
                with_room = Some(rank);
                energy_of_pick = energy;
            }
        }
        match (first, with_room) {
            (Some(first), Some(rank)) if rank == first || energy_of_pick <= self.cap_nj => {
                Pick::Subflow(rank.2)
            }
            (_, Some(_)) => Pick::Wait,
            (_, None) => none_has_room(subflows),
        }
    }

    fn why(&self, subflows: &[Candidate], details: &dyn Details, answer: Answer) -> Reason {
        let energy = |index: usize| energy_nj(&self.radios[index], &subflows[index], details, index);
        let rank = |index: usize| {
            if self.listed { (0.0, 0, index) } else { (energy(index), subflows[index].srtt8_us, index) }
        };
        let about = answer.subflow();
        // Below 2^53; a subflow without a rate has no energy to tell.
        let own = ("energy_pj_per_bit", (energy(about) * 1e3).min(1e15) as u64);
        let not_carried = eligible(subflows).filter(|(_, subflow)| !subflow.carried);
        let is_first = not_carried.map(|(index, _)| index).all(|other| rank(about) <= rank(other));
        let code = match answer {
            Answer::Takes(_) if is_again(subflows) => "reinjection",
            Answer::Takes(_) if is_first => "first",
            Answer::Takes(_) => "excess",
            Answer::Leaves(_) => "above-cap",
        };
        Reason::new(code, &[own])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Facts, Setup, Subflow, testing::Still, testing::candidate};
    use super::*;

    /// Wi-Fi at 8 Mbit/s and LTE at 6, both over 10 ms with segments of 1000 bytes, LTE first in the scenario.
    fn picked(params: &[u32], lte_has_room: bool, wifi_has_room: bool) -> Pick {
        let facts = [Linear::LTE, Linear::WIFI].map(|radio| Facts { weight: 1, radio });
        let mut emtcp = (INFO.make)(&Setup { params, subflows: &facts });
        let subflow = |mbps: u32| Subflow { cwnd: mbps * 10 / 8, segment_bytes: 1000, ..Subflow::default() };
        // 6 Mbit/s are 7.5 segments per 10 ms.
        let lte = Subflow { segment_bytes: 750, ..subflow(8) };
        let still = Still { subflows: vec![lte, subflow(8)], ..Still::default() };
        emtcp.pick(&[candidate(10, lte_has_room), candidate(10, wifi_has_room)], &still)
    }

    #[test]
    fn c8_1_wifi_at_154_nj_per_bit_goes_before_lte_at_267() {
        let defaults = INFO.defaults();
        assert_eq!(picked(&defaults, true, true), Pick::Subflow(1));
        assert_eq!(picked(&defaults, true, false), Pick::Subflow(0), "the excess");
        assert_eq!(picked(&defaults, false, false), Pick::Wait);
    }

    #[test]
    fn a_dearer_subflow_is_used_up_to_the_cap() {
        assert_eq!(picked(&[0, 267], true, false), Pick::Subflow(0), "266.7 nJ per bit");
        assert_eq!(picked(&[0, 266], true, false), Pick::Wait);
        assert_eq!(picked(&[0, 1], true, true), Pick::Subflow(1), "the cheapest is always used");
    }

    #[test]
    fn listed_takes_the_order_of_the_scenario() {
        assert_eq!(picked(&[1, NO_CAP], true, true), Pick::Subflow(0));
        assert_eq!(picked(&[1, NO_CAP], false, true), Pick::Subflow(1));
        assert_eq!(picked(&[1, 100], false, true), Pick::Wait, "Wi-Fi takes 154 nJ per bit");
    }
}
