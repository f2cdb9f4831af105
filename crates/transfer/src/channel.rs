//! One connection: bytes both ways over a socket that never blocks, with TLS or without.
//!
//! One thread has it. While it waits until it can send it also takes in what the other end says, so two ends that both have much to
//! say cannot wait for each other for ever. What is taken in that way is bounded by [`INBOX_BYTES`]; the frames that a well-behaved
//! peer sends unasked for are smaller.

use std::{
    io::{self, IoSlice, Read as _, Write as _},
    net::TcpStream,
    os::fd::{AsFd as _, BorrowedFd},
    time::{Duration, Instant},
};

use nix::{
    poll::{PollFd, PollFlags, ppoll},
    sys::time::TimeSpec,
};
use rustls::Connection;

use crate::{
    Stop, clock,
    security::{Fingerprint, peer_of},
    wire::{Frame, HEAD_BYTES, Head, Malformed},
};

/// What has come in and nobody has asked for yet, in bytes; a record of TLS may go beyond it.
const INBOX_BYTES: usize = 8 << 10;
/// Longest record of TLS, which is kept until it is whole (RFC 8446 section 5.2).
const RECORD_BYTES: usize = (16 << 10) + 256 + 5;
/// So much is held back at most, in bytes.
const HELD_BYTES: usize = 1 << 10;
/// How long nobody looks at the flag to stop.
const TICK: Duration = Duration::from_millis(200);

/// Why a connection is of no further use.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The other end has closed it.
    #[error("the peer has closed the connection")]
    Closed,
    /// Nothing has moved for so long.
    #[error("nothing has moved for {} s", .0.as_secs())]
    Silent(Duration),
    /// It has not come as far as it had to in its time.
    #[error("the peer has taken too long to say who it is")]
    Late,
    /// This end was told to stop.
    #[error("stopped")]
    Stopped,
    /// The system says so.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The other end is not who it should be, or somebody has changed what it said.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The other end speaks something else.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// What the other end says next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// A frame.
    Frame(Frame),
    /// A chunk with so many bytes of data; its payload is still to be read.
    Chunk(u32),
}

/// One connection.
pub(crate) struct Channel {
    socket: TcpStream,
    tls: Option<Box<Connection>>,
    /// Plaintext that has come in, from `read` on.
    inbox: Vec<u8>,
    read: usize,
    raw: Vec<u8>,
    /// Frames that go with what is sent next.
    held: Vec<u8>,
    is_at_end: bool,
    stop: Stop,
    patience: Duration,
    /// When all waiting ends, whether something moves or not.
    until: Option<Instant>,
}

