//! Energy of the interfaces on the kernel: what the emulator's links have carried, with the simulator's models, names
//! and meaning.
//!
//! A bin lasts from one reading to the next, so that a late reading makes one bin longer and the next one shorter. The
//! sums are those of the real times.

use anabranch_policy::energy::{InterfaceMeter, run_figures};
use anabranch_record::model::{Figure, Scope, Series};
use anabranch_scenario::model::{Measure, Scenario};

use crate::{Nanos, emulator::InterfaceCounters};

/// Meters of the scenario's interfaces.
#[derive(Clone, Debug)]
pub struct EnergySampler {
    meters: Vec<(Scope, InterfaceMeter)>,
    measure: Measure,
    duration: Nanos,
    /// End of the present bin.
    next: Nanos,
    has_begun: bool,
    has_ended: bool,
}

impl EnergySampler {
    /// For one run of `scenario`.
    pub fn new(scenario: &Scenario) -> Self {
        let meters = scenario.interfaces.iter().map(|interface| {
            let (node, link) = interface.names(scenario);
            let scope = Scope::Interface(node.to_owned(), link.to_owned());
            (scope, InterfaceMeter::new(interface.radio, scenario.measure.interval > 0))
        });
        Self {
            meters: meters.collect(),
            measure: scenario.measure,
            duration: scenario.duration,
            next: scenario.measure.energy_bin,
            has_begun: false,
            has_ended: false,
        }
    }

    /// When the next reading is wanted: at the ends of the bins and of the window, until the scenario's duration; never
    /// without interfaces.
    pub fn due(&self) -> Option<Nanos> {
        let from = (!self.has_begun).then_some(self.measure.from);
        let to = (!self.has_ended).then_some(self.measure.to);
        let first = from.into_iter().chain(to).chain([self.next]).min();
        first.filter(|&due| due <= self.duration && !self.meters.is_empty())
    }

    /// Takes over what the interfaces have carried up to `now`, in the order of the scenario; ends a bin.
    pub fn take(&mut self, now: Nanos, counters: &[InterfaceCounters]) {
        for ((_, meter), of) in self.meters.iter_mut().zip(counters) {
            meter.read(now, of.up_bytes, of.down_bytes);
        }
        if now >= self.next {
            self.next = (now / self.measure.energy_bin + 1) * self.measure.energy_bin;
        }
        if !self.has_begun && now >= self.measure.from {
            self.has_begun = true;
            self.meters.iter_mut().for_each(|(_, meter)| meter.begin_window());
        }
        if !self.has_ended && now >= self.measure.to {
            self.has_ended = true;
            self.meters.iter_mut().for_each(|(_, meter)| meter.end_window());
        }
    }

    /// The figures over the window, given what the flows over the interfaces have delivered in it.
    ///
    /// # Panics
    /// If the readings did not go on until the end of the window.
    pub fn figures(&self, delivered_bytes: u64) -> Vec<Figure> {
        if self.meters.is_empty() {
            return Vec::new();
        }
        let named = |scope: &Scope, figures: Vec<(&'static str, f64)>| {
            let figures = figures.into_iter();
            figures.map(|(metric, value)| Figure { scope: scope.clone(), metric, value }).collect::<Vec<_>>()
        };
        let mut all: Vec<Figure> =
            self.meters.iter().flat_map(|(scope, meter)| named(scope, meter.figures())).collect();
        let meters = self.meters.iter().map(|(_, meter)| meter);
        all.extend(named(&Scope::Run, run_figures(meters, delivered_bytes as f64 * 8.0)));
        all
    }

    /// Power over time.
    pub fn series(self) -> impl Iterator<Item = Series> {
        let is_wanted = self.measure.interval > 0;
        self.meters.into_iter().filter(move |_| is_wanted).flat_map(|(scope, meter)| {
            let points = ["power_linear_w", "power_huang_w"].into_iter().zip(meter.power_w());
            points.map(move |(metric, points)| Series { scope: scope.clone(), metric, points })
        })
    }
}
