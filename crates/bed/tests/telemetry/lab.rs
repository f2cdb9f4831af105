//! A network namespace of a test's own, with connections over its loopback device.

use std::{
    io::{Read as _, Write as _},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use anabranch_bed::{
    BedError,
    host::ip,
    telemetry::{Sample, sockets},
};
use anabranch_scenario::model::Protocol;
use nix::sched::{CloneFlags, unshare};
use socket2::{Domain, Socket, Type};

/// Addresses of the client: the first is what it connects from, the second an MPTCP endpoint.
pub(crate) const CLIENT: [&str; 2] = ["10.0.0.1", "10.0.1.1"];
/// Address of the server.
pub(crate) const SERVER: &str = "10.0.9.1";
/// Longest wait for anything, far above what it takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs `body` in a thread that has a network namespace to itself, which goes with the thread and its sockets.
pub(crate) fn in_namespace(test: &str, body: impl FnOnce() + Send) {
    let run = || match prepare() {
        Ok(()) => body(),
        Err(error) => skip(test, &error.to_string()),
    };
    thread::scope(|scope| {
        let result = scope.spawn(run).join();
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// Moves the thread into a namespace with the addresses above.
fn prepare() -> Result<(), BedError> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(std::io::Error::from).map_err(BedError::system("unshare"))?;
    ip(&["link", "set", "lo", "up"])?;
    for address in CLIENT.into_iter().chain([SERVER]) {
        ip(&["address", "add", &format!("{address}/32"), "dev", "lo"])?;
    }
    ip(&["mptcp", "limits", "set", "subflows", "4"])?;
    let reno = std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "reno");
    reno.map_err(BedError::system("choosing Reno"))
}

fn skip(test: &str, why: &str) {
    let required = std::env::var("ANABRANCH_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|what| what == "bed"),
        "{test} is required: {why}; it needs root, ip(8) and MPTCP"
    );
    // Not eprintln, whose output the test harness swallows when a test passes.
    let line = format!("SKIPPED: {test}: {why}; enable with: sudo -E cargo test -p anabranch-bed\n");
    std::io::stderr().write_all(line.as_bytes()).expect("stderr is open");
}

/// Lets the kernel's path manager open a second subflow.
pub(crate) fn add_endpoint() {
    ip(&["mptcp", "endpoint", "add", CLIENT[1], "dev", "lo", "subflow"]).expect("an endpoint can be added");
}

/// The two ends of a connection.
pub(crate) struct Pair {
    /// Kept, because further subflows connect to it.
    _listener: TcpListener,
    pub(crate) client: TcpStream,
    pub(crate) server: TcpStream,
}

/// A socket that is not connected.
pub(crate) fn socket(domain: Domain, protocol: Protocol) -> Socket {
    let protocol = match protocol {
        Protocol::Tcp => socket2::Protocol::TCP,
        Protocol::Mptcp => socket2::Protocol::MPTCP,
    };
    Socket::new(domain, Type::STREAM, Some(protocol)).expect("the kernel knows the protocol")
}

/// Connects from the client's first address to the server's.
pub(crate) fn connect(client: Protocol, server: Protocol) -> Pair {
    connect_from(CLIENT[0], client, "0.0.0.0", server, SERVER)
}

/// Connects over loopback; `any` is what the listener is bound to, every address, for joins.
pub(crate) fn connect_from(from: &str, client: Protocol, any: &str, server: Protocol, to: &str) -> Pair {
    let address = |ip: &str, port| SocketAddr::new(ip.parse().expect("an address"), port);
    let any = address(any, 0);
    let listener = socket(Domain::for_address(any), server);
    listener.bind(&any.into()).expect("the port is free");
    listener.listen(1).expect("a bound socket listens");
    let listener = TcpListener::from(listener);
    let port = listener.local_addr().expect("it is bound").port();
    let from = address(from, 0);
    let client = socket(Domain::for_address(from), client);
    client.bind(&from.into()).expect("the address is ours");
    client.connect_timeout(&address(to, port).into(), PATIENCE).expect("the server listens");
    let (server, _) = listener.accept().expect("a connection waits");
    server.set_read_timeout(Some(PATIENCE)).expect("not zero");
    let client = TcpStream::from(client);
    client.set_write_timeout(Some(PATIENCE)).expect("not zero");
    Pair { _listener: listener, client, server }
}

impl Pair {
    /// Sends so many bytes from client to server, which reads them all.
    pub(crate) fn transfer(&mut self, bytes: usize) {
        let Self { client, server, .. } = self;
        thread::scope(|scope| {
            scope.spawn(|| client.write_all(&vec![7; bytes]).expect("the server reads"));
            server.read_exact(&mut vec![0; bytes]).expect("the client sends");
        });
    }

    /// Sends until the buffers are full, and returns how much that was. Nobody reads.
    pub(crate) fn fill(&mut self) -> usize {
        self.client.set_nonblocking(true).expect("it can be set");
        let mut sent = 0;
        while let Ok(bytes) = self.client.write(&[7; 65536]) {
            sent += bytes;
        }
        self.client.set_nonblocking(false).expect("it can be set");
        sent
    }
}

/// Reads the socket until `wanted` holds, for what the kernel does in its own time.
pub(crate) fn sample_until(
    socket: &TcpStream,
    protocol: Protocol,
    wanted: impl Fn(&Sample) -> bool,
) -> Sample {
    use std::os::fd::AsFd as _;
    let pause = Duration::from_millis(5);
    for _ in 0..PATIENCE.as_millis() / pause.as_millis() {
        let sample = sockets::sample(socket.as_fd(), protocol).expect("an open socket can be read");
        if wanted(&sample) {
            return sample;
        }
        thread::sleep(pause);
    }
    let last = sockets::sample(socket.as_fd(), protocol);
    panic!("the connection is not as it should be after {PATIENCE:?}: {last:#?}");
}

/// Local addresses of the subflows.
pub(crate) fn local_addresses(sample: &Sample) -> Vec<IpAddr> {
    sample.subflows.iter().map(|subflow| subflow.local.ip()).collect()
}
