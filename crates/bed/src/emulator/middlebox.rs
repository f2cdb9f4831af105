//! A middlebox that removes options of MPTCP from packets.
//!
//! It writes NOPs in their place, so that packets keep their size as in the simulator, and puts the checksum right.

use anabranch_scenario::model::{Hop, Link, Strips};

const TCP: u8 = 6;
const END_OF_OPTIONS: u8 = 0;
const NOP: u8 = 1;
/// RFC 8684 section 3: the option, and MP_JOIN among its subtypes.
const MPTCP: u8 = 30;
const MP_JOIN: u8 = 1;

/// What is removed on a path: all options if one of its links does that.
pub(crate) fn on_path(links: &[Link], hops: &[Hop]) -> Strips {
    let of_hop = |hop: &Hop| match *hop {
        Hop::Wire { link, .. } => links[link].strips,
        Hop::Medium { .. } => Strips::Nothing,
    };
    hops.iter().map(of_hop).fold(Strips::Nothing, |all, one| match (all, one) {
        (Strips::Mptcp, _) | (_, Strips::Mptcp) => Strips::Mptcp,
        (Strips::Joins, _) | (_, Strips::Joins) => Strips::Joins,
        (Strips::Nothing, Strips::Nothing) => Strips::Nothing,
    })
}

/// Removes options from a packet; one that is no TCP, a fragment or malformed stays as it is.
pub(crate) fn strip(packet: &mut [u8], strips: Strips) {
    let Some(header) = tcp_header(packet) else { return };
    let before = sum(header);
    let mut at = 20;
    while at < header.len() {
        let length = match header[at] {
            END_OF_OPTIONS => break,
            NOP => 1,
            _ => match header.get(at + 1) {
                Some(&length) if length >= 2 && at + usize::from(length) <= header.len() => {
                    usize::from(length)
                }
                _ => break,
            },
        };
        let is_join = length > 2 && header[at] == MPTCP && header[at + 2] >> 4 == MP_JOIN;
        if (header[at] == MPTCP && strips == Strips::Mptcp) || (is_join && strips == Strips::Joins) {
            header[at..at + length].fill(NOP);
        }
        at += length;
    }
    // RFC 1624 equation 3, with the sum of the header in place of one word.
    let checksum = u16::from_be_bytes([header[16], header[17]]);
    let corrected = !fold(u32::from(!checksum) + u32::from(!before) + u32::from(sum(header)));
    if sum(header) != before {
        header[16..18].copy_from_slice(&corrected.to_be_bytes());
    }
}

/// The header of TCP with its options.
fn tcp_header(packet: &mut [u8]) -> Option<&mut [u8]> {
    let (start, protocol) = match packet.first()? >> 4 {
        4 => {
            let is_later_fragment = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x1fff != 0;
            if is_later_fragment {
                return None;
            }
            (usize::from(packet[0] & 0x0f) * 4, *packet.get(9)?)
        }
        6 => (40, *packet.get(6)?),
        _ => return None,
    };
    if protocol != TCP {
        return None;
    }
    let length = usize::from(packet.get(start + 12)? >> 4) * 4;
    if length < 20 {
        return None;
    }
    packet.get_mut(start..start + length)
}

/// The one's complement sum of 16-bit words (RFC 1071).
fn sum(bytes: &[u8]) -> u16 {
    fold(bytes.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum())
}

fn fold(mut sum: u32) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// MSS; NOP and a window scale; an option of MPTCP at an odd place; NOP.
    fn options(mptcp: &[u8]) -> Vec<u8> {
        let mut options = vec![2, 4, 5, 0xb4, 1, 3, 3, 7, 1];
        options.extend(mptcp);
        options.resize(options.len().next_multiple_of(4), 1);
        options
    }

    /// A packet of TCP over IPv4 or IPv6 whose checksum is right.
    fn packet(is_v6: bool, options: &[u8]) -> Vec<u8> {
        let mut tcp = vec![0x12, 0x34, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0, 2, 0xff, 0xff, 0, 0, 0, 0];
        tcp[12] = (((20 + options.len()) / 4) << 4) as u8;
        tcp.extend(options);
        tcp.extend([9; 5]);
        let mut packet = vec![0; if is_v6 { 40 } else { 20 }];
        packet[0] = if is_v6 { 0x60 } else { 0x45 };
        packet[if is_v6 { 6 } else { 9 }] = TCP;
        packet.extend(&tcp);
        let (start, pseudo) = pseudo_sum(&packet);
        let checksum = !fold(u32::from(pseudo) + u32::from(padded_sum(&packet[start..])));
        packet[start + 16..start + 18].copy_from_slice(&checksum.to_be_bytes());
        packet
    }

    /// All addresses are 0, so that only protocol and length count.
    fn pseudo_sum(packet: &[u8]) -> (usize, u16) {
        let start = if packet[0] >> 4 == 6 { 40 } else { 20 };
        (start, u16::from(TCP) + (packet.len() - start) as u16)
    }

    fn padded_sum(bytes: &[u8]) -> u16 {
        let mut bytes = bytes.to_vec();
        bytes.resize(bytes.len().next_multiple_of(2), 0);
        sum(&bytes)
    }

    fn is_right(packet: &[u8]) -> bool {
        let (start, pseudo) = pseudo_sum(packet);
        fold(u32::from(pseudo) + u32::from(padded_sum(&packet[start..]))) == 0xffff
    }

    const CAPABLE: [u8; 4] = [MPTCP, 4, 0x01, 0x81];
    const JOIN: [u8; 12] = [MPTCP, 12, 0x10, 1, 0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4];

    #[test]
    fn options_of_mptcp_become_nops_and_the_checksum_stays_right() {
        for is_v6 in [false, true] {
            for (option, strips, goes) in [
                (&CAPABLE[..], Strips::Mptcp, true),
                (&JOIN[..], Strips::Mptcp, true),
                (&JOIN[..], Strips::Joins, true),
                (&CAPABLE[..], Strips::Joins, false),
                (&JOIN[..], Strips::Nothing, false),
            ] {
                let before = packet(is_v6, &options(option));
                assert!(is_right(&before));
                let mut after = before.clone();
                strip(&mut after, strips);
                assert!(is_right(&after), "{option:?}, {strips:?}");
                assert_eq!(after != before, goes, "{option:?}, {strips:?}");
                let start = if is_v6 { 60 } else { 40 };
                assert_eq!(after[start..start + 9], before[start..start + 9], "other options stay");
                if goes {
                    assert!(after[start + 9..start + 9 + option.len()].iter().all(|&byte| byte == NOP));
                }
            }
        }
    }

    #[test]
    fn what_is_no_tcp_or_malformed_stays_as_it_is() {
        let whole = packet(false, &options(&JOIN));
        let mut cases = vec![whole[..30].to_vec(), vec![0x45], Vec::new()];
        let mut other = whole.clone();
        other[9] = 17;
        cases.push(other);
        let mut fragment = whole.clone();
        fragment[7] = 1;
        cases.push(fragment);
        // An option without an end, and one of length 0.
        cases.push(packet(false, &[1, 1, MPTCP, 9]));
        cases.push(packet(false, &[MPTCP, 0, 0x10, 1]));
        for case in cases {
            let mut after = case.clone();
            strip(&mut after, Strips::Mptcp);
            assert_eq!(after, case);
        }
    }
}
