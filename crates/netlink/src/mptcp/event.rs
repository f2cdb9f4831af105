//! The events of the group `mptcp_pm_events`.

use std::net::{IpAddr, SocketAddr};

use super::{
    SubflowAddress, Token,
    manager::LACKING,
    uapi::{
        self, EVENT_FLAG_DENY_JOIN_ID0, EVENT_FLAG_SERVER_SIDE, event,
        event_attribute::{
            BACKUP, DADDR4, DADDR6, DPORT, END, ERROR, FLAGS, IF_IDX, LOC_ID, REM_ID, RESET_FLAGS,
            RESET_REASON, SADDR4, SADDR6, SERVER_SIDE, SPORT, TOKEN,
        },
    },
};
use crate::{
    Listener, NetlinkError, Notification,
    generic::{Family, split},
    wire::{Attributes, Malformed, Message},
};

/// What happened to a connection of Multipath TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake of the first subflow is over on this side.
    Created(Connection),
    /// The connection may have further subflows: the peer has confirmed Multipath TCP.
    Established(Connection),
    /// The connection is over.
    Closed(Token),
    /// The peer has announced an address.
    Announced(Announcement),
    /// The peer has taken back the address with that identifier.
    Removed {
        /// The connection.
        token: Token,
        /// The identifier that the peer gave it.
        remote_id: u8,
    },
    /// A further subflow is there.
    SubflowEstablished(Subflow),
    /// A subflow is over, the first one too.
    SubflowClosed(Closed),
    /// The peer has made a subflow a backup, or regular.
    SubflowPriority(Subflow),
    /// The kernel listens at the port of an endpoint that it announces.
    ListenerCreated(SocketAddr),
    /// It has ceased to.
    ListenerClosed(SocketAddr),
    /// An event that is not known here, from a later kernel. What the others told still holds.
    Unknown {
        /// Its number.
        command: u8,
    },
    /// An event that is known and whose content cannot be understood: as if it were lost.
    Unreadable,
    /// Events were lost, since they came faster than they were read. What others told may have changed.
    Lost,
}

/// A connection as it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// What names it.
    pub token: Token,
    /// Its first subflow.
    pub first: SubflowAddress,
    /// This machine accepted it.
    pub is_server_side: bool,
    /// The peer accepts no further subflows to the address and port of the first (flag C of RFC 8684 section 3.1).
    pub denies_join_id0: bool,
}

/// An address that the peer announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The connection.
    pub token: Token,
    /// The identifier that the peer gives it.
    pub remote_id: u8,
    /// The address.
    pub address: IpAddr,
    /// The announced port; if there is none, newer kernels give the peer's port of the connection in its place.
    pub port: Option<u16>,
}

/// A subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subflow {
    /// Its connection.
    pub token: Token,
    /// The identifier of the local address; 0 is that of the first subflow.
    pub local_id: u8,
    /// The identifier of the peer's address.
    pub remote_id: u8,
    /// Its ends.
    pub address: SubflowAddress,
    /// The peer wants it used only where there is no other. That this machine wants it is told on the
    /// other side; older kernels count it here too.
    pub is_backup: bool,
    /// Number of the interface that it is bound to.
    pub interface: Option<u32>,
}

/// A subflow that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Which one.
    pub subflow: Subflow,
    /// The error number it failed with, as `ETIMEDOUT`; none if it was closed in order.
    pub error: Option<u8>,
    /// What the peer gave as the reason of a reset, if it gave one.
    pub reset: Option<Reset>,
}

/// Why a peer reset a subflow (RFC 8684 section 3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reset {
    /// The reason: 0 unspecified, 1 error of Multipath TCP, 2 lack of resources, 3 prohibited, 4 too much outstanding data,
    /// 5 unacceptable performance, 6 middlebox.
    pub reason: u32,
    /// A further subflow on the same path may succeed later.
    pub is_transient: bool,
}

/// Hears of the connections of a network namespace, those of the kernel's path manager too.
pub type Events = Listener<Event>;

impl Events {
    /// Begins to hear; of what was before there is no event.
    ///
    /// # Errors
    /// [`NetlinkError::Unsupported`] if the kernel has no such events (Linux 5.12); [`NetlinkError::System`] without the right.
    pub fn open() -> Result<Self, NetlinkError> {
        let (socket, family) = Family::find(uapi::FAMILY_NAME, LACKING)?;
        let group = family.group(uapi::EVENT_GROUP);
        let group =
            group.ok_or(NetlinkError::Unsupported { what: "events of Multipath TCP (Linux 5.12)" })?;
        socket.join(group).map_err(|source| {
            let right =
                if source.raw_os_error() == Some(libc::EPERM) { " (needs CAP_NET_ADMIN)" } else { "" };
            NetlinkError::system(format!("joining the netlink group {}{right}", uapi::EVENT_GROUP))(source)
        })?;
        Self::new(socket)
    }
}

