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
};

mod compile;

#[path = "../../build/algorithms.rs"]
#[allow(dead_code)] // every build script uses its own part
mod algorithms;

use compile::{COMPILERS, KINDS, Sources, compile, compile_file, of_both_hosts, targets_bpf};

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let folders = algorithms::folders(&here.join("../.."), env::var_os(algorithms::VARIABLE).as_deref());

    let libbpf = PathBuf::from(env::var_os("DEP_BPF_INCLUDE").expect("libbpf-sys sets it"));
    let big_endian = env::var("CARGO_CFG_TARGET_ENDIAN").as_deref() == Ok("big");

    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=compile.rs");
    println!("cargo:rerun-if-changed=bpf");
    algorithms::rerun_if_changed(&folders);
    println!("cargo:rerun-if-env-changed=ANABRANCH_CLANG");
    println!("cargo:rustc-env=ANABRANCH_BPF_DIR={}", out.display());
    println!("cargo:rustc-env=ANABRANCH_LIBBPF_INCLUDE={}", libbpf.display());

    let entries = algorithms::entries(&folders);
    let sources = Sources { bpf: here.join("bpf"), algorithms: folders, libbpf, big_endian };
    let mut objects = String::from("&[");
    let mut programs = ["select", "timeouts"].map(|name| (name, "None".to_owned()));
    let missing = match find_compiler() {
        Ok(compiler) => {
            let stable = stable_dir(&out);
            fs::create_dir_all(&stable).expect("target/bpf can be made");
            for entry in of_both_hosts(&entries) {
                let [object, ..] = KINDS.map(|kind| compile(&compiler, &sources, &out, entry, kind));
                install(&object, &stable).expect("target/bpf is writable");
                write!(
                    objects,
                    "Object {{ name: {:?}, elf: &Aligned(*include_bytes!({:?})) }},",
                    entry.name, object
                )
                .expect("writing to a string");
            }
            for (name, elf) in &mut programs {
                let (source, object) = (format!("{name}.bpf.c"), out.join(format!("{name}.bpf.o")));
                compile_file(&compiler, &sources, &out, &sources.bpf.join(source), &object);
                *elf = format!("Some(&Aligned(*include_bytes!({object:?})))");
            }
            "None".to_owned()
        }
        Err(why) => {
            // A path that does not exist makes cargo look again the next time, when clang may be there.
            println!("cargo:rerun-if-changed=/usr/bin/clang-14");
            format!("Some({why:?})")
        }
    };
    objects.push(']');
    let [(_, select), (_, timeouts)] = programs;
    fs::write(
        out.join("objects.rs"),
        format!(
            "/// The objects, in the registry's order.\npub(crate) static OBJECTS: &[Object] = {objects};\n\
             /// The program that chooses for a control group.\n\
             pub(crate) static SELECT: Option<&Aligned<[u8]>> = {select};\n\
             /// The program that tells of retransmission timeouts.\n\
             pub(crate) static TIMEOUTS: Option<&Aligned<[u8]>> = {timeouts};\n\
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
    candidates.into_iter().find(|compiler| targets_bpf(compiler)).ok_or_else(|| match chosen {
        Some(path) => format!("ANABRANCH_CLANG={} does not run or has no BPF target", path.display()),
        None => "no clang with a BPF target was found when this was built".to_owned(),
    })
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
