//! Which interfaces lead to the other end, and sockets that keep to one of them.
//!
//! A socket of a path is bound to an address of its interface, and to the interface itself, so that it leaves there whatever the
//! routing rules say; a route to the peer through that interface must exist. An interface is looked up again at each connection:
//! its address may have changed.
//!
//! Left out: addresses of IPv6 that are valid on their link only, and asking the kernel's routing rules: a path that only a rule
//! forbids is tried, and fails when it connects.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr, TcpStream},
    os::fd::AsFd as _,
    str::FromStr,
    time::Duration,
};

use anabranch_netlink::{
    NetlinkError,
    mptcp::{Choice, Kept},
    rtnetlink::{Address, Link, Route, RouteKind, Rtnetlink},
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, Socket, Type};

use crate::{Stop, clock};

/// A path as the user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Via {
    /// An interface, by its name.
    Interface(String),
    /// An address of this machine.
    Address(IpAddr),
}

impl FromStr for Via {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        let is_name = (1..16).contains(&text.len()) && !text.contains(['/', ' ']);
        match is_name {
            true => Ok(Self::Interface(text.to_owned())),
            false => Err(format!("\"{text}\" is neither an address nor the name of an interface")),
        }
    }
}

impl fmt::Display for Via {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface(name) => out.write_str(name),
            Self::Address(address) => write!(out, "{address}"),
        }
    }
}

/// Why there is no path or no connection.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// The kernel does not tell its interfaces.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// There is no such interface, or it is down.
    #[error("there is no interface \"{name}\" that is up; there are: {known}")]
    NoInterface {
        /// What was asked for.
        name: String,
        /// Those that are up.
        known: String,
    },
    /// It has no address of the peer's kind.
    #[error("the interface {name} has no address with which {peer} could be reached")]
    NoAddress {
        /// Which interface.
        name: String,
        /// Whom to reach.
        peer: IpAddr,
    },
    /// No interface has a route to the peer.
    #[error("no interface has a route to {peer}")]
    NoRoute {
        /// Whom to reach.
        peer: IpAddr,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    Socket {
        /// What was being done.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// This end was told to stop.
    #[error("stopped")]
    Stopped,
}

/// What a socket's protocol became.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A socket of Multipath TCP.
    Mptcp,
    /// One that was opened as that and speaks TCP: the peer has no Multipath TCP, or something on the way has taken it out.
    FallenBack,
    /// A socket of TCP: this kernel has no Multipath TCP, or it was not wanted.
    Tcp,
}

impl fmt::Display for Transport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if *self == Self::Mptcp { "MPTCP" } else { "TCP" })
    }
}

/// How sockets are made.
#[derive(Clone, Copy, Debug)]
pub struct SocketOptions {
    /// Multipath TCP, where there is any.
    pub mptcp: bool,
    /// For what is sent, in bytes as the kernel counts them; none: the kernel adapts it.
    pub send_buffer_bytes: Option<usize>,
    /// For what is received, likewise.
    pub receive_buffer_bytes: Option<usize>,
}

impl SocketOptions {
    /// With a choice, user space is to manage it.
    fn open(&self, domain: Domain, choice: Option<&Choice>) -> io::Result<(Socket, Transport)> {
        let create = || Socket::new(domain, Type::STREAM, Some(Protocol::MPTCP));
        // Where it cannot be chosen any more, there are no backups, which is said when they are opened.
        let created = choice.and_then(|choice| choice.in_user_space(create).ok());
        let (socket, transport) = match self.mptcp {
            true => match created.unwrap_or_else(create) {
                Ok(socket) => (socket, Transport::Mptcp),
                // The kernel lacks it (EPROTONOSUPPORT, EINVAL) or `net.mptcp.enabled` is 0 (ENOPROTOOPT).
                Err(_) => (Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?, Transport::Tcp),
            },
            false => (Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?, Transport::Tcp),
        };
        // The kernel doubles what it is given, for its own overhead.
        if let Some(bytes) = self.send_buffer_bytes {
            socket.set_send_buffer_size(bytes / 2)?;
        }
        if let Some(bytes) = self.receive_buffer_bytes {
            socket.set_recv_buffer_size(bytes / 2)?;
        }
        Ok((socket, transport))
    }

    /// A socket that listens; connections inherit its buffers.
    ///
    /// # Errors
    /// If the address is taken, or not this machine's.
    pub fn listen(&self, address: SocketAddr) -> Result<(std::net::TcpListener, Transport), PathError> {
        let failed = |source| PathError::Socket { what: format!("listening on {address}"), source };
        let (socket, transport) = self.open(Domain::for_address(address), None).map_err(failed)?;
        let listen = || {
            socket.set_reuse_address(true)?;
            if address.is_ipv6() {
                socket.set_only_v6(false)?;
            }
            socket.bind(&address.into())?;
            socket.listen(64)?;
            socket.set_nonblocking(true)
        };
        listen().map_err(failed)?;
        Ok((socket.into(), transport))
    }
}

