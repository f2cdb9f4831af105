//! One way of a connection: writing what is due and reading to the end, every byte checked.

use std::{
    io::{self, ErrorKind, Read as _},
    os::fd::AsFd as _,
    sync::atomic::Ordering,
};

use anabranch_draw::{Departures, Rng};
use anabranch_scenario::model;
use nix::poll::PollFlags;
use socket2::Socket;

use super::{
    clock::{Stop, Wake},
    pattern,
    state::ConnectionState,
};
use crate::Nanos;

/// One end of a connection at work.
#[derive(Clone, Copy)]
pub(super) struct End<'a> {
    pub(super) connection: &'a ConnectionState,
    pub(super) socket: &'a Socket,
    /// The way on which it sends; it receives on the other.
    sends: usize,
}

/// What a reader has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// So many bytes, which are counted.
    Bytes(usize),
    /// Nothing yet.
    Nothing,
    /// The other end sends no more.
    Ended,
}

impl<'a> End<'a> {
    pub(super) fn opener(connection: &'a ConnectionState) -> Self {
        Self { connection, socket: &connection.client, sends: 0 }
    }

    pub(super) fn acceptor(connection: &'a ConnectionState, socket: &'a Socket) -> Self {
        Self { connection, socket, sends: 1 }
    }

    pub(super) fn is_opener(self) -> bool {
        self.sends == 0
    }

    /// As the other end counts: its bytes delivered are those of this end written.
    pub(super) fn other_way(self) -> Self {
        Self { sends: 1 - self.sends, ..self }
    }

    /// Bytes that the kernel has taken from this end.
    pub(super) fn written_bytes(self) -> u64 {
        self.connection.ways[self.sends].written.load(Ordering::SeqCst)
    }

    /// Bytes that this end has got.
    pub(super) fn delivered_bytes(self) -> u64 {
        self.connection.ways[1 - self.sends].delivered.load(Ordering::SeqCst)
    }

    /// Gives the kernel as much of the next `bytes` as it takes at once; 0 if it takes none now.
    pub(super) fn write(self, bytes: u64) -> io::Result<usize> {
        let written = self.written_bytes();
        let length = bytes.min(pattern::LONGEST as u64) as usize;
        match self.socket.send(pattern::piece(written, length)) {
            Ok(taken) => {
                let count = &self.connection.ways[self.sends].written;
                count.store(written + taken as u64, Ordering::SeqCst);
                Ok(taken)
            }
            Err(error) if passes(&error) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Takes what has come and checks it.
    pub(super) fn read(self, buffer: &mut [u8]) -> io::Result<Read> {
        let delivered = self.delivered_bytes();
        match (&mut &*self.socket).read(buffer) {
            Ok(0) => Ok(Read::Ended),
            Ok(bytes) => {
                pattern::check(delivered, &buffer[..bytes])
                    .map_err(|wrong| io::Error::new(ErrorKind::InvalidData, wrong.to_string()))?;
                let count = &self.connection.ways[1 - self.sends].delivered;
                count.store(delivered + bytes as u64, Ordering::SeqCst);
                Ok(Read::Bytes(bytes))
            }
            Err(error) if passes(&error) => Ok(Read::Nothing),
            Err(error) => Err(error),
        }
    }
}

/// Whether it is no error but a sign to wait or to try again.
pub(super) fn passes(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// An application that writes now and then.
#[derive(Clone, Debug)]
pub(super) struct Source {
    model: model::Source,
    end: Nanos,
    rng: Rng,
}

impl Source {
    /// `end` is when it stops.
    pub(super) fn new(model: model::Source, end: Nanos, rng: Rng) -> Self {
        Self { model, end, rng }
    }
}

/// Writes until there is no more to write: [`Wake::Due`], or the applications are to end: [`Wake::Stopped`].
pub(super) fn write(
    end: End<'_>,
    file_bytes: Option<u64>,
    stop_at: Option<Nanos>,
    stop: &Stop,
) -> io::Result<Wake> {
    loop {
        let left = file_bytes.map_or(u64::MAX, |bytes| bytes - end.written_bytes());
        if left == 0 || stop_at.is_some_and(|time| stop.clock().now() >= time) {
            return Ok(Wake::Due);
        }
        if stop.is_raised() {
            return Ok(Wake::Stopped);
        }
        if end.write(left)? == 0 {
            stop.wait_for(end.socket.as_fd(), PollFlags::POLLOUT, stop_at);
        }
    }
}

/// Writes when the source is due, as soon as the kernel takes it; otherwise as [`write`].
pub(super) fn write_now_and_then(end: End<'_>, source: &Source, stop: &Stop) -> io::Result<Wake> {
    let Source { model, end: until, rng } = source;
    let interval = [(stop.clock().now(), *until)];
    let mut due_bytes = 0;
    for due in Departures::new(interval, model.gap(), model.pattern, || rng.clone()) {
        if stop.wait_until(due) == Wake::Stopped {
            return Ok(Wake::Stopped);
        }
        due_bytes += u64::from(model.write_bytes);
        if write_up_to(end, due_bytes, stop)? == Wake::Stopped {
            return Ok(Wake::Stopped);
        }
    }
    Ok(Wake::Due)
}

/// Writes until `bytes` in all are written, or the applications are to end.
pub(super) fn write_up_to(end: End<'_>, bytes: u64, stop: &Stop) -> io::Result<Wake> {
    loop {
        let left = bytes - end.written_bytes();
        if left == 0 {
            return Ok(Wake::Due);
        }
        if stop.is_raised() {
            return Ok(Wake::Stopped);
        }
        if end.write(left)? == 0 {
            stop.wait_for(end.socket.as_fd(), PollFlags::POLLOUT, None);
        }
    }
}

/// Reads until the other end has ended or the applications are to; `after` is called after each read.
pub(super) fn read_all(
    end: End<'_>,
    stop: &Stop,
    mut after: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    let mut buffer = vec![0; 2 * pattern::LONGEST];
    while !stop.is_raised() {
        match end.read(&mut buffer)? {
            Read::Bytes(_) => after()?,
            Read::Nothing => {
                stop.wait_for(end.socket.as_fd(), PollFlags::POLLIN, None);
            }
            Read::Ended => return ended(end),
        }
    }
    Ok(())
}

/// The other end has ended: nothing of what it wrote may be missing.
pub(super) fn ended(end: End<'_>) -> io::Result<()> {
    let written = end.other_way().written_bytes();
    if end.delivered_bytes() == written {
        return Ok(());
    }
    let text = format!("the connection has ended, but {written} bytes were written");
    Err(io::Error::new(ErrorKind::UnexpectedEof, text))
}
