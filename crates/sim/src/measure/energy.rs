//! Energy of the interfaces: their traffic in bins, and what both models make of it.

use anabranch_policy::energy::{InterfaceMeter, run_figures};
use anabranch_record::model::{Figure, Scope, Series};
use anabranch_scenario::model::{Interface, Scenario};

use super::Counts;
use crate::{
    engine::{heads::Key, timers::TimerKind},
    world::World,
};

fn scope(interface: &Interface, scenario: &Scenario) -> Scope {
    let (node, link) = interface.names(scenario);
    Scope::Interface(node.to_owned(), link.to_owned())
}

impl<K: Key> World<'_, K> {
    /// Prepares the meters and their timer; nothing without interfaces.
    pub(super) fn begin_energy(&mut self) {
        let (interfaces, measure) = (&self.scenario.interfaces, self.scenario.measure);
        if interfaces.is_empty() {
            return;
        }
        self.meter.energy =
            interfaces.iter().map(|of| InterfaceMeter::new(of.radio, measure.interval > 0)).collect();
        self.timers.push(measure.energy_bin, TimerKind::EnergyBin, 0);
    }

    /// A bin has ended.
    pub(crate) fn end_energy_bin(&mut self) {
        self.read_interfaces();
        self.timers.push(self.now + self.scenario.measure.energy_bin, TimerKind::EnergyBin, 0);
    }

    /// The measurement window begins or ends, and with it a bin.
    pub(super) fn mark_energy(&mut self, begins: bool) {
        self.read_interfaces();
        for meter in &mut self.meter.energy {
            if begins {
                meter.begin_window();
            } else {
                meter.end_window();
            }
        }
    }

    fn read_interfaces(&mut self) {
        for (meter, interface) in self.meter.energy.iter_mut().zip(&self.scenario.interfaces) {
            let (up_bytes, down_bytes) = self.net.carried_by(interface);
            meter.read(self.now, up_bytes, down_bytes);
        }
    }

    /// Figures of the interfaces, and of the run what all of them take together for what the flows over them
    /// delivered.
    pub(super) fn energy_figures(&self, figures: &mut Vec<Figure>, begin: &Counts, end: &Counts) {
        let meters = &self.meter.energy;
        if meters.is_empty() {
            return;
        }
        for (meter, interface) in meters.iter().zip(&self.scenario.interfaces) {
            let scope = scope(interface, self.scenario);
            let of_interface = meter.figures().into_iter();
            figures.extend(of_interface.map(|(metric, value)| Figure {
                scope: scope.clone(),
                metric,
                value,
            }));
        }
        let delivered_bytes = self.scenario.delivered_over_interfaces(
            |index| end.delivered[index].total() - begin.delivered[index].total(),
            |index| end.datagrams[index].2 - begin.datagrams[index].2,
        );
        let of_run = run_figures(meters, delivered_bytes as f64 * 8.0).into_iter();
        figures.extend(of_run.map(|(metric, value)| Figure { scope: Scope::Run, metric, value }));
    }
}

/// Power over time of every interface.
pub(super) fn series(scenario: &Scenario, meters: Vec<InterfaceMeter>) -> impl Iterator<Item = Series> {
    scenario.interfaces.iter().zip(meters).flat_map(|(interface, meter)| {
        let scope = scope(interface, scenario);
        let points = ["power_linear_w", "power_huang_w"].into_iter().zip(meter.power_w());
        points.map(move |(metric, points)| Series { scope: scope.clone(), metric, points })
    })
}
