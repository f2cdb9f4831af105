//! The doctor on made-up machines.

use std::{fs, path::Path, process::Command};

use anabranch_device::doctor::{Facts, Report, Standing, Tier, examine};
use serde_json::Value;

/// CapEff of root, and of an ordinary user.
const ROOT: &str = "CapEff:\t000001ffffffffff\n";
const NOBODY: &str = "CapEff:\t0000000000000000\n";

const MOUNTS: &str =
    "proc /proc proc rw 0 0\nbpf /sys/fs/bpf bpf rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n";

/// Debian 13 on an x86-64 machine: nothing is amiss.
const DEBIAN_13: [(&str, &str); 11] = [
    ("proc/sys/kernel/osrelease", "6.12.41+deb13-amd64\n"),
    ("proc/sys/kernel/arch", "x86_64\n"),
    ("proc/sys/kernel/unprivileged_bpf_disabled", "2\n"),
    ("proc/sys/net/core/bpf_jit_enable", "1\n"),
    ("sys/kernel/btf/vmlinux", ""),
    ("proc/self/status", ROOT),
    ("proc/self/mounts", MOUNTS),
    ("proc/sys/net/mptcp/enabled", "1\n"),
    ("proc/sys/net/mptcp/pm_type", "0\n"),
    ("proc/sys/net/ipv4/tcp_congestion_control", "cubic\n"),
    ("proc/sys/net/ipv4/tcp_available_congestion_control", "reno cubic\n"),
];

/// The doctor's report on Debian 13 with files replaced (`Some`) or removed (`None`).
fn report(changes: &[(&str, Option<&str>)]) -> Report {
    let root = tempfile::tempdir().expect("a temporary folder");
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
    };
    for (path, text) in DEBIAN_13 {
        write(path, text);
    }
    for (path, text) in changes {
        match text {
            Some(text) => write(path, text),
            None => fs::remove_file(root.path().join(path)).expect("Debian 13 has it"),
        }
    }
    examine(&Facts::read(root.path(), "x86_64"))
}

/// What is lacking, in the order of the report.
fn lacks(report: &Report) -> Vec<&'static str> {
    let lacking = report.findings.iter().filter(|finding| finding.standing == Standing::Lack);
    lacking.map(|finding| finding.what).collect()
}

fn line<'a>(report: &'a Report, what: &str) -> (Standing, &'a str, &'a str) {
    let finding = report.findings.iter().find(|finding| finding.what == what);
    let finding = finding.unwrap_or_else(|| panic!("nothing about {what}"));
    (finding.standing, &finding.found, finding.remedy.as_deref().unwrap_or_default())
}

#[test]
fn a_machine_without_a_lack_is_ready() {
    let report = report(&[]);
    assert_eq!((report.tier, report.ready), (Tier::A, true));
    assert!(report.findings.iter().all(|finding| finding.standing == Standing::Ok), "{report:?}");
    assert_eq!(line(&report, "congestion").1, "default cubic; the kernel has reno cubic");
}

#[test]
fn raspberry_pi_os_without_btf_is_tier_b() {
    let report = report(&[
        ("proc/sys/kernel/osrelease", Some("6.12.47+rpt-rpi-v8\n")),
        ("proc/sys/kernel/arch", Some("aarch64\n")),
        ("sys/kernel/btf/vmlinux", None),
    ]);
    assert_eq!((report.tier, report.ready), (Tier::B, false));
    assert_eq!(lacks(&report), ["btf"]);
    assert!(line(&report, "btf").2.contains("CONFIG_DEBUG_INFO_BTF=y"));
}

#[test]
fn raspberry_pi_os_of_32_bits_is_told_to_boot_a_64_bit_kernel() {
    let report = report(&[
        ("proc/sys/kernel/osrelease", Some("6.12.47+rpt-rpi-v7\n")),
        ("proc/sys/kernel/arch", Some("armv7l\n")),
        ("sys/kernel/btf/vmlinux", None),
    ]);
    assert_eq!(report.tier, Tier::B);
    assert_eq!(lacks(&report), ["trampolines", "btf"]);
    assert!(line(&report, "trampolines").2.contains("boot a 64-bit kernel"));
}

#[test]
fn openwrt_on_mips_is_tier_b_with_every_lack_named() {
    let report = report(&[
        ("proc/sys/kernel/osrelease", Some("6.6.73\n")),
        ("proc/sys/kernel/arch", Some("mips\n")),
        ("proc/sys/kernel/unprivileged_bpf_disabled", None),
        ("proc/sys/net/core/bpf_jit_enable", None),
        ("sys/kernel/btf/vmlinux", None),
        ("proc/self/mounts", Some("proc /proc proc rw 0 0\n")),
    ]);
    assert_eq!((report.tier, report.ready), (Tier::B, false));
    assert_eq!(lacks(&report), ["trampolines", "bpf", "btf", "bpffs"]);
    assert_eq!(line(&report, "bpffs").2, "mount -t bpf bpf /sys/fs/bpf");
}

