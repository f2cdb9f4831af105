//! The ledger of what a bed has made on the host, so that a later start can remove what a crash has left.

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use nix::{
    errno::Errno,
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde::{Deserialize, Serialize};

use super::namespace;
use crate::BedError;

const FILE: &str = "bed.json";

/// What stays behind if a bed dies on the spot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leftover {
    /// A named network namespace, by its whole name.
    Namespace(String),
    /// A folder in which a run is being written; its name begins with `.tmp-`.
    Folder(PathBuf),
    /// A process that the bed has started.
    Process {
        /// Its number.
        pid: i32,
        /// When it started, in clock ticks since boot, by which a later process of this number is told apart.
        start_ticks: u64,
    },
}

impl Leftover {
    /// The process `pid`, which must be alive or a zombie.
    ///
    /// # Errors
    /// [`BedError::System`] if there is no such process.
    pub fn process(pid: i32) -> Result<Self, BedError> {
        let stat = Stat::of(pid).map_err(BedError::system(format!("looking at process {pid}")))?;
        Ok(Self::Process { pid, start_ticks: stat.start_ticks })
    }

    /// Removes it, and says so if it was there.
    ///
    /// # Errors
    /// [`BedError::System`].
    pub(super) fn remove(&self) -> Result<Option<String>, BedError> {
        match self {
            Self::Namespace(name) => {
                let removed = namespace::remove(name)
                    .map_err(BedError::system(format!("removing network namespace {name}")))?;
                Ok(removed.then(|| format!("network namespace {name}")))
            }
            Self::Folder(path) if is_staging(path) => match fs::remove_dir_all(path) {
                Ok(()) => Ok(Some(format!("unfinished run {}", path.display()))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(BedError::system(format!("removing {}", path.display()))(error)),
            },
            Self::Folder(_) => Ok(None),
            Self::Process { pid, start_ticks } => end_process(*pid, *start_ticks),
        }
    }
}

/// Whether a folder's name is that of an unfinished run; no other is ever removed.
pub(super) fn is_staging(path: &Path) -> bool {
    path.is_absolute() && path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".tmp-"))
}

/// What the ledger's file holds.
#[derive(Default, Serialize, Deserialize)]
struct Content {
    /// The kernel's random identifier of this boot: of another boot's ledger only the folders still exist.
    boot: String,
    leftovers: Vec<Leftover>,
}

/// The ledger, on disk after every change.
#[derive(Debug)]
pub(super) struct Ledger {
    path: PathBuf,
    entries: Vec<Leftover>,
}

impl Ledger {
    /// An empty ledger in `folder`; no file is made before the first entry.
    pub(super) fn new(folder: &Path) -> Self {
        Self { path: folder.join(FILE), entries: Vec::new() }
    }

    /// The ledger that an earlier bed has left in `folder`, if any. One that cannot be read counts as empty.
    pub(super) fn left_in(folder: &Path) -> Self {
        let mut ledger = Self::new(folder);
        if let Ok(text) = fs::read(&ledger.path) {
            let content: Content = serde_json::from_slice(&text).unwrap_or_default();
            ledger.entries = content.leftovers;
            if content.boot != boot() {
                ledger.entries.retain(|entry| matches!(entry, Leftover::Folder(_)));
            }
        }
        ledger
    }

    pub(super) fn note(&mut self, leftovers: impl IntoIterator<Item = Leftover>) -> Result<(), BedError> {
        for leftover in leftovers {
            if !self.entries.contains(&leftover) {
                self.entries.push(leftover);
            }
        }
        self.write()
    }

    pub(super) fn forget(&mut self, leftovers: &[Leftover]) -> Result<(), BedError> {
        self.entries.retain(|entry| !leftovers.contains(entry));
        self.write()
    }

    /// Removes what is listed, processes first, and strikes it off; says what was there. What cannot be removed
    /// stays listed and does not keep the rest from being removed.
    ///
    /// # Errors
    /// The first failure.
    pub(super) fn work_off(&mut self) -> Result<Vec<String>, BedError> {
        let mut removed = Vec::new();
        let mut failure = None;
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_by_key(|entry| !matches!(entry, Leftover::Process { .. }));
        for entry in entries {
            match entry.remove() {
                Ok(text) => removed.extend(text),
                Err(error) => {
                    failure.get_or_insert(error);
                    self.entries.push(entry);
                }
            }
        }
        self.write()?;
        failure.map_or(Ok(removed), Err)
    }

    fn write(&self) -> Result<(), BedError> {
        let failed = |error| BedError::system(format!("writing {}", self.path.display()))(error);
        if self.entries.is_empty() {
            return match fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
                _ => Ok(()),
            };
        }
        let content = Content { boot: boot(), leftovers: self.entries.clone() };
        let text = serde_json::to_vec_pretty(&content).expect("the ledger is plain data");
        let aside = self.path.with_extension("json.new");
        fs::write(&aside, text).and_then(|()| fs::rename(&aside, &self.path)).map_err(failed)
    }
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// What `/proc/PID/stat` says of a process.
struct Stat {
    state: char,
    start_ticks: u64,
}

