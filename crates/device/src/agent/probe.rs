//! Whether there is an Internet behind a link that is up: now and then, a connection of TCP over that interface to an end that
//! the configuration names.
//!
//! An answer is an established connection, or one that was refused: something has answered. Two failures in a row take the path away
//! from the policies (`link_up`), the next answer gives it back. Probes run while a connection is managed.
//!
//! Left out, and who could notice: a portal that answers for everybody else counts as the Internet; name the port of a service that it
//! does not intercept. Probes of one interface do not tell which of its peers can be reached.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd},
};

use anabranch_policy::paths::Nanos;
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::socket::{
        AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, getsockopt, setsockopt, socket,
        sockopt::{BindToDevice, SocketError},
    },
};

use super::{Config, ProbeRule, log::Line, network::Network};

/// An attempt that has no answer after this, or after the distance of two if that is shorter, has failed.
const PATIENCE: Nanos = 5_000_000_000;
/// Failures in a row after which a link counts as one without Internet.
const FAILURES: u32 = 2;

/// The probes of all interfaces.
#[derive(Default)]
pub(super) struct Probes {
    links: Vec<Link>,
}

struct Link {
    interface: u32,
    name: String,
    rule: ProbeRule,
    next: Nanos,
    /// An attempt, and when it is given up.
    under_way: Option<(OwnedFd, Nanos)>,
    failures: u32,
}

impl Probes {
    /// Whether a link is worth using as far as probes tell.
    pub(super) fn is_good(&self, interface: u32) -> bool {
        !self.links.iter().any(|link| link.interface == interface && link.failures >= FAILURES)
    }

    /// Readable or writable when an attempt is over.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.links.iter().filter_map(|link| link.under_way.as_ref()).map(|(socket, _)| socket.as_fd())
    }

    /// When there is something to do if no attempt ends before.
    pub(super) fn next(&self) -> Option<Nanos> {
        self.links.iter().map(|link| link.under_way.as_ref().map_or(link.next, |(_, until)| *until)).min()
    }

    /// Ends attempts and begins those that are due; what is worth telling. Links that are down are not probed.
    pub(super) fn work(&mut self, now: Nanos, config: &Config, network: &Network) -> Vec<Line> {
        self.links.retain(|link| network.is_up(link.interface));
        for link in network.links().filter(|link| network.is_up(link.index)) {
            let rule = config.interface(&link.name).and_then(|rule| rule.probe);
            if let Some(rule) = rule
                && self.links.iter().all(|other| other.interface != link.index)
            {
                let (interface, name) = (link.index, link.name.clone());
                self.links.push(Link { interface, name, rule, next: now, under_way: None, failures: 0 });
            }
        }
        self.links.iter_mut().filter_map(|link| link.work(now, network)).collect()
    }

    /// Forgets attempts and what they have told.
    pub(super) fn rest(&mut self) {
        self.links.clear();
    }
}

impl Link {
    fn work(&mut self, now: Nanos, network: &Network) -> Option<Line> {
        let outcome = match &self.under_way {
            Some((socket, until)) => match outcome(socket) {
                None if now >= *until => Some(Err(Errno::ETIMEDOUT)),
                outcome => outcome,
            },
            None if now >= self.next => {
                self.next = now + self.rule.every;
                let nobody = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
                let local = network.local(self.interface, self.rule.to, nobody);
                match local
                    .ok_or(Errno::EADDRNOTAVAIL)
                    .and_then(|local| begin(&self.name, local, self.rule.to))
                {
                    Ok(socket) => {
                        self.under_way = Some((socket, now + PATIENCE.min(self.rule.every)));
                        None
                    }
                    Err(error) => Some(Err(error)),
                }
            }
            None => None,
        }?;
        self.under_way = None;
        self.next = self.next.max(now + 1);
        let was_good = self.failures < FAILURES;
        self.failures = if outcome.is_ok() { 0 } else { self.failures.saturating_add(1) };
        let line = |event| Line::new(event, &self.name).with("to", self.rule.to.to_string());
        match outcome {
            Err(error) if was_good && self.failures >= FAILURES => {
                let line = line("probe-failed").with("failures", self.failures);
                Some(line.with("error", io::Error::from(error).to_string()))
            }
            Ok(()) if !was_good => Some(line("probe-answered")),
            _ => None,
        }
    }
}

/// A connection over an interface, from an address that routes may depend on; its end is not waited for.
fn begin(interface: &str, local: IpAddr, to: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(family, SockType::Stream, flags, None)?;
    setsockopt(&socket, BindToDevice, &interface.into())?;
    bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(local, 0)))?;
    match connect(socket.as_raw_fd(), &SockaddrStorage::from(to)) {
        Ok(()) | Err(Errno::EINPROGRESS | Errno::ECONNREFUSED) => Ok(socket),
        Err(error) => Err(error),
    }
}

/// What has become of it; nothing while it is under way.
fn outcome(socket: &OwnedFd) -> Option<Result<(), Errno>> {
    let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
    if poll(&mut polled, PollTimeout::ZERO).ok()? == 0 {
        return None;
    }
    let error = getsockopt(socket, SocketError).unwrap_or(0);
    Some(match Errno::from_raw(error) {
        _ if error == 0 => Ok(()),
        Errno::ECONNREFUSED => Ok(()),
        error => Err(error),
    })
}
