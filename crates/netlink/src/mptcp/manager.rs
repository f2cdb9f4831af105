//! The commands of the family.

use std::net::{IpAddr, SocketAddr};

use super::{
    Endpoint, EndpointFlags, Limits, SubflowAddress, Token, family,
    uapi::{self, VERSION, address, attribute, command},
};
use crate::{
    NetlinkError,
    generic::{Family, HEADER, body, split},
    socket::Socket,
    wire::{Body, Malformed, Question, Writer},
};

pub(super) const LACKING: &str = "path manager of Multipath TCP (CONFIG_MPTCP)";

/// Asks and commands the path manager of a network namespace, the one that the thread was in when it was opened.
pub struct PathManager {
    socket: Socket,
    family: Family,
}

impl PathManager {
    /// Finds the path manager.
    ///
    /// # Errors
    /// [`NetlinkError::Unsupported`] if the kernel has no Multipath TCP; [`NetlinkError::System`].
    pub fn open() -> Result<Self, NetlinkError> {
        let (socket, family) = Family::find(uapi::FAMILY_NAME, LACKING)?;
        Ok(Self { socket, family })
    }

    /// `ip mptcp endpoint add`. The kernel gives it an identifier if it has none.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`]: `EEXIST` for an address, `EBUSY` for an identifier that another endpoint has, `ERANGE` for more
    /// than 8 endpoints, `EINVAL` for flags that do not go together, as a port without [`EndpointFlags::SIGNAL`].
    pub fn add_endpoint(&mut self, endpoint: &Endpoint) -> Result<(), NetlinkError> {
        let attributes = Writer::default().nested(attribute::ADDR, endpoint.write());
        self.tell(command::ADD_ADDR, format!("adding the endpoint {endpoint}"), attributes)
    }

    /// `ip mptcp endpoint delete id ID`. Subflows from its address are closed, and the peer is told (REMOVE_ADDR).
    ///
    /// # Errors
    /// [`NetlinkError::Refused`]: `EINVAL` if there is none with that identifier.
    pub fn delete_endpoint(&mut self, id: u8) -> Result<(), NetlinkError> {
        let attributes = Writer::default().nested(attribute::ADDR, Writer::default().u8(address::ID, id));
        self.tell(command::DEL_ADDR, format!("deleting the endpoint {id}"), attributes)
    }

    /// `ip mptcp endpoint delete id 0 ADDRESS`: closes the subflows that connections began with at that address, which no endpoint
    /// need have.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`].
    pub fn delete_first(&mut self, address: IpAddr) -> Result<(), NetlinkError> {
        let attributes = Writer::default().nested(attribute::ADDR, Endpoint::new(address).write());
        self.tell(command::DEL_ADDR, format!("closing first subflows from {address}"), attributes)
    }

    /// `ip mptcp endpoint show id ID`.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`]: `EINVAL` if there is none with that identifier.
    pub fn endpoint(&mut self, id: u8) -> Result<Endpoint, NetlinkError> {
        let attributes = Writer::default().nested(attribute::ADDR, Writer::default().u8(address::ID, id));
        let question = self.question(command::GET_ADDR, format!("reading the endpoint {id}"), attributes);
        let answer = self.socket.ask(&question)?;
        first(answer, &question, endpoint)
    }

