//! Links that fail at random under every path manager.

use super::super::testing::{Host, MS, S, path};
use super::super::{PATH_MANAGERS, Path, State};
use crate::energy::Linear;

/// Even below a bound, from one number to the next.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn random_host(seed: u64, name: &str) -> Host {
    let mut draws = Draws(seed);
    let paths = (0..1 + draws.below(6)).map(|number| Path {
        local: draws.below(3) as u32,
        remote: draws.below(2) as u32,
        spare: number > 0 && draws.below(3) == 0,
        srtt_us: draws.below(100_000) as u32,
        radio: [None, Some(Linear::WIFI), Some(Linear::LTE)][draws.below(3) as usize],
        cwnd_segments: draws.below(100) as u32,
        ssthresh_segments: draws.below(200) as u32,
        segment_bytes: 1 + draws.below(1460) as u32,
        ..path(0)
    });
    let short = [("phase", 2 * S), ("settle", 100 * MS), ("again_after", 20 * S)];
    let late = [("late_bytes", 500_000), ("hold", S)];
    let values = super::values(
        name,
        match name {
            "pcdc" => &short,
            "energy" => &late,
            _ => &[],
        },
    );
    let mut host = Host::new(super::info(name), &values, paths.collect());
    for _ in 0..40 {
        host.run_until(host.now + draws.below(3_000) * MS + 1);
        let path = draws.below(host.links.len() as u64) as usize;
        match draws.below(4) {
            0 => host.set(path, false, false),
            1 => host.set(path, true, true),
            2 => host.reset(path),
            _ => host.set(path, true, false),
        }
    }
    for path in 0..host.links.len() {
        host.set(path, true, false);
    }
    host
}

#[test]
fn no_path_manager_takes_away_the_last_subflow_that_answers() {
    for info in &PATH_MANAGERS {
        for seed in 0..500 {
            let host = random_host(seed, info.name);
            assert_eq!(host.harm, 0, "{} with seed {seed}", info.name);
        }
    }
}

#[test]
fn those_that_open_again_have_every_subflow_back_when_all_links_are() {
    for name in ["dedicated-backup", "failover", "reestablish", "cost", "energy", "pcdc"] {
        for seed in 0..500 {
            let mut host = random_host(seed, name);
            // The longest distance of two tries is a minute and a quarter of it; a timeout of a subflow that is not given up
            // may be 51 s away.
            host.run_until(host.now + 130 * S);
            let open =
                |host: &Host| host.links.iter().filter(|link| link.seen.state == State::Established).count();
            assert_eq!(open(&host), host.links.len(), "{name} with seed {seed}");
        }
    }
}

#[test]
fn there_is_a_regular_path_whenever_one_is_open() {
    for info in &PATH_MANAGERS {
        for seed in 0..500 {
            let mut host = random_host(seed, info.name);
            host.run_until(host.now + 130 * S);
            let open = |backup| {
                let of_kind = host.links.iter().filter(|link| link.seen.backup == backup);
                of_kind.filter(|link| link.seen.state == State::Established).count()
            };
            let spares = host.links.iter().all(|link| link.seen.spare);
            assert!(open(false) > 0 || open(true) == 0 || spares, "{} with seed {seed}", info.name);
        }
    }
}
