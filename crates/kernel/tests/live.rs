//! The congestion controls in the running kernel, carrying data between network namespaces.
//!
//! Names of congestion controls are host-wide, so the tests take turns.

mod common;

use std::sync::{Mutex, MutexGuard, PoisonError};

use anabranch_kernel::{Attached, Counters};
use common::{
    lab::{Lab, Namespace, command},
    skip,
    transfer::{Connection, End, wait_for},
};
use socket2::Protocol;

const LIA: End = End { protocol: Protocol::MPTCP, congestion: "ab_lia" };
const RENO: End = End { protocol: Protocol::MPTCP, congestion: "ab_reno" };
/// The kernel's own; the machine's default may be anything.
const KERNEL_RENO: End = End { protocol: Protocol::MPTCP, congestion: "reno" };

/// About a second over two bottlenecks of [`MBIT`].
const DOWN: usize = 6_000_000;
const UP: usize = 1_000_000;
const MBIT: u32 = 20;

static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn counters(attached: &Attached) -> Counters {
    attached.counters().expect("counters are readable")
}

/// Lines of `ss` for TCP sockets (subflows too) that a congestion control has on the data port.
fn sockets_with(namespace: &Namespace, congestion: &str) -> usize {
    let listing = namespace.run("ss", "-tinHO state established");
    listing.lines().filter(|line| line.contains(":5001") && line.contains(&format!(" {congestion} "))).count()
}

/// Tokens of the MPTCP connections of a namespace, as `ss` shows them.
fn tokens(namespace: &Namespace) -> Vec<u32> {
    let listing = namespace.run("ss", "-MinHO state established");
    let hex = listing.split_whitespace().filter_map(|word| word.strip_prefix("token:"));
    hex.map(|hex| u32::from_str_radix(hex, 16).expect("a token is hexadecimal")).collect()
}

/// Every socket is gone and has told the shim; no entry is left; the name can be taken away.
fn check_teardown(attached: Attached, lab: Lab) {
    wait_for("a release for every init", || {
        let seen = counters(&attached);
        seen.event("init") == seen.event("release")
    });
    assert_eq!(attached.connections(), [], "entries of the connection map");
    let kernel_name = attached.kernel_name();
    let names: Vec<String> = [&lab.client, &lab.server].iter().map(|ns| ns.name.clone()).collect();
    drop(attached);
    drop(lab);
    let registered = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    assert!(!registered.expect("it is readable").split_whitespace().any(|name| name == kernel_name));
    let namespaces = command("ip", "netns list");
    assert!(names.iter().all(|name| !namespaces.contains(name)), "{namespaces}");
}

#[test]
fn lia_couples_two_subflows_at_both_ends() {
    if skip("lia_couples_two_subflows_at_both_ends") {
        return;
    }
    let _turn = turn();
    let attached = Attached::load_with_defaults("lia").expect("ab_lia loads");
    let lab = Lab::new(MBIT);
    lab.add_second_subflow();
    let connection = Connection::open(&lab, LIA, LIA);
    wait_for("two subflows with ab_lia at either end", || {
        sockets_with(&lab.server, "ab_lia") == 2 && sockets_with(&lab.client, "ab_lia") == 2
    });
    let mut expected = [tokens(&lab.client), tokens(&lab.server)].concat();
    expected.sort_unstable();
    assert_eq!(attached.connections(), expected, "one entry per end, under its token");
    connection.transfer(DOWN, UP, || ());

    assert_eq!(lab.client.mib("MPTcpExt", "MPJoinSynAckRx"), 1);
    assert_eq!(lab.client.mib("MPTcpExt", "MPCapableFallbackSYNACK"), 0);
    let received = lab.received_bytes();
    assert!(received.iter().all(|&bytes| bytes > DOWN as u64 / 5), "bytes per path: {received:?}");

    let seen = counters(&attached);
    assert_eq!(seen.joined, 4, "{seen:?}");
    assert_eq!((seen.plain_tcp, seen.no_slot, seen.map_full, seen.no_memory), (0, 0, 0, 0), "{seen:?}");
    assert!(seen.by_usable[2] > 500, "{seen:?}");
    assert_eq!(seen.coupled(), seen.by_usable[2], "{seen:?}");
    for event in ["rtt_sample", "ack", "loss", "recovery_exit", "idle_restart", "peer_join"] {
        assert!(seen.event(event) > 0, "{event}: {seen:?}");
    }
    assert_eq!(seen.dropped_writes, 0, "{seen:?}");
    drop(connection);
    check_teardown(attached, lab);
}

#[test]
fn reno_carries_two_subflows_without_coupling() {
    if skip("reno_carries_two_subflows_without_coupling") {
        return;
    }
    let _turn = turn();
    let attached = Attached::load_with_defaults("reno").expect("ab_reno loads");
    let lab = Lab::new(MBIT);
    lab.add_second_subflow();
    let connection = Connection::open(&lab, KERNEL_RENO, RENO);
    wait_for("two subflows with ab_reno", || sockets_with(&lab.server, "ab_reno") == 2);
    assert_eq!(sockets_with(&lab.client, "ab_reno"), 0);
    connection.transfer(DOWN, UP, || ());
    let received = lab.received_bytes();
    assert!(received.iter().all(|&bytes| bytes > DOWN as u64 / 5), "bytes per path: {received:?}");
    let seen = counters(&attached);
    assert!(seen.event("ack") > 500 && seen.event("loss") > 0, "{seen:?}");
    assert_eq!((seen.joined, seen.coupled(), seen.uncoupled()), (0, 0, 0), "{seen:?}");
    drop(connection);
    check_teardown(attached, lab);
}

