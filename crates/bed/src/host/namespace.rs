//! Named network namespaces, as ip-netns(8) has them, so that a user can look into a running bed with
//! `ip netns exec`.

use std::{fs::File, io, process::Command, thread};

use nix::sched::{CloneFlags, setns};

use crate::BedError;

/// All of our namespaces' names begin with this; `clean` goes by it.
pub const PREFIX: &str = "anabranch-";

/// A network namespace, deleted when dropped.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    file: File,
}

impl Namespace {
    /// Makes the namespace `anabranch-<role>`, with its loopback device up.
    ///
    /// # Errors
    /// [`BedError::Failed`] if `ip` refuses, for example because the name is taken.
    pub fn new(role: &str) -> Result<Self, BedError> {
        let name = format!("{PREFIX}{role}");
        ip(&["netns", "add", &name])?;
        let file = match File::open(format!("/run/netns/{name}")) {
            Ok(file) => file,
            Err(source) => {
                let _ = ip(&["netns", "delete", &name]);
                return Err(BedError::System { what: format!("opening namespace {name}"), source });
            }
        };
        let namespace = Self { name, file };
        ip(&["-n", &namespace.name, "link", "set", "lo", "up"])?;
        Ok(namespace)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `work` in a thread of its own that has moved into the namespace; what it opens stays there.
    ///
    /// # Errors
    /// [`BedError::System`] if the namespace cannot be entered.
    ///
    /// # Panics
    /// If `work` does.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, BedError> {
        thread::scope(|scope| {
            let inside = scope.spawn(|| self.move_this_thread().map(|()| work()));
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Moves the calling thread into the namespace, for good.
    ///
    /// # Errors
    /// [`BedError::System`].
    pub fn move_this_thread(&self) -> Result<(), BedError> {
        setns(&self.file, CloneFlags::CLONE_NEWNET)
            .map_err(io::Error::from)
            .map_err(BedError::system(format!("entering namespace {}", self.name)))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Nothing can be done about a failure here; the next start cleans what is left.
        let _ = ip(&["netns", "delete", &self.name]);
    }
}

/// Runs ip(8) and returns what it prints.
///
/// # Errors
/// [`BedError::Unavailable`] without iproute2, [`BedError::Failed`] with ip's own message.
pub fn ip(arguments: &[&str]) -> Result<String, BedError> {
    let output = match Command::new("ip").args(arguments).output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let text = "the test bed needs ip(8); on Debian: apt-get install iproute2";
            return Err(BedError::Unavailable(text.to_owned()));
        }
        result => result.map_err(BedError::system("starting ip"))?,
    };
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(BedError::Failed(format!("ip {}: {}", arguments.join(" "), said.trim())))
}
