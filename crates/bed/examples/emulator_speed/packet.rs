//! AF_PACKET sockets (packet(7)) with recvmmsg(2) and sendmmsg(2).
#![allow(unsafe_code, reason = "no library wraps all of these calls; each block says why it is sound")]

use std::{
    io,
    mem::zeroed,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
    ptr::null_mut,
};

use crate::path::{BATCH, Buffer, Port};

/// An AF_PACKET socket on one device.
pub(crate) struct Packet(OwnedFd);

/// The result of a call that returns -1 for an error.
pub(crate) fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Sets a socket option.
pub(crate) fn set<T>(socket: &OwnedFd, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value lives through the call, and its size is given.
    checked(unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const *value).cast(), size)
    })?;
    Ok(())
}

impl Packet {
    /// A socket on a device of the calling thread's namespace.
    pub(crate) fn new(device: &str) -> io::Result<Self> {
        let protocol = (libc::ETH_P_ALL as u16).to_be();
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers are involved.
        let raw = checked(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
        // SAFETY: the descriptor is fresh and belongs to nobody else.
        let socket = unsafe { OwnedFd::from_raw_fd(raw) };
        set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &(32 << 20))?;
        set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1)?;
        set(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1)?;
        // SAFETY: an address of zeroes is valid.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = protocol;
        address.sll_ifindex = nix::net::if_::if_nametoindex(device)? as i32;
        let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address lives through the call, and its size is given.
        checked(unsafe { libc::bind(raw, (&raw const address).cast(), size) })?;
        Ok(Self(socket))
    }
}

/// Message headers for the buffers, whose lengths are given.
fn headers(
    parts: &mut [libc::iovec; BATCH],
    buffers: impl Iterator<Item = (*mut u8, usize)>,
) -> ([libc::mmsghdr; BATCH], u32) {
    // SAFETY: headers of zeroes are valid and name no memory.
    let mut messages: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
    let mut count = 0;
    for ((message, part), (base, length)) in messages.iter_mut().zip(parts).zip(buffers) {
        *part = libc::iovec { iov_base: base.cast(), iov_len: length };
        message.msg_hdr.msg_iov = part;
        message.msg_hdr.msg_iovlen = 1;
        count += 1;
    }
    (messages, count)
}

const NO_PARTS: [libc::iovec; BATCH] = [libc::iovec { iov_base: null_mut(), iov_len: 0 }; BATCH];

impl Port for Packet {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn receive(&mut self, buffers: &mut [Buffer]) -> io::Result<usize> {
        let mut parts = NO_PARTS;
        let room = buffers.iter_mut().map(|buffer| (buffer.bytes.as_mut_ptr(), buffer.bytes.len()));
        let (mut messages, count) = headers(&mut parts, room);
        // SAFETY: every header names a part, every part a whole buffer; all live through the call.
        let result =
            unsafe { libc::recvmmsg(self.0.as_raw_fd(), messages.as_mut_ptr(), count, 0, null_mut()) };
        match checked(result) {
            Ok(received) => {
                for (buffer, message) in buffers.iter_mut().zip(&messages[..received as usize]) {
                    buffer.length = message.msg_len as usize;
                }
                Ok(received as usize)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error),
        }
    }

    fn send(&mut self, packets: &[Buffer]) -> io::Result<()> {
        let mut sent = 0;
        while sent < packets.len() {
            let mut parts = NO_PARTS;
            let rest = packets[sent..].iter().map(|packet| (packet.bytes.as_ptr().cast_mut(), packet.length));
            let (mut messages, count) = headers(&mut parts, rest);
            // SAFETY: as above; the kernel only reads what the parts name.
            let result = unsafe { libc::sendmmsg(self.0.as_raw_fd(), messages.as_mut_ptr(), count, 0) };
            match checked(result) {
                Ok(more) => sent += more as usize,
                // A full device drops the packet.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => sent += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