impl Stat {
    fn of(pid: i32) -> io::Result<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat"))?).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "/proc/PID/stat is not as proc(5) says")
        })
    }

    /// The second field, the command's name, may itself hold blanks and parentheses (proc(5)).
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        Some(Self { state, start_ticks: fields.nth(18)?.parse().ok()? })
    }
}

/// Kills a process if it is still the one that was noted, and waits for its end.
fn end_process(pid: i32, start_ticks: u64) -> Result<Option<String>, BedError> {
    let alive =
        || Stat::of(pid).is_ok_and(|stat| stat.start_ticks == start_ticks && !"ZX".contains(stat.state));
    if pid <= 1 || !alive() {
        return Ok(None);
    }
    match kill(Pid::from_raw(pid), Signal::SIGKILL) {
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(errno) => return Err(BedError::system(format!("ending process {pid}"))(errno.into())),
    }
    for _ in 0..500 {
        if !alive() {
            return Ok(Some(format!("process {pid}")));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Err(BedError::Failed(format!("process {pid} of an earlier bed does not end, not even by SIGKILL")))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn sleeper() -> std::process::Child {
        Command::new("sleep").arg("600").spawn().unwrap()
    }

    #[test]
    fn what_one_ledger_notes_the_next_finds() {
        let folder = tempfile::tempdir().unwrap();
        let staging = folder.path().join(".tmp-1-2-3");
        let entries = [Leftover::Namespace("anabranch-never-made".to_owned()), Leftover::Folder(staging)];
        let mut ledger = Ledger::new(folder.path());
        ledger.note(entries.clone()).unwrap();
        ledger.note(entries.clone()).unwrap();
        assert_eq!(Ledger::left_in(folder.path()).entries, entries);
        ledger.forget(&entries[..1]).unwrap();
        assert_eq!(Ledger::left_in(folder.path()).entries, entries[1..]);
        ledger.forget(&entries).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_unfinished_run_is_removed_and_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        let staging = folder.path().join(".tmp-1-2-3");
        fs::create_dir(&staging).unwrap();
        fs::write(staging.join("run.json"), "{}").unwrap();
        Ledger::new(folder.path()).note([Leftover::Folder(staging.clone())]).unwrap();
        let removed = Ledger::left_in(folder.path()).work_off().unwrap();
        assert_eq!(removed, [format!("unfinished run {}", staging.display())]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(Ledger::left_in(folder.path()).work_off().unwrap().is_empty());
    }

    #[test]
    fn a_folder_that_is_no_unfinished_run_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let precious = folder.path().join("runs");
        fs::create_dir(&precious).unwrap();
        Ledger::new(folder.path()).note([Leftover::Folder(precious.clone())]).unwrap();
        assert!(Ledger::left_in(folder.path()).work_off().unwrap().is_empty());
        assert!(precious.exists());
    }

    #[test]
    fn a_noted_process_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = sleeper();
        let pid = i32::try_from(child.id()).unwrap();
        Ledger::new(folder.path()).note([Leftover::process(pid).unwrap()]).unwrap();
        assert_eq!(Ledger::left_in(folder.path()).work_off().unwrap(), [format!("process {pid}")]);
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_later_process_of_the_same_number_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = sleeper();
        let pid = i32::try_from(child.id()).unwrap();
        let Leftover::Process { start_ticks, .. } = Leftover::process(pid).unwrap() else { unreachable!() };
        let earlier = Leftover::Process { pid, start_ticks: start_ticks - 1 };
        Ledger::new(folder.path()).note([earlier]).unwrap();
        assert!(Ledger::left_in(folder.path()).work_off().unwrap().is_empty());
        assert_eq!(child.try_wait().unwrap(), None, "it runs on");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn of_another_boot_only_folders_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = sleeper();
        let process = Leftover::process(i32::try_from(child.id()).unwrap()).unwrap();
        let staging = folder.path().join(".tmp-1-2-3");
        fs::create_dir(&staging).unwrap();
        let leftovers = vec![process, Leftover::Folder(staging.clone())];
        let content = Content { boot: "another".to_owned(), leftovers };
        fs::write(folder.path().join(FILE), serde_json::to_vec(&content).unwrap()).unwrap();
        assert_eq!(Ledger::left_in(folder.path()).work_off().unwrap().len(), 1);
        assert_eq!(child.try_wait().unwrap(), None, "it runs on");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_ledger_that_is_not_json_counts_as_empty_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), "{\"boot\":").unwrap();
        assert!(Ledger::left_in(folder.path()).work_off().unwrap().is_empty());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_command_name_with_parentheses_does_not_confuse_the_start_time() {
        let text = "7 (a) b (c)) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 9 9";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.state, stat.start_ticks), ('S', 4242));
    }
}
