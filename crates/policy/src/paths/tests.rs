//! Rules of the path managers, on a host made up for it.

mod energy;
mod measured;
mod swarm;
mod tables;

use super::testing::{Host, MS, S, path};
use super::{Action, Path, PathManagerInfo, State, find};

fn info(name: &str) -> &'static PathManagerInfo {
    find(name).expect("it is in the registry")
}

/// The defaults but for some parameters.
fn values(name: &str, changed: &[(&str, u64)]) -> Vec<u64> {
    let info = info(name);
    let mut values = info.defaults();
    for (name, value) in changed {
        let at = info.params.iter().position(|param| param.name == *name).expect("it has the parameter");
        values[at] = *value;
    }
    values
}

fn host(name: &str, changed: &[(&str, u64)], paths: Vec<Path>) -> Host {
    Host::new(info(name), &values(name, changed), paths)
}

/// Wi-Fi, and a cellular path as its backup.
fn two_paths() -> Vec<Path> {
    vec![path(0), Path { spare: true, ..path(1) }]
}

#[test]
fn default_opens_nothing() {
    let mut host = host("default", &[], vec![path(0), path(1)]);
    host.run_until(100 * S);
    assert!(host.log.is_empty());
}

#[test]
fn nothing_is_opened_before_the_connection_may_have_further_subflows() {
    for info in &super::PATH_MANAGERS {
        let mut host = Host::new(info, &info.defaults(), vec![path(0), path(1)]);
        host.log.clear();
        host.may_join = false;
        host.reset(1);
        host.run_until(10 * S);
        assert_eq!(host.all(Action::Open), [], "{}", info.name);
    }
}

#[test]
fn a_path_that_comes_later_is_opened_as_if_it_had_been_there() {
    for info in super::PATH_MANAGERS.iter().filter(|info| !["default", "ndiffports"].contains(&info.name)) {
        let mut host = Host::new(info, &info.defaults(), vec![path(0), path(1)]);
        host.run_until(10 * S);
        host.add(path(2));
        host.run_until(20 * S);
        assert_eq!(host.links[2].seen.state, State::Established, "{}", info.name);
    }
}

#[test]
fn fullmesh_of_two_by_two_adds_the_three_other_pairs_by_remote_then_local_address() {
    // D2: local {A, B}, remote {X, Y}, initial A-X: adds B-X, A-Y, B-Y. The list is in another order.
    let pair = |local, remote| Path { local, remote, ..path(0) };
    let mut host = host("fullmesh", &[], vec![pair(0, 10), pair(0, 11), pair(1, 11), pair(1, 10)]);
    host.run_until(S);
    let opened: Vec<usize> = host.all(Action::Open).into_iter().map(|(path, _)| path).collect();
    assert_eq!(opened, [3, 1, 2]);
    assert!(host.links.iter().all(|link| link.seen.state == State::Established));
}

#[test]
fn fullmesh_takes_at_most_eight_addresses_of_a_side() {
    let mut host = host("fullmesh", &[], (0..10).map(|local| Path { remote: 0, ..path(local) }).collect());
    host.run_until(S);
    assert_eq!(host.all(Action::Open).len(), 7);
}

#[test]
fn fullmesh_waits_for_the_announcement_of_an_address() {
    let unknown = Path { known: false, ..path(1) };
    let mut host = host("fullmesh", &[], vec![path(0), unknown]);
    host.run_until(S);
    assert_eq!(host.all(Action::Open), []);
    host.links[1].seen.known = true;
    host.look();
    assert_eq!(host.all(Action::Open), [(1, "pair")]);
}

#[test]
fn fullmesh_tries_an_unreachable_pair_once_more_after_a_second() {
    let down = Path { link_up: false, ..path(1) };
    let mut host = host("fullmesh", &[], vec![path(0), down]);
    host.run_until(500 * MS);
    // Nobody is told that the link has come: only the second try finds it.
    host.links[1].seen.link_up = true;
    host.run_until(10 * S);
    assert_eq!(host.when("pair", 0), Some(S));
}

