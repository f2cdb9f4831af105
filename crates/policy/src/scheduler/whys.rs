//! What schedulers tell of their answers: the inequality or the state that decided, with its numbers.

use super::{
    Answer, Candidate, Connection, Facts, Pick, SCHEDULERS, Setup, Subflow,
    testing::{Still, candidate, make, make_with},
};
use crate::{Reason, energy::Linear};

/// The pick, and why.
fn told(name: &str, params: &[u32], candidates: &[Candidate], still: &Still) -> (Pick, Option<Reason>) {
    let mut scheduler = make_with(name, params, &vec![1; candidates.len()]);
    let picked = scheduler.pick(candidates, still);
    let answer = Answer::of(picked, candidates);
    (picked, answer.map(|answer| scheduler.why(candidates, still, answer)))
}

fn reason(code: &'static str, numbers: &[(&'static str, i64)]) -> Option<Reason> {
    Some(Reason { code, numbers: numbers.to_vec() })
}

fn still(subflow: Subflow, connection: Connection) -> Still {
    Still { subflows: vec![subflow; 2], connection }
}

#[test]
fn minrtt_tells_whether_the_faster_one_is_full() {
    let nothing = Still::default();
    let both = [candidate(20, true), candidate(100, true)];
    let fastest = reason("fastest", &[("srtt_us", 20_000)]);
    assert_eq!(told("minrtt", &[], &both, &nothing), (Pick::Subflow(0), fastest));
    let full = [candidate(20, false), candidate(100, true)];
    let faster_full = reason("faster-full", &[("srtt_us", 100_000), ("fastest_srtt_us", 20_000)]);
    assert_eq!(told("minrtt", &[], &full, &nothing), (Pick::Subflow(1), faster_full));
    let none = [candidate(20, false), candidate(100, false)];
    assert_eq!(told("minrtt", &[], &none, &nothing), (Pick::Wait, None), "there was nothing to choose");
}

#[test]
fn ecf_tells_the_inequality_that_decided() {
    // ECF1: ten segments of 1000 bytes each, delta 10 ms, 20 and 100 ms, the fast one full.
    let subflow = Subflow { cwnd: 10, segment_bytes: 1000, mdev4_us: 20_000, ..Subflow::default() };
    let full = |slow_ms| [candidate(20, false), candidate(slow_ms, true)];
    let with =
        |segments: u64| still(subflow, Connection { unsent_bytes: 1000 * segments, ..Connection::default() });
    let needed = reason("slow-needed", &[("fast_us", 130_000), ("slow_us", 110_000)]);
    assert_eq!(told("ecf", &[250], &full(100), &with(55)), (Pick::Subflow(1), needed));
    // It waits now, so that 1.25 times 110 ms are granted.
    let sooner = reason("fast-sooner", &[("fast_us", 60_000), ("slow_us", 137_500)]);
    assert_eq!(told("ecf", &[250], &full(100), &with(20)), (Pick::Wait, sooner));
    let in_time = reason("slow-in-time", &[("slow_us", 45_000), ("two_fast_us", 50_000)]);
    assert_eq!(told("ecf", &[250], &full(45), &with(1)), (Pick::Subflow(1), in_time));
}

#[test]
fn blest_tells_both_sides_of_its_inequality() {
    let fast = Subflow { cwnd: 10, ssthresh: 8, in_flight: 10, segment_bytes: 1400, ..Subflow::default() };
    let slow =
        Subflow { cwnd: 10, in_flight: 4, unacknowledged: 4, segment_bytes: 1400, ..Subflow::default() };
    let full = [candidate(20, false), candidate(100, true)];
    for (window_bytes, picked, code) in
        [(131_072, Pick::Subflow(1), "fits-window"), (120_000, Pick::Wait, "would-block")]
    {
        let connection = Connection { window_bytes, ..Connection::default() };
        let still = Still { subflows: vec![fast, slow], connection };
        let left = window_bytes as i64 - 5 * 1400;
        let numbers = [("fast_bytes", 120_960), ("window_left_bytes", left), ("lambda_permille", 1200)];
        assert_eq!(told("blest", &[1200, 40, 10], &full, &still), (picked, reason(code, &numbers)));
    }
}

#[test]
fn otias_tells_the_arrival() {
    let slow = Subflow { cwnd: 10, ..Subflow::default() };
    let still = Still {
        subflows: vec![Subflow { in_flight: 10, queued: 10, ..slow }, slow],
        connection: Connection::default(),
    };
    // OTIAS1: two round trips of 20 ms and half of one.
    let first = reason("arrives-first", &[("arrives_us", 50_000), ("queued_segments", 10)]);
    let full = [candidate(20, false), candidate(100, true)];
    assert_eq!(told("otias", &[1000], &full, &still), (Pick::Queue(0), first));
}

#[test]
fn emtcp_tells_the_energy_of_the_subflow_that_it_takes_or_leaves() {
    // 8 Mbit/s over Wi-Fi, 7.5 times 1000 bytes in 10 ms over LTE.
    let facts = [Linear::LTE, Linear::WIFI].map(|radio| Facts { weight: 1, radio });
    let subflow = |cwnd, segment_bytes| Subflow { cwnd, segment_bytes, ..Subflow::default() };
    let still =
        Still { subflows: vec![subflow(10, 750), subflow(10, 1000)], connection: Connection::default() };
    let full = [candidate(10, true), candidate(10, false)];
    for (cap, code, expected) in [(267, "excess", Answer::Takes(0)), (266, "above-cap", Answer::Leaves(0))] {
        let info = super::find("emtcp").expect("it is registered");
        let mut emtcp = (info.make)(&Setup { params: &[0, cap], subflows: &facts });
        let answer = Answer::of(emtcp.pick(&full, &still), &full).expect("one has room");
        let why = emtcp.why(&full, &still, answer);
        assert_eq!((answer, why.code), (expected, code));
        let energy = why.numbers[0].1;
        assert!((266_000..267_000).contains(&energy), "{energy} pJ per bit");
    }
}

#[test]
fn a_reinjection_is_called_so_by_all() {
    let carried = Candidate { carried: true, ..candidate(20, true) };
    let candidates = [carried, candidate(100, true)];
    let subflow = Subflow { cwnd: 10, segment_bytes: 1000, ..Subflow::default() };
    let still = still(subflow, Connection { unsent_bytes: 1000, ..Connection::default() });
    for info in SCHEDULERS {
        let mut scheduler = make(info.name, &[1; 2]);
        assert_eq!(scheduler.pick(&candidates, &still), Pick::Subflow(1), "{}", info.name);
        assert_eq!(scheduler.why(&candidates, &still, Answer::Takes(1)).code, "reinjection", "{}", info.name);
    }
}
