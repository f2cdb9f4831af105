//! One socket: its data level and its subflows, by `getsockopt`.
//!
//! `MPTCP_FULL_INFO` (Linux 6.5) gives both in one call, so that the figures belong together. Before it,
//! `MPTCP_INFO`, `MPTCP_TCPINFO` and `MPTCP_SUBFLOW_ADDRS` (Linux 5.16) give the same in three.

use std::{
    ffi::{c_int, c_void},
    io,
    net::SocketAddr,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd},
};

use anabranch_scenario::model::Protocol;
use socket2::SockRef;

use super::layout::{self, ADDRS_SIZE, MPTCP_INFO_ROOM, SUBFLOW_INFO_SIZE, TCP_INFO_LEAST, TCP_INFO_ROOM};

const SOL_MPTCP: c_int = 284;
const MPTCP_INFO: c_int = 1;
const MPTCP_TCPINFO: c_int = 2;
const MPTCP_SUBFLOW_ADDRS: c_int = 3;
const MPTCP_FULL_INFO: c_int = 4;

/// Subflows for which there is room at first; a connection that has more is asked again.
const SUBFLOWS_ROOM: usize = 8;

/// A connection as one of its ends sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Whether it is Multipath TCP: neither opened as TCP nor fallen back to it (RFC 8684 section 3.7).
    pub is_mptcp: bool,
    /// The local token (RFC 8684 section 3.2), as `ss -M` and `ip mptcp monitor` show it.
    pub token: Option<u32>,
    /// Subflows that have been opened so far, those that have closed included.
    pub subflows_total: Option<u8>,
    /// Data-level bytes sent for the first time.
    pub bytes_sent: Option<u64>,
    /// Data-level bytes acknowledged by DATA_ACK.
    pub bytes_acked: Option<u64>,
    /// Data-level bytes received in order.
    pub bytes_received: Option<u64>,
    /// Data-level bytes sent again, on whatever subflow.
    pub bytes_retrans: Option<u64>,
    /// In the order of their opening. Those that have closed are not among them, or without addresses.
    /// TCP has exactly one.
    pub subflows: Vec<SubflowSample>,
}

