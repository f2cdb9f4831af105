//! `anabranchd cc`: arguments, and what is printed.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anabranch_device::{
    DeviceError,
    cc::{self, Namespace, PIN_FOLDER, Request},
};
use anabranch_kernel::{Loading, kernel_name};
use clap::{Args, Subcommand};

use crate::{print, print_json};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Folder in the BPF file system that holds what is loaded.
    #[arg(long, global = true, value_name = "DIR", default_value = PIN_FOLDER)]
    pin: PathBuf,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List the algorithms and their parameters.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Show the parameters, too.
        #[arg(long)]
        params: bool,
    },
    /// Load algorithms into the kernel, where they stay until unloaded or the next boot.
    Load {
        /// Names as `list` shows them.
        #[arg(required = true)]
        names: Vec<String>,
        /// Set a parameter; may be repeated.
        #[arg(long = "param", value_name = "KEY=VALUE", value_parser = pair)]
        params: Vec<(String, String)>,
    },
    /// Take algorithms away; refused while a socket uses one.
    Unload {
        /// Names as `list` shows them.
        #[arg(required_unless_present = "all")]
        names: Vec<String>,
        /// All that are loaded.
        #[arg(long, conflicts_with = "names")]
        all: bool,
        /// Also if in use: sockets keep the algorithm until they close.
        #[arg(long)]
        force: bool,
    },
    /// Show what is loaded, what uses it, and its counters.
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Have new sockets use a loaded algorithm.
    Use {
        /// The algorithm.
        #[arg(required_unless_present = "off", conflicts_with = "off")]
        name: Option<String>,
        #[command(flatten)]
        place: Place,
        /// Go back to what was before.
        #[arg(long)]
        off: bool,
    },
    /// Write the BPF objects as files, for `bpftool struct_ops register FILE`.
    Export {
        /// Folder, made if need be.
        dir: PathBuf,
    },
}

/// Which sockets.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct Place {
    /// Those of a network namespace: `this`, a name of `ip netns`, or a file like /proc/812/ns/net.
    #[arg(long, value_name = "NAMESPACE")]
    netns: Option<String>,
    /// Those of the processes in a control group (version 2), such as /sys/fs/cgroup/system.slice/x.service.
    #[arg(long, value_name = "PATH")]
    cgroup: Option<PathBuf>,
    /// Those whose route has exactly one of these prefixes (or `default`), in this namespace.
    #[arg(long, value_name = "PREFIX", num_args = 1..)]
    route: Vec<cc::Prefix>,
}

/// Reads `KEY=VALUE`.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

