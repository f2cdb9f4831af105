//! The command as a user runs it, one test at a time.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The machine for one test at a time.
pub struct Turn {
    folder: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Turn {
    /// `None` if the test is to be skipped here.
    pub fn begin(test: &str) -> Option<Self> {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        if super::skip(test) {
            return None;
        }
        if let Err(error) = anabranch_kernel::available().and_then(|_| anabranch_kernel::check_host()) {
            super::skip_for(test, &error.to_string(), "apt-get install -y clang-14 llvm-14");
            return None;
        }
        Some(Self { folder: tempfile::tempdir().expect("a temporary folder"), _turn: turn })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn command(&self, scenario: &str, arguments: &[&str]) -> Command {
        let file = self.path().join("scenario.toml");
        fs::write(&file, scenario).expect("the folder is writable");
        let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch-bed"));
        command.arg("run").arg(file).arg("--out").arg(self.path().join("runs")).args(arguments);
        command
    }

    pub fn run(&self, scenario: &str, arguments: &[&str]) -> Output {
        self.command(scenario, arguments).output().expect("the program starts")
    }

    /// Runs and returns the run folder's `run.json` and `summary.json`, and its path.
    pub fn result(&self, scenario: &str, arguments: &[&str]) -> Run {
        let output = self.run(scenario, &[&["--json"], arguments].concat());
        let said = String::from_utf8(output.stdout).expect("it is text");
        let last = said.lines().last().unwrap_or_default();
        let error = String::from_utf8_lossy(&output.stderr);
        let event: serde_json::Value = serde_json::from_str(last).unwrap_or_else(|_| panic!("{error}"));
        let path = Path::new(event["path"].as_str().expect("a run has a path")).to_owned();
        let read = |name| {
            let text = fs::read(path.join(name)).expect("the file is in the folder");
            serde_json::from_slice(&text).expect("it is JSON")
        };
        Run { manifest: read("run.json"), summary: read("summary.json"), event, path }
    }
}

pub struct Run {
    pub event: serde_json::Value,
    pub manifest: serde_json::Value,
    pub summary: serde_json::Value,
    pub path: std::path::PathBuf,
}

impl Run {
    /// A figure of the summary: its kind, as `connections`, then the names down to the metric.
    #[track_caller]
    pub fn figure(&self, kind: &str, path: &[&str]) -> f64 {
        let found = path.iter().fold(&self.summary[kind], |within, name| &within[name]);
        found.as_f64().unwrap_or_else(|| panic!("{kind} {path:?} is missing: {}", self.summary))
    }

    /// Nothing has gone wrong but, on a busy machine, the time.
    #[track_caller]
    pub fn assert_sound(&self) {
        let environment = &self.manifest["environment"];
        let invalid = environment["invalid"].as_array().expect("it is a list");
        let reasons = invalid.iter().map(|reason| reason.as_str().expect("they are sentences"));
        let serious: Vec<_> = reasons.filter(|reason| !reason.starts_with("the emulator was late")).collect();
        assert!(serious.is_empty(), "{serious:#?}");
    }
}
