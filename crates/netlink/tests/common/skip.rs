//! Skipping, by name, of tests that this machine cannot run.

use std::{fs, io::Write as _, path::Path, process::Command};

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
