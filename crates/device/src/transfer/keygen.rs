//! `anabranchd keygen`.

use std::{os::unix::fs::DirBuilderExt as _, path::PathBuf, process::ExitCode};

use anabranch_device::DeviceError;
use anabranch_transfer::security::{Identity, IdentityError};
use clap::Args;

use super::{key_path, say};
use crate::{print, print_json};

#[derive(Args)]
pub(crate) struct Arguments {
    /// File for the key, which only its owner can read; ~/.config/anabranch/transfer.key if not given.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A key that is there stays, and its fingerprint is printed: others know it by that.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, DeviceError> {
    let path = key_path(arguments.key.clone())?;
    let (identity, is_new) = if path.exists() {
        (Identity::read(&path), false)
    } else {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(DeviceError::system(format!("making {}", folder.display())))?;
        }
        (Identity::create(&path), true)
    };
    let identity = identity.map_err(|error| match error {
        IdentityError::File { path, source } => DeviceError::System { what: path, source },
        error => DeviceError::Input(error.to_string()),
    })?;
    let fingerprint = identity.fingerprint();
    if arguments.json {
        print_json(&serde_json::json!({
            "key": path, "fingerprint": fingerprint.to_string(), "is_new": is_new,
        }));
    } else {
        say(&match is_new {
            true => format!("{}: a new key, whose fingerprint is", path.display()),
            false => format!("{}: was there already; its fingerprint is", path.display()),
        });
        print(&fingerprint.to_string());
    }
    Ok(ExitCode::SUCCESS)
}
