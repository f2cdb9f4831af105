//! Unloading, which is refused while something uses the algorithm.

use std::path::Path;

use anabranch_cc::Algorithm;
use anabranch_kernel::{PinError, Pins, kernel_name};

use super::{
    is_registered,
    namespaces::{Survey, survey},
    selection,
};
use crate::DeviceError;

/// So many sockets are named; the others are counted.
const NAMED: usize = 20;

/// What [`unload`] has done with one algorithm.
#[derive(Clone, Debug)]
pub struct Unloaded {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// Sockets that go on using it until they close.
    pub sockets: usize,
    /// Namespaces whose default it was, and what their default is now.
    pub defaults: Vec<(String, String)>,
}

/// Takes algorithms away, in order; all that are loaded if `algorithms` is empty. Removes leftovers, too.
///
/// Without `force` nothing at all happens if a socket uses one of them or a namespace has one as default. With it,
/// sockets keep the algorithm until they close, and such namespaces get back the default from before `use`, or the
/// kernel's Reno.
///
/// # Errors
/// [`DeviceError::Refused`] with what uses them; [`DeviceError::Pins`] if one is not loaded.
pub fn unload(
    folder: &Path,
    algorithms: &[&'static Algorithm],
    force: bool,
) -> Result<Vec<Unloaded>, DeviceError> {
    let pins = Pins::open(folder)?;
    pins.clean()?;
    let mut going = algorithms.to_vec();
    if going.is_empty() {
        going = pins.loaded().iter().map(anabranch_kernel::Pinned::algorithm).collect();
    }
    if let Some(absent) = going.iter().find(|algorithm| pins.find(algorithm).is_none()) {
        let (name, kernel_name) = (absent.name(), kernel_name(absent));
        return Err(match is_registered(absent) {
            false => PinError::NotLoaded { name }.into(),
            true => DeviceError::Refused(format!(
                "`{kernel_name}` was not loaded from {}, but by other means; whoever did has to take it away",
                folder.display()
            )),
        });
    }
    let names: Vec<String> = going.iter().map(|algorithm| kernel_name(algorithm)).collect();
    let found = survey(|name| names.iter().any(|going| going == name))?;
    let in_use = !found.sockets.is_empty() || !found.defaults.is_empty();
    if in_use && !force {
        return Err(refusal(&names, &found));
    }
    let mut done = Vec::new();
    for algorithm in going {
        let kernel_name = kernel_name(algorithm);
        let mut defaults = Vec::new();
        // First, because a namespace would go on giving its default to new sockets.
        for (namespace, _) in found.defaults.iter().filter(|(_, default)| *default == kernel_name) {
            let now = selection::restore(pins.folder(), namespace)?;
            defaults.push((namespace.to_string(), now));
        }
        pins.unload(algorithm)?;
        let sockets = found.sockets.iter().filter(|(_, socket)| socket.congestion == kernel_name).count();
        done.push(Unloaded { algorithm, sockets, defaults });
    }
    Ok(done)
}

fn refusal(names: &[String], found: &Survey) -> DeviceError {
    let mut text = format!("{} in use; nothing was unloaded", names.join(", "));
    for (namespace, default) in &found.defaults {
        text += &format!("\n  {default}: the default of {namespace}");
    }
    for (namespace, socket) in found.sockets.iter().take(NAMED) {
        text += &format!("\n  {}: {socket} in {namespace}", socket.congestion);
    }
    if found.sockets.len() > NAMED {
        text += &format!("\n  and {} more sockets", found.sockets.len() - NAMED);
    }
    for namespace in &found.unseen {
        text += &format!("\n  (could not look into {namespace})");
    }
    text += "\nclose these sockets and change the defaults (`anabranchd cc use --off`); or add --force: sockets keep the \
             algorithm until they close";
    DeviceError::Refused(text)
}
