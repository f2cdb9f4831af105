//! `anabranchd send`, `receive` and `keygen`: arguments, and what is printed.

pub(crate) mod keygen;
pub(crate) mod receive;
pub(crate) mod send;
mod size;

use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

use anabranch_device::DeviceError;
use anabranch_transfer::{
    SocketMemory, Stop,
    memory::{TooLittle, peak_resident_bytes},
    path::PathError,
    security::{Identity, IdentityError},
};
use signal_hook::consts::{SIGINT, SIGTERM};

/// Where a receiver listens unless told otherwise: a port that nobody has registered with IANA.
pub(crate) const PORT: u16 = 7427;

/// The key of this user, unless another is named.
fn key_path(named: Option<PathBuf>) -> Result<PathBuf, DeviceError> {
    let folder = |variable: &str, below: &str| {
        std::env::var_os(variable)
            .filter(|value| !value.is_empty())
            .map(|value| Path::new(&value).join(below))
    };
    let default = || folder("XDG_CONFIG_HOME", "anabranch").or_else(|| folder("HOME", ".config/anabranch"));
    named.or_else(|| default().map(|folder| folder.join("transfer.key"))).ok_or_else(|| {
        DeviceError::Input("there is no home to keep a key in; name a file with --key".to_owned())
    })
}

/// Reads the key, or says how to make one.
fn read_key(named: Option<PathBuf>) -> Result<Identity, DeviceError> {
    let path = key_path(named)?;
    Identity::read(&path).map_err(|error| match error {
        IdentityError::File { path, source } if source.kind() == std::io::ErrorKind::NotFound => {
            DeviceError::Input(format!("{path}: there is no key; `anabranchd keygen` makes one"))
        }
        error => DeviceError::Input(error.to_string()),
    })
}

/// A flag that SIGINT and SIGTERM raise. The second of them ends the process at once.
fn stop_on_signals() -> Result<Stop, DeviceError> {
    let stop = Stop::new();
    for signal in [SIGINT, SIGTERM] {
        let twice = signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED.into(), stop.flag());
        twice
            .and_then(|_| signal_hook::flag::register(signal, stop.flag()))
            .map_err(DeviceError::system("catching signals"))?;
    }
    Ok(stop)
}

/// Memory as one line for people.
fn memory_line(sockets: &SocketMemory) -> String {
    let resident = peak_resident_bytes().map(|bytes| format!(", {} resident", size::show(bytes)));
    let rest = if sockets.has_all_subflows { "" } else { " (the first subflows alone)" };
    let held = match sockets.samples {
        0 => "nobody has looked what the sockets held".to_owned(),
        _ => format!("at most {} in sockets{rest}", size::show(sockets.peak_bytes)),
    };
    held + &resident.unwrap_or_default()
}

/// Memory for programs.
fn add_memory(object: &mut serde_json::Value, sockets: &SocketMemory) {
    object["peak_resident_bytes"] = peak_resident_bytes().into();
    let seen = |bytes: u64| (sockets.samples > 0).then_some(bytes);
    object["peak_socket_bytes"] = seen(sockets.peak_bytes).into();
    object["peak_socket_send_bytes"] = seen(sockets.peak_send_bytes).into();
    object["peak_socket_receive_bytes"] = seen(sockets.peak_receive_bytes).into();
    object["socket_samples"] = sockets.samples.into();
    object["has_all_subflows"] = sockets.has_all_subflows.into();
}

/// Exit code of a command that a signal has ended.
const INTERRUPTED: u8 = 130;

/// Says something that is not the result.
fn say(line: &str) {
    // A reader that has gone is no error of ours. One call: several threads say something.
    let _ = std::io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

fn path_error(error: PathError) -> DeviceError {
    match error {
        PathError::NoInterface { .. } | PathError::NoAddress { .. } => DeviceError::Input(error.to_string()),
        PathError::Socket { what, source } => DeviceError::System { what, source },
        error => DeviceError::Refused(error.to_string()),
    }
}

fn too_little(error: TooLittle) -> DeviceError {
    DeviceError::Input(format!("--memory: {error}"))
}
