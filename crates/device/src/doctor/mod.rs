//! Whether a machine can run the congestion controls, and what to do if not.
//!
//! Left out: whether the verifier of this very kernel accepts the programs, which only loading tells, and restrictions
//! that no file shows (seccomp filters, security modules but lockdown).

mod facts;

use serde::Serialize;

pub use facts::Facts;
#[cfg(feature = "agent")]
pub(crate) use facts::path_manager_in;

/// As `anabranch_kernel::OLDEST_RELEASE`, which is not there without the feature `cc`.
const OLDEST_RELEASE: (u32, u32) = (6, 4);
/// Since then BPF memory counts for the control group, not against the limit of locked memory.
const MEMLOCK_FREE: (u32, u32) = (5, 11);
/// Architectures whose BPF trampolines a release of [`OLDEST_RELEASE`] or later has.
const TRAMPOLINES: [&str; 3] = ["x86_64", "aarch64", "riscv64"];

/// What a machine can be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Tier {
    /// BPF congestion controls, and all of B if it has Multipath TCP.
    A,
    /// A user-space path manager, and the settings that each socket has; no BPF congestion controls.
    B,
    /// Neither BPF congestion controls nor Multipath TCP.
    #[serde(rename = "none")]
    Neither,
}

/// How a finding is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// As it should be.
    Ok,
    /// Something to know.
    Note,
    /// It stands in the way of loading or of coupling.
    Lack,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub what: &'static str,
    /// How it stands.
    pub standing: Standing,
    /// What was found.
    pub found: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

/// What [`examine`] has to say.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What the machine can be used for, whoever asks.
    pub tier: Tier,
    /// Tier A, and nothing stands in the way of loading and coupling right now, from this process.
    pub ready: bool,
    /// What was looked at.
    pub findings: Vec<Finding>,
}

/// Judges a machine.
pub fn examine(facts: &Facts) -> Report {
    let kernel = [kernel(facts), architecture(facts), bpf(facts), btf(facts), jit(facts), lockdown(facts)];
    let bpf_works = kernel.iter().flatten().all(|finding| finding.standing != Standing::Lack);
    let tier = match (bpf_works, facts.mptcp_enabled.is_some()) {
        (true, _) => Tier::A,
        (false, true) => Tier::B,
        (false, false) => Tier::Neither,
    };
    let here = [bpffs(facts), capabilities(facts), memlock(facts)];
    let network =
        [mptcp(facts), path_manager(facts), managers(facts), congestion(facts), control_groups(facts)];
    let findings: Vec<Finding> = kernel.into_iter().chain(here).chain(network).flatten().collect();
    let ready = tier == Tier::A && findings.iter().all(|finding| finding.standing != Standing::Lack);
    Report { tier, ready, findings }
}

fn finding(what: &'static str, standing: Standing, found: impl Into<String>) -> Option<Finding> {
    Some(Finding { what, standing, found: found.into(), remedy: None })
}

fn ok(what: &'static str, found: impl Into<String>) -> Option<Finding> {
    finding(what, Standing::Ok, found)
}

fn with_remedy(finding: Option<Finding>, remedy: impl Into<String>) -> Option<Finding> {
    finding.map(|finding| Finding { remedy: Some(remedy.into()), ..finding })
}

