//! Reading sockets. The connections run over loopback, so that nothing is lost unless the test loses it.

use std::{io::Read as _, net::IpAddr, os::fd::AsFd as _};

use anabranch_bed::{host::ip, telemetry::sockets};
use anabranch_scenario::model::Protocol::{Mptcp, Tcp};

use crate::lab::{self, CLIENT, SERVER};

const BYTES: usize = 3_000_000;

#[test]
fn tcp_counts_the_bytes_that_were_sent() {
    lab::in_namespace("tcp_counts_the_bytes_that_were_sent", || {
        let mut pair = lab::connect(Tcp, Tcp);
        pair.transfer(BYTES);
        // The SYN counts as one byte (RFC 9293 section 3.4).
        let all = BYTES as u64 + 1;
        let sender = lab::sample_until(&pair.client, Tcp, |sample| sample.subflows[0].bytes_acked == all);
        assert!(!sender.is_mptcp);
        assert_eq!((sender.token, sender.bytes_sent), (None, None));
        let subflow = &sender.subflows[0];
        assert_eq!(subflow.bytes_sent - subflow.bytes_retrans, BYTES as u64);
        assert_eq!(subflow.local, pair.client.local_addr().expect("connected"));
        assert_eq!(subflow.remote, pair.client.peer_addr().expect("connected"));
        assert_eq!(subflow.state, 1);
        assert_eq!(subflow.ssthresh_packets, None, "nothing has ended slow start");
        assert!(subflow.cwnd_packets >= 10, "RFC 6928: {subflow:?}");
        assert!(subflow.srtt_us > 0 && subflow.rto_us >= 200_000, "{subflow:?}");
        assert!(subflow.min_rtt_us.is_some_and(|min| min <= subflow.srtt_us), "{subflow:?}");
        assert!(subflow.data_segs_out <= subflow.segs_out, "{subflow:?}");
        assert_eq!(subflow.unacked_packets, 0);
        assert!(subflow.pacing_rate_bps.is_some_and(|rate| rate > 1_000_000), "{subflow:?}");
        let receiver = sockets::sample(pair.server.as_fd(), Tcp).expect("an open socket can be read");
        assert_eq!(receiver.subflows[0].bytes_received, BYTES as u64);
        assert_eq!(receiver.subflows[0].remote, subflow.local);
    });
}

#[test]
fn mptcp_has_two_subflows_that_carry_all_bytes() {
    lab::in_namespace("mptcp_has_two_subflows_that_carry_all_bytes", || {
        lab::add_endpoint();
        let mut pair = lab::connect(Mptcp, Mptcp);
        pair.transfer(1);
        lab::sample_until(&pair.client, Mptcp, |sample| sample.subflows.len() == 2);
        pair.transfer(BYTES);
        let all = BYTES as u64 + 1;
        // Data may be sent on both subflows, but no less than once. A DATA_ACK may come before the ACKs.
        let acked = |sample: &sockets::Sample| -> u64 {
            sample.subflows.iter().map(|subflow| subflow.bytes_acked.saturating_sub(1)).sum()
        };
        let sender = lab::sample_until(&pair.client, Mptcp, |sample| {
            sample.bytes_acked == Some(all) && acked(sample) >= all
        });
        assert!(sender.is_mptcp);
        assert!(sender.token.is_some_and(|token| token != 0));
        assert_eq!(lab::local_addresses(&sender), CLIENT.map(|ip| ip.parse::<IpAddr>().expect("one")));
        let peer = pair.client.peer_addr().expect("connected");
        assert_eq!(peer.ip().to_string(), SERVER);
        assert!(sender.subflows.iter().all(|subflow| subflow.remote == peer), "{sender:#?}");
        assert_eq!(sender.subflows[0].id, Some(1));
        assert_eq!(sender.subflows[1].id, Some(2));
        assert_eq!(sender.bytes_sent, Some(all));
        let receiver = sockets::sample(pair.server.as_fd(), Mptcp).expect("an open socket can be read");
        assert!(receiver.is_mptcp);
        assert_eq!(receiver.bytes_received, Some(all));
        assert_eq!(receiver.subflows.len(), 2);
        assert_ne!(receiver.token, sender.token, "each end has its own");
    });
}

#[test]
fn reading_in_parts_gives_the_same() {
    lab::in_namespace("reading_in_parts_gives_the_same", || {
        lab::add_endpoint();
        let mut pair = lab::connect(Mptcp, Mptcp);
        pair.transfer(1);
        lab::sample_until(&pair.client, Mptcp, |sample| {
            sample.subflows.len() == 2 && sample.subflows.iter().all(|subflow| subflow.state == 1)
        });
        let mut whole = sockets::sample(pair.client.as_fd(), Mptcp).expect("an open socket can be read");
        let parts = sockets::sample_in_parts(pair.client.as_fd()).expect("by the older options too");
        for subflow in &mut whole.subflows {
            subflow.id = None;
        }
        assert_eq!(whole, parts);
    });
}

