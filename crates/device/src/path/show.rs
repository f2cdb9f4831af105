//! Endpoints, limits, connections and subflows, as text and as JSON.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    path::Path,
};

use anabranch_netlink::{
    diag::{self, SocketDiag},
    mptcp::PathManager,
};
use serde::Serialize;

use super::Interfaces;
use crate::{DeviceError, doctor::path_manager_in};

/// What the path manager of a network namespace has.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// Who manages connections that begin now: `kernel` or `userspace`; nothing before Linux 5.19.
    pub path_manager: Option<String>,
    /// Of the kernel's path manager.
    pub limits: LimitsShown,
    /// By identifier.
    pub endpoints: Vec<EndpointShown>,
    /// By token.
    pub connections: Vec<ConnectionShown>,
}

/// `ip mptcp limits show`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LimitsShown {
    /// Subflows besides the first.
    pub subflows: u32,
    /// Addresses of the peer that are used.
    pub add_addr_accepted: u32,
}

/// `ip mptcp endpoint show`.
#[derive(Clone, Debug, Serialize)]
pub struct EndpointShown {
    /// Its identifier.
    pub id: u8,
    /// The address.
    pub address: IpAddr,
    /// The port that is announced with it.
    pub port: Option<u16>,
    /// Name of the interface.
    pub dev: Option<String>,
    /// The words of ip-mptcp(8).
    pub flags: Vec<String>,
}

/// `ss -M`.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectionShown {
    /// Eight hexadecimal digits.
    pub token: String,
    /// In the words of ss(8).
    pub state: &'static str,
    /// This machine's end of the first subflow.
    pub local: SocketAddr,
    /// The peer's end of the first subflow.
    pub remote: SocketAddr,
    /// It speaks plain TCP.
    pub fallback: bool,
    /// User that opened it.
    pub uid: u32,
    /// Written by the application and not acknowledged at the data level.
    pub unacked_bytes: u64,
    /// Sent at the data level; Linux 6.5, as the next two.
    pub sent_bytes: Option<u64>,
    /// Received at the data level.
    pub received_bytes: Option<u64>,
    /// Timeouts of the data level.
    pub retransmits: Option<u32>,
    /// Its subflows, by identifiers.
    pub subflows: Vec<SubflowShown>,
}

/// `ss -ti`.
#[derive(Clone, Debug, Serialize)]
pub struct SubflowShown {
    /// Identifier of the local address.
    pub id: u8,
    /// Identifier of the peer's address.
    pub remote_id: u8,
    /// In the words of ss(8).
    pub state: &'static str,
    /// This machine's end.
    pub local: SocketAddr,
    /// The peer's end.
    pub remote: SocketAddr,
    /// Name of the interface that it is bound to.
    pub dev: Option<String>,
    /// It was opened by this machine.
    pub opened_here: bool,
    /// This machine wants it as a backup.
    pub backup: bool,
    /// The peer does.
    pub peer_backup: bool,
    /// Smoothed round-trip time; 0 before the first sample.
    pub rtt_us: u32,
    /// Retransmission timeout.
    pub rto_us: u32,
    /// Timeouts in a row.
    pub timeouts: u8,
    /// How often the timeout has doubled.
    pub backoff: u8,
    /// Congestion window.
    pub cwnd_segments: u32,
    /// Slow-start threshold.
    pub ssthresh_segments: Option<u32>,
    /// Segments on their way.
    pub unacked_segments: u32,
    /// Waiting to be sent.
    pub unsent_bytes: u32,
    /// Acknowledged so far.
    pub acked_bytes: u64,
    /// Received so far.
    pub received_bytes: u64,
    /// Segments sent again so far.
    pub retransmits: u32,
}

/// Reads all of it from the namespace that the thread is in.
///
/// # Errors
/// [`DeviceError::Netlink`].
pub fn show() -> Result<Shown, DeviceError> {
    let interfaces = Interfaces::read()?;
    let mut manager = PathManager::open()?;
    let mut diag = SocketDiag::open()?;
    let limits = manager.limits()?;
    let endpoints = manager.endpoints()?.into_iter().map(|endpoint| EndpointShown {
        id: endpoint.id,
        address: endpoint.address,
        port: endpoint.port,
        dev: endpoint.interface.map(|number| interfaces.name(number)),
        flags: endpoint.flags.to_string().split_whitespace().map(str::to_owned).collect(),
    });
    let endpoints = endpoints.collect();
    let subflows = diag.subflows()?;
    let mut connections = diag.connections()?;
    connections.sort_by_key(|connection| connection.token);
    let connections = connections.iter().map(|connection| shown(connection, &subflows, &interfaces));
    Ok(Shown {
        path_manager: path_manager_in(Path::new("/")),
        limits: LimitsShown { subflows: limits.subflows, add_addr_accepted: limits.add_addr_accepted },
        endpoints,
        connections: connections.collect(),
    })
}

