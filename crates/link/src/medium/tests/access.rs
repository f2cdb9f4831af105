//! Who may send when: interframe spaces, lost acknowledgements, RTS/CTS, rates.

use super::*;

/// Advances until an exchange begins; returns when it does.
fn next_start(medium: &mut Medium<Tagged>) -> Nanos {
    let before = medium.counters().airtime.transmissions;
    loop {
        let now = medium.next_event();
        medium.advance(now, |_| {});
        if medium.counters().airtime.transmissions > before {
            return now;
        }
    }
}

/// End of the frame that has just begun.
fn end_of_frame(medium: &Medium<Tagged>) -> Nanos {
    medium.frame_end.expect("a frame is on the air")
}

/// Windows of no slot: backoffs are 0, and what remains are the interframe spaces.
fn without_backoff() -> MediumConfig {
    MediumConfig { cw_min: 0, cw_max: 0, ..config() }
}

/// Time of an acknowledgement: preamble, and 14 bytes.
fn acknowledgement(mbps: u64) -> Nanos {
    192 * US + 112 * US / mbps
}

#[test]
fn after_a_damaged_frame_the_sender_waits_for_what_the_key_says_and_difs() {
    let waits = [
        (AfterFailure::Acknowledgement, 10 * US + acknowledgement(2)),
        (AfterFailure::Nothing, 0),
        // ACKTimeout: SIFS, a slot and the start of the receiver.
        (AfterFailure::Extended, 10 * US + 20 * US + 192 * US),
    ];
    for (after_failure, wait) in waits {
        let mut medium = noisy(MediumConfig { after_failure, ..without_backoff() }, 1, 1.0);
        medium.offer(0, 0, Tagged { station: 0, bytes: 500 }).expect("the queue is empty");
        next_start(&mut medium);
        let end = end_of_frame(&medium);
        assert_eq!(next_start(&mut medium), end + wait + 50 * US, "{after_failure:?}");
    }
}

#[test]
fn after_a_damaged_frame_the_others_wait_for_what_the_key_says() {
    let waits = [
        (AfterFailure::Acknowledgement, 10 * US + acknowledgement(2) + 50 * US),
        (AfterFailure::Nothing, 50 * US),
        // EIFS of 802.11b with the long preamble: 364 us.
        (AfterFailure::Extended, 364 * US),
    ];
    for (after_failure, wait) in waits {
        let mut medium = noisy(MediumConfig { after_failure, retry_limit: 1, ..without_backoff() }, 2, 1.0);
        medium.offer(0, 0, Tagged { station: 0, bytes: 500 }).expect("the queue is empty");
        next_start(&mut medium);
        let end = end_of_frame(&medium);
        medium.offer(end - 1, 1, Tagged { station: 1, bytes: 500 }).expect("the queue is empty");
        assert_eq!(next_start(&mut medium), end + wait, "{after_failure:?}");
    }
}

/// The acknowledgement of a correct frame ends EIFS: all go on after DIFS.
#[test]
fn after_an_acknowledged_frame_all_wait_for_difs() {
    let config = MediumConfig { after_failure: AfterFailure::Extended, ..without_backoff() };
    let mut medium = medium(config, 2);
    medium.offer(0, 0, Tagged { station: 0, bytes: 500 }).expect("the queue is empty");
    next_start(&mut medium);
    let end = end_of_frame(&medium);
    medium.offer(end - 1, 1, Tagged { station: 1, bytes: 500 }).expect("the queue is empty");
    assert_eq!(next_start(&mut medium), end + 10 * US + acknowledgement(2) + 50 * US);
}

/// A slot time holds what a station needs to notice another's start (IEEE 802.11-2020 section 10.3.7).
#[test]
fn with_eifs_stations_that_become_ready_within_a_slot_time_collide() {
    for (gap, collisions) in [(19 * US, 1), (20 * US, 0)] {
        let config = MediumConfig { after_failure: AfterFailure::Extended, ..without_backoff() };
        let mut medium = medium(config, 2);
        medium.stations[1].idle_from = gap;
        for station in 0..2 {
            medium.offer(0, station, Tagged { station, bytes: 500 }).expect("the queue is empty");
        }
        next_start(&mut medium);
        medium.advance(medium.next_event(), |_| {});
        assert_eq!(medium.counters().airtime.collisions, collisions, "a gap of {gap} ns");
    }
}

