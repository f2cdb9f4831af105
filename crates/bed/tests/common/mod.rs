//! What the tests of the bed share: skipping by name, small plans, and wires between devices.

// Every test binary compiles this module and uses a part of it.
#![allow(dead_code, unreachable_pub)]

pub mod texts;
pub mod turn;

use std::{
    collections::HashMap,
    fs::File,
    io::{Read as _, Write as _},
    net::IpAddr,
    os::fd::{AsFd as _, OwnedFd},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anabranch_bed::{
    host::{Session, check_requirements, namespace::PREFIX},
    plan::{Address, Host, Interface, Plan},
};
use nix::poll::{PollFd, PollFlags, poll};

/// The host as a test bed, for one test at a time.
pub struct Bed {
    pub session: Session,
    pub turn: MutexGuard<'static, ()>,
}

/// The host as a test bed, or `None` if the test is to be skipped because this machine cannot be one; says why
/// and what would enable it. Tests of this and other programs wait for one another.
///
/// # Panics
/// Instead of skipping, if `ANABRANCH_REQUIRE` lists `bed`.
pub fn begin(test: &str) -> Option<Bed> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if skip(test) {
        return None;
    }
    let session = Session::begin_within(BED_PATIENCE).expect("no bed holds this host for minutes");
    Some(Bed { session, turn })
}

/// Whether to skip a test, as [`begin`] does, without beginning.
///
/// # Panics
/// As [`begin`].
pub fn skip(test: &str) -> bool {
    let Err(error) = check_requirements() else { return false };
    skip_for(test, &error.to_string(), "sudo -E env PATH=\"$PATH\" cargo test -p anabranch-bed");
    true
}

/// How long a test waits for other beds on this host.
pub const BED_PATIENCE: Duration = Duration::from_secs(300);

/// Says that a test is skipped, why, and what would enable it.
///
/// # Panics
/// As [`skip`].
pub fn skip_for(test: &str, why: &str, enable: &str) {
    let required = std::env::var("ANABRANCH_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|what| what == "bed"), "{test} is required: {why}; {enable}");
    // In one piece, for other tests write too.
    let line = format!("SKIPPED: {test}: {why}; enable with: {enable}\n");
    std::io::stderr().write_all(line.as_bytes()).expect("stderr is open");
}

/// The command for devices, where the machine can be a test bed; `None` if the test is to be skipped.
///
/// # Panics
/// As [`skip`].
pub fn daemon(test: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_BIN_EXE_anabranch-bed")).with_file_name("anabranchd");
    let named = std::env::var_os("ANABRANCHD").map(PathBuf::from);
    let found = named.into_iter().chain([beside]).find(|file| file.is_file());
    if found.is_none() {
        skip_for(test, "anabranchd has not been built", "cargo build -p anabranch-device");
    }
    found.filter(|_| !skip(test))
}

/// The host as a test bed; tests wait for one another.
pub fn session() -> Session {
    Session::begin_within(BED_PATIENCE).expect("no bed holds this host for minutes")
}

/// The names of the network namespaces that are a bed's.
pub fn namespaces() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/run/netns") else { return Vec::new() };
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name.starts_with(PREFIX));
    names.sort();
    names
}

/// Hosts without paths or traffic.
pub fn plan(hosts: Vec<Host>) -> Plan {
    Plan {
        seed: 1,
        hosts,
        paths: Vec::new(),
        connections: Vec::new(),
        datagrams: Vec::new(),
        events: Vec::new(),
        agents: Vec::new(),
        algorithms: Vec::new(),
        notes: Vec::new(),
    }
}

/// A host with an interface `if0`, `if1`, ... for each list of addresses.
pub fn host(name: &str, interfaces: &[&[&str]]) -> Host {
    let mut table = 1000;
    let mut address = |ip: &&str| {
        table += 1;
        Address {
            ip: ip.parse().unwrap(),
            table,
            route_options: Vec::new(),
            endpoint: None,
            reaches: Vec::new(),
        }
    };
    let interfaces = interfaces.iter().enumerate().map(|(number, addresses)| Interface {
        name: format!("if{number}"),
        link: format!("link{number}"),
        mtu: 1500,
        addresses: addresses.iter().map(&mut address).collect(),
    });
    Host {
        node: 0,
        name: name.to_owned(),
        interfaces: interfaces.collect(),
        sysctls: Vec::new(),
        mptcp_limits: None,
    }
}

/// Carries packets between devices until it is dropped.
pub struct Wires {
    stop: Arc<AtomicBool>,
    seen: Arc<Vec<AtomicUsize>>,
    longest: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Wires {
    /// A packet from any of the devices comes out of the one that its destination belongs to; others are lost.
    pub fn join(devices: Vec<OwnedFd>, destinations: &[(&str, usize)]) -> Self {
        let destinations: HashMap<IpAddr, usize> =
            destinations.iter().map(|(ip, device)| (ip.parse().unwrap(), *device)).collect();
        let stop = Arc::new(AtomicBool::new(false));
        let longest = Arc::new(AtomicUsize::new(0));
        let seen: Arc<Vec<_>> = Arc::new(devices.iter().map(|_| AtomicUsize::new(0)).collect());
        let shared = (Arc::clone(&stop), Arc::clone(&seen), Arc::clone(&longest));
        let thread = thread::spawn(move || {
            let (stop, seen, longest) = shared;
            let mut devices: Vec<File> = devices.into_iter().map(File::from).collect();
            let mut packet = [0; 1 << 16];
            while !stop.load(Ordering::Relaxed) {
                let mut ready: Vec<_> =
                    devices.iter().map(|device| PollFd::new(device.as_fd(), PollFlags::POLLIN)).collect();
                poll(&mut ready, 20_u16).expect("poll");
                for at in 0..devices.len() {
                    while let Ok(bytes) = devices[at].read(&mut packet) {
                        let Some(&exit) = destinations.get(&destination(&packet)) else { continue };
                        longest.fetch_max(bytes, Ordering::Relaxed);
                        seen[at].fetch_add(1, Ordering::Relaxed);
                        devices[exit].write_all(&packet[..bytes]).expect("the device takes the packet");
                    }
                }
            }
        });
        Self { stop, seen, longest, thread: Some(thread) }
    }

    /// Packets that have come from each device and were not lost.
    pub fn seen(&self) -> Vec<usize> {
        self.seen.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    /// Bytes of the longest of these packets.
    pub fn longest(&self) -> usize {
        self.longest.load(Ordering::Relaxed)
    }
}

impl Drop for Wires {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let result = thread.join();
            assert!(result.is_ok() || thread::panicking(), "the wires' thread has panicked");
        }
    }
}

fn destination(packet: &[u8]) -> IpAddr {
    match packet[0] >> 4 {
        4 => <[u8; 4]>::try_from(&packet[16..20]).unwrap().into(),
        6 => <[u8; 16]>::try_from(&packet[24..40]).unwrap().into(),
        version => panic!("IP version {version}"),
    }
}