    /// `ip mptcp endpoint show`, by identifier.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn endpoints(&mut self) -> Result<Vec<Endpoint>, NetlinkError> {
        let question =
            self.question(command::GET_ADDR, "listing the endpoints".to_owned(), Writer::default());
        let answer = self.socket.list(&question)?;
        answer.iter().map(|body| endpoint(body).map_err(malformed(&question))).collect()
    }

    /// `ip mptcp endpoint flush`: deletes all.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn flush_endpoints(&mut self) -> Result<(), NetlinkError> {
        self.tell(command::FLUSH_ADDRS, "deleting all endpoints".to_owned(), Writer::default())
    }

    /// `ip mptcp limits show`.
    ///
    /// # Errors
    /// [`NetlinkError`].
    pub fn limits(&mut self) -> Result<Limits, NetlinkError> {
        let question = self.question(command::GET_LIMITS, "reading the limits".to_owned(), Writer::default());
        let answer = self.socket.ask(&question)?;
        first(answer, &question, limits)
    }

    /// `ip mptcp limits set`. They hold for connections that begin later, and for what others do later.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`]: `EINVAL` for a limit above 8.
    pub fn set_limits(&mut self, limits: Limits) -> Result<(), NetlinkError> {
        let Limits { add_addr_accepted, subflows } = limits;
        let what = format!("setting the limits subflows {subflows} add_addr_accepted {add_addr_accepted}");
        let attributes = Writer::default()
            .u32(attribute::RCV_ADD_ADDRS, add_addr_accepted)
            .u32(attribute::SUBFLOWS, subflows);
        self.tell(command::SET_LIMITS, what, attributes)
    }

    /// `ip mptcp endpoint change id ID`: [`EndpointFlags::BACKUP`] and [`EndpointFlags::FULLMESH`] become as given, the others stay.
    /// Connections that the kernel manages follow at once.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`]: `EINVAL` if there is none with that identifier, or for a full mesh of an announced address.
    pub fn set_endpoint_flags(&mut self, id: u8, flags: EndpointFlags) -> Result<(), NetlinkError> {
        let address = Writer::default().u8(address::ID, id).u32(address::FLAGS, flags.bits());
        let what = format!("setting the flags of the endpoint {id} to \"{flags}\"");
        self.tell(command::SET_FLAGS, what, Writer::default().nested(attribute::ADDR, address))
    }

    /// Makes a subflow a backup or a regular one, and tells the peer (MP_PRIO, RFC 8684 section 3.3.8). For connections that
    /// user space manages; the first subflow too.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`]: `EINVAL` if there is no such connection or subflow, or the kernel manages it.
    pub fn set_subflow_backup(
        &mut self,
        token: Token,
        subflow: SubflowAddress,
        backup: bool,
    ) -> Result<(), NetlinkError> {
        let flags = if backup { EndpointFlags::BACKUP } else { EndpointFlags::NONE };
        let local = end(subflow.local).u32(address::FLAGS, flags.bits());
        let word = if backup { "a backup" } else { "regular" };
        let what = format!("making the subflow {subflow} of connection {token} {word}");
        self.tell(command::SET_FLAGS, what, of_subflow(token, local, subflow.remote))
    }

    /// Announces a local address to the peer of one connection that user space manages (ADD_ADDR, RFC 8684 section 3.4.1). With a
    /// port, somebody must listen at it: the kernel does so for its own endpoints only.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`]: `EINVAL` if there is no such connection, the kernel manages it, the identifier is 0,
    /// [`EndpointFlags::SIGNAL`] is not set, or the connection has the address under another identifier.
    pub fn announce(&mut self, token: Token, endpoint: &Endpoint) -> Result<(), NetlinkError> {
        let attributes =
            Writer::default().u32(attribute::TOKEN, token.0).nested(attribute::ADDR, endpoint.write());
        self.tell(command::ANNOUNCE, format!("announcing {endpoint} to the peer of {token}"), attributes)
    }

    /// Takes an announced address back (REMOVE_ADDR, RFC 8684 section 3.4.2), and closes the subflows that use it. 0 is the address
    /// of the first subflow.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`]: `EINVAL` if there is no such connection, the kernel manages it, or it has no such address.
    pub fn remove(&mut self, token: Token, id: u8) -> Result<(), NetlinkError> {
        let attributes = Writer::default().u32(attribute::TOKEN, token.0).u8(attribute::LOC_ID, id);
        self.tell(command::REMOVE, format!("removing the address {id} of connection {token}"), attributes)
    }

    /// Opens a subflow of a connection that user space manages, from a local address with its identifier to an address of the peer.
    /// Of the flags, [`EndpointFlags::BACKUP`] counts. That the request succeeds says that the first packet was sent; the rest is
    /// told by [`Event::SubflowEstablished`](super::Event::SubflowEstablished) or not at all.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`]: `EINVAL` if there is no such connection, the kernel manages it, or the connection has the address
    /// under another identifier; `EADDRNOTAVAIL`, `ENETUNREACH` and others of connect(2).
    pub fn create_subflow(
        &mut self,
        token: Token,
        local: &Endpoint,
        remote: SocketAddr,
    ) -> Result<(), NetlinkError> {
        let what = format!("opening a subflow of connection {token} from {local} to {remote}");
        self.tell(command::SUBFLOW_CREATE, what, of_subflow(token, local.write(), remote))
    }

    /// Closes a subflow of a connection that user space manages. What it has not delivered goes over the others.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`]: `ESRCH` if there is no such subflow, `EINVAL` if there is no such connection or the kernel manages
    /// it.
    pub fn destroy_subflow(&mut self, token: Token, subflow: SubflowAddress) -> Result<(), NetlinkError> {
        let what = format!("closing the subflow {subflow} of connection {token}");
        self.tell(command::SUBFLOW_DESTROY, what, of_subflow(token, end(subflow.local), subflow.remote))
    }

    fn tell(&mut self, command: u8, what: String, attributes: Writer) -> Result<(), NetlinkError> {
        let question = self.question(command, what, attributes);
        self.socket.ask(&question).map(|_| ())
    }

    fn question(&self, command: u8, what: String, attributes: Writer) -> Question {
        Question {
            what,
            kind: self.family.id,
            body: body(command, VERSION, attributes),
            attributes_at: HEADER,
            words: uapi::words,
        }
    }
}

/// What names a subflow, from the local end's attributes on.
pub(super) fn of_subflow(token: Token, local: Writer, remote: SocketAddr) -> Writer {
    Writer::default()
        .u32(attribute::TOKEN, token.0)
        .nested(attribute::ADDR, local)
        .nested(attribute::ADDR_REMOTE, end(remote))
}

fn end(end: SocketAddr) -> Writer {
    Writer::default()
        .u16(address::FAMILY, family(end.ip()))
        .either_ip(address::ADDR4, address::ADDR6, end.ip())
        .u16(address::PORT, end.port())
}

pub(super) fn endpoint(body: &Body) -> Result<Endpoint, Malformed> {
    let (_, attributes) = split::<{ attribute::END }>(&body.bytes)?;
    Endpoint::read(attributes.bytes(attribute::ADDR).ok_or(Malformed("an endpoint is missing"))?)
}

pub(super) fn limits(body: &Body) -> Result<Limits, Malformed> {
    let (_, attributes) = split::<{ attribute::END }>(&body.bytes)?;
    let limit = |kind| attributes.u32(kind)?.ok_or(Malformed("a limit is missing"));
    Ok(Limits { add_addr_accepted: limit(attribute::RCV_ADD_ADDRS)?, subflows: limit(attribute::SUBFLOWS)? })
}

fn first<T>(
    answer: Vec<Body>,
    question: &Question,
    read: fn(&Body) -> Result<T, Malformed>,
) -> Result<T, NetlinkError> {
    answer.first().ok_or(Malformed("it is empty")).and_then(read).map_err(malformed(question))
}

fn malformed(question: &Question) -> impl Fn(Malformed) -> NetlinkError {
    |source| NetlinkError::Malformed { request: question.what.clone(), source }
}
