//! Counters of a namespace before and after something has happened.

use anabranch_bed::telemetry::mib::{Counters, fallback_reasons};
use anabranch_scenario::model::Protocol::{Mptcp, Tcp};

use crate::lab;

fn counters() -> Counters {
    Counters::read().expect("the kernel has /proc")
}

#[test]
fn joins_are_counted_and_are_no_fallback() {
    lab::in_namespace("joins_are_counted_and_are_no_fallback", || {
        lab::add_endpoint();
        let before = counters();
        let mut pair = lab::connect(Mptcp, Mptcp);
        pair.transfer(100_000);
        lab::sample_until(&pair.server, Mptcp, |sample| sample.subflows.len() == 2);
        let after = counters();
        let changes = after.since(&before);
        assert_eq!(changes.get("MPTcpExtMPCapableSYNTX"), Some(&1), "{changes:?}");
        assert_eq!(changes.get("MPTcpExtMPJoinAckRx"), Some(&1), "{changes:?}");
        // Not the active ones: the server has the same endpoint and may try in vain to join the client.
        assert_eq!(changes.get("TcpPassiveOpens"), Some(&2), "{changes:?}");
        assert_eq!(fallback_reasons(&before, &after), Vec::<String>::new());
    });
}

#[test]
fn a_peer_of_plain_tcp_is_a_reason() {
    lab::in_namespace("a_peer_of_plain_tcp_is_a_reason", || {
        let before = counters();
        lab::connect(Mptcp, Tcp).transfer(1);
        let reasons = fallback_reasons(&before, &counters());
        assert_eq!(reasons.len(), 1, "{reasons:?}");
        assert!(reasons[0].contains("(MPTcpExtMPCapableFallbackSYNACK: 1)"), "{reasons:?}");
    });
}

#[test]
fn a_client_of_plain_tcp_moves_no_counter_of_mptcp() {
    lab::in_namespace("a_client_of_plain_tcp_moves_no_counter_of_mptcp", || {
        let before = counters();
        lab::connect(Tcp, Mptcp).transfer(1);
        let changes = counters().since(&before);
        let mptcp: Vec<_> = changes.keys().filter(|name| name.starts_with("MPTcpExt")).collect();
        assert!(mptcp.is_empty(), "{mptcp:?}");
    });
}
