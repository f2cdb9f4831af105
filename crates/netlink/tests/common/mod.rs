//! What the conversations with the kernel share: skipping by name, namespaces, waiting for events.

// Every test binary compiles this module and uses a part of it.
#![allow(dead_code, unreachable_pub)]

#[path = "../../../kernel/tests/common/lab.rs"]
pub mod lab;

use std::{fmt::Debug, fs, io::Write as _, path::Path, process::Command, time::Duration};

use anabranch_netlink::{Listener, Notification};

/// How long an event may take to come.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Whether to skip a test because this machine cannot have network namespaces with Multipath TCP; says why and what would
/// enable it.
///
/// # Panics
/// Instead of skipping, if `ANABRANCH_REQUIRE` lists `bed`.
pub fn skip(test: &str) -> bool {
    let as_root = concat!("sudo -E env PATH=\"$PATH\" cargo test -p ", env!("CARGO_PKG_NAME"));
    let (why, enable) = if !nix::unistd::geteuid().is_root() {
        ("needs root", as_root)
    } else if !may_make_namespaces() {
        ("root lacks CAP_NET_ADMIN or CAP_SYS_ADMIN", "run it outside of the container")
    } else if !Path::new("/proc/sys/net/mptcp/enabled").exists() {
        ("this kernel has no Multipath TCP", "boot a kernel with CONFIG_MPTCP=y")
    } else if Command::new("ip").arg("-V").output().is_err() {
        ("there is no ip(8)", "apt-get install iproute2")
    } else {
        return false;
    };
    let required = std::env::var("ANABRANCH_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|what| what == "bed"), "{test} is required: {why}; {enable}");
    let line = format!("SKIPPED: {test}: {why}; enable with: {enable}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("stderr is open");
    true
}

/// Whether the process has `CAP_NET_ADMIN` (12) and `CAP_SYS_ADMIN` (21).
fn may_make_namespaces() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("it is readable");
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).expect("it has the line");
    let effective = u64::from_str_radix(effective.trim(), 16).expect("it is hexadecimal");
    [12, 21].iter().all(|capability| effective >> capability & 1 == 1)
}

/// The next event that `take` makes something of.
///
/// # Panics
/// If none comes in time.
pub fn until<E: Notification + Debug, T>(
    events: &mut Listener<E>,
    mut take: impl FnMut(&E) -> Option<T>,
) -> T {
    let mut others = Vec::new();
    while let Some(event) = events.wait(PATIENCE).expect("events are readable") {
        if let Some(taken) = take(&event) {
            return taken;
        }
        others.push(event);
    }
    panic!("not within {PATIENCE:?}; there was {others:#?}");
}

/// SplitMix64 (Steele, Lea, Flood 2014), for names of namespaces.
pub struct Random(pub u64);

impl Random {
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
