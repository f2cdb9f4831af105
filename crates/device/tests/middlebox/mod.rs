//! A middlebox on the client's first link that removes options of Multipath TCP, in one direction or both, from some packets or all,
//! and from any moment on.
//!
//! It passes frames on between the link and a veth pair of the router: NOPs take the place of the options, and checksums are put
//! right. Left out: IPv6, of which nothing is removed, and segments longer than a packet, which are turned off.

#![allow(unreachable_pub)]

use std::{
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
    sync::{Arc, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use nix::{
    errno::Errno,
    ifaddrs::getifaddrs,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::socket::{
        AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrLike as _, bind, recv, send,
        socket,
    },
};

use super::transfer_lab::lab::Lab;

const ETHERNET: usize = 14;
const IPV4: [u8; 2] = [8, 0];
const TCP: u8 = 6;
const SYN: u8 = 1 << 1;
const NOP: u8 = 1;
/// RFC 8684 section 3.
const MPTCP: u8 = 30;

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    ToServer,
    ToClient,
}

/// What is removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strips {
    #[default]
    Nothing,
    /// Options of packets with the flag SYN.
    Syns(Way),
    /// Options of all others.
    Others(Way),
    /// All, both ways.
    All,
}

impl Strips {
    fn takes(self, way: Way, is_syn: bool) -> bool {
        match self {
            Self::Nothing => false,
            Self::Syns(of) => of == way && is_syn,
            Self::Others(of) => of == way && !is_syn,
            Self::All => true,
        }
    }
}

/// Works until it is dropped.
pub struct Middlebox {
    strips: Arc<Mutex<Option<Strips>>>,
    worker: Option<JoinHandle<()>>,
}

impl Middlebox {
    /// Puts it on the way; the lab's links must not have been used.
    pub fn new(lab: &Lab) -> Self {
        let router = &lab.router;
        router.ip("addr del 10.77.1.254/24 dev r1");
        router.ip("link add m1 type veth peer name m2");
        for link in ["r1", "m1"] {
            // The addresses are those of m2, which alone answers for them.
            router.ip(&format!("link set {link} up arp off"));
            router.run("sysctl", &format!("-qw net.ipv6.conf.{link}.disable_ipv6=1"));
        }
        router.ip("link set m2 up");
        router.ip("addr add 10.77.1.254/24 dev m2");
        lab.client.ip("link set c1 gso_max_segs 1");
        lab.server.ip("link set s0 gso_max_segs 1");
        let ends = router.enter(|| [open("r1"), open("m1")]);
        let strips = Arc::new(Mutex::new(Some(Strips::Nothing)));
        let shared = Arc::clone(&strips);
        let worker = thread::spawn(move || work(&ends, &shared));
        Self { strips, worker: Some(worker) }
    }

    /// From now on.
    pub fn strip(&self, strips: Strips) {
        *self.strips.lock().unwrap_or_else(PoisonError::into_inner) = Some(strips);
    }
}

impl Drop for Middlebox {
    fn drop(&mut self) {
        *self.strips.lock().unwrap_or_else(PoisonError::into_inner) = None;
        // One that has failed has said so.
        let _ = self.worker.take().map(JoinHandle::join);
    }
}

/// All frames of a link of the namespace.
fn open(link: &str) -> OwnedFd {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let end = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll).expect("root may");
    let mut known = getifaddrs().expect("links are listed").filter(|known| known.interface_name == link);
    let address = known.find_map(|known| known.address?.as_link_addr().copied()).expect("the link is there");
    assert_eq!(address.family(), Some(AddressFamily::Packet));
    bind(end.as_raw_fd(), &address).expect("it is there");
    end
}

fn work(ends: &[OwnedFd; 2], strips: &Mutex<Option<Strips>>) {
    let mut frame = vec![0; 1 << 16];
    loop {
        let mut waits = ends.each_ref().map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN));
        let patience = PollTimeout::try_from(Duration::from_millis(50)).expect("it is short");
        poll(&mut waits, patience).expect("it can wait");
        let now = *strips.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(now) = now else { return };
        for (from, to, way) in [(0, 1, Way::ToServer), (1, 0, Way::ToClient)] {
            match recv(ends[from].as_raw_fd(), &mut frame, MsgFlags::empty()) {
                Ok(length) => {
                    let frame = &mut frame[..length];
                    pass(frame, now, way);
                    // A queue that is full drops, as any on the way may.
                    let _ = send(ends[to].as_raw_fd(), frame, MsgFlags::empty());
                }
                Err(Errno::EAGAIN) => {}
                Err(error) => panic!("the link is gone: {error}"),
            }
        }
    }
}

/// Makes a frame what it is behind the middlebox.
fn pass(frame: &mut [u8], strips: Strips, way: Way) {
    if frame.len() < ETHERNET + 40 || frame[12..ETHERNET] != IPV4 || frame[ETHERNET + 9] != TCP {
        return;
    }
    let packet = &mut frame[ETHERNET..];
    let start = usize::from(packet[0] & 0x0f) * 4;
    let end = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    let addresses: [u8; 8] = packet[12..20].try_into().expect("there are as many");
    let segment = &mut packet[start..end];
    let header = usize::from(segment[12] >> 4) * 4;
    if strips.takes(way, segment[13] & SYN != 0) {
        let mut at = 20;
        while at + 1 < header && segment[at] != 0 {
            let length = if segment[at] == NOP { 1 } else { usize::from(segment[at + 1]).max(1) };
            if segment[at] == MPTCP {
                segment[at..at + length].fill(NOP);
            }
            at += length;
        }
    }
    // A veth leaves it to the other end to fill checksums in.
    segment[16..18].fill(0);
    let length = u16::try_from(segment.len()).expect("it was in a packet");
    let words = |bytes: &[u8]| -> u32 {
        let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
        bytes.chunks(2).map(word).sum()
    };
    let mut sum = words(&addresses) + u32::from(TCP) + u32::from(length) + words(segment);
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let checksum = !u16::try_from(sum).expect("it is folded");
    segment[16..18].copy_from_slice(&checksum.to_be_bytes());
}
