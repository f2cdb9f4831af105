//! Compiles the algorithms of `algorithms/registry.def`, and those of `ANABRANCH_ALGORITHMS`, into one object with a
//! table.

use std::{env, fs, path::PathBuf};

#[path = "../../build/algorithms.rs"]
#[allow(dead_code)] // every build script uses its own part
mod algorithms;

fn main() {
    let repository = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let folders = algorithms::folders(&repository, env::var_os(algorithms::VARIABLE).as_deref());
    let entries = algorithms::entries(&folders);
    fs::write(out.join("ab_includes.h"), algorithms::includes(&entries)).expect("OUT_DIR is writable");
    fs::write(out.join("ab_registry.def"), algorithms::registry(&entries)).expect("OUT_DIR is writable");

    cc::Build::new()
        .file("host/registry.c")
        .file("host/formulas.c")
        .includes(&folders)
        .include(folders[0].join("include"))
        .include(&out)
        .std("c11")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .flag("-ffreestanding")
        .flag("-Wconversion")
        .flag("-Wsign-conversion")
        .flag("-Wvla")
        .flag_if_supported("-mgeneral-regs-only")
        .warnings_into_errors(true)
        .compile("anabranch_algorithms");

    println!("cargo:rerun-if-changed=host");
    algorithms::rerun_if_changed(&folders);
}
