//! `anabranchd send`.

use std::{
    net::{IpAddr, SocketAddr, ToSocketAddrs as _},
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use anabranch_device::DeviceError;
use anabranch_transfer::{
    BackupWay,
    memory::Share,
    path::{Path, SocketOptions, Transport, Via},
    security::{ClientTls, Fingerprint, Identity, OnceToken, Servers},
    sender::{Failure, Outcome, Sender, Standing, Status},
};
use clap::Args;
use console::Term;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::{
    INTERRUPTED, PORT, add_memory, memory_line, path_error, read_key, say, size, stop_on_signals, too_little,
};
use crate::{print, print_json};

#[derive(Args)]
#[command(group = clap::ArgGroup::new("whom").required(true))]
pub(crate) struct Arguments {
    /// Files to send, each of which arrives under the last part of its name.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where to: a name or an address, and a port if it is not 7427.
    #[arg(value_name = "HOST[:PORT]")]
    host: String,
    /// Send only to a receiver whose key has this fingerprint; may be repeated.
    #[arg(long, value_name = "FINGERPRINT", group = "whom")]
    peer: Vec<Fingerprint>,
    /// Send with the token that `anabranchd receive --token` has printed.
    #[arg(long, group = "whom", conflicts_with_all = ["peer", "key"])]
    token: Option<OnceToken>,
    /// Encrypt nothing, and do not ask who the receiver is.
    #[arg(long, group = "whom", conflicts_with_all = ["peer", "token", "key"])]
    plaintext: bool,
    /// File with the key of this machine; ~/.config/anabranch/transfer.key if not given.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Send over this interface or from this address; may be repeated. Without it: over all interfaces with a route.
    #[arg(long, value_name = "INTERFACE|ADDRESS")]
    via: Vec<Via>,
    /// Bound the buffers of all connections together, as 256K; without it the kernel adapts them.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    memory: Option<u64>,
    /// Use TCP, not Multipath TCP.
    #[arg(long)]
    tcp: bool,
    /// The interfaces are no backups of each other's connections: a path that dies takes its connection with it.
    #[arg(long)]
    no_backup: bool,
    /// Give a connection up, and open it again, after so many seconds without progress.
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(3..))]
    timeout: u64,
    /// Give everything up after so many seconds without progress on any path.
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..))]
    give_up: u64,
    /// Print the outcome as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, DeviceError> {
    let security = security(&arguments)?;
    let (peer, paths) = ways(&arguments)?;
    let memory = arguments.memory.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let share = Share::of(memory, paths.len(), security.is_some()).map_err(too_little)?;
    let sender = Sender {
        files: arguments.files,
        peer,
        paths,
        security,
        sockets: SocketOptions {
            mptcp: !arguments.tcp,
            send_buffer_bytes: share.data_bytes,
            receive_buffer_bytes: share.answer_bytes,
        },
        backups: !arguments.no_backup,
        piece_bytes: share.piece_bytes,
        reads_ahead: memory.is_none(),
        patience: Duration::from_secs(arguments.timeout),
        give_up: Duration::from_secs(arguments.give_up),
    };
    let stop = stop_on_signals()?;
    let mut display = Display::new(sender.sockets.mptcp, sender.paths.len());
    let began_at = now();
    let outcome = sender.run(&stop, &mut |status| display.show(status));
    let seconds = now().duration_since(began_at).as_secs_f64();
    display.bar.finish_and_clear();
    match arguments.json {
        true => print_json(&object(&outcome, seconds)),
        false => report(&outcome, seconds),
    }
    Ok(match &outcome.failure {
        Some(Failure::Stopped) => ExitCode::from(INTERRUPTED),
        Some(_) => ExitCode::FAILURE,
        None if outcome.files.iter().any(|file| file.result.is_err()) => ExitCode::FAILURE,
        None => ExitCode::SUCCESS,
    })
}

#[allow(clippy::disallowed_methods, reason = "people see real time pass")]
fn now() -> Instant {
    Instant::now()
}

type Security = Option<(ClientTls, Option<[u8; 16]>)>;