/// One subflow, or a TCP connection. Names and meaning are those of `tcp_info` where nothing else is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubflowSample {
    /// Number of the subflow in the order of opening, beginning with 1; never used twice. The kernel tells
    /// it since 6.5, and only of MPTCP.
    pub id: Option<u32>,
    /// Local address and port.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub remote: SocketAddr,
    /// 1 established, 2 SYN sent, 4 and 5 closing, 7 closed, 8 the peer has closed, and so on.
    pub state: u8,
    /// 0 open, 1 disorder, 2 congestion window reduced, 3 fast recovery, 4 recovery from a timeout.
    pub ca_state: u8,
    /// Congestion window.
    pub cwnd_packets: u32,
    /// Slow-start threshold, unless it is still without bound.
    pub ssthresh_packets: Option<u32>,
    /// Smoothed round-trip time (RFC 6298); 0 before the first measurement.
    pub srtt_us: u32,
    /// Its mean deviation.
    pub rttvar_us: u32,
    /// Smallest round-trip time of the last minutes (`net.ipv4.tcp_min_rtt_wlen`).
    pub min_rtt_us: Option<u32>,
    /// Retransmission timeout, backed off.
    pub rto_us: u32,
    /// Largest segment that is sent.
    pub mss_bytes: u32,
    /// Path MTU.
    pub pmtu_bytes: u32,
    /// Bytes acknowledged; the SYN and the FIN count as one each.
    pub bytes_acked: u64,
    /// Payload sent, retransmissions included.
    pub bytes_sent: u64,
    /// Payload sent again.
    pub bytes_retrans: u64,
    /// Payload received in order.
    pub bytes_received: u64,
    /// Packets sent.
    pub segs_out: u32,
    /// Packets received.
    pub segs_in: u32,
    /// Packets with payload sent, retransmissions included.
    pub data_segs_out: u32,
    /// Packets with payload received.
    pub data_segs_in: u32,
    /// Packets sent again, SYNs included (`tcpi_total_retrans`).
    pub total_retrans: u32,
    /// Packets that may overtake each other without loss being assumed.
    pub reordering_packets: u32,
    /// Times that reordering was seen.
    pub reord_seen: u32,
    /// Duplicates that the peer reported (RFC 2883).
    pub dsack_dups: u32,
    /// Packets delivered to the peer, as far as acknowledgements tell.
    pub delivered: u32,
    /// Those of them with a congestion mark (RFC 3168).
    pub delivered_ce: u32,
    /// Packets sent and not acknowledged cumulatively.
    pub unacked_packets: u32,
    /// Those of them that are acknowledged selectively.
    pub sacked_packets: u32,
    /// Those of them that are taken for lost.
    pub lost_packets: u32,
    /// Packets sent again and not yet acknowledged.
    pub retrans_out_packets: u32,
    /// Payload in the send buffer that has not been sent.
    pub notsent_bytes: u32,
    /// Time with data to send.
    pub busy_us: u64,
    /// Time in which the peer's window kept data back.
    pub rwnd_limited_us: u64,
    /// Time in which the send buffer did.
    pub sndbuf_limited_us: u64,
    /// Rate at which packets are paced, unless there is no bound.
    pub pacing_rate_bps: Option<u64>,
    /// Latest measured rate of delivery.
    pub delivery_rate_bps: u64,
    /// Round-trip time as the receiving side estimates it.
    pub rcv_rtt_us: u32,
    /// What the receive-buffer tuning goes by: bytes taken by the application per round trip.
    pub rcv_space_bytes: u32,
    /// Bound of the window that is advertised.
    pub rcv_ssthresh_bytes: u32,
    /// Packets that came out of order.
    pub rcv_ooopack: u32,
    /// Window that the peer advertises.
    pub snd_wnd_bytes: u32,
    /// Window advertised to the peer (Linux 6.2).
    pub rcv_wnd_bytes: Option<u32>,
    /// Expiries of the retransmission timer, for SYNs too (Linux 6.7).
    pub total_rto: Option<u16>,
    /// Recoveries from a timeout that have begun (Linux 6.7).
    pub total_rto_recoveries: Option<u16>,
    /// Time spent in those that have ended (Linux 6.7).
    pub total_rto_time_ms: Option<u32>,
}

impl SubflowSample {
    /// Reads a `tcp_info` as the kernel gave it; nothing if it has fewer than the 232 bytes of Linux 5.4.
    pub fn decode(tcp_info: &[u8], id: Option<u32>, local: SocketAddr, remote: SocketAddr) -> Option<Self> {
        layout::tcp_info(tcp_info, id, local, remote)
    }

    /// Whether it has ended, so that its figures mean nothing (`TCP_CLOSE`).
    pub fn is_closed(&self) -> bool {
        self.state == 7
    }
}

/// Reads `socket`, which has been opened or accepted as `protocol`.
///
/// # Errors
/// What `getsockopt(2)` says; [`io::ErrorKind::Unsupported`] if the kernel is older than 5.16 (5.4 for TCP).
pub fn sample(socket: BorrowedFd<'_>, protocol: Protocol) -> io::Result<Sample> {
    match protocol {
        Protocol::Tcp => sample_tcp(socket),
        Protocol::Mptcp => match sample_full(socket) {
            // What an MPTCP socket that has fallen back says, over IPv4 and IPv6; and a kernel before 6.5.
            Err(error) if has_no_such_option(&error) => match sample_in_parts(socket) {
                Err(error) if has_no_such_option(&error) => sample_tcp(socket),
                result => result,
            },
            result => result,
        },
    }
}

fn has_no_such_option(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOPROTOOPT))
}

