//! A bed run as two processes, so that one can clean up after the other.
//!
//! The process that the user has started forks: the **worker** does everything, the **supervisor** waits for
//! it. If the worker is killed, the supervisor removes what it has left. If the supervisor is killed, the kernel
//! sends the worker SIGTERM, and it winds up by itself. SIGINT, SIGTERM and SIGHUP may come to either or to both,
//! as from a terminal: they raise one flag in the worker, and the run ends in order, once.

use std::{
    any::Any,
    fs,
    io::{self, Write as _},
    panic::{AssertUnwindSafe, catch_unwind},
    process::{self, ExitCode},
    thread,
    time::Duration,
};

use anabranch_kernel::KernelError;
use nix::{
    sys::{
        prctl,
        signal::{SigHandler, SigSet, SigmaskHow, Signal, kill, signal},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{ForkResult, Pid, fork, getpid, getppid},
};

use super::{Interrupt, session};
use crate::BedError;

const DONE: u8 = 0;
const FAILED: u8 = 1;
const BAD_INPUT: u8 = 2;
const UNAVAILABLE: u8 = 4;
/// Plus the signal's number, as shells count: 130 for SIGINT, 143 for SIGTERM.
const INTERRUPTED: u8 = 128;

/// How long helper programs of a killed worker may take to their end.
const ORPHANS_PATIENCE: Duration = Duration::from_secs(2);

/// Does `work` in a process of its own under supervision, and says on stderr why it failed if it does.
///
/// To be called before the process has a second thread. Only the supervisor returns from it; the worker ends
/// when `work` does. `work` must look at the [`Interrupt`] often enough to end within a second, and return
/// [`BedError::Interrupted`] then.
///
/// The exit code: 0 done; 1 failed, or killed; 2 bad input; 4 the machine lacks something; 129, 130 or 143 after
/// SIGHUP, SIGINT or SIGTERM. A SIGHUP or SIGINT that is ignored when the process starts, as under `nohup`, stays
/// ignored.
pub fn supervised(work: impl FnOnce(&Interrupt) -> Result<(), BedError>) -> ExitCode {
    let interruptions = interruptions(&fs::read_to_string("/proc/self/status").unwrap_or_default());
    match split(&interruptions) {
        Ok(Process::Worker { supervisor, mask }) => {
            let code = be_worker(work, &interruptions, supervisor, &mask);
            process::exit(i32::from(code));
        }
        Ok(Process::Supervisor { worker, signals }) => ExitCode::from(supervise(worker, &signals)),
        Err(errno) => {
            let error = BedError::system("starting the bed's second process")(errno.into());
            ExitCode::from(report(&error))
        }
    }
}

enum Process {
    Worker { supervisor: Pid, mask: SigSet },
    Supervisor { worker: Pid, signals: SigSet },
}

/// Signals by which a user ends a run, but for those that whoever started us wants ignored.
fn interruptions(status: &str) -> Vec<Signal> {
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
        .unwrap_or(0);
    let is_ignored = |signal: Signal| ignored >> (signal as u32 - 1) & 1 == 1;
    let mut all = vec![Signal::SIGINT, Signal::SIGHUP];
    all.retain(|&signal| !is_ignored(signal));
    // Always: it is what the kernel sends when the supervisor dies.
    all.push(Signal::SIGTERM);
    all
}

fn split(interruptions: &[Signal]) -> nix::Result<Process> {
    let mut signals: SigSet = interruptions.iter().copied().collect();
    signals.add(Signal::SIGCHLD);
    // The worker dies by SIGQUIT, as it should, and leaves the cleaning to the supervisor.
    signals.add(Signal::SIGQUIT);
    #[allow(unsafe_code)]
    // SAFETY: the default disposition runs no code of ours.
    unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }?;
    // Blocked over the fork, so that none comes before there is someone to take it.
    let mask = signals.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    // A killed worker's helper programs become ours, so that we can wait for their end.
    prctl::set_child_subreaper(true)?;
    let supervisor = getpid();
    // What is buffered would be written by both.
    let _ = io::stdout().flush();
    #[allow(unsafe_code)]
    // SAFETY: there is no other thread that could hold a lock, as the caller has promised.
    let forked = unsafe { fork() }?;
    Ok(match forked {
        ForkResult::Child => Process::Worker { supervisor, mask },
        ForkResult::Parent { child } => Process::Supervisor { worker: child, signals },
    })
}

fn be_worker(
    work: impl FnOnce(&Interrupt) -> Result<(), BedError>,
    interruptions: &[Signal],
    supervisor: Pid,
    mask: &SigSet,
) -> u8 {
    let interrupt = Interrupt::default();
    let ready = || -> Result<(), io::Error> {
        prctl::set_pdeathsig(Signal::SIGTERM)?;
        if getppid() != supervisor {
            interrupt.raise(Signal::SIGTERM);
        }
        for &signal in interruptions {
            interrupt.raise_on(signal)?;
        }
        Ok(mask.thread_set_mask()?)
    };
    if let Err(error) = ready() {
        return report(&BedError::system("preparing for signals")(error));
    }
    match catch_unwind(AssertUnwindSafe(|| work(&interrupt))) {
        Ok(Ok(())) => DONE,
        Ok(Err(BedError::Interrupted { signal })) => report(&BedError::Interrupted { signal }),
        Ok(Err(error)) => {
            let code = report(&error);
            // Often a consequence of the interruption, such as a helper program that has taken the signal too.
            interrupt.signal().map_or(code, |signal| report(&BedError::Interrupted { signal }))
        }
        Err(panic) => {
            say(&format!("error: a defect of the test bed: {}", panic_text(panic.as_ref())));
            FAILED
        }
    }
}

