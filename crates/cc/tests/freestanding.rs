//! Every algorithm alone, compiled as freestanding C for the host and for BPF, with every warning an error.

mod compile;

use std::{fs, path::Path, process::Command};

use anabranch_cc::algorithms;

const STRICT: [&str; 10] = [
    "-std=c11",
    "-O2",
    "-ffreestanding",
    "-nostdinc",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wsign-conversion",
    "-Wvla",
    "-Werror",
];

/// A unit that holds one algorithm and takes the address of each of its handlers, so that all are compiled.
fn unit(name: &str) -> String {
    format!(
        "#include \"{name}.h\"\n#define ROW(event, handler) .event = handler,\n\
         extern const struct ab_ops ops;\nconst struct ab_ops ops = {{AB_EVENTS_{name}(ROW)}};\n"
    )
}

/// Compiles every algorithm; returns the objects.
fn compile_all(dir: &str, compiler: &str, options: &[&str]) -> Vec<(&'static str, std::path::PathBuf)> {
    let dir = compile::scratch(dir);
    let text = |path: &Path| path.to_str().expect("the path is text").to_owned();
    algorithms()
        .iter()
        .map(|algorithm| {
            let source = dir.join(format!("{}.c", algorithm.name()));
            let object = source.with_extension("o");
            fs::write(&source, unit(algorithm.name())).expect("the folder is writable");
            let files = ["-c".to_owned(), text(&source), "-o".to_owned(), text(&object)];
            let arguments: Vec<&str> =
                STRICT.iter().chain(options).copied().chain(files.iter().map(String::as_str)).collect();
            compile::compile(compiler, &arguments);
            (algorithm.name(), object)
        })
        .collect()
}

/// No floating-point register; the flag exists on these machines only.
fn host_options() -> &'static [&'static str] {
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) { &["-mgeneral-regs-only"] } else { &[] }
}

#[test]
fn gcc_compiles_every_algorithm_alone() {
    let gcc = compile::first_of(&["gcc", "cc"]).expect("a C compiler built this crate");
    compile_all("freestanding-gcc", gcc, host_options());
}

#[test]
fn clang_compiles_every_algorithm_alone() {
    if let Some(clang) = compile::clang("clang_compiles_every_algorithm_alone") {
        compile_all("freestanding-clang", clang, host_options());
    }
}

/// The BPF target refuses floats, __int128, signed division, calls into a C library and stacks over 512 bytes.
#[test]
fn clang_compiles_every_algorithm_for_bpf() {
    if let Some(clang) = compile::clang("clang_compiles_every_algorithm_for_bpf") {
        compile_all("freestanding-bpf", clang, &["-target", "bpf", "-mcpu=v3"]);
    }
}

/// A call to a helper such as __udivti3 would be an undefined symbol.
#[test]
fn objects_need_no_library() {
    let Some(nm) = compile::first_of(&["nm"]) else { panic!("nm comes with the compiler") };
    let gcc = compile::first_of(&["gcc", "cc"]).expect("a C compiler built this crate");
    for (name, object) in compile_all("freestanding-nm", gcc, host_options()) {
        let output = Command::new(nm).arg("-u").arg(&object).output().expect("nm runs");
        let undefined = String::from_utf8_lossy(&output.stdout);
        let undefined: Vec<&str> = undefined.split_whitespace().filter(|word| *word != "U").collect();
        assert!(undefined.iter().all(|symbol| *symbol == "_GLOBAL_OFFSET_TABLE_"), "{name}: {undefined:?}");
    }
}
