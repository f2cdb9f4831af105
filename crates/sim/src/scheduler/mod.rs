//! Packet schedulers: which subflow carries the next data-level segment.
//!
//! A scheduler is one file with a type that implements [`Scheduler`], and one line in [`SCHEDULERS`].

mod minrtt;
mod roundrobin;

/// A subflow as a scheduler sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Candidate {
    /// Established, and not recovering from a timeout.
    pub(crate) usable: bool,
    /// The window has room for a packet.
    pub(crate) has_room: bool,
    /// Only to be used when no other is usable.
    pub(crate) backup: bool,
    /// Has carried this segment before.
    pub(crate) carried: bool,
    /// Smoothed round-trip time times 8, in microseconds; 0 before the first sample.
    pub(crate) srtt8_us: u32,
}

/// A scheduler's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pick {
    /// This subflow, by index.
    Subflow(usize),
    /// None now: a subflow that should carry it is full.
    Wait,
    /// Every usable subflow has carried this segment.
    AllCarried,
}

/// Chooses a subflow for one segment.
pub(crate) trait Scheduler {
    /// `subflows` in the order of the scenario.
    fn pick(&mut self, subflows: &[Candidate]) -> Pick;
}

/// One line per scheduler.
pub struct SchedulerInfo {
    /// Name in scenarios.
    pub name: &'static str,
    /// One line about it.
    pub title: &'static str,
    make: fn() -> Box<dyn Scheduler + Send>,
}

/// The registry.
pub const SCHEDULERS: &[SchedulerInfo] = &[
    SchedulerInfo {
        name: "minrtt",
        title: "lowest smoothed round-trip time first (default)",
        make: || Box::new(minrtt::MinRtt),
    },
    SchedulerInfo {
        name: "roundrobin",
        title: "one segment per subflow in turn, full subflows skipped",
        make: || Box::new(roundrobin::RoundRobin::default()),
    },
];

/// The scheduler of that name.
pub(crate) fn make(name: &str) -> Box<dyn Scheduler + Send> {
    let info = SCHEDULERS.iter().find(|info| info.name == name);
    (info.expect("the scenario checked the name").make)()
}

/// The fastest subflow that could carry a segment again.
pub(crate) fn fastest(subflows: &[Candidate]) -> Pick {
    minrtt::MinRtt.pick(subflows)
}

/// Classes of RFC 8684 section 3.3.8: backup subflows count only while no regular one is usable.
fn eligible(subflows: &[Candidate]) -> impl Iterator<Item = (usize, &Candidate)> {
    let regular = subflows.iter().any(|subflow| subflow.usable && !subflow.backup);
    subflows.iter().enumerate().filter(move |(_, subflow)| subflow.usable && !(regular && subflow.backup))
}

/// What to answer when no eligible subflow has room and has not carried the segment.
fn none_has_room(subflows: &[Candidate]) -> Pick {
    let mut eligible = eligible(subflows).peekable();
    if eligible.peek().is_some() && eligible.all(|(_, subflow)| subflow.carried) {
        Pick::AllCarried
    } else {
        Pick::Wait
    }
}
