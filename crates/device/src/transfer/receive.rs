//! `anabranchd receive`.

use std::{
    net::SocketAddr,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anabranch_device::DeviceError;
use anabranch_transfer::{
    Stop,
    memory::Share,
    path::{SocketOptions, Transport},
    receiver::{Event, Folder, Limits, Receiver},
    security::{Admission, Fingerprint, Identity, OnceToken, ServerTls},
};
use clap::Args;
use serde_json::json;

use super::{
    INTERRUPTED, PORT, add_memory, memory_line, path_error, read_key, say, size, stop_on_signals, too_little,
};
use crate::print;

/// Connections that memory is shared among, if it is limited and they are not.
const CONNECTIONS_OF_LITTLE: u16 = 4;

#[derive(Args)]
#[command(group = clap::ArgGroup::new("whom").required(true).multiple(true))]
pub(crate) struct Arguments {
    /// Folder that files are received into; it must exist.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Address and port to listen at.
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = SocketAddr::from(([0u16; 8], PORT)))]
    listen: SocketAddr,
    /// Let in the sender whose key has this fingerprint; may be repeated.
    #[arg(long, value_name = "FINGERPRINT", group = "whom")]
    trust: Vec<Fingerprint>,
    /// Make a token and print it: whoever comes with it first is let in. Without --key, with a key for this once.
    #[arg(long, group = "whom")]
    token: bool,
    /// Let in anybody, and encrypt nothing.
    #[arg(long, group = "whom", conflicts_with_all = ["trust", "token", "key"])]
    plaintext: bool,
    /// File with the key of this machine; ~/.config/anabranch/transfer.key if not given.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Let a file take the place of another of its name.
    #[arg(long)]
    overwrite: bool,
    /// End with exit code 0 when the first sender has left.
    #[arg(long)]
    once: bool,
    /// Bound the buffers of all connections together, as 256K; without it the kernel adapts them.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    memory: Option<u64>,
    /// Take no file that is larger, as 2G.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    max_size: Option<u64>,
    /// Take no more data per second, as 1M.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    max_rate: Option<u64>,
    /// Connections of one sender at once; 16, or 4 with --memory.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    max_connections: Option<u16>,
    /// Listen for TCP only, not for Multipath TCP.
    #[arg(long)]
    tcp: bool,
    /// Print what happens as JSON, one object per line.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, DeviceError> {
    let folder = Folder::open(&arguments.dir).map_err(|error| {
        DeviceError::Input(format!(
            "--dir {}: {error}; expected a folder that is there",
            arguments.dir.display()
        ))
    })?;
    let (security, token) = security(&arguments)?;
    let limits = limits(&arguments);
    let connections = usize::from(limits.connections);
    let memory = arguments.memory.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let share = Share::of(memory, connections, security.is_some()).map_err(too_little)?;
    let sockets = SocketOptions {
        mptcp: !arguments.tcp,
        send_buffer_bytes: share.answer_bytes,
        receive_buffer_bytes: share.data_bytes,
    };
    let (listener, transport) = sockets.listen(arguments.listen).map_err(path_error)?;
    let address = listener.local_addr().map_err(DeviceError::system("asking for the address"))?;
    let stop = stop_on_signals()?;
    let is_json = arguments.json;
    if is_json {
        let token = token.as_ref().map(ToString::to_string);
        let transport = transport.to_string();
        print(&json!({"event": "listening", "address": address.to_string(), "transport": transport, "token": token}).to_string());
    } else {
        if transport == Transport::Tcp && !arguments.tcp {
            say("this kernel has no Multipath TCP: plain TCP");
        }
        say(&format!("listening at {address} ({transport})"));
        if let Some(token) = &token {
            print(&format!("on the sender: anabranchd send FILE… HOST:{} --token {token}", address.port()));
        }
    }
    let left = Stop::new();
    let once = arguments.once.then(|| (stop.clone(), left.clone()));
    let receiver = Receiver {
        folder: Arc::new(folder),
        overwrite: arguments.overwrite,
        security,
        limits,
        piece_bytes: share.piece_bytes,
        observer: observer(is_json, once),
    };
    let received = receiver.serve(&listener, &stop).map_err(DeviceError::system("accepting connections"))?;
    if is_json {
        let mut object = json!({"event": "ended", "data_bytes": received.data_bytes});
        add_memory(&mut object, &received.sockets);
        print(&object.to_string());
    } else {
        say(&memory_line(&received.sockets));
    }
    Ok(if left.is_raised() { ExitCode::SUCCESS } else { ExitCode::from(INTERRUPTED) })
}

