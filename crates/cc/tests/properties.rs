//! What every congestion control of the registry must do, whatever happens to it.

mod common;

use anabranch_cc::{Algorithm, Controller, Kind, algorithms};
use common::{Connection, controller};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

/// Something that happens to a subflow.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Acks { count: u8, acked: u8, limited: bool },
    Round { rtt_us: u32 },
    Sample { rtt_us: u32 },
    FastRetransmit,
    Timeout,
    Undo,
    Mark,
    Pause { us: u32 },
    Leave,
    Join,
}

fn operation() -> impl Strategy<Value = (usize, Operation)> {
    let rtt_us = prop_oneof![8 => 1_000u32..500_000, 1 => Just(1u32), 1 => 500_000u32..=u32::MAX / 16];
    let operation = prop_oneof![
        6 => (1u8..30, 1u8..4, any::<bool>())
            .prop_map(|(count, acked, limited)| Operation::Acks { count, acked, limited }),
        8 => rtt_us.clone().prop_map(|rtt_us| Operation::Round { rtt_us }),
        3 => rtt_us.prop_map(|rtt_us| Operation::Sample { rtt_us }),
        2 => Just(Operation::FastRetransmit),
        1 => Just(Operation::Timeout),
        1 => Just(Operation::Undo),
        1 => Just(Operation::Mark),
        1 => (0u32..100_000_000).prop_map(|us| Operation::Pause { us }),
        1 => Just(Operation::Leave),
        1 => Just(Operation::Join),
    ];
    (0usize..3, operation)
}

fn operations() -> impl Strategy<Value = Vec<(usize, Operation)>> {
    proptest::collection::vec(operation(), 1..60)
}

/// Parameter values anywhere in their ranges, as fractions of them; `None`: the defaults.
fn parameters() -> impl Strategy<Value = Option<Vec<u32>>> {
    proptest::option::of(proptest::collection::vec(prop_oneof![Just(0), Just(u32::MAX), any::<u32>()], 20))
}

fn connection(algorithm: &Algorithm, parameters: &Option<Vec<u32>>) -> Connection {
    let set: Vec<(&str, u32)> = match parameters {
        None => Vec::new(),
        Some(fractions) => algorithm
            .params()
            .iter()
            .zip(fractions)
            .map(|(p, f)| {
                (p.name, p.min + ((u64::from(p.max - p.min) * u64::from(*f)) / u64::from(u32::MAX)) as u32)
            })
            .collect(),
    };
    Connection::new(3, algorithm.name(), &set)
}

const CLAMP: u32 = 300;

/// The smallest ssthresh: RFC 5681's two packets, or one where a subflow that shares may be left with one.
fn least_ssthresh(algorithm: &Algorithm) -> u32 {
    if ["olia", "balia", "coupled"].contains(&algorithm.name()) { 1 } else { 2 }
}

/// Applies one operation and checks the invariants.
fn apply(connection: &mut Connection, k: usize, operation: Operation) -> Result<(), TestCaseError> {
    let rate_based = connection.subflows[k].controller.kind() == Kind::Rate;
    match operation {
        Operation::Acks { count, acked, .. } if rate_based => {
            for _ in 0..count {
                connection.now_us += 500;
                connection.rate(k, acked.into(), 500);
            }
        }
        Operation::Round { rtt_us } if rate_based => {
            connection.now_us += u64::from(rtt_us);
            connection.sample(k, rtt_us);
            connection.rate(k, connection.cwnd(k), rtt_us);
        }
        Operation::FastRetransmit if rate_based => connection.rate_recovery(k),
        Operation::Acks { count, acked, limited } => {
            for _ in 0..count {
                let before = connection.cwnd(k);
                connection.now_us += 500;
                connection.subflows[k].view.cwnd_limited = limited as u8;
                connection.subflows[k].view.round_start = 0;
                connection.ack(k, acked.into());
                prop_assert!(
                    limited || connection.cwnd(k) <= before,
                    "grew without being limited by the window"
                );
            }
            connection.subflows[k].view.cwnd_limited = 1;
        }
        Operation::Round { rtt_us } => connection.round(k, rtt_us),
        Operation::Sample { rtt_us } => connection.sample(k, rtt_us),
        Operation::FastRetransmit => {
            let before = connection.cwnd(k);
            connection.peers[k].retrans += 1;
            let ssthresh = connection.fast_retransmit(k);
            prop_assert!(ssthresh <= before.max(2), "ssthresh {ssthresh} after a loss at {before}");
        }
        Operation::Timeout => {
            connection.peers[k].retrans += 1;
            connection.timeout(k);
            prop_assert!(connection.cwnd(k) <= 2);
        }
        Operation::Undo => {
            let before = connection.cwnd(k);
            let cwnd = connection.call(k, Controller::undo);
            prop_assert!(cwnd >= before);
            connection.subflows[k].view.cwnd = cwnd.min(CLAMP);
        }
        Operation::Mark => connection.call(k, Controller::ecn),
        Operation::Pause { us } => {
            connection.now_us += u64::from(us);
            connection.subflows[k].view.idle_us = us;
            connection.call(k, Controller::idle_restart);
        }
        Operation::Leave | Operation::Join => {
            connection.peers[k].usable = 0;
            for other in (0..3).filter(|other| *other != k) {
                connection.call(other, Controller::peer_leave);
            }
        }
    }
    let view = connection.subflows[k].view;
    prop_assert!((1..=CLAMP).contains(&view.cwnd), "cwnd {} after {operation:?}", view.cwnd);
    let least = least_ssthresh(connection.subflows[k].controller.algorithm());
    prop_assert!(view.ssthresh >= least, "ssthresh {} after {operation:?}", view.ssthresh);
    Ok(())
}

