//! The agent's socket: `why TOKEN`, and `GET /metrics` for scrapers, one request per connection.
//!
//! It is an abstract socket of the network namespace (unix(7)), which only the agent's own user and root are answered on; and that
//! there can be only one is what keeps a second agent out. A client that says nothing is waited for shortly, since the agent has one
//! thread.

use std::{
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd, BorrowedFd},
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixListener, UnixStream},
    },
    time::Duration,
};

use anabranch_netlink::mptcp::Token;
use nix::{
    sys::socket::{getsockopt, sockopt::PeerCredentials},
    unistd::geteuid,
};

use crate::{DeviceError, path::token};

const NAME: &str = "anabranch-agent";
/// How long a client may take to say what it wants, or to take the answer.
const PATIENCE: Duration = Duration::from_millis(100);
/// Longest request.
const REQUEST: usize = 1024;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Why(Token),
    Metrics,
}

impl Request {
    /// By the first line of what a client says.
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        match (words.next()?, words.next()?) {
            ("why", text) => token(text).ok().map(Self::Why),
            ("GET", "/metrics") => Some(Self::Metrics),
            _ => None,
        }
    }
}

/// The socket.
pub(super) struct Control {
    listener: UnixListener,
}

impl Control {
    /// # Errors
    /// [`DeviceError::Refused`] if another agent has it.
    pub(super) fn open() -> Result<Self, DeviceError> {
        let listener = SocketAddr::from_abstract_name(NAME).and_then(|name| UnixListener::bind_addr(&name));
        let listener = listener.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => {
                DeviceError::Refused("another agent manages this network namespace".to_owned())
            }
            _ => DeviceError::system("claiming the network namespace")(error),
        })?;
        listener.set_nonblocking(true).map_err(DeviceError::system("opening the agent's socket"))?;
        Ok(Self { listener })
    }

    /// Answers whoever has called; what goes wrong with a client is its own affair.
    pub(super) fn serve(&self, mut answer: impl FnMut(Request) -> String) {
        while let Ok((client, _)) = self.listener.accept() {
            let _ = converse(client, &mut answer);
        }
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

fn converse(mut client: UnixStream, answer: &mut impl FnMut(Request) -> String) -> io::Result<()> {
    let user = getsockopt(&client, PeerCredentials)?.uid();
    if user != 0 && user != geteuid().as_raw() {
        return Ok(());
    }
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut said = [0; REQUEST];
    let length = client.read(&mut said)?;
    let said = String::from_utf8_lossy(&said[..length]);
    match said.lines().next().and_then(Request::read) {
        Some(Request::Metrics) => {
            let body = answer(Request::Metrics);
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            let length = body.len();
            write!(
                client,
                "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
        }
        Some(why) => client.write_all(answer(why).as_bytes()),
        None if said.starts_with("GET ") => {
            client.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        }
        None => Ok(()),
    }
}

/// Asks the agent of this network namespace why a connection is as it is: its last decisions, oldest first.
///
/// # Errors
/// [`DeviceError::Refused`] if no agent runs, or it does not manage the connection.
pub fn why(token: Token) -> Result<String, DeviceError> {
    let asking = || DeviceError::system("asking the agent");
    let stream = SocketAddr::from_abstract_name(NAME).and_then(|name| UnixStream::connect_addr(&name));
    let mut stream = stream.map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            DeviceError::Refused("no agent runs in this network namespace".to_owned())
        }
        _ => asking()(error),
    })?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).map_err(asking())?;
    stream.write_all(format!("why {token}\n").as_bytes()).map_err(asking())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(asking())?;
    if answer.is_empty() {
        return Err(DeviceError::Refused(format!(
            "the agent does not manage {token}, or does not answer you"
        )));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_its_first_line() {
        assert_eq!(Request::read("why 0000beef"), Some(Request::Why(Token(0xbeef))));
        assert_eq!(Request::read("GET /metrics HTTP/1.1"), Some(Request::Metrics));
        for other in ["", "why", "why beer", "GET / HTTP/1.1", "POST /metrics"] {
            assert_eq!(Request::read(other), None, "{other}");
        }
    }
}
