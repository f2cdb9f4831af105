//! Compiles every algorithm that a `registry.def` marks `AB_BOTH` into a BPF object, and the same algorithm
//! into two more objects for the replay tests.
//!
//! Without clang the crate builds all the same; the loader then says why it has no objects.

use std::{
    env,
    ffi::OsString,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

/// Debian 12's clang-14 is what the objects are tested with; the first of these that targets BPF is used.
const COMPILERS: [&str; 8] =
    ["clang-14", "clang", "clang-15", "clang-16", "clang-17", "clang-18", "clang-19", "clang-20"];

#[path = "../../build/algorithms.rs"]
#[allow(dead_code)] // every build script uses its own part
mod algorithms;

use algorithms::Entry;

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let folders = algorithms::folders(&here.join("../.."), env::var_os(algorithms::VARIABLE).as_deref());

    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=bpf");
    algorithms::rerun_if_changed(&folders);
    println!("cargo:rerun-if-env-changed=ANABRANCH_CLANG");
    println!("cargo:rustc-env=ANABRANCH_BPF_DIR={}", out.display());

    let mut objects = String::from("&[");
    let mut select = "None".to_owned();
    let missing = match find_compiler() {
        Ok(compiler) => {
            let stable = stable_dir(&out);
            fs::create_dir_all(&stable).expect("target/bpf can be made");
            for entry in algorithms::entries(&folders).iter().filter(|entry| entry.hosts == "AB_BOTH") {
                let object = compile(&compiler, &here, &folders, &out, entry, "shim");
                compile(&compiler, &here, &folders, &out, entry, "replay");
                compile(&compiler, &here, &folders, &out, entry, "record");
                install(&object, &stable).expect("target/bpf is writable");
                write!(
                    objects,
                    "Object {{ name: {:?}, elf: &Aligned(*include_bytes!({:?})) }},",
                    entry.name, object
                )
                .expect("writing to a string");
            }
            let object = out.join("select.bpf.o");
            compile_file(&compiler, &here, &folders, &out, &here.join("bpf/select.bpf.c"), &object);
            select = format!("Some(&Aligned(*include_bytes!({object:?})))");
            "None".to_owned()
        }
        Err(why) => {
            // A path that does not exist makes cargo look again the next time, when clang may be there.
            println!("cargo:rerun-if-changed=/usr/bin/clang-14");
            format!("Some({why:?})")
        }
    };
    objects.push(']');
    fs::write(
        out.join("objects.rs"),
        format!(
            "/// The objects, in the registry's order.\npub(crate) static OBJECTS: &[Object] = {objects};\n\
             /// The program that chooses for a control group.\n\
             pub(crate) static SELECT: Option<&Aligned<[u8]>> = {select};\n\
             /// Why there are none.\npub(crate) static MISSING: Option<&str> = {missing};\n"
        ),
    )
    .expect("OUT_DIR is writable");
}

fn find_compiler() -> Result<OsString, String> {
    let chosen = env::var_os("ANABRANCH_CLANG");
    let candidates: Vec<OsString> = match &chosen {
        Some(path) => vec![path.clone()],
        None => COMPILERS.iter().map(OsString::from).collect(),
    };
    candidates
        .into_iter()
        .find(|compiler| {
            Command::new(compiler)
                .arg("-print-targets")
                .output()
                .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("bpf"))
        })
        .ok_or_else(|| match chosen {
            Some(path) => format!("ANABRANCH_CLANG={} does not run or has no BPF target", path.display()),
            None => "no clang with a BPF target was found when this was built".to_owned(),
        })
}

/// Compiles `ab_<name>.bpf.o` (kind `shim`), `ab_<name>.replay.bpf.o` (`replay`) or `ab_<name>.record.bpf.o`, the shim
/// that records its calls (`record`).
fn compile(
    compiler: &OsString,
    here: &Path,
    folders: &[PathBuf],
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
         #define AB_SHIM_COUPLED {}\n#define AB_SHIM_RECORD {records}\n#include \"{name}.h\"\n\
         #include \"{body}.bpf.h\"\n",
        u8::from(entry.coupling == "AB_COUPLED")
    );
    fs::write(&source, text).expect("OUT_DIR is writable");
    compile_file(compiler, here, folders, out, &source, &object);
    object
}

fn compile_file(
    compiler: &OsString,
    here: &Path,
    folders: &[PathBuf],
    out: &Path,
    source: &Path,
    object: &Path,
) {
    let libbpf = env::var_os("DEP_BPF_INCLUDE").expect("libbpf-sys sets it");
    let target = match env::var("CARGO_CFG_TARGET_ENDIAN").as_deref() {
        Ok("big") => "bpfeb",
        _ => "bpfel",
    };
    let root = folders[0].parent().expect("algorithms/ has a parent");
    let status = Command::new(compiler)
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
        .arg(libbpf)
        .args(folders.iter().flat_map(|folder| ["-I".as_ref(), folder.as_os_str()]))
        .arg("-I")
        .arg(folders[0].join("include"))
        .arg("-I")
        .arg(here.join("bpf"))
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object)
        .status()
        .expect("the compiler was found before");
    assert!(status.success(), "{} does not compile for BPF", source.display());
    strip(compiler, object);
}

/// Removes DWARF, which BTF replaces, if the tool that belongs to the compiler is there.
fn strip(compiler: &OsString, object: &Path) {
    let tool = compiler.to_string_lossy().replace("clang", "llvm-strip");
    // Without the tool the object is larger and otherwise the same.
    let _ = Command::new(tool).arg("-g").arg(object).status();
}

/// `target/bpf`, four levels above `target/<profile>/build/<package>/out`.
fn stable_dir(out: &Path) -> PathBuf {
    out.ancestors().nth(4).expect("OUT_DIR lies in the target directory").join("bpf")
}

/// Copies in one step, so that a reader never sees half an object.
fn install(object: &Path, dir: &Path) -> io::Result<()> {
    let name = object.file_name().expect("an object has a name");
    let partial = dir.join(format!("{}.{}", name.to_string_lossy(), std::process::id()));
    fs::copy(object, &partial)?;
    fs::rename(partial, dir.join(name))
}
