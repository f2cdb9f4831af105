//! The device agents of a run: `anabranchd agent` in the namespaces of their nodes, from before the first connection to the end of
//! the last reading. Their configurations and their logs go into the run folder.

use std::{
    ffi::OsString,
    io::{self, BufRead as _, BufReader, Read as _},
    process::{Child, ChildStdout, Command},
    sync::mpsc::{self, Receiver},
    thread::{self, JoinHandle},
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    time::ClockId,
    unistd::Pid,
};
use serde_json::{Map, Value};

use super::attempt::Place;
use crate::{
    BedError, Nanos, clock,
    host::{Leftover, Namespace},
    plan::{Host, Plan},
    traffic::{anabranchd, child_command},
};

/// How long an agent may take until it has begun, and to its end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(10);

/// The agents of a run; dropping ends them.
pub(super) struct Agents {
    running: Vec<Running>,
}

/// What agents leave.
#[derive(Default)]
pub(super) struct Left {
    /// Configurations and logs, by the names of files.
    pub(super) attachments: Vec<(String, Vec<u8>)>,
    /// Agents that have failed, one sentence each.
    pub(super) failures: Vec<String>,
}

struct Running {
    host: usize,
    pid: Pid,
    /// What it has said, and how it ended.
    thread: Option<JoinHandle<io::Result<Ended>>>,
}

struct Ended {
    lines: Vec<String>,
    errors: String,
    is_success: bool,
}

impl Agents {
    /// Starts them and waits until each has begun.
    ///
    /// # Errors
    /// [`BedError::Unavailable`] if there is no `anabranchd`, [`BedError::Failed`] with the words of an agent that does not begin,
    /// [`BedError::System`].
    pub(super) fn start(plan: &Plan, hosts: &[Namespace], place: &Place<'_>) -> Result<Self, BedError> {
        let mut this = Self { running: Vec::new() };
        if plan.agents.is_empty() {
            return Ok(this);
        }
        let program = anabranchd::program()?;
        for agent in &plan.agents {
            let name = &plan.hosts[agent.host].name;
            let file = place.scratch.join(format!("agent-{name}.running.toml"));
            std::fs::write(&file, &agent.config)
                .map_err(BedError::system(format!("writing {}", file.display())))?;
            let (begun, wait) = mpsc::channel();
            let namespace = hosts[agent.host].handle()?;
            let arguments =
                ["agent", "--json", "--config"].map(OsString::from).into_iter().chain([file.clone().into()]);
            let command = child_command(&program, arguments);
            let work = move || {
                namespace.move_this_thread().map_err(io::Error::other)?;
                follow(command, &begun)
            };
            let thread = thread::Builder::new().name("agent".to_owned()).spawn(work);
            let thread = thread.map_err(BedError::system("starting a thread for an agent"))?;
            let pid = wait_for_begin(&wait, place);
            match pid {
                Some(pid) => this.running.push(Running { host: agent.host, pid, thread: Some(thread) }),
                None => {
                    let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                    let ended = ended.map_err(BedError::system(format!("starting {program}")))?;
                    let said = ended.errors.trim();
                    return Err(BedError::Failed(format!("the agent of node {name} does not begin: {said}")));
                }
            }
            let _ = std::fs::remove_file(&file);
        }
        Ok(this)
    }

