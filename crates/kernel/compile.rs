//! Compiling the algorithms for BPF. The build does it with one compiler, `tests/compilers.rs` with all that are there.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::algorithms::Entry;

/// Debian 12's clang-14 is what the objects are tested with; the first of these that targets BPF is used.
pub(crate) const COMPILERS: [&str; 8] =
    ["clang-14", "clang", "clang-15", "clang-16", "clang-17", "clang-18", "clang-19", "clang-20"];

/// Where everything lies that an object is made of.
pub(crate) struct Sources {
    pub(crate) bpf: PathBuf,
    /// `algorithms/`, then the folders of `ANABRANCH_ALGORITHMS`.
    pub(crate) algorithms: Vec<PathBuf>,
    /// The headers of libbpf.
    pub(crate) libbpf: PathBuf,
    pub(crate) big_endian: bool,
}

/// The algorithms that run in the kernel too.
pub(crate) fn of_both_hosts(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    entries.iter().filter(|entry| entry.hosts == "AB_BOTH")
}

/// Whether a compiler is there and has the BPF target.
pub(crate) fn targets_bpf(compiler: impl AsRef<OsStr>) -> bool {
    let output = Command::new(compiler).arg("-print-targets").output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("bpf"))
}

/// What is made of an algorithm: `ab_<name>.bpf.o` (`shim`), `ab_<name>.replay.bpf.o` (`replay`), and
/// `ab_<name>.record.bpf.o`, the shim that records its calls (`record`).
pub(crate) const KINDS: [&str; 3] = ["shim", "replay", "record"];

/// Compiles one of the [`KINDS`].
pub(crate) fn compile(
    compiler: impl AsRef<OsStr>,
    sources: &Sources,
    out: &Path,
    entry: &Entry,
    kind: &str,
) -> PathBuf {
    let name = &entry.name;
    let (suffix, body, records) = match kind {
        "shim" => ("", "shim", 0),
        "record" => (".record", "shim", 1),
        _ => (".replay", "replay", 0),
    };
    let source = out.join(format!("ab_{name}{suffix}.bpf.c"));
    let object = out.join(format!("ab_{name}{suffix}.bpf.o"));
    let text = format!(
        "/* SPDX-License-Identifier: GPL-2.0 OR MIT */\n#define AB_SHIM_NAME {name}\n\
         #define AB_SHIM_COUPLED {}\n#define AB_SHIM_RATE {}\n#define AB_SHIM_RECORD {records}\n\
         #include \"{name}.h\"\n#include \"{body}.bpf.h\"\n",
        u8::from(entry.coupling == "AB_COUPLED"),
        u8::from(entry.kind == "AB_RATE")
    );
    fs::write(&source, text).expect("the folder of the objects is writable");

    compile_file(&compiler, sources, out, &source, &object);
    object
}

/// Compiles one source of C for BPF into an object.
pub(crate) fn compile_file(
    compiler: impl AsRef<OsStr>,
    sources: &Sources,
    out: &Path,
    source: &Path,
    object: &Path,
) {
    let target = if sources.big_endian { "bpfeb" } else { "bpfel" };
    let root = sources.algorithms[0].parent().expect("algorithms/ has a parent");
    let status = Command::new(&compiler)
        .args([
            "-target",
            target,
            "-mcpu=v3",
            "-std=gnu11",
            "-O2",
            "-g",
            "-nostdinc",
            "-Wall",
            "-Wextra",
            "-Werror",
        ])
        .arg(format!("-ffile-prefix-map={}=.", root.display()))
        .arg(format!("-ffile-prefix-map={}=.", out.display()))
        .arg("-isystem")
        .arg(&sources.libbpf)
        .args(sources.algorithms.iter().flat_map(|folder| ["-I".as_ref(), folder.as_os_str()]))
        .arg("-I")
        .arg(sources.algorithms[0].join("include"))
        .arg("-I")
        .arg(&sources.bpf)
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object)
        .status()
        .expect("the compiler was found before");
    assert!(status.success(), "{} does not compile for BPF", source.display());
    strip(compiler.as_ref(), object);
}

/// Removes DWARF, which BTF replaces, if the tool that belongs to the compiler is there.
fn strip(compiler: &OsStr, object: &Path) {
    let tool = compiler.to_string_lossy().replace("clang", "llvm-strip");
    // Without the tool the object is larger and otherwise the same.
    let _ = Command::new(tool).arg("-g").arg(object).status();
}
