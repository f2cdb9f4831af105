//! What the sockets of a transfer are, and how much memory they hold, as the kernel tells by sock_diag(7).
//!
//! Counted is what connections hold: for sending, what is not sent or not acknowledged; received, what this program has not taken,
//! out-of-order data and that of subflows included. What subflows hold for sending are references to data of their
//! connection, and is not counted again. Samples are taken five times a second, at first every 50 ms: a peak between two is not seen. Each
//! costs the kernel a look at its whole table of TCP sockets, about a millisecond; where that is slower, samples are fewer.
//!
//! Left out: what the kernel keeps for a socket beside its data, and subflows other than the first where this process may not know whose they are
//! (without `CAP_NET_ADMIN`).

use std::{
    net::{SocketAddr, TcpStream},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anabranch_netlink::{
    NetlinkError,
    diag::{Holding, SocketDiag},
};
use socket2::SockRef;

use crate::{clock, path::Transport};

/// Time between samples: of the first ones, and after that.
const PERIODS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(200));
/// How many are the first ones.
const FIRST: usize = 10;
/// Between samples is so many times the time that one takes, at least.
const PAUSE: u32 = 50;

/// The two ends of a connection.
pub(crate) type Ends = (SocketAddr, SocketAddr);

/// Ends as the kernel lists them, with IPv4 as such.
pub(crate) fn canonical((local, remote): Ends) -> Ends {
    let plain = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
    (plain(local), plain(remote))
}

pub(crate) fn ends_of(socket: &TcpStream) -> Option<Ends> {
    Some(canonical((socket.local_addr().ok()?, socket.peer_addr().ok()?)))
}

/// What a socket that is connected speaks, once its first data have come; `opened` is what it was opened as.
pub(crate) fn transport_of(socket: &TcpStream, opened: Transport) -> Transport {
    let is_mptcp = SockRef::from(socket).protocol().ok().flatten() == Some(socket2::Protocol::MPTCP);
    if !is_mptcp {
        return Transport::Tcp;
    }
    let listed = SocketDiag::open().and_then(|mut diag| diag.connections());
    let (Some(ends), Ok(listed)) = (ends_of(socket), listed) else { return opened };
    // One that has fallen back is listed no more, or as that.
    let is_multipath = listed.iter().any(|connection| {
        let address = connection.address;
        canonical((address.local, address.remote)) == ends && !connection.is_fallen_back
    });
    if is_multipath { Transport::Mptcp } else { Transport::FallenBack }
}

/// The most that the sockets of a transfer have held at once, in bytes as the kernel counts, with its overhead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketMemory {
    /// In both directions together.
    pub peak_bytes: u64,
    /// For sending.
    pub peak_send_bytes: u64,
    /// Received.
    pub peak_receive_bytes: u64,
    /// How often somebody looked.
    pub samples: u64,
    /// Subflows other than the first were seen, where there were any.
    pub has_all_subflows: bool,
}

/// Connections whose memory is looked at.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    watched: Mutex<Watched>,
    over: Condvar,
}

#[derive(Debug, Default)]
struct Watched {
    present: Vec<Ends>,
    memory: SocketMemory,
    is_over: bool,
}

/// A connection that is watched as long as this is there.
pub(crate) struct Presence<'a> {
    sockets: &'a Sockets,
    ends: Option<Ends>,
}

impl Sockets {
    /// A connection has been opened.
    pub(crate) fn enter(&self, socket: &TcpStream) -> Presence<'_> {
        let ends = ends_of(socket);
        self.lock().present.extend(ends);
        Presence { sockets: self, ends }
    }

    /// What was seen so far.
    pub(crate) fn memory(&self) -> SocketMemory {
        self.lock().memory
    }

    /// Ends [`work`](Self::work).
    pub(crate) fn close(&self) {
        self.lock().is_over = true;
        self.over.notify_all();
    }

    /// Looks again and again until it is closed, or the kernel does not tell.
    pub(crate) fn work(&self) {
        let Ok(mut diag) = SocketDiag::open() else { return };
        let mut looks = 0;
        let mut took = Duration::ZERO;
        loop {
            let period = if looks < FIRST { PERIODS.0 } else { PERIODS.1 };
            let period = period.max(took * PAUSE);
            let present = {
                let (watched, _) = self
                    .over
                    .wait_timeout_while(self.lock(), period, |watched| !watched.is_over)
                    .unwrap_or_else(PoisonError::into_inner);
                if watched.is_over {
                    return;
                }
                watched.present.clone()
            };
            if present.is_empty() {
                continue;
            }
            looks += 1;
            let began_at = clock::now();
            let Ok(sample) = sample(&mut diag, &present) else { return };
            took = clock::now().duration_since(began_at);
            let memory = &mut self.lock().memory;
            memory.peak_bytes = memory.peak_bytes.max(sample.peak_bytes);
            memory.peak_send_bytes = memory.peak_send_bytes.max(sample.peak_send_bytes);
            memory.peak_receive_bytes = memory.peak_receive_bytes.max(sample.peak_receive_bytes);
            memory.has_all_subflows =
                sample.has_all_subflows && (memory.samples == 0 || memory.has_all_subflows);
            memory.samples += 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        let present = &mut self.sockets.lock().present;
        if let Some(at) = present.iter().position(|ends| Some(*ends) == self.ends) {
            present.swap_remove(at);
        }
    }
}

