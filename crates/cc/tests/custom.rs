//! Algorithms out of tree: a folder with a registry and headers, named by `ANABRANCH_ALGORITHMS`.
//!
//! What the build scripts do with it lies in `build/algorithms.rs`, which is tested here on folders made for it; the
//! result is compiled and run as the build scripts compile it.

mod compile;

#[path = "../../../build/algorithms.rs"]
#[allow(dead_code)] // the build scripts use the rest
mod algorithms;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is text")
}

/// A folder with an algorithm that adds seven packets at every ACK.
fn dummy(folder: &str, name: &str) -> PathBuf {
    let folder = compile::scratch(folder);
    let header = fs::read_to_string(compile::algorithms_dir().join("reno.h")).expect("reno.h is there");
    let header = header
        .replace("reno", name)
        .replace("RENO", "DUMMY")
        .replace("ab_additive_increase(&cwnd, &cnt, cwnd, acked);", "cwnd += 7;");
    fs::write(folder.join(format!("{name}.h")), header).expect("the folder is writable");
    let line = format!("AB_ALGORITHM({name}, AB_WINDOW, AB_SINGLE, AB_SIM, C, \"seven per ACK\")\n");
    fs::write(folder.join("registry.def"), line).expect("the folder is writable");
    folder
}

fn folders(extra: &Path) -> Vec<PathBuf> {
    algorithms::folders(&repository(), Some(extra.as_os_str()))
}

/// What the panic of a build script says.
fn refusal(extra: &Path) -> String {
    let extra = extra.to_owned();
    let attempt = std::panic::catch_unwind(|| algorithms::entries(&folders(&extra)));
    *attempt.expect_err("it is refused").downcast::<String>().expect("the message is formatted")
}

#[test]
fn a_new_file_and_a_new_line_make_an_algorithm() {
    let dir = compile::scratch("custom-build");
    let folders = folders(&dummy("custom-dummy", "dummy"));
    let entries = algorithms::entries(&folders);
    fs::write(dir.join("ab_includes.h"), algorithms::includes(&entries)).expect("the folder is writable");
    fs::write(dir.join("ab_registry.def"), algorithms::registry(&entries)).expect("the folder is writable");

    let gcc = compile::first_of(&["gcc", "cc"]).expect("a C compiler built this crate");
    let program = dir.join("custom");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = [here.join("tests/c/custom.c"), here.join("host/registry.c")];
    let mut arguments = vec!["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-o", text(&program)];
    arguments.extend(sources.iter().map(|source| text(source)));
    for folder in folders.iter().chain([&dir]) {
        arguments.extend(["-I", text(folder)]);
    }
    compile::compile(gcc, &arguments);
    let output = Command::new(&program).arg("dummy").output().expect("it was just built");
    assert!(output.status.success(), "{}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "dummy: seven per ACK; a window of 20 became 27\n");
}

#[test]
fn the_examples_compile_for_the_host_and_for_bpf() {
    for (folder, name) in [("custom-algorithm", "gaimd"), ("pacing-hint", "hinted")] {
        compile_for_both_hosts(&repository().join("examples").join(folder), name);
    }
}

fn compile_for_both_hosts(example: &Path, name: &str) {
    let entries = algorithms::entries(&folders(example));
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let in_tree: Vec<&str> = anabranch_cc::algorithms().iter().map(|one| one.name()).collect();
    assert_eq!(names[..in_tree.len()], in_tree, "those of the project come first, in their order");
    assert_eq!(names[in_tree.len()..], [name]);

    let dir = compile::scratch(&format!("custom-example-{name}"));
    let source = dir.join(format!("{name}.c"));
    let unit = format!(
        "#include \"{name}.h\"\n#define ROW(event, handler) .event = handler,\n\
         extern const struct ab_ops ops;\nconst struct ab_ops ops = {{AB_EVENTS_{name}(ROW)}};\n"
    );
    fs::write(&source, unit).expect("the folder is writable");
    let object = source.with_extension("o");
    let strict =
        ["-O2", "-ffreestanding", "-nostdinc", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion"];
    let files = ["-Werror", "-c", text(&source), "-o", text(&object), "-I", text(example)];
    let host: Vec<&str> = strict.into_iter().chain(files).collect();
    compile::compile(compile::first_of(&["gcc", "cc"]).expect("a C compiler built this crate"), &host);
    if let Some(clang) = compile::clang("the_examples_compile_for_the_host_and_for_bpf") {
        let bpf: Vec<&str> = ["-target", "bpfel", "-mcpu=v3"].into_iter().chain(host).collect();
        compile::compile(clang, &bpf);
    }
}

#[test]
fn what_cannot_be_added_is_refused_with_its_place() {
    let nothing = compile::scratch("custom-nothing");
    assert!(refusal(&nothing).ends_with("custom-nothing, which has no registry.def"));

    let twin = dummy("custom-twin", "lia");
    assert!(refusal(&twin).ends_with("registry.def: lia is taken; choose another name"));

    let headless = dummy("custom-headless", "headless");
    fs::remove_file(headless.join("headless.h")).expect("it was just written");
    assert!(refusal(&headless).contains("there is no"));

    let odd = dummy("custom-odd", "odd");
    fs::write(odd.join("registry.def"), "AB_ALGORITHM(odd, AB_WINDOW)\n").expect("the folder is writable");
    assert!(refusal(&odd).ends_with("found `AB_ALGORITHM(odd, AB_WINDOW)`"));
}
