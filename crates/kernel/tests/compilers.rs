//! Every program of every algorithm, compiled with each clang that is there, passes the verifier of the running kernel.

#[path = "../../../build/algorithms.rs"]
#[allow(dead_code)] // the build scripts use the rest
mod algorithms;
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
use compile::{COMPILERS, KINDS, Sources, compile, of_both_hosts, targets_bpf};
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
    let folders = algorithms::folders(&here.join("../.."), None);
    let entries = algorithms::entries(&folders);
    let sources = Sources {
        bpf: here.join("bpf"),
        algorithms: folders,
        libbpf: PathBuf::from(env!("ANABRANCH_LIBBPF_INCLUDE")),
        big_endian: cfg!(target_endian = "big"),
    };
    for (compiler, version) in compilers() {
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(compiler);
        fs::create_dir_all(&out).expect("the folder can be made");
        for entry in of_both_hosts(&entries) {
            for kind in KINDS {
                let object = compile(compiler, &sources, &out, entry, kind);
                let open = ObjectBuilder::default().open_file(&object).expect("the object opens");
                open.load().unwrap_or_else(|error| panic!("{version}: {}, {kind}: {error}", entry.name));
            }
        }
        say(&format!("{version}: {} algorithms pass the verifier", of_both_hosts(&entries).count()));
    }
}