/// What these connections hold now.
fn sample(diag: &mut SocketDiag, present: &[Ends]) -> Result<SocketMemory, NetlinkError> {
    // A kernel without Multipath TCP has no list of its connections.
    let connections = diag.connections().unwrap_or_default();
    let held = diag.connections_memory().unwrap_or_default();
    Ok(sum(present, &connections, &held, &diag.tcp_memory()?))
}

fn sum(
    present: &[Ends],
    connections: &[anabranch_netlink::diag::Connection],
    held: &[Holding],
    tcp: &[Holding],
) -> SocketMemory {
    let is_ours =
        |holding: &&Holding| present.contains(&canonical((holding.address.local, holding.address.remote)));
    let tokens: Vec<_> = connections
        .iter()
        .filter(|connection| {
            present.contains(&canonical((connection.address.local, connection.address.remote)))
        })
        .map(|connection| connection.token)
        .collect();
    let above: Vec<_> = held.iter().filter(is_ours).collect();
    let below: Vec<_> = tcp
        .iter()
        .filter(|holding| is_ours(holding) || holding.connection.is_some_and(|token| tokens.contains(&token)))
        .collect();
    let receive = above
        .iter()
        .chain(&below)
        .map(|holding| u64::from(holding.memory.receive_bytes) + u64::from(holding.memory.backlog_bytes));
    let receive: u64 = receive.sum();
    // A TCP socket that is no subflow holds its own.
    let is_alone = |holding: &&&Holding| {
        !above.iter().any(|connection| connection.address == holding.address)
            && holding.connection.is_none_or(|token| !tokens.contains(&token))
    };
    let alone = below.iter().filter(is_alone);
    let send: u64 = above.iter().chain(alone).map(|holding| u64::from(holding.memory.send_bytes)).sum();
    SocketMemory {
        peak_bytes: receive + send,
        peak_send_bytes: send,
        peak_receive_bytes: receive,
        samples: 1,
        has_all_subflows: above.is_empty() || below.iter().any(|holding| holding.connection.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use anabranch_netlink::{
        diag::{Memory, TcpState},
        mptcp::{SubflowAddress, Token},
    };

    use super::*;

    fn holding(local: &str, connection: Option<u32>, receive_bytes: u32, send_bytes: u32) -> Holding {
        let address =
            SubflowAddress { local: local.parse().unwrap(), remote: "10.0.0.9:7427".parse().unwrap() };
        let memory = Memory { receive_bytes, backlog_bytes: 1, send_bytes };
        Holding { address, state: TcpState::Established, connection: connection.map(Token), memory }
    }

    #[test]
    fn data_for_sending_counts_once_and_received_data_wherever_it_is() {
        let ends = |local: &str| (local.parse().unwrap(), "10.0.0.9:7427".parse().unwrap());
        let present = [ends("10.0.0.1:1000")];
        let above = [holding("10.0.0.1:1000", None, 100, 5000), holding("10.0.0.1:2000", None, 7, 7)];
        let below = [holding("10.0.0.1:1000", None, 30, 4000), holding("10.0.0.1:2000", None, 9, 9)];
        let sum = sum(&present, &[], &above, &below);
        assert_eq!((sum.peak_send_bytes, sum.peak_receive_bytes, sum.peak_bytes), (5000, 132, 5132));
        assert!(!sum.has_all_subflows, "nothing says whose the subflows are");
    }

    #[test]
    fn a_tcp_socket_holds_its_own() {
        let present =
            [canonical(("[::ffff:10.0.0.1]:1000".parse().unwrap(), "10.0.0.9:7427".parse().unwrap()))];
        let sum = sum(&present, &[], &[], &[holding("10.0.0.1:1000", None, 30, 4000)]);
        assert_eq!((sum.peak_send_bytes, sum.peak_receive_bytes, sum.has_all_subflows), (4000, 31, true));
    }
}
