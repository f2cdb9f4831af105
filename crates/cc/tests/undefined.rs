//! The algorithms under trapping sanitizers: no undefined operation, and no unsigned wrap-around, at the edges of
//! the contract's ranges.

mod compile;

use std::{fs, path::Path, process::Command};

use anabranch_cc::algorithms;

fn build_and_run(name: &str, compiler: &str, sanitizers: &[&str]) {
    let dir = compile::scratch(name);
    fs::write(dir.join("ab_includes.h"), compile::includes_of_the_registry())
        .expect("the folder is writable");
    fs::write(dir.join("ab_registry.def"), "#include \"registry.def\"\n").expect("the folder is writable");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/extremes.c");
    let program = dir.join("extremes");
    let text = |path: &Path| path.to_str().expect("the path is text").to_owned();
    let arguments = [text(&source), "-o".into(), text(&program), "-I".into(), text(&dir)];
    let fixed = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror"];
    let all: Vec<&str> =
        fixed.iter().chain(sanitizers).copied().chain(arguments.iter().map(String::as_str)).collect();
    compile::compile(compiler, &all);

    let status = Command::new(&program).status().expect("it was just built");
    let culprit = status.code().and_then(|code| algorithms().get((code - 1) as usize)).map(|a| a.name());
    assert!(status.success(), "{compiler}: {status}; a window out of range: {culprit:?}");
}

#[test]
fn gcc_finds_no_undefined_behaviour() {
    let gcc = compile::first_of(&["gcc", "cc"]).expect("a C compiler built this crate");
    build_and_run("undefined-gcc", gcc, &["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]);
}

#[test]
fn clang_finds_neither_undefined_behaviour_nor_wrap_around() {
    if let Some(clang) = compile::clang("clang_finds_neither_undefined_behaviour_nor_wrap_around") {
        build_and_run("undefined-clang", clang, &["-fsanitize=undefined,integer", "-fsanitize-trap=all"]);
    }
}