fn lack(what: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Option<Finding> {
    with_remedy(finding(what, Standing::Lack, found), remedy)
}

fn note(what: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Option<Finding> {
    with_remedy(finding(what, Standing::Note, found), remedy)
}

/// Major and minor number of a release; zeros if it has none.
fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

fn kernel(facts: &Facts) -> Option<Finding> {
    let found = format!("Linux {}", facts.release);
    if version(&facts.release) >= OLDEST_RELEASE {
        return ok("kernel", found);
    }
    let (major, minor) = OLDEST_RELEASE;
    lack(
        "kernel",
        found,
        format!("BPF congestion control needs Linux {major}.{minor} or later: update the kernel"),
    )
}

fn architecture(facts: &Facts) -> Option<Finding> {
    let found = &facts.architecture;
    if TRAMPOLINES.contains(&found.as_str()) {
        return ok("trampolines", format!("{found} has BPF trampolines"));
    }
    let remedy = match found.as_str() {
        "armv6l" | "armv7l" | "arm" => {
            "32-bit ARM has none; if the processor is a 64-bit one (Raspberry Pi 3 and later), boot a 64-bit kernel"
        }
        "i386" | "i486" | "i586" | "i686" | "x86" => {
            "32-bit x86 has none; boot an x86-64 kernel if the processor can"
        }
        _ => "they are known to be on x86-64, arm64 and riscv64; nothing helps on others",
    };
    lack("trampolines", format!("no BPF trampolines known for {found}"), remedy)
}

fn bpf(facts: &Facts) -> Option<Finding> {
    match facts.bpf {
        true => ok("bpf", "the bpf system call is there"),
        false => lack(
            "bpf",
            "no bpf system call",
            "boot a kernel built with CONFIG_BPF_SYSCALL=y and CONFIG_BPF_JIT=y",
        ),
    }
}

fn btf(facts: &Facts) -> Option<Finding> {
    match facts.btf {
        true => ok("btf", "/sys/kernel/btf/vmlinux"),
        false => lack(
            "btf",
            "no /sys/kernel/btf/vmlinux",
            "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y (Debian's own kernels are; those of Raspberry Pi OS and \
             OpenWrt often are not)",
        ),
    }
}

fn jit(facts: &Facts) -> Option<Finding> {
    match facts.jit? {
        0 => lack("jit", "net.core.bpf_jit_enable is 0", "sysctl -w net.core.bpf_jit_enable=1"),
        _ => ok("jit", "BPF programs are compiled"),
    }
}

fn lockdown(facts: &Facts) -> Option<Finding> {
    match facts.lockdown.as_deref()? {
        "confidentiality" => lack(
            "lockdown",
            "the kernel is locked down for confidentiality, so that BPF may not read its memory",
            "boot with lockdown=integrity, or without it",
        ),
        other => ok("lockdown", other),
    }
}

fn bpffs(facts: &Facts) -> Option<Finding> {
    match &facts.bpffs {
        Some(place) => ok("bpffs", place.display().to_string()),
        None => lack("bpffs", "no BPF file system is mounted", "mount -t bpf bpf /sys/fs/bpf"),
    }
}

fn capabilities(facts: &Facts) -> Option<Finding> {
    if facts.missing_capabilities.is_empty() {
        return ok("capabilities", "this process may load BPF programs");
    }
    lack(
        "capabilities",
        format!("this process lacks {}", facts.missing_capabilities.join(", ")),
        "run it as root (sudo); in a container, add these capabilities",
    )
}

fn memlock(facts: &Facts) -> Option<Finding> {
    let bytes = facts.memlock_bytes.filter(|_| version(&facts.release) < MEMLOCK_FREE)?;
    note(
        "memlock",
        format!("this process may lock {bytes} bytes, and before Linux 5.11 BPF maps count"),
        "ulimit -l unlimited",
    )
}

fn mptcp(facts: &Facts) -> Option<Finding> {
    match facts.mptcp_enabled {
        Some(true) => ok("mptcp", "enabled"),
        Some(false) => lack("mptcp", "net.mptcp.enabled is 0", "sysctl -w net.mptcp.enabled=1"),
        None => lack(
            "mptcp",
            "this kernel has no Multipath TCP",
            "boot Linux 5.6 or later built with CONFIG_MPTCP=y; without it no algorithm has subflows to couple",
        ),
    }
}

fn path_manager(facts: &Facts) -> Option<Finding> {
    facts.mptcp_enabled?;
    match facts.path_manager.as_deref() {
        Some("kernel") => ok("path manager", "kernel: it makes subflows of what `ip mptcp endpoint` lists"),
        Some("userspace") => note(
            "path manager",
            "userspace: no subflow is made unless a daemon asks for it",
            "run such a daemon, or sysctl -w net.mptcp.pm_type=0",
        ),
        Some(other) => note("path manager", other, "see net.mptcp.available_path_managers"),
        None => note(
            "path manager",
            "kernel: this release has no other",
            "one in user space needs Linux 5.19 or later",
        ),
    }
}

fn managers(facts: &Facts) -> Option<Finding> {
    facts.mptcp_enabled?;
    if facts.managers.is_empty() {
        return ok("other managers", "none runs");
    }
    note(
        "other managers",
        format!("{}: may set MPTCP endpoints, too", facts.managers.join(" and ")),
        "let only one do it: for NetworkManager 1.40 and later set connection.mptcp-flags, for mptcpd stop its service",
    )
}

fn congestion(facts: &Facts) -> Option<Finding> {
    let default = facts.congestion.as_deref()?;
    ok("congestion", format!("default {default}; the kernel has {}", facts.available_congestion.join(" ")))
}

fn control_groups(facts: &Facts) -> Option<Finding> {
    match &facts.cgroup2 {
        Some(place) => ok("cgroup2", place.display().to_string()),
        None => note(
            "cgroup2",
            "control groups of version 2 are not mounted",
            "mount -t cgroup2 cgroup2 /sys/fs/cgroup; only `cc use --cgroup` needs them",
        ),
    }
}

#[cfg(all(test, feature = "cc"))]
mod tests {
    #[test]
    fn the_oldest_release_is_that_of_the_loader() {
        assert_eq!(super::OLDEST_RELEASE, anabranch_kernel::OLDEST_RELEASE);
    }
}
