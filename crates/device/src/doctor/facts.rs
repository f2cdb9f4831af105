//! What the files of a machine say about it. Nothing is judged here, and no program is started.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;

/// Path managers other than the kernel's own, by the name of their process.
const MANAGERS: [&str; 2] = ["NetworkManager", "mptcpd"];

/// Bits of `CapEff` (capabilities(7)) that loading a BPF congestion control takes; `CAP_SYS_ADMIN` stands for all.
const CAPABILITIES: [(u32, &str); 3] = [(12, "CAP_NET_ADMIN"), (38, "CAP_PERFMON"), (39, "CAP_BPF")];
const CAP_SYS_ADMIN: u32 = 21;

/// A machine as its files show it. A file that is missing or unreadable makes the field `None`, `false` or empty.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    /// Release of the kernel, `6.1.0-18-amd64`.
    pub release: String,
    /// Architecture as `uname -m` names it.
    pub architecture: String,
    /// The kernel has the `bpf` system call (`CONFIG_BPF_SYSCALL`).
    pub bpf: bool,
    /// `net.core.bpf_jit_enable`; unknown in network namespaces other than the first.
    pub jit: Option<u32>,
    /// The kernel describes its types (`CONFIG_DEBUG_INFO_BTF`).
    pub btf: bool,
    /// `none`, `integrity` or `confidentiality`; unknown without the lockdown module.
    pub lockdown: Option<String>,
    /// Where the BPF file system is mounted.
    pub bpffs: Option<PathBuf>,
    /// Where the second version of control groups is mounted.
    pub cgroup2: Option<PathBuf>,
    /// Capabilities that this process lacks.
    pub missing_capabilities: Vec<&'static str>,
    /// `net.mptcp.enabled`; unknown if the kernel has no Multipath TCP.
    pub mptcp_enabled: Option<bool>,
    /// `kernel`, `userspace` or another; unknown before Linux 5.19.
    pub path_manager: Option<String>,
    /// Names of other path managers that run, sorted.
    pub managers: Vec<String>,
    /// Default congestion control of this network namespace.
    pub congestion: Option<String>,
    /// Names of the congestion controls that the kernel has now.
    pub available_congestion: Vec<String>,
    /// Memory that this process may lock, in bytes; unknown if it is not limited.
    pub memlock_bytes: Option<u64>,
}

impl Facts {
    /// Reads `proc` and `sys` under `root`, which is `/` but for tests. Kernels before 6.1 do not tell their
    /// `architecture` in a file; then it is the argument.
    pub fn read(root: &Path, architecture: &str) -> Self {
        let text = |path: &str| {
            let text = fs::read_to_string(root.join(path)).ok()?;
            Some(text.trim().to_owned())
        };
        let mounts = text("proc/self/mounts").unwrap_or_default();
        let status = text("proc/self/status").unwrap_or_default();
        let words = |path: &str| -> Vec<String> {
            text(path).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
        };
        Self {
            release: text("proc/sys/kernel/osrelease").unwrap_or_default(),
            architecture: text("proc/sys/kernel/arch").unwrap_or_else(|| architecture.to_owned()),
            bpf: root.join("proc/sys/kernel/unprivileged_bpf_disabled").exists(),
            jit: text("proc/sys/net/core/bpf_jit_enable").and_then(|value| value.parse().ok()),
            btf: root.join("sys/kernel/btf/vmlinux").exists(),
            lockdown: text("sys/kernel/security/lockdown").as_deref().and_then(bracketed),
            bpffs: mounted(&mounts, "bpf"),
            cgroup2: mounted(&mounts, "cgroup2"),
            missing_capabilities: missing_capabilities(&status),
            mptcp_enabled: text("proc/sys/net/mptcp/enabled").map(|value| value == "1"),
            path_manager: path_manager_in(root),
            managers: managers(&root.join("proc")),
            congestion: text("proc/sys/net/ipv4/tcp_congestion_control"),
            available_congestion: words("proc/sys/net/ipv4/tcp_available_congestion_control"),
            memlock_bytes: text("proc/self/limits").as_deref().and_then(memlock),
        }
    }
}

/// Who manages connections that begin now, by the files under `root`; unknown before Linux 5.19.
pub(crate) fn path_manager_in(root: &Path) -> Option<String> {
    let text = |name: &str| {
        let text = fs::read_to_string(root.join("proc/sys/net/mptcp").join(name)).ok()?;
        Some(text.trim().to_owned())
    };
    text("path_manager").or_else(|| text("pm_type").map(|number| by_number(&number)))
}

/// `net.mptcp.pm_type` in the words of its successor.
fn by_number(number: &str) -> String {
    match number {
        "0" => "kernel".to_owned(),
        "1" => "userspace".to_owned(),
        other => format!("type {other}"),
    }
}

/// The choice in brackets of a text like `none [integrity] confidentiality`.
fn bracketed(text: &str) -> Option<String> {
    Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
}

/// The first place where a file system of that type is mounted (fstab(5) order of fields).
fn mounted(mounts: &str, kind: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (place, found) = (fields.next()?, fields.next()?);
        (found == kind).then(|| PathBuf::from(place))
    })
}

fn missing_capabilities(status: &str) -> Vec<&'static str> {
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
        .unwrap_or(0);
    let has = |bit: u32| effective >> bit & 1 == 1;
    if has(CAP_SYS_ADMIN) {
        return Vec::new();
    }
    CAPABILITIES.iter().filter(|(bit, _)| !has(*bit)).map(|(_, name)| *name).collect()
}

fn memlock(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn managers(proc: &Path) -> Vec<String> {
    let processes = fs::read_dir(proc).into_iter().flatten().flatten();
    let commands = processes.filter_map(|process| {
        process.file_name().to_str()?.parse::<u32>().ok()?;
        fs::read_to_string(process.path().join("comm")).ok()
    });
    let mut found: Vec<String> = commands
        .map(|name| name.trim().to_owned())
        .filter(|name| MANAGERS.contains(&name.as_str()))
        .collect();
    found.sort();
    found.dedup();
    found
}
