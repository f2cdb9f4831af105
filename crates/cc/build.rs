//! Compiles the algorithms of `algorithms/registry.def` into one object with a table.

use std::{env, fmt::Write as _, fs, path::PathBuf};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"))
        .join("../../algorithms")
        .canonicalize()
        .expect("algorithms/ lies beside crates/");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let registry = fs::read_to_string(root.join("registry.def")).expect("registry.def is readable");

    let mut includes = String::from("#include \"anabranch/cc.h\"\n");
    for name in registry.lines().filter_map(|line| line.strip_prefix("AB_ALGORITHM(")?.split(',').next()) {
        writeln!(includes, "#include \"{}.h\"", name.trim()).expect("writing to a string");
    }
    fs::write(out.join("ab_includes.h"), includes).expect("OUT_DIR is writable");

    cc::Build::new()
        .file("host/registry.c")
        .file("host/formulas.c")
        .include(&root)
        .include(root.join("include"))
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
    println!("cargo:rerun-if-changed={}", root.display());
}
