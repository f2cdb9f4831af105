//! The two ends of a TCP or MPTCP connection: which of them sends, receives or answers, and when.
//!
//! When both ends of an MPTCP connection send before it is fully established, Linux 6.18 can lose some. So where the
//! acceptor sends without being asked, the opener first says one byte, and the acceptor begins when it has got it; if both
//! send, the opener begins when the first byte has come back. That byte counts nowhere. In the simulator the opener begins at
//! once: here a transfer in both directions lags behind by a round trip. Nor does an end of such a transfer close its way
//! when it has written all: once one way of an MPTCP connection has ended, Linux 6.18 is slow on the other.

use std::{
    io::{self, ErrorKind, Read as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr},
    os::fd::{AsFd as _, AsRawFd as _},
    thread,
};

use anabranch_draw::Streams;
use anabranch_scenario::model::{self, Direction, Traffic};
use nix::poll::PollFlags;
use socket2::{Domain, Protocol, Socket, Type};

use super::{
    chunks::{self, Share},
    clock::{Stop, Wake},
    exchange::Exchange,
    state::ConnectionState,
    transfer::{self, End, Source, passes},
};
use crate::{BedError, Nanos, host::Namespace, plan::ConnectionPlan};

/// What the ends of a connection do, and when.
#[derive(Clone, Debug)]
pub(super) struct Task {
    open_at: Nanos,
    from: SocketAddr,
    to: SocketAddr,
    direction: Direction,
    /// Whether the opener says a byte before the other end may send.
    greets: bool,
    work: Work,
    /// The transfer whose chunks it delivers.
    delivers: Option<Share>,
}

/// What an end that sends does.
#[derive(Clone, Debug)]
enum Work {
    /// As much as the kernel takes: so many bytes if it is a file, until a time if there is one.
    Bulk {
        bytes: Option<u64>,
        stop_at: Option<Nanos>,
    },
    Source(Source),
    Exchange(Exchange),
    Chunks(Share),
}

/// What the opener says so that the other end may send.
const GREETING: u8 = b'.';

impl Task {
    pub(super) fn new(
        plan: &ConnectionPlan,
        model: &model::Connection,
        carried_bytes: Option<u64>,
        [share, delivers]: [Option<Share>; 2],
        duration: Nanos,
        streams: Streams,
    ) -> Self {
        let end = model.traffic.stop().unwrap_or(duration).min(duration);
        let work = match model.traffic {
            Traffic::Ftp { stop, .. } => Work::Bulk { bytes: None, stop_at: stop },
            Traffic::File { .. } | Traffic::Relayed => Work::Bulk { bytes: carried_bytes, stop_at: None },
            Traffic::Source(source) => {
                Work::Source(Source::new(source, end, model.application_draws(streams)))
            }
            Traffic::Telemetry(_) | Traffic::Request(_) => {
                Work::Exchange(Exchange::new(model, end, streams).expect("these have answers"))
            }
            Traffic::Transfer { .. } => Work::Chunks(share.expect("a transfer writes to it")),
            Traffic::Flows(_) => unreachable!("there is no plan with it"),
        };
        Self {
            open_at: plan.open_at,
            from: SocketAddr::new(plan.client_addresses[0], 0),
            to: SocketAddr::new(plan.server_address, plan.port),
            direction: model.traffic.direction(),
            greets: model.protocol == model::Protocol::Mptcp && model.traffic.acceptor_speaks_first(),
            work,
            delivers,
        }
    }

    /// Whether both ends send what they have, not asked by the other.
    fn is_mutual(&self) -> bool {
        self.direction == Direction::Both && !matches!(self.work, Work::Exchange(_))
    }

    /// Notes the time if a file has just been read to its end, or a chunk of one.
    pub(super) fn look_for_completion(&self, end: End<'_>, stop: &Stop) {
        if let Some(share) = &self.delivers {
            share.delivered(end.delivered_bytes(), stop.clock().now());
        }
        let Work::Bulk { bytes: Some(bytes), .. } = self.work else { return };
        // Each way is counted before both are looked at, so that one of two readers finds the file complete.
        let is_whole = |of: End<'_>| of.delivered_bytes() >= bytes;
        if is_whole(end) && (self.direction != Direction::Both || is_whole(end.other_way())) {
            end.connection.completed.set(stop.clock().now());
        }
    }
}

