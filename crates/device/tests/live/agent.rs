//! The agent in a namespace, and what it says.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdout},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use tempfile::NamedTempFile;

use super::{common::lab::Namespace, inside, wait};

/// Two interfaces, of which the second has this role, and one policy for everything.
pub fn config(second: &str, policy: &str) -> NamedTempFile {
    written(&format!(
        "[agent]\nset_pm_type = true\n[[interface]]\nname = \"c1\"\n[[interface]]\nname = \"c2\"\n{second}\n\
         [[connection]]\npolicy = {policy}\n"
    ))
}

/// A configuration of one's own.
pub fn written(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("it can be written");
    file
}

/// An agent that runs; killed when dropped.
pub struct Agent {
    child: Child,
    said: Arc<Mutex<Vec<Value>>>,
    reader: Option<JoinHandle<()>>,
}

impl Agent {
    /// Starts it and waits until it has begun.
    pub fn start(namespace: &Namespace, config: &NamedTempFile) -> Self {
        Self::of(env!("CARGO_BIN_EXE_anabranchd"), namespace, config)
    }

    /// The same with another build of the program.
    pub fn of(program: &str, namespace: &Namespace, config: &NamedTempFile) -> Self {
        let arguments = format!("agent --json --config {}", config.path().display());
        let mut child = inside(namespace, program, &arguments).spawn().expect("it starts");
        let said = Arc::new(Mutex::new(Vec::new()));
        let (out, into) = (child.stdout.take().expect("it is a pipe"), Arc::clone(&said));
        let reader = Some(thread::spawn(move || read(out, &into)));
        let agent = Self { child, said, reader };
        agent.wait_for("started", |_| true);
        agent
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// A number of its `/proc/PID/status`.
    pub fn status(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let number = line.expect("every Linux has it").split_whitespace().next().expect("a number");
        number.parse().expect("a number")
    }

    pub fn said(&self) -> Vec<Value> {
        self.said.lock().expect("no reader panics").clone()
    }

    /// The first line of that event that fits, once it is there.
    pub fn wait_for(&self, event: &str, fits: impl Fn(&Value) -> bool) -> Value {
        wait(&format!("{event}, after {:#?}", self.said()), || {
            self.said().into_iter().find(|line| line["event"] == event && fits(line))
        })
    }

    /// Sends a signal and waits for its end; whether it was an orderly one.
    pub fn end(mut self, signal: Signal) -> bool {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("it runs");
        let status = self.child.wait().expect("it ends");
        self.reader.take().expect("it is there until then").join().expect("it has read to the end");
        status.success()
    }
}

fn read(out: ChildStdout, into: &Mutex<Vec<Value>>) {
    for line in BufReader::new(out).lines().map_while(Result::ok) {
        let value = serde_json::from_str(&line).expect("every line is JSON");
        into.lock().expect("no reader panics").push(value);
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // A test that has failed already must not abort here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
