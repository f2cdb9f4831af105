//! Events: what the kernel tells unasked.

use std::{
    collections::VecDeque,
    io,
    os::fd::{AsFd, BorrowedFd},
    time::Duration,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::{
    NetlinkError,
    socket::Socket,
    wire::{Message, messages},
};

/// How many datagrams are thrown away at most when some are lost.
const DISCARDED: usize = 1 << 14;

/// What a multicast group tells.
pub trait Notification: Sized {
    /// Says that events were lost.
    const LOST: Self;
    /// Says that an event of the group cannot be read.
    const UNREADABLE: Self;

    /// From a message of the group. Never panics, whatever the message.
    fn read(message: &Message<'_>) -> Self;
}

/// Hears the events of a network namespace.
///
/// # When events are lost
/// The kernel drops events that the socket has no room for, and says so (`ENOBUFS`, netlink(7)). The listener then throws away
/// what still lies in the socket, all of it older than the gap, and gives [`Notification::LOST`]: whoever hears that asks for
/// the state anew, and no event from before can contradict it.
pub struct Listener<E> {
    socket: Socket,
    pending: VecDeque<E>,
}

impl<E: Notification> Listener<E> {
    pub(crate) fn new(socket: Socket) -> Result<Self, NetlinkError> {
        socket.set_non_blocking().map_err(NetlinkError::system("opening a socket for events"))?;
        Ok(Self { socket, pending: VecDeque::new() })
    }

    /// How much the kernel may queue, in bytes of its own bookkeeping: `SO_RCVBUF`, which it doubles, and which
    /// `net.core.rmem_max` limits. Without it, `net.core.rmem_default` holds: a few hundred events.
    ///
    /// # Errors
    /// [`NetlinkError::System`].
    pub fn set_receive_buffer(&self, bytes: u32) -> Result<(), NetlinkError> {
        self.socket.set_receive_buffer(bytes).map_err(NetlinkError::system("setting a receive buffer"))
    }

    /// The next event if there is one; does not wait.
    ///
    /// # Errors
    /// [`NetlinkError::System`].
    // Not an iterator: one that has ended goes on later.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<E>, NetlinkError> {
        while self.pending.is_empty() {
            match self.socket.receive() {
                Ok(datagram) => self.pending.extend(messages(datagram).map(|message| match message {
                    Ok(message) => E::read(&message),
                    Err(_) => E::UNREADABLE,
                })),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    self.discard()?;
                    return Ok(Some(E::LOST));
                }
                Err(error) => return Err(NetlinkError::system("reading events")(error)),
            }
        }
        Ok(self.pending.pop_front())
    }

    /// The next event; waits for it at most that long, with the precision of milliseconds, and none if a signal ends the wait.
    ///
    /// # Errors
    /// [`NetlinkError::System`].
    pub fn wait(&mut self, at_most: Duration) -> Result<Option<E>, NetlinkError> {
        if let Some(event) = self.next()? {
            return Ok(Some(event));
        }
        let timeout = PollTimeout::try_from(at_most).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => self.next(),
            Err(error) => Err(NetlinkError::system("waiting for events")(error.into())),
        }
    }

    fn discard(&mut self) -> Result<(), NetlinkError> {
        for _ in 0..DISCARDED {
            match self.socket.receive() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.raw_os_error() != Some(libc::ENOBUFS) => {
                    return Err(NetlinkError::system("reading events")(error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl<E> AsFd for Listener<E> {
    /// Readable when there may be an event, after [`Listener::next`] has said that there is none.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