/// A way to the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The interface or address; none: whichever the kernel takes.
    via: Option<Via>,
}

/// A connection that has been opened.
pub(crate) struct Opened {
    pub(crate) socket: TcpStream,
    pub(crate) transport: Transport,
    /// Keeps whoever manages all connections from managing this one, if user space does.
    pub(crate) kept: Option<Kept>,
}

/// Where subflows of a path begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) address: IpAddr,
    pub(crate) interface: u32,
}

/// The paths and this machine as they are now.
pub(crate) struct Here {
    /// Of each path; none if it has no address now, or its link is down.
    pub(crate) places: Vec<Option<Place>>,
    /// All addresses of links that are not down.
    pub(crate) addresses: Vec<IpAddr>,
}

impl Here {
    /// Asks the kernel.
    pub(crate) fn look(paths: &[Path], peer: IpAddr) -> Result<Self, NetlinkError> {
        let mut interfaces = Interfaces::read()?;
        interfaces.links.retain(|link| link.is_running);
        let Interfaces { links, addresses, .. } = &mut interfaces;
        addresses.retain(|known| links.iter().any(|link| link.index == known.interface));
        let place = |path: &Path| match path.via.as_ref()? {
            Via::Address(address) => {
                let known = interfaces.addresses.iter().find(|known| known.address == *address)?;
                known.is_usable.then_some(Place { address: *address, interface: known.interface })
            }
            Via::Interface(name) => {
                let link = interfaces.links.iter().find(|link| link.name == *name)?;
                let address = interfaces.address_of(link, peer)?;
                Some(Place { address, interface: link.index })
            }
        };
        let places = paths.iter().map(place).collect();
        Ok(Self { places, addresses: interfaces.addresses.iter().map(|known| known.address).collect() })
    }
}

/// What the kernel says of its interfaces.
struct Interfaces {
    links: Vec<Link>,
    addresses: Vec<Address>,
    routes: Vec<Route>,
}

impl Path {
    /// The path that a user has named.
    pub fn named(via: Via) -> Self {
        Self { via: Some(via) }
    }

    /// One path per interface that has an address and a route to the peer; for a peer on this machine the one that the kernel takes.
    ///
    /// # Errors
    /// If there is none.
    pub fn all_to(peer: IpAddr) -> Result<Vec<Self>, PathError> {
        let interfaces = Interfaces::read()?;
        let is_local = peer.is_loopback() || interfaces.addresses.iter().any(|known| known.address == peer);
        if is_local {
            return Ok(vec![Self { via: None }]);
        }
        let links = interfaces.links.iter().filter(|link| link.is_running && !link.is_loopback);
        let usable = links.filter(|link| {
            interfaces.address_of(link, peer).is_some() && interfaces.leads_to(link.index, peer)
        });
        let paths: Vec<Self> =
            usable.map(|link| Self { via: Some(Via::Interface(link.name.clone())) }).collect();
        if paths.is_empty() { Err(PathError::NoRoute { peer }) } else { Ok(paths) }
    }

