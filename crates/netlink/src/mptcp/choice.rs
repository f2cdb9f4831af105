//! Which path manager a connection gets: what `net.mptcp.path_manager` (before Linux 6.16 `net.mptcp.pm_type`) says in the moment in
//! which its socket is created.
//!
//! A program that manages its own connections, and nobody else's, changes that for such a moment: [`Choice::in_user_space`].
//!
//! # What it leaves out
//! - Sockets that *another* program creates, and connections that it accepts, in the same moment of some ten microseconds are managed in
//!   user space, too: they have one subflow unless somebody gives them more. The kernel has no setting per socket.
//! - A process that is killed in that moment leaves the setting as it is. Whoever finds user space chosen leaves it so.

use std::{
    fs, io,
    net::SocketAddr,
    os::{
        fd::AsRawFd as _,
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr as UnixAddress, UnixListener},
    },
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket, sockopt::PeerCredentials,
};

use crate::NetlinkError;

/// The setting's file and the value for user space; the first that there is counts.
const FILES: [(&str, &str); 2] =
    [("/proc/sys/net/mptcp/path_manager", "userspace"), ("/proc/sys/net/mptcp/pm_type", "1")];
const TURN: &str = "anabranch-path-manager";
/// How often the turn is tried for, a millisecond apart.
const TRIES: usize = 1000;

/// The setting of the network namespace that the calling thread is in, at each call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    file: PathBuf,
    user_space: &'static str,
}

impl Choice {
    /// None if the kernel has no such setting (before Linux 5.19).
    pub fn find() -> Option<Self> {
        let there = FILES.into_iter().find(|(file, _)| Path::new(file).exists());
        there.map(|(file, user_space)| Self { file: file.into(), user_space })
    }

    /// Where it is.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What the setting is, as it stands there.
    ///
    /// # Errors
    /// [`NetlinkError::System`].
    pub fn read(&self) -> Result<String, NetlinkError> {
        let said = fs::read_to_string(&self.file).map_err(self.failed("reading"))?;
        Ok(said.trim().to_owned())
    }

    /// Has user space manage connections whose sockets are created from now on; what to [`restore`](Self::restore). Takes its
    /// [`Turn`].
    ///
    /// # Errors
    /// [`NetlinkError::System`], if the setting may not be written.
    pub fn choose_user_space(&self, _turn: &Turn) -> Result<String, NetlinkError> {
        let before = self.read()?;
        if before != self.user_space {
            fs::write(&self.file, self.user_space).map_err(self.failed("writing"))?;
        }
        Ok(before)
    }

    /// Sets what there was before.
    ///
    /// # Errors
    /// [`NetlinkError::System`].
    pub fn restore(&self, before: &str) -> Result<(), NetlinkError> {
        match before == self.user_space {
            true => Ok(()),
            false => fs::write(&self.file, before).map_err(self.failed("writing")),
        }
    }

    /// Whether sockets can be created [in user space](Self::in_user_space): that is chosen already, or may be. In containers and
    /// services, settings are often read-only even for `CAP_NET_ADMIN`.
    pub fn may_be_user_space(&self) -> bool {
        self.read().is_ok_and(|now| now == self.user_space)
            || fs::OpenOptions::new().write(true).open(&self.file).is_ok()
    }

    /// Creates sockets whose connections user space will manage, and sets the choice back at once.
    ///
    /// # Errors
    /// [`NetlinkError::System`]: the setting may not be written, or somebody else's turn lasts for a second.
    pub fn in_user_space<T>(&self, create: impl FnOnce() -> T) -> Result<T, NetlinkError> {
        let turn = Turn::take()?;
        let before = self.choose_user_space(&turn)?;
        let created = create();
        self.restore(&before)?;
        Ok(created)
    }

    fn failed(&self, what: &str) -> impl FnOnce(io::Error) -> NetlinkError {
        NetlinkError::system(format!("{what} {}", self.file.display()))
    }
}

/// The right to change the choice of a network namespace, held while the value lives: else two programs would take each other's
/// moment for what was there before. An abstract socket (unix(7)), which ends with its process.
#[derive(Debug)]
pub struct Turn {
    _listener: UnixListener,
}

impl Turn {
    /// Waits for it, for a second.
    ///
    /// # Errors
    /// [`NetlinkError::System`].
    pub fn take() -> Result<Self, NetlinkError> {
        let what = "waiting to choose the path manager";
        for _ in 0..TRIES {
            match listen(TURN) {
                Ok(listener) => return Ok(Self { _listener: listener }),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    thread::sleep(Duration::from_millis(1));
                }
                Err(error) => return Err(NetlinkError::system(what)(error)),
            }
        }
        Err(NetlinkError::system(what)(io::ErrorKind::TimedOut.into()))
    }
}

/// Says that the connection which begins at a local end is managed by the program that opens it, while the value lives. Whoever manages
/// the connections of a whole namespace looks for that by [`keeper`]. Said before the connection begins, it is known from the
/// beginning.
#[derive(Debug)]
pub struct Kept {
    _listener: UnixListener,
}

impl Kept {
    /// # Errors
    /// If somebody has said so already, or no sockets can be had.
    pub fn say(local: SocketAddr) -> io::Result<Self> {
        Ok(Self { _listener: listen(&name(local))? })
    }
}

/// The user that has said that it manages the connection which began there itself; none if nobody has.
pub fn keeper(local: SocketAddr) -> Option<u32> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let asking = socket(AddressFamily::Unix, SockType::Stream, flags, None).ok()?;
    let address = UnixAddr::new_abstract(name(local).as_bytes()).ok()?;
    connect(asking.as_raw_fd(), &address).ok()?;
    getsockopt(&asking, PeerCredentials).ok().map(|credentials| credentials.uid())
}

fn name(local: SocketAddr) -> String {
    format!("anabranch-keeps-{}", SocketAddr::new(local.ip().to_canonical(), local.port()))
}

fn listen(name: &str) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&UnixAddress::from_abstract_name(name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_kept_by_its_user_as_long_as_the_word_stands() {
        let local: SocketAddr = "192.0.2.1:4242".parse().expect("an address");
        let mapped = "[::ffff:192.0.2.1]:4242".parse().expect("an address");
        assert_eq!(keeper(local), None);
        let kept = Kept::say(local).expect("nobody else has");
        assert_eq!(keeper(local), Some(nix::unistd::geteuid().as_raw()));
        assert_eq!(keeper(mapped), keeper(local));
        assert!(Kept::say(mapped).is_err(), "it is said once");
        drop(kept);
        assert_eq!(keeper(local), None);
    }
}
