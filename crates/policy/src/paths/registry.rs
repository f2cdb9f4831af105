//! The path managers that a scenario or a device's configuration can name.

use super::{
    PathManager, cost::Cost, dedicated::Dedicated, energy, failover::Failover, fullmesh::Fullmesh,
    kept::Kept, ndiffports::Ndiffports, pcdc::Pcdc, reestablish::Reestablish, reopen::Backoff,
};
use crate::scheduler::{ee::Ee, rounds::Objective};

/// What the number of a parameter means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathManagerUnit {
    /// Nanoseconds.
    Time,
    /// A plain number.
    Count,
    /// Bytes.
    Bytes,
    /// Thousandths.
    Permille,
    /// 0 or 1.
    Bool,
}

/// A parameter of a path manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathManagerParam {
    /// Name in scenario files.
    pub name: &'static str,
    /// Of all its values.
    pub unit: PathManagerUnit,
    /// Unless the scenario says otherwise.
    pub default: u64,
    /// Least value.
    pub min: u64,
    /// Greatest value.
    pub max: u64,
    /// What it is; one sentence.
    pub doc: &'static str,
}

/// A path manager of the registry.
#[derive(Clone, Copy, Debug)]
pub struct PathManagerInfo {
    /// Name in scenario files.
    pub name: &'static str,
    /// One line for lists.
    pub title: &'static str,
    /// A checked against the kernel's, B reconstructed from a paper, C a definition of this project.
    pub tag: &'static str,
    /// Whether the path manager in the kernel can do the same while nothing fails.
    pub in_kernel: bool,
    /// Whether every path has to go by a radio.
    pub reckons_energy: bool,
    /// In the order in which `make` takes them.
    pub params: &'static [PathManagerParam],
    make: fn(&[u64]) -> Box<dyn PathManager + Send>,
}

impl PathManagerInfo {
    /// A path manager before its first look.
    ///
    /// # Panics
    /// If there are not as many values as parameters, or one is out of range.
    pub fn make(&self, values: &[u64]) -> Box<dyn PathManager + Send> {
        assert_eq!(values.len(), self.params.len(), "parameters of {}", self.name);
        for (param, value) in self.params.iter().zip(values) {
            assert!((param.min..=param.max).contains(value), "{} of {}", param.name, self.name);
        }
        (self.make)(values)
    }

    /// Every parameter's default.
    pub fn defaults(&self) -> Vec<u64> {
        self.params.iter().map(|param| param.default).collect()
    }
}

/// The path manager of that name.
pub fn find(name: &str) -> Option<&'static PathManagerInfo> {
    PATH_MANAGERS.iter().find(|info| info.name == name)
}

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
const HOUR: u64 = 3_600 * S;
const DAY: u64 = 24 * HOUR;

const fn param(
    name: &'static str,
    unit: PathManagerUnit,
    default: u64,
    (min, max): (u64, u64),
    doc: &'static str,
) -> PathManagerParam {
    PathManagerParam { name, unit, default, min, max, doc }
}

const fn dead_after(default: u64) -> PathManagerParam {
    let doc = "Retransmission timeouts in a row after which a subflow counts as failed and is opened anew.";
    param("dead_after", PathManagerUnit::Count, default, (1, 100), doc)
}

const fn retry(default: u64) -> PathManagerParam {
    let doc = "From the first try to open a subflow to the second; doubled from try to try.";
    param("retry", PathManagerUnit::Time, default, (10 * MS, HOUR), doc)
}

const fn retry_max(default: u64) -> PathManagerParam {
    param("retry_max", PathManagerUnit::Time, default, (10 * MS, DAY), "Longest distance of two tries.")
}

const JITTER: PathManagerParam = param(
    "jitter",
    PathManagerUnit::Permille,
    250,
    (0, 1000),
    "Up to this share of the distance of two tries is added at random.",
);

/// The last three parameters of those that open subflows again.
fn backoff(values: &[u64]) -> Backoff {
    let [.., first, max, jitter_permille] = *values else { unreachable!("make has counted them") };
    Backoff { first, max, jitter_permille }
}