#[test]
fn mfvl_shares_its_words_between_two_subflows() {
    if skip("mfvl_shares_its_words_between_two_subflows") {
        return;
    }
    let _turn = turn();
    let algorithm = anabranch_cc::find("mfvl").expect("it is in the registry");
    let mut params: Vec<u32> = algorithm.params().iter().map(|param| param.default).collect();
    let period =
        algorithm.params().iter().position(|param| param.name == "period").expect("T is a parameter");
    params[period] = 20_000; // µs: many decisions within the transfer
    let attached = Attached::load("mfvl", &params).expect("ab_mfvl loads");
    assert_eq!(attached.params().expect("they are readable"), params);
    let lab = Lab::new(MBIT);
    lab.add_second_subflow();
    let mfvl = End { protocol: Protocol::MPTCP, congestion: "ab_mfvl" };
    let connection = Connection::open(&lab, KERNEL_RENO, mfvl);
    wait_for("two subflows with ab_mfvl", || sockets_with(&lab.server, "ab_mfvl") == 2);
    connection.transfer(DOWN, UP, || ());
    let received = lab.received_bytes();
    assert!(received.iter().all(|&bytes| bytes > DOWN as u64 / 5), "bytes per path: {received:?}");
    let seen = counters(&attached);
    assert!(seen.by_usable[2] > 500, "{seen:?}");
    assert_eq!(seen.dropped_writes, 0, "{seen:?}");
    drop(connection);
    check_teardown(attached, lab);
}

#[test]
fn a_subflow_that_leaves_is_no_longer_coupled_with() {
    if skip("a_subflow_that_leaves_is_no_longer_coupled_with") {
        return;
    }
    let _turn = turn();
    let attached = Attached::load_with_defaults("lia").expect("ab_lia loads");
    let lab = Lab::new(MBIT);
    lab.add_second_subflow();
    let connection = Connection::open(&lab, KERNEL_RENO, LIA);
    wait_for("two subflows", || counters(&attached).joined == 2);
    connection.transfer(DOWN, UP, || {
        wait_for("coupled calls", || counters(&attached).coupled() > 100);
        let alone = counters(&attached).uncoupled();
        lab.remove_second_subflow();
        wait_for("the news of the leave", || counters(&attached).event("peer_leave") > 0);
        wait_for("calls with one usable subflow", || counters(&attached).uncoupled() > alone + 100);
        assert_eq!(attached.connections().len(), 1, "the connection lives on");
    });
    drop(connection);
    check_teardown(attached, lab);
}

#[test]
fn the_ninth_subflow_runs_uncoupled() {
    if skip("the_ninth_subflow_runs_uncoupled") {
        return;
    }
    let _turn = turn();
    let attached = Attached::load_with_defaults("lia").expect("ab_lia loads");
    let lab = Lab::new(MBIT);
    lab.add_eight_subflows();
    let connection = Connection::open(&lab, KERNEL_RENO, LIA);
    wait_for("nine subflows", || {
        let seen = counters(&attached);
        seen.joined == 8 && seen.no_slot == 1
    });
    connection.transfer(DOWN, UP, || {
        wait_for("calls with eight usable subflows", || counters(&attached).by_usable[8] > 100);
        let alone = counters(&attached).uncoupled();
        wait_for("calls of the ninth", || counters(&attached).uncoupled() > alone);
    });
    drop(connection);
    check_teardown(attached, lab);
}

#[test]
fn plain_tcp_works_over_a_coupled_algorithm() {
    if skip("plain_tcp_works_over_a_coupled_algorithm") {
        return;
    }
    let _turn = turn();
    let attached = Attached::load_with_defaults("lia").expect("ab_lia loads");
    let lab = Lab::new(MBIT);
    let tcp = End { protocol: Protocol::TCP, ..LIA };
    let connection = Connection::open(&lab, tcp, tcp);
    wait_for("a socket with ab_lia at either end", || {
        sockets_with(&lab.server, "ab_lia") == 1 && sockets_with(&lab.client, "ab_lia") == 1
    });
    connection.transfer(UP, UP, || ());
    let seen = counters(&attached);
    assert_eq!((seen.plain_tcp, seen.joined, seen.coupled()), (2, 0, 0), "{seen:?}");
    assert!(seen.uncoupled() > 100, "{seen:?}");
    drop(connection);
    check_teardown(attached, lab);
}

/// The kernel runs init before it acts on the missing answer, so the client has a slot of its own.
#[test]
fn a_connection_that_falls_back_is_alone() {
    if skip("a_connection_that_falls_back_is_alone") {
        return;
    }
    let _turn = turn();
    let attached = Attached::load_with_defaults("lia").expect("ab_lia loads");
    let lab = Lab::new(MBIT);
    lab.add_second_subflow();
    let tcp_server = End { protocol: Protocol::TCP, ..KERNEL_RENO };
    let connection = Connection::open(&lab, LIA, tcp_server);
    connection.transfer(UP, UP, || ());
    assert_eq!(lab.client.mib("MPTcpExt", "MPCapableFallbackSYNACK"), 1);
    let seen = counters(&attached);
    assert_eq!((seen.joined, seen.coupled()), (1, 0), "{seen:?}");
    assert!(seen.uncoupled() > 10, "{seen:?}");
    drop(connection);
    check_teardown(attached, lab);
}
