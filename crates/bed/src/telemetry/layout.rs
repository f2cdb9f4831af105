//! The layouts of `tcp_info`, `mptcp_info` and of the structures around them, as far as they are read here.
//!
//! The kernel only ever appends to these structures. Offsets are those of the user-space interface
//! (`linux/tcp.h`, `linux/mptcp.h`); integers have the machine's byte order, ports and addresses the network's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::sockets::SubflowSample;

/// What [`tcp_info`] needs: everything up to the peer's window, which kernels have told since 5.4.
pub(super) const TCP_INFO_LEAST: usize = 232;
/// Room for `tcp_info`, somewhat more than any kernel so far fills.
pub(super) const TCP_INFO_ROOM: usize = 384;
/// Room for `mptcp_info`.
pub(super) const MPTCP_INFO_ROOM: usize = 192;
/// Size of `mptcp_subflow_addrs`: two `sockaddr_storage`.
pub(super) const ADDRS_SIZE: usize = 256;
/// Size of `mptcp_subflow_info`: an identifier, aligned to 8, and the addresses.
pub(super) const SUBFLOW_INFO_SIZE: usize = 8 + ADDRS_SIZE;

const SOCKADDR_STORAGE_SIZE: usize = 128;
const SSTHRESH_INFINITE: u32 = 0x7fff_ffff;
const FLAG_FALLBACK: u32 = 1;

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_ne_bytes)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_ne_bytes)
}

pub(super) fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    array(bytes, at).map(i32::from_ne_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_ne_bytes)
}

/// An IP address in network byte order; IPv4 addresses in IPv6 clothes (RFC 4291 section 2.5.5.2) come out
/// as IPv4, for a listener on `::` shows them so.
pub(super) fn address(bytes: &[u8], at: usize, is_v6: bool) -> Option<IpAddr> {
    if is_v6 {
        return array::<16>(bytes, at).map(|octets| Ipv6Addr::from(octets).to_canonical());
    }
    array::<4>(bytes, at).map(|octets| Ipv4Addr::from(octets).into())
}

/// A `sockaddr_in` or `sockaddr_in6`; nothing if it is neither, as that of a closed subflow.
fn socket_address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16_at(bytes, 0)?);
    let port = array(bytes, 2).map(u16::from_be_bytes)?;
    let ip = match family {
        libc::AF_INET => address(bytes, 4, false)?,
        libc::AF_INET6 => address(bytes, 8, true)?,
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// An `mptcp_subflow_addrs`: local and remote address.
pub(super) fn subflow_addresses(bytes: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let local = socket_address(bytes.get(..SOCKADDR_STORAGE_SIZE)?)?;
    let remote = socket_address(bytes.get(SOCKADDR_STORAGE_SIZE..ADDRS_SIZE)?)?;
    Some((local, remote))
}

/// An `mptcp_subflow_info`: identifier, local and remote address.
pub(super) fn subflow_info(bytes: &[u8]) -> Option<(u32, SocketAddr, SocketAddr)> {
    let (local, remote) = subflow_addresses(bytes.get(8..)?)?;
    Some((u32_at(bytes, 0)?, local, remote))
}

/// What is read of an `mptcp_info`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MptcpInfo {
    pub(super) is_fallen_back: bool,
    pub(super) token: u32,
    pub(super) subflows_total: Option<u8>,
    pub(super) bytes_retrans: Option<u64>,
    pub(super) bytes_sent: Option<u64>,
    pub(super) bytes_received: Option<u64>,
    pub(super) bytes_acked: Option<u64>,
}

/// Nothing if the bytes end before the token.
pub(super) fn mptcp_info(bytes: &[u8]) -> Option<MptcpInfo> {
    Some(MptcpInfo {
        is_fallen_back: u32_at(bytes, 8)? & FLAG_FALLBACK != 0,
        token: u32_at(bytes, 12)?,
        bytes_retrans: u64_at(bytes, 48),
        bytes_sent: u64_at(bytes, 56),
        bytes_received: u64_at(bytes, 64),
        bytes_acked: u64_at(bytes, 72),
        subflows_total: bytes.get(80).copied(),
    })
}

