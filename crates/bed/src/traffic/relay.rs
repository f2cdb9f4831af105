//! A gateway between two connections: it accepts one, opens the other, and passes on what it reads (split TCP, RFC 3135
//! section 2.4).
//!
//! It reads as long as its buffer has room. The buffer holds what has been read and not yet sent: bytes that wait for
//! their time, bytes that the kernel has not taken, and those that it has taken and not sent (`SIOCOUTQNSD`). What is
//! not read stays in the input's receive buffer and closes its window. All bytes that it reads are checked, and are those that it
//! would write, so that it holds their number only.
//!
//! Where it differs from the simulator's: bytes count as delivered by the input when the relay has read them, not when
//! they have come; and it ends its output when the input has ended.

use std::{
    collections::VecDeque,
    io,
    net::Shutdown,
    os::fd::{AsFd as _, AsRawFd as _},
    sync::atomic::{AtomicU64, Ordering},
};

use anabranch_scenario::model;
use nix::poll::PollFlags;
use socket2::Socket;

use super::{
    clock::{Stop, Wake},
    connection::{Task, connect, take},
    pattern,
    state::ConnectionState,
    transfer::{End, Read, ended},
};
use crate::Nanos;

/// What a relay has done so far.
#[derive(Debug, Default)]
pub(super) struct RelayState {
    held_max: AtomicU64,
}

/// How a relay has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayOutcome {
    /// The most that it ever held.
    pub held_max_bytes: u64,
}

impl RelayState {
    pub(super) fn outcome(&self) -> RelayOutcome {
        RelayOutcome { held_max_bytes: self.held_max.load(Ordering::Acquire) }
    }
}

/// A connection of a relay and what is done with it.
pub(super) type Leg<'a> = (&'a ConnectionState, &'a Task);

/// The relay, until its input has ended and all is written, or the run ends.
pub(super) fn relay(state: &RelayState, model: &model::Relay, input: Leg<'_>, output: Leg<'_>, stop: &Stop) {
    let socket = match take(input.0, input.1, stop) {
        Ok(Some(socket)) => socket,
        Ok(None) => return,
        Err(error) => return input.0.fail(format!("accepting: {error}")),
    };
    output.0.opened.set(stop.clock().now());
    match open(output, model, stop) {
        Ok(Wake::Stopped) => return,
        Ok(_) => output.0.established.set(stop.clock().now()),
        Err(error) => return output.0.fail(format!("connecting from a relay: {error}")),
    }
    let mut carrier = Carrier {
        state,
        model,
        input: End::acceptor(input.0, socket),
        output: End::opener(output.0),
        waiting: VecDeque::new(),
        due_bytes: 0,
        buffer: vec![0; 2 * pattern::LONGEST],
    };
    if let Err(error) = carrier.carry(input.1, stop) {
        let bytes = carrier.input.delivered_bytes();
        input.0.fail(format!("relaying, after {bytes} bytes: {error}"));
    }
}

/// Opens the output. The kernel takes no more than half a buffer that it cannot send.
fn open((connection, task): Leg<'_>, model: &model::Relay, stop: &Stop) -> io::Result<Wake> {
    let least = u32::try_from(low_water(model)).unwrap_or(u32::MAX);
    connection.client.set_tcp_notsent_lowat(least)?;
    connect(&connection.client, task, stop)
}

/// Bytes not sent below which the kernel takes more; it tells of room below half of that.
fn low_water(model: &model::Relay) -> u64 {
    (model.buffer_bytes / 2).max(1)
}

/// Bytes that the kernel has taken and not sent.
fn unsent_bytes(socket: &Socket) -> io::Result<u64> {
    /// `linux/sockios.h`.
    const SIOCOUTQNSD: libc::Ioctl = 0x894b;
    let mut bytes: libc::c_int = 0;
    #[allow(unsafe_code)]
    // SAFETY: the kernel writes an `int` to the pointer, which lives through the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCOUTQNSD, &raw mut bytes) };
    if result == 0 { Ok(bytes.max(0) as u64) } else { Err(io::Error::last_os_error()) }
}

struct Carrier<'a> {
    state: &'a RelayState,
    model: &'a model::Relay,
    input: End<'a>,
    output: End<'a>,
    /// Bytes that are processed, with the times when that is done.
    waiting: VecDeque<(Nanos, u64)>,
    /// Bytes in all that may be written.
    due_bytes: u64,
    buffer: Vec<u8>,
}

impl Carrier<'_> {
    fn carry(&mut self, task: &Task, stop: &Stop) -> io::Result<()> {
        let mut has_ended = false;
        while !stop.is_raised() {
            let is_full = self.write(stop.clock().now())?;
            if has_ended && self.output.written_bytes() == self.input.delivered_bytes() {
                return self.output.socket.shutdown(Shutdown::Write);
            }
            let unsent = unsent_bytes(self.output.socket)?;
            let held = self.input.delivered_bytes() - self.output.written_bytes() + unsent;
            let room = self.model.buffer_bytes.saturating_sub(held);
            if room > 0 && !has_ended {
                let most = room.min(self.buffer.len() as u64) as usize;
                match self.input.read(&mut self.buffer[..most])? {
                    Read::Bytes(bytes) => {
                        self.take(bytes as u64, held, stop.clock().now());
                        task.look_for_completion(self.input, stop);
                        continue;
                    }
                    Read::Ended => {
                        ended(self.input)?;
                        has_ended = true;
                        continue;
                    }
                    Read::Nothing => {}
                }
            }
            let reads = (room > 0 && !has_ended).then(|| (self.input.socket.as_fd(), PollFlags::POLLIN));
            // The kernel says that it has room when half of what it may hold is sent.
            let waits_for_kernel = is_full || (room == 0 && 2 * unsent >= low_water(self.model));
            let writes = waits_for_kernel.then(|| (self.output.socket.as_fd(), PollFlags::POLLOUT));
            let next = self.waiting.front().map(|&(at, _)| at);
            stop.wait_for_any(reads.into_iter().chain(writes), next);
        }
        Ok(())
    }

    /// Writes what is due; whether the kernel did not take all of it.
    fn write(&mut self, now: Nanos) -> io::Result<bool> {
        while let Some(&(at, bytes)) = self.waiting.front() {
            if at > now {
                break;
            }
            self.due_bytes += bytes;
            self.waiting.pop_front();
        }
        loop {
            let left = self.due_bytes - self.output.written_bytes();
            if left == 0 {
                return Ok(false);
            }
            if self.output.write(left)? == 0 {
                return Ok(true);
            }
        }
    }

    fn take(&mut self, bytes: u64, held: u64, now: Nanos) {
        self.state.held_max.fetch_max(held + bytes, Ordering::AcqRel);
        self.waiting.push_back((now + self.model.delay, bytes));
    }
}
