//! `anabranchd path`: arguments, and what is printed.

use std::{
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use anabranch_device::{
    DeviceError, agent,
    path::{self, Told, Words},
};
use anabranch_netlink::mptcp::Token;
use clap::{Args, Subcommand};

use crate::{print, print_json};

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Show limits, endpoints, connections and their subflows.
    Show {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print events of connections, links and addresses as they come.
    Watch {
        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Write this machine's links as a scenario, from what its subflows tell while they carry data.
    Record {
        /// The scenario file.
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// How long; Ctrl-C ends it before.
        #[arg(long, value_name = "TIME", default_value = "60s", value_parser = path::duration_ns)]
        duration: u64,
    },
    /// Say what the agent has decided for a connection lately, and why.
    Why {
        /// As `path show` prints it.
        #[arg(value_parser = path::token)]
        token: Token,
    },
    /// Add an endpoint, or open a subflow: ADDRESS [dev NAME] [id NUMBER] [port NUMBER] [to ADDRESS:PORT] [FLAG…].
    Add(Change),
    /// Delete an endpoint, or close a subflow: [id NUMBER] [ADDRESS] [to ADDRESS:PORT].
    Del(Change),
    /// Make an endpoint or a subflow a backup or not: id NUMBER backup|nobackup, of endpoints fullmesh|nofullmesh, too.
    Prio(Change),
}

#[derive(Args)]
struct Change {
    /// Of this connection, whose path manager is in user space; without it, endpoints of the kernel's path manager are meant.
    #[arg(long, value_name = "TOKEN", value_parser = path::token)]
    token: Option<Token>,
    /// In the words of ip-mptcp(8).
    #[arg(required = true, value_name = "WORD")]
    words: Vec<String>,
}

pub(crate) fn dispatch(arguments: Arguments) -> Result<ExitCode, DeviceError> {
    match arguments.verb {
        Verb::Show { json } => {
            let shown = path::show()?;
            match json {
                true => print_json(&shown),
                false => print(&shown.to_string()),
            }
        }
        Verb::Watch { json } => path::watch(|told| write(told, json))?,
        Verb::Record { output, duration } => {
            for line in path::record(&output, duration)? {
                print(&line);
            }
        }
        Verb::Why { token } => print(agent::why(token)?.trim_end()),
        Verb::Add(change) => print(&path::add(change.token, &Words::read(&change.words)?)?.to_string()),
        Verb::Del(change) => print(&path::delete(change.token, &Words::read(&change.words)?)?.to_string()),
        Verb::Prio(change) => {
            print(&path::prioritise(change.token, &Words::read(&change.words)?)?.to_string());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the reader is still there.
fn write(told: &Told, as_json: bool) -> bool {
    let mut out = io::stdout().lock();
    match as_json {
        true => writeln!(out, "{}", told.json()),
        false => writeln!(out, "{told}"),
    }
    .is_ok()
}
