//! Algorithms as the default of a network namespace (`net.ipv4.tcp_congestion_control`).
//!
//! What was the default before is kept as the text of a symbolic link in the folder of registrations, such as
//! `netns-4026531840`, so that it is gone after a reboot like the selection itself. A namespace made later has the default
//! that the first one has at that time, and no record.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anabranch_cc::Algorithm;
use anabranch_kernel::{Pins, kernel_name};
use serde::Serialize;

use super::{Namespace, cgroups, is_registered, namespaces};
use crate::DeviceError;

const NETNS: &str = "netns-";
/// Every kernel has it, and it cannot be unloaded.
const FALLBACK: &str = "reno";

/// Something that `use` has set.
#[derive(Clone, Debug, Serialize)]
pub struct Selection {
    /// `network namespace` or `control group`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// What its new sockets use.
    pub congestion: String,
}

/// What [`use_in_namespace`] has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The default before.
    pub before: String,
    /// What [`stop_in_namespace`] will set. It differs if the default before is not allowed in this namespace, in which it
    /// was inherited (`net.ipv4.tcp_allowed_congestion_control`).
    pub back: String,
}

/// Makes the algorithm the default of new sockets in a namespace. Sockets that are there keep theirs.
///
/// # Errors
/// [`DeviceError::Refused`] if it is not loaded; [`DeviceError::Pins`], [`DeviceError::System`].
pub fn use_in_namespace(
    folder: &Path,
    algorithm: &Algorithm,
    namespace: &Namespace,
) -> Result<Replaced, DeviceError> {
    let pins = Pins::open(folder)?;
    require_loaded(algorithm)?;
    let wanted = kernel_name(algorithm);
    let what = || format!("the default of {namespace}");
    let before = namespace.congestion().map_err(DeviceError::system(what()))?;
    let record = record(pins.folder(), namespace);
    // One of ours is not worth going back to: it came by an earlier `use`, whose record holds.
    let mut back = recorded(&record);
    if !before.starts_with("ab_") {
        // Whether it may be chosen here is known only by choosing it.
        let is_allowed = namespace.set_congestion(&before).is_ok();
        back = if is_allowed { before.clone() } else { FALLBACK.to_owned() };
        remove(&record)?;
        symlink(&back, &record).map_err(DeviceError::system(record.display().to_string()))?;
    }
    namespace.set_congestion(&wanted).map_err(DeviceError::system(what()))?;
    Ok(Replaced { before, back })
}

/// Gives a namespace back the default it had before `use`; `reno` if that is not known. Says which.
///
/// # Errors
/// [`DeviceError::Refused`] if its default is none of ours; [`DeviceError::Pins`], [`DeviceError::System`].
pub fn stop_in_namespace(folder: &Path, namespace: &Namespace) -> Result<String, DeviceError> {
    let pins = Pins::open(folder)?;
    let now = namespace.congestion().map_err(DeviceError::system(format!("the default of {namespace}")))?;
    if !now.starts_with("ab_") {
        return Err(DeviceError::Refused(format!("the default of {namespace} is `{now}`, none of ours")));
    }
    restore(pins.folder(), namespace)
}

/// As [`stop_in_namespace`], for whoever holds the folder's lock already and has looked at the default.
pub(super) fn restore(folder: &Path, namespace: &Namespace) -> Result<String, DeviceError> {
    let record = record(folder, namespace);
    let before = recorded(&record);
    let set = namespace.set_congestion(&before).map(|()| before);
    // What was the default before may be gone; Reno never is.
    let set = set.or_else(|_| namespace.set_congestion(FALLBACK).map(|()| FALLBACK.to_owned()));
    let set = set.map_err(DeviceError::system(format!("the default of {namespace}")))?;
    remove(&record)?;
    Ok(set)
}

/// What `use` has set and still is. Records of namespaces that are gone are passed over.
pub(super) fn list(folder: &Path) -> Result<Vec<Selection>, DeviceError> {
    let mut found = cgroups::list(folder)?;
    for namespace in namespaces::all()? {
        if record(folder, &namespace).symlink_metadata().is_err() {
            continue;
        }
        // A namespace that cannot be entered is told of as unseen.
        if let Ok(congestion) = namespace.congestion()
            && congestion.starts_with("ab_")
        {
            found.push(Selection { kind: "network namespace", name: namespace.name, congestion });
        }
    }
    Ok(found)
}

/// What a record says; the fallback if there is none.
fn recorded(record: &Path) -> String {
    let text = fs::read_link(record).ok().and_then(|text| text.to_str().map(str::to_owned));
    text.unwrap_or_else(|| FALLBACK.to_owned())
}

fn record(folder: &Path, namespace: &Namespace) -> PathBuf {
    folder.join(format!("{NETNS}{}", namespace.inode))
}

/// Refuses what is not registered.
pub(super) fn require_loaded(algorithm: &Algorithm) -> Result<(), DeviceError> {
    match is_registered(algorithm) {
        true => Ok(()),
        false => {
            let name = algorithm.name();
            Err(DeviceError::Refused(format!(
                "`{name}` is not loaded; load it first (`anabranchd cc load {name}`)"
            )))
        }
    }
}

/// Removes a file that may not be there.
pub(super) fn remove(path: &Path) -> Result<(), DeviceError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(DeviceError::system(path.display().to_string())(error))
        }
        _ => Ok(()),
    }
}
