//! Sysctls of a network namespace, and of nothing else.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::PathBuf,
};

use super::Namespace;
use crate::BedError;

/// Sets sysctls in `namespace`, in order, by their dotted names.
///
/// # Errors
/// [`BedError::Input`] if one is not a setting of network namespaces (the host would change with it), or has
/// a value that the kernel refuses; [`BedError::Unavailable`] if this kernel has no such sysctl.
pub(super) fn set(namespace: &Namespace, settings: &[(String, String)]) -> Result<(), BedError> {
    let mut targets = Vec::with_capacity(settings.len());
    for (name, _) in settings {
        let path = path(name)?;
        // Held open while the namespace looks at its own, so that the kernel keeps its number.
        let host = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&path).ok();
        targets.push((path, host));
    }
    namespace.enter(|| {
        for ((name, value), (path, host)) in settings.iter().zip(&targets) {
            set_here(name, value, path, host.as_ref())?;
        }
        Ok(())
    })?
}

fn set_here(name: &str, value: &str, path: &PathBuf, host: Option<&File>) -> Result<(), BedError> {
    let failed = |source| BedError::system(format!("setting sysctl {name}"))(source);
    let host_wide = || {
        BedError::Input(format!(
            "sysctl {name} belongs to the whole host, not to a network namespace; the test bed leaves the host \
             as it is: leave it out, or set it by hand before the run"
        ))
    };
    let inside = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && host.is_some() => return Err(host_wide()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(BedError::Unavailable(format!("this kernel has no sysctl {name}")));
        }
        result => result.map_err(failed)?,
    };
    // One inode is one setting; a namespace has copies of what is its own, and may not write the rest.
    let host = host.map(File::metadata).transpose().map_err(failed)?;
    let shared = host.is_some_and(|host| (host.dev(), host.ino()) == (inside.dev(), inside.ino()));
    if shared || inside.permissions().mode() & 0o222 == 0 {
        return Err(host_wide());
    }
    fs::write(path, value).map_err(|source| match source.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::NotFound => {
            BedError::Input(format!("the kernel refuses the value {value:?} for sysctl {name} ({source})"))
        }
        _ => failed(source),
    })
}

/// The file of a dotted name.
fn path(name: &str) -> Result<PathBuf, BedError> {
    let legal = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    if name.starts_with("net.") && name.split('.').all(legal) {
        return Ok(format!("/proc/sys/{}", name.replace('.', "/")).into());
    }
    Err(BedError::Input(format!(
        "sysctl {name:?} is not one of network namespaces, which begin with \"net.\"; the test bed leaves the \
         host as it is"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dotted_name_is_a_path_below_proc_sys() {
        let file = PathBuf::from("/proc/sys/net/ipv4/tcp_rmem");
        assert_eq!(path("net.ipv4.tcp_rmem").unwrap(), file);
    }

    #[test]
    fn names_outside_net_and_names_that_lead_elsewhere_are_refused() {
        for name in
            ["kernel.hostname", "net", "net.", "net..ipv4", "net.../kernel", "net/ipv4.x", "vm.net.x", ""]
        {
            assert!(matches!(path(name), Err(BedError::Input(_))), "{name}");
        }
    }
}
