//! A subflow (`struct tcp_info`, and `INET_ULP_INFO_MPTCP`).

use super::{END, INFO, Structure, TcpState, ULP_INFO, split};
use crate::{
    mptcp::{SubflowAddress, Token},
    wire::{Attributes, Malformed},
};

const ULP_MPTCP: u16 = 3;
const ULP_END: usize = 4;

const TOKEN_LOCAL: u16 = 2;
const FLAGS: u16 = 8;
const ID_REMOTE: u16 = 9;
const ID_LOCAL: u16 = 10;
const SUBFLOW_END: usize = 11;

/// `tcpi_snd_ssthresh` before the first loss.
const SSTHRESH_INFINITE: u32 = 0x7fff_ffff;

/// What the kernel says of a subflow in bits (`MPTCP_SUBFLOW_FLAG_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubflowFlags(u32);

impl SubflowFlags {
    /// From the kernel's bits.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The kernel's bits.
    pub const fn bits(self) -> u32 {
        self.0
    }

    const fn has(self, bit: u32) -> bool {
        self.0 & 1 << bit != 0
    }

    /// It was opened here: as the first one (MP_CAPABLE) or as a further one (MP_JOIN).
    pub const fn is_opened_here(self) -> bool {
        self.has(1) || self.has(3)
    }

    /// It joined a connection that was there.
    pub const fn is_join(self) -> bool {
        self.has(2) || self.has(3)
    }

    /// The peer wants it used only where there is no other.
    pub const fn is_backup_of_peer(self) -> bool {
        self.has(4)
    }

    /// This machine wants it used only where there is no other.
    pub const fn is_backup_here(self) -> bool {
        self.has(5)
    }

    /// Both ends know that the other speaks Multipath TCP.
    pub const fn is_fully_established(self) -> bool {
        self.has(6)
    }
}

/// A subflow of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subflow {
    /// Its connection.
    pub token: Token,
    /// Where it stands.
    pub state: TcpState,
    /// Its ends.
    pub address: SubflowAddress,
    /// The identifier of the local address; 0 is that of the first subflow.
    pub local_id: u8,
    /// The identifier of the peer's address.
    pub remote_id: u8,
    /// What the kernel says of it.
    pub flags: SubflowFlags,
    /// Number of the interface that it is bound to.
    pub interface: Option<u32>,
    /// Until the retransmission timer, if it runs.
    pub retransmit_in_ms: Option<u32>,
    /// Its figures.
    pub figures: Figures,
}

/// The figures of a TCP socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Timeouts in a row (`tcpi_retransmits`): 0 as soon as something is acknowledged.
    pub timeouts: u8,
    /// Probes of a closed window, or of an idle connection, in a row.
    pub probes: u8,
    /// How often the retransmission timeout has doubled.
    pub backoff: u8,
    /// Retransmission timeout, with its doublings.
    pub rto_us: u32,
    /// Bytes of a full segment.
    pub mss_bytes: u32,
    /// Segments sent and not acknowledged.
    pub unacked_segments: u32,
    /// Those of them that are taken for lost.
    pub lost_segments: u32,
    /// Since data were sent last.
    pub last_sent_ms: u32,
    /// Since data came last.
    pub last_received_ms: u32,
    /// Since an acknowledgement came last.
    pub last_acked_ms: u32,
    /// Smoothed round-trip time; 0 before the first sample.
    pub srtt_us: u32,
    /// Its mean deviation.
    pub rttvar_us: u32,
    /// Least round-trip time of the last minutes, if there was one.
    pub min_rtt_us: Option<u32>,
    /// Slow-start threshold; none before the first loss.
    pub ssthresh_segments: Option<u32>,
    /// Congestion window.
    pub cwnd_segments: u32,
    /// Segments sent again so far.
    pub retransmits: u32,
    /// Bytes acknowledged so far.
    pub acked_bytes: u64,
    /// Bytes of data received so far.
    pub received_bytes: u64,
    /// Bytes that wait to be sent for the first time.
    pub unsent_bytes: u32,
    /// Segments sent with data, repetitions included.
    pub data_segments_sent: u32,
    /// Segments received with data.
    pub data_segments_received: u32,
    /// All segments sent.
    pub segments_sent: u32,
    /// All segments received.
    pub segments_received: u32,
    /// Rate at which data have lately arrived at the peer, in bytes per second.
    pub delivery_bytes_per_s: u64,
    /// Bytes of data sent, repetitions included.
    pub sent_bytes: u64,
    /// Bytes of data sent again.
    pub retransmitted_bytes: u64,
    /// Timeouts so far; Linux 6.7.
    pub timeouts_total: Option<u16>,
}

