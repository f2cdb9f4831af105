//! Finding and running C compilers.
#![allow(dead_code)] // every test binary uses its own part

use std::{env, fs, io::Write as _, path::PathBuf, process::Command};

use anabranch_cc::algorithms;

/// `algorithms/` of this repository.
pub(crate) fn algorithms_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../algorithms").canonicalize().expect("it is there")
}

/// An empty folder of this test.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("the target folder is writable");
    dir
}

/// The first of the commands that can be run.
pub(crate) fn first_of(names: &[&'static str]) -> Option<&'static str> {
    names
        .iter()
        .copied()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success()))
}

/// clang, or `None` with a note that this is skipped and how to get it.
///
/// # Panics
/// If `ANABRANCH_REQUIRE` names `bpf`: then a machine without clang is a failure.
pub(crate) fn clang(test: &str) -> Option<&'static str> {
    let clang = first_of(&["clang", "clang-19", "clang-14"]);
    if clang.is_none() {
        let required = env::var("ANABRANCH_REQUIRE").unwrap_or_default();
        assert!(
            !required.split(',').any(|word| word == "bpf"),
            "{test}: clang is required: apt-get install -y clang-14"
        );
        // Not eprintln, whose output the test harness swallows when a test passes.
        let line = format!("SKIPPED: {test}: no clang; enable with: sudo apt-get install clang-14\n");
        std::io::stderr().write_all(line.as_bytes()).expect("stderr is open");
    }
    clang
}

/// Runs a compiler with these arguments and fails with its output if it fails.
pub(crate) fn compile(compiler: &str, arguments: &[&str]) {
    let output = Command::new(compiler)
        .args(arguments)
        .arg("-I")
        .arg(algorithms_dir())
        .arg("-I")
        .arg(algorithms_dir().join("include"))
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler} {}\n{messages}", arguments.join(" "));
}

/// What the build script generates for `host/registry.c`.
pub(crate) fn includes_of_the_registry() -> String {
    let lines = algorithms().iter().map(|a| format!("#include \"{}.h\"\n", a.name()));
    std::iter::once("#include \"anabranch/cc.h\"\n".to_owned()).chain(lines).collect()
}
