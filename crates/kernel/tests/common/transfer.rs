//! Data between the two ends of a lab, every byte of it checked.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr},
    sync::atomic::{AtomicBool, Ordering},
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

    /// Sends at least `down` bytes to the client and `up` bytes to the server at once, and goes on while
    /// `during` runs. All that was sent has arrived when it returns.
    pub fn transfer(&self, down: usize, up: usize, during: impl FnOnce()) {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            for (seed, from, to, least) in
                [(1, &self.server, &self.client, down), (2, &self.client, &self.server, up)]
            {
                let sent = scope.spawn({
                    let over = &over;
                    move || send(from, seed, least, over)
                });
                scope.spawn(move || {
                    let received = receive(to, seed);
                    assert_eq!(received, sent.join().expect("the sender has not failed"), "bytes");
                });
            }
            let _ends = SetOnDrop(&over);
            during();
        });
    }
}

impl Connection {
    /// Sends zeros to the client for a while, as fast as they go; the bytes that arrived.
    #[allow(clippy::disallowed_methods)] // a transfer of the kernel takes real time
    pub fn stream(&self, duration: Duration) -> usize {
        thread::scope(|scope| {
            scope.spawn(move || {
                let chunk = vec![0; 1 << 18];
                let end = std::time::Instant::now() + duration;
                while std::time::Instant::now() < end {
                    (&self.server).write_all(&chunk).expect("the peer takes the data in time");
                }
                self.server.shutdown(Shutdown::Write).expect("the connection is open");
            });
            let (mut buffer, mut received) = (vec![0; 1 << 18], 0);
            loop {
                match (&self.client).read(&mut buffer).expect("the data arrive in time") {
                    0 => return received,
                    bytes => received += bytes,
                }
            }
        })
    }
}

/// Sets its flag even if what comes before it panics, so that nobody waits for ever.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn send(mut socket: &Socket, seed: u64, least: usize, over: &AtomicBool) -> usize {
    let mut pattern = Pattern::new(seed);
    let mut sent = 0;
    while sent < least || !over.load(Ordering::Acquire) {
        let chunk = pattern.next_chunk();
        socket.write_all(chunk).expect("the peer takes the data in time");
        sent += chunk.len();
    }
    socket.shutdown(Shutdown::Write).expect("the connection is open");
    sent
}

fn receive(mut socket: &Socket, seed: u64) -> usize {
    let mut pattern = Pattern::new(seed);
    let mut buffer = vec![0; Pattern::CHUNK];
    let mut received = 0;
    loop {
        let mut filled = 0;
        while filled < buffer.len() {
            match socket.read(&mut buffer[filled..]).expect("the data arrive in time") {
                0 => {
                    assert_eq!(filled, 0, "the end is within a chunk");
                    return received;
                }
                bytes => filled += bytes,
            }
        }
        assert!(buffer == pattern.next_chunk(), "the data differ in the chunk at {received} bytes");
        received += filled;
    }
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

    fn next_chunk(&mut self) -> &[u8] {
        for bytes in self.chunk.chunks_exact_mut(8) {
            bytes.copy_from_slice(&self.random.word().to_ne_bytes());
        }
        &self.chunk
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
