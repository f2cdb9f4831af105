//! For build scripts: names the build of an engine after its sources, so that a run made by other sources is never
//! reused.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// Sets `ANABRANCH_SOURCES`, for `env!` in the crate, to a hash of files and folders, relative to the repository, and of
/// the folders of `ANABRANCH_ALGORITHMS`.
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
    println!("cargo::rerun-if-env-changed=ANABRANCH_ALGORITHMS");
    for folder in env::var_os("ANABRANCH_ALGORITHMS").iter().flat_map(|all| env::split_paths(all)) {
        let folder = repository.join(folder);
        println!("cargo::rerun-if-changed={}", folder.display());
        let mut files = Vec::new();
        collect(&folder, Path::new(""), &mut files);
        files.sort();
        for file in files {
            hasher.update(&fs::read(folder.join(file)).expect("a source file can be read"));
        }
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