#[test]
fn a_connection_to_plain_tcp_has_fallen_back() {
    lab::in_namespace("a_connection_to_plain_tcp_has_fallen_back", || {
        for (client, server) in [(Mptcp, Tcp), (Tcp, Mptcp)] {
            let mut pair = lab::connect(client, server);
            pair.transfer(BYTES);
            let all = BYTES as u64 + 1;
            let sender =
                lab::sample_until(&pair.client, client, |sample| sample.subflows[0].bytes_acked == all);
            assert!(!sender.is_mptcp, "{client:?} to {server:?}: {sender:#?}");
            assert_eq!(sender.subflows[0].local.ip().to_string(), CLIENT[0]);
            let receiver = sockets::sample(pair.server.as_fd(), server).expect("an open socket can be read");
            assert!(!receiver.is_mptcp, "{client:?} to {server:?}: {receiver:#?}");
            assert_eq!(receiver.subflows[0].bytes_received, BYTES as u64);
        }
    });
}

#[test]
fn a_subflow_that_closes_leaves_the_others_readable() {
    lab::in_namespace("a_subflow_that_closes_leaves_the_others_readable", || {
        lab::add_endpoint();
        let mut pair = lab::connect(Mptcp, Mptcp);
        pair.transfer(1);
        let both = lab::sample_until(&pair.client, Mptcp, |sample| sample.subflows.len() == 2);
        let joined = both.subflows[1].clone();
        // The path manager closes the subflows of an address that is withdrawn, here the first of all.
        ip(&["mptcp", "endpoint", "add", CLIENT[0], "dev", "lo", "id", "9", "subflow"]).expect("an endpoint");
        ip(&["mptcp", "endpoint", "delete", "id", "0", CLIENT[0]]).expect("id 0 is the first subflow");
        let is_open = |subflow: &sockets::SubflowSample| !subflow.is_closed() && subflow.state == 1;
        let left = lab::sample_until(&pair.client, Mptcp, |sample| {
            sample.subflows.iter().filter(|subflow| is_open(subflow)).count() == 1
        });
        let open: Vec<_> = left.subflows.iter().filter(|subflow| is_open(subflow)).collect();
        assert_eq!((open[0].local, open[0].id), (joined.local, joined.id));
        pair.transfer(BYTES);
        lab::sample_until(&pair.client, Mptcp, |sample| sample.bytes_acked == Some(BYTES as u64 + 1));
        drop(pair.client);
        assert_eq!(pair.server.read(&mut [0]).expect("the end of the stream"), 0);
        let end = sockets::sample(pair.server.as_fd(), Mptcp).expect("a socket whose peer has gone too");
        assert_eq!(end.bytes_received, Some(BYTES as u64 + 1));
    });
}

#[test]
fn a_subflow_opened_again_has_an_identifier_of_its_own() {
    lab::in_namespace("a_subflow_opened_again_has_an_identifier_of_its_own", || {
        lab::add_endpoint();
        let mut pair = lab::connect(Mptcp, Mptcp);
        pair.transfer(1);
        let second = |sample: &sockets::Sample| {
            let is_second = |subflow: &&sockets::SubflowSample| subflow.local.ip().to_string() == CLIENT[1];
            let established = sample.subflows.iter().filter(|subflow| subflow.state == 1);
            established.filter(is_second).map(|subflow| subflow.id).next_back().flatten()
        };
        let before = lab::sample_until(&pair.client, Mptcp, |sample| second(sample).is_some());
        ip(&["mptcp", "endpoint", "flush"]).expect("the endpoints can be removed");
        lab::sample_until(&pair.client, Mptcp, |sample| second(sample).is_none());
        lab::add_endpoint();
        let after = lab::sample_until(&pair.client, Mptcp, |sample| second(sample).is_some());
        assert_eq!((second(&before), second(&after)), (Some(2), Some(3)));
    });
}

#[test]
fn ipv6_is_read_as_ipv4_is() {
    lab::in_namespace("ipv6_is_read_as_ipv4_is", || {
        // An IPv4 client of a listener on `::` is an IPv4 client.
        for (from, to) in [("::1", "::1"), (CLIENT[0], SERVER)] {
            for (client, server) in [(Mptcp, Mptcp), (Mptcp, Tcp), (Tcp, Mptcp)] {
                let mut pair = lab::connect_from(from, client, "::", server, to);
                pair.transfer(BYTES);
                let receiver = lab::sample_until(&pair.server, server, |sample| !sample.subflows.is_empty());
                assert_eq!(receiver.is_mptcp, client == server, "{client:?} to {server:?}: {receiver:#?}");
                assert_eq!(receiver.subflows[0].local.ip().to_string(), to);
                assert_eq!(receiver.subflows[0].remote, pair.client.local_addr().expect("connected"));
                // Of MPTCP some may come twice on the subflow, but not at the data level.
                let got = receiver.bytes_received.unwrap_or(receiver.subflows[0].bytes_received);
                assert_eq!(got, BYTES as u64, "{client:?} to {server:?}");
            }
        }
    });
}

#[test]
fn a_socket_that_is_not_connected_can_be_read() {
    lab::in_namespace("a_socket_that_is_not_connected_can_be_read", || {
        for protocol in [Tcp, Mptcp] {
            let socket = lab::socket(socket2::Domain::IPV4, protocol);
            let sample = sockets::sample(socket.as_fd(), protocol).expect("it is open");
            assert!(sample.subflows.iter().all(sockets::SubflowSample::is_closed), "{sample:#?}");
        }
    });
}
