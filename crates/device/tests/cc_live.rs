//! What connections leave behind in the kernel's maps, when they come and go.

mod common;

use std::{
    io::{Read as _, Write as _},
    net::SocketAddr,
    thread,
    time::Duration,
};

use common::{
    Daemon, count, events,
    kernel::{
        lab::{Lab, SERVER},
        transfer::wait_for,
    },
    skip,
};
use serde_json::Value;
use socket2::{Domain, Protocol, Socket, Type};

const PORT: u16 = 5001;
const AT_ONCE: i32 = 10;
/// No read or write may take longer.
const PATIENCE: Duration = Duration::from_secs(15);
/// Bytes that one [`pass_on`] sends.
const BURST: usize = 200_000;

fn mptcp_socket(algorithm: &str) -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)).expect("a socket");
    socket.set_tcp_congestion(format!("ab_{algorithm}").as_bytes()).expect("it is loaded");
    socket
}

fn listen(lab: &Lab, algorithm: &str) -> Socket {
    lab.server.enter(|| {
        let listener = mptcp_socket(algorithm);
        listener.bind(&SocketAddr::from(([0, 0, 0, 0], PORT)).into()).expect("the port is free");
        listener.listen(AT_ONCE).expect("it can listen");
        listener
    })
}

/// A connection over which a byte has gone each way, so that it is fully established.
fn connect(lab: &Lab, listener: &Socket, algorithm: &str) -> (Socket, Socket) {
    let client = lab.client.enter(|| {
        let socket = mptcp_socket(algorithm);
        socket.connect(&SocketAddr::from((SERVER, PORT)).into()).expect("the server is reachable");
        socket
    });
    let (server, _) = listener.accept().expect("the client has connected");
    for end in [&client, &server] {
        end.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        end.set_write_timeout(Some(PATIENCE)).expect("a timeout can be set");
    }
    for (mut from, mut to) in [(&client, &server), (&server, &client)] {
        from.write_all(b"!").expect("the connection is open");
        to.read_exact(&mut [0]).expect("the byte arrives in time");
    }
    (client, server)
}

/// Every socket has told the algorithm of its end, and no connection is left in the map.
fn check_nothing_left(daemon: &Daemon, algorithm: &str) {
    wait_for("a release for every init", || {
        let loaded = daemon.loaded(algorithm);
        events(&loaded, "init") == events(&loaded, "release")
    });
    let loaded = daemon.loaded(algorithm);
    assert_eq!(loaded["connections"], Value::Array(Vec::new()));
    assert_eq!(
        ["no_slot", "map_full", "no_memory"].map(|counter| count(&loaded, counter)),
        [0; 3],
        "{loaded}"
    );
    assert_eq!(daemon.done(&format!("unload {algorithm}")), format!("unloaded ab_{algorithm}\n"));
}

#[test]
fn a_thousand_connections_opened_and_closed_leave_no_entry() {
    if skip("a_thousand_connections_opened_and_closed_leave_no_entry") {
        return;
    }
    let daemon = Daemon::new();
    daemon.done("load lia");
    let lab = Lab::new(1000);
    let listener = listen(&lab, "lia");
    for _ in 0..1000 / AT_ONCE {
        let open: Vec<(Socket, Socket)> = (0..AT_ONCE).map(|_| connect(&lab, &listener, "lia")).collect();
        drop(open);
    }
    drop(listener);
    let loaded = daemon.loaded("lia");
    assert_eq!(count(&loaded, "joined"), 2000, "1,000 connections at both ends: {loaded}");
    check_nothing_left(&daemon, "lia");
}

/// Sends bytes one way and checks that they arrive.
fn pass_on(mut from: &Socket, mut to: &Socket, seed: u8) {
    let sent: Vec<u8> = (0..BURST).map(|at| (at as u8).wrapping_mul(31) ^ seed).collect();
    let mut received = vec![0; BURST];
    thread::scope(|scope| {
        scope.spawn(|| from.write_all(&sent).expect("the peer takes the data in time"));
        to.read_exact(&mut received).expect("the data arrive in time");
    });
    assert!(received == sent, "the data differ");
}

