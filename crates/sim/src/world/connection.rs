//! Connections and the endpoints of their subflows.

use anabranch_cc::{Conn, Controller, MAX_PEERS, Peer};
use anabranch_link::{Nanos, Rng};
use anabranch_policy::scheduler::Scheduler;
use anabranch_scenario::model::{DelayedAck, Join, Protocol};

use super::{
    paths::Manager,
    transfer::{Feeder, Share},
};
use crate::{
    app::Application,
    mptcp::{
        later::Later, meta_receiver::MetaReceiver, meta_sender::MetaSender, remedy::Remedy,
        send_buffer::SendTuning, stale::Watchdog, window::Window,
    },
    tcp::{ecn::Ecn, pacer::Pacer, receiver::Receiver, sender::Sender, super_packet::SuperPacket},
};

/// Where an endpoint is in its handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing has been sent or received.
    Closed,
    /// The opener has sent its SYN.
    SynSent,
    /// The other side has answered it.
    SynReceived,
    /// A joining opener has sent the third packet and waits for the fourth (RFC 8684 section 3.2).
    PreEstablished,
    /// Data may flow.
    Established,
}

/// One end of a subflow.
pub(crate) struct Endpoint {
    /// Its connection.
    pub(crate) connection: u32,
    /// Position of its outgoing route.
    pub(crate) route: u32,
    /// Index of the subflow in its connection.
    pub(crate) subflow: u32,
    pub(crate) phase: Phase,
    pub(crate) backup: bool,
    pub(crate) segment_bytes: u16,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) controller: Controller,
    pub(crate) ecn: Ecn,
    pub(crate) life: Life,
    /// Flags that a middlebox removes from packets on their way here.
    pub(crate) stripped: u16,
    /// Coupling group of its side and slot in it.
    pub(crate) coupled: Option<(u32, u8)>,
    /// When the last acknowledgement of data came, in microseconds.
    pub(crate) last_ack_us: u32,
    pub(crate) jitter: Option<Box<Jitter>>,
    /// For those that pace.
    pub(crate) pacer: Option<Box<Pacer>>,
    /// For those whose receiver looks at PSH.
    pub(crate) super_packet: Option<Box<SuperPacket>>,
}

/// What has become of an endpoint so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Life {
    /// How often its subflow has ended.
    pub(crate) ended: u32,
    /// Its address is gone: it neither sends nor answers.
    pub(crate) absent: bool,
    /// It announces its address (RFC 8684 section 3.4.1).
    pub(crate) announces: bool,
    /// It would be coupled, but its side has never anything to send: no congestion control begins here.
    pub(crate) only_listens: bool,
}

/// Random processing time before each data packet.
pub(crate) struct Jitter {
    pub(crate) bound: Nanos,
    pub(crate) rng: Rng,
    /// Packets leave in order.
    pub(crate) last: Nanos,
}

/// Subflows that are coupled with one another; the ninth of an algorithm and those after it are alone in theirs.
pub(crate) struct Group {
    /// Name of their algorithm.
    pub(crate) algorithm: &'static str,
    pub(crate) peers: [Peer; MAX_PEERS],
    pub(crate) words: Conn,
    /// Endpoints by slot.
    pub(crate) members: Vec<u32>,
}

/// The two directions of a connection; side 0 opened it.
pub(crate) struct Side {
    pub(crate) send: MetaSender,
    pub(crate) receive: MetaReceiver,
    /// The connection looks at its application when so many bytes have been delivered to this side.
    pub(crate) notify_at: u64,
    /// What this side offers the other.
    pub(crate) window: Window,
    pub(crate) groups: Vec<Group>,
    pub(crate) scheduler: Box<dyn Scheduler + Send>,
    /// For those that have any.
    pub(crate) mechanics: Option<Box<Mechanics>>,
}

/// What few sides do beside sending and receiving.
pub(crate) struct Mechanics {
    /// For those whose subflows become stale when they are silent.
    pub(crate) watchdog: Option<Box<Watchdog>>,
    /// For those whose send buffer grows.
    pub(crate) send_tuning: Option<Box<SendTuning>>,
    /// For schedulers that queue or copy.
    pub(crate) later: Option<Box<Later>>,
    /// For those that do something about a full receive window.
    pub(crate) remedy: Option<Box<Remedy>>,
}

impl Side {
    pub(crate) fn watchdog(&mut self) -> Option<&mut Watchdog> {
        self.mechanics.as_mut()?.watchdog.as_deref_mut()
    }

    pub(crate) fn send_tuning(&mut self) -> Option<&mut SendTuning> {
        self.mechanics.as_mut()?.send_tuning.as_deref_mut()
    }

    pub(crate) fn later(&mut self) -> Option<&mut Later> {
        self.mechanics.as_mut()?.later.as_deref_mut()
    }

    pub(crate) fn remedy(&mut self) -> Option<&mut Remedy> {
        self.mechanics.as_mut()?.remedy.as_deref_mut()
    }
}

/// A TCP or MPTCP connection.
pub(crate) struct Connection {
    pub(crate) protocol: Protocol,
    /// TCP that no relay and no transfer writes to.
    pub(crate) is_plain: bool,
    /// The relay that reads it.
    pub(crate) feeds: Option<u32>,
    /// What writes to it, if no application does.
    pub(crate) fed_by: Option<Feeder>,
    /// The transfer whose chunks it delivers.
    pub(crate) delivers: Option<Share>,
    /// The opener's endpoint of the first subflow; the others follow at distance 2.
    pub(crate) first: u32,
    pub(crate) subflows: u32,
    pub(crate) sides: [Side; 2],
    pub(crate) header_bytes: u16,
    pub(crate) ack_bytes: u16,
    pub(crate) delayed_ack: Option<DelayedAck>,
    pub(crate) join: Join,
    /// Whether the joins have been started.
    pub(crate) joining: bool,
    /// One bit per subflow that is not opened with the others.
    pub(crate) deferred: u32,
    /// Whether it is MPTCP no more.
    pub(crate) fell_back: bool,
    /// Joins that the peer has not understood.
    pub(crate) joins_refused: u32,
    pub(crate) opened_at: Nanos,
    /// When the last byte of a file reached the other application.
    pub(crate) completed_at: Option<Nanos>,
    /// Bytes in all that the application of each side waits for; those of a file, if it is one.
    pub(crate) wants: [u64; 2],
    /// When each side has last been written to.
    pub(crate) wrote_at: [Nanos; 2],
    pub(crate) application: Option<Box<dyn Application>>,
    /// Whether the accepting side may have to send first, so that it repeats its part of the handshake.
    pub(crate) acceptor_speaks_first: bool,
    /// Whether an endpoint of each side has ever been established.
    pub(crate) is_open: [bool; 2],
    /// The side whose sending is measured.
    pub(crate) data_side: u8,
    /// Decides which subflows there are, if the scenario's are not simply opened.
    pub(crate) manager: Option<Box<Manager>>,
}

impl Connection {
    /// Endpoints of one side, in the order of the subflows.
    pub(crate) fn endpoints(&self, side: usize) -> impl Iterator<Item = usize> + use<> {
        let first = self.first as usize + side;
        (0..self.subflows as usize).map(move |subflow| first + 2 * subflow)
    }

    pub(crate) fn is_mptcp(&self) -> bool {
        self.protocol == Protocol::Mptcp
    }
}
