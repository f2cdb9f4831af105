//! Whether this machine and this process can load a BPF congestion control.

use std::{fs, path::Path};

use crate::KernelError;

/// The oldest release that loads our objects: `BPF_LINK_CREATE` for struct_ops came with 6.4, the typed reads of the
/// shim with 6.2.
pub const OLDEST_RELEASE: (u32, u32) = (6, 4);
const OLDEST_TEXT: &str = "6.4";

const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// Checks kernel release, BTF and privileges, without loading anything.
///
/// # Errors
/// [`KernelError::KernelTooOld`], [`KernelError::NoBtf`] or [`KernelError::NotPermitted`].
pub fn check_host() -> Result<(), KernelError> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    check_release(release.trim())?;
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(KernelError::NoBtf);
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if may_load(&status) { Ok(()) } else { Err(KernelError::NotPermitted) }
}

fn check_release(release: &str) -> Result<(), KernelError> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version >= OLDEST_RELEASE {
        Ok(())
    } else {
        Err(KernelError::KernelTooOld { found: release.to_owned(), needed: OLDEST_TEXT })
    }
}

/// Reads the effective capabilities out of `/proc/self/status`.
fn may_load(status: &str) -> bool {
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0);
    let has = |capability: u32| effective >> capability & 1 == 1;
    has(CAP_SYS_ADMIN) || [CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN].into_iter().all(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_before_links_for_struct_ops_are_refused() {
        for old in ["5.15.0-91-generic", "6.3.9", "4.19", ""] {
            assert!(matches!(check_release(old), Err(KernelError::KernelTooOld { .. })), "{old}");
        }
        for new in ["6.4.0", "6.18.44-fc-v669", "10.0-rc1"] {
            assert!(check_release(new).is_ok(), "{new}");
        }
    }

    #[test]
    fn three_capabilities_or_sys_admin_are_enough() {
        let status = |bits: u64| format!("Name:\tx\nCapEff:\t{bits:016x}\nCapBnd:\t0\n");
        assert!(may_load(&status(1 << CAP_SYS_ADMIN)));
        assert!(may_load(&status(1 << CAP_BPF | 1 << CAP_PERFMON | 1 << CAP_NET_ADMIN)));
        assert!(!may_load(&status(1 << CAP_BPF | 1 << CAP_NET_ADMIN)));
        assert!(!may_load(&status(0)));
        assert!(!may_load(""));
    }
}
