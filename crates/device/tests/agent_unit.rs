//! The unit for systemd in `docs/agent.md`, as systemd itself judges it.

use std::{
    fs,
    io::Write as _,
    process::{Command, Output},
};

/// Ten times the exposure level (systemd-analyze(1)) that the unit may have at most: below 3.0 it is "OK".
const EXPOSURE: &str = "30";

fn analyze(arguments: &[&str]) -> Option<Output> {
    Command::new("systemd-analyze").args(arguments).output().ok()
}

#[test]
fn the_unit_is_good_and_as_closed_as_it_can_be() {
    if analyze(&["--version"]).is_none_or(|output| !output.status.success()) {
        let line = "SKIPPED: the_unit_is_good_and_as_closed_as_it_can_be: there is no systemd-analyze; enable with: apt-get install systemd\n";
        std::io::stderr().write_all(line.as_bytes()).expect("stderr is open");
        return;
    }
    let document = include_str!("../../../docs/agent.md");
    let unit =
        document.split("```ini\n").nth(1).and_then(|rest| rest.split("```").next()).expect("it has one");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("anabranch-agent.service");
    let program = env!("CARGO_BIN_EXE_anabranchd");
    fs::write(&file, unit.replace("/usr/local/bin/anabranchd", program)).expect("it can be written");
    let file = file.to_str().expect("a plain path");
    let verified = analyze(&["verify", file]).expect("it was there");
    assert!(verified.status.success(), "{verified:?}");
    // What it says of other units of the machine is not ours.
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(!said.contains("anabranch"), "{said}");
    let security = analyze(&["security", "--offline=true", "--threshold", EXPOSURE, "--no-pager", file]);
    let security = security.expect("it was there");
    assert!(security.status.success(), "{}", String::from_utf8_lossy(&security.stdout));
}
