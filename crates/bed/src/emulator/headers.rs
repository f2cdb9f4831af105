//! As much of the headers as tells a packet's route and flow, and the mark of congestion in them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Source and destination of an IPv4 (RFC 791 section 3.1) or IPv6 (RFC 8200 section 3) packet; `None` if it
/// is neither or too short.
pub(crate) fn addresses(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    match packet.first()? >> 4 {
        4 => Some((ipv4(packet.get(12..16)?)?, ipv4(packet.get(16..20)?)?)),
        6 => Some((ipv6(packet.get(8..24)?)?, ipv6(packet.get(24..40)?)?)),
        _ => None,
    }
}

/// What links ask of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Headers {
    /// A fixed hash of addresses, protocol and ports.
    pub(crate) flow: u64,
    /// ECT(0), ECT(1) or CE (RFC 3168 section 5).
    pub(crate) ecn_capable: bool,
}

const TCP: u8 = 6;
const UDP: u8 = 17;

impl Headers {
    /// Of a packet that has [`addresses`]. Fragments but the first, and packets with IPv6 extension headers, have
    /// no ports.
    pub(crate) fn of(packet: &[u8]) -> Self {
        let is_v6 = packet[0] >> 4 == 6;
        let (traffic_class, protocol, first, addresses) = if is_v6 {
            (packet[0] << 4 | packet[1] >> 4, packet[6], true, &packet[8..40])
        } else {
            let offset = u16::from_be_bytes([packet[6], packet[7]]) & 0x1fff;
            (packet[1], packet[9], offset == 0, &packet[12..20])
        };
        let length = if is_v6 { 40 } else { usize::from(packet[0] & 0x0f) * 4 };
        let has_ports = first && (protocol == TCP || protocol == UDP);
        let ports = packet.get(length..length + 4).filter(|_| has_ports).unwrap_or(&[]);
        let bytes = addresses.iter().chain([&protocol]).chain(ports);
        // FNV-1a.
        let flow = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self { flow, ecn_capable: traffic_class & 3 != 0 }
    }
}

/// Sets "congestion experienced" in a packet (RFC 3168 section 5), and puts the checksum of an IPv4 header right by
/// the difference (RFC 1624 equation 3).
pub(crate) fn mark(packet: &mut [u8]) {
    if packet[0] >> 4 == 6 {
        packet[1] |= 3 << 4;
        return;
    }
    let old = u16::from_be_bytes([packet[0], packet[1]]);
    packet[1] |= 3;
    let new = u16::from_be_bytes([packet[0], packet[1]]);
    let checksum = u16::from_be_bytes([packet[10], packet[11]]);
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

fn ipv4(bytes: &[u8]) -> Option<IpAddr> {
    Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into())
}

fn ipv6(bytes: &[u8]) -> Option<IpAddr> {
    Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_and_destination_lie_where_the_rfcs_say() {
        let mut v4 = [0; 20];
        (v4[0], v4[15], v4[19]) = (0x45, 1, 2);
        let expected = (Ipv4Addr::new(0, 0, 0, 1).into(), Ipv4Addr::new(0, 0, 0, 2).into());
        assert_eq!(addresses(&v4), Some(expected));
        let mut v6 = [0; 40];
        (v6[0], v6[23], v6[39]) = (0x60, 1, 2);
        assert_eq!(addresses(&v6), Some((Ipv6Addr::from(1).into(), Ipv6Addr::from(2).into())));
    }

    #[test]
    fn what_is_short_or_of_another_version_has_no_addresses() {
        assert_eq!(addresses(&[]), None);
        assert_eq!(addresses(&[0x45; 19]), None);
        assert_eq!(addresses(&[0x60; 39]), None);
        assert_eq!(addresses(&[0x50; 60]), None);
    }

    /// An IPv4 packet of TCP without options, its checksum right.
    fn v4(traffic_class: u8, last_octet: u8, port: u8) -> Vec<u8> {
        let mut packet =
            vec![0x45, traffic_class, 0, 40, 0, 0, 0x40, 0, 64, TCP, 0, 0, 10, 0, 0, 1, 10, 0, 0, last_octet];
        let sum = checksum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend([0, port, 0, 80]);
        packet.resize(40, 0);
        packet
    }

    /// RFC 1071, over the 20 bytes of a header whose own field counts as 0.
    fn checksum(packet: &[u8]) -> u16 {
        let words = packet[..20].chunks(2).enumerate().filter(|&(at, _)| at != 5);
        let mut sum: u32 = words.map(|(_, word)| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn a_mark_sets_both_bits_and_leaves_the_checksum_right() {
        for traffic_class in 0..=255 {
            let mut packet = v4(traffic_class, 2, 9);
            assert_eq!(Headers::of(&packet).ecn_capable, traffic_class & 3 != 0);
            mark(&mut packet);
            assert_eq!(packet[1], traffic_class | 3);
            assert_eq!(packet[10..12], checksum(&packet).to_be_bytes(), "traffic class {traffic_class}");
        }
        let mut v6 = vec![0; 40];
        (v6[0], v6[1]) = (0x6a, 0x85);
        assert!(!Headers::of(&v6).ecn_capable, "the traffic class is 0xa8");
        (v6[0], v6[1]) = (0x6a, 0xa5);
        assert!(Headers::of(&v6).ecn_capable, "the traffic class is 0xaa");
        mark(&mut v6);
        assert_eq!((v6[0], v6[1]), (0x6a, 0xb5), "version and flow label stay");
    }

    #[test]
    fn addresses_protocol_and_ports_make_a_flow_and_nothing_else_does() {
        let flow = |packet: &[u8]| Headers::of(packet).flow;
        let one = v4(0, 2, 9);
        assert_ne!(flow(&one), flow(&v4(0, 3, 9)));
        assert_ne!(flow(&one), flow(&v4(0, 2, 8)));
        assert_eq!(flow(&one), flow(&v4(2, 2, 9)));
        let mut longer = one.clone();
        longer.extend([1; 100]);
        assert_eq!(flow(&one), flow(&longer));
        let mut fragment = one.clone();
        fragment[7] = 7;
        assert_eq!(
            flow(&fragment),
            flow(&[&fragment[..20], &[1; 20][..]].concat()),
            "its first bytes are no ports"
        );
        assert_eq!(flow(&one[..20]), flow(&fragment), "no more is there");
    }
}
