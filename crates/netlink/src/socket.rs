//! Sockets of netlink: requests and their answers, and datagrams of multicast groups.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
};

use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP};
use netlink_sys::SocketAddr;

use crate::{
    NetlinkError,
    wire::{Answer, Body, Ending, Question},
};

/// As much as the kernel puts into one datagram of a list; events are a few hundred bytes long.
const DATAGRAM: usize = 1 << 15;

/// How often a list that changes while it is made is asked for.
const ATTEMPTS: usize = 5;

/// A socket with its buffer.
pub(crate) struct Socket {
    socket: netlink_sys::Socket,
    buffer: Vec<u8>,
    sequence: u32,
}

impl Socket {
    pub(crate) fn open(protocol: isize) -> Result<Self, NetlinkError> {
        let open = || {
            let mut socket = netlink_sys::Socket::new(protocol)?;
            socket.bind_auto()?;
            Ok(socket)
        };
        let socket = open().map_err(NetlinkError::system("opening a netlink socket"))?;
        // Kernels before 4.12 and 4.3 lack them: errors are then without words, and come with the whole request.
        let _ = socket.set_ext_ack(true);
        let _ = socket.set_cap_ack(true);
        Ok(Self { socket, buffer: Vec::with_capacity(DATAGRAM), sequence: 0 })
    }

    pub(crate) fn join(&self, group: u32) -> io::Result<()> {
        self.socket.add_membership(group)
    }

    pub(crate) fn set_non_blocking(&self) -> io::Result<()> {
        self.socket.set_non_blocking(true)
    }

    pub(crate) fn set_receive_buffer(&self, bytes: u32) -> io::Result<()> {
        self.socket.set_rx_buf_sz(bytes)
    }

    /// Asks for something to be done, or for one thing.
    pub(crate) fn ask(&mut self, question: &Question) -> Result<Vec<Body>, NetlinkError> {
        match self.converse(question, NLM_F_ACK)? {
            Some(bodies) => Ok(bodies),
            None => Err(NetlinkError::Unsteady { request: question.what.clone(), attempts: 1 }),
        }
    }

    /// Asks for a list, again if it changed meanwhile.
    pub(crate) fn list(&mut self, question: &Question) -> Result<Vec<Body>, NetlinkError> {
        for _ in 0..ATTEMPTS {
            if let Some(bodies) = self.converse(question, NLM_F_DUMP)? {
                return Ok(bodies);
            }
        }
        Err(NetlinkError::Unsteady { request: question.what.clone(), attempts: ATTEMPTS })
    }

    /// The answer, or none if it changed while it was made.
    fn converse(&mut self, question: &Question, flags: u16) -> Result<Option<Vec<Body>>, NetlinkError> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = question.emit(flags, self.sequence);
        let system = |error| NetlinkError::system(question.what.clone())(error);
        self.socket.send_to(&request, &SocketAddr::new(0, 0), 0).map_err(system)?;
        let mut answer = Answer::new(self.sequence);
        loop {
            let datagram = self.receive().map_err(system)?;
            let ending = answer
                .take(datagram)
                .map_err(|source| NetlinkError::Malformed { request: question.what.clone(), source })?;
            match ending {
                None => {}
                Some(Ending::Whole(bodies)) => return Ok(Some(bodies)),
                Some(Ending::Unsteady) => return Ok(None),
                Some(Ending::Refused(said)) => {
                    let refusal = said.refusal(question);
                    return Err(NetlinkError::Refused { request: question.what.clone(), refusal });
                }
            }
        }
    }

    /// The next datagram from the kernel. One that did not fit is an error, `ENOBUFS` as if the kernel had dropped it; the next
    /// one of its length fits.
    pub(crate) fn receive(&mut self) -> io::Result<&[u8]> {
        loop {
            self.buffer.clear();
            let (length, sender) = match self.socket.recv_from(&mut self.buffer, libc::MSG_TRUNC) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => result?,
            };
            if sender.port_number() != 0 {
                // Another process may write to this socket; only the kernel is believed.
                continue;
            }
            if length > self.buffer.len() {
                self.buffer.clear();
                self.buffer.reserve(length);
                return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
            }
            return Ok(&self.buffer);
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
