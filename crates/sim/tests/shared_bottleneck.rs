//! The main findings of `docs/shared-bottleneck.md`, on fewer seeds.

use std::path::PathBuf;

use anabranch_sim::{Control, decisions};

/// The share of its decisions that coupled the subject, over three seeds; `far_ms` is half the difference of the
/// round-trip times.
fn coupled(topology: &str, far_ms: u32, detector: &str, period: &str) -> f64 {
    let file = format!("../../scenarios/regress/shared-bottleneck/{topology}.toml");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file);
    let overrides = [
        ("link.far.delay", format!("{} ms", far_ms + if topology == "shared" { 1 } else { 2 })),
        ("connection.subject.congestion.detector", detector.to_owned()),
        ("connection.subject.congestion.period", period.to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value));
    let loaded = anabranch_scenario::load_path(&path, &overrides);
    let scenario = loaded.unwrap_or_else(|error| panic!("{error}")).scenario;
    let (mut all, mut coupled) = (0, 0);
    for seed in 1..=3 {
        let subject = decisions(&scenario, seed, &Control::default()).expect("nobody interrupts")[0];
        all += subject.all;
        coupled += subject.coupled;
    }
    f64::from(coupled) / f64::from(all)
}

#[test]
fn coinciding_losses_find_a_shared_bottleneck_and_miss_more_the_more_the_round_trip_times_differ() {
    let near = coupled("shared", 0, "retransmissions", "25 s");
    let far = coupled("shared", 100, "retransmissions", "25 s");
    assert!(near >= 0.9, "{near}");
    assert!(far <= 0.8, "{far}");
}

#[test]
fn coinciding_losses_are_chance_often_enough_to_couple_disjoint_paths_where_losses_are_frequent() {
    let share = coupled("disjoint", 0, "retransmissions", "25 s");
    assert!(share >= 0.3, "{share}");
}

#[test]
fn delays_of_the_same_kind_seldom_couple_disjoint_paths_and_seldom_shared_ones() {
    for topology in ["disjoint", "shared"] {
        for far_ms in [0, 100] {
            let share = coupled(topology, far_ms, "rfc8382", "25 s");
            assert!(share <= 0.15, "{topology}, {far_ms} ms: {share}");
        }
    }
    let near = coupled("shared", 0, "rfc8382", "350 ms");
    let far = coupled("shared", 100, "rfc8382", "350 ms");
    assert!(near >= 0.1, "{near}");
    assert!(far <= 0.02, "{far}");
}
