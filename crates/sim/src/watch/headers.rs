//! Headers as they lie on the wire: IPv4 (RFC 791), IPv6 (RFC 8200), TCP (RFC 9293), UDP (RFC 768), with checksums.
//!
//! Payload is zeros. Left out: identification of IPv4 packets and flow labels of IPv6, which are 0 as with packets
//! that are never fragmented, and anything a router would change (the hop limit is that of the sender everywhere).

use std::net::{IpAddr, SocketAddr};

const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
const HOP_LIMIT: u8 = 64;
const DONT_FRAGMENT: u16 = 0x4000;

/// Control bits of TCP.
pub(super) mod control {
    pub(in crate::watch) const SYN: u8 = 0x02;
    pub(in crate::watch) const RST: u8 = 0x04;
    pub(in crate::watch) const PSH: u8 = 0x08;
    pub(in crate::watch) const ACK: u8 = 0x10;
    pub(in crate::watch) const ECE: u8 = 0x40;
    pub(in crate::watch) const CWR: u8 = 0x80;
}

/// What a TCP header says.
pub(super) struct Tcp<'a> {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    /// RFC 3168's two bits of the IP header.
    pub(super) ecn: u8,
    pub(super) seq: u32,
    pub(super) ack: u32,
    /// See [`control`].
    pub(super) control: u8,
    pub(super) window: u16,
    /// A multiple of four bytes.
    pub(super) options: &'a [u8],
    /// Length of the payload.
    pub(super) payload: u16,
}

impl Tcp<'_> {
    /// Appends the headers of IP and TCP; returns the length of the packet.
    pub(super) fn write(&self, to: &mut Vec<u8>) -> u32 {
        let header = 20 + self.options.len();
        let length = (header + usize::from(self.payload)).min(usize::from(u16::MAX)) as u16;
        let (ip, mut sum) = write_ip(to, (self.from.ip(), self.to.ip()), PROTOCOL_TCP, self.ecn, length);
        let begin = to.len();
        to.extend(self.from.port().to_be_bytes());
        to.extend(self.to.port().to_be_bytes());
        to.extend(self.seq.to_be_bytes());
        to.extend(self.ack.to_be_bytes());
        to.extend([((header / 4) << 4) as u8, self.control]);
        to.extend(self.window.to_be_bytes());
        to.extend([0; 4]);
        to.extend(self.options);
        sum += words(&to[begin..]);
        to[begin + 16..begin + 18].copy_from_slice(&folded(sum).to_be_bytes());
        ip + u32::from(length)
    }
}

/// Appends the headers of IP and UDP of a packet of `bytes` bytes, or of as many as the headers take; returns its
/// length.
pub(super) fn write_udp(to: &mut Vec<u8>, from: SocketAddr, dest: SocketAddr, bytes: u16) -> u32 {
    const HEADER: u16 = 8;
    let ip_header = if from.is_ipv4() { 20 } else { 40 };
    let length = bytes.saturating_sub(ip_header).max(HEADER);
    let (ip, mut sum) = write_ip(to, (from.ip(), dest.ip()), PROTOCOL_UDP, 0, length);
    let begin = to.len();
    to.extend(from.port().to_be_bytes());
    to.extend(dest.port().to_be_bytes());
    to.extend(length.to_be_bytes());
    to.extend([0; 2]);
    sum += words(&to[begin..]);
    // RFC 768: a sum of zero is sent as its other form, for zero says that there is none.
    let checksum = Some(folded(sum)).filter(|&sum| sum != 0).unwrap_or(u16::MAX);
    to[begin + 6..begin + 8].copy_from_slice(&checksum.to_be_bytes());
    ip + u32::from(length)
}

/// Appends an IP header before `length` bytes; returns its own length and the sum of the pseudo header.
fn write_ip(
    to: &mut Vec<u8>,
    (from, dest): (IpAddr, IpAddr),
    protocol: u8,
    ecn: u8,
    length: u16,
) -> (u32, u32) {
    let begin = to.len();
    let sum = match (from, dest) {
        (IpAddr::V4(from), IpAddr::V4(dest)) => {
            let total = length.saturating_add(20);
            to.extend([0x45, ecn]);
            to.extend(total.to_be_bytes());
            to.extend([0; 2]);
            to.extend(DONT_FRAGMENT.to_be_bytes());
            to.extend([HOP_LIMIT, protocol, 0, 0]);
            to.extend(from.octets());
            to.extend(dest.octets());
            let checksum = folded(words(&to[begin..]));
            to[begin + 10..begin + 12].copy_from_slice(&checksum.to_be_bytes());
            words(&from.octets()) + words(&dest.octets())
        }
        (IpAddr::V6(from), IpAddr::V6(dest)) => {
            to.extend([0x60, ecn << 4, 0, 0]);
            to.extend(length.to_be_bytes());
            to.extend([protocol, HOP_LIMIT]);
            to.extend(from.octets());
            to.extend(dest.octets());
            words(&from.octets()) + words(&dest.octets())
        }
        _ => unreachable!("both ends of a flow have the same version"),
    };
    ((to.len() - begin) as u32, sum + u32::from(protocol) + u32::from(length))
}

/// The sum of 16-bit words (RFC 1071), not folded.
fn words(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum()
}

/// The Internet checksum of a sum of words.
fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a receiver does: everything that is covered must sum to all ones.
    fn is_right(packet: &[u8], protocol: u8) -> bool {
        let (header, addresses) = if packet[0] >> 4 == 4 { (20, 12..20) } else { (40, 8..40) };
        let length = (packet.len() - header) as u32;
        let ip = header == 40 || folded(words(&packet[..header])) == 0;
        let pseudo = words(&packet[addresses]) + u32::from(protocol) + length;
        ip && folded(pseudo + words(&packet[header..])) == 0
    }

    #[test]
    fn rfc_1071_checksums_are_right() {
        for (from, to) in [("10.64.0.1:40000", "10.64.1.1:10001"), ("[fd00:ab::1]:9", "[fd00:ab::1:1]:65535")]
        {
            let (from, to): (SocketAddr, SocketAddr) = (from.parse().expect("one"), to.parse().expect("one"));
            let options = [1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 3];
            let tcp = Tcp {
                from,
                to,
                ecn: 2,
                seq: 9,
                ack: 1,
                control: 0x18,
                window: 5,
                options: &options,
                payload: 4,
            };
            let mut packet = Vec::new();
            let length = tcp.write(&mut packet);
            packet.resize(length as usize, 0);
            let ip = if from.is_ipv4() { 20 } else { 40 };
            assert_eq!(length, ip + 20 + 12 + 4);
            assert!(is_right(&packet, PROTOCOL_TCP));

            let mut packet = Vec::new();
            let length = write_udp(&mut packet, from, to, 1000);
            packet.resize(1000, 0);
            assert_eq!(length, 1000);
            assert!(is_right(&packet, PROTOCOL_UDP));
        }
    }

    #[test]
    fn a_datagram_is_not_shorter_than_its_headers() {
        let ends = ("10.0.0.1:1".parse().expect("one"), "10.0.0.2:1".parse().expect("one"));
        assert_eq!(write_udp(&mut Vec::new(), ends.0, ends.1, 12), 28);
    }
}
