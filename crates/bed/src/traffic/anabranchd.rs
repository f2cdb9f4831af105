//! A transfer carried by the commands `anabranchd send` and `anabranchd receive`, as a user starts them, in the namespaces of its ends.
//!
//! It begins when the sender is started and is complete when the receiver says that the file has its name: opening connections and
//! making the file permanent are part of it. Files lie in memory (`/dev/shm`), so that no disk is. The commands' sockets have the
//! namespace's limits of buffers, and our congestion control as the namespace's default.

use std::{
    env, fs,
    io::{self, Write as _},
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    thread::{self, JoinHandle},
    time::Duration,
};

use anabranch_scenario::model::{Protocol, Scenario};
use nix::{poll::PollFlags, sched::CloneFlags};
use serde::Deserialize;
use serde_json::Value;

use super::{
    clock::{Clock, Stop, Wake},
    process::{self, Child},
};
use crate::{
    BedError, Nanos,
    host::{Leftover, Namespace},
    plan::Plan,
};

/// The variable that names the program; without it, it lies beside this one or in `PATH`.
pub const VARIABLE: &str = "ANABRANCHD";

const PROGRAM: &str = "anabranchd";
const SECOND: Nanos = 1_000_000_000;
/// How long the receiver may take until it listens, and either may take to end.
const PATIENCE: Nanos = 5 * SECOND;
/// How often to look whether the receiver listens.
const POLL: Duration = Duration::from_millis(10);

/// Both commands, at work; neither outlives it, nor this process.
#[derive(Debug)]
pub struct Anabranchd {
    stop: Arc<Stop>,
    worker: Option<JoinHandle<Result<Carried, BedError>>>,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Carried {
    /// When the sender was started, which is not before the transfer begins.
    pub began_at: Nanos,
    /// When the receiver said that the file has its name; none if the scenario's end came before.
    pub completed_at: Option<Nanos>,
    /// One per path, in the order of the transfer's connections.
    pub paths: Vec<PathReport>,
    /// What the process of the sender had resident at most, in bytes.
    pub sender_resident_bytes: Option<u64>,
    /// What that of the receiver had, if it has ended by itself.
    pub receiver_resident_bytes: Option<u64>,
    /// What the sender has printed.
    pub json: Vec<u8>,
    /// Why the run does not count.
    pub failure: Option<String>,
}

/// What the sender says of a path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct PathReport {
    /// Bytes of the file that the receiver has got over it.
    pub arrived_bytes: u64,
    /// Chunks of which these were.
    pub chunks: u64,
    /// How often it was connected.
    pub connections: u64,
    /// MPTCP or TCP, if it ever was.
    pub transport: Option<String>,
}

#[derive(Deserialize)]
struct Report {
    paths: Vec<PathReport>,
    failure: Option<String>,
    peak_resident_bytes: Option<u64>,
}

impl Anabranchd {
    /// Prepares both ends and starts the receiver, which listens when it returns, and the sender when the transfer begins.
    ///
    /// `plan` and `scenario` are of [`plan_for_anabranchd`](crate::plan::plan_for_anabranchd); `hosts`, `zero_ns` and `interrupt` as for
    /// [`super::Applications::start`]. `note` gets what would be left if this process died: the folder of the files before
    /// it is made, and every process right after it has begun.
    ///
    /// # Errors
    /// [`BedError::Unavailable`] without the program, [`BedError::Failed`] if the receiver does not listen, [`BedError::System`].
    pub fn start(
        plan: &Plan,
        scenario: &Scenario,
        hosts: &[Namespace],
        zero_ns: u64,
        interrupt: &Arc<AtomicBool>,
        has_tls: bool,
        note: impl Fn(Leftover) + Send + 'static,
    ) -> Result<Self, BedError> {
        let program = program()?;
        let (first, model) = (&plan.connections[0], &scenario.connections[0]);
        for host in [first.server, first.client] {
            let file = "/proc/sys/net/ipv4/tcp_congestion_control";
            let set = hosts[host].enter(|| fs::write(file, &first.congestion))?;
            set.map_err(BedError::system(format!("setting {file} to {}", first.congestion)))?;
        }
        let files = Files::make(scenario.transfers[0].size_bytes, &note)?;
        let stop = Stop::new(Clock::new(zero_ns), Arc::clone(interrupt));
        let stop = Arc::new(stop.map_err(BedError::system("making an eventfd"))?);
        let work = Work {
            program,
            files,
            peer: SocketAddr::new(first.server_address, first.port),
            addresses: plan.connections.iter().map(|of| of.client_addresses[0]).collect(),
            is_tcp: model.protocol == Protocol::Tcp,
            has_tls,
            start_at: scenario.transfers[0].start,
            end_at: scenario.duration,
            stop: Arc::clone(&stop),
            note: Box::new(note),
        };
        let [server, client] = [first.server, first.client].map(|host| {
            hosts[host]
                .enter(|| fs::File::open("/proc/thread-self/ns/net"))?
                .map_err(BedError::system(format!("opening namespace {}", hosts[host].name())))
        });
        let (server, client) = (server?, client?);
        let (ready, listening) = std::sync::mpsc::channel();
        let worker = thread::Builder::new().name("bed-anabranchd".to_owned()).spawn(move || {
            let receiver = match enter(&server).and_then(|()| work.listen()) {
                Ok(receiver) => {
                    let _ = ready.send(Ok(()));
                    receiver
                }
                Err(error) => {
                    // `start` has not returned yet, so somebody listens.
                    let _ = ready.send(Err(error));
                    return Ok(Carried::default());
                }
            };
            enter(&client)?;
            work.carry(receiver)
        });
        let this = Self { stop, worker: Some(worker.map_err(BedError::system("starting a thread"))?) };
        // A worker that has panicked sends nothing; `finish` passes its panic on.
        listening.recv().unwrap_or(Ok(()))?;
        Ok(this)
    }

