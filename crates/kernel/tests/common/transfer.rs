//! Data between the two ends of a lab, every byte of it checked.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr},
    thread,
    time::Duration,
};

use socket2::{Domain, Protocol, Socket, Type};

use super::{
    Random,
    lab::{Lab, SERVER},
};

const PORT: u16 = 5001;
/// No read or write may take longer.
const PATIENCE: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(20);

/// What an end is made of.
#[derive(Clone, Copy)]
pub struct End {
    pub protocol: Protocol,
    pub congestion: &'static str,
}

impl End {
    fn socket(self) -> Socket {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(self.protocol)).expect("a socket");
        socket.set_tcp_congestion(self.congestion.as_bytes()).expect("the congestion control is registered");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        socket.set_write_timeout(Some(PATIENCE)).expect("a timeout can be set");
        socket
    }
}

/// An established connection.
pub struct Connection {
    pub client: Socket,
    pub server: Socket,
    /// Further subflows join through it.
    _listener: Socket,
}

impl Connection {
    pub fn open(lab: &Lab, client: End, server: End) -> Self {
        let listener = lab.server.enter(|| {
            let listener = server.socket();
            listener.bind(&SocketAddr::from(([0, 0, 0, 0], PORT)).into()).expect("the port is free");
            listener.listen(1).expect("it can listen");
            listener
        });
        let client = lab.client.enter(|| {
            let socket = client.socket();
            socket.connect(&SocketAddr::from((SERVER, PORT)).into()).expect("the server is reachable");
            socket
        });
        let (server, _) = listener.accept().expect("the client has connected");
        server.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        server.set_write_timeout(Some(PATIENCE)).expect("a timeout can be set");
        // One byte each way first: it makes the connection fully established, and on Linux 6.18 data that
        // both ends send before that can arrive with a gap, with the kernel's own Reno too.
        for (mut from, mut to) in [(&client, &server), (&server, &client)] {
            from.write_all(b"!").expect("the connection is open");
            to.read_exact(&mut [0]).expect("the byte arrives in time");
        }
        Self { client, server, _listener: listener }
    }

    /// Sends `down` bytes to the client and `up` bytes to the server at once; meanwhile calls `during`.
    /// Both ends then know that the other has finished.
    pub fn transfer(&self, down: usize, up: usize, during: impl FnOnce()) {
        thread::scope(|scope| {
            scope.spawn(|| send(&self.server, 1, down));
            scope.spawn(|| send(&self.client, 2, up));
            scope.spawn(|| receive(&self.client, 1, down));
            scope.spawn(|| receive(&self.server, 2, up));
            during();
        });
    }
}

fn send(mut socket: &Socket, seed: u64, bytes: usize) {
    let mut pattern = Pattern::new(seed);
    let mut left = bytes;
    while left > 0 {
        let chunk = pattern.next_chunk(left);
        socket.write_all(chunk).expect("the peer takes the data in time");
        left -= chunk.len();
    }
    socket.shutdown(Shutdown::Write).expect("the connection is open");
}

fn receive(mut socket: &Socket, seed: u64, bytes: usize) {
    let mut pattern = Pattern::new(seed);
    let mut buffer = vec![0; Pattern::CHUNK];
    let mut left = bytes;
    while left > 0 {
        let expected = pattern.next_chunk(left);
        let got = &mut buffer[..expected.len()];
        socket.read_exact(got).expect("the data arrive in time");
        assert!(got == expected, "{left} bytes before the end the data differ");
        left -= expected.len();
    }
    let more = socket.read(&mut buffer).expect("the end arrives in time");
    assert_eq!(more, 0, "data beyond the end");
}

/// A reproducible stream of bytes.
struct Pattern {
    random: Random,
    chunk: Vec<u8>,
}

impl Pattern {
    const CHUNK: usize = 16_384;

    fn new(seed: u64) -> Self {
        Self { random: Random(seed), chunk: vec![0; Self::CHUNK] }
    }

    fn next_chunk(&mut self, left: usize) -> &[u8] {
        for bytes in self.chunk.chunks_exact_mut(8) {
            bytes.copy_from_slice(&self.random.word().to_ne_bytes());
        }
        &self.chunk[..left.min(Self::CHUNK)]
    }
}

/// Waits until `condition` holds, at most ten seconds; `what` is for the failure.
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..500 {
        if condition() {
            return;
        }
        thread::sleep(POLL);
    }
    panic!("ten seconds have passed without: {what}");
}
