//! What the tests on the running kernel share: the command, with a folder of registrations of its own.

// Every test binary compiles this module and uses a part of it.
#![allow(dead_code, unreachable_pub)]

#[path = "../../../kernel/tests/common/mod.rs"]
pub mod kernel;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;

/// Names of congestion controls are host-wide.
static TURN: Mutex<()> = Mutex::new(());

/// Whether to skip a test because this machine cannot load BPF, or cannot keep it.
///
/// # Panics
/// Instead of skipping, if `ANABRANCH_REQUIRE` lists `bpf`.
pub fn skip(test: &str) -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    kernel::skip(test)
        || !mounts.contains(" /sys/fs/bpf bpf ")
            && kernel::skip_for(test, "no BPF file system", "mount -t bpf bpf /sys/fs/bpf")
}

/// The command with a folder of its own, which goes with everything in it when the value is dropped.
pub struct Daemon {
    pub folder: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

/// What the command has said.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Daemon {
    pub fn new() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = PathBuf::from(format!("/sys/fs/bpf/anabranch-test-{}", std::process::id()));
        Self { folder, _turn: turn }
    }

    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranchd"));
        command.arg("cc").args(arguments.split(' ')).arg("--pin").arg(&self.folder);
        command
    }

    /// Runs it to its end.
    pub fn run(&self, arguments: &str) -> Said {
        said(self.command(arguments).output().expect("the command starts"))
    }

    /// Runs it, and it must succeed; returns what it printed.
    pub fn done(&self, arguments: &str) -> String {
        let said = self.run(arguments);
        assert_eq!(said.code, Some(0), "anabranchd cc {arguments}: {said:?}");
        said.out
    }

    /// Starts it and does not wait.
    pub fn start(&self, arguments: &str) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts")
    }

    /// What `status --json` says of a loaded algorithm.
    pub fn loaded(&self, name: &str) -> Value {
        let status: Value = serde_json::from_str(&self.done("status --json")).expect("it is JSON");
        let mut all = status["loaded"].as_array().expect("an array").iter();
        all.find(|loaded| loaded["name"] == name).unwrap_or_else(|| panic!("{name}: {status}")).clone()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A test that has failed already must not abort here; one that has not checks afterwards.
        let _ = self.command("unload --all --force").output();
        let _ = fs::remove_dir(&self.folder);
    }
}

pub fn said(output: Output) -> Said {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it speaks UTF-8");
    Said { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Whether the kernel has a congestion control of that name.
pub fn registered(kernel_name: &str) -> bool {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    names.expect("it is readable").split_whitespace().any(|name| name == kernel_name)
}

/// A counter of `status --json`.
pub fn count(loaded: &Value, counter: &str) -> u64 {
    loaded["counters"][counter].as_u64().unwrap_or_else(|| panic!("{counter}: {loaded}"))
}

/// Calls of one event; zero ones are left out.
pub fn events(loaded: &Value, event: &str) -> u64 {
    loaded["counters"]["events"][event].as_u64().unwrap_or(0)
}

/// Names in a folder, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is readable");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
