//! Building what a plan needs, and leaving the host as it was.

#![allow(missing_docs)]

mod common;

use std::{
    io::{Read as _, Write as _},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    thread,
    time::Duration,
};

use anabranch_bed::host::{Lab, Namespace, Session};
use common::{Wires, host, plan, session, skip};

const PATIENCE: Duration = Duration::from_secs(20);

/// Two hosts with two interfaces each, v4 and v6 on all of them, and wires between those of one number.
fn two_by_two(session: &Session) -> (Lab, Wires) {
    let client: [&[&str]; 2] = [&["10.1.0.1", "fd00:1::1"], &["10.2.0.1", "fd00:2::1"]];
    let server: [&[&str]; 2] = [&["10.1.0.2", "fd00:1::2"], &["10.2.0.2", "fd00:2::2"]];
    let lab = Lab::build(&plan(vec![host("client", &client), host("server", &server)]), session).unwrap();
    let wires = Wires::join(lab.devices().unwrap(), &[(0, 2), (1, 3)]);
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

#[test]
fn packets_leave_by_the_interface_of_their_source_address() {
    if skip("packets_leave_by_the_interface_of_their_source_address") {
        return;
    }
    let session = session();
    let (lab, wires) = two_by_two(&session);
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
    if skip("an_unbound_socket_goes_by_the_first_address_of_its_family") {
        return;
    }
    let session = session();
    let (lab, _wires) = two_by_two(&session);
    for (any, server, first) in [("0.0.0.0", "10.1.0.2", "10.1.0.1"), ("::", "fd00:1::2", "fd00:1::1")] {
        let from = ask(&udp(&lab.hosts[0], any), &udp(&lab.hosts[1], server));
        assert_eq!(from.ip(), first.parse::<IpAddr>().unwrap());
    }
}

#[test]
fn no_packet_of_a_bulk_transfer_is_larger_than_the_mtu() {
    if skip("no_packet_of_a_bulk_transfer_is_larger_than_the_mtu") {
        return;
    }
    const BYTES: usize = 4 << 20;
    let session = session();
    let (lab, wires) = two_by_two(&session);
    for address in ["10.1.0.2", "fd00:1::2"] {
        let to = SocketAddr::new(address.parse().unwrap(), 5001);
        let listener = lab.hosts[1].enter(|| TcpListener::bind(to)).unwrap().unwrap();
        let mut client =
            lab.hosts[0].enter(|| TcpStream::connect_timeout(&to, PATIENCE)).unwrap().expect("it connects");
        let (mut server, _) = listener.accept().unwrap();
        client.set_write_timeout(Some(PATIENCE)).unwrap();
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        let received = thread::scope(|scope| {
            scope.spawn(move || client.write_all(&vec![7; BYTES]).expect("all is written"));
            let mut all = Vec::new();
            server.read_to_end(&mut all).expect("all is read");
            all.len()
        });
        assert_eq!(received, BYTES);
    }
    assert_eq!(wires.longest(), 1500);
    assert_eq!(lab.device_drops().unwrap(), []);
}
