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
