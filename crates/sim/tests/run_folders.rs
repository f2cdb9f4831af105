//! The run folders of `scenarios/regress/` and `scenarios/tutorial/`, to the byte: a change of one bit in one file is a change of
//! results, and needs a line under "Changes results" in CHANGELOG.md.
//!
//! `ANABRANCH_ACCEPT=1 cargo test -p anabranch-sim --test run_folders` writes the table anew.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path, path::PathBuf};

use anabranch_record::{Begin, Identity};
use anabranch_sim::Control;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files in both folders, in order; those of folders in them have tests of their own.
fn scenarios() -> Vec<PathBuf> {
    let files_of = |folder: &str| {
        let entries = fs::read_dir(root().join(folder)).expect("the folder is there");
        let paths = entries.map(|entry| entry.expect("it is readable").path());
        let mut files: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
        files.sort();
        files
    };
    [files_of("scenarios/regress"), files_of("scenarios/tutorial")].concat()
}

/// Runs a scenario with seed 1 and returns one line per file of its run folder.
fn lines_of(file: &Path) -> String {
    let loaded = anabranch_scenario::load_path(file, &[]).unwrap_or_else(|error| panic!("{error}"));
    let identity = Identity {
        scenario: loaded.scenario.name.clone(),
        title: loaded.scenario.title.clone(),
        canonical: loaded.canonical,
        overrides: BTreeMap::new(),
        engine: "sim".to_owned(),
        version: "golden".to_owned(),
    };
    let place = tempfile::tempdir().expect("a temporary folder can be made");
    let Ok(Begin::Staged(staging)) = anabranch_record::begin(place.path(), &identity, 1, false) else {
        panic!("the folder is new");
    };
    let run = anabranch_sim::run(&loaded.scenario, 1, &Control::default()).expect("nobody interrupts a test");
    let folder = staging.commit(&run).unwrap_or_else(|error| panic!("{error}"));
    let entries = fs::read_dir(&folder.path).expect("it has just been written");
    let mut names: Vec<PathBuf> = entries.map(|entry| entry.expect("it is readable").path()).collect();
    names.sort();
    names.iter().fold(String::new(), |mut lines, path| {
        let hash = blake3::hash(&fs::read(path).expect("it is readable")).to_hex();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        writeln!(lines, "{:<16} {name:<16} {}", identity.scenario, &hash[..32]).expect("writing to a string");
        lines
    })
}

#[test]
fn the_run_folders_are_the_committed_ones() {
    let golden = root().join("golden/run-folders.txt");
    let measured: String = scenarios().iter().map(|file| lines_of(file)).collect();
    if std::env::var_os("ANABRANCH_ACCEPT").is_some() {
        fs::write(&golden, &measured).expect("golden/ is writable");
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(scenarios().len(), 16);
    assert!(
        measured == expected,
        "results have changed:\n{measured}\nexpected:\n{expected}\nif that is right, say so in CHANGELOG.md and run\n\
         ANABRANCH_ACCEPT=1 cargo test -p anabranch-sim --test run_folders"
    );
}

#[test]
fn threads_do_not_change_a_byte() {
    let alone: Vec<String> = scenarios().iter().map(|file| lines_of(file)).collect();
    let together: Vec<String> = std::thread::scope(|scope| {
        let files = scenarios();
        let threads: Vec<_> = files.into_iter().map(|file| scope.spawn(move || lines_of(&file))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
    });
    assert_eq!(alone, together);
}
