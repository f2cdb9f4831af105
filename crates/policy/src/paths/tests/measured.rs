//! PCDC's measurement.

use super::super::pcdc::{impact_ppm, ranked, subset};
use super::super::testing::{Host, S, path};
use super::super::{Action, Path};
use super::host;

#[test]
fn the_impact_factor_is_one_minus_the_share_of_the_throughput_without_the_subflow() {
    // D6, check 1.
    assert_eq!(impact_ppm(80, 100), 200_000);
    assert_eq!(impact_ppm(150, 100), -500_000);
    assert_eq!(impact_ppm(0, 100), 1_000_000);
    assert_eq!(impact_ppm(100, 100), 0);
}

#[test]
fn a_difference_of_one_byte_in_a_terabyte_is_positive() {
    assert_eq!(impact_ppm(999_999_999_999, 1_000_000_000_000), 1);
    assert_eq!(impact_ppm(u64::MAX, 1), 1_000_000 - i64::MAX);
}

#[test]
fn without_a_baseline_nothing_is_said_unless_there_is_throughput_without_the_subflow() {
    assert_eq!((impact_ppm(0, 0), impact_ppm(1, 0)), (0, i64::MIN));
}

#[test]
fn an_impact_of_zero_is_not_used() {
    assert_eq!(subset(&[0, 1, -1]), [1]);
}

#[test]
fn with_no_positive_impact_the_largest_is_used() {
    assert_eq!(subset(&[-5, -2, -9]), [1]);
    assert_eq!(subset(&[0, -2, 0]), [0]);
    assert_eq!(subset(&[]), [] as [usize; 0]);
}

#[test]
fn standby_is_ordered_by_falling_impact() {
    assert_eq!(ranked(&[-5, 7, -2, 7]), [1, 3, 2, 0]);
}

/// Four regular paths at their rates, in Mbit/s.
fn measured(rates: [u64; 4]) -> Host {
    let mut host = host("pcdc", &[("jitter", 0)], (0..4).map(path).collect());
    for (link, rate) in host.links.iter_mut().zip(rates) {
        link.rate_bps = rate * 1_000_000;
    }
    host
}

#[test]
fn each_subflow_is_silenced_once_between_two_baselines() {
    let mut host = measured([8, 4, 2, 2]);
    host.run_until(400 * S);
    let silenced: Vec<(usize, &str)> =
        host.all(Action::Backup).into_iter().filter(|(_, code)| *code == "silence").collect();
    assert_eq!(silenced, [(0, "silence"), (1, "silence"), (2, "silence"), (3, "silence")]);
    let baselines = host.all(Action::Regular);
    assert_eq!(baselines, [(0, "baseline"), (1, "baseline"), (2, "baseline"), (3, "baseline")]);
    // Nine phases of 31 s, from the end of the handshakes on.
    let end = host.when("impact-used", 0).expect("the measurement ends");
    assert_eq!(end / S, 9 * 31);
}

#[test]
fn independent_paths_have_their_shares_as_impact() {
    let mut host = measured([8, 4, 2, 2]);
    host.run_until(400 * S);
    let impacts: Vec<i64> = host
        .log
        .iter()
        .filter(|(_, decision)| decision.reason.code == "impact-used")
        .map(|(_, decision)| decision.reason.numbers[0].1)
        .collect();
    // Bytes are whole numbers per event of the host.
    for (impact, expected) in impacts.iter().zip([500_000, 250_000, 125_000, 125_000]) {
        assert!((impact - expected).abs() < 10, "{impacts:?}");
    }
    assert_eq!(impacts.len(), 4);
}

#[test]
fn a_path_that_carries_nothing_becomes_standby_and_stands_in_for_one_that_fails() {
    let mut host = measured([8, 4, 0, 0]);
    host.run_until(400 * S);
    let backups: Vec<bool> = host.links.iter().map(|link| link.seen.backup).collect();
    assert_eq!(backups, [false, false, true, true]);
    host.set(1, false, false);
    // Equal factors: the first.
    assert!(!host.links[2].seen.backup && host.links[3].seen.backup);
    host.set(1, true, false);
    host.run_until(420 * S);
    assert!(host.links[2].seen.backup);
}

#[test]
fn a_measurement_in_which_a_link_fails_is_void() {
    let mut host = measured([8, 4, 2, 2]);
    host.run_until(100 * S);
    host.set(2, false, false);
    assert_eq!(host.all(Action::Keep), [(2, "measurement-void")]);
    host.run_until(105 * S);
    host.set(2, true, false);
    host.run_until(500 * S);
    assert_eq!(host.all(Action::Keep).iter().filter(|(_, code)| *code == "impact-used").count(), 4);
}

#[test]
fn measurements_are_repeated_where_the_network_changes() {
    let changed = [("phase", 2 * S), ("again_after", 60 * S)];
    let mut host = host("pcdc", &changed, vec![path(0), Path { srtt_us: 1, ..path(1) }]);
    host.links[1].rate_bps = 0;
    host.run_until(30 * S);
    assert!(host.links[1].seen.backup);
    host.links[1].rate_bps = 5_000_000;
    host.run_until(120 * S);
    assert!(!host.links[1].seen.backup);
}