impl Figures {
    /// Nothing if the bytes end before what Linux 5.4 tells.
    fn read(info: &Structure<'_>) -> Option<Self> {
        Some(Self {
            timeouts: info.u8(2)?,
            probes: info.u8(3)?,
            backoff: info.u8(4)?,
            rto_us: info.u32(8)?,
            mss_bytes: info.u32(16)?,
            unacked_segments: info.u32(24)?,
            lost_segments: info.u32(32)?,
            last_sent_ms: info.u32(44)?,
            last_received_ms: info.u32(52)?,
            last_acked_ms: info.u32(56)?,
            srtt_us: info.u32(68)?,
            rttvar_us: info.u32(72)?,
            ssthresh_segments: Some(info.u32(76)?).filter(|&segments| segments < SSTHRESH_INFINITE),
            cwnd_segments: info.u32(80)?,
            retransmits: info.u32(100)?,
            acked_bytes: info.u64(120)?,
            received_bytes: info.u64(128)?,
            segments_sent: info.u32(136)?,
            segments_received: info.u32(140)?,
            unsent_bytes: info.u32(144)?,
            min_rtt_us: Some(info.u32(148)?).filter(|&time| time != u32::MAX),
            data_segments_received: info.u32(152)?,
            data_segments_sent: info.u32(156)?,
            delivery_bytes_per_s: info.u64(160)?,
            sent_bytes: info.u64(200)?,
            retransmitted_bytes: info.u64(208)?,
            timeouts_total: info.u16(240),
        })
    }
}

impl Subflow {
    /// Reads what the kernel says of a TCP socket, behind the header of its message; none if it is no subflow.
    ///
    /// # Errors
    /// [`Malformed`] if it cannot be understood.
    pub fn read(body: &[u8]) -> Result<Option<Self>, Malformed> {
        read(body)
    }
}

/// Of which connection the socket is a subflow, as `ULP_INFO` tells; none if of no one.
pub(super) fn token(ulp: &[u8]) -> Result<Option<Token>, Malformed> {
    let Some(told) = Attributes::<ULP_END>::read(ulp)?.bytes(ULP_MPTCP) else { return Ok(None) };
    let token = Attributes::<SUBFLOW_END>::read(told)?.u32(TOKEN_LOCAL)?;
    Ok(token.filter(|&token| token != 0).map(Token))
}

/// None if the socket is no subflow.
pub(super) fn read(body: &[u8]) -> Result<Option<Subflow>, Malformed> {
    let (header, attributes) = split(body)?;
    let attributes = Attributes::<END>::read(attributes)?;
    let Some(ulp) = attributes.bytes(ULP_INFO) else { return Ok(None) };
    let Some(told) = Attributes::<ULP_END>::read(ulp)?.bytes(ULP_MPTCP) else { return Ok(None) };
    let told = Attributes::<SUBFLOW_END>::read(told)?;
    // One whose connection is just coming or going has no token.
    let Some(token) = told.u32(TOKEN_LOCAL)?.filter(|&token| token != 0) else { return Ok(None) };
    let info = attributes.bytes(INFO).map(Structure).ok_or(Malformed("a subflow has no figures"))?;
    Ok(Some(Subflow {
        token: Token(token),
        state: header.state,
        address: header.address,
        local_id: told.u8(ID_LOCAL)?.unwrap_or(0),
        remote_id: told.u8(ID_REMOTE)?.unwrap_or(0),
        flags: SubflowFlags::from_bits(told.u32(FLAGS)?.unwrap_or(0)),
        interface: header.interface,
        retransmit_in_ms: header.retransmit_in_ms,
        figures: Figures::read(&info).ok_or(Malformed("the figures of a subflow are too short"))?,
    }))
}
