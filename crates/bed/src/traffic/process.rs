//! Child processes that cannot outlive us, and what they write.

use std::{
    ffi::OsStr,
    fs,
    io::{self, ErrorKind, Read as _},
    os::{
        fd::{AsFd as _, BorrowedFd},
        unix::process::CommandExt as _,
    },
    process::{self, Command, Stdio},
};

use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::PollFlags,
    sys::{
        prctl,
        signal::{Signal, kill},
    },
    unistd::{self, Pid},
};

use crate::{
    BedError, Nanos,
    traffic::clock::{Stop, Wake},
};

/// Whether a program is there; `hint` says how to get it.
pub(super) fn check(program: &str, hint: &str) -> Result<(), BedError> {
    match Command::new(program).arg("--version").output() {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(missing(program, hint)),
        Err(error) => Err(BedError::system(format!("starting {program}"))(error)),
        Ok(_) => Ok(()),
    }
}

fn missing(program: &str, hint: &str) -> BedError {
    BedError::Unavailable(format!("{program} is not installed; {hint}"))
}

/// Whether a socket of the calling thread's namespace listens on a port, of whatever address.
pub(super) fn listens(port: u16) -> io::Result<bool> {
    const LISTEN: &str = "0A";
    let suffix = format!(":{port:04X}");
    for table in ["tcp", "tcp6"] {
        let table = match fs::read_to_string(format!("/proc/thread-self/net/{table}")) {
            // A kernel without IPv6 has no such table.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            table => table?,
        };
        let found = table.lines().skip(1).any(|line| {
            let mut columns = line.split_whitespace().skip(1);
            let local = columns.next().unwrap_or_default();
            local.ends_with(&suffix) && columns.nth(1) == Some(LISTEN)
        });
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A command whose process is killed when the thread that starts it ends, with its outputs piped.
pub(crate) fn child_command(
    program: &str,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Command {
    let parent = unistd::getpid();
    let die_with_parent = move || {
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        // If the parent has died before that, nobody will send the signal.
        if unistd::getppid() == parent { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
    };
    let mut command = Command::new(program);
    // A group of its own, so that an interrupt from the terminal leaves it to us to end it.
    command
        .args(arguments)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    #[allow(unsafe_code)]
    // SAFETY: between fork and exec it makes two system calls and touches neither heap nor locks.
    unsafe {
        command.pre_exec(die_with_parent);
    }
    command
}

/// A process, killed when dropped or when the thread that started it ends.
#[derive(Debug)]
pub(super) struct Child {
    /// Of the program.
    name: String,
    process: process::Child,
    stdout: Vec<u8>,
}

impl Child {
    pub(super) fn spawn(command: &[String]) -> Result<Self, BedError> {
        let mut builder = child_command(&command[0], &command[1..]);
        let process = builder.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => BedError::Unavailable(format!("{} is not there any more", command[0])),
            _ => BedError::system(format!("starting {}", command[0]))(error),
        })?;
        let this = Self { name: command[0].clone(), process, stdout: Vec::new() };
        if let Some(stdout) = &this.process.stdout {
            fcntl(stdout, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))
                .map_err(io::Error::from)
                .map_err(BedError::system("setting up a pipe"))?;
        }
        Ok(this)
    }

    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(super) fn has_ended(&mut self) -> Result<bool, BedError> {
        let status =
            self.process.try_wait().map_err(BedError::system(format!("waiting for {}", self.name)))?;
        Ok(status.is_some())
    }

    /// What it has written by now, as far as it was read.
    pub(super) fn written(&self) -> &[u8] {
        &self.stdout
    }

    /// Reads what it writes, and returns whether that has come to its end.
    pub(super) fn read_what_is_there(&mut self) -> Result<bool, BedError> {
        match self.process.stdout.as_mut().expect("it was piped").read_to_end(&mut self.stdout) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(BedError::system(format!("reading from {}", self.name))(error)),
        }
    }

    /// Where [`read_what_is_there`](Self::read_what_is_there) reads.
    pub(super) fn stdout(&self) -> BorrowedFd<'_> {
        self.process.stdout.as_ref().expect("it was piped").as_fd()
    }

    /// Asks it to end by itself.
    pub(super) fn interrupt(&self) {
        // It fails only for a process that has ended, which is what is wanted.
        let _ = kill(Pid::from_raw(self.process.id() as i32), Signal::SIGINT);
    }

    /// Reads what it writes until it ends: [`Wake::Ready`], or as long as [`Stop::wait_for`] would wait.
    pub(super) fn read_to_end(&mut self, stop: &Stop, until: Nanos) -> Result<Wake, BedError> {
        while !self.read_what_is_there()? {
            let wake = stop.wait_for(self.stdout(), PollFlags::POLLIN, Some(until));
            if wake != Wake::Ready {
                return Ok(wake);
            }
        }
        Ok(Wake::Ready)
    }

    /// What it wrote to its two outputs. Ends it if it still runs.
    pub(super) fn into_output(mut self) -> Result<(Vec<u8>, String), BedError> {
        self.end();
        let mut errors = Vec::new();
        if let Some(mut stderr) = self.process.stderr.take() {
            stderr
                .read_to_end(&mut errors)
                .map_err(BedError::system(format!("reading from {}", self.name)))?;
        }
        Ok((std::mem::take(&mut self.stdout), String::from_utf8_lossy(&errors).trim().to_owned()))
    }

    fn end(&mut self) {
        // Both fail only for a process that has been waited for, which is what is wanted.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end();
    }
}
