//! Loading, which may be repeated.

use std::path::{Path, PathBuf};

use anabranch_cc::Algorithm;
use anabranch_kernel::{Loading, Pins};

use super::{find, params};
use crate::DeviceError;

/// Algorithms to load, checked.
#[derive(Clone, Debug)]
pub struct Request {
    wanted: Vec<(&'static Algorithm, Vec<u32>)>,
}

impl Request {
    /// For algorithms by name and their parameters as text; with several algorithms a setting holds for all of them.
    ///
    /// # Errors
    /// [`DeviceError::Input`] or [`DeviceError::Pins`] if a name or a value is not known.
    pub fn new(names: &[String], settings: &[(String, String)]) -> Result<Self, DeviceError> {
        let wanted = names.iter().map(|name| {
            let algorithm = find(name)?;
            Ok((algorithm, params::stored(algorithm, settings)?))
        });
        Ok(Self { wanted: wanted.collect::<Result<_, DeviceError>>()? })
    }
}

/// Loads algorithms, in order, and tells of each as soon as it is done, and of leftovers that were removed before.
///
/// # Errors
/// [`DeviceError::Pins`] for the first that cannot be loaded; those before it stay.
pub fn load(
    folder: &Path,
    request: &Request,
    tell: &mut dyn FnMut(&'static Algorithm, Loading),
) -> Result<Vec<PathBuf>, DeviceError> {
    let pins = Pins::open(folder)?;
    let leftovers = pins.clean()?;
    for (algorithm, params) in &request.wanted {
        let done = pins.load(algorithm.name(), params)?;
        tell(algorithm, done);
    }
    Ok(leftovers)
}