// One way at a time, and everything has arrived before a subflow goes: on Linux 6.18 a subflow that is removed while both
// ends send can lose or garble data, with the kernel's own Reno at both ends too.
#[test]
fn subflows_added_and_removed_a_hundred_times_leave_no_slot() {
    if skip("subflows_added_and_removed_a_hundred_times_leave_no_slot") {
        return;
    }
    let daemon = Daemon::new();
    daemon.done("load lia");
    let lab = Lab::new(100);
    let listener = listen(&lab, "lia");
    let (client, server) = connect(&lab, &listener, "lia");
    for round in 1..=100 {
        lab.add_second_subflow();
        wait_for("the join at both ends", || count(&daemon.loaded("lia"), "joined") == 2 + 2 * round);
        pass_on(&server, &client, round as u8);
        pass_on(&client, &server, round as u8);
        lab.remove_second_subflow();
        wait_for("the leave at both ends", || subflows(&daemon) == [1, 1]);
    }
    assert!(count(&daemon.loaded("lia"), "coupled") > 0);
    drop((client, server, listener));
    check_nothing_left(&daemon, "lia");
}

/// Subflows of each connection that the algorithm knows.
fn subflows(daemon: &Daemon) -> Vec<u64> {
    let loaded = daemon.loaded("lia");
    let known = loaded["connections"].as_array().expect("an array");
    known.iter().map(|known| known["subflows"].as_u64().expect("a number")).collect()
}

#[test]
fn a_path_that_goes_down_and_up_keeps_the_connection_and_its_entry() {
    if skip("a_path_that_goes_down_and_up_keeps_the_connection_and_its_entry") {
        return;
    }
    let daemon = Daemon::new();
    daemon.done("load lia");
    let lab = Lab::new(20);
    lab.add_second_subflow();
    let listener = listen(&lab, "lia");
    let (client, server) = connect(&lab, &listener, "lia");
    wait_for("two subflows at both ends", || subflows(&daemon) == [2, 2]);
    for round in 0..5 {
        pass_on(&server, &client, round);
        lab.client.ip("link set c2 down");
        pass_on(&server, &client, round);
        pass_on(&client, &server, round);
        assert_eq!(subflows(&daemon).len(), 2, "the entries of both ends stay");
        lab.client.ip("link set c2 up");
        lab.client.ip("route replace default via 10.77.2.254 dev c2 table 2");
    }
    pass_on(&server, &client, 5);
    drop((client, server, listener));
    check_nothing_left(&daemon, "lia");
}

#[test]
fn decisions_whether_to_couple_are_counted() {
    if skip("decisions_whether_to_couple_are_counted") {
        return;
    }
    let daemon = Daemon::new();
    daemon.done("load mfvl --param period=1s");
    let lab = Lab::new(20);
    lab.add_second_subflow();
    let listener = listen(&lab, "mfvl");
    let (client, server) = connect(&lab, &listener, "mfvl");
    let verdicts = || {
        let loaded = daemon.loaded("mfvl");
        let known = loaded["connections"].as_array().expect("an array").clone();
        let counts = ["verdicts", "coupled_verdicts"];
        known
            .iter()
            .map(|known| counts.map(|count| known[count].as_u64().expect("a number")))
            .collect::<Vec<_>>()
    };
    wait_for("a decision of the sending end", || {
        pass_on(&server, &client, 1);
        verdicts().iter().any(|[all, _]| *all > 0)
    });
    // Nothing is lost on these paths, and without losses nothing tells of a shared bottleneck.
    assert!(verdicts().iter().all(|[_, coupled]| *coupled == 0), "{:?}", verdicts());
    drop((client, server, listener));
    check_nothing_left(&daemon, "mfvl");
}
