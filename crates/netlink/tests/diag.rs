//! Connections and subflows as the kernel lists them, in conversation with it.

mod common;

use std::{
    io::{Read as _, Write as _},
    net::SocketAddr,
    time::Duration,
};

use anabranch_netlink::{
    diag::{Connection, SocketDiag, Subflow},
    mptcp::{Endpoint, EndpointFlags, PathManager},
};
use common::{
    lab::{Lab, SERVER},
    pair, skip,
};
use socket2::{Domain, Socket};

const PORT: u16 = 5001;

/// A connection over the lab's first link; user space manages the client's end.
struct Conversation {
    lab: Lab,
    client: Socket,
    server: Socket,
    _listener: Socket,
    diag: SocketDiag,
    manager: PathManager,
}

impl Conversation {
    fn open(at: SocketAddr) -> Self {
        let lab = Lab::unshaped();
        lab.client.run("sysctl", "-qw net.mptcp.pm_type=1");
        let [client, server, listener] =
            pair::connect(&lab, at, Domain::IPV4, SocketAddr::from((SERVER, PORT)));
        let (diag, manager) =
            lab.client.enter(|| (SocketDiag::open().unwrap(), PathManager::open().unwrap()));
        let conversation = Self { lab, client, server, _listener: listener, diag, manager };
        conversation.send(1);
        conversation
    }

    /// Bytes each way, all of which arrive.
    fn send(&self, bytes: usize) {
        for (mut from, mut to) in [(&self.client, &self.server), (&self.server, &self.client)] {
            from.write_all(&vec![b'!'; bytes]).expect("the connection is open");
            to.read_exact(&mut vec![0; bytes]).expect("the bytes arrive in time");
        }
    }

    fn connection(&mut self) -> Connection {
        let listed = self.diag.connections().unwrap();
        assert_eq!(listed.len(), 1, "{listed:#?}");
        listed[0]
    }

    /// The subflows once they are as `wanted`.
    fn subflows(&mut self, wanted: impl Fn(&[Subflow]) -> bool) -> Vec<Subflow> {
        let mut last = Vec::new();
        for _ in 0..1000 {
            let mut listed = self.diag.subflows().unwrap();
            listed.sort_by_key(|subflow| subflow.local_id);
            if wanted(&listed) {
                return listed;
            }
            last = listed;
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("not within ten seconds: {last:#?}");
    }
}

fn any() -> SocketAddr {
    SocketAddr::from(([0, 0, 0, 0], PORT))
}

#[test]
fn a_connection_and_its_subflows_are_listed_with_their_figures() {
    if skip("a_connection_and_its_subflows_are_listed_with_their_figures") {
        return;
    }
    let mut talk = Conversation::open(any());
    talk.send(100_000);
    let connection = talk.connection();
    assert!(connection.state.is_established() && connection.has_remote_key && !connection.is_fallen_back);
    assert_eq!(connection.address.remote, SocketAddr::from((SERVER, PORT)));
    let first = talk.subflows(|listed| listed.len() == 1)[0];
    assert_eq!((first.token, first.address), (connection.token, connection.address));
    assert!(first.flags.is_opened_here() && !first.flags.is_join() && first.flags.is_fully_established());
    // All was read, so all was acknowledged or soon is; the byte of the opening counts too.
    let settled = talk.subflows(|listed| listed[0].figures.acked_bytes >= 100_001)[0].figures;
    assert!(
        settled.received_bytes >= 100_001 && settled.srtt_us > 0 && settled.rto_us >= 200_000,
        "{settled:?}"
    );
    assert!(settled.data_segments_sent > 0 && settled.cwnd_segments >= 10, "{settled:?}");
    assert_eq!((settled.timeouts, settled.backoff, settled.unsent_bytes), (0, 0, 0), "{settled:?}");

    let local =
        Endpoint { id: 2, flags: EndpointFlags::BACKUP, ..Endpoint::new("10.77.2.1".parse().unwrap()) };
    talk.manager.create_subflow(connection.token, &local, connection.address.remote).unwrap();
    let both = talk.subflows(|listed| listed.len() == 2 && listed[1].flags.is_fully_established());
    assert_eq!(
        (both[1].token, both[1].local_id, both[1].address.local.ip()),
        (connection.token, 2, local.address)
    );
    assert!(both[1].flags.is_join() && both[1].flags.is_opened_here() && both[1].flags.is_backup_here());
    assert!(!both[0].flags.is_backup_here());

    talk.manager.set_subflow_backup(connection.token, both[1].address, false).unwrap();
    talk.manager.set_subflow_backup(connection.token, both[0].address, true).unwrap();
    talk.subflows(|listed| listed[0].flags.is_backup_here() && !listed[1].flags.is_backup_here());
    talk.manager.destroy_subflow(connection.token, both[0].address).unwrap();
    talk.send(1);
    let left =
        talk.subflows(|listed| listed.iter().filter(|subflow| subflow.state.is_established()).count() == 1);
    assert!(left.iter().any(|subflow| subflow.address == both[1].address), "{left:#?}");
    assert_eq!(talk.connection().token, connection.token);
}

#[test]
fn the_accepting_side_sees_a_subflow_that_it_has_not_opened() {
    if skip("the_accepting_side_sees_a_subflow_that_it_has_not_opened") {
        return;
    }
    let talk = Conversation::open(SocketAddr::from(([0u16; 8], PORT)));
    let mut diag = talk.lab.server.enter(|| SocketDiag::open().unwrap());
    let (connections, subflows) = (diag.connections().unwrap(), diag.subflows().unwrap());
    assert_eq!((connections.len(), subflows.len()), (1, 1), "{connections:#?} {subflows:#?}");
    assert_eq!(subflows[0].token, connections[0].token);
    assert!(!subflows[0].flags.is_opened_here());
    assert_eq!(subflows[0].address.remote.ip().to_string(), "::ffff:10.77.1.1");
}

#[test]
fn a_path_that_dies_in_silence_shows_timeouts_in_a_row() {
    if skip("a_path_that_dies_in_silence_shows_timeouts_in_a_row") {
        return;
    }
    let mut talk = Conversation::open(any());
    // What arrives at the server is thrown away there: the client's links stay up.
    talk.lab.server.ip("link set s0 down");
    (&talk.client).write_all(b"lost").expect("there is room");
    let silent = talk.subflows(|listed| listed[0].figures.timeouts >= 2)[0];
    assert!(silent.figures.backoff >= 1 && silent.retransmit_in_ms.is_some(), "{silent:#?}");
    assert!(silent.figures.unacked_segments >= 1, "{silent:#?}");
    assert_eq!(talk.connection().unacked_bytes, 4);
}