    /// The address to bind to and the interface, as they are now.
    ///
    /// # Errors
    /// If the interface is not there, or has no address for this peer.
    pub fn local(&self, peer: IpAddr) -> Result<(Option<IpAddr>, Option<String>), PathError> {
        let interfaces = match &self.via {
            None => return Ok((None, None)),
            Some(_) => Interfaces::read()?,
        };
        match self.via.as_ref().expect("looked at above") {
            Via::Address(address) => {
                let known = interfaces.addresses.iter().find(|known| known.address == *address);
                let link = known.and_then(|known| {
                    interfaces.links.iter().find(|link| link.index == known.interface && !link.is_loopback)
                });
                Ok((Some(*address), link.map(|link| link.name.clone())))
            }
            Via::Interface(name) => {
                let up = || interfaces.links.iter().filter(|link| link.is_up);
                let link = up().find(|link| link.name == *name).ok_or_else(|| PathError::NoInterface {
                    name: name.clone(),
                    known: up().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", "),
                })?;
                let address = interfaces.address_of(link, peer);
                let address = address.ok_or_else(|| PathError::NoAddress { name: name.clone(), peer })?;
                Ok((Some(address), (!link.is_loopback).then(|| name.clone())))
            }
        }
    }

    /// Opens a connection, within that time. With a choice, user space is to manage it.
    ///
    /// # Errors
    /// If it cannot be opened, for whichever reason.
    pub(crate) fn connect(
        &self,
        peer: SocketAddr,
        options: &SocketOptions,
        choice: Option<&Choice>,
        patience: Duration,
        stop: &Stop,
    ) -> Result<Opened, PathError> {
        let (local, device) = self.local(peer.ip())?;
        let failed = |source| PathError::Socket { what: format!("connecting to {peer} via {self}"), source };
        let (socket, transport) = options.open(Domain::for_address(peer), choice).map_err(failed)?;
        let mut kept = None;
        let begin = || {
            if let Some(device) = device {
                socket.bind_device(Some(device.as_bytes()))?;
            }
            if let Some(local) = local {
                socket.bind(&SocketAddr::new(local, 0).into())?;
            }
            if choice.is_some()
                && let Some(bound) = socket.local_addr()?.as_socket()
            {
                // Without it, an agent that manages all connections would manage this one, too.
                kept = Kept::say(bound).ok();
            }
            socket.set_tcp_nodelay(true)?;
            socket.set_nonblocking(true)?;
            match socket.connect(&peer.into()) {
                Err(error) if error.raw_os_error() != Some(nix::errno::Errno::EINPROGRESS as i32) => {
                    Err(error)
                }
                _ => Ok(()),
            }
        };
        begin().map_err(failed)?;
        let until = clock::now() + patience;
        loop {
            if stop.is_raised() {
                return Err(PathError::Stopped);
            }
            let left = until.saturating_duration_since(clock::now());
            if left.is_zero() {
                return Err(failed(io::ErrorKind::TimedOut.into()));
            }
            let tick = left.min(Duration::from_millis(200)) + Duration::from_millis(1);
            let tick = PollTimeout::try_from(tick).expect("a tick is short");
            let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
            match poll(&mut fds, tick) {
                Ok(0) | Err(nix::errno::Errno::EINTR) => {}
                Ok(_) => break,
                Err(error) => return Err(failed(error.into())),
            }
        }
        match socket.take_error().map_err(failed)? {
            Some(error) => Err(failed(error)),
            None => Ok(Opened { socket: socket.into(), transport, kept }),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.via {
            Some(via) => via.fmt(out),
            None => out.write_str("default"),
        }
    }
}

impl Interfaces {
    fn read() -> Result<Self, NetlinkError> {
        let mut netlink = Rtnetlink::open()?;
        Ok(Self { links: netlink.links()?, addresses: netlink.addresses()?, routes: netlink.routes()? })
    }

    /// The first address of a link with which a connection to the peer can begin.
    fn address_of(&self, link: &Link, peer: IpAddr) -> Option<IpAddr> {
        const UNIVERSE: u8 = 0;
        let of_link = self.addresses.iter().filter(|known| known.interface == link.index && known.is_usable);
        let fit = of_link.filter(|known| {
            known.address.is_ipv4() == peer.is_ipv4() && (known.scope == UNIVERSE || link.is_loopback)
        });
        fit.min_by_key(|known| known.is_deprecated).map(|known| known.address)
    }

    /// Whether any table has a route to the peer through the link.
    fn leads_to(&self, link: u32, peer: IpAddr) -> bool {
        let through = self.routes.iter().filter(|route| {
            route.kind == RouteKind::Unicast && route.next_hops.iter().any(|hop| hop.interface == link)
        });
        through.into_iter().any(|route| covers(route.destination, route.prefix_length, peer))
    }
}

/// Whether an address is in a network.
fn covers(network: IpAddr, prefix_length: u8, address: IpAddr) -> bool {
    let (network, address, width) = match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            (u128::from(network.to_bits()), u128::from(address.to_bits()), 32)
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => (network.to_bits(), address.to_bits(), 128),
        _ => return false,
    };
    let free = width - u32::from(prefix_length).min(width);
    free == 128 || network >> free == address >> free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_covers_the_addresses_with_its_prefix() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        for (network, length, address, is_in) in [
            ("10.0.0.0", 8, "10.255.0.1", true),
            ("10.0.0.0", 8, "11.0.0.1", false),
            ("0.0.0.0", 0, "192.0.2.1", true),
            ("192.0.2.1", 32, "192.0.2.1", true),
            ("192.0.2.1", 32, "192.0.2.0", false),
            ("::", 0, "2001:db8::1", true),
            ("::", 0, "192.0.2.1", false),
            ("2001:db8::", 32, "2001:db8:1::1", true),
            ("2001:db8::", 32, "2001:db9::1", false),
        ] {
            assert_eq!(covers(ip(network), length, ip(address)), is_in, "{network}/{length} {address}");
        }
    }

    #[test]
    fn a_path_is_named_by_interface_or_address() {
        assert_eq!("wlan0".parse(), Ok(Via::Interface("wlan0".to_owned())));
        assert_eq!("10.0.0.1".parse(), Ok(Via::Address("10.0.0.1".parse().unwrap())));
        assert!("a name that is too long".parse::<Via>().is_err() && "".parse::<Via>().is_err());
    }
}
