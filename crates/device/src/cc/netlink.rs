//! Netlink sockets: a request, and the messages of its answer (RFC 3549, netlink(7)).

use std::{
    io,
    os::fd::{AsRawFd as _, OwnedFd},
};

use nix::sys::socket::{self, AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType};

const HEADER: usize = 16;
/// More than the 32 kB that the kernel puts into one datagram.
const DATAGRAM: usize = 1 << 17;

/// A netlink socket of the namespace that its thread was in when it was opened.
pub(super) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

/// A message of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) kind: u16,
    pub(super) body: Vec<u8>,
}

impl Netlink {
    pub(super) fn open(protocol: SockProtocol) -> io::Result<Self> {
        let socket = socket::socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Sends a request and returns the messages of its answer. `flags` contain `NLM_F_DUMP` or `NLM_F_ACK`, so that the
    /// answer has an end.
    pub(super) fn ask(&mut self, kind: u16, flags: i32, body: &[u8]) -> io::Result<Vec<Message>> {
        self.sequence += 1;
        let mut request = Vec::with_capacity(HEADER + body.len());
        request.extend(((HEADER + body.len()) as u32).to_ne_bytes());
        request.extend(kind.to_ne_bytes());
        request.extend(((libc::NLM_F_REQUEST | flags) as u16).to_ne_bytes());
        request.extend(self.sequence.to_ne_bytes());
        request.extend(0u32.to_ne_bytes());
        request.extend(body);
        socket::send(self.socket.as_raw_fd(), &request, MsgFlags::empty())?;
        let mut answer = Vec::new();
        let mut datagram = vec![0; DATAGRAM];
        loop {
            let length = socket::recv(self.socket.as_raw_fd(), &mut datagram, MsgFlags::empty())?;
            if read(&datagram[..length], self.sequence, &mut answer)? {
                return Ok(answer);
            }
        }
    }
}

/// Takes the messages out of a datagram; whether the answer has ended.
fn read(mut rest: &[u8], sequence: u32, answer: &mut Vec<Message>) -> io::Result<bool> {
    while let Some(length) = u32_at(rest, 0) {
        let length = length as usize;
        let (Some(kind), Some(number), Some(body)) =
            (u16_at(rest, 4), u32_at(rest, 8), rest.get(HEADER..length))
        else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        if number != sequence {
            continue;
        }
        match i32::from(kind) {
            libc::NLMSG_ERROR | libc::NLMSG_DONE => {
                let error = u32_at(body, 0).unwrap_or(0) as i32;
                return if error < 0 { Err(io::Error::from_raw_os_error(-error)) } else { Ok(true) };
            }
            _ => answer.push(Message { kind, body: body.to_vec() }),
        }
    }
    Ok(false)
}

/// The attributes in `bytes`; a malformed one ends them.
pub(super) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(rest, 0)?);
        let kind = u16_at(rest, 2)? & libc::NLA_TYPE_MASK as u16;
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// Appends an attribute.
pub(super) fn push_attribute(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    bytes.extend((4 + value.len() as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The text of a string attribute, which a zero ends.
pub(super) fn text(value: &[u8]) -> &str {
    let end = value.iter().position(|&byte| byte == 0).unwrap_or(value.len());
    std::str::from_utf8(&value[..end]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 2]);
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn an_answer_is_what_has_its_number_up_to_the_end() {
        let done = libc::NLMSG_DONE as u16;
        let bytes = [message(20, 7, b"other"), message(20, 8, b"mine"), message(done, 8, &[0; 4])].concat();
        let mut answer = Vec::new();
        assert!(read(&bytes, 8, &mut answer).unwrap());
        assert_eq!(answer, [Message { kind: 20, body: b"mine".to_vec() }]);
        assert!(!read(&message(20, 8, b"more"), 8, &mut answer).unwrap());
    }

    #[test]
    fn an_error_is_the_systems() {
        let refused = message(libc::NLMSG_ERROR as u16, 1, &(-libc::EPERM).to_ne_bytes());
        let error = read(&refused, 1, &mut Vec::new()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    }

    #[test]
    fn attributes_are_read_as_they_are_written_and_a_cut_one_ends_them() {
        let mut bytes = Vec::new();
        push_attribute(&mut bytes, 4, b"cubic\0");
        push_attribute(&mut bytes, 5, b"");
        let pairs = [(4, &b"cubic\0"[..]), (5, &b""[..])];
        assert_eq!(attributes(&bytes).collect::<Vec<_>>(), pairs);
        assert_eq!(attributes(&bytes[..bytes.len() - 1]).collect::<Vec<_>>(), pairs[..1]);
        assert_eq!(text(pairs[0].1), "cubic");
    }

    #[test]
    fn a_length_that_lies_is_an_error() {
        for length in [0u32, 3, 15, 400] {
            let mut bytes = message(20, 1, b"body");
            bytes[..4].copy_from_slice(&length.to_ne_bytes());
            assert!(read(&bytes, 1, &mut Vec::new()).is_err(), "{length}");
        }
    }
}
