//! The reference of scenario files in Markdown, from the key tables.

use anabranch_cc::{Param, algorithms};
use anabranch_policy::{paths::PATH_MANAGERS, scheduler::SCHEDULERS};

use crate::congestion;
use crate::keys::{Kind, Need, SCENARIO, Section};
use crate::path_manager;
use crate::scheduler;

/// Every key of a scenario file, and every parameter of every congestion control, packet scheduler and path manager, in
/// Markdown.
pub fn reference() -> String {
    let mut out = String::new();
    let mut seen = Vec::new();
    section_text(&SCENARIO, "", &mut seen, &mut out);
    out.push_str("### Congestion controls\n\n");
    for algorithm in algorithms() {
        out.push_str(&format!("`{}`: {}.\n\n", algorithm.name(), algorithm.title()));
        params_text(algorithm.params(), &mut out);
    }
    for named in &congestion::NAMED {
        out.push_str(&format!("`{}`: {}.\n\n", named.name, named.title));
    }
    out.push_str("### Packet schedulers\n\n");
    for info in SCHEDULERS {
        out.push_str(&format!("`{}`: {}.\n\n", info.name, info.title));
        params_text(&scheduler::params(info), &mut out);
    }
    path_managers_text(&mut out);
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn params_text(params: &[Param], out: &mut String) {
    if params.is_empty() {
        return;
    }
    out.push_str("| parameter | value | meaning |\n|---|---|---|\n");
    for param in params {
        let meaning = param.doc.replace('|', "\\|");
        out.push_str(&format!("| `{}` | {} | {meaning} |\n", param.name, congestion::expected(param)));
    }
    out.push('\n');
}

fn path_managers_text(out: &mut String) {
    out.push_str("### Path managers\n\n");
    for info in &PATH_MANAGERS {
        out.push_str(&format!("`{}`: {}.\n\n", info.name, info.title));
        if info.params.is_empty() {
            continue;
        }
        out.push_str("| parameter | value | meaning |\n|---|---|---|\n");
        for param in info.params {
            let expected = path_manager::expected(param);
            out.push_str(&format!("| `{}` | {expected} | {} |\n", param.name, param.doc));
        }
        out.push('\n');
    }
}

fn section_text(section: &'static Section, heading: &str, seen: &mut Vec<&'static str>, out: &mut String) {
    if seen.contains(&section.name) {
        return;
    }
    seen.push(section.name);
    let title = if heading.is_empty() { "Top of the file".to_owned() } else { format!("`{heading}`") };
    out.push_str(&format!(
        "### {title}\n\n{}\n\n| key | value | without it | meaning |\n|---|---|---|---|\n",
        section.doc
    ));
    for key in section.keys {
        let without = match key.need {
            Need::Required => "**required**".to_owned(),
            Need::Default("") => "empty".to_owned(),
            Need::Default(text) => format!("`{text}`"),
            Need::Optional(text) => text.to_owned(),
        };
        out.push_str(&format!("| `{}` | {} | {without} | {} |\n", key.name, key.kind.short(), key.doc));
    }
    out.push('\n');
    for key in section.keys {
        let path = if section.name == SCENARIO.name {
            key.name.to_owned()
        } else {
            format!("{}.{}", section.name, key.name)
        };
        match &key.kind {
            Kind::Table(inner)
            | Kind::TableOrOff(inner)
            | Kind::OrTable(_, inner)
            | Kind::Draw { section: inner, .. } => section_text(inner, &format!("[{path}]"), seen, out),
            Kind::Tables(inner) => section_text(inner, &format!("[[{path}]]"), seen, out),
            _ => {}
        }
    }
}
