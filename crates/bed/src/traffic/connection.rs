//! The two ends of a TCP or MPTCP connection: one sends, the other receives and checks every byte.
//!
//! Data flow one way only, but for answers (`exchange.rs`): when both ends of an MPTCP connection send before it is fully established, Linux
//! 6.18 can lose some.

use std::{
    io::{self, ErrorKind, Read as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr},
    os::fd::{AsFd as _, AsRawFd as _},
    sync::atomic::Ordering,
};

use anabranch_draw::{Departures, Rng, Streams};
use anabranch_scenario::model::{self, Traffic};
use nix::poll::PollFlags;
use socket2::{Domain, Protocol, Socket, Type};

use super::{
    clock::{Stop, Wake},
    exchange::Exchange,
    pattern,
    state::ConnectionState,
};
use crate::{BedError, Nanos, host::Namespace, plan::ConnectionPlan};

/// What the sender of a connection does, and when.
#[derive(Clone, Debug)]
pub(super) struct Task {
    open_at: Nanos,
    from: SocketAddr,
    to: SocketAddr,
    file_bytes: Option<u64>,
    stop_at: Option<Nanos>,
    source: Option<Source>,
    exchange: Option<Exchange>,
}

/// An application that writes now and then.
#[derive(Clone, Debug)]
struct Source {
    model: model::Source,
    end: Nanos,
    rng: Rng,
}