#[test]
fn a_frame_that_finds_the_medium_busy_backs_off_if_the_key_says_so() {
    // Four stations get a frame while a fifth sends. Without backoff all begin at once and collide.
    for (backoff_when_busy, senders) in [(false, 4), (true, 1)] {
        let config = MediumConfig { backoff_when_busy, cw_min: 1023, ..config() };
        let mut medium = medium(config, 5);
        medium.offer(0, 4, Tagged { station: 4, bytes: 500 }).expect("the queue is empty");
        let start = next_start(&mut medium);
        for station in 0..4 {
            medium.offer(start + 1, station, Tagged { station, bytes: 500 }).expect("the queue is empty");
        }
        next_start(&mut medium);
        assert_eq!(medium.senders.len(), senders, "backoff_when_busy = {backoff_when_busy}");
    }
}

#[test]
fn a_frame_that_finds_the_medium_idle_for_difs_is_sent_at_once() {
    let mut medium = medium(MediumConfig { backoff_when_busy: true, ..config() }, 1);
    medium.offer(60 * US, 0, Tagged { station: 0, bytes: 500 }).expect("the queue is empty");
    assert_eq!(medium.next_event(), 60 * US);
}

#[test]
fn a_frame_whose_acknowledgement_is_lost_is_sent_again_and_arrives_once() {
    let config = MediumConfig { ack_loss: Probability::new(0.3), retry_limit: 2, ..config() };
    let mut medium = noisy(config, 2, 0.2);
    let (mut arrived, mut given_up) = (vec![], 0);
    let (mut now, mut next) = (0, 0);
    while now < 20_000_000 * US {
        for station in 0..2 {
            // The number of the frame stands for its size.
            while medium.offer(now, station, Tagged { station, bytes: 100 + next % 1000 }).is_ok() {
                next += 1;
            }
        }
        now = medium.next_event();
        medium.advance(now, |delivery| match delivery {
            Delivery::Arrived(packet) => arrived.push(packet),
            Delivery::GivenUp(_) => given_up += 1,
        });
    }
    let counters = medium.counters();
    assert!(arrived.len() > 3_000 && given_up > 0, "{} {given_up}", arrived.len());
    for station in 0..2 {
        let own: Vec<_> = arrived.iter().filter(|packet| packet.station == station).collect();
        assert!(own.windows(2).all(|pair| pair[0] != pair[1]), "a repetition reached the next node");
    }
    let pending = medium.stations.iter().filter(|station| station.has_arrived).count() as u64;
    let waiting = u64::from(medium.queued()) - pending + medium.in_flight.len() as u64;
    assert_eq!(counters.offered, counters.dropped_queue + counters.lost + counters.delivered + waiting);
}

/// Without noise and collisions every frame needs 1 / (1 - q) transmissions, if nothing limits them.
#[test]
fn lost_acknowledgements_cost_repetitions_as_a_geometric_distribution_has_it() {
    let q = 0.25;
    let config = MediumConfig { ack_loss: Probability::new(q), retry_limit: u32::MAX, ..config() };
    let mut medium = medium(config, 1);
    let (arrived, given_up) = saturate(&mut medium, 1, 200, 60_000_000 * US);
    assert_eq!(given_up, 0);
    let air = medium.counters().airtime;
    let per_frame = air.transmissions as f64 / arrived[0] as f64;
    // 40,000 frames: the standard error of the mean is sqrt(q) / (1 - q) / 200 = 0.0033.
    assert!((per_frame - 1.0 / (1.0 - q)).abs() < 0.01, "{per_frame}");
    let begun = air.transmissions - air.retries;
    assert!(begun.abs_diff(arrived[0]) <= 1, "{begun} first transmissions of {} frames", arrived[0]);
}

#[test]
fn long_frames_go_behind_rts_and_cts() {
    let config = MediumConfig { rts_threshold_bytes: Some(533), ..without_backoff() };
    let control = |bytes: u64| 192 * US + bytes * 8 * US / 2;
    let body = |bytes: u64| 192 * US + (bytes + 34) * 8 * US / 11;
    let announcement = control(20) + 10 * US + control(14) + 10 * US;
    for (bytes, before) in [(499, 0), (500, announcement)] {
        let mut medium = medium(config.clone(), 1);
        medium.offer(0, 0, Tagged { station: 0, bytes }).expect("the queue is empty");
        let start = next_start(&mut medium);
        let took = end_of_frame(&medium) - start;
        assert!(took.abs_diff(before + body(u64::from(bytes))) <= US, "{bytes} B took {took} ns");
    }
}

