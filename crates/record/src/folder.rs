//! The folder on disk: written aside, renamed at the end, verified before it is used again.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{Error, FORMAT, FileEntry, Identity, Manifest, model::Measurements, series, summary};

const MANIFEST: &str = "run.json";

/// A complete run folder whose files are what the manifest says.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFolder {
    /// Where it lies.
    pub path: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
}

/// What [`begin`] found.
#[derive(Debug)]
pub enum Begin {
    /// The run has been made before and is complete.
    Complete(RunFolder),
    /// The run has to be made.
    Staged(Staging),
}

/// A place for a run in the making. Dropping it removes everything it has written.
#[derive(Debug)]
pub struct Staging {
    identity: Identity,
    seed: u64,
    target: PathBuf,
    aside: PathBuf,
    made: Vec<PathBuf>,
    /// Why a folder that was there before could not be used, if so.
    pub damaged: Option<String>,
}

/// Looks for the run of `identity` with `seed` under `root`, and prepares a place for it if it is not there,
/// so that a place that cannot be written to is found before the run and not after it.
///
/// With `force`, a complete run is made again; one whose figures do not count always is.
///
/// # Errors
/// [`Error::Name`] and [`Error::Unwritable`].
pub fn begin(root: &Path, identity: &Identity, seed: u64, force: bool) -> Result<Begin, Error> {
    begin_with(root, identity, seed, force, &[])
}

/// As [`begin`]; a complete run that lacks one of the files `wanted` is made again, too.
///
/// # Errors
/// Those of [`begin`].
pub fn begin_with(
    root: &Path,
    identity: &Identity,
    seed: u64,
    force: bool,
    wanted: &[&str],
) -> Result<Begin, Error> {
    let target = identity.folder(root, seed)?;
    let mut damaged = None;
    if !force && target.symlink_metadata().is_ok() {
        match open(&target).and_then(|found| same_run(found, identity, seed)) {
            Ok(found) if found.manifest.is_valid() && has_all(&found, wanted) => {
                return Ok(Begin::Complete(found));
            }
            Ok(_) => {}
            Err(error) => damaged = Some(error.to_string()),
        }
    }
    let (aside, made) = make_aside(&target)?;
    Ok(Begin::Staged(Staging { identity: identity.clone(), seed, target, aside, made, damaged }))
}

/// Opens a run folder and verifies its files.
///
/// # Errors
/// [`Error::NotARun`] without a manifest, [`Error::Damaged`] if a file is not what the manifest says.
pub fn open(path: &Path) -> Result<RunFolder, Error> {
    let text = fs::read(path.join(MANIFEST)).map_err(|_| Error::NotARun(path.to_owned()))?;
    let damaged = |reason: String| Error::damaged(path, reason);
    let probe: Probe =
        serde_json::from_slice(&text).map_err(|error| damaged(format!("{MANIFEST}: {error}")))?;
    if probe.format != FORMAT {
        return Err(damaged(format!("{MANIFEST}: format {} where {FORMAT} was expected", probe.format)));
    }
    let manifest: Manifest =
        serde_json::from_slice(&text).map_err(|error| damaged(format!("{MANIFEST}: {error}")))?;
    for (name, expected) in &manifest.files {
        let unreadable = |error: io::Error| damaged(format!("{name}: {error}"));
        let found = FileEntry::of_file(&path.join(name)).map_err(unreadable)?;
        if found.bytes != expected.bytes {
            return Err(damaged(format!(
                "{name}: {} bytes where {} were expected",
                found.bytes, expected.bytes
            )));
        }
        if found != *expected {
            return Err(damaged(format!("{name}: the content has changed")));
        }
    }
    Ok(RunFolder { path: path.to_owned(), manifest })
}

#[derive(serde::Deserialize)]
struct Probe {
    format: u32,
}

fn has_all(found: &RunFolder, wanted: &[&str]) -> bool {
    wanted.iter().all(|name| found.manifest.files.contains_key(*name))
}

fn same_run(found: RunFolder, identity: &Identity, seed: u64) -> Result<RunFolder, Error> {
    if found.manifest.key == identity.key() && found.manifest.seed == seed {
        Ok(found)
    } else {
        Err(Error::damaged(&found.path, "it holds another run"))
    }
}

impl Staging {
    /// The folder that is being written; whoever cannot rely on dropping (after SIGKILL) removes it by name.
    pub fn aside(&self) -> &Path {
        &self.aside
    }