#[test]
fn fullmesh_gives_up_an_unreachable_pair_until_its_link_comes() {
    let down = Path { link_up: false, ..path(1) };
    let mut host = host("fullmesh", &[], vec![path(0), down]);
    host.run_until(5 * S);
    host.links[1].seen.link_up = true;
    host.run_until(10 * S);
    assert_eq!(host.all(Action::Open), []);
    host.look();
    assert_eq!(host.all(Action::Open), [(1, "pair")]);
}

#[test]
fn fullmesh_does_not_open_again_what_was_reset_until_its_link_has_been_away() {
    let mut host = host("fullmesh", &[], vec![path(0), path(1)]);
    host.run_until(S);
    host.reset(1);
    host.run_until(100 * S);
    assert_eq!(host.all(Action::Open).len(), 1);
    host.set(1, false, false);
    host.set(1, true, false);
    assert_eq!(host.all(Action::Open).len(), 2);
}

#[test]
fn ndiffports_opens_two_subflows_in_all_over_the_first_pair_unless_told_otherwise() {
    let pair = Path { local: 7, remote: 8, ..path(0) };
    let paths = vec![pair, path(3), pair, pair];
    let mut few = host("ndiffports", &[], paths.clone());
    few.run_until(S);
    assert_eq!(few.all(Action::Open), [(2, "port")]);
    let mut many = host("ndiffports", &[("num_subflows", 3)], paths);
    many.run_until(S);
    assert_eq!(many.all(Action::Open), [(2, "port"), (3, "port")]);
}

#[test]
fn the_dedicated_path_is_regular_and_the_others_are_backups_from_the_start() {
    let mut host = host("dedicated-backup", &[], vec![Path { spare: true, ..path(0) }, path(1), path(2)]);
    host.run_until(S);
    assert_eq!(host.links.iter().map(|link| link.seen.backup).collect::<Vec<_>>(), [false, true, true]);
    assert!(host.links.iter().all(|link| link.seen.state == State::Established));
}

#[test]
fn tries_come_after_one_two_four_seconds_and_then_at_the_longest_distance() {
    let changed = [("jitter", 0), ("retry_max", 8 * S)];
    let mut host = host("reestablish", &changed, vec![path(0), path(1)]);
    host.run_until(10 * S);
    host.log.clear();
    host.set(1, true, true);
    host.reset(1);
    host.run_until(60 * S);
    let tries = host.log.iter().filter(|(_, decision)| decision.action == Action::Open);
    let times: Vec<u64> = tries.map(|(at, _)| at / S).collect();
    assert_eq!(times, [10, 11, 13, 17, 25, 33, 41, 49, 57]);
    host.set(1, true, false);
    host.run_until(70 * S);
    assert_eq!(host.links[1].seen.state, State::Established);
}

#[test]
fn jitter_adds_at_most_its_share_of_the_distance() {
    use super::reopen::Backoff;
    let backoff = Backoff { first: S, max: 60 * S, jitter_permille: 250 };
    assert_eq!(backoff.delay(1, 0), S);
    assert_eq!(backoff.delay(1, 1000), S + 250 * MS);
    assert_eq!(backoff.delay(3, 500), 4 * S + 500 * MS);
    assert_eq!(backoff.delay(u32::MAX, 1000), 75 * S);
}

#[test]
fn the_return_of_a_link_is_followed_by_a_try_at_once() {
    let mut host = host("reestablish", &[], vec![path(0), path(1)]);
    host.run_until(10 * S);
    host.set(1, false, false);
    host.reset(1);
    host.run_until(100 * S);
    host.log.clear();
    host.set(1, true, false);
    assert_eq!(host.all(Action::Open), [(1, "open")]);
}

#[test]
fn a_subflow_that_meets_too_many_timeouts_is_opened_anew() {
    let mut host = host("reestablish", &[("dead_after", 3)], vec![path(0), path(1)]);
    host.run_until(10 * S);
    host.log.clear();
    host.set(1, true, true);
    host.run_until(11 * S);
    assert_eq!(host.all(Action::Close), []);
    host.run_until(12 * S);
    assert_eq!(host.all(Action::Close), [(1, "dead")]);
    assert_eq!(host.all(Action::Open), [(1, "open")]);
}