/// cwnd, ssthresh, counter and state of the subflow after an operation.
type Moment = (u32, u32, u32, Vec<u8>);

/// What every operation leads to.
fn history(
    algorithm: &Algorithm,
    parameters: &Option<Vec<u32>>,
    operations: &[(usize, Operation)],
) -> Result<Vec<Moment>, TestCaseError> {
    let mut connection = connection(algorithm, parameters);
    for subflow in &mut connection.subflows {
        subflow.view.cwnd_clamp = CLAMP;
    }
    let mut history = Vec::new();
    for &(k, operation) in operations {
        apply(&mut connection, k, operation)
            .map_err(|error| TestCaseError::fail(format!("{}: {error}", algorithm.name())))?;
        let subflow = &connection.subflows[k];
        let state = subflow.controller.state_bytes().to_vec();
        history.push((subflow.view.cwnd, subflow.view.ssthresh, subflow.view.cwnd_cnt, state));
    }
    Ok(history)
}

proptest! {
    #[test]
    fn every_algorithm_keeps_the_invariants_and_is_deterministic(
        parameters in parameters(),
        operations in operations(),
    ) {
        for algorithm in algorithms() {
            let first = history(algorithm, &parameters, &operations)?;
            let second = history(algorithm, &parameters, &operations)?;
            prop_assert_eq!(first, second, "{}", algorithm.name());
        }
    }

    #[test]
    fn lia_alone_is_reno_to_the_packet(operations in operations(), precision in 0u32..2) {
        let mut lia = Connection::new(1, "lia", &[("precision", precision)]);
        let mut reno = Connection::new(1, "reno", &[]);
        for (_, operation) in operations {
            for connection in [&mut lia, &mut reno] {
                connection.subflows[0].view.cwnd_clamp = CLAMP;
                if !matches!(operation, Operation::Leave | Operation::Join) {
                    apply(connection, 0, operation)?;
                }
            }
            let [a, b] = [&lia, &reno].map(|c| (c.cwnd(0), c.ssthresh(0), c.subflows[0].view.cwnd_cnt));
            prop_assert_eq!(a, b, "after {:?}", operation);
        }
    }

    #[test]
    fn coupled_relatives_of_reno_alone_are_reno_to_the_packet(operations in operations(), precision in 0u32..2) {
        for name in ["ewtcp", "coupled", "semicoupled", "olia", "balia", "dlia", "ecmtcp", "emreno"] {
            let set = [("precision", precision)];
            let mut alone = Connection::new(1, name, if name == "balia" { &set } else { &[] });
            let mut reno = Connection::new(1, "reno", &[]);
            for &(_, operation) in &operations {
                for connection in [&mut alone, &mut reno] {
                    connection.subflows[0].view.cwnd_clamp = CLAMP;
                    if !matches!(operation, Operation::Leave | Operation::Join) {
                        apply(connection, 0, operation)?;
                    }
                }
                let [a, b] = [&alone, &reno].map(|c| (c.cwnd(0), c.ssthresh(0), c.subflows[0].view.cwnd_cnt));
                prop_assert_eq!(a, b, "{} after {:?}", name, operation);
            }
        }
    }

    #[test]
    fn lia_is_never_faster_than_reno(
        windows in [2u32..500, 2u32..500, 2u32..500],
        rtts_us in [1_000u32..1_000_000, 1_000u32..1_000_000, 1_000u32..1_000_000],
        precision in 0u32..2,
        acked in proptest::collection::vec(1u32..4, 1..2000),
    ) {
        let mut lia = Connection::new(3, "lia", &[("precision", precision)]);
        let mut reno = Connection::new(3, "reno", &[]);
        for connection in [&mut lia, &mut reno] {
            for k in 0..3 {
                connection.set(k, windows[k], 2, rtts_us[k]);
            }
        }
        for packets in acked {
            lia.ack(0, packets);
            reno.ack(0, packets);
            prop_assert!(lia.cwnd(0) <= reno.cwnd(0), "LIA {}, Reno {}", lia.cwnd(0), reno.cwnd(0));
        }
    }
}

#[test]
fn registry_names_fit_the_kernel_and_parameters_are_sound() {
    for algorithm in algorithms() {
        assert!(algorithm.name().len() <= 12, "{}", algorithm.name());
        assert!(["A", "B", "C"].contains(&algorithm.tag()), "{}", algorithm.name());
        for p in algorithm.params() {
            assert!(p.min <= p.default && p.default <= p.max, "{}: {}", algorithm.name(), p.name);
            assert!(
                p.choices.is_empty() || p.choices.len() == p.max as usize + 1,
                "{}: {} has a value without a name",
                algorithm.name(),
                p.name
            );
        }
        controller(algorithm.name(), &[]);
    }
}
