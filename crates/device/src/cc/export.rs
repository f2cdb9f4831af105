//! The BPF objects as files, for loading without this command.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anabranch_kernel::{PinError, available, elf};

use crate::DeviceError;

/// Writes `ab_<algorithm>.bpf.o` of every algorithm that runs in the kernel into `folder`, which is made if need be, and
/// says what it wrote. `bpftool struct_ops register FILE` takes them; parameters have their defaults.
///
/// # Errors
/// [`DeviceError::Pins`] if this build has no objects, [`DeviceError::System`].
pub fn export(folder: &Path) -> Result<Vec<PathBuf>, DeviceError> {
    let names = available().map_err(PinError::from)?;
    fs::create_dir_all(folder).map_err(DeviceError::system(folder.display().to_string()))?;
    let mut written = Vec::new();
    for name in names {
        let path = folder.join(format!("ab_{name}.bpf.o"));
        let object = elf(name).map_err(PinError::from)?;
        fs::write(&path, object).map_err(DeviceError::system(path.display().to_string()))?;
        written.push(path);
    }
    Ok(written)
}
