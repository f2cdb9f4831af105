//! A connection (`struct mptcp_info`).

use super::{END, INFO, Structure, TcpState, split};
use crate::{
    mptcp::{SubflowAddress, Token},
    wire::{Attributes, Malformed},
};

const FLAG_FALLBACK: u32 = 1 << 0;
const FLAG_REMOTE_KEY_RECEIVED: u32 = 1 << 1;

/// A connection of Multipath TCP.
///
/// Counts of further subflows, announced addresses and their limits are those of the kernel's own path manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// What names it; 0 once it has fallen back to TCP on some kernels.
    pub token: Token,
    /// Where it stands.
    pub state: TcpState,
    /// The ends of its first subflow, which may be closed.
    pub address: SubflowAddress,
    /// User that opened it.
    pub user: u32,
    /// Inode of its socket, 0 if no process holds it any more.
    pub inode: u32,
    /// It speaks plain TCP (RFC 8684 section 3.7).
    pub is_fallen_back: bool,
    /// The peer's key has come, so that further subflows can be authenticated.
    pub has_remote_key: bool,
    /// Subflows besides the first.
    pub further_subflows: u8,
    /// Limit of them.
    pub further_subflows_max: u8,
    /// Addresses announced to the peer.
    pub announced: u8,
    /// Addresses that the peer has announced and that were taken.
    pub accepted: u8,
    /// Bytes that the application has written and the peer has not acknowledged at the data level.
    pub unacked_bytes: u64,
    /// Timeouts of the data level; Linux 6.5.
    pub retransmits: Option<u32>,
    /// Bytes of data sent, repetitions not counted; Linux 6.5, as the next three.
    pub sent_bytes: Option<u64>,
    /// Bytes sent again at the data level.
    pub retransmitted_bytes: Option<u64>,
    /// Bytes of data received in order.
    pub received_bytes: Option<u64>,
    /// Bytes that the peer has acknowledged at the data level.
    pub acked_bytes: Option<u64>,
    /// Subflows that there are; Linux 6.7.
    pub subflows: Option<u8>,
    /// Since data were sent last; Linux 6.10, as the next two.
    pub last_sent_ms: Option<u32>,
    /// Since data came last.
    pub last_received_ms: Option<u32>,
    /// Since an acknowledgement came last.
    pub last_acked_ms: Option<u32>,
}

impl Connection {
    /// Reads what the kernel says of a connection, behind the header of its message; none if the message has no `mptcp_info`.
    ///
    /// # Errors
    /// [`Malformed`] if it cannot be understood.
    pub fn read(body: &[u8]) -> Result<Option<Self>, Malformed> {
        read(body)
    }
}

/// None if the message has no `mptcp_info`.
pub(super) fn read(body: &[u8]) -> Result<Option<Connection>, Malformed> {
    let (header, attributes) = split(body)?;
    let Some(info) = Attributes::<END>::read(attributes)?.bytes(INFO).map(Structure) else {
        return Ok(None);
    };
    let told = || {
        let flags = info.u32(8)?;
        let (write_sequence, unacked) = (info.u64(16)?, info.u64(24)?);
        Some(Connection {
            token: Token(info.u32(12)?),
            state: header.state,
            address: header.address,
            user: header.user,
            inode: header.inode,
            is_fallen_back: flags & FLAG_FALLBACK != 0,
            has_remote_key: flags & FLAG_REMOTE_KEY_RECEIVED != 0,
            further_subflows: info.u8(0)?,
            further_subflows_max: info.u8(3)?,
            announced: info.u8(1)?,
            accepted: info.u8(2)?,
            unacked_bytes: unacked_bytes(write_sequence, unacked),
            retransmits: info.u32(44),
            retransmitted_bytes: info.u64(48),
            sent_bytes: info.u64(56),
            received_bytes: info.u64(64),
            acked_bytes: info.u64(72),
            subflows: info.u8(80),
            last_sent_ms: info.u32(84),
            last_received_ms: info.u32(88),
            last_acked_ms: info.u32(92),
        })
    };
    told().map(Some).ok_or(Malformed("the figures of a connection are too short"))
}

/// The two are read one after the other, so that the acknowledged one may be ahead.
fn unacked_bytes(write_sequence: u64, unacked: u64) -> u64 {
    let bytes = write_sequence.wrapping_sub(unacked);
    if bytes > u64::MAX / 2 { 0 } else { bytes }
}
