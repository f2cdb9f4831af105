//! Loaders that are killed, before every single system call by which they change something.

mod common;

use std::{io, os::unix::process::CommandExt as _, process::Stdio};

use common::{Daemon, kernel::transfer::wait_for, names, registered, skip};
use nix::{
    sys::{
        ptrace::{self, Options},
        signal::{Signal, kill},
        wait::{WaitStatus, waitpid},
    },
    unistd::Pid,
};

/// Calls by which the command changes the kernel or the folder; closing a descriptor happens at its death, too.
const CHANGES: [libc::c_long; 4] =
    [libc::SYS_bpf, libc::SYS_mkdirat, libc::SYS_symlinkat, libc::SYS_unlinkat];
#[cfg(target_arch = "x86_64")]
const OLDER_NAMES: [libc::c_long; 4] =
    [libc::SYS_mkdir, libc::SYS_symlink, libc::SYS_unlink, libc::SYS_rmdir];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_NAMES: [libc::c_long; 0] = [];

/// Runs the command and kills it before its change number `at`, counted from 0. Returns whether it came that far.
fn killed_before(daemon: &Daemon, arguments: &str, at: usize) -> bool {
    let mut command = daemon.command(arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    #[allow(unsafe_code)]
    // SAFETY: the closure makes one system call, which is safe between fork and exec, and allocates nothing.
    unsafe {
        command.pre_exec(|| ptrace::traceme().map_err(io::Error::from));
    }
    #[allow(clippy::zombie_processes, reason = "waitpid(2) waits for it below, and tells of its stops, too")]
    let child = command.spawn().expect("the command starts");
    let pid = Pid::from_raw(child.id().cast_signed());
    let mut status = waitpid(pid, None).expect("it stops after exec");
    ptrace::setoptions(pid, Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_EXITKILL)
        .expect("it is traced");
    let mut changes = 0;
    loop {
        let signal = match status {
            WaitStatus::Exited(_, code) => {
                assert_eq!(code, 0, "anabranchd cc {arguments}");
                return false;
            }
            WaitStatus::Stopped(_, Signal::SIGTRAP) => None,
            WaitStatus::Stopped(_, signal) => Some(signal),
            WaitStatus::PtraceSyscall(_) => {
                changes += usize::from(is_change(pid));
                if changes > at {
                    kill(pid, Signal::SIGKILL).expect("it is ours");
                    assert!(matches!(waitpid(pid, None), Ok(WaitStatus::Signaled(_, Signal::SIGKILL, _))));
                    return true;
                }
                None
            }
            other => panic!("anabranchd cc {arguments}: {other:?}"),
        };
        ptrace::syscall(pid, signal).expect("it goes on");
        status = waitpid(pid, None).expect("it stops or ends");
    }
}

/// Whether the process is about to make one of the calls in question.
fn is_change(pid: Pid) -> bool {
    let info = ptrace::syscall_info(pid).expect("it stands at a system call");
    if info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        return false;
    }
    #[allow(unsafe_code)]
    // SAFETY: `op` says that the union holds an entry.
    let call = unsafe { info.u.entry.nr };
    CHANGES.iter().chain(&OLDER_NAMES).any(|change| change.cast_unsigned() == call)
}

/// What must hold after a death: with a link, the algorithm is registered and can be looked at; without, there is no name.
/// Returns whether something was left that is not a working algorithm.
fn check(daemon: &Daemon) -> bool {
    let subfolder = daemon.folder.join("ab_reno");
    if subfolder.join("link").exists() {
        assert!(registered("ab_reno"));
        assert_eq!(daemon.loaded("reno")["is_this_build"], true);
        return false;
    }
    // The kernel takes the name away when it has closed the dead process's descriptors.
    wait_for("no name without a link", || !registered("ab_reno"));
    subfolder.exists()
}

#[test]
fn a_loader_killed_before_any_change_leaves_a_working_algorithm_or_none() {
    if skip("a_loader_killed_before_any_change_leaves_a_working_algorithm_or_none") {
        return;
    }
    let daemon = Daemon::new();
    let (mut deaths, mut leftovers) = (0, 0);
    while killed_before(&daemon, "load reno", deaths) {
        deaths += 1;
        leftovers += usize::from(check(&daemon));
        assert!(daemon.done("load reno").contains("ab_reno"));
        assert!(registered("ab_reno"));
        assert_eq!(daemon.done("unload reno"), "unloaded ab_reno\n");
        assert_eq!(names(&daemon.folder), Vec::<String>::new());
    }
    // At least: folder, three pins, the text, the registration; all but the first leave something.
    assert!(deaths > 20 && leftovers >= 5, "{deaths} deaths, {leftovers} leftovers");
}

#[test]
fn an_unloader_killed_before_any_change_leaves_a_working_algorithm_or_none() {
    if skip("an_unloader_killed_before_any_change_leaves_a_working_algorithm_or_none") {
        return;
    }
    let daemon = Daemon::new();
    daemon.done("load reno");
    let (mut deaths, mut leftovers) = (0, 0);
    while killed_before(&daemon, "unload reno", deaths) {
        deaths += 1;
        leftovers += usize::from(check(&daemon));
        daemon.done("load reno");
        assert!(!check(&daemon));
    }
    assert!(deaths >= 5 && leftovers >= 3, "{deaths} deaths, {leftovers} leftovers");
    assert!(!registered("ab_reno"));
}