    /// Waits until both have ended, which they are made to do at the scenario's end.
    ///
    /// # Errors
    /// [`BedError::Failed`] if the sender ends without a report, [`BedError::System`].
    ///
    /// # Panics
    /// If the thread that looks after them has.
    pub fn finish(mut self) -> Result<Carried, BedError> {
        let worker = self.worker.take().expect("it is taken once");
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Anabranchd {
    fn drop(&mut self) {
        self.stop.raise();
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

/// Where the program is.
/// Where the program is.
///
/// # Errors
/// [`BedError::Unavailable`] without it.
pub(crate) fn program() -> Result<String, BedError> {
    let beside = || {
        let path = env::current_exe().ok()?.with_file_name(PROGRAM);
        path.exists().then(|| path.display().to_string())
    };
    let named = env::var(VARIABLE).ok().filter(|name| !name.is_empty());
    let program = named.or_else(beside).unwrap_or_else(|| PROGRAM.to_owned());
    let hint = format!(
        "it is looked for where ${VARIABLE} says, beside anabranch-bed and in PATH; build it with: make device"
    );
    process::check(&program, &hint)?;
    Ok(program)
}

fn enter(namespace: &fs::File) -> Result<(), BedError> {
    nix::sched::setns(namespace, CloneFlags::CLONE_NEWNET)
        .map_err(io::Error::from)
        .map_err(BedError::system("entering a namespace for anabranchd"))
}

/// The file that is sent and the folder that it is received into; removed when dropped.
struct Files {
    folder: PathBuf,
}

impl Files {
    fn make(size_bytes: u64, note: impl Fn(Leftover)) -> Result<Self, BedError> {
        let folder = Path::new("/dev/shm").join(format!(".tmp-anabranch-bed-{}", std::process::id()));
        note(Leftover::Folder(folder.clone()));
        let files = Self { folder };
        let failed = || BedError::system(format!("writing into {}", files.folder.display()));
        fs::create_dir_all(files.received()).map_err(failed())?;
        let mut file = io::BufWriter::new(fs::File::create(files.file()).map_err(failed())?);
        // Every eight bytes say where they belong.
        let words = (0..size_bytes.div_ceil(8)).map(u64::to_le_bytes);
        let mut left = size_bytes;
        for word in words {
            let part = &word[..left.min(8) as usize];
            file.write_all(part).map_err(failed())?;
            left -= part.len() as u64;
        }
        file.flush().map_err(failed())?;
        Ok(files)
    }

    fn file(&self) -> PathBuf {
        self.folder.join("file")
    }

    fn received(&self) -> PathBuf {
        self.folder.join("received")
    }

    /// Whether what was received is what was sent.
    fn are_equal(&self) -> io::Result<bool> {
        Ok(fs::read(self.file())? == fs::read(self.received().join("file"))?)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // What cannot be removed here is in the ledger of what a bed leaves.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Both ends. Their processes belong to one thread: the kernel ends them when it does.
struct Work {
    program: String,
    files: Files,
    peer: SocketAddr,
    /// The sender's, one per path.
    addresses: Vec<IpAddr>,
    is_tcp: bool,
    has_tls: bool,
    start_at: Nanos,
    end_at: Nanos,
    stop: Arc<Stop>,
    note: Box<dyn Fn(Leftover) + Send>,
}

impl Work {
    fn spawn(&self, words: impl IntoIterator<Item = String>) -> Result<Child, BedError> {
        let command: Vec<String> = [self.program.clone()].into_iter().chain(words).collect();
        let child = Child::spawn(&command)?;
        if let Ok(leftover) = Leftover::process(child.id() as i32) {
            (self.note)(leftover);
        }
        Ok(child)
    }

    /// Starts the receiver, and waits until it listens.
    fn listen(&self) -> Result<Child, BedError> {
        let mut words =
            vec!["receive".to_owned(), "--dir".to_owned(), self.files.received().display().to_string()];
        words.extend(["--listen".to_owned(), self.peer.to_string()]);
        words.extend(
            ["--once", "--json", if self.has_tls { "--token" } else { "--plaintext" }].map(str::to_owned),
        );
        words.extend(self.is_tcp.then(|| "--tcp".to_owned()));
        let mut receiver = self.spawn(words)?;
        for _ in 0..PATIENCE / POLL.as_nanos() as Nanos {
            let has_ended = receiver.read_what_is_there()?;
            if event(&receiver, "listening").is_some() {
                return Ok(receiver);
            }
            if has_ended || self.stop.is_raised() {
                break;
            }
            thread::sleep(POLL);
        }
        let (_, errors) = receiver.into_output()?;
        Err(BedError::Failed(format!("{} receive does not listen: {errors}", self.program)))
    }

    fn carry(&self, mut receiver: Child) -> Result<Carried, BedError> {
        let token =
            event(&receiver, "listening").and_then(|event| event["token"].as_str().map(str::to_owned));
        if self.stop.wait_until(self.start_at) == Wake::Stopped {
            return Err(BedError::Failed(format!("{PROGRAM}: interrupted before it began")));
        }
        let mut words =
            vec!["send".to_owned(), self.files.file().display().to_string(), self.peer.to_string()];
        words.extend(self.addresses.iter().flat_map(|address| ["--via".to_owned(), address.to_string()]));
        words.push("--json".to_owned());
        match token {
            Some(token) => words.extend(["--token".to_owned(), token]),
            None => words.push("--plaintext".to_owned()),
        }
        words.extend(self.is_tcp.then(|| "--tcp".to_owned()));
        let mut carried = Carried { began_at: self.stop.clock().now(), ..Carried::default() };
        let mut sender = self.spawn(words)?;
        let mut is_sent = false;
        while !(is_sent && carried.completed_at.is_some()) {
            let mut watched = vec![(receiver.stdout(), PollFlags::POLLIN)];
            if !is_sent {
                watched.push((sender.stdout(), PollFlags::POLLIN));
            }
            if self.stop.wait_for_any(watched, Some(self.end_at)) != Wake::Ready {
                break;
            }
            let now = self.stop.clock().now();
            let has_ended = receiver.read_what_is_there()?;
            if event(&receiver, "received").is_some() {
                carried.completed_at.get_or_insert(now);
            }
            is_sent = is_sent || sender.read_what_is_there()?;
            if has_ended {
                break;
            }
        }
        self.conclude(sender, receiver, &mut carried)?;
        Ok(carried)
    }

    /// Has both end, and reads what they say about it.
    fn conclude(
        &self,
        mut sender: Child,
        mut receiver: Child,
        carried: &mut Carried,
    ) -> Result<(), BedError> {
        let until = self.stop.clock().now() + PATIENCE;
        if carried.completed_at.is_none() {
            sender.interrupt();
        }
        sender.read_to_end(&self.stop, until)?;
        let (json, errors) = sender.into_output()?;
        receiver.read_to_end(&self.stop, until)?;
        let ended = event(&receiver, "ended");
        carried.receiver_resident_bytes = ended.and_then(|event| event["peak_resident_bytes"].as_u64());
        drop(receiver);
        let report: Report = serde_json::from_slice(&json)
            .map_err(|_| BedError::Failed(format!("{} send: {errors}", self.program)))?;
        carried.failure = match (carried.completed_at, report.failure) {
            (Some(_), Some(why)) => Some(why),
            (Some(_), None) => match self.files.are_equal() {
                Ok(true) => None,
                Ok(false) => Some("the file that arrived is not the one that was sent".to_owned()),
                Err(error) => Some(format!("the file that arrived cannot be read: {error}")),
            },
            // It was asked to end.
            (None, _) if until >= self.end_at + PATIENCE => None,
            (None, why) => Some(why.unwrap_or(errors)),
        };
        carried.sender_resident_bytes = report.peak_resident_bytes;
        carried.paths = report.paths;
        carried.json = json;
        Ok(())
    }
}

/// The first event of a kind that the receiver has told of.
fn event(receiver: &Child, kind: &str) -> Option<Value> {
    let whole =
        receiver.written().split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    let mut events = whole.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    events.find(|event| event["event"] == kind)
}
