//! Two processes that clean up after each other. These tests start this very program in a role, and end it in
//! every way a user or the system can.

#![allow(missing_docs)]

mod common;

use std::{
    env, fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, ExitCode, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use anabranch_bed::{
    BedError,
    host::{Interrupt, Lab, Leftover, Session, supervised},
};
use common::{BED_PATIENCE, host, namespaces, plan, skip};
use libtest_mimic::{Arguments, Trial};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

/// First argument of this program in a role; the second is the role's name.
const ROLE: &str = "--role";
/// A test, which is told its name.
type Test = fn(&str);

/// Longest wait for anything that should happen at once.
const PATIENCE_MS: u64 = 20_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().collect();
    if arguments.get(1).is_some_and(|first| first == ROLE) {
        let (role, folder) = (arguments[2].clone(), PathBuf::from(&arguments[3]));
        return supervised(|interrupt| play(&role, &folder, interrupt));
    }
    let tests: [(&str, Test); 9] = [
        ("the_exit_code_tells_how_the_work_ended", exit_codes),
        ("a_panic_of_the_work_cleans_up_and_fails", panic),
        ("an_interrupt_of_either_process_ends_the_run_in_order", interrupt_of_one),
        ("an_interrupt_from_the_terminal_ends_the_run_once", interrupt_of_the_group),
        ("sigterm_and_sighup_end_the_run_in_order", other_signals),
        ("a_hangup_that_is_ignored_from_the_start_stays_ignored", ignored_hangup),
        ("the_supervisor_removes_what_a_killed_worker_leaves", killed_worker),
        ("a_worker_without_supervisor_winds_up", killed_supervisor),
        ("the_next_session_removes_what_both_leave_when_killed", killed_both),
    ];
    let trial = |(name, test): (&'static str, Test)| {
        Trial::test(name, move || {
            test(name);
            Ok(())
        })
    };
    let mut settings = Arguments::from_args();
    // The host is a test bed for one at a time.
    settings.test_threads = Some(1);
    libtest_mimic::run(&settings, tests.map(trial).into()).exit_code()
}

/// What this program does in a role.
fn play(role: &str, folder: &Path, interrupt: &Interrupt) -> Result<(), BedError> {
    match role {
        "done" => Ok(()),
        "failed" => Err(BedError::Failed("ip said no".to_owned())),
        "input" => Err(BedError::Input("no such link".to_owned())),
        "unavailable" => Err(BedError::Unavailable("no TUN".to_owned())),
        "hold" | "panic" => hold(role == "panic", folder, interrupt),
        _ => panic!("no role {role}"),
    }
}

/// Makes one of everything, says so, and waits for the end.
fn hold(panic: bool, folder: &Path, interrupt: &Interrupt) -> Result<(), BedError> {
    let session = Session::begin_within(BED_PATIENCE)?;
    let _lab = Lab::build(&plan(vec![host("held", &[&["10.9.0.1"]])]), &session)?;
    let staging = folder.join(".tmp-1-2-3");
    session.note(Leftover::Folder(staging.clone()))?;
    fs::create_dir(&staging).map_err(BedError::system("making the folder"))?;
    let mut sleeper = Command::new("sleep");
    sleeper.arg("600").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let mut sleeper = sleeper.spawn().map_err(BedError::system("starting sleep"))?;
    session.note(Leftover::process(sleeper.id() as i32)?)?;
    writeln!(io::stdout(), "{} {}", std::process::id(), sleeper.id()).expect("the test reads");
    assert!(!panic, "as the role says");
    while !interrupt.is_raised() {
        thread::sleep(Duration::from_millis(5));
    }
    writeln!(io::stdout(), "winding up").expect("the test reads");
    sleeper.kill().and_then(|()| sleeper.wait()).map_err(BedError::system("ending sleep"))?;
    interrupt.check()
}

/// This program in a role, as a process group of its own.
struct Running {
    supervisor: Child,
    output: BufReader<ChildStdout>,
    worker: i32,
    sleeper: i32,
    staging: PathBuf,
    folder: tempfile::TempDir,
}

/// How it has ended.
struct Ended {
    status: ExitStatus,
    output: String,
    errors: String,
}

fn start(role: &str) -> (Child, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([ROLE, role]).arg(folder.path()).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    (command.spawn().unwrap(), folder)
}

impl Running {
    fn hold() -> Self {
        Self::begun(start("hold"))
    }

    fn begun((mut supervisor, folder): (Child, tempfile::TempDir)) -> Self {
        let mut output = BufReader::new(supervisor.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let numbers: Vec<i32> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        let [worker, sleeper] = numbers[..] else { panic!("it has not begun: {line:?}") };
        let running =
            Self { supervisor, output, worker, sleeper, staging: folder.path().join(".tmp-1-2-3"), folder };
        assert_ne!(running.id(), worker);
        assert_eq!(namespaces(), ["anabranch-held"]);
        running
    }

    fn id(&self) -> i32 {
        self.supervisor.id() as i32
    }

    /// Waits for the end of everything that holds the program's output open.
    fn end(mut self) -> (Ended, Remains) {
        let ended = ended(&mut self.supervisor, &mut self.output);
        let remains = Remains {
            worker: self.worker,
            sleeper: self.sleeper,
            staging: self.staging,
            _folder: self.folder,
        };
        (ended, remains)
    }
}

fn ended(supervisor: &mut Child, output: &mut impl io::Read) -> Ended {
    let (mut text, mut errors) = (String::new(), String::new());
    output.read_to_string(&mut text).unwrap();
    supervisor.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    Ended { status: supervisor.wait().unwrap(), output: text, errors }
}

/// What must not be there afterwards.
struct Remains {
    worker: i32,
    sleeper: i32,
    staging: PathBuf,
    _folder: tempfile::TempDir,
}

impl Remains {
    fn assert_none(&self) {
        assert_eq!(namespaces(), Vec::<String>::new());
        assert!(!self.staging.exists(), "the unfinished run is gone");
        assert!(!Path::new("/run/anabranch").exists(), "lock and ledger are gone");
        for process in [self.worker, self.sleeper] {
            eventually(&format!("process {process} has ended"), || !is_alive(process));
        }
    }
}

fn is_alive(process: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with(['Z', 'X']))
}