fn shown(
    connection: &diag::Connection,
    subflows: &[diag::Subflow],
    interfaces: &Interfaces,
) -> ConnectionShown {
    let mut own: Vec<_> = subflows.iter().filter(|subflow| subflow.token == connection.token).collect();
    own.sort_by_key(|subflow| (subflow.local_id, subflow.remote_id, subflow.address));
    ConnectionShown {
        token: connection.token.to_string(),
        state: connection.state.name(),
        local: connection.address.local,
        remote: connection.address.remote,
        fallback: connection.is_fallen_back,
        uid: connection.user,
        unacked_bytes: connection.unacked_bytes,
        sent_bytes: connection.sent_bytes,
        received_bytes: connection.received_bytes,
        retransmits: connection.retransmits,
        subflows: own.into_iter().map(|subflow| of_subflow(subflow, interfaces)).collect(),
    }
}

fn of_subflow(subflow: &diag::Subflow, interfaces: &Interfaces) -> SubflowShown {
    let figures = &subflow.figures;
    SubflowShown {
        id: subflow.local_id,
        remote_id: subflow.remote_id,
        state: subflow.state.name(),
        local: subflow.address.local,
        remote: subflow.address.remote,
        dev: subflow.interface.map(|number| interfaces.name(number)),
        opened_here: subflow.flags.is_opened_here(),
        backup: subflow.flags.is_backup_here(),
        peer_backup: subflow.flags.is_backup_of_peer(),
        rtt_us: figures.srtt_us,
        rto_us: figures.rto_us,
        timeouts: figures.timeouts,
        backoff: figures.backoff,
        cwnd_segments: figures.cwnd_segments,
        ssthresh_segments: figures.ssthresh_segments,
        unacked_segments: figures.unacked_segments,
        unsent_bytes: figures.unsent_bytes,
        acked_bytes: figures.acked_bytes,
        received_bytes: figures.received_bytes,
        retransmits: figures.retransmits,
    }
}

impl fmt::Display for Shown {
    /// A line each; subflows are indented below their connection.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let manager = self.path_manager.as_deref().unwrap_or("kernel");
        let LimitsShown { subflows, add_addr_accepted } = self.limits;
        write!(
            out,
            "path manager {manager}\nlimits subflows {subflows} add_addr_accepted {add_addr_accepted}"
        )?;
        for endpoint in &self.endpoints {
            write!(out, "\nendpoint {endpoint}")?;
        }
        for connection in &self.connections {
            write!(out, "\nconnection {connection}")?;
            for subflow in &connection.subflows {
                write!(out, "\n  subflow {subflow}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for EndpointShown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} id {}", self.address, self.id)?;
        if let Some(port) = self.port {
            write!(out, " port {port}")?;
        }
        for flag in &self.flags {
            write!(out, " {flag}")?;
        }
        self.dev.iter().try_for_each(|dev| write!(out, " dev {dev}"))
    }
}

impl fmt::Display for ConnectionShown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} {} > {}", self.token, self.state, self.local, self.remote)?;
        if self.fallback {
            write!(out, " fallback")?;
        }
        for (word, bytes) in [("sent", self.sent_bytes), ("received", self.received_bytes)] {
            if let Some(bytes) = bytes {
                write!(out, " {word} {bytes} B")?;
            }
        }
        write!(out, " unacked {} B", self.unacked_bytes)
    }
}

impl fmt::Display for SubflowShown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "id {} remote id {} {} > {}", self.id, self.remote_id, self.local, self.remote)?;
        if let Some(dev) = &self.dev {
            write!(out, " dev {dev}")?;
        }
        write!(out, " {}", self.state)?;
        if self.backup {
            write!(out, " backup")?;
        }
        if self.peer_backup {
            write!(out, " peer-backup")?;
        }
        let milliseconds = |us: u32| f64::from(us) / 1e3;
        write!(out, " rtt {:.3} ms rto {:.0} ms", milliseconds(self.rtt_us), milliseconds(self.rto_us))?;
        if self.timeouts > 0 {
            write!(out, " timeouts {}", self.timeouts)?;
        }
        let Self { cwnd_segments, acked_bytes, received_bytes, retransmits, .. } = self;
        write!(
            out,
            " cwnd {cwnd_segments} acked {acked_bytes} B received {received_bytes} B retransmits {retransmits}"
        )
    }
}
