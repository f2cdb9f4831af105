//! For build scripts: where congestion controls come from.
//!
//! `algorithms/`, and the folders that the environment variable `ANABRANCH_ALGORITHMS` names, separated as in `PATH`;
//! relative ones are relative to the repository. Each has a `registry.def` and the headers that it names.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// The variable.
pub(crate) const VARIABLE: &str = "ANABRANCH_ALGORITHMS";

/// A line of a registry, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Name in scenarios.
    pub(crate) name: String,
    /// `AB_WINDOW` or `AB_RATE`.
    pub(crate) kind: String,
    /// `AB_SINGLE` or `AB_COUPLED`.
    pub(crate) coupling: String,
    /// `AB_SIM` or `AB_BOTH`.
    pub(crate) hosts: String,
    /// The whole line.
    pub(crate) line: String,
}

/// All folders, `algorithms/` first.
///
/// # Panics
/// If one of them does not hold a registry, or two registries have one name: the build ends with the message.
pub(crate) fn folders(repository: &Path, extra: Option<&std::ffi::OsStr>) -> Vec<PathBuf> {
    let mut folders =
        vec![repository.join("algorithms").canonicalize().expect("algorithms/ lies beside crates/")];
    for folder in
        extra.iter().flat_map(|extra| env::split_paths(extra)).filter(|one| !one.as_os_str().is_empty())
    {
        let registry = repository.join(&folder).join("registry.def");
        assert!(registry.is_file(), "{VARIABLE} names {}, which has no registry.def", folder.display());
        let folder = repository.join(&folder).canonicalize().expect("it holds a file");
        let name = folder.to_str().unwrap_or_else(|| panic!("{VARIABLE}: {}: not UTF-8", folder.display()));
        assert!(!name.contains(['"', '\\', '\n']), "{VARIABLE}: {name}: C cannot include from such a path");
        folders.push(folder);
    }
    folders
}

/// What the registries of the folders list, in their order.
///
/// # Panics
/// As [`folders`].
pub(crate) fn entries(folders: &[PathBuf]) -> Vec<Entry> {
    let mut all: Vec<Entry> = Vec::new();
    for folder in folders {
        let path = folder.join("registry.def");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for line in text.lines().filter(|line| line.starts_with("AB_ALGORITHM(")) {
            let entry = entry(line).unwrap_or_else(|| {
                panic!(
                    "{}: expected AB_ALGORITHM(name, kind, coupling, hosts, tag, \"title\"), found `{line}`",
                    path.display()
                )
            });
            let taken = all.iter().any(|one| one.name == entry.name);
            assert!(!taken, "{}: {} is taken; choose another name", path.display(), entry.name);
            let header = folder.join(format!("{}.h", entry.name));
            assert!(header.is_file(), "{}: there is no {}", path.display(), header.display());
            all.push(entry);
        }
    }
    all
}

fn entry(line: &str) -> Option<Entry> {
    let mut fields = line.strip_prefix("AB_ALGORITHM(")?.splitn(6, ',').map(str::trim);
    let (name, kind, coupling) = (fields.next()?, fields.next()?, fields.next()?);
    let (hosts, _tag, _title) = (fields.next()?, fields.next()?, fields.next()?);
    let text = str::to_owned;
    Some(Entry {
        name: text(name),
        kind: text(kind),
        coupling: text(coupling),
        hosts: text(hosts),
        line: text(line),
    })
}

/// `ab_includes.h`: every header.
pub(crate) fn includes(entries: &[Entry]) -> String {
    let lines = entries.iter().map(|entry| format!("#include \"{}.h\"\n", entry.name));
    std::iter::once("#include \"anabranch/cc.h\"\n".to_owned()).chain(lines).collect()
}

/// `ab_registry.def`: every line.
pub(crate) fn registry(entries: &[Entry]) -> String {
    entries.iter().map(|entry| format!("{}\n", entry.line)).collect()
}

/// Tells cargo when to look again.
#[allow(clippy::print_stdout)] // how a build script speaks to cargo
pub(crate) fn rerun_if_changed(folders: &[PathBuf]) {
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    for folder in folders {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
}