/// Nothing if the bytes are fewer than [`TCP_INFO_LEAST`].
pub(super) fn tcp_info(
    bytes: &[u8],
    id: Option<u32>,
    local: SocketAddr,
    remote: SocketAddr,
) -> Option<SubflowSample> {
    let u16_at = |at| u16_at(bytes, at);
    let u32_at = |at| u32_at(bytes, at);
    let u64_at = |at| u64_at(bytes, at);
    // The kernel counts bytes per second, all ones meaning that there is no bound.
    let bits_per_second = |bytes_per_second: u64| bytes_per_second.saturating_mul(8);
    Some(SubflowSample {
        id,
        local,
        remote,
        state: *bytes.first()?,
        ca_state: *bytes.get(1)?,
        rto_us: u32_at(8)?,
        mss_bytes: u32_at(16)?,
        unacked_packets: u32_at(24)?,
        sacked_packets: u32_at(28)?,
        lost_packets: u32_at(32)?,
        retrans_out_packets: u32_at(36)?,
        pmtu_bytes: u32_at(60)?,
        rcv_ssthresh_bytes: u32_at(64)?,
        srtt_us: u32_at(68)?,
        rttvar_us: u32_at(72)?,
        ssthresh_packets: u32_at(76).map(|packets| (packets < SSTHRESH_INFINITE).then_some(packets))?,
        cwnd_packets: u32_at(80)?,
        reordering_packets: u32_at(88)?,
        rcv_rtt_us: u32_at(92)?,
        rcv_space_bytes: u32_at(96)?,
        total_retrans: u32_at(100)?,
        pacing_rate_bps: u64_at(104).map(|rate| (rate != u64::MAX).then(|| bits_per_second(rate)))?,
        bytes_acked: u64_at(120)?,
        bytes_received: u64_at(128)?,
        segs_out: u32_at(136)?,
        segs_in: u32_at(140)?,
        notsent_bytes: u32_at(144)?,
        min_rtt_us: u32_at(148).map(|time| (time != u32::MAX).then_some(time))?,
        data_segs_in: u32_at(152)?,
        data_segs_out: u32_at(156)?,
        delivery_rate_bps: u64_at(160).map(bits_per_second)?,
        busy_us: u64_at(168)?,
        rwnd_limited_us: u64_at(176)?,
        sndbuf_limited_us: u64_at(184)?,
        delivered: u32_at(192)?,
        delivered_ce: u32_at(196)?,
        bytes_sent: u64_at(200)?,
        bytes_retrans: u64_at(208)?,
        dsack_dups: u32_at(216)?,
        reord_seen: u32_at(220)?,
        rcv_ooopack: u32_at(224)?,
        snd_wnd_bytes: u32_at(228)?,
        rcv_wnd_bytes: u32_at(232),
        total_rto: u16_at(240),
        total_rto_recoveries: u16_at(242),
        total_rto_time_ms: u32_at(244),
    })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

    fn sockaddr_in(ip: [u8; 4], port: u16) -> Vec<u8> {
        let mut bytes = (libc::AF_INET as u16).to_ne_bytes().to_vec();
        bytes.extend(port.to_be_bytes());
        bytes.extend(ip);
        bytes.resize(SOCKADDR_STORAGE_SIZE, 0);
        bytes
    }

    #[test]
    fn an_older_kernel_leaves_out_what_it_does_not_know() {
        let old = tcp_info(&[0; TCP_INFO_LEAST], None, NOWHERE, NOWHERE).expect("Linux 5.4 gives that much");
        assert_eq!(old.rcv_wnd_bytes, None);
        assert_eq!(old.total_rto, None);
        let new = tcp_info(&[0; 248], None, NOWHERE, NOWHERE).expect("more is no harm");
        assert_eq!((new.rcv_wnd_bytes, new.total_rto_time_ms), (Some(0), Some(0)));
        let info = mptcp_info(&[0; 44]).expect("Linux 5.16 gives that much");
        assert_eq!((info.bytes_sent, info.subflows_total), (None, None));
    }

    #[test]
    fn values_that_stand_for_none_are_none() {
        let bytes = [0xff; TCP_INFO_LEAST];
        let sample = tcp_info(&bytes, None, NOWHERE, NOWHERE).expect("long enough");
        assert_eq!((sample.min_rtt_us, sample.pacing_rate_bps), (None, None));
        let mut bytes = [0; TCP_INFO_LEAST];
        bytes[76..80].copy_from_slice(&SSTHRESH_INFINITE.to_ne_bytes());
        let sample = tcp_info(&bytes, None, NOWHERE, NOWHERE).expect("long enough");
        assert_eq!(sample.ssthresh_packets, None);
    }

    #[test]
    fn a_mapped_address_is_an_ipv4_address() {
        let mut mapped = (libc::AF_INET6 as u16).to_ne_bytes().to_vec();
        mapped.extend(443_u16.to_be_bytes());
        mapped.extend([0; 4]);
        mapped.extend("::ffff:10.0.0.9".parse::<Ipv6Addr>().expect("an address").octets());
        mapped.resize(SOCKADDR_STORAGE_SIZE, 0);
        let both = [mapped, sockaddr_in([10, 0, 0, 1], 80)].concat();
        let expected = ("10.0.0.9:443".parse().expect("one"), "10.0.0.1:80".parse().expect("the other"));
        assert_eq!(subflow_addresses(&both), Some(expected));
    }

    #[test]
    fn the_address_of_a_closed_subflow_is_no_address() {
        let both = [vec![0; SOCKADDR_STORAGE_SIZE], sockaddr_in([10, 0, 0, 1], 80)].concat();
        assert_eq!(subflow_addresses(&both), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoders_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let decoded = tcp_info(&bytes, None, NOWHERE, NOWHERE);
            prop_assert_eq!(decoded.is_some(), bytes.len() >= TCP_INFO_LEAST);
            prop_assert_eq!(mptcp_info(&bytes).is_some(), bytes.len() >= 16);
            prop_assert!(subflow_info(&bytes).is_none() || bytes.len() >= SUBFLOW_INFO_SIZE);
        }
    }
}
