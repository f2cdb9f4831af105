//! Connections that user space manages: subflows, announcements and priorities, in conversation with the kernel.

mod common;

use std::{
    fs,
    io::{Read as _, Write as _},
    net::SocketAddr,
};

use anabranch_netlink::mptcp::{
    Closed, Connection, Endpoint, EndpointFlags, Event, Events, PathManager, Subflow, SubflowAddress, Token,
};
use common::{
    lab::{Lab, Namespace, SERVER},
    pair, skip, until,
};
use socket2::{Domain, Socket};

const PORT: u16 = 5001;

/// One side of the lab: its sockets belong to its namespace.
struct Side {
    manager: PathManager,
    events: Events,
}

impl Side {
    /// Lets user space manage the connections of a namespace.
    fn open(namespace: &Namespace) -> Self {
        namespace.run("sysctl", "-qw net.mptcp.pm_type=1");
        namespace.enter(|| Self { manager: PathManager::open().unwrap(), events: Events::open().unwrap() })
    }
}

/// A connection of the lab's first link, over which a byte has gone each way.
struct Conversation {
    client: Socket,
    server: Socket,
    _listener: Socket,
}

impl Conversation {
    /// The server's socket is of IPv4.
    fn open(lab: &Lab) -> Self {
        Self::listening(lab, SocketAddr::from(([0, 0, 0, 0], PORT)))
    }

    fn listening(lab: &Lab, at: SocketAddr) -> Self {
        let [client, server, listener] =
            pair::connect(lab, at, Domain::IPV4, SocketAddr::from((SERVER, PORT)));
        let conversation = Self { client, server, _listener: listener };
        conversation.speak();
        conversation
    }

    /// A byte each way.
    fn speak(&self) {
        for (mut from, mut to) in [(&self.client, &self.server), (&self.server, &self.client)] {
            from.write_all(b"!").expect("the connection is open");
            to.read_exact(&mut [0]).expect("the byte arrives in time");
        }
    }
}

fn created(events: &mut Events) -> Connection {
    until(events, |event| if let Event::Created(connection) = event { Some(*connection) } else { None })
}

fn established(events: &mut Events) -> Connection {
    until(events, |event| if let Event::Established(connection) = event { Some(*connection) } else { None })
}

fn joined(events: &mut Events) -> Subflow {
    until(events, |event| if let Event::SubflowEstablished(subflow) = event { Some(*subflow) } else { None })
}

fn priority(events: &mut Events) -> Subflow {
    until(events, |event| if let Event::SubflowPriority(subflow) = event { Some(*subflow) } else { None })
}

fn ended(events: &mut Events) -> Closed {
    until(events, |event| if let Event::SubflowClosed(closed) = event { Some(*closed) } else { None })
}

/// The other side's view of a subflow.
fn turned(address: SubflowAddress) -> SubflowAddress {
    SubflowAddress { local: address.remote, remote: address.local }
}