#[test]
fn debian_12_has_an_old_kernel_and_the_older_name_of_the_path_manager() {
    let report = report(&[
        ("proc/sys/kernel/osrelease", Some("6.1.0-37-amd64\n")),
        ("proc/sys/net/mptcp/pm_type", Some("1\n")),
    ]);
    assert_eq!(report.tier, Tier::B);
    assert_eq!(lacks(&report), ["kernel"]);
    assert_eq!(
        line(&report, "kernel"),
        (
            Standing::Lack,
            "Linux 6.1.0-37-amd64",
            "BPF congestion control needs Linux 6.4 or later: update the kernel"
        )
    );
    assert_eq!(line(&report, "path manager").0, Standing::Note);
}

#[test]
fn newer_kernels_name_the_path_manager() {
    let found = report(&[("proc/sys/net/mptcp/path_manager", Some("userspace\n"))]);
    assert!(line(&found, "path manager").1.starts_with("userspace"));
    assert!(found.ready, "a note is no lack");
}

#[test]
fn without_mptcp_the_single_path_algorithms_remain() {
    let gone = [("proc/sys/net/mptcp/enabled", None), ("proc/sys/net/mptcp/pm_type", None)];
    let with_bpf = report(&gone);
    assert_eq!((with_bpf.tier, with_bpf.ready), (Tier::A, false));
    assert_eq!(lacks(&with_bpf), ["mptcp"]);
    let without = report(&[gone[0], gone[1], ("sys/kernel/btf/vmlinux", None)]);
    assert_eq!(without.tier, Tier::Neither);
}

#[test]
fn mptcp_that_is_switched_off_is_a_lack() {
    let report = report(&[("proc/sys/net/mptcp/enabled", Some("0\n"))]);
    assert_eq!(line(&report, "mptcp").2, "sysctl -w net.mptcp.enabled=1");
    assert_eq!((report.tier, report.ready), (Tier::A, false));
}

#[test]
fn an_ordinary_user_learns_the_tier_and_what_the_process_lacks() {
    let report = report(&[("proc/self/status", Some(NOBODY))]);
    assert_eq!((report.tier, report.ready), (Tier::A, false));
    assert_eq!(lacks(&report), ["capabilities"]);
    assert_eq!(line(&report, "capabilities").1, "this process lacks CAP_NET_ADMIN, CAP_PERFMON, CAP_BPF");
}

#[test]
fn other_managers_are_named_and_no_lack() {
    let report = report(&[
        ("proc/812/comm", Some("NetworkManager\n")),
        ("proc/900/comm", Some("mptcpd\n")),
        ("proc/901/comm", Some("sshd\n")),
        ("proc/sys/comm", Some("mptcpd\n")),
    ]);
    let (standing, found, _) = line(&report, "other managers");
    assert_eq!(standing, Standing::Note);
    assert_eq!(found, "NetworkManager and mptcpd: may set MPTCP endpoints, too");
    assert!(report.ready);
}

#[test]
fn lockdown_and_a_switched_off_compiler_stand_in_the_way() {
    let report = report(&[
        ("sys/kernel/security/lockdown", Some("none integrity [confidentiality]\n")),
        ("proc/sys/net/core/bpf_jit_enable", Some("0\n")),
    ]);
    assert_eq!(report.tier, Tier::B);
    assert_eq!(lacks(&report), ["jit", "lockdown"]);
}

#[test]
fn locked_memory_matters_before_5_11_only() {
    let limits = "Max locked memory         65536                65536                bytes\n";
    let old = report(&[
        ("proc/sys/kernel/osrelease", Some("5.10.0-30-amd64\n")),
        ("proc/self/limits", Some(limits)),
    ]);
    assert!(line(&old, "memlock").1.contains("65536 bytes"));
    let new = report(&[("proc/self/limits", Some(limits))]);
    assert!(new.findings.iter().all(|finding| finding.what != "memlock"));
}

#[test]
fn the_command_prints_the_same_for_programs_and_tells_readiness_by_its_exit_code() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranchd"));
    let output = command.args(["doctor", "--json"]).output().expect("it starts");
    let said: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert!(["A", "B", "none"].iter().any(|tier| said["report"]["tier"] == *tier), "{said}");
    let ready = said["report"]["ready"].as_bool().expect("true or false");
    assert_eq!(output.status.code(), Some(if ready { 0 } else { 4 }));
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("this is Linux");
    assert_eq!(said["facts"]["release"], release.trim());

    let text = Command::new(env!("CARGO_BIN_EXE_anabranchd")).arg("doctor").output().expect("it starts");
    let text = String::from_utf8(text.stdout).expect("it speaks UTF-8");
    let lacks = said["report"]["findings"].as_array().expect("an array").iter();
    let lacks = lacks.filter(|finding| finding["standing"] == "lack").count();
    assert_eq!(text.lines().filter(|line| line.starts_with("LACK")).count(), lacks, "{text}");
}

#[test]
fn an_empty_root_is_reported_and_does_not_fail() {
    let report = examine(&Facts::read(Path::new("/nowhere"), "x86_64"));
    assert_eq!((report.tier, report.ready), (Tier::Neither, false));
    assert_eq!(lacks(&report), ["kernel", "bpf", "btf", "bpffs", "capabilities", "mptcp"]);
}
