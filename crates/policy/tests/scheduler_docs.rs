//! Every scheduler has a page in `docs/schedulers/`, and the page tells the registry's parameters.

use std::{collections::BTreeSet, fs, path::PathBuf};

use anabranch_policy::scheduler::{SCHEDULERS, SchedulerInfo, SchedulerParam, SchedulerUnit};

fn docs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/schedulers")
}

fn page(name: &str) -> String {
    let path = docs().join(format!("{name}.md"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("docs/schedulers/{name}.md: {error}"))
}

/// A stored value as a scenario writes it.
fn value(param: &SchedulerParam, stored: u32) -> String {
    match param.unit {
        SchedulerUnit::Count => stored.to_string(),
        SchedulerUnit::Packets if stored == 1 => "1 packet".to_owned(),
        SchedulerUnit::Packets => format!("{stored} packets"),
        SchedulerUnit::Permille => (f64::from(stored) / 1000.0).to_string(),
        SchedulerUnit::Bool => (stored != 0).to_string(),
        SchedulerUnit::Choice => param.choices[stored as usize].to_owned(),
    }
}

/// The section that a page must contain to the letter.
fn parameters(info: &SchedulerInfo) -> String {
    if info.params.is_empty() {
        return "## Parameters\n\nNone.\n".to_owned();
    }
    let mut text = "## Parameters\n\n| name | default | values | meaning |\n|---|---|---|---|\n".to_owned();
    for param in info.params {
        let (values, meaning) = match param.unit {
            SchedulerUnit::Bool => ("true, false".to_owned(), param.doc),
            SchedulerUnit::Choice => {
                (param.choices.join(", "), param.doc.split_once(": ").expect("choices, then the meaning").1)
            }
            _ => (format!("{} to {}", value(param, param.min), value(param, param.max)), param.doc),
        };
        let default = value(param, param.default);
        text += &format!("| `{}` | {default} | {values} | {meaning} |\n", param.name);
    }
    text
}

#[test]
fn every_page_opens_with_the_title_and_tells_the_parameters() {
    for info in SCHEDULERS {
        let page = page(info.name);
        let title = format!("# {}\n", info.title);
        assert!(page.starts_with(&title), "docs/schedulers/{}.md must begin with {title}", info.name);
        let section = parameters(info);
        assert!(page.contains(&section), "docs/schedulers/{}.md must contain\n{section}", info.name);
    }
}

#[test]
fn the_index_lists_every_scheduler_in_order_and_what_is_house_definition_says_so() {
    let line = |info: &SchedulerInfo| {
        let radios = if info.reckons_energy { "yes" } else { "no" };
        format!("| [`{0}`]({0}.md) | {1} | {radios} | {2} |\n", info.name, info.title, info.tag)
    };
    let lines: String = SCHEDULERS.iter().map(line).collect();
    assert!(page("README").contains(&lines), "docs/schedulers/README.md must contain\n{lines}");
    for info in SCHEDULERS {
        assert_eq!(info.tag == "C", info.title.contains("house definition"), "{}", info.name);
    }
}

#[test]
fn no_page_is_left_of_a_scheduler_that_has_gone() {
    let names: BTreeSet<String> = SCHEDULERS.iter().map(|info| format!("{}.md", info.name)).collect();
    for entry in fs::read_dir(docs()).expect("docs/schedulers is there") {
        let file = entry.expect("it can be listed").file_name().into_string().expect("names are text");
        assert!(file == "README.md" || names.contains(&file), "docs/schedulers/{file} has no scheduler");
    }
}

#[test]
fn names_are_unique_and_defaults_in_their_ranges() {
    let names: BTreeSet<&str> = SCHEDULERS.iter().map(|info| info.name).collect();
    assert_eq!(names.len(), SCHEDULERS.len());
    for param in SCHEDULERS.iter().flat_map(|info| info.params) {
        assert!((param.min..=param.max).contains(&param.default), "{}", param.name);
        assert_eq!(param.unit == SchedulerUnit::Choice, !param.choices.is_empty(), "{}", param.name);
    }
}
