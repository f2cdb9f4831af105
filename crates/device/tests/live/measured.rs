//! Writing what was measured into `docs/agent.md`, each table between two comments of its own.

use std::{fs, io::Write as _, path::Path};

/// Replaces a generated part of the document, and prints it.
///
/// # Panics
/// If the document lacks the two comments.
pub fn write(part: &str, text: &str) {
    std::io::stdout().write_all(text.as_bytes()).expect("stdout is open");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agent.md");
    let document = fs::read_to_string(&file).expect("it is readable");
    let (begin, end) = (format!("<!-- measured: {part} -->\n"), format!("<!-- end: {part} -->\n"));
    let (before, rest) = document.split_once(&begin).expect("the part begins");
    let (_, after) = rest.split_once(&end).expect("the part ends");
    fs::write(file, format!("{before}{begin}{text}{end}{after}")).expect("it can be written");
}

/// Median and worst of some numbers.
pub fn median_and_worst(numbers: &[u64]) -> (u64, u64) {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    (sorted[sorted.len() / 2], sorted[sorted.len() - 1])
}

/// A whole number from the environment.
pub fn number(name: &str, default: u32) -> u32 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