fn supervise(worker: Pid, signals: &SigSet) -> u8 {
    loop {
        match signals.wait() {
            Ok(Signal::SIGCHLD) => {}
            Ok(signal) => {
                let _ = kill(worker, signal);
                continue;
            }
            Err(_) => continue,
        }
        while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            match status {
                WaitStatus::Exited(pid, code) if pid == worker => {
                    return u8::try_from(code).unwrap_or(FAILED);
                }
                WaitStatus::Signaled(pid, signal, _) if pid == worker => return after_death(signal),
                WaitStatus::StillAlive => break,
                _ => {}
            }
        }
    }
}

/// Cleans up after a worker that could not.
fn after_death(signal: Signal) -> u8 {
    let cleaned = session::clean().and_then(|mut removed| {
        await_orphans();
        removed.extend(session::clean()?);
        Ok(removed)
    });
    let cleaned = match cleaned {
        Ok(removed) if removed.is_empty() => "it has left nothing behind".to_owned(),
        Ok(removed) => format!("removed what it has left: {}", removed.join(", ")),
        // Without the rights it has made nothing; the next bed cleans when it begins.
        Err(BedError::Unavailable(_)) => "it has left nothing behind".to_owned(),
        Err(BedError::Busy(_)) => "another bed has begun and has removed what it has left".to_owned(),
        Err(error) => format!("what it has left could not be removed ({error}); try `anabranch-bed clean`"),
    };
    say(&format!("error: the bed was killed by {signal}; {cleaned}"));
    FAILED
}

/// Waits for helper programs of the dead worker: an `ip netns add` that still runs makes its namespace after a
/// first cleaning.
fn await_orphans() {
    const STEP: Duration = Duration::from_millis(10);
    let mut waited = Duration::ZERO;
    while waitpid(None, Some(WaitPidFlag::WNOHANG)).is_ok() && waited < ORPHANS_PATIENCE {
        thread::sleep(STEP);
        waited += STEP;
    }
}

/// Says what went wrong, and returns the exit code for it.
fn report(error: &BedError) -> u8 {
    let code = exit_code(error);
    match error {
        BedError::Interrupted { .. } => say(&error.to_string()),
        _ if code == UNAVAILABLE => say(&format!("skipped: {error}")),
        _ => say(&format!("error: {error}")),
    }
    code
}

fn exit_code(error: &BedError) -> u8 {
    match error {
        BedError::Unavailable(_) => UNAVAILABLE,
        BedError::Input(_) => BAD_INPUT,
        BedError::Interrupted { signal } => INTERRUPTED + u8::try_from(*signal).unwrap_or(0),
        BedError::Kernel(error) => match error {
            KernelError::NotBuilt { .. }
            | KernelError::NotPermitted
            | KernelError::NoBtf
            | KernelError::KernelTooOld { .. } => UNAVAILABLE,
            KernelError::Unknown { .. }
            | KernelError::SimulatorOnly { .. }
            | KernelError::ParameterCount { .. }
            | KernelError::ParameterRange { .. } => BAD_INPUT,
            KernelError::NameTaken { .. }
            | KernelError::Refused { .. }
            | KernelError::NoTimeouts { .. }
            | KernelError::Read { .. } => FAILED,
        },
        BedError::Record(
            anabranch_record::Error::Unwritable { .. }
            | anabranch_record::Error::Name(_)
            | anabranch_record::Error::NotARun(_)
            | anabranch_record::Error::Damaged { .. },
        ) => BAD_INPUT,
        BedError::Busy(_) | BedError::System { .. } | BedError::Failed(_) | BedError::Record(_) => FAILED,
    }
}

/// A line for the user; a stderr that nobody reads is no reason to fail.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("see above")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_is_ignored_from_the_start_does_not_interrupt() {
        let all = [Signal::SIGINT, Signal::SIGHUP, Signal::SIGTERM];
        assert_eq!(interruptions("SigIgn:\t0000000000001000\n"), all);
        assert_eq!(interruptions("SigIgn:\t0000000000000001\n"), [Signal::SIGINT, Signal::SIGTERM]);
        assert_eq!(interruptions("SigIgn:\t0000000000004003\n"), [Signal::SIGTERM]);
    }

    #[test]
    fn every_kind_of_error_has_its_exit_code() {
        let code = |error: BedError| exit_code(&error);
        assert_eq!(code(BedError::Unavailable("no TUN".into())), 4);
        assert_eq!(code(BedError::Kernel(KernelError::NoBtf)), 4);
        assert_eq!(code(BedError::Input("no such link".into())), 2);
        assert_eq!(code(BedError::Kernel(KernelError::SimulatorOnly { name: "x" })), 2);
        assert_eq!(code(BedError::Record(anabranch_record::Error::Name("a/b".into()))), 2);
        assert_eq!(code(BedError::Busy("busy".into())), 1);
        assert_eq!(code(BedError::Failed("ip said no".into())), 1);
        assert_eq!(code(BedError::Interrupted { signal: libc::SIGINT }), 130);
        assert_eq!(code(BedError::Interrupted { signal: libc::SIGTERM }), 143);
    }
}
