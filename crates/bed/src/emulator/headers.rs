//! As much of the IP headers as tells a packet's route.

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
}
