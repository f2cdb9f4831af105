use super::*;
use crate::Streams;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sized(u32);

impl Frame for Sized {
    fn bytes(&self) -> u32 {
        self.0
    }
}

const MS: Nanos = 1_000_000;

fn wire(limit: Limit) -> Wire<Sized> {
    let config = WireConfig { rate_bps: 8_000_000, delay: 10 * MS, limit, loss: Probability::ZERO };
    Wire::new(config, Streams::new(1).stream("w"))
}

#[test]
fn a_packet_arrives_after_its_transmission_and_the_delay() {
    let mut wire = wire(Limit::Unlimited);
    assert_eq!(wire.offer(5 * MS, Sized(1000)), Offer::First(16 * MS), "1 ms at 8 Mbit/s and 10 ms");
    assert_eq!(wire.offer(5 * MS, Sized(1000)), Offer::Behind);
    assert_eq!(wire.arrive(), (Ok(Sized(1000)), 17 * MS));
    assert_eq!(wire.arrive(), (Ok(Sized(1000)), NEVER));
}

#[test]
fn the_limit_counts_the_packet_in_transmission() {
    let mut wire = wire(Limit::Packets(2));
    assert_eq!(wire.offer(0, Sized(1000)), Offer::First(11 * MS));
    assert_eq!(wire.offer(0, Sized(1000)), Offer::Behind);
    assert_eq!(wire.offer(0, Sized(1000)), Offer::Dropped(Drop::Queue));
    assert_eq!(wire.offer(MS - 1, Sized(1000)), Offer::Dropped(Drop::Queue), "the first is still being sent");
    assert_eq!(wire.offer(MS, Sized(1000)), Offer::Behind, "the first has left");
    assert_eq!(wire.queued(MS), 2);
    assert_eq!(wire.queued(3 * MS), 0);
    assert_eq!(wire.counters().dropped_queue, 2);
}

#[test]
fn a_limit_in_bytes_admits_what_fits() {
    let mut wire = wire(Limit::Bytes(1500));
    assert_eq!(wire.offer(0, Sized(1000)), Offer::First(11 * MS));
    assert_eq!(wire.offer(0, Sized(501)), Offer::Dropped(Drop::Queue));
    assert_eq!(wire.offer(0, Sized(500)), Offer::Behind);
    assert_eq!(wire.offer(MS, Sized(1000)), Offer::Behind);
}

#[test]
fn a_new_rate_holds_for_the_rest_of_the_packet_in_transmission() {
    let mut wire = wire(Limit::Unlimited);
    wire.offer(0, Sized(1000));
    wire.offer(0, Sized(1000));
    let first = wire.set_rate(MS / 2, 4_000_000);
    assert_eq!(first, MS / 2 + MS + 10 * MS, "half of the packet is left, at half of the rate");
    assert_eq!(wire.arrive().1, first + 2 * MS);
}

#[test]
fn a_shorter_delay_does_not_let_a_packet_overtake() {
    let mut wire = wire(Limit::Unlimited);
    wire.offer(0, Sized(1000));
    wire.offer(MS, Sized(1000));
    wire.set_delay(MS, MS);
    assert_eq!(wire.next_arrival(), 11 * MS);
    assert_eq!(wire.arrive().1, 11 * MS, "the second would be there at 3 ms");
    wire.arrive();
    assert_eq!(wire.offer(20 * MS, Sized(1000)), Offer::First(22 * MS));
}

#[test]
fn a_link_that_goes_down_drops_what_it_carries_and_what_it_is_offered() {
    let mut wire = wire(Limit::Unlimited);
    wire.offer(0, Sized(1000));
    wire.offer(0, Sized(2000));
    let mut gone = Vec::new();
    assert_eq!(wire.set_up(MS, false, |packet| gone.push(packet.0)), NEVER);
    assert_eq!(gone, [1000, 2000]);
    assert_eq!(wire.offer(2 * MS, Sized(1000)), Offer::Dropped(Drop::Down));
    wire.set_up(3 * MS, true, |_| unreachable!("nothing is on the wire"));
    assert_eq!(wire.offer(3 * MS, Sized(1000)), Offer::First(14 * MS));
}

#[test]
fn random_loss_takes_the_share_it_says_and_uses_the_link() {
    let config =
        WireConfig { rate_bps: 8_000_000, delay: 0, limit: Limit::Unlimited, loss: Probability::new(0.1) };
    let mut wire = Wire::new(config, Streams::new(3).stream("w"));
    for n in 0..10_000_u64 {
        assert_eq!(wire.offer(n * MS, Sized(1000)), Offer::First((n + 1) * MS));
        let _ = wire.arrive();
    }
    let counters = wire.counters();
    assert_eq!(counters.lost + counters.delivered, 10_000);
    assert!(
        (880..1120).contains(&counters.lost),
        "{} of 1000 expected (4 standard deviations)",
        counters.lost
    );
}

proptest! {
    /// The one-event wire against a plain queue that is stepped packet by packet.
    #[test]
    fn it_does_what_a_stepped_queue_does(
        offers in prop::collection::vec((0_u64..3_000_000, 40_u32..2000), 1..200),
        limit in prop_oneof![(1_u32..20).prop_map(Limit::Packets), (2000_u64..20_000).prop_map(Limit::Bytes)],
    ) {
        let mut wire = wire(limit);
        let mut stepped = Stepped::default();
        let mut now = 0;
        let mut due = NEVER;
        let mut arrivals = Vec::new();
        for (gap, bytes) in offers {
            now += gap;
            while due <= now {
                let (packet, next) = wire.arrive();
                arrivals.push((due, packet.expect("no random loss").0));
                due = next;
            }
            let accepted = stepped.offer(now, bytes, limit);
            match wire.offer(now, Sized(bytes)) {
                Offer::First(at) => { prop_assert!(accepted); due = at; }
                Offer::Behind => prop_assert!(accepted),
                Offer::Dropped(_) => prop_assert!(!accepted),
            }
        }
        while due != NEVER {
            let (packet, next) = wire.arrive();
            arrivals.push((due, packet.expect("no random loss").0));
            due = next;
        }
        prop_assert_eq!(arrivals, stepped.arrivals);
    }
}

#[derive(Default)]
struct Stepped {
    waiting: std::collections::VecDeque<(Nanos, u32)>,
    free_at: Nanos,
    arrivals: Vec<(Nanos, u32)>,
}

impl Stepped {
    fn offer(&mut self, now: Nanos, bytes: u32, limit: Limit) -> bool {
        while self.waiting.front().is_some_and(|&(departs, _)| departs <= now) {
            self.waiting.pop_front();
        }
        let held: u64 = self.waiting.iter().map(|&(_, bytes)| u64::from(bytes)).sum();
        let fits = match limit {
            Limit::Unlimited => true,
            Limit::Packets(packets) => self.waiting.len() < packets as usize,
            Limit::Bytes(limit) => held + u64::from(bytes) <= limit,
        };
        if fits {
            self.free_at = self.free_at.max(now) + u64::from(bytes) * 1000;
            self.waiting.push_back((self.free_at, bytes));
            self.arrivals.push((self.free_at + 10 * MS, bytes));
        }
        fits
    }
}