fn security(arguments: &Arguments) -> Result<Security, DeviceError> {
    if arguments.plaintext {
        return Ok(None);
    }
    if let Some(token) = &arguments.token {
        let tls = ClientTls::new(&Identity::generate().0, Servers::OfToken(token.clone()));
        return Ok(Some((tls, Some(token.secret()))));
    }
    let identity = read_key(arguments.key.clone())?;
    let servers = Servers::Pinned(arguments.peer.iter().copied().collect());
    Ok(Some((ClientTls::new(&identity, servers), None)))
}

/// The receiver's address and the ways to it: the first of its addresses that can be reached.
fn ways(arguments: &Arguments) -> Result<(SocketAddr, Vec<Path>), DeviceError> {
    let host = &arguments.host;
    let found = addresses(host).map_err(|source| DeviceError::Input(format!("{host}: {source}")))?;
    if !arguments.via.is_empty() {
        let named: Vec<Path> = arguments.via.iter().cloned().map(Path::named).collect();
        let fits = |peer: &&SocketAddr| {
            arguments.via.iter().all(|via| match via {
                Via::Address(address) => address.is_ipv4() == peer.is_ipv4(),
                Via::Interface(_) => true,
            }) && named.iter().all(|path| path.local(peer.ip()).is_ok())
        };
        if let Some(peer) = found.iter().find(fits) {
            return Ok((*peer, named));
        }
        let first = found[0];
        let why = named.iter().find_map(|path| path.local(first.ip()).err());
        return Err(why.map_or_else(
            || DeviceError::Input(format!("{host} has no address of the kind that --via names")),
            path_error,
        ));
    }
    let mut why = None;
    for peer in found {
        match Path::all_to(peer.ip()) {
            Ok(paths) => return Ok((peer, paths)),
            Err(error) => why = why.or(Some(error)),
        }
    }
    Err(path_error(why.expect("a host has an address")))
}

/// The addresses of a host: a name or an address, with a port or without. At least one.
fn addresses(host: &str) -> std::io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<SocketAddr>() {
        return Ok(vec![address]);
    }
    if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, PORT)]);
    }
    let found: Vec<SocketAddr> = match host.rsplit_once(':') {
        Some(_) => host.to_socket_addrs()?.collect(),
        None => (host, PORT).to_socket_addrs()?.collect(),
    };
    match found.is_empty() {
        true => Err(std::io::Error::other("it has no address")),
        false => Ok(found),
    }
}

/// The bar on a terminal, with the rate of each path; warnings, terminal or not.
struct Display {
    bar: ProgressBar,
    wants_mptcp: bool,
    /// What was said of each path, so that it is said once.
    said: Vec<(Option<Transport>, Standing)>,
    has_said_how_backups: bool,
    has_said_why_no_backups: bool,
    /// When the paths' rates were taken last, what had arrived then, and what they were.
    taken_at: Instant,
    taken: Vec<u64>,
    rates: String,
}

impl Display {
    fn new(wants_mptcp: bool, paths: usize) -> Self {
        // Hidden where standard error is no terminal.
        let bar = ProgressBar::new(0);
        // What does not fit on the line is cut; on a narrow terminal the bar goes first.
        let template = match Term::stderr().size_checked() {
            Some((_, 0..64)) => "{percent:>3} % {bytes} of {total_bytes}  {wide_msg}",
            _ => "{bar:20} {percent:>3} % {bytes} of {total_bytes}  {wide_msg}",
        };
        bar.set_style(ProgressStyle::with_template(template).expect("the template is right"));
        Self {
            bar,
            wants_mptcp,
            said: vec![(None, Standing::New); paths],
            has_said_how_backups: false,
            has_said_why_no_backups: false,
            taken_at: now(),
            taken: vec![0; paths],
            rates: String::new(),
        }
    }

