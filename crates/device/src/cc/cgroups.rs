//! Algorithms for the processes of a control group (version 2), by a BPF program that is pinned like the algorithms:
//!
//! ```text
//! /sys/fs/bpf/anabranch/cgroup-4711/name   symbolic link, text: `ab_lia`
//!                                   path   symbolic link to the control group
//!                                   link   the program's attachment
//! ```
//!
//! As with algorithms, `link` is made last and removed first, and without it nothing is in effect. The number is that of the
//! control group's folder; the kernel gives it to no other until the next boot.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{MetadataExt as _, symlink},
    path::{Path, PathBuf},
};

use anabranch_cc::Algorithm;
use anabranch_kernel::{Pins, kernel_name, pin_choice};
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};

use super::selection::{Selection, remove, require_loaded};
use crate::DeviceError;

const PREFIX: &str = "cgroup-";
const LINK: &str = "link";
const NAME: &str = "name";
const PATH: &str = "path";

/// Has TCP connections and subflows that processes of a control group, and of those below it, open or accept from now on use
/// the algorithm. An earlier choice for the same control group is replaced.
///
/// # Errors
/// [`DeviceError::Refused`] if it is not loaded, [`DeviceError::Input`] if it is no control group; [`DeviceError::Pins`],
/// [`DeviceError::System`].
pub fn use_in_cgroup(folder: &Path, algorithm: &Algorithm, cgroup: &Path) -> Result<(), DeviceError> {
    let pins = Pins::open(folder)?;
    require_loaded(algorithm)?;
    let (place, directory) = place(pins.folder(), cgroup)?;
    clear(pins.folder())?;
    take_down(&place)?;
    let kernel_name = kernel_name(algorithm);
    let made = fs::create_dir(&place)
        .and_then(|()| symlink(&kernel_name, place.join(NAME)))
        .and_then(|()| symlink(fs::canonicalize(cgroup)?, place.join(PATH)))
        .map_err(DeviceError::system(place.display().to_string()))
        .and_then(|()| Ok(pin_choice(&directory, &kernel_name, &place.join(LINK))?));
    if made.is_err() {
        // The error is what matters; what cannot be removed now is removed by the next `use`.
        let _ = take_down(&place);
    }
    made
}

/// Takes back what [`use_in_cgroup`] did. Connections that are there keep what they have.
///
/// # Errors
/// [`DeviceError::Refused`] if there is nothing to take back, [`DeviceError::Input`] if it is no control group;
/// [`DeviceError::Pins`], [`DeviceError::System`].
pub fn stop_in_cgroup(folder: &Path, cgroup: &Path) -> Result<(), DeviceError> {
    let pins = Pins::open(folder)?;
    let (place, _) = place(pins.folder(), cgroup)?;
    if !place.join(LINK).exists() {
        return Err(DeviceError::Refused(format!("nothing was chosen for {}", cgroup.display())));
    }
    take_down(&place)
}

/// The choices in effect, by name of the control group.
pub(super) fn list(folder: &Path) -> Result<Vec<Selection>, DeviceError> {
    let text = |path: PathBuf| fs::read_link(path).unwrap_or_default().display().to_string();
    let mut found: Vec<Selection> = places(folder)?
        .into_iter()
        .filter(|place| in_effect(place))
        .map(|place| Selection {
            kind: "control group",
            name: text(place.join(PATH)),
            congestion: text(place.join(NAME)),
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Where the choice for a control group is kept, and the control group itself.
fn place(folder: &Path, cgroup: &Path) -> Result<(PathBuf, File), DeviceError> {
    let is_one = statfs(cgroup).is_ok_and(|there| there.filesystem_type() == CGROUP2_SUPER_MAGIC);
    if !is_one || !cgroup.is_dir() {
        return Err(DeviceError::Input(format!(
            "{} is no control group of version 2; expected a folder below its mount (`findmnt -t cgroup2`)",
            cgroup.display()
        )));
    }
    let failed = || DeviceError::system(cgroup.display().to_string());
    let directory = File::open(cgroup).map_err(failed())?;
    let number = directory.metadata().map_err(failed())?.ino();
    Ok((folder.join(format!("{PREFIX}{number}")), directory))
}

/// Removes what is in effect no more: control groups that are gone, and what a killed process left.
fn clear(folder: &Path) -> Result<(), DeviceError> {
    places(folder)?.iter().filter(|place| !in_effect(place)).try_for_each(|place| take_down(place))
}

fn in_effect(place: &Path) -> bool {
    let number = |place: &Path| place.file_name()?.to_str()?.strip_prefix(PREFIX)?.parse().ok();
    let there = fs::metadata(place.join(PATH)).map(|cgroup| cgroup.ino()).ok();
    place.join(LINK).exists() && there.is_some() && there == number(place)
}

fn places(folder: &Path) -> Result<Vec<PathBuf>, DeviceError> {
    let failed = || DeviceError::system(folder.display().to_string());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Removes a place, the attachment first; nothing happens if there is none.
fn take_down(place: &Path) -> Result<(), DeviceError> {
    for file in [LINK, NAME, PATH] {
        remove(&place.join(file))?;
    }
    match fs::remove_dir(place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(DeviceError::system(place.display().to_string())(error))
        }
        _ => Ok(()),
    }
}
