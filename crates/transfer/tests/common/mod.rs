//! A receiver in a thread of this process, and files to send.

// Every test binary compiles this module and uses a part of it.
#![allow(dead_code, unreachable_pub, missing_docs)]

use std::{
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use anabranch_transfer::{
    Stop,
    path::{Path as Way, SocketOptions, Via},
    receiver::{Event, Folder, Limits, Receiver},
    security::{Admission, ClientTls, Identity, OnceToken, ServerTls, Servers},
    sender::{Outcome, Sender},
};

pub const GRAIN: usize = 16 << 10;
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Bytes that look random, and are the same each time.
pub fn noise(count: usize, seed: u64) -> Vec<u8> {
    let mut reader = blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof();
    let mut bytes = vec![0; count];
    reader.fill(&mut bytes);
    bytes
}

pub fn options(mptcp: bool) -> SocketOptions {
    SocketOptions { mptcp, send_buffer_bytes: None, receive_buffer_bytes: None }
}

/// Keys of both ends.
pub struct Keys {
    pub sender: Identity,
    pub receiver: Identity,
}

impl Keys {
    pub fn new() -> Self {
        Self { sender: Identity::generate().0, receiver: Identity::generate().0 }
    }

    pub fn client(&self) -> ClientTls {
        ClientTls::new(&self.sender, Servers::Pinned([self.receiver.fingerprint()].into()))
    }
}

/// A receiver that works until it is dropped.
pub struct Receiving {
    pub address: SocketAddr,
    pub events: Arc<Mutex<Vec<Event>>>,
    stop: Stop,
    thread: Option<thread::JoinHandle<u64>>,
}

impl Receiving {
    pub fn start(folder: &Path, change: impl FnOnce(&mut Receiver)) -> Self {
        Self::start_over(true, folder, change)
    }

    /// Over Multipath TCP or TCP.
    pub fn start_over(mptcp: bool, folder: &Path, change: impl FnOnce(&mut Receiver)) -> Self {
        let events = Arc::new(Mutex::new(Vec::new()));
        let told = events.clone();
        let mut receiver = Receiver {
            folder: Arc::new(Folder::open(folder).unwrap()),
            overwrite: false,
            security: None,
            limits: Limits::default(),
            piece_bytes: 64 << 10,
            observer: Box::new(move |event| told.lock().unwrap().push(event.clone())),
        };
        change(&mut receiver);
        let (listener, _) = options(mptcp).listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Stop::new();
        let flag = stop.clone();
        let thread = thread::spawn(move || serve(receiver, &listener, &flag));
        Self { address, events, stop, thread: Some(thread) }
    }

    /// Ends it; how many bytes of data it was sent.
    pub fn end(mut self) -> u64 {
        self.stop.raise();
        self.thread.take().unwrap().join().unwrap()
    }

    /// Why connections have ended that did not end well.
    pub fn complaints(&self) -> Vec<String> {
        let events = self.events.lock().unwrap();
        let whys = events.iter().filter_map(|event| match event {
            Event::Closed { why, .. } => why.clone(),
            _ => None,
        });
        whys.collect()
    }
}

fn serve(receiver: Receiver, listener: &TcpListener, stop: &Stop) -> u64 {
    receiver.serve(listener, stop).unwrap().data_bytes
}

impl Drop for Receiving {
    fn drop(&mut self) {
        self.stop.raise();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Lets in a receiver of these keys, and whoever has the token.
pub fn guarded(keys: &Keys, token: Option<OnceToken>) -> impl FnOnce(&mut Receiver) {
    let trusted = match token {
        Some(_) => vec![],
        None => vec![keys.sender.fingerprint()],
    };
    let admission = Arc::new(Admission::new(trusted, token));
    let tls = ServerTls::new(&keys.receiver, admission.clone());
    |receiver| receiver.security = Some((tls, admission))
}

/// A sender over so many addresses of the loopback interface.
pub fn sender(files: Vec<PathBuf>, peer: SocketAddr, paths: u8) -> Sender {
    let ways = (1..=paths).map(|path| Way::named(Via::Address([127, 0, 0, path].into())));
    Sender {
        files,
        peer,
        paths: ways.collect(),
        security: None,
        sockets: options(true),
        backups: false,
        piece_bytes: 64 << 10,
        reads_ahead: true,
        patience: PATIENCE,
        give_up: PATIENCE,
    }
}

pub fn send(sender: &Sender) -> Outcome {
    sender.run(&Stop::new(), &mut |_| {})
}

pub fn all_done(outcome: &Outcome) {
    assert_eq!(outcome.failure, None);
    for file in &outcome.files {
        assert!(file.result.is_ok(), "{file:?}");
    }
}

/// What a folder has, and nothing of the receiver's own.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