impl Task {
    pub(super) fn new(
        plan: &ConnectionPlan,
        model: &model::Connection,
        duration: Nanos,
        streams: Streams,
    ) -> Self {
        let end = model.traffic.stop().unwrap_or(duration).min(duration);
        let exchange = Exchange::new(model, end, streams);
        let (file_bytes, stop_at, source) = match model.traffic {
            Traffic::Ftp { stop, .. } => (None, stop, None),
            Traffic::File { bytes, .. } => (Some(bytes), None, None),
            Traffic::Source(source) => {
                let rng = model.application_draws(streams);
                (None, None, Some(Source { model: source, end, rng }))
            }
            Traffic::Telemetry(_) | Traffic::Request(_) => (None, None, None),
            Traffic::Flows(_) | Traffic::Relayed => unreachable!("the plan refuses it"),
        };
        Self {
            open_at: plan.open_at,
            from: SocketAddr::new(plan.client_addresses[0], 0),
            to: SocketAddr::new(plan.server_address, plan.port),
            file_bytes,
            stop_at,
            source,
            exchange,
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

/// The sending end, from the opening to the end of the run.
pub(super) fn send(connection: &ConnectionState, task: &Task, stop: &Stop) {
    if stop.wait_until(task.open_at) == Wake::Stopped {
        return;
    }
    connection.opened.set(stop.clock().now());
    let socket = &connection.client;
    match connect(socket, task, stop) {
        Ok(Wake::Stopped) => return,
        Ok(_) => connection.established.set(stop.clock().now()),
        Err(error) => {
            let (from, to) = (task.from.ip(), task.to);
            return connection.fail(format!("connecting from {from} to {to}: {error}"));
        }
    }
    let written = match (&task.source, &task.exchange) {
        (Some(source), _) => write_now_and_then(connection, source, stop),
        (None, Some(exchange)) => exchange.ask(connection, stop),
        (None, None) => write(connection, task, stop),
    };
    let ended = written.and_then(|wake| {
        if wake == Wake::Stopped {
            return Ok(());
        }
        socket.shutdown(Shutdown::Write)?;
        // No event is asked for, so that only an error ends this before the run does.
        stop.wait_for(socket.as_fd(), PollFlags::empty(), None);
        socket.take_error()?.map_or(Ok(()), Err)
    });
    if let Err(error) = ended {
        connection.fail(format!("sending, after {} bytes: {error}", connection.written_bytes()));
    }
}

fn connect(socket: &Socket, task: &Task, stop: &Stop) -> io::Result<Wake> {
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

/// Writes until there is no more to write: [`Wake::Due`], or the applications are to end: [`Wake::Stopped`].
fn write(connection: &ConnectionState, task: &Task, stop: &Stop) -> io::Result<Wake> {
    let mut written = 0;
    loop {
        let left = task.file_bytes.map_or(u64::MAX, |bytes| bytes - written);
        if left == 0 || task.stop_at.is_some_and(|time| stop.clock().now() >= time) {
            return Ok(Wake::Due);
        }
        if stop.is_raised() {
            return Ok(Wake::Stopped);
        }
        let length = left.min(pattern::LONGEST as u64) as usize;
        match connection.client.send(pattern::piece(written, length)) {
            Ok(bytes) => {
                written += bytes as u64;
                connection.written.store(written, Ordering::Release);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                stop.wait_for(connection.client.as_fd(), PollFlags::POLLOUT, task.stop_at);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes when the source is due, as soon as the kernel takes it; otherwise as [`write`].
fn write_now_and_then(connection: &ConnectionState, source: &Source, stop: &Stop) -> io::Result<Wake> {
    let Source { model, end, rng } = source;
    let interval = [(stop.clock().now(), *end)];
    let mut due_bytes = 0;
    for due in Departures::new(interval, model.gap(), model.pattern, || rng.clone()) {
        if stop.wait_until(due) == Wake::Stopped {
            return Ok(Wake::Stopped);
        }
        due_bytes += u64::from(model.write_bytes);
        if write_up_to(connection, due_bytes, stop)? == Wake::Stopped {
            return Ok(Wake::Stopped);
        }
    }
    Ok(Wake::Due)
}

/// Writes until `bytes` in all are written, or the applications are to end.
pub(super) fn write_up_to(connection: &ConnectionState, bytes: u64, stop: &Stop) -> io::Result<Wake> {
    let mut written = connection.written_bytes();
    while written < bytes {
        if stop.is_raised() {
            return Ok(Wake::Stopped);
        }
        let length = (bytes - written).min(pattern::LONGEST as u64) as usize;
        match connection.client.send(pattern::piece(written, length)) {
            Ok(sent) => {
                written += sent as u64;
                connection.written.store(written, Ordering::Release);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                stop.wait_for(connection.client.as_fd(), PollFlags::POLLOUT, None);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Wake::Due)
}

/// The receiving end, until the sender has ended or the run does.
pub(super) fn receive(connection: &ConnectionState, task: &Task, stop: &Stop) {
    if let Err(error) = accept_and_read(connection, task, stop) {
        connection.fail(format!("receiving, after {} bytes: {error}", connection.delivered_bytes()));
    }
}

fn accept_and_read(connection: &ConnectionState, task: &Task, stop: &Stop) -> io::Result<()> {
    let socket = loop {
        if stop.wait_for(connection.listener.as_fd(), PollFlags::POLLIN, None) == Wake::Stopped {
            return Ok(());
        }
        match connection.listener.accept() {
            Ok((socket, _)) => break connection.server.get_or_init(|| socket),
            // The client may have gone again before it was accepted (accept(2)).
            Err(error) if passes(&error) || error.kind() == ErrorKind::ConnectionAborted => {}
            Err(error) => return Err(error),
        }
    };
    socket.set_nonblocking(true)?;
    let mut buffer = vec![0; 2 * pattern::LONGEST];
    let mut delivered = 0;
    let mut answerer = task.exchange.as_ref().map(Exchange::answerer);
    while !stop.is_raised() {
        match (&mut &*socket).read(&mut buffer) {
            Ok(0) => return ended(connection, delivered),
            Ok(bytes) => {
                let now = stop.clock().now();
                pattern::check(delivered, &buffer[..bytes])
                    .map_err(|wrong| io::Error::new(ErrorKind::InvalidData, wrong.to_string()))?;
                delivered += bytes as u64;
                connection.delivered.store(delivered, Ordering::Release);
                if task.file_bytes == Some(delivered) {
                    connection.completed.set(now);
                }
                if let Some(answerer) = &mut answerer {
                    answerer.answer(socket, delivered, stop)?;
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                stop.wait_for(socket.as_fd(), PollFlags::POLLIN, None);
            }
            Err(error) if passes(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The sender has ended: nothing of what it wrote may be missing.
fn ended(connection: &ConnectionState, delivered: u64) -> io::Result<()> {
    let written = connection.written_bytes();
    if delivered == written {
        return Ok(());
    }
    let text = format!("the connection has ended, but {written} bytes were written");
    Err(io::Error::new(ErrorKind::UnexpectedEof, text))
}

fn passes(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
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
