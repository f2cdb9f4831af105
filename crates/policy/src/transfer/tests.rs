use std::collections::VecDeque;

use proptest::{collection::vec, prelude::*};

use super::*;

fn claims(distributor: &mut Distributor, workers: &[usize]) -> Vec<Option<u64>> {
    workers.iter().map(|&worker| distributor.claim(worker)).collect()
}

/// A file of so many chunks.
fn file(count: u64) -> Chunks {
    Chunks::new(count * 10, 10)
}

#[test]
fn c9_check_one_worker_four_times_as_fast_as_the_other() {
    let mut distributor = Distributor::new(file(5), 2);
    let claimed = claims(&mut distributor, &[0, 1, 0, 0, 0, 0, 1]);
    assert_eq!(claimed, [Some(0), Some(4), Some(1), Some(2), Some(3), None, None]);
}

#[test]
fn i_s3_1_check_three_chunks_in_turn_of_which_the_paper_loses_the_middle_one() {
    let mut distributor = Distributor::new(file(3), 2);
    assert_eq!(claims(&mut distributor, &[0, 1, 0, 1]), [Some(0), Some(2), Some(1), None]);
}

#[test]
fn i_s3_3_the_last_chunk_is_shorter_and_an_empty_file_has_none() {
    let chunks = Chunks::new(25, 10);
    let places: Vec<_> = (0..chunks.count()).map(|chunk| (chunks.offset(chunk), chunks.len(chunk))).collect();
    assert_eq!(places, [(0, 10), (10, 10), (20, 5)]);
    assert_eq!(
        (Chunks::new(0, 10).count(), Chunks::new(1, 10).count(), Chunks::new(20, 10).count()),
        (0, 1, 2)
    );
    let mut empty = Distributor::new(Chunks::new(0, 10), 2);
    assert!(empty.is_complete());
    assert_eq!(claims(&mut empty, &[0, 1]), [None, None]);
}

#[test]
fn h3_three_workers_have_a_third_each_and_then_take_from_the_end_of_the_largest_rest() {
    let mut distributor = Distributor::new(file(9), 3);
    assert_eq!(claims(&mut distributor, &[0, 1, 2]), [Some(0), Some(3), Some(6)]);
    // The second worker is the fast one: its own, then the ends of the two others in turn, the first of equals first.
    let fast = claims(&mut distributor, &[1; 7]);
    assert_eq!(fast, [Some(4), Some(5), Some(2), Some(8), Some(1), Some(7), None]);
}

#[test]
fn a_run_is_what_single_claims_of_one_source_would_give() {
    let mut distributor = Distributor::new(file(10), 2);
    assert_eq!(distributor.claim_run(0, 3), Some(0..3));
    assert_eq!(distributor.claim_run(1, 3), Some(7..10), "from the end, though its bytes are sent upwards");
    assert_eq!(distributor.claim_run(1, 2), Some(5..7));
    distributor.failed(0);
    assert_eq!(distributor.claim_run(1, 9), Some(0..3), "what was given back, and no more");
    assert_eq!(distributor.claim_run(0, 9), Some(3..5));
    assert_eq!((distributor.claim_run(0, 1), distributor.unclaimed()), (None, 0));
    assert_eq!(distributor.held(1).collect::<Vec<_>>(), [9, 8, 7, 6, 5, 0, 1, 2]);
    assert_eq!((distributor.claims(), distributor.claimed_again()), (13, 3));
}

#[test]
fn a_run_ends_before_what_has_arrived() {
    let mut arrived = Bitmap::new(6);
    arrived.insert(2);
    let mut distributor = Distributor::resume(file(6), 1, arrived);
    assert_eq!(distributor.claim_run(0, 6), Some(0..2));
    assert_eq!(distributor.claim_run(0, 6), Some(3..6));
    assert_eq!(distributor.claim_run(0, 6), None);
}

#[test]
fn what_a_failed_worker_held_goes_first_and_to_whoever_asks() {
    let mut distributor = Distributor::new(file(6), 2);
    assert_eq!(claims(&mut distributor, &[0, 0, 1]), [Some(0), Some(1), Some(5)]);
    assert_eq!(distributor.arrived(0, 0), Arrival::First);
    assert_eq!(distributor.failed(0), 1);
    assert_eq!(claims(&mut distributor, &[1, 1]), [Some(1), Some(4)]);
    assert_eq!(distributor.claimed_again(), 1);
    // It is back: what was under way arrives late, and it goes on.
    assert_eq!(distributor.arrived(0, 1), Arrival::First);
    assert_eq!(distributor.arrived(1, 1), Arrival::Again);
    assert_eq!(distributor.claim(0), Some(2));
}

#[test]
fn what_arrives_late_but_before_somebody_claims_it_is_not_sent_again() {
    let mut distributor = Distributor::new(file(2), 2);
    assert_eq!(claims(&mut distributor, &[0, 1]), [Some(0), Some(1)]);
    distributor.failed(0);
    assert_eq!(distributor.arrived(0, 0), Arrival::First);
    assert_eq!((distributor.claim(1), distributor.unclaimed()), (None, 0));
}

