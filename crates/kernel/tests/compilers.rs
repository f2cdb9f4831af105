//! Every program of every algorithm, compiled with each clang that is there, passes the verifier of the running kernel.

#[path = "../compile.rs"]
mod compile;
// What the shim is made of is loaded here, not registered.
mod common;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use common::{say, skip};
use compile::{COMPILERS, Sources, compile, entries, targets_bpf};
use libbpf_rs::ObjectBuilder;

/// The compilers that are there, without those that are another's second name.
fn compilers() -> Vec<(&'static str, String)> {
    let mut found: Vec<(&str, String)> = Vec::new();
    for compiler in COMPILERS.into_iter().filter(|compiler| targets_bpf(compiler)) {
        let output = Command::new(compiler).arg("--version").output().expect("it has just run");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.lines().next().unwrap_or_default().to_owned();
        if found.iter().all(|(_, other)| *other != version) {
            found.push((compiler, version));
        }
    }
    found
}

#[test]
fn all_programs_pass_the_verifier_with_every_clang_that_is_installed() {
    if skip("all_programs_pass_the_verifier_with_every_clang_that_is_installed") {
        return;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let algorithms = here.join("../../algorithms").canonicalize().expect("algorithms/ lies beside crates/");
    let registry = fs::read_to_string(algorithms.join("registry.def")).expect("registry.def is readable");
    let sources = Sources {
        bpf: here.join("bpf"),
        algorithms,
        libbpf: PathBuf::from(env!("ANABRANCH_LIBBPF_INCLUDE")),
        big_endian: cfg!(target_endian = "big"),
    };
    for (compiler, version) in compilers() {
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(compiler);
        fs::create_dir_all(&out).expect("the folder can be made");
        for entry in entries(&registry) {
            for kind in ["shim", "replay"] {
                let object = compile(compiler, &sources, &out, &entry, kind);
                let open = ObjectBuilder::default().open_file(&object).expect("the object opens");
                open.load().unwrap_or_else(|error| panic!("{version}: {}, {kind}: {error}", entry.name));
            }
        }
        say(&format!("{version}: {} algorithms pass the verifier", entries(&registry).len()));
    }
}
