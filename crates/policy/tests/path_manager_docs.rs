//! Every path manager has a page in `docs/path-managers/`, and the page tells the registry's parameters.

use std::{collections::BTreeSet, fs, path::PathBuf};

use anabranch_policy::paths::{PATH_MANAGERS, PathManagerInfo, PathManagerParam, PathManagerUnit};

fn docs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/path-managers")
}

fn page(name: &str) -> String {
    let path = docs().join(format!("{name}.md"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("docs/path-managers/{name}.md: {error}"))
}

/// A stored value as a scenario writes it.
fn value(param: &PathManagerParam, stored: u64) -> String {
    match param.unit {
        PathManagerUnit::Count => stored.to_string(),
        PathManagerUnit::Bytes => format!("{stored} B"),
        PathManagerUnit::Permille => (stored as f64 / 1e3).to_string(),
        PathManagerUnit::Bool => (stored != 0).to_string(),
        PathManagerUnit::Time => {
            let hour = 3_600_000_000_000;
            match stored {
                _ if stored >= hour && stored.is_multiple_of(hour) => format!("{} h", stored / hour),
                _ if stored.is_multiple_of(1_000_000_000) => format!("{} s", stored / 1_000_000_000),
                _ => format!("{} ms", stored / 1_000_000),
            }
        }
    }
}

fn range(param: &PathManagerParam) -> String {
    match param.unit {
        PathManagerUnit::Bool => "true, false".to_owned(),
        _ => format!("{} to {}", value(param, param.min), value(param, param.max)),
    }
}

/// The section that a page must contain to the letter.
fn parameters(info: &PathManagerInfo) -> String {
    if info.params.is_empty() {
        return "## Parameters\n\nNone.\n".to_owned();
    }
    let mut text = "## Parameters\n\n| name | default | values | meaning |\n|---|---|---|---|\n".to_owned();
    for param in info.params {
        let default = value(param, param.default);
        text += &format!("| `{}` | {default} | {} | {} |\n", param.name, range(param), param.doc);
    }
    text
}

/// The line of the index.
fn index_line(info: &PathManagerInfo) -> String {
    let PathManagerInfo { name, title, tag, .. } = info;
    let hosts = if info.in_kernel { "simulator, kernel" } else { "simulator" };
    format!("| [`{name}`]({name}.md) | {title} | {hosts} | {tag} |\n")
}

#[test]
fn every_page_opens_with_the_name_and_tells_the_parameters() {
    for info in &PATH_MANAGERS {
        let (name, page) = (info.name, page(info.name));
        assert!(page.starts_with(&format!("# `{name}`: ")), "docs/path-managers/{name}.md must begin so");
        let section = parameters(info);
        assert!(page.contains(&section), "docs/path-managers/{name}.md must contain\n{section}");
    }
}

#[test]
fn the_index_lists_every_path_manager_in_order() {
    let lines: String = PATH_MANAGERS.iter().map(index_line).collect();
    assert!(page("README").contains(&lines), "docs/path-managers/README.md must contain\n{lines}");
}

#[test]
fn no_page_is_left_of_a_path_manager_that_has_gone() {
    let names: BTreeSet<String> = PATH_MANAGERS.iter().map(|info| format!("{}.md", info.name)).collect();
    for entry in fs::read_dir(docs()).expect("docs/path-managers is there") {
        let file = entry.expect("it can be listed").file_name().into_string().expect("names are text");
        assert!(
            file == "README.md" || names.contains(&file),
            "docs/path-managers/{file} is of no path manager"
        );
    }
}
