//! A subflow over each other path, for each of our sockets and for no others: this process is the path manager of its own connections.
//!
//! Linux chooses the path manager when a socket is created (`net.mptcp.path_manager`), so that it is set to user space for the moment of
//! the system call ([`Choice::in_user_space`](anabranch_netlink::mptcp::Choice::in_user_space)); subflows are then opened by
//! `MPTCP_PM_CMD_SUBFLOW_CREATE`, with the flag `backup`. Nothing else changes in the network namespace, and nothing stays when the
//! process is killed. An agent that manages the whole namespace leaves our connections alone
//! ([`Kept`](anabranch_netlink::mptcp::Kept)).
//!
//! What is missing is opened again: a backup that the kernel or the peer has closed, and the path's own subflow, too, as a regular one,
//! so that a connection that lives on by its backups alone returns to its path. A path whose address has changed has its
//! subflows from the new one. Those of an address that this machine has no more, or whose link is down, are closed, if another is
//! there: what was under way on them then goes over that one at once, and not after a timeout.
//!
//! Left out: the events of the kernel. A subflow that is closed is missing for a second at most.

use std::{
    collections::BTreeMap,
    iter,
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

use anabranch_netlink::{
    NetlinkError,
    diag::{Connection, SocketDiag, Subflow},
    mptcp::{Endpoint, EndpointFlags, PathManager, Token},
};

use nix::errno::Errno;

use super::Watched;
use crate::{
    path::{Here, Path, Place},
    sockets::{Ends, canonical},
};

/// First and longest pause between attempts to open the same subflow.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(8));
const EPERM: i32 = Errno::EPERM as i32;
const EINVAL: i32 = Errno::EINVAL as i32;
/// How many identifiers are tried for an address: one may be another's, of before.
const IDS: usize = 4;

/// What opens them.
pub(super) struct Subflows<'a> {
    paths: &'a [Path],
    peer: SocketAddr,
    manager: PathManager,
    diag: SocketDiag,
    tries: BTreeMap<(Ends, IpAddr), Try>,
}

/// A subflow that was not there.
struct Try {
    next_at: Instant,
    pause: Duration,
    /// How often the kernel has said that the connection is not ours to manage, or gone.
    refusals: u32,
}

impl<'a> Subflows<'a> {
    pub(super) fn open(paths: &'a [Path], peer: SocketAddr) -> Result<Self, NetlinkError> {
        let (manager, diag) = (PathManager::open()?, SocketDiag::open()?);
        Ok(Self { paths, peer, manager, diag, tries: BTreeMap::new() })
    }

    /// Opens what is missing, and closes what cannot carry anything any more.
    ///
    /// # Errors
    /// If the kernel does not tell what there is, or refuses for good.
    pub(super) fn look(&mut self, connections: &[Watched], now: Instant) -> Result<(), NetlinkError> {
        self.tries.retain(|(ends, _), _| connections.iter().any(|watched| watched.ends == *ends));
        if connections.is_empty() {
            return Ok(());
        }
        let here = Here::look(self.paths, self.peer.ip())?;
        let (listed, subflows) = (self.diag.connections()?, self.diag.subflows()?);
        let mut refusal = Ok(());
        for watched in connections {
            let found = listed.iter().find(|connection| {
                canonical((connection.address.local, connection.address.remote)) == watched.ends
            });
            // One that has fallen back has one subflow for good.
            let is_ready = |found: &&Connection| {
                found.token.0 != 0 && !found.is_fallen_back && found.state.is_established()
            };
            let Some(connection) = found.filter(is_ready) else { continue };
            let token = connection.token;
            let of: Vec<_> = subflows.iter().filter(|subflow| subflow.token == token).collect();
            for (path, place) in wanted(&here.places, watched.path) {
                refusal = refusal.and(self.open_missing(watched, token, &of, path, place, now));
            }
            let is_gone = |subflow: &Subflow| !here.addresses.contains(&local(subflow));
            // The last one is kept: its address may return.
            if of.iter().any(|subflow| !is_gone(subflow) && subflow.state.is_established()) {
                for subflow in of.iter().filter(|subflow| is_gone(subflow)) {
                    // It may have ended by itself meanwhile.
                    let _ = self.manager.destroy_subflow(token, subflow.address);
                }
            }
        }
        refusal
    }

