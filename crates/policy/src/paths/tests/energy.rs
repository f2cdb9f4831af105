//! `energy`'s choice, and when it opens dear radios.

use super::super::testing::{Host, MS, S, path};
use super::super::{Action, Path, State};
use super::host;
use crate::energy::Linear;

/// Path of a radio, in congestion avoidance, with segments of 1000 bytes.
fn steady(number: u32, radio: Linear, rtt_ms: u32, window: u32) -> Path {
    Path {
        radio: Some(radio),
        srtt_us: 1000 * rtt_ms,
        cwnd_segments: window,
        ssthresh_segments: 1,
        segment_bytes: 1000,
        ..path(number)
    }
}

/// Wi-Fi at 8 Mbit/s, and LTE at 18.
fn wifi_and_lte() -> Vec<Path> {
    vec![steady(0, Linear::WIFI, 10, 10), steady(1, Linear::LTE, 20, 45)]
}

/// Wi-Fi at 80 Mbit/s, and an LTE that crawls.
fn crawling() -> Vec<Path> {
    vec![steady(0, Linear::WIFI, 10, 100), steady(1, Linear::LTE, 2000, 1)]
}

fn backups(host: &Host) -> Vec<bool> {
    host.links.iter().map(|link| link.seen.backup).collect()
}

#[test]
fn ee5_wifi_at_8_and_lte_at_18_are_both_used() {
    let mut host = host("energy", &[("horizon", 10_000)], wifi_and_lte());
    host.run_until(S);
    assert_eq!(backups(&host), [false, false]);
    assert!(host.links.iter().all(|link| link.seen.state == State::Established));
}

#[test]
fn a_path_that_takes_power_for_next_to_nothing_becomes_a_backup_and_stays_open() {
    let mut host = host("energy", &[("horizon", 10_000)], crawling());
    host.run_until(S);
    assert_eq!(backups(&host), [false, true]);
    assert_eq!(host.links[1].seen.state, State::Established);
    assert_eq!(host.all(Action::Backup), [(1, "rate-per-energy")]);
    assert_eq!(host.all(Action::Close), []);
    let (_, decision) =
        host.log.iter().find(|(_, told)| told.action == Action::Backup).expect("there is one");
    // 52 + 1288 / 0.004 nJ per bit.
    let expected =
        [("energy_pj_per_bit", 322_052_000), ("rate_kbps", 4), ("loss_ppm", 0), ("segments", 10_000)];
    assert_eq!(decision.reason.numbers[..4], expected);
    // The subset chosen is worth more than the best other one.
    let [(own, worth), (other, worth_of_other)] = decision.reason.numbers[4..] else { panic!("two more") };
    assert_eq!([own, other], ["bps_per_j", "other_bps_per_j"]);
    assert!(worth > worth_of_other, "{worth} and {worth_of_other}");
}

#[test]
fn a_lossy_path_becomes_a_backup_for_what_it_will_deliver() {
    let paths = vec![steady(0, Linear::WIFI, 10, 10), steady(1, Linear::LTE, 20, 18)];
    let mut host = host("energy", &[("horizon", 10_000)], paths);
    host.run_until(S);
    assert_eq!(backups(&host), [false, false]);
    // The average of the share has a gain of an eighth: a third of all packets, for a while.
    for round in 1..=40 {
        host.links[1].seen.sent_packets = 300 * round;
        host.links[1].seen.retransmits = 100 * round;
        host.run_until(S + round * 20 * MS);
    }
    assert_eq!(backups(&host), [false, true]);
}

#[test]
fn while_a_path_has_no_sample_all_are_used() {
    let mut paths = crawling();
    paths[1].srtt_us = 0;
    let mut host = host("energy", &[], paths);
    host.run_until(S);
    assert_eq!(backups(&host), [false, false]);
    host.links[1].seen.srtt_us = 2_000_000;
    host.run_until(S + 20 * MS);
    assert_eq!(backups(&host), [false, true]);
}

#[test]
fn a_choice_holds_for_a_round_trip_of_the_fastest_chosen_or_for_hold() {
    let improves = |hold: u64| {
        let mut host = host("energy", &[("hold", hold)], crawling());
        host.run_until(S);
        host.links[1].seen.cwnd_segments = 4500;
        host.links[1].seen.srtt_us = 20_000;
        host.run_until(5 * S);
        host.log.iter().find(|(at, told)| *at >= S && told.action == Action::Regular).map(|told| told.0)
    };
    // The second path is there after 40 ms; Wi-Fi has a round trip of 10 ms.
    assert_eq!(improves(0), Some(S + 10 * MS));
    assert_eq!(improves(3 * S), Some(3 * S + 40 * MS));
}

#[test]
fn the_choice_stands_while_nothing_is_left_to_send() {
    let mut host = host("energy", &[], crawling());
    host.run_until(S);
    host.unsent_bytes = 0;
    host.run_until(S + 10 * MS);
    host.links[1].seen.srtt_us = 20_000;
    host.links[1].seen.cwnd_segments = 4500;
    host.run_until(10 * S);
    assert_eq!(backups(&host), [false, true]);
    host.unsent_bytes = u64::MAX;
    host.run_until(10 * S + 200 * MS);
    assert_eq!(backups(&host), [true, false], "LTE at 1.8 Gbit/s needs no Wi-Fi");
}

#[test]
fn when_the_chosen_path_fails_another_choice_is_made_at_once() {
    let mut host = host("energy", &[], crawling());
    host.run_until(S);
    host.set(0, false, false);
    assert_eq!(backups(&host), [false, false]);
    host.set(0, true, false);
    host.run_until(3 * S);
    assert_eq!(backups(&host), [false, true]);
}

#[test]
fn a_spare_path_is_never_chosen() {
    let mut paths = wifi_and_lte();
    paths[1].spare = true;
    let mut host = host("energy", &[("horizon", 10_000)], paths);
    host.run_until(S);
    assert_eq!(backups(&host), [false, true]);
    assert_eq!(host.all(Action::Backup), [(1, "configured")]);
}

/// When each of LTE and a second Wi-Fi is opened with 1 MB and 3 s, data flowing at this rate in bit/s.
fn opened(rate_bps: u64, unsent_bytes: u64) -> Vec<(usize, u64)> {
    let paths = vec![
        steady(0, Linear::WIFI, 10, 10),
        steady(1, Linear::LTE, 20, 45),
        steady(2, Linear::WIFI, 10, 10),
    ];
    let mut host = host("energy", &[("late_bytes", 1_000_000)], paths);
    host.unsent_bytes = unsent_bytes;
    host.links[0].rate_bps = rate_bps;
    host.links[2].rate_bps = 0;
    host.run_until(30 * S);
    let tries = host.log.iter().filter(|(_, told)| told.action == Action::Open);
    tries.map(|(at, told)| (told.path, at / (100 * MS))).collect()
}

#[test]
fn a_dear_radio_is_opened_when_a_megabyte_was_delivered_and_a_cheap_one_at_once() {
    // 1 MB at 4 Mbit/s takes 2 s, and is seen within 100 ms.
    assert_eq!(opened(4_000_000, u64::MAX), [(2, 0), (1, 20)]);
}

#[test]
fn a_dear_radio_is_opened_after_three_seconds_of_a_slow_connection() {
    assert_eq!(opened(100_000, u64::MAX), [(2, 0), (1, 30)]);
    assert_eq!(opened(100_000, 0), [(2, 0), (1, 30)], "data come in");
}

#[test]
fn an_idle_connection_does_not_wake_a_dear_radio() {
    assert_eq!(opened(0, 0), [(2, 0)]);
}