#[test]
fn fail_over_comes_with_the_link_event_or_with_the_second_timeout() {
    let mut told = host("failover", &[], two_paths());
    told.run_until(10 * S);
    assert!(told.links[1].seen.backup);
    told.set(0, false, false);
    assert_eq!(told.when("preferred-failed", 10 * S), Some(10 * S));
    assert!(told.links[0].seen.backup && !told.links[1].seen.backup);

    let mut silent = host("failover", &[], two_paths());
    silent.run_until(10 * S);
    silent.set(0, true, true);
    silent.run_until(20 * S);
    // Timeouts at 200 ms and 600 ms.
    assert_eq!(silent.when("preferred-failed", 10 * S), Some(10 * S + 600 * MS));
}

#[test]
fn fail_back_comes_within_five_seconds_of_the_return() {
    for silent in [false, true] {
        for outage_ms in (500..60_000).step_by(777) {
            let mut host = host("failover", &[], two_paths());
            host.run_until(10 * S);
            host.set(0, silent, silent);
            let back = 10 * S + outage_ms * MS;
            host.run_until(back);
            host.set(0, true, false);
            host.run_until(back + 5 * S);
            assert!(!host.links[0].seen.backup, "{silent} {outage_ms}");
            assert!(host.links[1].seen.backup, "{silent} {outage_ms}");
        }
    }
}

#[test]
fn a_path_that_comes_and_goes_within_the_hold_time_is_not_taken_back() {
    let mut host = host("failover", &[("hold", S)], two_paths());
    host.run_until(10 * S);
    for _ in 0..50 {
        host.set(0, false, false);
        host.run_until(host.now + 900 * MS);
        host.set(0, true, false);
        host.run_until(host.now + 900 * MS);
    }
    host.run_until(host.now + 5 * S);
    let codes = |code: &str| host.log.iter().filter(|(_, decision)| decision.reason.code == code).count();
    // Once over and once back, two paths each.
    assert_eq!((codes("preferred-failed"), codes("preferred-returned")), (2, 2));
}

#[test]
fn the_spare_with_the_least_round_trip_time_takes_over_and_the_next_one_after_it() {
    let spare = |number, srtt_us| Path { spare: true, srtt_us, ..path(number) };
    let mut host = host("failover", &[], vec![path(0), spare(1, 0), spare(2, 60_000), spare(3, 20_000)]);
    host.run_until(10 * S);
    host.set(0, false, false);
    assert!(!host.links[3].seen.backup);
    host.set(3, false, false);
    assert!(!host.links[2].seen.backup && host.links[3].seen.backup);
    assert_eq!(host.harm, 0);
}

#[test]
fn a_cap_is_exceeded_by_less_than_a_hundredth_at_a_steady_rate_and_counts_anew_in_the_next_period() {
    let metered = Path { cap_bytes: Some(1_000_000), ..path(1) };
    let mut host = host("cost", &[("period", 60 * S)], vec![path(0), metered]);
    host.links[1].rate_bps = 8_000_000;
    host.run_until(59 * S);
    let used = host.links[1].seen.carried_bytes;
    assert!((1_000_000..1_010_000).contains(&used), "{used}");
    assert_eq!(host.links[1].seen.state, State::Closed);
    host.run_until(119 * S);
    let used = host.links[1].seen.carried_bytes - used;
    assert!((1_000_000..1_010_000).contains(&used), "{used}");
}

#[test]
fn a_soft_cap_leaves_a_backup() {
    let metered = Path { cap_bytes: Some(1_000_000), ..path(1) };
    let mut host = host("cost", &[("hard", 0)], vec![path(0), metered]);
    host.run_until(60 * S);
    assert_eq!(host.all(Action::Backup), [(1, "cap-reached")]);
    let used = host.links[1].seen.carried_bytes;
    host.set(0, false, false);
    host.run_until(61 * S);
    assert!(host.links[1].seen.carried_bytes > used, "it carries data when nothing else can");
}
