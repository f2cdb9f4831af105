//! What coupled congestion controls have decided. It is in no run folder: it belongs to one algorithm and serves
//! those who study it.

use anabranch_scenario::{model::Scenario, workload};

use crate::{Control, Interrupted, engine::heads::Key, net, world::World};

/// The decisions of one connection's congestion control on the side that sends, by the words that its subflows
/// share (`struct ab_conn`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// All of them.
    pub all: u32,
    /// Those after which subflows were coupled.
    pub coupled: u32,
}

/// Runs a scenario and tells for each of its connections what its coupled subflows have decided; nothing if it has
/// none.
///
/// # Errors
/// [`Interrupted`] if `control.cancel` was set before the end.
pub fn decisions(scenario: &Scenario, seed: u64, control: &Control) -> Result<Vec<Decisions>, Interrupted> {
    if net::narrow_fits(scenario) {
        decisions_with::<u64>(scenario, seed, control)
    } else {
        decisions_with::<u128>(scenario, seed, control)
    }
}

fn decisions_with<K: Key>(
    scenario: &Scenario,
    seed: u64,
    control: &Control,
) -> Result<Vec<Decisions>, Interrupted> {
    let scenario = &*workload::expand(scenario, seed);
    let mut world = World::<K>::new(scenario, seed);
    world.run(control)?;
    let of = |connection: &crate::world::Connection| {
        let groups = &connection.sides[usize::from(connection.data_side)].groups;
        groups.first().map_or(Decisions::default(), |group| Decisions {
            all: group.words.epoch,
            coupled: group.words.coupled_epochs,
        })
    };
    Ok(world.connections.iter().map(of).collect())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// RFC 8382's `var_est` of both subflows of `shared.toml` after so many seconds, in nanoseconds, as `sbd.h`
    /// publishes it.
    fn variabilities_ns(seconds: u32) -> [u64; 2] {
        let path = "../../scenarios/regress/shared-bottleneck/shared.toml";
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
        let overrides = [("duration", format!("{seconds} s"))].map(|(key, value)| (key.to_owned(), value));
        let loaded = anabranch_scenario::load_path(&path, &overrides);
        let scenario = loaded.unwrap_or_else(|error| panic!("{error}")).scenario;
        let scenario = &*workload::expand(&scenario, 1);
        let mut world = World::<u128>::new(scenario, 1);
        world.run(&Control::default()).expect("nobody interrupts");
        let peers = &world.connections[0].sides[0].groups[0].peers;
        [0, 1].map(|k| peers[k].public[1] & 0xffff_ffff)
    }

    /// `docs/shared-bottleneck.md` has the number: why RFC 8382 seldom puts two window-limited subflows together.
    #[test]
    fn over_one_bottleneck_the_variabilities_of_two_subflows_are_seldom_within_the_tenth_that_is_demanded() {
        let looks: Vec<[u64; 2]> = (0..14).map(|k| variabilities_ns(30 + 13 * k)).collect();
        assert!(looks.iter().flatten().all(|var_ns| *var_ns > 1_000_000), "{looks:?}");
        let close = looks.iter().filter(|[a, b]| a.abs_diff(*b) * 10 < *a.max(b)).count();
        assert_eq!(close, 2, "{looks:?}");
    }
}