impl Notification for Event {
    const LOST: Self = Self::Lost;
    const UNREADABLE: Self = Self::Unreadable;

    fn read(message: &Message<'_>) -> Self {
        read(message.body).unwrap_or(Self::Unreadable)
    }
}

fn read(body: &[u8]) -> Result<Event, Malformed> {
    let (command, attributes) = split::<END>(body)?;
    let attributes = &attributes;
    Ok(match command {
        event::CREATED => Event::Created(connection(attributes)?),
        event::ESTABLISHED => Event::Established(connection(attributes)?),
        event::CLOSED => Event::Closed(token(attributes)?),
        event::ANNOUNCED => Event::Announced(Announcement {
            token: token(attributes)?,
            remote_id: needed(attributes.u8(REM_ID)?)?,
            address: needed(attributes.either_ip(DADDR4, DADDR6)?)?,
            port: attributes.be16(DPORT)?.filter(|&port| port != 0),
        }),
        event::REMOVED => {
            Event::Removed { token: token(attributes)?, remote_id: needed(attributes.u8(REM_ID)?)? }
        }
        event::SUB_ESTABLISHED => Event::SubflowEstablished(subflow(attributes)?),
        event::SUB_CLOSED => Event::SubflowClosed(Closed {
            subflow: subflow(attributes)?,
            error: attributes.u8(ERROR)?.filter(|&error| error != 0),
            reset: reset(attributes)?,
        }),
        event::SUB_PRIORITY => Event::SubflowPriority(subflow(attributes)?),
        event::LISTENER_CREATED => Event::ListenerCreated(local(attributes)?),
        event::LISTENER_CLOSED => Event::ListenerClosed(local(attributes)?),
        _ => Event::Unknown { command },
    })
}

type EventAttributes<'a> = Attributes<'a, END>;

fn needed<T>(value: Option<T>) -> Result<T, Malformed> {
    value.ok_or(Malformed("an event lacks an attribute"))
}

fn token(attributes: &EventAttributes<'_>) -> Result<Token, Malformed> {
    needed(attributes.u32(TOKEN)?).map(Token)
}

fn local(attributes: &EventAttributes<'_>) -> Result<SocketAddr, Malformed> {
    let address = needed(attributes.either_ip(SADDR4, SADDR6)?)?;
    Ok(SocketAddr::new(address, needed(attributes.be16(SPORT)?)?))
}

fn ends(attributes: &EventAttributes<'_>) -> Result<SubflowAddress, Malformed> {
    let local = local(attributes)?;
    let address = needed(attributes.either_ip(DADDR4, DADDR6)?)?;
    if address.is_ipv4() != local.is_ipv4() {
        return Err(Malformed("the ends of a subflow are of two families"));
    }
    Ok(SubflowAddress { local, remote: SocketAddr::new(address, needed(attributes.be16(DPORT)?)?) })
}

fn connection(attributes: &EventAttributes<'_>) -> Result<Connection, Malformed> {
    let flags = attributes.u16(FLAGS)?.unwrap_or(0);
    let server_side = attributes.u8(SERVER_SIDE)?.unwrap_or(0);
    Ok(Connection {
        token: token(attributes)?,
        first: ends(attributes)?,
        is_server_side: server_side != 0 || flags & EVENT_FLAG_SERVER_SIDE != 0,
        denies_join_id0: flags & EVENT_FLAG_DENY_JOIN_ID0 != 0,
    })
}

fn subflow(attributes: &EventAttributes<'_>) -> Result<Subflow, Malformed> {
    Ok(Subflow {
        token: token(attributes)?,
        local_id: needed(attributes.u8(LOC_ID)?)?,
        remote_id: needed(attributes.u8(REM_ID)?)?,
        address: ends(attributes)?,
        is_backup: needed(attributes.u8(BACKUP)?)? != 0,
        interface: attributes.u32(IF_IDX)?.filter(|&interface| interface != 0),
    })
}

fn reset(attributes: &EventAttributes<'_>) -> Result<Option<Reset>, Malformed> {
    let is_transient = attributes.u32(RESET_FLAGS)?.unwrap_or(0) & 1 != 0;
    Ok(attributes.u32(RESET_REASON)?.map(|reason| Reset { reason, is_transient }))
}
