//! Figures of transfers.

use anabranch_record::model::{Figure, Scope};

use super::seconds;
use crate::{engine::heads::Key, world::World};

impl<K: Key> World<'_, K> {
    /// Adds the figures of all transfers, and of their connections as parts of them.
    pub(super) fn transfer_figures(&self, figures: &mut Vec<Figure>) {
        for (model, transfer) in self.scenario.transfers.iter().zip(&self.transfers) {
            let scope = Scope::Connection(model.name.clone());
            let mut figure = |metric, value| figures.push(Figure { scope: scope.clone(), metric, value });
            if let Some(completed) = transfer.completed_at {
                figure("completion_s", seconds(completed - model.start));
            }
            let distributor = transfer.carriers.distributor();
            let (chunks, arrived) = (distributor.chunks(), distributor.arrived_chunks());
            let there = (0..chunks.count()).filter(|&chunk| arrived.contains(chunk));
            figure("bytes_transferred", there.map(|chunk| chunks.len(chunk)).sum::<u64>() as f64);
            let of_carrier = |carrier| transfer.carriers.delivered_chunks(carrier);
            figure("chunks_delivered", (0..model.over.len()).map(of_carrier).sum::<u64>() as f64);
            figure("chunks_sent_again", distributor.claimed_again() as f64);
            for (carrier, &connection) in model.over.iter().enumerate() {
                let scope = Scope::Connection(self.scenario.connections[connection].name.clone());
                let value = of_carrier(carrier) as f64;
                figures.push(Figure { scope, metric: "chunks_delivered", value });
            }
        }
    }
}