    /// Ends them. Their logs get the scenario's time, whose 0 was at `zero` of `CLOCK_MONOTONIC`, and the names of its links.
    ///
    /// # Errors
    /// [`BedError::System`].
    ///
    /// # Panics
    /// If a thread did.
    pub(super) fn end(mut self, plan: &Plan, zero: Nanos) -> Result<Left, BedError> {
        let since_1970 = clock::time_of(ClockId::CLOCK_REALTIME) - (clock::monotonic() - zero);
        let mut left = Left::default();
        for running in &self.running {
            // One that has ended already is found out by what it returns.
            let _ = kill(running.pid, Signal::SIGTERM);
        }
        for running in &mut self.running {
            let thread = running.thread.take().expect("it is ended once");
            let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let ended = ended.map_err(BedError::system("reading what an agent says"))?;
            let host = &plan.hosts[running.host];
            if !ended.is_success {
                left.failures.push(format!("the agent of node {}: {}", host.name, ended.errors.trim()));
            }
            let log: String =
                ended.lines.iter().map(|line| in_scenario_terms(line, host, since_1970) + "\n").collect();
            left.attachments.push((format!("agent-{}.jsonl", host.name), log.into_bytes()));
        }
        for agent in &plan.agents {
            let name = format!("agent-{}.toml", plan.hosts[agent.host].name);
            left.attachments.push((name, agent.config.clone().into_bytes()));
        }
        Ok(left)
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        for running in self.running.iter_mut().filter(|running| running.thread.is_some()) {
            let _ = kill(running.pid, Signal::SIGTERM);
        }
        for thread in self.running.iter_mut().filter_map(|running| running.thread.take()) {
            // Nobody asked for the result.
            let _ = thread.join();
        }
    }
}

/// The number of the process once it has begun; it is noted as soon as it is there. `None`: it has ended before.
fn wait_for_begin(begun: &Receiver<Told>, place: &Place<'_>) -> Option<Pid> {
    let mut pid = None;
    loop {
        match begun.recv_timeout(PATIENCE) {
            Ok(Told::Process(number)) => {
                pid = i32::try_from(number).ok();
                // One that has ended already, or that the ledger does not take, ends with us all the same.
                if let Some(Ok(child)) = pid.map(Leftover::process) {
                    let _ = place.session.note(child);
                }
            }
            Ok(Told::Begun) => return pid.map(Pid::from_raw),
            Err(mpsc::RecvTimeoutError::Disconnected) => return None,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                // What it said by then is in the error.
                let _ = pid.map(|pid| kill(Pid::from_raw(pid), Signal::SIGKILL));
                return None;
            }
        }
    }
}

enum Told {
    Process(u32),
    Begun,
}

/// Runs an agent to its end; the kernel ends it when this thread ends.
fn follow(mut command: Command, begun: &mpsc::Sender<Told>) -> io::Result<Ended> {
    let mut child: Child = command.spawn()?;
    // Nobody listens any more if the start was given up.
    let _ = begun.send(Told::Process(child.id()));
    let output: ChildStdout = child.stdout.take().expect("it is a pipe");
    let mut lines = Vec::new();
    for line in BufReader::new(output).lines() {
        if lines.is_empty() {
            let _ = begun.send(Told::Begun);
        }
        lines.push(line?);
    }
    let mut errors = String::new();
    child.stderr.take().expect("it is a pipe").read_to_string(&mut errors)?;
    let is_success = child.wait()?.success();
    Ok(Ended { lines, errors, is_success })
}

/// A line of an agent's log with the scenario's time in `t_ms` in the place of `at_ms`, and the name of the link it is about in `link`.
fn in_scenario_terms(line: &str, host: &Host, since_1970: Nanos) -> String {
    let Ok(Value::Object(mut fields)) = serde_json::from_str(line) else { return line.to_owned() };
    // A run folder holds no time of day.
    if let Some(at_ms) = fields.remove("at_ms").and_then(|at_ms| at_ms.as_i64()) {
        let zero_ms = i64::try_from(since_1970 / 1_000_000).unwrap_or(i64::MAX);
        fields.insert("t_ms".to_owned(), (at_ms - zero_ms).into());
    }
    if let Some(link) = link_of(&fields, host) {
        fields.insert("link".to_owned(), link.into());
    }
    Value::Object(fields).to_string()
}

/// By the interface, or by the local address of a subflow: `10.64.0.1:4711 > 10.64.1.1:10001`.
fn link_of<'h>(fields: &Map<String, Value>, host: &'h Host) -> Option<&'h str> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let local = text("subflow").and_then(|subflow| {
        let end: std::net::SocketAddr = subflow.split_once(" > ")?.0.parse().ok()?;
        Some(end.ip().to_canonical())
    });
    let is_it = |interface: &&crate::plan::Interface| {
        Some(interface.name.as_str()) == text("dev")
            || interface.addresses.iter().any(|address| Some(address.ip) == local)
    };
    host.interfaces.iter().find(is_it).map(|interface| interface.link.as_str())
}