    fn show(&mut self, status: &Status) {
        for (path, (transport, standing)) in status.paths.iter().zip(&mut self.said) {
            if *transport != path.transport {
                *transport = path.transport;
                let line = match path.transport {
                    Some(Transport::Tcp) if self.wants_mptcp => {
                        Some("this kernel has no Multipath TCP: plain TCP, bound to the interface")
                    }
                    Some(Transport::FallenBack) => {
                        Some("the receiver, or something on the way there, has no Multipath TCP: plain TCP")
                    }
                    _ => None,
                };
                if let Some(line) = line {
                    self.bar.suspend(|| say(&format!("{}: {line}", path.name)));
                }
            }
            if *standing != path.standing {
                *standing = path.standing.clone();
                if let Standing::Down(why) = standing {
                    self.bar.suspend(|| say(&format!("{}: {why}", path.name)));
                }
            }
        }
        if status.backups == Some(BackupWay::Endpoints) && !self.has_said_how_backups {
            self.has_said_how_backups = true;
            let line = "net.mptcp.path_manager cannot be set here: the interfaces are backups of each other by endpoints, for all \
                        connections of this network namespace";
            self.bar.suspend(|| say(line));
        }
        if let (Some(why), false) = (&status.no_backups, self.has_said_why_no_backups) {
            self.has_said_why_no_backups = true;
            self.bar.suspend(|| say(&format!("the interfaces are no backups of each other: {why}")));
        }
        let time = now().duration_since(self.taken_at);
        if time >= Duration::from_secs(1) {
            self.rates.clear();
            for (path, before) in status.paths.iter().zip(&mut self.taken) {
                let bytes = u128::from(path.arrived_bytes - *before) * 1000 / time.as_millis();
                let rate = size::show(u64::try_from(bytes).unwrap_or(u64::MAX));
                self.rates.push_str(&format!("{} {rate}/s  ", path.name));
                *before = path.arrived_bytes;
            }
            self.taken_at = now();
        }
        self.bar.set_length(status.known_bytes);
        self.bar.set_position(status.there_bytes);
        self.bar.set_message(self.rates.clone());
    }
}

/// The outcome, for people.
fn report(outcome: &Outcome, seconds: f64) {
    for file in &outcome.files {
        let name = file.path.display();
        let size = size::show(file.size_bytes);
        match &file.result {
            Ok(true) => print(&format!("{name}: was there already, {size}")),
            Ok(false) if file.resumed_bytes > 0 => {
                print(&format!(
                    "{name}: sent, {size}, of which {} were there",
                    size::show(file.resumed_bytes)
                ));
            }
            Ok(false) => print(&format!("{name}: sent, {size}")),
            Err(why) => say(&format!("anabranchd: {name}: {why}")),
        }
    }
    for path in &outcome.paths {
        let transport = path.transport.map_or_else(|| "never connected".to_owned(), |kind| kind.to_string());
        let again = match path.connections {
            0 | 1 => String::new(),
            more => format!(", {more} connections"),
        };
        say(&format!("{}: {} ({transport}{again})", path.name, size::show(path.arrived_bytes)));
    }
    say(&format!("{seconds:.1} s; {}", memory_line(&outcome.sockets)));
}

/// The outcome, for programs.
fn object(outcome: &Outcome, seconds: f64) -> serde_json::Value {
    let hex = |hash: &[u8; 32]| hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let files = outcome.files.iter().map(|file| {
        json!({
            "path": file.path,
            "size_bytes": file.size_bytes,
            "blake3": file.hash.as_ref().map(hex),
            "resumed_bytes": file.resumed_bytes,
            "is_there": file.result.is_ok(),
            "was_there": file.result == Ok(true),
            "error": file.result.as_ref().err(),
        })
    });
    let paths = outcome.paths.iter().map(|path| {
        json!({
            "name": path.name,
            "transport": path.transport.map(|kind| kind.to_string()),
            "is_fallen_back": path.transport == Some(Transport::FallenBack),
            "arrived_bytes": path.arrived_bytes,
            "chunks": path.chunks,
            "connections": path.connections,
            "down": match &path.standing { Standing::Down(why) => Some(why), _ => None },
        })
    });
    let mut object = json!({
        "files": files.collect::<Vec<_>>(),
        "paths": paths.collect::<Vec<_>>(),
        "backups": outcome.backups.map(|way| way.to_string()),
        "no_backups": outcome.no_backups,
        "seconds": seconds,
        "failure": outcome.failure.as_ref().map(ToString::to_string),
    });
    add_memory(&mut object, &outcome.sockets);
    object
}