/// Keys and whom they let in, as the arguments say; the token that is to be printed.
type Security = (Option<(ServerTls, Arc<Admission>)>, Option<OnceToken>);

fn security(arguments: &Arguments) -> Result<Security, DeviceError> {
    if arguments.plaintext {
        return Ok((None, None));
    }
    let identity = match (&arguments.key, arguments.token && arguments.trust.is_empty()) {
        (None, true) => Identity::generate().0,
        (named, _) => read_key(named.clone())?,
    };
    let token = arguments.token.then(|| OnceToken::new(identity.fingerprint()));
    let admission = Arc::new(Admission::new(arguments.trust.iter().copied(), token.clone()));
    Ok((Some((ServerTls::new(&identity, admission.clone()), admission)), token))
}

fn limits(arguments: &Arguments) -> Limits {
    let usual = Limits::default();
    let few = if arguments.memory.is_some() { CONNECTIONS_OF_LITTLE } else { usual.connections };
    let connections = arguments.max_connections.unwrap_or(few);
    Limits {
        file_bytes: arguments.max_size.unwrap_or(usual.file_bytes),
        bytes_per_second: arguments.max_rate,
        connections,
        // What is shared out is for all.
        all_connections: match arguments.memory {
            Some(_) => connections.into(),
            None => usual.all_connections.max(connections.into()),
        },
        strangers: if arguments.memory.is_some() { connections.into() } else { usual.strangers },
        ..usual
    }
}

/// Prints what happens; raises the flags of `once` when as many have left as have come.
fn observer(is_json: bool, once: Option<(Stop, Stop)>) -> Box<dyn Fn(&Event) + Send + Sync> {
    let present = AtomicUsize::new(0);
    Box::new(move |event| {
        let (line, object) = told(event);
        if is_json {
            print(&object.to_string());
        } else {
            say(&line);
        }
        match event {
            Event::Connected { .. } => drop(present.fetch_add(1, Ordering::Relaxed)),
            Event::Closed { was_let_in: true, .. } if present.fetch_sub(1, Ordering::Relaxed) == 1 => {
                if let Some((stop, left)) = &once {
                    left.raise();
                    stop.raise();
                }
            }
            _ => {}
        }
    })
}

/// What happened, for people and for programs.
fn told(event: &Event) -> (String, serde_json::Value) {
    match event {
        Event::Connected { peer, who, transport } => {
            let who = who.map(|who| who.to_string());
            let by = who.as_deref().unwrap_or("anybody");
            (
                format!("{peer}: connected, {by} ({transport})"),
                json!({"event": "connected", "peer": peer.to_string(), "who": who, "transport": transport.to_string()}),
            )
        }
        Event::Closed { peer, why, was_let_in } => {
            let text = match why {
                Some(why) => format!("{peer}: ended: {why}"),
                None => format!("{peer}: done"),
            };
            let object =
                json!({"event": "closed", "peer": peer.to_string(), "why": why, "was_let_in": was_let_in});
            (text, object)
        }
        Event::Began { name, size_bytes, arrived_bytes } => {
            let size = size::show(*size_bytes);
            let text = match arrived_bytes {
                0 => format!("{name}: {size} to come"),
                there => format!("{name}: {size}, of which {} are there", size::show(*there)),
            };
            let object = json!({"event": "began", "name": name, "size_bytes": size_bytes, "arrived_bytes": arrived_bytes});
            (text, object)
        }
        Event::Received { name, size_bytes } => (
            format!("{name}: received, {}", size::show(*size_bytes)),
            json!({"event": "received", "name": name, "size_bytes": size_bytes}),
        ),
        Event::Refused { name, why } => (
            format!("{name}: refused: {why}"),
            json!({"event": "refused", "name": name, "why": why.to_string()}),
        ),
    }
}