impl Channel {
    /// Takes over a socket, and ends after `patience` without progress. Data is passed on in pieces of so many bytes.
    pub(crate) fn new(
        socket: TcpStream,
        tls: Option<Connection>,
        piece_bytes: usize,
        stop: Stop,
        patience: Duration,
    ) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let raw = if tls.is_some() { vec![0; piece_bytes] } else { Vec::new() };
        let tls = tls.map(Box::new);
        let (inbox, held, read, is_at_end, until) = (Vec::new(), Vec::new(), 0, false, None);
        Ok(Self { socket, tls, inbox, read, raw, held, is_at_end, stop, patience, until })
    }

    /// Sets when waiting ends in any case, or lifts that.
    pub(crate) fn set_deadline(&mut self, until: Option<Instant>) {
        self.until = until;
    }

    /// The socket, to ask the kernel of it.
    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// From now on another flag ends it.
    pub(crate) fn set_stop(&mut self, stop: Stop) {
        self.stop = stop;
    }

    /// Does TLS's handshake; without TLS nothing. Who the other end is, with TLS.
    pub(crate) fn handshake(&mut self) -> Result<Option<Fingerprint>, ChannelError> {
        while let Some(tls) = &self.tls {
            if tls.wants_write() {
                self.flush()?;
            } else if tls.is_handshaking() {
                self.wait_until(PollFlags::POLLIN, self.deadline())?;
                self.absorb()?;
                if self.is_at_end {
                    return Err(ChannelError::Closed);
                }
            } else {
                return Ok(peer_of(tls));
            }
        }
        Ok(None)
    }

    /// Sends all of each part, one after the other and after what was held, with as few calls as that takes.
    pub(crate) fn send_parts(&mut self, parts: [&[u8]; 3]) -> Result<(), ChannelError> {
        let held = std::mem::take(&mut self.held);
        let [a, b, c] = parts;
        let outcome = self.send_all(&mut [&held, a, b, c].map(IoSlice::new));
        self.held = held;
        self.held.clear();
        outcome
    }

    fn send_all(&mut self, mut parts: &mut [IoSlice<'_>]) -> Result<(), ChannelError> {
        // Without this an empty first part would look like a connection that is closed.
        IoSlice::advance_slices(&mut parts, 0);
        let mut deadline = self.deadline();
        while !parts.is_empty() {
            if let Some(tls) = &mut self.tls {
                let taken = tls.writer().write_vectored(parts)?;
                IoSlice::advance_slices(&mut parts, taken);
                self.flush()?;
                continue;
            }
            match self.socket.write_vectored(parts) {
                Ok(0) => return Err(ChannelError::Closed),
                Ok(sent) => {
                    IoSlice::advance_slices(&mut parts, sent);
                    deadline = self.deadline();
                }
                Err(error) => self.wait_to_send(error, deadline)?,
            }
        }
        Ok(())
    }

    /// Sends a frame.
    pub(crate) fn send_frame(&mut self, frame: &Frame) -> Result<(), ChannelError> {
        self.send_parts([&frame.encode(), &[], &[]])
    }

    /// Sends a frame with what is sent next, or with [`send_held`](Self::send_held).
    pub(crate) fn hold_frame(&mut self, frame: &Frame) -> Result<(), ChannelError> {
        let bytes = frame.encode();
        if self.held.len() + bytes.len() > HELD_BYTES {
            return self.send_parts([&bytes, &[], &[]]);
        }
        self.held.extend_from_slice(&bytes);
        Ok(())
    }

    /// Whether something is held.
    pub(crate) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Sends what was held.
    pub(crate) fn send_held(&mut self) -> Result<(), ChannelError> {
        if self.held.is_empty() { Ok(()) } else { self.send_parts([&[]; 3]) }
    }

    /// Sends what TLS has ready.
    fn flush(&mut self) -> Result<(), ChannelError> {
        let mut deadline = self.deadline();
        while let Some(tls) = self.tls.as_mut().filter(|tls| tls.wants_write()) {
            match tls.write_tls(&mut self.socket) {
                Ok(0) => return Err(ChannelError::Closed),
                Ok(_) => deadline = self.deadline(),
                Err(error) => self.wait_to_send(error, deadline)?,
            }
        }
        Ok(())
    }

    fn wait_to_send(&mut self, error: io::Error, deadline: Instant) -> Result<(), ChannelError> {
        match error.kind() {
            io::ErrorKind::Interrupted => return Ok(()),
            io::ErrorKind::WouldBlock => {}
            _ => return Err(error.into()),
        }
        let has_room = !self.is_at_end && self.inbox.len() - self.read < INBOX_BYTES;
        let wanted = if has_room { PollFlags::POLLOUT | PollFlags::POLLIN } else { PollFlags::POLLOUT };
        let ready = self.wait_until(wanted, deadline)?;
        if has_room && ready.contains(PollFlags::POLLIN) { self.absorb() } else { Ok(()) }
    }

    /// Reads at least one byte.
    pub(crate) fn receive_some(&mut self, buffer: &mut [u8]) -> Result<usize, ChannelError> {
        let deadline = self.deadline();
        loop {
            let waiting = &self.inbox[self.read..];
            if !waiting.is_empty() {
                let count = waiting.len().min(buffer.len());
                buffer[..count].copy_from_slice(&waiting[..count]);
                self.read += count;
                if self.read == self.inbox.len() {
                    self.inbox.clear();
                    self.read = 0;
                }
                return Ok(count);
            }
            if self.is_at_end {
                return Err(ChannelError::Closed);
            }
            // What is short comes with what follows it, so that a frame takes no call of its own.
            if self.tls.is_none() && buffer.len() >= INBOX_BYTES / 2 {
                match self.socket.read(buffer) {
                    Ok(0) => return Err(ChannelError::Closed),
                    Ok(count) => return Ok(count),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error.into()),
                }
                self.wait_until(PollFlags::POLLIN, deadline)?;
            } else {
                let before = self.inbox.len();
                self.absorb()?;
                if self.inbox.len() == before && !self.is_at_end {
                    self.wait_until(PollFlags::POLLIN, deadline)?;
                }
            }
        }
    }

    /// Fills the buffer.
    pub(crate) fn receive(&mut self, mut buffer: &mut [u8]) -> Result<(), ChannelError> {
        // Where data always is there, nothing is ever waited for.
        if self.stop.is_raised() {
            return Err(ChannelError::Stopped);
        }
        while !buffer.is_empty() {
            let count = self.receive_some(buffer)?;
            buffer = &mut buffer[count..];
        }
        Ok(())
    }

    /// Reads a frame, or the head of a chunk.
    pub(crate) fn receive_frame(&mut self) -> Result<Incoming, ChannelError> {
        let mut head = [0; HEAD_BYTES];
        self.receive(&mut head)?;
        match Head::decode(head)? {
            Head::Chunk { bytes } => Ok(Incoming::Chunk(bytes)),
            Head::Whole { kind, length } => {
                let mut payload = vec![0; length];
                self.receive(&mut payload)?;
                Ok(Incoming::Frame(Frame::decode(kind, &payload)?))
            }
        }
    }

    /// Whether bytes have come, or the end of the connection, after waiting so long at most, or until there is an event. It reads
    /// none of them.
    pub(crate) fn has_more(
        &mut self,
        wait: Duration,
        event: Option<BorrowedFd<'_>>,
    ) -> Result<bool, ChannelError> {
        if self.read < self.inbox.len() || self.is_at_end {
            return Ok(true);
        }
        match self.wait_for(PollFlags::POLLIN, event, clock::now() + wait) {
            Err(ChannelError::Silent(_) | ChannelError::Late) => Ok(false),
            outcome => outcome.map(|found| !found.is_empty()),
        }
    }

    /// Whether something can be read after waiting so long at most. The end of the connection can be, too.
    pub(crate) fn is_readable(&mut self, wait: Duration) -> Result<bool, ChannelError> {
        let until = clock::now() + wait;
        loop {
            if self.read < self.inbox.len() || self.is_at_end {
                return Ok(true);
            }
            self.absorb()?;
            if self.read < self.inbox.len() || self.is_at_end {
                return Ok(true);
            }
            if wait.is_zero() {
                return if self.stop.is_raised() { Err(ChannelError::Stopped) } else { Ok(false) };
            }
            match self.wait_until(PollFlags::POLLIN, until) {
                Err(ChannelError::Silent(_) | ChannelError::Late) => return Ok(false),
                outcome => outcome?,
            };
        }
    }

    /// Says to the other end that nothing more comes, if it still listens.
    pub(crate) fn close(mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            // Best effort: the other end may have gone already, and everything that counts has been said.
            let _ = tls.write_tls(&mut self.socket);
        }
    }

    fn deadline(&self) -> Instant {
        let end = clock::now() + self.patience;
        self.until.map_or(end, |until| until.min(end))
    }

    /// Waits for one of the events, or an error of the socket, which the next call will tell.
    fn wait_until(&self, wanted: PollFlags, deadline: Instant) -> Result<PollFlags, ChannelError> {
        self.wait_for(wanted, None, deadline)
    }

    /// As [`wait_until`](Self::wait_until), or until `event` can be read: then nothing may have happened at the socket.
    fn wait_for(
        &self,
        wanted: PollFlags,
        event: Option<BorrowedFd<'_>>,
        deadline: Instant,
    ) -> Result<PollFlags, ChannelError> {
        loop {
            if self.stop.is_raised() {
                return Err(ChannelError::Stopped);
            }
            let left = deadline.saturating_duration_since(clock::now());
            // To the nanosecond: in milliseconds, the last one would be spent asking again and again.
            let tick = TimeSpec::from_duration(left.min(TICK));
            let socket = PollFd::new(self.socket.as_fd(), wanted);
            let mut fds = [socket, PollFd::new(event.unwrap_or(self.socket.as_fd()), PollFlags::POLLIN)];
            let count = 1 + usize::from(event.is_some());
            match ppoll(&mut fds[..count], Some(tick), None) {
                Ok(0) if left.is_zero() => {
                    let is_late = self.until.is_some_and(|until| until <= deadline);
                    return Err(if is_late {
                        ChannelError::Late
                    } else {
                        ChannelError::Silent(self.patience)
                    });
                }
                Ok(0) | Err(nix::errno::Errno::EINTR) => {}
                Ok(_) => return Ok(fds[0].revents().unwrap_or(PollFlags::empty())),
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    }

    /// Takes in what is there, once, without waiting.
    fn absorb(&mut self) -> Result<(), ChannelError> {
        let Some(tls) = &mut self.tls else {
            let before = self.inbox.len();
            self.inbox.resize(before + INBOX_BYTES / 2, 0);
            let outcome = self.socket.read(&mut self.inbox[before..]);
            self.inbox.truncate(before + *outcome.as_ref().unwrap_or(&0));
            return self.note_end(outcome).map(drop);
        };
        let outcome = self.socket.read(&mut self.raw);
        // What has been sealed and not sent goes first; `raw` is this connection's, `tls` is used in between.
        let count = match outcome {
            Ok(count) => count,
            Err(error) => return self.note_end(Err(error)).map(drop),
        };
        let mut sealed = &self.raw[..count];
        self.is_at_end |= count == 0;
        while !sealed.is_empty() {
            tls.read_tls(&mut sealed)?;
            let state = match tls.process_new_packets() {
                Ok(state) => state,
                Err(error) => {
                    // The alert that says so; whether it arrives makes no difference here.
                    let _ = tls.write_tls(&mut self.socket);
                    return Err(error.into());
                }
            };
            let before = self.inbox.len();
            self.inbox.resize(before + state.plaintext_bytes_to_read(), 0);
            tls.reader().read_exact(&mut self.inbox[before..])?;
            self.is_at_end |= state.peer_has_closed();
        }
        Ok(())
    }

    /// What a read has given: at the end of the connection 0, and 0 too if there was nothing yet.
    fn note_end(&mut self, outcome: io::Result<usize>) -> Result<usize, ChannelError> {
        match outcome {
            Ok(count) => {
                self.is_at_end |= count == 0;
                Ok(count)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(0)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// What a connection takes at most, in bytes, beside the buffers of its socket: the piece in hand, the inbox, what is held, and for TLS what has been read
/// and not opened, what has been sealed and not sent, and a record that is not whole.
pub(crate) const fn own_bytes(has_tls: bool, piece_bytes: usize) -> usize {
    let plain = piece_bytes + INBOX_BYTES + INBOX_BYTES / 2 + HELD_BYTES;
    if has_tls { plain + 2 * piece_bytes + RECORD_BYTES } else { plain }
}
