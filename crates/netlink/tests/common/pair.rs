//! A connection of Multipath TCP over the lab's first link.

use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};

use super::{PATIENCE, lab::Lab};

pub fn socket(family: Domain) -> Socket {
    let socket = Socket::new(family, Type::STREAM, Some(Protocol::MPTCP)).expect("a socket");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    socket
}

/// The client's socket, of a family, connected to an address; the server's, and that which listens. The wildcard is the
/// address to listen at if further addresses of the server are to be joined.
pub fn connect(lab: &Lab, at: SocketAddr, family: Domain, to: SocketAddr) -> [Socket; 3] {
    let listener = lab.server.enter(|| {
        let listener = socket(Domain::for_address(at));
        listener.bind(&at.into()).expect("the port is free");
        listener.listen(1).expect("it can listen");
        listener
    });
    let client = lab.client.enter(|| {
        let client = socket(family);
        client.connect(&to.into()).expect("the server is reachable");
        client
    });
    let (server, _) = listener.accept().expect("the client has connected");
    server.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    [client, server, listener]
}
