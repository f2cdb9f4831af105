//! Child processes that cannot outlive us, and what they write.

use std::{
    fs,
    io::{self, ErrorKind, Read as _},
    os::{fd::AsFd as _, unix::process::CommandExt as _},
    process::{self, Command, Stdio},
};

use nix::{
    fcntl::{FcntlArg, OFlag, fcntl},
    poll::PollFlags,
    sys::{prctl, signal::Signal},
    unistd,
};

use crate::{
    BedError, Nanos,
    traffic::clock::{Stop, Wake},
};

/// Whether a program is installed.
pub(super) fn check(program: &str) -> Result<(), BedError> {
    match Command::new(program).arg("--version").output() {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(missing(program)),
        Err(error) => Err(BedError::system(format!("starting {program}"))(error)),
        Ok(_) => Ok(()),
    }
}

fn missing(program: &str) -> BedError {
    let text = format!("{program} is not installed; on Debian: apt-get install iperf3 mptcpize");
    BedError::Unavailable(text)
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

/// A process, killed when dropped or when the thread that started it ends.
#[derive(Debug)]
pub(super) struct Child {
    process: process::Child,
    stdout: Vec<u8>,
}

impl Child {
    pub(super) fn spawn(command: &[String]) -> Result<Self, BedError> {
        let parent = unistd::getpid();
        let die_with_parent = move || {
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            // If the parent has died before that, nobody will send the signal.
            if unistd::getppid() == parent { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
        };
        let mut builder = Command::new(&command[0]);
        // A group of its own, so that an interrupt from the terminal leaves it to us to end it.
        builder
            .args(&command[1..])
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        #[allow(unsafe_code)]
        // SAFETY: between fork and exec it makes two system calls and touches neither heap nor locks.
        unsafe {
            builder.pre_exec(die_with_parent);
        }
        let process = builder.spawn().map_err(|error| match error.kind() {
            ErrorKind::NotFound => missing(&command[0]),
            _ => BedError::system(format!("starting {}", command[0]))(error),
        })?;
        let this = Self { process, stdout: Vec::new() };
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
        let status = self.process.try_wait().map_err(BedError::system("waiting for iperf3"))?;
        Ok(status.is_some())
    }

    /// Reads what it writes until it ends: [`Wake::Ready`], or as long as [`Stop::wait_for`] would wait.
    pub(super) fn read_to_end(&mut self, stop: &Stop, until: Nanos) -> Result<Wake, BedError> {
        let stdout = self.process.stdout.as_mut().expect("it was piped");
        loop {
            match stdout.read_to_end(&mut self.stdout) {
                Ok(_) => return Ok(Wake::Ready),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(BedError::system("reading from iperf3")(error)),
            }
            let wake = stop.wait_for(stdout.as_fd(), PollFlags::POLLIN, Some(until));
            if wake != Wake::Ready {
                return Ok(wake);
            }
        }
    }

    /// What it wrote to its two outputs. Ends it if it still runs.
    pub(super) fn into_output(mut self) -> Result<(Vec<u8>, String), BedError> {
        self.end();
        let mut errors = Vec::new();
        if let Some(mut stderr) = self.process.stderr.take() {
            stderr.read_to_end(&mut errors).map_err(BedError::system("reading from iperf3"))?;
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
