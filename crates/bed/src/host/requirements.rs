//! What the test bed needs of machine and process, and how to get what is missing.

use std::{
    fs::{self, OpenOptions},
    io,
    path::Path,
};

use nix::{
    sys::resource::{Resource, getrlimit, setrlimit},
    unistd::geteuid,
};

use super::tool::run;
use crate::BedError;

/// Bits of `CapEff` in `/proc/PID/status` (capabilities(7)).
const CAPABILITIES: [(u32, &str); 2] = [(12, "CAP_NET_ADMIN"), (21, "CAP_SYS_ADMIN")];

/// Checks everything that a bed run needs before anything is touched.
///
/// # Errors
/// [`BedError::Unavailable`] with the first lack and its remedy.
pub fn check() -> Result<(), BedError> {
    permitted()?;
    tun_device(Path::new("/dev/net/tun"))?;
    if !Path::new("/proc/sys/net/mptcp/enabled").exists() {
        return unavailable("this kernel has no MPTCP: it must be Linux 5.6 or later, with CONFIG_MPTCP=y");
    }
    for program in ["ip", "tc"] {
        run(program, &["-Version"], None)?;
    }
    // An old ip(8) says that the object is unknown; a newer one prints its usage, and fails as well.
    match run("ip", &["mptcp", "help"], None) {
        Err(BedError::Failed(text)) if text.contains("unknown") => {
            unavailable("ip(8) here does not know MPTCP; the test bed needs iproute2 5.8 or later")
        }
        Err(error @ BedError::Unavailable(_)) => Err(error),
        _ => Ok(()),
    }
}

fn permitted() -> Result<(), BedError> {
    if !geteuid().is_root() {
        return unavailable(
            "the test bed makes network namespaces, for which it needs root; run it with sudo",
        );
    }
    let status = fs::read_to_string("/proc/self/status").map_err(BedError::system("/proc/self/status"))?;
    let missing = missing_capabilities(&status);
    if missing.is_empty() {
        return Ok(());
    }
    unavailable(&format!(
        "the test bed needs {}, which this process lacks; in a container, start it with --privileged",
        missing.join(" and ")
    ))
}

fn missing_capabilities(status: &str) -> Vec<&'static str> {
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
        .unwrap_or(0);
    CAPABILITIES.iter().filter(|(bit, _)| effective >> bit & 1 == 0).map(|(_, name)| *name).collect()
}

fn tun_device(path: &Path) -> Result<(), BedError> {
    let Err(error) = OpenOptions::new().read(true).write(true).open(path) else { return Ok(()) };
    let path = path.display();
    match error.kind() {
        io::ErrorKind::PermissionDenied => unavailable(&format!(
            "the test bed may not open {path} ({error}); in a container, start it with --device {path}"
        )),
        // ENODEV is the node of a driver that the kernel lacks.
        _ => unavailable(&format!(
            "the test bed needs TUN devices, but {path} cannot be opened ({error}): load the kernel's driver \
             with `modprobe tun`, or in a container start it with --device {path}"
        )),
    }
}

/// Lets this process have as many descriptors as its hard limit allows: a bed of hundreds of hosts needs some
/// for each.
///
/// # Errors
/// [`BedError::System`].
pub(super) fn raise_descriptor_limit() -> Result<(), BedError> {
    let failed = |errno: nix::Error| BedError::system("raising RLIMIT_NOFILE")(errno.into());
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(failed)?;
    if soft < hard { setrlimit(Resource::RLIMIT_NOFILE, hard, hard).map_err(failed) } else { Ok(()) }
}

fn unavailable(text: &str) -> Result<(), BedError> {
    Err(BedError::Unavailable(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_capability_is_named() {
        assert_eq!(missing_capabilities("CapEff:\t000001ffffffffff\n"), Vec::<&str>::new());
        assert_eq!(missing_capabilities("CapEff:\t0000000000001000\n"), ["CAP_SYS_ADMIN"]);
        assert_eq!(missing_capabilities("Name:\tx\n"), ["CAP_NET_ADMIN", "CAP_SYS_ADMIN"]);
    }

    #[test]
    fn a_missing_tun_device_is_explained() {
        let Err(BedError::Unavailable(text)) = tun_device(Path::new("/nowhere/tun")) else { panic!() };
        assert!(text.contains("/nowhere/tun") && text.contains("modprobe tun"), "{text}");
    }
}
