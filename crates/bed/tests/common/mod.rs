//! What the tests of the bed share: skipping by name, small plans, and a wire between two devices.

// Every test binary compiles this module and uses a part of it.
#![allow(dead_code, unreachable_pub)]

use std::{
    fs::File,
    io::{Read as _, Write as _},
    net::IpAddr,
    os::fd::{AsFd as _, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anabranch_bed::{
    BedError,
    host::{Session, check_requirements},
    plan::{Address, Host, Interface, Plan},
};
use nix::poll::{PollFd, PollFlags, poll};

/// Whether to skip a test because this machine cannot be a test bed; says why and what would enable it.
///
/// # Panics
/// Instead of skipping, if `ANABRANCH_REQUIRE` lists `bed`.
pub fn skip(test: &str) -> bool {
    let Err(error) = check_requirements() else { return false };
    skip_for(test, &error.to_string(), "sudo -E env PATH=\"$PATH\" cargo test -p anabranch-bed");
    true
}

/// Says that a test is skipped, why, and what would enable it.
///
/// # Panics
/// As [`skip`].
pub fn skip_for(test: &str, why: &str, enable: &str) {
    let required = std::env::var("ANABRANCH_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|what| what == "bed"), "{test} is required: {why}; {enable}");
    writeln!(std::io::stderr(), "SKIPPED: {test}: {why}; enable with: {enable}").expect("stderr is open");
}

/// The host as a test bed; tests wait for one another.
pub fn session() -> Session {
    Session::begin_within(Duration::from_secs(300)).expect("no bed holds this host for minutes")
}

/// What went wrong, as a user reads it.
pub fn text(error: &BedError) -> String {
    error.to_string()
}

/// Hosts without paths or traffic.
pub fn plan(hosts: Vec<Host>) -> Plan {
    Plan {
        hosts,
        paths: Vec::new(),
        connections: Vec::new(),
        datagrams: Vec::new(),
        algorithms: Vec::new(),
        notes: Vec::new(),
    }
}

/// A host with an interface `if0`, `if1`, ... for each list of addresses.
pub fn host(name: &str, interfaces: &[&[&str]]) -> Host {
    let mut table = 1000;
    let mut address = |ip: &&str| {
        table += 1;
        Address { ip: ip.parse().unwrap(), table, route_options: Vec::new(), endpoint: None }
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

/// Carries packets between pairs of devices until it is dropped.
pub struct Wires {
    stop: Arc<AtomicBool>,
    seen: Arc<Vec<AtomicUsize>>,
    longest: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Wires {
    /// Joins the devices of these numbers; a packet from one of a pair goes to the other.
    pub fn join(devices: Vec<OwnedFd>, pairs: &[(usize, usize)]) -> Self {
        let peers: Vec<usize> = (0..devices.len())
            .map(|at| {
                let pair = pairs.iter().find(|(a, b)| *a == at || *b == at).expect("every device has a peer");
                pair.0 + pair.1 - at
            })
            .collect();
        let stop = Arc::new(AtomicBool::new(false));
        let longest = Arc::new(AtomicUsize::new(0));
        let seen: Arc<Vec<_>> = Arc::new(peers.iter().map(|_| AtomicUsize::new(0)).collect());
        let shared = (Arc::clone(&stop), Arc::clone(&seen), Arc::clone(&longest));
        let thread = thread::spawn(move || {
            let (stop, seen, longest) = shared;
            let mut devices: Vec<File> = devices.into_iter().map(File::from).collect();
            let mut packet = [0; 1 << 16];
            while !stop.load(Ordering::Relaxed) {
                let mut ready: Vec<_> =
                    devices.iter().map(|device| PollFd::new(device.as_fd(), PollFlags::POLLIN)).collect();
                poll(&mut ready, 20_u16).expect("poll");
                for (at, &peer) in peers.iter().enumerate() {
                    while let Ok(bytes) = devices[at].read(&mut packet) {
                        longest.fetch_max(bytes, Ordering::Relaxed);
                        if belongs_to_a_socket(&packet[..bytes]) {
                            seen[at].fetch_add(1, Ordering::Relaxed);
                        }
                        devices[peer].write_all(&packet[..bytes]).expect("the peer takes the packet");
                    }
                }
            }
        });
        Self { stop, seen, longest, thread: Some(thread) }
    }

    /// TCP and UDP packets that have come out of each device, between unicast addresses.
    pub fn seen(&self) -> Vec<usize> {
        self.seen.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    /// Bytes of the longest packet that has come out of any device.
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

fn belongs_to_a_socket(packet: &[u8]) -> bool {
    let (protocol, to): (u8, IpAddr) = match packet[0] >> 4 {
        4 => (packet[9], <[u8; 4]>::try_from(&packet[16..20]).unwrap().into()),
        6 => (packet[6], <[u8; 16]>::try_from(&packet[24..40]).unwrap().into()),
        version => panic!("IP version {version}"),
    };
    [6, 17].contains(&protocol) && !to.is_multicast()
}
