//! What interfaces have carried since the period of a data cap began: all traffic, both directions, by the kernel's counters.
//!
//! With a state file it outlives the agent, and what was carried while no agent ran counts, too, as long as the machine was not
//! booted anew; after that, all that was carried since. Left out: what was carried before the first agent began, or in a present
//! period whose beginning no agent has seen.

use std::{fs, io, path::Path};

use anabranch_policy::paths::Nanos;
use serde::{Deserialize, Serialize};

use crate::DeviceError;

/// What has been carried, by interface and by period.
#[derive(Default)]
pub(super) struct Ledger {
    interfaces: Vec<Interface>,
    periods: Vec<Period>,
    /// From an earlier agent.
    kept: Kept,
}

struct Interface {
    number: u32,
    name: String,
    /// The kernel's counter when it was looked at last.
    counter: u64,
    /// What it has carried since the agent began, however often the counter began anew.
    total_bytes: u64,
}

struct Period {
    interface: u32,
    length: Nanos,
    begun: Nanos,
    /// What the interface had carried then; below zero, that is wrapped, if that was before the agent began.
    total_bytes: u64,
}

/// The state file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    /// Of the boot that the counters belong to.
    boot_id: String,
    periods: Vec<KeptPeriod>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptPeriod {
    interface: String,
    length_ns: u64,
    begun_ns: u64,
    used_bytes: u64,
    counter_bytes: u64,
}

impl Kept {
    /// Reads a state file; one that is not there is an empty one.
    ///
    /// # Errors
    /// [`DeviceError::Input`] if it is no state file, [`DeviceError::System`] if it cannot be read.
    pub(super) fn read(file: &Path) -> Result<Self, DeviceError> {
        let text = match fs::read_to_string(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            text => text.map_err(DeviceError::system(format!("reading {}", file.display())))?,
        };
        serde_json::from_str(&text).map_err(|error| {
            DeviceError::Input(format!("{}: {error}; remove it to count anew", file.display()))
        })
    }

    /// Writes it beside and renames it: there is a whole one at any moment.
    pub(super) fn write(&self, file: &Path) -> io::Result<()> {
        let new = file.with_extension("new");
        fs::write(&new, serde_json::to_vec(self)?)?;
        fs::rename(new, file)
    }

    /// What was used of a period before the agent began.
    fn used_bytes(&self, boot_id: &str, interface: &Interface, length: Nanos, begun: Nanos) -> u64 {
        let is_it = |kept: &&KeptPeriod| {
            kept.interface == interface.name && (kept.length_ns, kept.begun_ns) == (length, begun)
        };
        let Some(kept) = self.periods.iter().find(is_it) else { return 0 };
        let counter = interface.counter;
        let since = match self.boot_id == boot_id {
            true => counter.checked_sub(kept.counter_bytes).unwrap_or(counter),
            false => counter,
        };
        kept.used_bytes.saturating_add(since)
    }
}

impl Ledger {
    /// Goes on with what an earlier agent has kept.
    pub(super) fn with(kept: Kept) -> Self {
        Self { kept, ..Self::default() }
    }

    /// Takes the kernel's counter of an interface, and begins a new period if it is time.
    pub(super) fn count(
        &mut self,
        boot_id: &str,
        (number, name): (u32, &str),
        counter: u64,
        length: Nanos,
        now: Nanos,
    ) {
        let place = self.interfaces.iter().position(|other| other.number == number);
        let place = place.unwrap_or_else(|| {
            self.interfaces.push(Interface { number, name: name.to_owned(), counter, total_bytes: 0 });
            self.interfaces.len() - 1
        });
        let of = &mut self.interfaces[place];
        let before = of.total_bytes;
        // A counter that has gone back belongs to an interface that was made anew.
        of.total_bytes += counter.checked_sub(of.counter).unwrap_or(counter);
        of.counter = counter;
        let begun = now - now % length;
        let is_it = |period: &&mut Period| (period.interface, period.length) == (number, length);
        match self.periods.iter_mut().find(is_it) {
            None => {
                let total_bytes = before.wrapping_sub(self.kept.used_bytes(boot_id, of, length, begun));
                self.periods.push(Period { interface: number, length, begun, total_bytes });
            }
            Some(period) if period.begun < begun => (period.begun, period.total_bytes) = (begun, before),
            Some(_) => {}
        }
    }

    /// What an interface has carried since the agent began.
    pub(super) fn total_bytes(&self, interface: u32) -> u64 {
        self.interfaces.iter().find(|other| other.number == interface).map_or(0, |of| of.total_bytes)
    }

    /// What it had carried when the present period of that length began; wrapped if that is below zero.
    pub(super) fn before_period_bytes(&self, interface: u32, length: Nanos) -> u64 {
        let is_it = |period: &&Period| (period.interface, period.length) == (interface, length);
        self.periods.iter().find(is_it).map_or(0, |period| period.total_bytes)
    }

    /// When the next period of any interface begins.
    pub(super) fn next_period(&self) -> Option<Nanos> {
        self.periods.iter().map(|period| period.begun + period.length).min()
    }

    /// For the next agent.
    pub(super) fn kept(&self, boot_id: &str) -> Kept {
        let periods = self.periods.iter().filter_map(|period| {
            let of = self.interfaces.iter().find(|of| of.number == period.interface)?;
            Some(KeptPeriod {
                interface: of.name.clone(),
                length_ns: period.length,
                begun_ns: period.begun,
                used_bytes: of.total_bytes.wrapping_sub(period.total_bytes),
                counter_bytes: of.counter,
            })
        });
        Kept { boot_id: boot_id.to_owned(), periods: periods.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WWAN: (u32, &str) = (3, "wwan0");

    fn used(ledger: &Ledger) -> u64 {
        ledger.total_bytes(3).wrapping_sub(ledger.before_period_bytes(3, 100))
    }

    #[test]
    fn a_period_counts_from_its_first_look_and_a_counter_that_goes_back_from_nothing() {
        let mut ledger = Ledger::default();
        ledger.count("boot", WWAN, 5_000, 100, 250);
        assert_eq!((used(&ledger), ledger.next_period()), (0, Some(300)));
        ledger.count("boot", WWAN, 5_700, 100, 299);
        assert_eq!(used(&ledger), 700);
        ledger.count("boot", WWAN, 5_800, 100, 300);
        assert_eq!((used(&ledger), ledger.total_bytes(3), ledger.next_period()), (100, 800, Some(400)));
        ledger.count("boot", WWAN, 50, 100, 310);
        assert_eq!((used(&ledger), ledger.total_bytes(3)), (150, 850));
        assert_eq!(ledger.total_bytes(4), 0);
    }

    #[test]
    fn the_next_agent_goes_on_with_the_period_and_counts_what_came_between() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("agent.json");
        assert_eq!(Kept::read(&file).unwrap(), Kept::default());
        let mut first = Ledger::default();
        first.count("boot", WWAN, 5_000, 100, 250);
        first.count("boot", WWAN, 5_700, 100, 260);
        first.kept("boot").write(&file).unwrap();

        let next = |boot: &str, counter, now| {
            let mut next = Ledger::with(Kept::read(&file).unwrap());
            next.count(boot, WWAN, counter, 100, now);
            used(&next)
        };
        assert_eq!(next("boot", 5_900, 270), 900, "200 came between");
        assert_eq!(next("another boot", 30, 270), 730, "30 since the boot");
        assert_eq!(next("boot", 5_900, 320), 0, "another period");

        fs::write(&file, "{}").unwrap();
        let error = Kept::read(&file).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().ends_with("; remove it to count anew"), "{error}");
    }
}
