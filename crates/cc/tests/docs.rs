//! Every algorithm has a page in `docs/algorithms/`, and the page tells the registry's parameters.

use std::{collections::BTreeSet, fs, path::PathBuf};

use anabranch_cc::{Algorithm, Coupling, Hosts, Kind, Param, Unit, algorithms};

fn docs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/algorithms")
}

fn page(name: &str) -> String {
    let path = docs().join(format!("{name}.md"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("docs/algorithms/{name}.md: {error}"))
}

/// A stored value as a scenario writes it.
fn value(param: &Param, stored: u32) -> String {
    let decimal = |scale: f64| {
        let text = format!("{:.3}", f64::from(stored) / scale);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match param.unit {
        Unit::Count => stored.to_string(),
        Unit::Packets if stored == 1 => "1 packet".to_owned(),
        Unit::Packets => format!("{stored} packets"),
        Unit::Micros if stored >= 1_000_000 && stored.is_multiple_of(1_000_000) => {
            format!("{} s", stored / 1_000_000)
        }
        Unit::Micros if stored >= 1000 && stored.is_multiple_of(1000) => format!("{} ms", stored / 1000),
        Unit::Micros => format!("{stored} us"),
        Unit::Q10 => decimal(1024.0),
        Unit::Q16 => decimal(65536.0),
        Unit::Permille => decimal(1000.0),
        Unit::Bool => (stored != 0).to_string(),
        Unit::Choice => param.choices[stored as usize].to_owned(),
    }
}

fn range(param: &Param) -> String {
    match param.unit {
        Unit::Bool => "true, false".to_owned(),
        Unit::Choice => param.choices.join(", "),
        _ => format!("{} to {}", value(param, param.min), value(param, param.max)),
    }
}

/// The section that a page must contain to the letter.
fn parameters(algorithm: &Algorithm) -> String {
    if algorithm.params().is_empty() {
        return "## Parameters\n\nNone.\n".to_owned();
    }
    let mut text = "## Parameters\n\n| name | default | values | meaning |\n|---|---|---|---|\n".to_owned();
    for param in algorithm.params() {
        let meaning = match param.unit {
            Unit::Choice => param.doc.split_once(": ").expect("choices, then the meaning").1,
            _ => param.doc,
        };
        let default = value(param, param.default);
        text += &format!("| `{}` | {default} | {} | {meaning} |\n", param.name, range(param));
    }
    text
}

/// The line of the index.
fn index_line(algorithm: &Algorithm) -> String {
    let kind = match algorithm.kind() {
        Kind::Window => "window",
        Kind::Rate => "rate",
    };
    let coupling = match algorithm.coupling() {
        Coupling::Single => "single",
        Coupling::Coupled => "coupled",
    };
    let hosts = match algorithm.hosts() {
        Hosts::Sim => "simulator",
        Hosts::Both => "simulator, kernel",
    };
    let (name, title, tag) = (algorithm.name(), algorithm.title(), algorithm.tag());
    format!("| [`{name}`]({name}.md) | {title} | {kind} | {coupling} | {hosts} | {tag} |\n")
}

#[test]
fn every_page_opens_with_the_title_and_tells_the_parameters() {
    for algorithm in algorithms() {
        let page = page(algorithm.name());
        let title = format!("# {}\n", algorithm.title());
        assert!(page.starts_with(&title), "docs/algorithms/{}.md must begin with {title}", algorithm.name());
        let section = parameters(algorithm);
        assert!(page.contains(&section), "docs/algorithms/{}.md must contain\n{section}", algorithm.name());
    }
}

#[test]
fn the_index_lists_every_algorithm_in_order() {
    let lines: String = algorithms().iter().map(index_line).collect();
    assert!(page("README").contains(&lines), "docs/algorithms/README.md must contain\n{lines}");
}

#[test]
fn no_page_is_left_of_an_algorithm_that_has_gone() {
    let names: BTreeSet<String> = algorithms().iter().map(|a| format!("{}.md", a.name())).collect();
    for entry in fs::read_dir(docs()).expect("docs/algorithms is there") {
        let file = entry.expect("it can be listed").file_name().into_string().expect("names are text");
        assert!(file == "README.md" || names.contains(&file), "docs/algorithms/{file} has no algorithm");
    }
}