/// A connection that is TCP, whatever it was opened as.
fn sample_tcp(socket: BorrowedFd<'_>) -> io::Result<Sample> {
    let mut bytes = [0; TCP_INFO_ROOM];
    let length = get_option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
    let address_of = |address: io::Result<socket2::SockAddr>| {
        let address = address?.as_socket();
        let address = address.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok::<_, io::Error>(SocketAddr::new(address.ip().to_canonical(), address.port()))
    };
    let socket = SockRef::from(&socket);
    let local = address_of(socket.local_addr())?;
    let remote = match address_of(socket.peer_addr()) {
        // Before the handshake and after the end there is no peer.
        Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => {
            SocketAddr::new(if local.is_ipv4() { [0; 4].into() } else { [0; 16].into() }, 0)
        }
        result => result?,
    };
    let subflow = layout::tcp_info(&bytes[..length], None, local, remote).ok_or_else(too_old)?;
    Ok(Sample { subflows: vec![subflow], ..Sample::default() })
}

fn too_old() -> io::Error {
    let text = format!("TCP_INFO has fewer than {TCP_INFO_LEAST} bytes: Linux 5.4 or later is needed");
    io::Error::new(io::ErrorKind::Unsupported, text)
}

fn mptcp_sample(info: layout::MptcpInfo, subflows: Vec<SubflowSample>) -> Sample {
    Sample {
        is_mptcp: !info.is_fallen_back,
        token: Some(info.token),
        subflows_total: info.subflows_total,
        bytes_sent: info.bytes_sent,
        bytes_acked: info.bytes_acked,
        bytes_received: info.bytes_received,
        bytes_retrans: info.bytes_retrans,
        subflows,
    }
}

/// `mptcp_full_info`.
#[repr(C)]
struct FullInfo {
    size_tcpinfo_kernel: u32,
    size_tcpinfo_user: u32,
    size_sfinfo_kernel: u32,
    size_sfinfo_user: u32,
    num_subflows: u32,
    size_arrays_user: u32,
    subflow_info: u64,
    tcp_info: u64,
    mptcp_info: [u8; MPTCP_INFO_ROOM],
}

const FULL_INFO_HEAD: usize = size_of::<FullInfo>() - MPTCP_INFO_ROOM;