    fn open_missing(
        &mut self,
        watched: &Watched,
        token: Token,
        of: &[&Subflow],
        path: usize,
        place: Place,
        now: Instant,
    ) -> Result<(), NetlinkError> {
        let key = (watched.ends, place.address);
        let states = of.iter().filter(|subflow| local(subflow) == place.address).map(|subflow| subflow.state);
        if states.clone().any(|state| state.is_established()) {
            self.tries.remove(&key);
            return Ok(());
        }
        if states.clone().any(|state| state.is_opening()) {
            return Ok(());
        }
        let attempt = self.tries.entry(key).or_insert(Try { next_at: now, pause: PAUSES.0, refusals: 0 });
        if attempt.next_at > now {
            return Ok(());
        }
        attempt.next_at = now + attempt.pause;
        attempt.pause = (attempt.pause * 2).min(PAUSES.1);
        let flags = if path == watched.path { EndpointFlags::NONE } else { EndpointFlags::BACKUP };
        let endpoint = Endpoint { flags, interface: Some(place.interface), ..Endpoint::new(place.address) };
        match create(&mut self.manager, token, endpoint, path, self.peer) {
            Err(error) if error.errno() == Some(EPERM) => Err(error),
            // So is one refused whose connection is just over: it is not looked after the next time.
            Err(error) if error.errno() == Some(EINVAL) => {
                attempt.refusals += 1;
                if attempt.refusals > 1 { Err(error) } else { Ok(()) }
            }
            // The path is down, and is tried again.
            Err(_) | Ok(()) => Ok(()),
        }
    }
}

/// Where a connection of that path is to have subflows: its own path first, and each address once.
fn wanted(places: &[Option<Place>], own: usize) -> Vec<(usize, Place)> {
    let others = (0..places.len()).filter(|path| *path != own);
    let mut wanted: Vec<(usize, Place)> = Vec::new();
    for path in iter::once(own).chain(others) {
        let place =
            places[path].filter(|place| wanted.iter().all(|(_, known)| known.address != place.address));
        wanted.extend(place.map(|place| (path, place)));
    }
    wanted
}

fn local(subflow: &Subflow) -> IpAddr {
    subflow.address.local.ip().to_canonical()
}

/// Opens a subflow, with an identifier that no other address of the connection has.
fn create(
    manager: &mut PathManager,
    token: Token,
    endpoint: Endpoint,
    path: usize,
    peer: SocketAddr,
) -> Result<(), NetlinkError> {
    let mut outcome = Ok(());
    for attempt in 0..IDS {
        // 0 is the first subflow's.
        let id = u8::try_from(1 + (path + 64 * attempt) % 255).expect("less than 256");
        outcome = manager.create_subflow(token, &Endpoint { id, ..endpoint }, peer);
        if !matches!(&outcome, Err(error) if error.errno() == Some(EINVAL)) {
            break;
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_has_its_own_path_and_each_other_address_once() {
        let place = |last: u8, interface| Place { address: [10, 0, 0, last].into(), interface };
        let places = [Some(place(1, 1)), None, Some(place(2, 2)), Some(place(1, 1)), Some(place(3, 1))];
        let wanted = |own| wanted(&places, own).iter().map(|(path, _)| *path).collect::<Vec<_>>();
        assert_eq!(wanted(0), [0, 2, 4]);
        assert_eq!(wanted(1), [0, 2, 4], "its own is down");
        assert_eq!(wanted(3), [3, 2, 4], "of the same address its own counts");
    }
}
