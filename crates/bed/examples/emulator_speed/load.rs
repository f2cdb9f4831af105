//! UDP at a constant rate from one socket to another.

use std::{
    net::UdpSocket,
    os::fd::AsRawFd as _,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use nix::{
    sys::socket::{setsockopt, sockopt},
    time::{ClockId, clock_gettime},
};

use crate::Failure;

/// Size of an IP packet.
pub(crate) const PACKET_BYTES: usize = 1500;
const PAYLOAD: usize = PACKET_BYTES - 28;
/// Packets are sent in bursts so far apart, because a sleep is not free.
const BURST_EVERY: Duration = Duration::from_millis(1);

fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).expect("the kernel has this clock").into()
}

/// Offers so many Mbit/s, or as many as can be, and returns how many arrive.
pub(crate) fn run(
    (from, to): &(UdpSocket, UdpSocket),
    offered: Option<u64>,
    time: Duration,
) -> Result<f64, Failure> {
    without_checksum(from)?;
    setsockopt(to, sockopt::RcvBufForce, &(16 << 20))?;
    to.set_read_timeout(Some(Duration::from_millis(300)))?;
    let done = AtomicBool::new(false);
    let bytes = thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let (mut bytes, mut payload) = (0, [0; PACKET_BYTES]);
            loop {
                match to.recv(&mut payload) {
                    Ok(length) => bytes += length + PACKET_BYTES - PAYLOAD,
                    Err(_) if done.load(Ordering::Relaxed) => return bytes,
                    Err(_) => {}
                }
            }
        });
        send(from, offered, time);
        done.store(true, Ordering::Relaxed);
        receiver.join().expect("the receiver does not panic")
    });
    Ok(bytes as f64 * 8.0 / time.as_secs_f64() / 1e6)
}

fn send(socket: &UdpSocket, offered: Option<u64>, time: Duration) {
    let payload = [0; PAYLOAD];
    let (began, mut sent) = (now(), 0);
    loop {
        let since = now() - began;
        if since >= time {
            return;
        }
        let due = offered
            .map_or(sent + 16, |mbps| since.as_nanos() as u64 * mbps / 1000 / 8 / PACKET_BYTES as u64 + 1);
        while sent < due {
            // A full queue drops the packet, which is what full queues do.
            let _ = socket.send(&payload);
            sent += 1;
        }
        if let Some(mbps) = offered {
            let packet = Duration::from_nanos(PACKET_BYTES as u64 * 8_000 / mbps);
            thread::sleep(BURST_EVERY.max(packet).min(time));
        }
    }
}

/// On a veth pair the kernel leaves the checksum to a device that is not there, and the receiver would drop
/// what passes by a socket.
fn without_checksum(socket: &UdpSocket) -> Result<(), Failure> {
    let on: libc::c_int = 1;
    #[allow(unsafe_code)]
    // SAFETY: the option's value is an int that lives through the call.
    let result = unsafe {
        let size = size_of::<libc::c_int>() as libc::socklen_t;
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NO_CHECK,
            (&raw const on).cast(),
            size,
        )
    };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().into()) }
}
