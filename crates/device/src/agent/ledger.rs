//! What interfaces have carried since the period of a data cap began: all traffic, both directions, by the kernel's counters.
//!
//! Left out: what was carried before the agent began; who begins it anew within a period has the whole cap again.

use anabranch_policy::paths::Nanos;

/// What has been carried, by interface and by period.
#[derive(Default)]
pub(super) struct Ledger {
    interfaces: Vec<Interface>,
    periods: Vec<Period>,
}

struct Interface {
    number: u32,
    /// The kernel's counter when it was looked at last.
    counter: u64,
    /// What it has carried since the agent began, however often the counter began anew.
    total_bytes: u64,
}

struct Period {
    interface: u32,
    length: Nanos,
    begun: Nanos,
    /// What the interface had carried then.
    total_bytes: u64,
}

impl Ledger {
    /// Takes the kernel's counter of an interface, and begins a new period if it is time.
    pub(super) fn count(&mut self, interface: u32, counter: u64, length: Nanos, now: Nanos) {
        let place = self.interfaces.iter().position(|other| other.number == interface);
        let place = place.unwrap_or_else(|| {
            self.interfaces.push(Interface { number: interface, counter, total_bytes: 0 });
            self.interfaces.len() - 1
        });
        let of = &mut self.interfaces[place];
        let before = of.total_bytes;
        // A counter that has gone back belongs to an interface that was made anew.
        of.total_bytes += counter.checked_sub(of.counter).unwrap_or(counter);
        of.counter = counter;
        let begun = now - now % length;
        let is_it = |period: &&mut Period| (period.interface, period.length) == (interface, length);
        match self.periods.iter_mut().find(is_it) {
            None => self.periods.push(Period { interface, length, begun, total_bytes: before }),
            Some(period) if period.begun < begun => (period.begun, period.total_bytes) = (begun, before),
            Some(_) => {}
        }
    }

    /// What an interface has carried since the agent began.
    pub(super) fn total_bytes(&self, interface: u32) -> u64 {
        self.interfaces.iter().find(|other| other.number == interface).map_or(0, |of| of.total_bytes)
    }

    /// What it had carried when the present period of that length began.
    pub(super) fn before_period_bytes(&self, interface: u32, length: Nanos) -> u64 {
        let is_it = |period: &&Period| (period.interface, period.length) == (interface, length);
        self.periods.iter().find(is_it).map_or(0, |period| period.total_bytes)
    }

    /// When the next period of any interface begins.
    pub(super) fn next_period(&self) -> Option<Nanos> {
        self.periods.iter().map(|period| period.begun + period.length).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_counts_from_its_first_look_and_a_counter_that_goes_back_from_nothing() {
        let mut ledger = Ledger::default();
        let used = |ledger: &Ledger| ledger.total_bytes(3) - ledger.before_period_bytes(3, 100);
        ledger.count(3, 5_000, 100, 250);
        assert_eq!((used(&ledger), ledger.next_period()), (0, Some(300)));
        ledger.count(3, 5_700, 100, 299);
        assert_eq!(used(&ledger), 700);
        ledger.count(3, 5_800, 100, 300);
        assert_eq!((used(&ledger), ledger.total_bytes(3), ledger.next_period()), (100, 800, Some(400)));
        ledger.count(3, 50, 100, 310);
        assert_eq!((used(&ledger), ledger.total_bytes(3)), (150, 850));
        assert_eq!(ledger.total_bytes(4), 0);
    }
}