    /// Writes the run and puts it in its place.
    ///
    /// # Errors
    /// [`Error::Measurements`] and [`Error::Write`]; nothing is left then.
    pub fn commit(self, measurements: &Measurements) -> Result<RunFolder, Error> {
        let contents = [
            ("summary.json", summary::to_json(&measurements.summary)?.into_bytes()),
            ("summary.csv", summary::to_csv(&measurements.summary).into_bytes()),
            ("series.parquet", series::to_parquet(&measurements.series)?),
        ];
        let attached = measurements.attachments.iter().map(|(name, content)| (name.as_str(), content));
        let mut files = BTreeMap::new();
        for (name, content) in contents.iter().map(|(name, content)| (*name, content)).chain(attached) {
            if !is_file_name(name) || name == MANIFEST || files.contains_key(name) {
                return Err(Error::Measurements(format!("{name:?} cannot be the name of a further file")));
            }
            self.write(name, content)?;
            files.insert(name.to_owned(), FileEntry::of(content));
        }
        for name in &measurements.written {
            if !is_file_name(name) || name == MANIFEST || files.contains_key(name) {
                return Err(Error::Measurements(format!("{name:?} cannot be the name of a further file")));
            }
            let path = self.aside.join(name);
            let entry = FileEntry::of_file(&path).map_err(|error| Error::write(&path, error))?;
            files.insert(name.clone(), entry);
        }
        let manifest = Manifest::new(&self.identity, self.seed, files, measurements.environment.clone())
            .map_err(|error| Error::Measurements(format!("canonical scenario: {error}")))?;
        let mut text = serde_json::to_vec_pretty(&manifest).expect("a manifest is JSON");
        text.push(b'\n');
        self.write(MANIFEST, &text)?;
        self.put_in_place()?;
        Ok(RunFolder { path: self.target.clone(), manifest })
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        let path = self.aside.join(name);
        fs::write(&path, content).map_err(|error| Error::write(&path, error))
    }

    /// Renames the folder to its final name, in place of whatever has that name.
    fn put_in_place(&self) -> Result<(), Error> {
        let failed = |error: io::Error| Error::write(&self.target, error);
        if self.target.symlink_metadata().is_ok() {
            let old = self.aside.with_extension("old");
            fs::rename(&self.target, &old).map_err(failed)?;
            if let Err(error) = fs::rename(&self.aside, &self.target) {
                let _ = fs::rename(&old, &self.target);
                return Err(failed(error));
            }
            remove(&old).map_err(failed)
        } else {
            match fs::rename(&self.aside, &self.target) {
                Err(error) if open(&self.target).is_err() => Err(failed(error)),
                Ok(()) | Err(_) => Ok(()),
            }
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // After a commit the folder has been renamed and its parents are not empty: nothing is removed.
        let _ = fs::remove_dir_all(&self.aside);
        for folder in self.target.ancestors().skip(1).take(2) {
            let _ = fs::remove_dir(folder);
        }
        remove_empty(&self.made);
    }
}

/// Whether a text can name a file or folder without leading elsewhere.
pub(crate) fn is_file_name(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && !name.starts_with('.') && name.chars().all(legal)
}

/// Makes an empty folder beside `target`, and says which of its parents it had to make.
fn make_aside(target: &Path) -> Result<(PathBuf, Vec<PathBuf>), Error> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let parent = target.parent().expect("a run folder has parents");
    let seed = target.file_name().expect("a run folder has a name").to_string_lossy();
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let aside = parent.join(format!(".tmp-{seed}-{}-{number}", process::id()));
    let mut made = Vec::new();
    let mut attempts = 8;
    let result = loop {
        attempts -= 1;
        match make_parents(parent, &mut made).and_then(|()| fs::create_dir(&aside)) {
            // Another run that was given up has just removed the parents, which were empty.
            Err(error) if error.kind() == io::ErrorKind::NotFound && attempts > 0 => {}
            result => break result,
        }
    };
    match result {
        Ok(()) => Ok((aside, made)),
        Err(source) => {
            remove_empty(&made);
            Err(Error::Unwritable { path: parent.to_owned(), source })
        }
    }
}

fn make_parents(parent: &Path, made: &mut Vec<PathBuf>) -> io::Result<()> {
    let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let missing: Vec<&Path> = parent.ancestors().take_while(is_missing).collect();
    for path in missing.into_iter().rev() {
        match fs::create_dir(path) {
            Ok(()) => made.push(path.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Removes those of the folders, parents first in the list, that are empty.
fn remove_empty(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        let _ = fs::remove_dir(folder);
    }
}

fn remove(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}
