//! Packets of a lab's hosts take the interface of their address, with a wire of the test in the emulator's place.

#![allow(missing_docs)]

mod common;

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{IpAddr, SocketAddr, TcpStream, UdpSocket},
    thread,
    time::Duration,
};

use anabranch_bed::{
    host::{Lab, Namespace, Session},
    plan::{Endpoint, Role},
};
use common::{Wires, begin, host, plan};
use socket2::{Domain, Protocol, Socket, Type};

const PATIENCE: Duration = Duration::from_secs(20);
const BYTES: usize = 4 << 20;

/// Two hosts with two interfaces each, v4 and v6 on all of them, and wires to each.
fn two_by_two(session: &Session) -> (Lab, Wires) {
    let client: [&[&str]; 2] = [&["10.1.0.1", "fd00:1::1"], &["10.2.0.1", "fd00:2::1"]];
    let server: [&[&str]; 2] = [&["10.1.0.2", "fd00:1::2"], &["10.2.0.2", "fd00:2::2"]];
    let (mut client, mut server) = (host("client", &client), host("server", &server));
    client.interfaces[1].addresses[0].endpoint =
        Some(Endpoint { id: 2, backup: false, role: Role::Subflow, present: true });
    (client.mptcp_limits, server.mptcp_limits) = (Some((1, 0)), Some((1, 0)));
    let lab = Lab::build(&plan(vec![client, server]), session).unwrap();
    let destinations = [
        ("10.1.0.1", 0),
        ("fd00:1::1", 0),
        ("10.2.0.1", 1),
        ("fd00:2::1", 1),
        ("10.1.0.2", 2),
        ("fd00:1::2", 2),
        ("10.2.0.2", 3),
        ("fd00:2::2", 3),
    ];
    let wires = Wires::join(lab.devices().unwrap(), &destinations);
    (lab, wires)
}

