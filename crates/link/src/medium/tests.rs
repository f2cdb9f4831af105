use super::*;
use crate::Streams;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tagged {
    station: usize,
    bytes: u32,
}

impl Frame for Tagged {
    fn bytes(&self) -> u32 {
        self.bytes
    }
}

const US: Nanos = 1_000;

/// IEEE 802.11b with a long preamble.
fn config() -> MediumConfig {
    MediumConfig {
        rate_bps: 11_000_000,
        basic_rate_bps: 2_000_000,
        delay: 0,
        limit: Limit::Packets(50),
        loss: Probability::ZERO,
        slot: 20 * US,
        sifs: 10 * US,
        preamble: 192 * US,
        mac_header_bytes: 34,
        cw_min: 31,
        cw_max: 1023,
        retry_limit: 7,
    }
}

fn medium(config: MediumConfig, stations: usize) -> Medium<Tagged> {
    Medium::new(config, stations, Streams::new(5).stream("medium"))
}

/// Keeps every station's queue full until `end`; returns what arrived and what was given up, per station.
fn saturate(medium: &mut Medium<Tagged>, stations: usize, bytes: u32, end: Nanos) -> (Vec<u64>, u64) {
    let mut arrived = vec![0; stations];
    let mut given_up = 0;
    let mut now = 0;
    while now < end {
        for station in 0..stations {
            while medium.offer(now, station, Tagged { station, bytes }).is_ok() {}
        }
        now = medium.next_event();
        medium.advance(now, |delivery| match delivery {
            Delivery::Arrived(packet) => arrived[packet.station] += 1,
            Delivery::GivenUp(_) => given_up += 1,
        });
    }
    (arrived, given_up)
}

#[test]
fn a_lone_frame_is_sent_after_difs_and_arrives_when_its_body_ends() {
    let mut medium = medium(config(), 2);
    medium.offer(0, 0, Tagged { station: 0, bytes: 1000 }).expect("the queue is empty");
    assert_eq!(medium.next_event(), 50 * US, "DIFS is SIFS and two slots");
    medium.advance(50 * US, |_| unreachable!("the frame has only begun"));
    let body = 192 * US + 1034 * 8 * US / 11;
    let end = medium.next_event();
    assert!(end.abs_diff(50 * US + body) <= US, "{end}");
    medium.advance(end, |_| unreachable!("the frame is on its way"));
    let mut arrived = None;
    medium.advance(medium.next_event(), |delivery| arrived = Some(delivery));
    assert_eq!(arrived, Some(Delivery::Arrived(Tagged { station: 0, bytes: 1000 })));
}

#[test]
fn one_station_alone_reaches_the_rate_of_its_exchange() {
    let seconds = 20;
    let mut medium = medium(config(), 1);
    let (arrived, _) = saturate(&mut medium, 1, 1000, seconds * 1_000_000 * US);
    // DIFS + mean backoff (31/2 slots) + preamble + body + SIFS + preamble + 14 bytes at 2 Mbit/s
    let exchange_us = 50.0 + 15.5 * 20.0 + 192.0 + 1034.0 * 8.0 / 11.0 + 10.0 + 192.0 + 56.0;
    let expected = seconds as f64 * 1e6 / exchange_us;
    let ratio = arrived[0] as f64 / expected;
    assert!((0.99..1.01).contains(&ratio), "{} frames for {expected}", arrived[0]);
    assert_eq!(medium.counters().collisions, 0);
}

#[test]
fn stations_share_the_medium_evenly_and_collide_sometimes() {
    let mut medium = medium(config(), 4);
    let (arrived, _) = saturate(&mut medium, 4, 1000, 20_000_000 * US);
    let total: u64 = arrived.iter().sum();
    for (station, &count) in arrived.iter().enumerate() {
        let share = count as f64 / total as f64;
        assert!((0.22..0.28).contains(&share), "station {station} has {share}");
    }
    let counters = medium.counters();
    assert!(counters.collisions * 20 > counters.transmissions, "{counters:?}");
    assert!(counters.collisions * 5 < counters.transmissions, "{counters:?}");
}

#[test]
fn a_frame_is_given_up_at_the_retry_limit() {
    let mut medium = medium(MediumConfig { loss: Probability::new(1.0), ..config() }, 1);
    let (arrived, given_up) = saturate(&mut medium, 1, 500, 5_000_000 * US);
    assert_eq!(arrived[0], 0);
    assert!(given_up > 10);
    let transmissions = medium.counters().transmissions;
    assert!(transmissions / 7 == given_up || transmissions / 7 == given_up + 1, "{transmissions} {given_up}");
}

#[test]
fn every_packet_offered_is_waiting_arrived_given_up_or_refused() {
    let mut medium = medium(MediumConfig { loss: Probability::new(0.5), retry_limit: 2, ..config() }, 3);
    saturate(&mut medium, 3, 700, 3_000_000 * US);
    let c = medium.counters();
    let in_flight = medium.in_flight.len() as u64;
    assert_eq!(c.offered, c.dropped_queue + c.lost + c.delivered + u64::from(medium.queued()) + in_flight);
    assert!(c.lost > 0 && c.dropped_queue > 0 && c.delivered > 0);
}

#[test]
fn a_medium_that_goes_down_drops_everything() {
    let mut medium = medium(config(), 2);
    for station in 0..2 {
        medium.offer(0, station, Tagged { station, bytes: 100 }).expect("there is room");
    }
    let mut dropped = 0;
    medium.set_up(10, false, |_| dropped += 1);
    assert_eq!((dropped, medium.next_event()), (2, NEVER));
    assert_eq!(medium.offer(20, 0, Tagged { station: 0, bytes: 100 }), Err(Drop::Down));
}

#[test]
fn noise_in_bursts_hits_the_share_of_transmissions_that_the_bad_state_has() {
    let mut medium = medium(config(), 2);
    let [p, r] = [0.05, 0.2].map(Probability::new);
    let (loss_good, loss_bad) = (Probability::ZERO, Probability::ONE);
    medium.set_bursts(Some(GilbertElliott { p, r, loss_good, loss_bad, is_bad: false }));
    let (arrived, given_up) = saturate(&mut medium, 1, 500, 60_000_000_000);
    let sent = medium.counters().transmissions as f64;
    let failed = 1.0 - arrived[0] as f64 / sent;
    // The states of successive transmissions have the correlation 0.75, so the variance is 7 times that of independent ones.
    let allowed = 3.0 * (0.2 * 0.8 * 7.0 / sent).sqrt();
    assert!((failed - 0.2).abs() < allowed, "{failed} for 0.2, three standard errors: {allowed}");
    assert!(given_up > 0, "a burst may outlast the retries");
}