/// Makes the sockets of a connection, each in its namespace; the server's listens.
pub(super) fn prepare(
    plan: &ConnectionPlan,
    connection: &model::Connection,
    hosts: &[Namespace],
) -> Result<ConnectionState, BedError> {
    let name = &connection.name;
    let listener = hosts[plan.server]
        .enter(|| listen(plan, connection.protocol))?
        .map_err(BedError::system(format!("making the listening socket of connection {name}")))?;
    let client = hosts[plan.client]
        .enter(|| socket(plan, connection.protocol))?
        .map_err(BedError::system(format!("making the client's socket of connection {name}")))?;
    Ok(ConnectionState::new(client, listener))
}

fn socket(plan: &ConnectionPlan, protocol: model::Protocol) -> io::Result<Socket> {
    let protocol = match protocol {
        model::Protocol::Tcp => Protocol::TCP,
        model::Protocol::Mptcp => Protocol::MPTCP,
    };
    let domain = if plan.server_address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let socket = Socket::new(domain, Type::STREAM, Some(protocol))?;
    socket.set_nonblocking(true)?;
    // The last, partial segment leaves at once, as the simulator's does.
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_congestion(plan.congestion.as_bytes()).map_err(|error| {
        let text = format!("congestion control {:?} is not to be had: {error}", plan.congestion);
        io::Error::new(error.kind(), text)
    })?;
    if plan.pacing {
        // Any bound makes TCP pace, at its own rate where that is lower.
        set_max_pacing_rate(&socket, u64::MAX - 1)?;
    }
    Ok(socket)
}

fn set_max_pacing_rate(socket: &Socket, bytes_per_s: u64) -> io::Result<()> {
    let value = &raw const bytes_per_s;
    #[allow(unsafe_code)]
    // SAFETY: the kernel reads eight bytes at `value`, which lives through the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            value.cast(),
            size_of::<u64>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn listen(plan: &ConnectionPlan, protocol: model::Protocol) -> io::Result<Socket> {
    let listener = socket(plan, protocol)?;
    // A server that is bound to one address rejects joins to another.
    let any: IpAddr = match plan.server_address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    listener.set_reuse_address(true)?;
    listener.bind(&SocketAddr::new(any, plan.port).into())?;
    listener.listen(1)?;
    Ok(listener)
}

/// The opener, until it has nothing left to do or the run ends.
pub(super) fn open(connection: &ConnectionState, task: &Task, stop: &Stop) {
    if stop.wait_until(task.open_at) == Wake::Stopped {
        return;
    }
    connection.opened.set(stop.clock().now());
    let begun = connect(&connection.client, task, stop).and_then(|wake| {
        if wake != Wake::Stopped {
            connection.established.set(stop.clock().now());
            if task.greets {
                return greet(&connection.client, task, stop);
            }
        }
        Ok(wake)
    });
    match begun {
        Ok(Wake::Stopped) => {}
        Ok(_) => work(End::opener(connection), task, stop),
        Err(error) => {
            let (from, to) = (task.from.ip(), task.to);
            connection.fail(format!("connecting from {from} to {to}: {error}"));
        }
    }
}

pub(super) fn connect(socket: &Socket, task: &Task, stop: &Stop) -> io::Result<Wake> {
    socket.bind(&task.from.into())?;
    match socket.connect(&task.to.into()) {
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
        Err(error) => return Err(error),
        Ok(()) => return Ok(Wake::Ready),
    }
    let wake = stop.wait_for(socket.as_fd(), PollFlags::POLLOUT, None);
    if wake == Wake::Ready {
        socket.take_error()?.map_or(Ok(()), Err)?;
    }
    Ok(wake)
}

/// Lets the other end send; if the opener is to send too, it waits for the first byte that comes back.
fn greet(socket: &Socket, task: &Task, stop: &Stop) -> io::Result<Wake> {
    let sent = socket.send(&[GREETING])?;
    assert_eq!(sent, 1, "a send buffer that is empty takes a byte");
    match task.direction {
        Direction::Both => Ok(stop.wait_for(socket.as_fd(), PollFlags::POLLIN, None)),
        Direction::Upload | Direction::Download => Ok(Wake::Ready),
    }
}

/// The acceptor, until it has nothing left to do or the run ends.
pub(super) fn accept(connection: &ConnectionState, task: &Task, stop: &Stop) {
    match take(connection, task, stop) {
        Ok(Some(socket)) => work(End::acceptor(connection, socket), task, stop),
        Ok(None) => {}
        Err(error) => connection.fail(format!("accepting: {error}")),
    }
}

/// Accepts the connection, and what the opener says first.
pub(super) fn take<'a>(
    connection: &'a ConnectionState,
    task: &Task,
    stop: &Stop,
) -> io::Result<Option<&'a Socket>> {
    let socket = loop {
        if stop.wait_for(connection.listener.as_fd(), PollFlags::POLLIN, None) == Wake::Stopped {
            return Ok(None);
        }
        match connection.listener.accept() {
            Ok((socket, _)) => break connection.server.get_or_init(|| socket),
            // The client may have gone again before it was accepted (accept(2)).
            Err(error) if passes(&error) || error.kind() == ErrorKind::ConnectionAborted => {}
            Err(error) => return Err(error),
        }
    };
    socket.set_nonblocking(true)?;
    let greeted = if task.greets { wait_for_greeting(socket, stop)? } else { Wake::Ready };
    Ok((greeted == Wake::Ready).then_some(socket))
}

