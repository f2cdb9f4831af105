//! `anabranchd agent`: arguments.

use std::{path::PathBuf, process::ExitCode};

use anabranch_device::{
    DeviceError,
    agent::{self, Config},
};
use clap::Args;

use crate::print;

#[derive(Args)]
pub(crate) struct Arguments {
    /// What to do with which connections: a TOML file (docs/agent.md).
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Read the configuration, say whether it is good, and end.
    #[arg(long)]
    check: bool,
    /// Log JSON, one object per line.
    #[arg(long)]
    json: bool,
}

pub(crate) fn dispatch(arguments: Arguments) -> Result<ExitCode, DeviceError> {
    let config = Config::read(&arguments.config)?;
    if arguments.check {
        print(&format!("{} is good", arguments.config.display()));
    } else {
        agent::run(&config, arguments.json)?;
    }
    Ok(ExitCode::SUCCESS)
}