#[test]
fn a_collision_of_announced_frames_takes_the_time_of_an_rts() {
    let config = MediumConfig { rts_threshold_bytes: Some(0), ..without_backoff() };
    let mut medium = medium(config, 2);
    for station in 0..2 {
        medium.offer(0, station, Tagged { station, bytes: 1500 }).expect("the queue is empty");
    }
    let start = next_start(&mut medium);
    assert_eq!(end_of_frame(&medium) - start, 192 * US + 80 * US);
}

#[test]
fn damaged_frames_after_rts_and_cts_count_against_the_long_retry_limit() {
    let given_up_after = |rts_threshold_bytes| {
        let config = MediumConfig { rts_threshold_bytes, long_retry_limit: 3, ..config() };
        let mut medium = noisy(config, 1, 1.0);
        let (_, given_up) = saturate(&mut medium, 1, 500, 5_000_000 * US);
        medium.counters().airtime.transmissions / given_up
    };
    assert_eq!((given_up_after(None), given_up_after(Some(0))), (7, 3));
}

/// At the upper rate nothing arrives: ten frames at the lower rate, one probe, and so on.
#[test]
fn a_rate_that_never_works_is_probed_once_in_eleven_transmissions() {
    let rate = |rate_bps, loss| RateStep { rate_bps, loss: Probability::new(loss) };
    let ladder = Transmitter { rates: vec![rate(2_000_000, 0.0), rate(11_000_000, 1.0)], start: 0 };
    let config =
        MediumConfig { transmitters: vec![ladder], fallback: Some(Fallback { down: 2, up: 10 }), ..config() };
    let mut medium = of_stations(config);
    let (arrived, given_up) = saturate(&mut medium, 1, 1000, 20_000_000 * US);
    let air = medium.counters().airtime;
    assert_eq!(given_up, 0);
    assert!((10 * air.retries).abs_diff(arrived[0]) <= 10, "{air:?}, {} arrived", arrived[0]);
}

/// Upper rate with loss p, lower without: a visit to the upper one is a probe and, if that is acknowledged, as many
/// transmissions as two failures in a row take to come, (1 + p) / p^2; a visit to the lower one is ten.
#[test]
fn the_share_of_the_upper_rate_is_that_of_the_markov_chain() {
    let p = 0.5;
    let rate = |rate_bps, loss| RateStep { rate_bps, loss: Probability::new(loss) };
    let ladder = Transmitter { rates: vec![rate(2_000_000, 0.0), rate(11_000_000, p)], start: 0 };
    let config = MediumConfig {
        transmitters: vec![ladder],
        fallback: Some(Fallback { down: 2, up: 10 }),
        retry_limit: u32::MAX,
        ..config()
    };
    let mut medium = of_stations(config);
    saturate(&mut medium, 1, 500, 200_000_000 * US);
    let air = medium.counters().airtime;
    let upper = 1.0 + (1.0 - p) * (1.0 + p) / (p * p);
    let expected = upper / (10.0 + upper);
    // Only the upper rate has failures, a share p of its transmissions.
    let share = air.retries as f64 / p / air.transmissions as f64;
    // 5,000 visits of 4 transmissions with a standard deviation of 4.5: a standard error of 1.5 %.
    assert!((share / expected - 1.0).abs() < 0.045, "{share} for {expected}, {air:?}");
}

#[test]
fn a_change_of_the_rate_is_for_all_stations_and_rates() {
    let rate = |rate_bps| RateStep { rate_bps, loss: Probability::ZERO };
    let ladder = Transmitter { rates: vec![rate(1_000_000), rate(2_000_000)], start: 1 };
    let mut medium = of_stations(MediumConfig { transmitters: vec![ladder; 2], ..without_backoff() });
    medium.set_rate(8_000_000);
    medium.offer(0, 1, Tagged { station: 1, bytes: 966 }).expect("the queue is empty");
    let start = next_start(&mut medium);
    assert_eq!(end_of_frame(&medium) - start, 1192 * US);
}