fn udp(namespace: &Namespace, address: &str) -> UdpSocket {
    let address: IpAddr = address.parse().unwrap();
    let socket = namespace.enter(|| UdpSocket::bind((address, 0))).unwrap().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Sends one packet and its answer; returns whom the server saw.
fn ask(client: &UdpSocket, server: &UdpSocket) -> SocketAddr {
    client.send_to(b"ask", server.local_addr().unwrap()).unwrap();
    let mut buffer = [0; 16];
    let (_, from) = server.recv_from(&mut buffer).expect("the question arrives");
    server.send_to(b"answer", from).unwrap();
    assert_eq!(client.recv(&mut buffer).expect("the answer arrives"), 6);
    from
}

/// A connection from the first host to the second, and its listener.
fn connect(lab: &Lab, protocol: Protocol, from: &str, to: &str) -> (TcpStream, TcpStream, Socket) {
    let from = SocketAddr::new(from.parse().unwrap(), 0);
    let to = SocketAddr::new(to.parse().unwrap(), 5001);
    let socket = || Socket::new(Domain::for_address(to), Type::STREAM, Some(protocol)).unwrap();
    let listener = lab.hosts[1].enter(socket).unwrap();
    listener.bind(&to.into()).unwrap();
    listener.listen(1).unwrap();
    let client = lab.hosts[0].enter(socket).unwrap();
    client.bind(&from.into()).unwrap();
    client.connect_timeout(&to.into(), PATIENCE).expect("it connects");
    let (client, server) = (TcpStream::from(client), TcpStream::from(listener.accept().unwrap().0));
    for end in [&client, &server] {
        end.set_write_timeout(Some(PATIENCE)).unwrap();
        end.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    (client, server, listener)
}

/// Carries [`BYTES`] over TCP.
fn transfer(lab: &Lab, from: &str, to: &str) {
    let (mut client, mut server, _) = connect(lab, Protocol::TCP, from, to);
    let received = thread::scope(|scope| {
        scope.spawn(move || client.write_all(&vec![7; BYTES]).expect("all is written"));
        let mut all = Vec::new();
        server.read_to_end(&mut all).expect("all is read");
        all
    });
    assert!(received == vec![7; BYTES], "all bytes arrive");
}

/// Joins that a host has accepted to their end.
fn joins(namespace: &Namespace) -> u64 {
    let table = namespace.enter(|| fs::read_to_string("/proc/thread-self/net/netstat")).unwrap().unwrap();
    let mut rows = table.lines().filter(|line| line.starts_with("MPTcpExt:")).map(str::split_whitespace);
    let (names, mut values) = (rows.next().unwrap(), rows.next().unwrap());
    let at = names.clone().position(|name| name == "MPJoinAckRx").expect("the kernel counts joins");
    values.nth(at).unwrap().parse().unwrap()
}

#[test]
fn packets_leave_by_the_interface_of_their_source_address() {
    let Some(bed) = begin("packets_leave_by_the_interface_of_their_source_address") else { return };
    let (lab, wires) = two_by_two(&bed.session);
    for (path, subnets) in [["10.1.0.", "fd00:1::"], ["10.2.0.", "fd00:2::"]].iter().enumerate() {
        for subnet in subnets {
            let client = udp(&lab.hosts[0], &format!("{subnet}1"));
            let server = udp(&lab.hosts[1], &format!("{subnet}2"));
            let before = wires.seen();
            ask(&client, &server);
            let sent: Vec<_> = wires.seen().iter().zip(before).map(|(now, then)| now - then).collect();
            let expected = if path == 0 { [1, 0, 1, 0] } else { [0, 1, 0, 1] };
            assert_eq!(sent, expected, "{subnet}");
        }
    }
    assert_eq!(lab.device_drops().unwrap(), []);
}

#[test]
fn an_unbound_socket_goes_by_the_first_address_of_its_family() {
    let Some(bed) = begin("an_unbound_socket_goes_by_the_first_address_of_its_family") else { return };
    let (lab, _wires) = two_by_two(&bed.session);
    for (any, server, first) in [("0.0.0.0", "10.1.0.2", "10.1.0.1"), ("::", "fd00:1::2", "fd00:1::1")] {
        let from = ask(&udp(&lab.hosts[0], any), &udp(&lab.hosts[1], server));
        assert_eq!(from.ip(), first.parse::<IpAddr>().unwrap());
    }
}

#[test]
fn no_packet_of_a_bulk_transfer_is_larger_than_the_mtu() {
    let Some(bed) = begin("no_packet_of_a_bulk_transfer_is_larger_than_the_mtu") else { return };
    let (lab, wires) = two_by_two(&bed.session);
    transfer(&lab, "10.1.0.1", "10.1.0.2");
    transfer(&lab, "fd00:1::1", "fd00:1::2");
    assert_eq!(wires.longest(), 1500);
    let seen = wires.seen();
    assert_eq!([seen[1], seen[3]], [0, 0], "nothing goes by the other interface");
    assert_eq!(lab.device_drops().unwrap(), []);
}

#[test]
fn an_endpoint_makes_a_second_subflow_over_its_own_interface() {
    let Some(bed) = begin("an_endpoint_makes_a_second_subflow_over_its_own_interface") else { return };
    let (lab, wires) = two_by_two(&bed.session);
    // A join comes to the listener.
    let (mut client, mut server, _listener) = connect(&lab, Protocol::MPTCP, "10.1.0.1", "10.1.0.2");
    // Joins begin when the first data have been acknowledged.
    client.write_all(b"x").unwrap();
    server.read_exact(&mut [0]).unwrap();
    let step = Duration::from_millis(10);
    let mut waited = Duration::ZERO;
    while joins(&lab.hosts[1]) == 0 {
        assert!(waited < PATIENCE, "the path manager joins");
        thread::sleep(step);
        waited += step;
    }
    let seen = wires.seen();
    assert!(seen[0] >= 3, "the first subflow has its handshake and data: {seen:?}");
    assert!(seen[1] >= 2, "the second one has SYN and the ACK of its SYN/ACK: {seen:?}");
}
