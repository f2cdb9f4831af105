//! For build scripts: names the build of an engine after its sources, so that a run made by other sources is never
//! reused.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// Sets `ANABRANCH_SOURCES`, for `env!` in the crate, to a hash of files and folders, relative to the repository.
pub(crate) fn name_after(sources: &[&str]) {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let repository = Path::new(&manifest).join("../..");
    let mut files = Vec::new();
    for source in sources {
        println!("cargo::rerun-if-changed={}", repository.join(source).display());
        collect(&repository, Path::new(source), &mut files);
    }
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for file in files {
        let content = fs::read(repository.join(&file)).expect("a source file can be read");
        hasher.update(file.to_str().expect("source names are ASCII").as_bytes());
        hasher.update(&(content.len() as u64).to_le_bytes());
        hasher.update(&content);
    }
    let digits = &hasher.finalize().to_hex()[..12];
    println!("cargo::rustc-env=ANABRANCH_SOURCES={digits}");
}

fn collect(repository: &Path, source: &Path, files: &mut Vec<PathBuf>) {
    let path = repository.join(source);
    if path.is_dir() {
        for entry in fs::read_dir(&path).expect("a source folder can be read") {
            let entry = entry.expect("a source folder can be read");
            collect(repository, &source.join(entry.file_name()), files);
        }
    } else {
        files.push(source.to_owned());
    }
}
