//! Figures of relays.

use anabranch_record::model::{Figure, Scope};

use super::seconds;
use crate::{engine::heads::Key, world::World};

impl<K: Key> World<'_, K> {
    /// Adds the figures of all relays.
    pub(super) fn relay_figures(&self, figures: &mut Vec<Figure>) {
        for (model, relay) in self.scenario.relays.iter().zip(&self.relays) {
            let scope = Scope::Connection(model.name.clone());
            let mut figure = |metric, value| figures.push(Figure { scope: scope.clone(), metric, value });
            let [input, output] = [relay.input, relay.output].map(|at| &self.connections[at as usize]);
            if let Some(completed) = output.completed_at {
                figure("completion_s", seconds(completed - input.opened_at));
            }
            figure("bytes_relayed", relay.read as f64);
            figure("buffer_max_bytes", relay.held_max as f64);
        }
    }
}
