//! The program that chooses a congestion control for the sockets of a control group.

use std::{fs::File, os::fd::AsRawFd as _, path::Path};

use libbpf_rs::ObjectBuilder;

use crate::{PinError, check_host, objects};

/// The section with the name, of `bpf/select.bpf.c`.
const CHOICE: &str = ".rodata.choice";

/// Has the TCP sockets and subflows that begin in a control group (version 2) from now on use the congestion control
/// `kernel_name`, until the file `pin`, made for it in a BPF file system, is removed.
///
/// # Errors
/// [`PinError::Kernel`] if nothing can be loaded here, [`PinError::Bpf`] if the kernel refuses.
///
/// # Panics
/// If the name has more than 15 bytes.
pub fn pin_choice(cgroup: &File, kernel_name: &str, pin: &Path) -> Result<(), PinError> {
    let elf = objects::select_elf()?;
    check_host()?;
    let refused = |source| PinError::Bpf { path: pin.to_owned(), source };
    let mut open = ObjectBuilder::default().open_memory(elf).map_err(refused)?;
    let mut map = open.maps_mut().find(|map| map.name() == CHOICE).expect("the program has this section");
    let choice = map.initial_value_mut().expect("it has contents");
    assert!(kernel_name.len() < choice.len(), "{kernel_name} is longer than names are");
    choice[..kernel_name.len()].copy_from_slice(kernel_name.as_bytes());
    let object = open.load().map_err(refused)?;
    let program = object.progs_mut().next().expect("it is one program");
    let mut link = program.attach_cgroup(cgroup.as_raw_fd()).map_err(refused)?;
    link.pin(pin).map_err(refused)
}