#[test]
fn a_subflow_is_opened_made_a_backup_and_closed() {
    if skip("a_subflow_is_opened_made_a_backup_and_closed") {
        return;
    }
    let lab = Lab::unshaped();
    let (mut client, mut server) = (Side::open(&lab.client), Side::open(&lab.server));
    let conversation = Conversation::open(&lab);

    let first = created(&mut client.events);
    assert_eq!(first.first.remote, SocketAddr::from((SERVER, PORT)));
    assert_eq!(first.first.local.ip().to_string(), "10.77.1.1");
    assert!(!first.is_server_side);
    assert_eq!(established(&mut client.events).token, first.token);
    let accepted = created(&mut server.events);
    assert!(accepted.is_server_side);
    assert_eq!(accepted.first, turned(first.first));

    let interface = lab.client.enter(|| nix::net::if_::if_nametoindex("c2").expect("the link is there"));
    let address = "10.77.2.1".parse().unwrap();
    let second = Endpoint { id: 2, interface: Some(interface), ..Endpoint::new(address) };
    client.manager.create_subflow(first.token, &second, first.first.remote).unwrap();
    let subflow = joined(&mut client.events);
    assert_eq!((subflow.token, subflow.local_id, subflow.is_backup), (first.token, 2, false));
    assert_eq!((subflow.address.local.ip(), subflow.interface), (address, Some(interface)));
    assert_eq!(subflow.address.remote, first.first.remote);
    let theirs = joined(&mut server.events);
    assert_eq!((theirs.token, theirs.remote_id), (accepted.token, 2));
    assert_eq!(theirs.address, turned(subflow.address));

    client.manager.set_subflow_backup(first.token, subflow.address, true).unwrap();
    let told = priority(&mut server.events);
    assert_eq!((told.address, told.is_backup), (theirs.address, true));

    // The first subflow too, and back.
    for backup in [true, false] {
        client.manager.set_subflow_backup(first.token, first.first, backup).unwrap();
        let told = priority(&mut server.events);
        assert_eq!((told.address, told.local_id, told.is_backup), (accepted.first, 0, backup));
    }

    client.manager.destroy_subflow(first.token, subflow.address).unwrap();
    let closed = ended(&mut client.events);
    assert_eq!((closed.subflow.address, closed.error, closed.reset), (subflow.address, None, None));
    conversation.speak();
    assert_eq!(ended(&mut server.events).subflow.address, theirs.address);

    let again = client.manager.destroy_subflow(first.token, subflow.address).unwrap_err();
    assert_eq!(again.errno(), Some(libc::ESRCH), "{again}");
    drop(conversation);
    let over =
        until(&mut client.events, |event| if let Event::Closed(token) = event { Some(*token) } else { None });
    assert_eq!(over, first.token);
}

#[test]
fn a_subflow_of_ipv4_on_a_socket_of_ipv6_is_closed_by_the_addresses_of_its_event() {
    if skip("a_subflow_of_ipv4_on_a_socket_of_ipv6_is_closed_by_the_addresses_of_its_event") {
        return;
    }
    let lab = Lab::unshaped();
    let (mut client, mut server) = (Side::open(&lab.client), Side::open(&lab.server));
    let any = SocketAddr::from(([0u16; 8], PORT));
    let _conversation = Conversation::listening(&lab, any);
    let first = established(&mut client.events);
    let second = Endpoint { id: 2, ..Endpoint::new("10.77.2.1".parse().unwrap()) };
    client.manager.create_subflow(first.token, &second, first.first.remote).unwrap();
    let subflow = joined(&mut server.events);
    assert_eq!(subflow.address.remote.ip().to_string(), "::ffff:10.77.2.1");
    server.manager.destroy_subflow(subflow.token, subflow.address).unwrap();
    assert_eq!(ended(&mut server.events).subflow.address, subflow.address);
}

#[test]
fn a_subflow_that_the_peer_resets_is_closed_with_an_error_and_can_be_opened_again() {
    if skip("a_subflow_that_the_peer_resets_is_closed_with_an_error_and_can_be_opened_again") {
        return;
    }
    let lab = Lab::unshaped();
    let (mut client, _server) = (Side::open(&lab.client), Side::open(&lab.server));
    let conversation = Conversation::open(&lab);
    let first = established(&mut client.events);
    let second = Endpoint { id: 2, ..Endpoint::new("10.77.2.1".parse().unwrap()) };
    client.manager.create_subflow(first.token, &second, first.first.remote).unwrap();
    let subflow = joined(&mut client.events);
    conversation.speak();

    lab.server.run("ss", "-K -tn dst 10.77.2.1");
    let closed = ended(&mut client.events);
    assert_eq!(closed.subflow.address, subflow.address);
    assert_eq!(closed.error, Some(libc::ECONNRESET as u8), "{closed:?}");
    conversation.speak();

    client.manager.create_subflow(first.token, &second, first.first.remote).unwrap();
    let again = joined(&mut client.events);
    assert_eq!((again.local_id, again.address.remote), (2, subflow.address.remote));
    assert_ne!(again.address.local.port(), subflow.address.local.port());
}