#[test]
fn a_map_that_does_not_belong_to_the_file_is_refused() {
    assert_eq!(Bitmap::from_bytes(9, &[0xff]), Err(BitmapError::Length { found: 1, expected: 2 }));
    assert_eq!(Bitmap::from_bytes(9, &[0xff, 0x02]), Err(BitmapError::BeyondTheEnd));
    let map = Bitmap::from_bytes(9, &[0xfe, 0x01]).expect("nine chunks, of which the first is missing");
    assert_eq!((map.set_count(), map.contains(0), map.contains(8)), (8, false, true));
}

/// What may happen to a transfer.
#[derive(Clone, Debug)]
enum Step {
    Claim(usize),
    /// The oldest chunk that is under way on a worker's connection arrives.
    Arrive(usize),
    Fail(usize),
    /// Everything stops; the transfer goes on from the kept map, with so many workers, and nothing is under way.
    Restart(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let worker = || 0..4_usize;
    vec(
        prop_oneof![
            8 => worker().prop_map(Step::Claim),
            6 => worker().prop_map(Step::Arrive),
            1 => worker().prop_map(Step::Fail),
            1 => (1..=4_usize).prop_map(Step::Restart),
        ],
        0..200,
    )
}

/// A transfer with its connections, which deliver in order whatever was put into them, also after they have failed.
struct Rig {
    distributor: Distributor,
    under_way: Vec<VecDeque<u64>>,
    first_arrivals: Vec<u32>,
}

impl Rig {
    fn new(chunks: Chunks, workers: usize) -> Self {
        let first_arrivals = vec![0; chunks.count() as usize];
        Self {
            distributor: Distributor::new(chunks, workers),
            under_way: vec![VecDeque::new(); workers],
            first_arrivals,
        }
    }

    fn claim(&mut self, worker: usize) -> bool {
        let before = self.distributor.unclaimed();
        let Some(chunk) = self.distributor.claim(worker) else {
            assert_eq!(before, 0, "a chunk was left and nobody got it");
            return false;
        };
        assert_eq!(self.distributor.unclaimed(), before - 1);
        assert!(!self.distributor.arrived_chunks().contains(chunk), "it is there already");
        self.under_way[worker].push_back(chunk);
        true
    }

    fn arrive(&mut self, worker: usize) -> bool {
        let Some(chunk) = self.under_way[worker].pop_front() else { return false };
        if self.distributor.arrived(worker, chunk) == Arrival::First {
            self.first_arrivals[chunk as usize] += 1;
        }
        true
    }

    /// Every chunk is in exactly one of the four states.
    fn check(&self) {
        let distributor = &self.distributor;
        let arrived = distributor.arrived_chunks();
        let mut held: Vec<u64> =
            (0..self.under_way.len()).flat_map(|worker| distributor.held(worker)).collect();
        held.retain(|&chunk| !arrived.contains(chunk));
        held.sort_unstable();
        assert!(held.windows(2).all(|pair| pair[0] < pair[1]), "two workers hold one chunk: {held:?}");
        assert_eq!(arrived.set_count() + held.len() as u64 + distributor.unclaimed(), arrived.count());
    }
}

proptest! {
    #[test]
    fn every_chunk_arrives_once_whatever_the_order_of_claims_failures_and_returns(
        count in 0..40_u64, workers in 1..=4_usize, steps in steps(),
    ) {
        let mut rig = Rig::new(file(count), workers);
        for step in steps {
            let workers = rig.under_way.len();
            match step {
                Step::Claim(worker) => _ = rig.claim(worker % workers),
                Step::Arrive(worker) => _ = rig.arrive(worker % workers),
                Step::Fail(worker) => _ = rig.distributor.failed(worker % workers),
                Step::Restart(workers) => {
                    let kept = rig.distributor.arrived_chunks();
                    let map = Bitmap::from_bytes(kept.count(), kept.as_bytes()).expect("its own bytes");
                    prop_assert_eq!(&map, kept);
                    rig.distributor = Distributor::resume(rig.distributor.chunks(), workers, map);
                    rig.under_way = vec![VecDeque::new(); workers];
                }
            }
            rig.check();
        }
        // One worker is enough to end it, once the others have failed.
        for worker in 1..rig.under_way.len() {
            rig.distributor.failed(worker);
        }
        while rig.claim(0) || rig.arrive(0) {
            rig.check();
        }
        prop_assert!(rig.distributor.is_complete());
        prop_assert!(rig.first_arrivals.iter().all(|&arrivals| arrivals == 1));
    }

    #[test]
    fn without_failures_no_chunk_is_claimed_twice_and_two_workers_keep_to_their_ends(
        count in 0..60_u64, turns in vec(0..2_usize, 130),
    ) {
        let mut rig = Rig::new(file(count), 2);
        for worker in turns {
            rig.claim(worker);
        }
        while rig.claim(0) {}
        let [up, down] = [0, 1].map(|worker| rig.under_way[worker].iter().copied().collect::<Vec<u64>>());
        let split = up.len() as u64;
        prop_assert!(up.into_iter().eq(0..split));
        prop_assert!(down.into_iter().eq((split..count).rev()));
        prop_assert_eq!((rig.distributor.claims(), rig.distributor.claimed_again()), (count, 0));
    }
}
