//! The two ends of a UDP flow.

use std::{
    io::{self, ErrorKind, Read as _},
    net::SocketAddr,
    os::fd::{AsFd as _, AsRawFd as _},
    sync::atomic::Ordering,
};

use nix::{
    poll::PollFlags,
    sys::{
        prctl,
        socket::{setsockopt, sockopt},
    },
};
use socket2::{Domain, Protocol, Socket, Type};

use super::{
    clock::{Stop, Wake},
    pattern,
    schedule::Schedule,
    state::DatagramState,
};
use crate::{BedError, emulator::Times, host::Namespace, plan::DatagramPlan};

/// A packet's number, at the beginning of payloads that have the room.
const NUMBER_BYTES: usize = size_of::<u64>();
/// Largest UDP payload.
const LARGEST: usize = 65_535;
/// Room at the receiver, so that only links lose packets: 0.1 s at 500 Mbit/s, with the kernel's overhead.
const RECEIVE_BUFFER_BYTES: usize = 16 << 20;

/// The sockets of a flow.
#[derive(Debug)]
pub(super) struct Sockets {
    sender: Socket,
    receiver: Socket,
}

/// Makes the sockets of a flow, each in its namespace.
pub(super) fn prepare(plan: &DatagramPlan, name: &str, hosts: &[Namespace]) -> Result<Sockets, BedError> {
    let socket = |address: SocketAddr| -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        Ok(socket)
    };
    let receiver = hosts[plan.receiver]
        .enter(|| {
            let receiver = socket(SocketAddr::new(plan.to, plan.port))?;
            setsockopt(&receiver, sockopt::RcvBufForce, &RECEIVE_BUFFER_BYTES)?;
            Ok(receiver)
        })?
        .map_err(BedError::system(format!("making the receiver's socket of flow {name}")))?;
    let sender = hosts[plan.sender]
        .enter(|| socket(SocketAddr::new(plan.from, plan.port)))?
        .map_err(BedError::system(format!("making the sender's socket of flow {name}")))?;
    Ok(Sockets { sender, receiver })
}

/// The sending end: every packet when it is due, or as soon as possible after.
pub(super) fn send(
    flow: &DatagramState,
    sockets: &Sockets,
    plan: &DatagramPlan,
    schedule: &Schedule,
    stop: &Stop,
) {
    // The default, 50 us, is a quarter of the spacing of full packets at 60 Mbit/s. A refusal would show in
    // the lateness.
    let _ = prctl::set_timerslack(1);
    let to = SocketAddr::new(plan.to, plan.port).into();
    let mut payload = vec![0; plan.payload_bytes as usize];
    let mut lateness = Times::new();
    for (number, due) in schedule.departures().enumerate() {
        fill(&mut payload, number as u64);
        if stop.wait_until(due) == Wake::Stopped {
            break;
        }
        lateness.record(stop.clock().now().saturating_sub(due));
        match sockets.sender.send_to(&payload, &to) {
            Ok(_) => flow.sent.fetch_add(1, Ordering::Release),
            Err(error) => {
                flow.fail(format!("sending packet {number} to {}: {error}", plan.to));
                flow.refused.fetch_add(1, Ordering::Release)
            }
        };
    }
    flow.lateness.set(lateness).expect("a flow has one sender");
}

/// The receiving end, until the run ends.
pub(super) fn receive(
    flow: &DatagramState,
    sockets: &Sockets,
    plan: &DatagramPlan,
    schedule: &Schedule,
    stop: &Stop,
) {
    let length = plan.payload_bytes as usize;
    let mut buffer = vec![0; LARGEST];
    let mut expected = vec![0; length];
    while !stop.is_raised() {
        match (&mut &sockets.receiver).read(&mut buffer) {
            Ok(bytes) => {
                if let Err(text) = check(&buffer[..bytes], &mut expected, schedule.packets()) {
                    flow.fail(text);
                }
                flow.received.fetch_add(1, Ordering::Release);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                stop.wait_for(sockets.receiver.as_fd(), PollFlags::POLLIN, None);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return flow.fail(format!("receiving at {}: {error}", plan.to)),
        }
    }
    match overflowed(&sockets.receiver) {
        Ok(packets) => flow.overflowed.store(packets, Ordering::Release),
        Err(error) => flow.fail(format!("asking the receiver's socket for its drops: {error}")),
    }
}

/// Number and pattern; the pattern alone if the number does not fit.
fn fill(payload: &mut [u8], number: u64) {
    let fits = payload.len() >= NUMBER_BYTES;
    payload.copy_from_slice(pattern::piece(if fits { number } else { 0 }, payload.len()));
    if let Some(place) = payload.first_chunk_mut::<NUMBER_BYTES>() {
        *place = number.to_be_bytes();
    }
}

fn check(received: &[u8], expected: &mut [u8], packets: u64) -> Result<(), String> {
    if received.len() != expected.len() {
        return Err(format!("a packet of {} bytes came instead of {}", received.len(), expected.len()));
    }
    let number = received.first_chunk::<NUMBER_BYTES>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    if number >= packets {
        return Err(format!("packet {number} came, but only {packets} are sent"));
    }
    fill(expected, number);
    match received.iter().zip(&*expected).position(|(received, sent)| received != sent) {
        None => Ok(()),
        Some(byte) => Err(format!("byte {byte} of packet {number} differs from what was sent")),
    }
}

/// How many packets found the socket full (`SK_MEMINFO_DROPS`, linux/sock_diag.h).
fn overflowed(socket: &Socket) -> io::Result<u64> {
    const DROPS: usize = 8;
    let mut memory = [0_u32; DROPS + 1];
    let mut length = size_of_val(&memory) as libc::socklen_t;
    #[allow(unsafe_code)]
    // SAFETY: `memory` has `length` bytes, and the kernel writes no more than that.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            memory.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result == 0 { Ok(memory[DROPS].into()) } else { Err(io::Error::last_os_error()) }
}