#[test]
fn a_subflow_may_begin_as_a_backup() {
    if skip("a_subflow_may_begin_as_a_backup") {
        return;
    }
    let lab = Lab::unshaped();
    let (mut client, mut server) = (Side::open(&lab.client), Side::open(&lab.server));
    let _conversation = Conversation::open(&lab);
    let first = established(&mut client.events);
    let second =
        Endpoint { id: 2, flags: EndpointFlags::BACKUP, ..Endpoint::new("10.77.2.1".parse().unwrap()) };
    client.manager.create_subflow(first.token, &second, first.first.remote).unwrap();
    assert!(joined(&mut server.events).is_backup, "the peer is told");
    assert!(!joined(&mut client.events).is_backup, "the peer has not asked for it");
}

#[test]
fn an_announcement_reaches_the_peer_and_is_taken_back() {
    if skip("an_announcement_reaches_the_peer_and_is_taken_back") {
        return;
    }
    let lab = Lab::unshaped();
    let (mut client, mut server) = (Side::open(&lab.client), Side::open(&lab.server));
    let conversation = Conversation::open(&lab);
    let token = established(&mut client.events).token;
    let accepted = established(&mut server.events).token;

    let address = "10.77.2.1".parse().unwrap();
    let endpoint = Endpoint { id: 4, flags: EndpointFlags::SIGNAL, ..Endpoint::new(address) };
    client.manager.announce(token, &endpoint).unwrap();
    let announced = until(&mut server.events, |event| {
        if let Event::Announced(announced) = event { Some(*announced) } else { None }
    });
    assert_eq!((announced.token, announced.remote_id, announced.address), (accepted, 4, address));

    conversation.speak();
    client.manager.remove(token, 4).unwrap();
    let removed = until(&mut server.events, |event| {
        if let Event::Removed { token, remote_id } = event { Some((*token, *remote_id)) } else { None }
    });
    assert_eq!(removed, (accepted, 4));
    let error = client.manager.remove(token, 4).unwrap_err();
    assert!(
        error.to_string().starts_with(&format!("removing the address 4 of connection {token}: ")),
        "{error}"
    );
}

#[test]
fn a_connection_that_is_not_there_is_named() {
    if skip("a_connection_that_is_not_there_is_named") {
        return;
    }
    let lab = Lab::unshaped();
    let mut client = Side::open(&lab.client);
    let local = Endpoint { id: 2, ..Endpoint::new("10.77.2.1".parse().unwrap()) };
    let error =
        client.manager.create_subflow(Token(0xbad), &local, "10.78.0.2:5001".parse().unwrap()).unwrap_err();
    assert_eq!(error.errno(), Some(libc::EINVAL));
    assert_eq!(
        error.to_string(),
        "opening a subflow of connection 00000bad from 10.77.2.1 id 2 to 10.78.0.2:5001: \
         invalid token: Invalid argument (os error 22), because of the token"
    );
}

#[test]
fn a_connection_that_the_kernel_manages_is_not_ours() {
    if skip("a_connection_that_the_kernel_manages_is_not_ours") {
        return;
    }
    let lab = Lab::unshaped();
    let (mut manager, mut events) =
        lab.client.enter(|| (PathManager::open().unwrap(), Events::open().unwrap()));
    let _conversation = Conversation::open(&lab);
    let first = established(&mut events);
    // The kernel's own endpoints give subflows, and their events are heard.
    lab.add_second_subflow();
    assert_eq!(joined(&mut events).local_id, 2);
    let mut server = lab.server.enter(|| Events::open().unwrap());
    manager.set_endpoint_flags(2, EndpointFlags::BACKUP).unwrap();
    assert!(priority(&mut server).is_backup, "a connection that is there follows");
    manager.delete_first("10.77.1.1".parse().unwrap()).unwrap();
    let closed = ended(&mut events);
    assert_eq!((closed.subflow.address, closed.subflow.local_id), (first.first, 0));

    let error = manager.destroy_subflow(first.token, first.first).unwrap_err();
    assert_eq!(error.errno(), Some(libc::EINVAL));
    assert!(error.to_string().contains("userspace PM not selected"), "{error}");
    let manager = fs::read_to_string("/proc/sys/net/mptcp/pm_type").expect("it is readable");
    assert_eq!(manager.trim(), "0", "of the host, which no test changes");
}