/// By `MPTCP_FULL_INFO`.
fn sample_full(socket: BorrowedFd<'_>) -> io::Result<Sample> {
    let mut room = SUBFLOWS_ROOM;
    loop {
        let mut infos = vec![0_u8; room * SUBFLOW_INFO_SIZE];
        let mut tcp_infos = vec![0_u8; room * TCP_INFO_ROOM];
        let mut full = FullInfo {
            size_tcpinfo_kernel: 0,
            size_tcpinfo_user: TCP_INFO_ROOM as u32,
            size_sfinfo_kernel: 0,
            size_sfinfo_user: SUBFLOW_INFO_SIZE as u32,
            num_subflows: 0,
            size_arrays_user: room as u32,
            subflow_info: infos.as_mut_ptr() as u64,
            tcp_info: tcp_infos.as_mut_ptr() as u64,
            mptcp_info: [0; MPTCP_INFO_ROOM],
        };
        let mut length = size_of::<FullInfo>() as libc::socklen_t;
        #[allow(unsafe_code)]
        // SAFETY: `full` is a whole `mptcp_full_info` with `length` bytes, and the two arrays that it points
        // to have room for as many elements of as many bytes as it says; all three live through the call.
        let result = unsafe {
            let value = (&raw mut full).cast::<c_void>();
            libc::getsockopt(socket.as_raw_fd(), SOL_MPTCP, MPTCP_FULL_INFO, value, &raw mut length)
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let subflows = full.num_subflows as usize;
        if subflows > room {
            room = subflows;
            continue;
        }
        let told = (length as usize).saturating_sub(FULL_INFO_HEAD).min(MPTCP_INFO_ROOM);
        let info = layout::mptcp_info(&full.mptcp_info[..told]).unwrap_or_default();
        // The kernel lays the elements out at the smaller of its size and ours, and says which that was.
        let info_chunks = infos.chunks((full.size_sfinfo_user as usize).max(1));
        let tcp_chunks = tcp_infos.chunks((full.size_tcpinfo_user as usize).max(1));
        let decode = |(info, tcp): (&[u8], &[u8])| {
            let (id, local, remote) = layout::subflow_info(info)?;
            layout::tcp_info(tcp, Some(id), local, remote)
        };
        let decoded = info_chunks.zip(tcp_chunks).take(subflows).filter_map(decode);
        return Ok(mptcp_sample(info, decoded.collect()));
    }
}

/// Reads an MPTCP socket by `MPTCP_INFO`, `MPTCP_TCPINFO` and `MPTCP_SUBFLOW_ADDRS`, as [`sample`] does where
/// the kernel knows nothing better. Subflows have no identifiers then. Between the calls one may come or go;
/// the last two are repeated until they tell of as many.
///
/// # Errors
/// As [`sample`]; `EOPNOTSUPP` or `ENOPROTOOPT` if the connection is TCP.
pub fn sample_in_parts(socket: BorrowedFd<'_>) -> io::Result<Sample> {
    let mut bytes = [0; MPTCP_INFO_ROOM];
    let length = get_option(socket, SOL_MPTCP, MPTCP_INFO, &mut bytes)?;
    let info = layout::mptcp_info(&bytes[..length]).unwrap_or_default();
    loop {
        let addresses = get_elements(socket, MPTCP_SUBFLOW_ADDRS, ADDRS_SIZE)?;
        let tcp_infos = get_elements(socket, MPTCP_TCPINFO, TCP_INFO_ROOM)?;
        if addresses.len() != tcp_infos.len() {
            continue;
        }
        let decode = |(addresses, tcp): (&Vec<u8>, &Vec<u8>)| {
            let (local, remote) = layout::subflow_addresses(addresses)?;
            layout::tcp_info(tcp, None, local, remote)
        };
        let decoded = addresses.iter().zip(&tcp_infos).filter_map(decode);
        return Ok(mptcp_sample(info, decoded.collect()));
    }
}

/// Reads an option that begins with an `mptcp_subflow_data` and gives one element for each subflow.
fn get_elements(socket: BorrowedFd<'_>, name: c_int, size: usize) -> io::Result<Vec<Vec<u8>>> {
    /// Size of `mptcp_subflow_data`: of itself, number of subflows, size of an element at the kernel, here.
    const HEAD: usize = 16;
    let mut room = SUBFLOWS_ROOM;
    loop {
        let mut bytes = vec![0; HEAD + room * size];
        for (at, value) in [(0, HEAD), (12, size)] {
            bytes[at..at + 4].copy_from_slice(&(value as u32).to_ne_bytes());
        }
        get_option(socket, SOL_MPTCP, name, &mut bytes)?;
        let field = |at| layout::u32_at(&bytes, at).expect("there is room for the head") as usize;
        let (subflows, size) = (field(4), field(12).max(1));
        if subflows > room {
            room = subflows;
            continue;
        }
        return Ok(bytes[HEAD..].chunks(size).take(subflows).map(<[u8]>::to_vec).collect());
    }
}

/// Fills `bytes` and returns how many the kernel has given.
pub(super) fn get_option(
    socket: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
    bytes: &mut [u8],
) -> io::Result<usize> {
    let mut length = bytes.len() as libc::socklen_t;
    #[allow(unsafe_code)]
    // SAFETY: the buffer has `length` bytes and lives through the call; the options read here have no
    // pointers in them.
    let result = unsafe {
        let value = bytes.as_mut_ptr().cast::<c_void>();
        libc::getsockopt(socket.as_fd().as_raw_fd(), level, name, value, &raw mut length)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((length as usize).min(bytes.len()))
}
