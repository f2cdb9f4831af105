//! The same connections made by iperf3(1), for those who trust it more than us; under mptcpize(8) for MPTCP.
//!
//! What differs from our own applications: iperf3 opens a control connection first, over the same path and with
//! the namespace's default congestion control (with MPTCP it has subflows of its own); it sends for whole
//! seconds, rounded down; of a file it sends whole blocks, and sometimes some more (its issue 768); and when its
//! sender is done, its receiver stops reading, so that it cannot tell when the last byte arrived (its issue 382).

mod report;

use std::{
    fs::File,
    sync::{Arc, atomic::AtomicBool, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use anabranch_scenario::model::{Protocol, Scenario, Traffic};
use nix::sched::{CloneFlags, setns};

pub use self::report::{Report, Summary, Transfer};
use super::{
    clock::{Clock, Stop, Wake},
    process::{self, Child},
};
use crate::{
    BedError, Nanos,
    host::Namespace,
    plan::{ConnectionPlan, Plan},
};

/// How to get the programs.
const DEBIAN: &str = "on Debian: apt-get install iperf3 mptcpize";
const SECOND: Nanos = 1_000_000_000;
/// How long after the scenario's end an iperf3 may exchange its results.
const GRACE: Nanos = 10 * SECOND;
/// How long a server may take until it listens, and to end after its client.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often to look whether it listens.
const POLL: Duration = Duration::from_millis(20);
/// Largest block that iperf3 writes at once, its default.
const BLOCK_BYTES_MAX: u64 = 128 * 1024;
/// Smaller ones would cost more than an inexact size does.
const BLOCK_BYTES_MIN: u64 = 16 * 1024;

/// The iperf3 processes of a run; none outlives it, nor this process.
#[derive(Debug)]
pub struct Iperf3 {
    stop: Arc<Stop>,
    workers: Vec<JoinHandle<Result<Report, BedError>>>,
}

impl Iperf3 {
    /// Starts a server for every connection, and its client when it is to be opened. `hosts`, `zero_ns` and
    /// `interrupt` are as for [`super::Applications::start`]. `on_child` gets the number of every process right
    /// after it has begun, from another thread.
    ///
    /// All servers listen when it returns.
    ///
    /// # Errors
    /// [`BedError::Unavailable`] if a program is not installed, [`BedError::Failed`] if a server does not
    /// listen, [`BedError::System`].
    pub fn start(
        plan: &Plan,
        scenario: &Scenario,
        hosts: &[Namespace],
        zero_ns: u64,
        interrupt: &Arc<AtomicBool>,
        on_child: impl Fn(u32) + Send + Sync + 'static,
    ) -> Result<Self, BedError> {
        process::check("iperf3", DEBIAN)?;
        if scenario.connections.iter().any(|connection| connection.protocol == Protocol::Mptcp) {
            process::check("mptcpize", DEBIAN)?;
        }
        let stop = Stop::new(Clock::new(zero_ns), Arc::clone(interrupt));
        let stop = Arc::new(stop.map_err(BedError::system("making an eventfd"))?);
        let mut this = Self { stop, workers: Vec::new() };
        let on_child: Arc<dyn Fn(u32) + Send + Sync> = Arc::new(on_child);
        let (ready, listening) = mpsc::channel();
        for (plan, model) in plan.connections.iter().zip(&scenario.connections) {
            let work = Work {
                name: model.name.clone(),
                server: namespace(&hosts[plan.server])?,
                client: namespace(&hosts[plan.client])?,
                server_command: server_command(plan, model.protocol),
                client_command: client_command(plan, model.protocol, model.traffic, scenario.duration),
                port: plan.port,
                open_at: plan.open_at,
                end_at: scenario.duration + GRACE,
                stop: Arc::clone(&this.stop),
                on_child: Arc::clone(&on_child),
            };
            let ready = ready.clone();
            let worker = thread::Builder::new().name("bed-iperf3".to_owned()).spawn(move || work.run(&ready));
            this.workers.push(worker.map_err(BedError::system("starting a thread for iperf3"))?);
        }
        drop(ready);
        for _ in 0..this.workers.len() {
            // A worker that has panicked sends nothing; `finish` passes its panic on.
            listening.recv().unwrap_or(Ok(()))?;
        }
        Ok(this)
    }

    /// Waits until every iperf3 has ended, at most 10 s beyond the scenario's end, and returns what each
    /// connection's said, in the plan's order.
    ///
    /// An element is [`BedError::Failed`] if its iperf3 failed, was interrupted or did not end in time.
    ///
    /// # Panics
    /// If a worker has.
    pub fn finish(mut self) -> Vec<Result<Report, BedError>> {
        let workers = self.workers.drain(..).map(JoinHandle::join);
        workers.map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    }
}

impl Drop for Iperf3 {
    fn drop(&mut self) {
        self.stop.raise();
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

fn namespace(host: &Namespace) -> Result<File, BedError> {
    host.enter(|| File::open("/proc/thread-self/ns/net"))?
        .map_err(BedError::system(format!("opening namespace {}", host.name())))
}

/// One connection's two processes. They belong to one thread: the kernel ends them when it does.
struct Work {
    name: String,
    server: File,
    client: File,
    server_command: Vec<String>,
    client_command: Vec<String>,
    port: u16,
    open_at: Nanos,
    end_at: Nanos,
    stop: Arc<Stop>,
    on_child: Arc<dyn Fn(u32) + Send + Sync>,
}

impl Work {
    fn run(self, ready: &mpsc::Sender<Result<(), BedError>>) -> Result<Report, BedError> {
        // Without a receiver, `start` has already failed because of another connection.
        let mut server = match self.start_server() {
            Ok(server) => {
                let _ = ready.send(Ok(()));
                server
            }
            Err(error) => {
                let _ = ready.send(Err(error));
                return Err(self.failed("its server did not start"));
            }
        };
        if self.stop.wait_until(self.open_at) == Wake::Stopped {
            return Err(self.failed("interrupted before it began"));
        }
        enter(&self.client)?;
        let mut client = self.spawn(&self.client_command)?;
        match client.read_to_end(&self.stop, self.end_at)? {
            Wake::Ready => {}
            Wake::Stopped => return Err(self.failed("interrupted")),
            Wake::Due => return Err(self.failed("not done 10 s after the scenario's end")),
        }
        let (output, errors) = client.into_output()?;
        let report =
            Report::parse(output).map_err(|error| self.failed(format!("{error} {errors}").trim()))?;
        // It ends by itself after one client; if it does not, it is ended here.
        server.read_to_end(&self.stop, self.stop.clock().now() + PATIENCE.as_nanos() as Nanos)?;
        Ok(report)
    }

    fn start_server(&self) -> Result<Child, BedError> {
        enter(&self.server)?;
        let mut server = self.spawn(&self.server_command)?;
        for _ in 0..PATIENCE.as_millis() / POLL.as_millis() {
            if process::listens(self.port).map_err(BedError::system("reading the namespace's sockets"))? {
                return Ok(server);
            }
            if server.has_ended()? || self.stop.is_raised() {
                break;
            }
            thread::sleep(POLL);
        }
        let (_, errors) = server.into_output()?;
        Err(self.failed(format!("its server does not listen on port {}. {errors}", self.port).trim()))
    }

    fn spawn(&self, command: &[String]) -> Result<Child, BedError> {
        let child = Child::spawn(command)?;
        (self.on_child)(child.id());
        Ok(child)
    }

    fn failed(&self, why: &str) -> BedError {
        BedError::Failed(format!("iperf3 of connection {}: {why}", self.name))
    }
}

fn enter(namespace: &File) -> Result<(), BedError> {
    setns(namespace, CloneFlags::CLONE_NEWNET)
        .map_err(std::io::Error::from)
        .map_err(BedError::system("entering a namespace for iperf3"))
}

fn server_command(plan: &ConnectionPlan, protocol: Protocol) -> Vec<String> {
    let mut command = program(plan, protocol);
    command.extend(["-s", "-1", "-p", &plan.port.to_string()].map(str::to_owned));
    command
}

fn client_command(
    plan: &ConnectionPlan,
    protocol: Protocol,
    traffic: Traffic,
    duration: Nanos,
) -> Vec<String> {
    let port = plan.port.to_string();
    let mut command = program(plan, protocol);
    command.extend(["-c", &plan.server_address.to_string(), "-p", &port].map(str::to_owned));
    command.extend(["-B", &plan.client_addresses[0].to_string(), "--cport", &port].map(str::to_owned));
    command.extend(["-C", &plan.congestion, "-N", "-J"].map(str::to_owned));
    match traffic {
        Traffic::Ftp { stop, .. } => {
            let time = stop.unwrap_or(duration).saturating_sub(plan.open_at);
            command.extend(["-t".to_owned(), (time / SECOND).max(1).to_string()]);
        }
        Traffic::File { bytes, .. } => {
            command.extend(["-n".to_owned(), bytes.to_string()]);
            command.extend(["-l".to_owned(), block_bytes(bytes).to_string()]);
        }
        Traffic::Source(_)
        | Traffic::Telemetry(_)
        | Traffic::Request(_)
        | Traffic::Flows(_)
        | Traffic::Relayed
        | Traffic::Transfer { .. } => {
            unreachable!("a run with iperf3 refuses it")
        }
    }
    command
}

fn program(plan: &ConnectionPlan, protocol: Protocol) -> Vec<String> {
    let family = if plan.server_address.is_ipv4() { "-4" } else { "-6" };
    let words: &[&str] = match protocol {
        Protocol::Tcp => &["iperf3", family],
        Protocol::Mptcp => &["mptcpize", "run", "iperf3", family],
    };
    words.iter().map(|&word| word.to_owned()).collect()
}

/// The largest block of which a file has a whole number, if there is a sensible one.
fn block_bytes(file_bytes: u64) -> u64 {
    let largest = file_bytes.min(BLOCK_BYTES_MAX);
    let divides = |&block: &u64| file_bytes.is_multiple_of(block);
    (BLOCK_BYTES_MIN.min(largest)..=largest).rev().find(divides).unwrap_or(BLOCK_BYTES_MAX)
}