fn wait_for_greeting(socket: &Socket, stop: &Stop) -> io::Result<Wake> {
    loop {
        if stop.wait_for(socket.as_fd(), PollFlags::POLLIN, None) == Wake::Stopped {
            return Ok(Wake::Stopped);
        }
        match (&mut &*socket).read(&mut [0]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => return Ok(Wake::Ready),
            Err(error) if passes(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

/// What an end does once it is connected.
fn work(end: End<'_>, task: &Task, stop: &Stop) {
    if let Work::Exchange(exchange) = &task.work {
        return if end.is_opener() { send(end, task, stop) } else { answer(end, exchange, stop) };
    }
    match (task.direction, end.is_opener()) {
        (Direction::Upload, true) | (Direction::Download, false) => send(end, task, stop),
        (Direction::Upload, false) | (Direction::Download, true) => receive(end, task, stop),
        (Direction::Both, _) => thread::scope(|scope| {
            let reader = thread::Builder::new().name("bed-both".to_owned());
            match reader.spawn_scoped(scope, || receive(end, task, stop)) {
                Ok(_) => send(end, task, stop),
                Err(error) => end.connection.fail(format!("starting a thread to receive: {error}")),
            }
        }),
    }
}

fn send(end: End<'_>, task: &Task, stop: &Stop) {
    let written = match &task.work {
        Work::Bulk { bytes, stop_at } => transfer::write(end, *bytes, *stop_at, stop),
        Work::Source(source) => transfer::write_now_and_then(end, source, stop),
        Work::Exchange(exchange) => exchange.ask(end, stop),
        Work::Chunks(share) => chunks::carry(end, share, stop),
    };
    let ended = written.and_then(|wake| {
        if wake == Wake::Stopped {
            return Ok(());
        }
        if !task.is_mutual() {
            end.socket.shutdown(Shutdown::Write)?;
        }
        // No event is asked for, so that only an error or the other end's close ends this before the run does.
        stop.wait_for(end.socket.as_fd(), PollFlags::empty(), None);
        end.socket.take_error()?.map_or(Ok(()), Err)
    });
    if let Err(error) = ended {
        end.connection.fail(format!("sending, after {} bytes: {error}", end.written_bytes()));
    }
}

fn receive(end: End<'_>, task: &Task, stop: &Stop) {
    read(end, stop, || {
        task.look_for_completion(end, stop);
        Ok(())
    });
}

fn answer(end: End<'_>, exchange: &Exchange, stop: &Stop) {
    let mut answerer = exchange.answerer();
    read(end, stop, || answerer.answer(end, stop));
}

fn read(end: End<'_>, stop: &Stop, after: impl FnMut() -> io::Result<()>) {
    if let Err(error) = transfer::read_all(end, stop, after) {
        end.connection.fail(format!("receiving, after {} bytes: {error}", end.delivered_bytes()));
    }
}

/// Resets the connection, so that nothing of it is left in the namespaces.
pub(super) fn abort(connection: &ConnectionState) {
    for socket in [Some(&connection.client), connection.server.get()].into_iter().flatten() {
        reset(socket);
    }
}

/// Dissolves what the socket is connected to (connect(2), `AF_UNSPEC`). A close with `SO_LINGER` 0 resets TCP;
/// MPTCP has no such rule.
fn reset(socket: &Socket) {
    let nowhere = libc::sockaddr { sa_family: libc::AF_UNSPEC as libc::sa_family_t, sa_data: [0; 14] };
    let length = size_of::<libc::sockaddr>() as libc::socklen_t;
    #[allow(unsafe_code)]
    // SAFETY: the address is a whole `sockaddr` of that length and lives through the call. A socket that was
    // never connected refuses, which is as well.
    let _ = unsafe { libc::connect(socket.as_raw_fd(), &raw const nowhere, length) };
}
