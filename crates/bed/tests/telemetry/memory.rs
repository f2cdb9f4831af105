//! What sockets hold while nobody reads.

use std::{io::Read as _, os::fd::AsFd as _};

use anabranch_bed::telemetry::{ConnectionMemory, SocketDiag, sockets};
use anabranch_scenario::model::Protocol::{Mptcp, Tcp};

use crate::lab::{self, CLIENT, Pair, SERVER};

fn memory_of(pair: &Pair, protocol: anabranch_scenario::model::Protocol) -> [ConnectionMemory; 2] {
    let mut diag = SocketDiag::open().expect("anyone may ask");
    [&pair.client, &pair.server].map(|socket| {
        let sample = sockets::sample(socket.as_fd(), protocol).expect("an open socket can be read");
        ConnectionMemory::read(socket.as_fd(), &sample, &mut diag).expect("and so can its memory")
    })
}

#[test]
fn memory_fills_while_the_receiver_does_not_read() {
    lab::in_namespace("memory_fills_while_the_receiver_does_not_read", || {
        lab::add_endpoint();
        for (protocol, subflows) in [(Tcp, 0), (Mptcp, 2)] {
            let mut pair = lab::connect(protocol, protocol);
            pair.transfer(1);
            lab::sample_until(&pair.client, protocol, |sample| sample.subflows.len() == subflows.max(1));
            let [client, server] = memory_of(&pair, protocol);
            assert_eq!((client.subflows.len(), server.subflows.len()), (subflows, subflows));
            assert_eq!((client.send_bytes(), server.receive_bytes()), (0, 0), "{protocol:?}: all is read");
            let mut sent = pair.fill();
            // What fits into the receive buffer wanders there on its own, the rest stays with the sender.
            lab::sample_until(&pair.client, protocol, |sample| {
                sample.subflows.iter().all(|subflow| subflow.unacked_packets == 0)
            });
            let [client, server] = memory_of(&pair, protocol);
            assert!(server.receive_bytes() > 0, "{protocol:?}: {server:?}");
            assert!(client.send_bytes() > 0, "{protocol:?}: {client:?}");
            let held = client.send_bytes() + server.receive_bytes();
            assert!(held >= sent as u64, "{protocol:?}: {sent} bytes sent, {client:?} {server:?}");
            let mut buffer = vec![0; 1 << 20];
            while sent > 0 {
                sent -= pair.server.read(&mut buffer).expect("the rest comes");
            }
        }
    });
}

#[test]
fn the_namespace_s_sockets_are_found_by_protocol() {
    lab::in_namespace("the_namespace_s_sockets_are_found_by_protocol", || {
        lab::add_endpoint();
        let mut pair = lab::connect(Mptcp, Mptcp);
        pair.transfer(1);
        lab::sample_until(&pair.client, Mptcp, |sample| sample.subflows.len() == 2);
        lab::sample_until(&pair.server, Mptcp, |sample| sample.subflows.len() == 2);
        let mut diag = SocketDiag::open().expect("anyone may ask");
        let subflows = diag.tcp().expect("the kernel has tcp_diag");
        assert_eq!(subflows.len(), 4, "two ends of two subflows");
        for one in subflows {
            assert_eq!(diag.find(one.local, one.remote).expect("it is there"), Some(one.memory));
        }
        let nobody = "10.0.0.1:1".parse().expect("an address");
        assert_eq!(diag.find(nobody, nobody).expect("that is no error"), None);
        let connections = diag.mptcp().expect("the kernel has mptcp_diag");
        assert_eq!(connections.len(), 2, "two ends of one connection");
        let local = pair.client.local_addr().expect("connected");
        let client = connections.iter().find(|connection| connection.local == local).expect("one of them");
        assert_eq!(client.remote, pair.client.peer_addr().expect("connected"));
        let [read, _] = memory_of(&pair, Mptcp);
        assert_eq!(client.memory.sndbuf, read.socket.sndbuf);
    });
}

#[test]
fn subflows_are_found_behind_a_listener_for_both_families() {
    lab::in_namespace("subflows_are_found_behind_a_listener_for_both_families", || {
        for (from, to) in [("::1", "::1"), (CLIENT[0], SERVER)] {
            let mut pair = lab::connect_from(from, Mptcp, "::", Mptcp, to);
            pair.transfer(1);
            let [client, server] = memory_of(&pair, Mptcp);
            assert_eq!((client.subflows.len(), server.subflows.len()), (1, 1), "{from} to {to}");
        }
    });
}