fn eventually(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..PATIENCE_MS / 10 {
        if is_so() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("not within {PATIENCE_MS} ms: {what}");
}

fn send(process: i32, signal: Signal) {
    kill(Pid::from_raw(process), signal).unwrap();
}

fn exit_codes(_name: &str) {
    for (role, code, text) in [
        ("done", 0, ""),
        ("failed", 1, "error: ip said no\n"),
        ("input", 2, "error: no such link\n"),
        ("unavailable", 4, "skipped: no TUN\n"),
    ] {
        let (mut child, _folder) = start(role);
        let mut output = child.stdout.take().unwrap();
        let ended = ended(&mut child, &mut output);
        assert_eq!((ended.status.code(), ended.errors.as_str()), (Some(code), text), "{role}");
    }
}

fn panic(name: &str) {
    if skip(name) {
        return;
    }
    let (mut child, folder) = start("panic");
    let mut output = child.stdout.take().unwrap();
    let ended = ended(&mut child, &mut output);
    assert_eq!(ended.status.code(), Some(1));
    assert!(
        ended.errors.ends_with("error: a defect of the test bed: as the role says\n"),
        "{}",
        ended.errors
    );
    let numbers: Vec<i32> = ended.output.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let staging = folder.path().join(".tmp-1-2-3");
    Remains { worker: numbers[0], sleeper: numbers[1], staging, _folder: folder }.assert_none();
}

/// The end of a run that was interrupted by `signal`: in order, and once.
fn assert_interrupted(running: Running, signal: Signal) {
    let (ended, remains) = running.end();
    assert_eq!(ended.status.code(), Some(128 + signal as i32));
    assert_eq!(ended.output, "winding up\n");
    assert_eq!(ended.errors, "interrupted: finished runs are kept\n");
    remains.assert_none();
}

fn interrupt_of_one(name: &str) {
    if skip(name) {
        return;
    }
    for which in [Running::id, |running: &Running| running.worker] {
        let running = Running::hold();
        send(which(&running), Signal::SIGINT);
        assert_interrupted(running, Signal::SIGINT);
    }
}

fn interrupt_of_the_group(name: &str) {
    if skip(name) {
        return;
    }
    let running = Running::hold();
    // What the terminal does at Ctrl-C, and does again for an impatient user.
    for _ in 0..3 {
        send(-running.id(), Signal::SIGINT);
    }
    assert_interrupted(running, Signal::SIGINT);
}

fn other_signals(name: &str) {
    if skip(name) {
        return;
    }
    for signal in [Signal::SIGTERM, Signal::SIGHUP] {
        let running = Running::hold();
        send(running.id(), signal);
        assert_interrupted(running, signal);
    }
}

fn ignored_hangup(name: &str) {
    if skip(name) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]).arg(env::current_exe().unwrap());
    command.args([ROLE, "hold"]).arg(folder.path()).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = Running::begun((command.spawn().unwrap(), folder));
    send(-running.id(), Signal::SIGHUP);
    send(-running.id(), Signal::SIGTERM);
    assert_interrupted(running, Signal::SIGTERM);
}

fn killed_worker(name: &str) {
    if skip(name) {
        return;
    }
    for signal in [Signal::SIGKILL, Signal::SIGABRT, Signal::SIGQUIT] {
        let running = Running::hold();
        send(running.worker, signal);
        let (ended, remains) = running.end();
        assert_eq!(ended.status.code(), Some(1));
        let expected = format!(
            "error: the bed was killed by {signal}; removed what it has left: process {}, network namespace \
             anabranch-held, unfinished run {}\n",
            remains.sleeper,
            remains.staging.display()
        );
        assert_eq!(ended.errors, expected);
        remains.assert_none();
    }
}

fn killed_supervisor(name: &str) {
    if skip(name) {
        return;
    }
    let running = Running::hold();
    send(running.id(), Signal::SIGKILL);
    let (ended, remains) = running.end();
    assert_eq!(ended.output, "winding up\n");
    assert_eq!(ended.errors, "interrupted: finished runs are kept\n");
    remains.assert_none();
}

fn killed_both(name: &str) {
    if skip(name) {
        return;
    }
    let running = Running::hold();
    // The worker must not get to the signal by which it hears of its supervisor's death.
    send(running.worker, Signal::SIGSTOP);
    send(running.id(), Signal::SIGKILL);
    send(running.worker, Signal::SIGKILL);
    let (ended, remains) = running.end();
    assert_eq!((ended.output.as_str(), ended.errors.as_str()), ("", ""));
    assert_eq!(namespaces(), ["anabranch-held"]);
    assert!(remains.staging.exists() && is_alive(remains.sleeper));
    let session = Session::begin_within(BED_PATIENCE).unwrap();
    let expected = [
        format!("process {}", remains.sleeper),
        "network namespace anabranch-held".to_owned(),
        format!("unfinished run {}", remains.staging.display()),
    ];
    assert_eq!(session.removed(), expected);
    drop(session);
    remains.assert_none();
}
