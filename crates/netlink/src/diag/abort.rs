//! Ending a TCP socket of another process at once (`SOCK_DESTROY`, what `ss -K` does).

use std::net::IpAddr;

use super::{REQUEST, SocketDiag};
use crate::{NetlinkError, mptcp::SubflowAddress, wire::Question};

const SOCK_DESTROY: u16 = 21;
/// `INET_DIAG_NOCOOKIE`: whichever socket has these ends.
const ANY_COOKIE: [u8; 8] = [u8::MAX; 8];
const ESTABLISHED: u32 = 1 << 1;

impl SocketDiag {
    /// Resets a TCP socket: what it has not sent yet is not sent any more, and if it is a subflow, the data go over the others. To close
    /// a subflow by the path manager lets it send what it has first. Needs `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`]: `EOPNOTSUPP` if the kernel was built without `CONFIG_INET_DIAG_DESTROY`, `ENOENT` if there is no such
    /// socket; [`NetlinkError`].
    pub fn abort(&mut self, subflow: SubflowAddress, interface: u32) -> Result<(), NetlinkError> {
        let question = Question {
            what: format!("resetting {subflow}"),
            kind: SOCK_DESTROY,
            body: request(subflow, interface),
            attributes_at: REQUEST,
            words: |_| None,
        };
        self.socket.ask(&question).map(|_| ())
    }
}

/// An `inet_diag_req_v2` for one socket.
fn request(subflow: SubflowAddress, interface: u32) -> Vec<u8> {
    let SubflowAddress { local, remote } = subflow;
    let family = if local.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let mut bytes = vec![0; REQUEST];
    bytes[0] = family as u8;
    bytes[1] = libc::IPPROTO_TCP as u8;
    bytes[4..8].copy_from_slice(&ESTABLISHED.to_ne_bytes());
    bytes[8..10].copy_from_slice(&local.port().to_be_bytes());
    bytes[10..12].copy_from_slice(&remote.port().to_be_bytes());
    for (at, address) in [(12, local.ip()), (28, remote.ip())] {
        match address {
            IpAddr::V4(address) => bytes[at..at + 4].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => bytes[at..at + 16].copy_from_slice(&address.octets()),
        }
    }
    bytes[44..48].copy_from_slice(&interface.to_ne_bytes());
    bytes[48..56].copy_from_slice(&ANY_COOKIE);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_one_socket_as_inet_diag_req_v2_has_it() {
        let end = |text: &str| text.parse().expect("an end");
        let subflow = SubflowAddress { local: end("10.0.2.2:50011"), remote: end("192.0.2.7:443") };
        let bytes = request(subflow, 4);
        assert_eq!(bytes.len(), REQUEST);
        assert_eq!(bytes[..2], [2, 6]);
        assert_eq!(bytes[8..12], [0xc3, 0x5b, 1, 0xbb]);
        assert_eq!((&bytes[12..16], &bytes[28..32]), (&[10, 0, 2, 2][..], &[192, 0, 2, 7][..]));
        assert_eq!((&bytes[44..48], &bytes[48..]), (&4_u32.to_ne_bytes()[..], &[255; 8][..]));
    }
}
