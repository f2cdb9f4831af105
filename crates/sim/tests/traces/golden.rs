//! Runs a small scenario, compares its trace with the accepted one, and hands over its lines.

use std::path::PathBuf;

use anabranch_sim::Control;

use crate::packets::{Line, Lines};

/// Set to write the traces of this run instead of comparing them.
const ACCEPT: &str = "ANABRANCH_ACCEPT";
/// More packets than any trace here has.
const PACKETS: usize = 10_000;

/// The trace of a scenario, which must be the accepted one.
///
/// # Panics
/// If it is not, with the difference and the command that accepts the new one.
pub(crate) fn trace(name: &str, scenario: &str) -> Lines {
    let text = text(name, scenario);
    compare(name, &text);
    parse(&text)
}

/// The trace of a scenario.
pub(crate) fn lines(name: &str, scenario: &str) -> Lines {
    parse(&text(name, scenario))
}

fn text(name: &str, scenario: &str) -> String {
    let loaded = anabranch_scenario::load(scenario, &format!("{name}.toml"), &[]);
    let scenario = loaded.unwrap_or_else(|error| panic!("{error}")).scenario;
    anabranch_sim::trace(&scenario, 1, PACKETS, &Control::default()).expect("nobody interrupts a test")
}

fn parse(text: &str) -> Lines {
    Lines(text.lines().map(Line::parse).collect())
}

fn compare(name: &str, text: &str) {
    let file =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../golden/traces").join(format!("{name}.txt"));
    if std::env::var_os(ACCEPT).is_some() {
        std::fs::write(&file, text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        return;
    }
    let accepted = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        accepted == text,
        "golden/traces/{name}.txt differs (- accepted, + now):\n{}\naccept the new traces with: {ACCEPT}=1 cargo test \
         -p anabranch-sim --test traces",
        difference(&accepted, text)
    );
}

/// The lines between the common beginning and the common end of two texts.
fn difference(old: &str, new: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| pairs.take_while(|(a, b)| a == b).count();
    let head = same(&mut old.iter().zip(&new));
    let tail = same(&mut old[head..].iter().rev().zip(new[head..].iter().rev()));
    let part = |lines: &[&str], sign| -> String {
        lines[head..lines.len() - tail].iter().map(|line| format!("{sign}{line}\n")).collect()
    };
    format!("from line {}:\n{}{}", head + 1, part(&old, '-'), part(&new, '+'))
}

#[test]
fn a_difference_shows_the_lines_between_what_is_common() {
    assert_eq!(difference("a\nb\nc\n", "a\nx\ny\nc\n"), "from line 2:\n-b\n+x\n+y\n");
    assert_eq!(difference("", "a\n"), "from line 1:\n+a\n");
}

/// Directions and intervals in microseconds in which the wire loses every packet that enters it.
pub(crate) type Losses<'a> = &'a [(&'a str, u64, u64)];

/// A file over a fast access link and a wire of 20 ms, 10 Mbit/s both: what is sent at once enters the wire one by
/// one, from 1 ms and a transmission later on.
pub(crate) fn one_path(transport: &str, file: &str, losses: Losses<'_>) -> String {
    let changes: String = losses.iter().map(|&loss| lossy("wire", loss)).collect();
    format!(
        r#"
        name = "one-path"
        duration = "60 s"
        measure.interval = "0 s"
        transport = {{ {transport} }}
        node = [{{ names = ["S", "R", "D"] }}]

        [[link]]
        name = "access"
        between = ["S", "R"]
        rate = "10 Mbit/s"
        delay = "1 ms"
        queue = "unlimited"

        [[link]]
        name = "wire"
        between = ["R", "D"]
        rate = "10 Mbit/s"
        delay = "20 ms"
        queue = "100 packets"

        [[connection]]
        name = "file"
        from = "S"
        to = "D"
        congestion = "reno"
        traffic = {{ kind = "file", size = "{file}" }}
        {changes}"#
    )
}

/// The changes that make a link lose everything for a while.
pub(crate) fn lossy(link: &str, (direction, from_us, to_us): (&str, u64, u64)) -> String {
    let change = |at_us: u64, loss: u32| {
        format!(
            "\n[[change]]\nlink = \"{link}\"\ndirection = \"{direction}\"\nat = \"{at_us} us\"\nloss = {loss}\n"
        )
    };
    change(from_us, 1) + &change(to_us, 0)
}

/// A file over several paths: a fast access link each, then a wire `wire0`, `wire1`, … of this many milliseconds.
pub(crate) fn paths(transport: &str, file: &str, wires_ms: &[u64], changes: &str) -> String {
    let path = |(i, delay_ms): (usize, &u64)| {
        format!(
            r#"
            [[node]]
            name = "R{i}"

            [[link]]
            name = "access{i}"
            between = ["S", "R{i}"]
            rate = "10 Mbit/s"
            delay = "1 ms"
            queue = "unlimited"

            [[link]]
            name = "wire{i}"
            between = ["R{i}", "D"]
            rate = "10 Mbit/s"
            delay = "{delay_ms} ms"
            queue = "100 packets"
            "#
        )
    };
    let subflow = |i: usize| format!("\n[[connection.subflow]]\nvia = [\"R{i}\"]\n");
    let paths: String = wires_ms.iter().enumerate().map(path).collect();
    let subflows: String = (0..wires_ms.len()).map(subflow).collect();
    format!(
        r#"
        name = "paths"
        duration = "60 s"
        measure.interval = "0 s"
        transport = {{ {transport} }}

        [[node]]
        names = ["S", "D"]
        {paths}
        [[connection]]
        name = "file"
        from = "S"
        to = "D"
        protocol = "mptcp"
        congestion = "lia"
        traffic = {{ kind = "file", size = "{file}" }}
        {subflows}{changes}"#
    )
}