/// All path managers; the order is that of lists.
pub static PATH_MANAGERS: [PathManagerInfo; 9] = [
    PathManagerInfo {
        name: "default",
        title: "only the subflow that opens the connection",
        tag: "A",
        in_kernel: true,
        reckons_energy: false,
        params: &[],
        make: |_| Box::new(Kept),
    },
    PathManagerInfo {
        name: "fullmesh",
        title: "a subflow for every pair of a local and a remote address",
        tag: "A",
        in_kernel: true,
        reckons_energy: false,
        params: &[param(
            "retry",
            PathManagerUnit::Time,
            S,
            (10 * MS, HOUR),
            "A pair that could not be reached is tried once more after this.",
        )],
        make: |values| Box::new(Fullmesh::new(values[0])),
    },
    PathManagerInfo {
        name: "ndiffports",
        title: "several subflows over one pair of addresses",
        tag: "A",
        in_kernel: false,
        reckons_energy: false,
        params: &[param("num_subflows", PathManagerUnit::Count, 2, (1, 32), "Subflows in all.")],
        make: |values| Box::new(Ndiffports::new(values[0])),
    },
    PathManagerInfo {
        name: "dedicated-backup",
        title: "the first path carries the data, all others wait as backups (MPTCP-IoT)",
        tag: "B",
        in_kernel: false,
        reckons_energy: false,
        params: &[dead_after(5), retry(S), retry_max(60 * S), JITTER],
        make: |values| Box::new(Dedicated::new(values[0] as u32, backoff(values))),
    },
    PathManagerInfo {
        name: "failover",
        title: "a spare path takes over when the preferred ones fail, and hands back (house definition)",
        tag: "C",
        in_kernel: false,
        reckons_energy: false,
        params: &[
            dead_after(2),
            param(
                "hold",
                PathManagerUnit::Time,
                S,
                (0, HOUR),
                "A preferred path takes the data back when it has answered for this long without a break.",
            ),
            retry(500 * MS),
            retry_max(3 * S),
            JITTER,
        ],
        make: |values| Box::new(Failover::new(values[0] as u32, values[1], backoff(values))),
    },
    PathManagerInfo {
        name: "reestablish",
        title: "every path, opened again with back-off whenever its subflow ends (house definition)",
        tag: "C",
        in_kernel: false,
        reckons_energy: false,
        params: &[dead_after(5), retry(S), retry_max(60 * S), JITTER],
        make: |values| Box::new(Reestablish::new(values[0] as u32, backoff(values))),
    },
    PathManagerInfo {
        name: "cost",
        title: "every path, up to its data cap per period (house definition)",
        tag: "C",
        in_kernel: false,
        reckons_energy: false,
        params: &[
            param(
                "period",
                PathManagerUnit::Time,
                30 * DAY,
                (S, 366 * DAY),
                "What a path has carried counts from a multiple of this to the next.",
            ),
            param(
                "hard",
                PathManagerUnit::Bool,
                1,
                (0, 1),
                "At its cap a path is closed until the next period; if false, it becomes a backup.",
            ),
            dead_after(5),
            retry(S),
            retry_max(60 * S),
            JITTER,
        ],
        make: |values| Box::new(Cost::new(values[0], values[1] != 0, values[2] as u32, backoff(values))),
    },
    PathManagerInfo {
        name: "energy",
        title: "the paths with most rate per energy, dear radios late (EE-MPTCP 2022 and after eMPTCP 2015)",
        tag: "C",
        in_kernel: false,
        reckons_energy: true,
        params: &[
            param(
                "hold",
                PathManagerUnit::Time,
                0,
                (0, HOUR),
                "A choice holds at least for this, and for a round trip of the fastest path chosen.",
            ),
            param(
                "late_bytes",
                PathManagerUnit::Bytes,
                0,
                (0, 1_000_000_000_000),
                "Paths by a dearer radio than the first one's are opened when so much has been delivered.",
            ),
            param(
                "late_after",
                PathManagerUnit::Time,
                3 * S,
                (0, HOUR),
                "They are opened after this at the latest, unless the connection is idle.",
            ),
            param(
                "horizon",
                PathManagerUnit::Count,
                1000,
                (1, 1_000_000),
                "Most segments that are planned for; data without end counts as so many.",
            ),
            param(
                "window_max",
                PathManagerUnit::Count,
                1000,
                (1, 1_000_000),
                "Largest window that the model predicts.",
            ),
            param(
                "after_timeout",
                PathManagerUnit::Count,
                1,
                (1, 100),
                "Window that the model has after a timeout, the paper's CW(0).",
            ),
            dead_after(5),
            retry(S),
            retry_max(60 * S),
            JITTER,
        ],
        make: |values| {
            let [hold, bytes, after, horizon, most, initial, dead_after, ..] = *values else {
                unreachable!("make has counted them")
            };
            let rule = Ee { objective: Objective::PerEnergy, most: most as f64, initial: initial as f64 };
            let late = energy::Late { bytes, after };
            let backoff = backoff(values);
            Box::new(energy::Energy::new(rule, horizon, hold, late, dead_after as u32, backoff))
        },
    },
    PathManagerInfo {
        name: "pcdc",
        title: "only the subflows that add to the throughput (PCDC, LCN 2020)",
        tag: "B",
        in_kernel: false,
        reckons_energy: false,
        params: &[
            param(
                "phase",
                PathManagerUnit::Time,
                30 * S,
                (10 * MS, DAY),
                "How long each throughput is measured.",
            ),
            param(
                "settle",
                PathManagerUnit::Time,
                S,
                (0, HOUR),
                "Beginning of each phase that does not count: data on their way, windows that grow.",
            ),
            param(
                "again_after",
                PathManagerUnit::Time,
                0,
                (0, 366 * DAY),
                "A new measurement begins this long after the last one; 0: none does.",
            ),
            dead_after(5),
            retry(S),
            retry_max(60 * S),
            JITTER,
        ],
        make: |values| {
            let [phase, settle, again_after, dead_after, ..] = *values else {
                unreachable!("make has counted them")
            };
            Box::new(Pcdc::new(phase, settle, again_after, dead_after as u32, backoff(values)))
        },
    },
];