pub(crate) fn dispatch(arguments: Arguments) -> Result<ExitCode, DeviceError> {
    let folder = arguments.pin;
    match arguments.verb {
        Verb::List { json: true, .. } => print_json(&cc::catalogue()),
        Verb::List { params, .. } => list(params),
        Verb::Load { names, params } => {
            let request = Request::new(&names, &params)?;
            let leftovers = cc::load(&folder, &request, &mut |algorithm, done| {
                let kernel_name = kernel_name(algorithm);
                print(&match done {
                    Loading::Loaded => format!("loaded {kernel_name}"),
                    Loading::AlreadyLoaded => {
                        format!("{kernel_name} is loaded already, with these parameters")
                    }
                });
            })?;
            for leftover in leftovers {
                print(&format!("removed {}, left by a loader that was killed", leftover.display()));
            }
        }
        Verb::Unload { names, force, .. } => {
            let algorithms = names.iter().map(|name| cc::find(name)).collect::<Result<Vec<_>, _>>()?;
            unload(&folder, &algorithms, force)?;
        }
        Verb::Status { json } => {
            let status = cc::status(&folder)?;
            match json {
                true => print_json(&status),
                false => print_status(&status),
            }
        }
        Verb::Use { name, place, .. } => select(&folder, name.as_deref(), &place)?,
        Verb::Export { dir } => {
            for file in cc::export(&dir)? {
                print(&file.display().to_string());
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(with_params: bool) {
    print(&format!(
        "{:<12} {:<15} {:<7} {:<8} {:<3} {:<5} {:<6} about",
        "name", "in the kernel", "kind", "subflows", "tag", "hosts", "loaded"
    ));
    for entry in cc::catalogue() {
        let loaded = if entry.loaded { "yes" } else { "no" };
        print(&format!(
            "{:<12} {:<15} {:<7} {:<8} {:<3} {:<5} {loaded:<6} {}",
            entry.name, entry.kernel_name, entry.kind, entry.coupling, entry.tag, entry.hosts, entry.title
        ));
        for param in entry.params.iter().filter(|_| with_params) {
            let range =
                param.range.as_ref().map_or_else(|| param.choices.join(", "), |ends| ends.join(" to "));
            print(&format!("    {} = {} ({range}): {}", param.name, param.default, param.doc));
        }
    }
}

fn unload(
    folder: &Path,
    algorithms: &[&'static anabranch_cc::Algorithm],
    force: bool,
) -> Result<(), DeviceError> {
    let done = cc::unload(folder, algorithms, force)?;
    if done.is_empty() {
        print("nothing is loaded");
    }
    for unloaded in done {
        let kept = match unloaded.sockets {
            0 => String::new(),
            1 => "; one socket keeps it until it closes".to_owned(),
            count => format!("; {count} sockets keep it until they close"),
        };
        print(&format!("unloaded {}{kept}", kernel_name(unloaded.algorithm)));
        for (namespace, now) in unloaded.defaults {
            print(&format!("  the default of {namespace} is {now} now"));
        }
    }
    Ok(())
}

fn select(folder: &Path, name: Option<&str>, place: &Place) -> Result<(), DeviceError> {
    let algorithm = name.map(cc::find).transpose()?;
    if let Some(netns) = &place.netns {
        let namespace = Namespace::find(netns)?;
        match algorithm {
            Some(algorithm) => {
                let cc::Replaced { before, back } = cc::use_in_namespace(folder, algorithm, &namespace)?;
                let now = kernel_name(algorithm);
                print(&format!("new sockets of {namespace} use {now}, before: {before}"));
                if back != before && !before.starts_with("ab_") {
                    print(&format!(
                        "  --off will set {back}: {before} is not in net.ipv4.tcp_allowed_congestion_control"
                    ));
                }
            }
            None => {
                let now = cc::stop_in_namespace(folder, &namespace)?;
                print(&format!("new sockets of {namespace} use {now} again"));
            }
        }
    }
    if let Some(cgroup) = &place.cgroup {
        let shown = cgroup.display();
        match algorithm {
            Some(algorithm) => {
                cc::use_in_cgroup(folder, algorithm, cgroup)?;
                print(&format!("new connections of {shown} use {}", kernel_name(algorithm)));
            }
            None => {
                cc::stop_in_cgroup(folder, cgroup)?;
                print(&format!("new connections of {shown} use what they would without this command"));
            }
        }
    }
    for cc::ChangedRoute { prefix, table, before } in cc::use_on_routes(algorithm, &place.route)? {
        let now = algorithm.map_or_else(|| "no congestion control of its own".to_owned(), kernel_name);
        let before = before.map_or_else(String::new, |before| format!(", before: {before}"));
        print(&format!("the route {prefix} in table {table} has {now}{before}"));
    }
    Ok(())
}

fn print_status(status: &cc::Status) {
    if status.loaded.is_empty() {
        print("nothing is loaded");
    }
    for loaded in &status.loaded {
        let build = if loaded.is_this_build { "" } else { ", from another build" };
        let age = duration(loaded.age_s);
        print(&format!(
            "{}: {}, loaded {age} ago by user {}{build}",
            loaded.kernel_name, loaded.title, loaded.uid
        ));
        let params: Vec<String> =
            loaded.params.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        if !params.is_empty() {
            print(&format!("  parameters   {}", params.join(", ")));
        }
        if let Some(seen) = &loaded.counters {
            print_counters(seen);
        }
        for known in &loaded.connections {
            print(&format!(
                "  connection   token {}, subflows {}, mode {}, verdicts {} ({} to couple)",
                known.token, known.subflows, known.mode, known.verdicts, known.coupled_verdicts
            ));
        }
        for namespace in &loaded.default_of {
            print(&format!("  default of   network namespace {namespace}"));
        }
        for socket in &loaded.sockets {
            print(&format!("  socket       {} ({})", socket.socket, socket.namespace));
        }
    }
    for name in &status.foreign {
        print(&format!("{name} is registered, but not by this program from {}", status.folder.display()));
    }
    for selection in &status.selections {
        print(&format!("new sockets of {} {} use {}", selection.kind, selection.name, selection.congestion));
    }
    for leftover in &status.leftovers {
        print(&format!(
            "{} was left by a loader that was killed; the next load removes it",
            leftover.display()
        ));
    }
    for namespace in &status.unseen_namespaces {
        print(&format!("could not look into the network namespace {namespace}"));
    }
}

fn print_counters(seen: &cc::Counted) {
    let events: Vec<String> = seen.events.iter().map(|(event, calls)| format!("{event} {calls}")).collect();
    let events = if events.is_empty() { String::new() } else { format!(": {}", events.join(", ")) };
    print(&format!("  calls        {}{events}", seen.calls));
    print(&format!("  coupling     coupled {}, uncoupled {}", seen.coupled, seen.uncoupled));
    print(&format!(
        "  subflows     joined {}, plain TCP {}, beyond the eighth {}, map full {}, no memory {}",
        seen.joined, seen.plain_tcp, seen.no_slot, seen.map_full, seen.no_memory
    ));
    print(&format!("  conflicts    {}, changes dropped {}", seen.conflicts, seen.dropped_writes));
}

/// Seconds as days, hours, minutes.
fn duration(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{minutes} min"),
        3600..86400 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}
