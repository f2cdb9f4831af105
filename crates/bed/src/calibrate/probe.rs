//! Packets that say when and as which they were sent, and what a receiver makes of them.

use std::{
    io::{self, IoSliceMut},
    net::UdpSocket,
    os::fd::AsRawFd as _,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use nix::{
    cmsg_space,
    errno::Errno,
    sys::{
        socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt},
        time::TimeSpec,
    },
    time::ClockId,
};

use crate::{BedError, Nanos, clock::time_of};

/// IPv4 and UDP header.
pub(crate) const HEADER_BYTES: usize = 28;
/// Size of the smallest packet: headers, number, time.
pub(crate) const SMALLEST_BYTES: usize = HEADER_BYTES + 16;
/// Room for what has arrived and was not read yet.
const RECEIVE_BUFFER_BYTES: usize = 32 << 20;

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// How many packets.
    pub(crate) packets: u64,
    /// Size of each IP packet.
    pub(crate) bytes: usize,
    /// Time between two packets; packets that are behind follow at once.
    pub(crate) interval: Nanos,
    /// No more than that many packets may be under way.
    pub(crate) window: u64,
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// Number of the packet, from 0.
    pub(crate) number: u64,
    /// When it was handed to the sender's kernel.
    pub(crate) sent: Nanos,
    /// When it came to the receiver's kernel.
    pub(crate) arrived: Nanos,
}

/// What came of a load.
#[derive(Debug)]
pub(crate) struct Probed {
    /// The packets that arrived, in order of arrival.
    pub(crate) arrivals: Vec<Arrival>,
    /// How long it took to send them all.
    pub(crate) sending: Nanos,
}

/// Sends the load from one socket to the other. Nothing further is expected once nothing has arrived for
/// `quiet` after the last packet was sent.
pub(crate) fn run(
    (sender, receiver): &(UdpSocket, UdpSocket),
    load: Load,
    quiet: Duration,
) -> Result<Probed, BedError> {
    let option = BedError::system;
    setsockopt(receiver, sockopt::RcvBufForce, &RECEIVE_BUFFER_BYTES)
        .and_then(|()| setsockopt(receiver, sockopt::ReceiveTimestampns, &true))
        .map_err(io::Error::from)
        .map_err(option("preparing the receiving socket"))?;
    receiver.set_read_timeout(Some(quiet)).map_err(option("preparing the receiving socket"))?;
    let (received, done) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let arrivals = scope.spawn(|| collect(receiver, load, &received, &done));
        let sent = send(sender, load, &received);
        done.store(true, Ordering::Release);
        let arrivals = arrivals.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let sending = sent.map_err(option("sending probes"))?;
        Ok(Probed { arrivals: arrivals.map_err(option("receiving probes"))?, sending })
    })
}

fn send(socket: &UdpSocket, load: Load, received: &AtomicU64) -> io::Result<Nanos> {
    let mut payload = vec![0; load.bytes - HEADER_BYTES];
    let began = now();
    let mut next = began;
    for number in 0..load.packets {
        while number - received.load(Ordering::Acquire) >= load.window {
            thread::sleep(Duration::from_micros(50));
        }
        let ahead = next.saturating_sub(now());
        if ahead > 0 {
            thread::sleep(Duration::from_nanos(ahead));
        }
        next += load.interval;
        payload[..8].copy_from_slice(&number.to_le_bytes());
        payload[8..16].copy_from_slice(&now().to_le_bytes());
        socket.send(&payload)?;
    }
    Ok(now() - began)
}

fn collect(
    socket: &UdpSocket,
    load: Load,
    received: &AtomicU64,
    done: &AtomicBool,
) -> io::Result<Vec<Arrival>> {
    let mut arrivals = Vec::with_capacity(load.packets as usize);
    let mut payload = [0; 16];
    let mut control = cmsg_space!(TimeSpec);
    loop {
        // Read before the wait begins: if it was set by then, a wait in vain has been a whole one.
        let nothing_more_is_sent = done.load(Ordering::Acquire);
        let mut parts = [IoSliceMut::new(&mut payload)];
        let message =
            match recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::MSG_TRUNC) {
                Ok(message) => message,
                Err(Errno::EAGAIN | Errno::EINTR) if !nothing_more_is_sent => continue,
                Err(Errno::EAGAIN) => return Ok(arrivals),
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
        let arrived = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::ScmTimestampns(time) => Some(nanos(time)),
            _ => None,
        });
        let arrived = arrived.ok_or_else(|| io::Error::other("the kernel gave no time of arrival"))?;
        let word = |from: usize| u64::from_le_bytes(payload[from..from + 8].try_into().expect("eight bytes"));
        let arrival = Arrival { number: word(0), sent: word(8), arrived };
        arrivals.push(arrival);
        received.store(arrival.number + 1, Ordering::Release);
        if arrival.number + 1 == load.packets {
            return Ok(arrivals);
        }
    }
}

/// The clock that the kernel stamps arrivals with.
fn now() -> Nanos {
    time_of(ClockId::CLOCK_REALTIME)
}

fn nanos(time: TimeSpec) -> Nanos {
    time.tv_sec() as Nanos * 1_000_000_000 + time.tv_nsec() as Nanos
}
