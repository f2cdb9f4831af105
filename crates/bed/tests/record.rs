//! `anabranchd path record` on links that are known: the bed's.

mod common;

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use anabranch_scenario::{
    load_path,
    model::{Change, ChangeTarget, Loss, Scenario, Wire},
};
use anabranch_sim::Control;

/// An upload of CUBIC by the phone over two links, and a network behind each that is no bottleneck.
struct Upload {
    name: &'static str,
    /// Of the links between the phone and `access`, and between the phone and `mast`.
    links: [&'static str; 2],
    /// Of the subflows over them.
    subflows: [&'static str; 2],
    /// Further keys of the scenario.
    more: &'static str,
}

impl Upload {
    fn text(&self) -> String {
        let Self { name, links: [access, mast], subflows: [first, second], more } = self;
        format!(
            r#"
name = "{name}"
duration = "11 s"
node = [{{ names = ["phone", "access", "mast", "server"] }}]
link = [
  {{ between = ["phone", "access"], {access} }},
  {{ between = ["phone", "mast"], {mast} }},
  {{ between = ["access", "server"], rate = "100 Mbit/s", delay = "2 ms", queue = "unlimited" }},
  {{ between = ["mast", "server"], rate = "100 Mbit/s", delay = "2 ms", queue = "unlimited" }},
]
{more}
transport = {{ profile = "linux" }}

[[connection]]
name = "upload"
from = "phone"
to = "server"
protocol = "mptcp"
congestion = "cubic"
subflow = [{{ name = "{first}", via = ["access"] }}, {{ name = "{second}", via = ["mast"] }}]
"#
        )
    }
}

/// 8 Mbit/s, 44 ms and 0.1 % of loss; 3 Mbit/s and 84 ms, and 1.2 Mbit/s after six seconds.
const LINKS: Upload = Upload {
    name: "known",
    links: [
        r#"rate = "8 Mbit/s", delay = "20 ms", queue = "60 packets", loss = "0.1 %""#,
        r#"name = "cellular", rate = "3 Mbit/s", delay = "40 ms", queue = "40 packets""#,
    ],
    subflows: ["wifi", "cellular"],
    more: r#"change = [{ link = "cellular", at = "6 s", rate = "1.2 Mbit/s" }]"#,
};

/// Two links of 8 Mbit/s and 44 ms: one whose queue alone drops packets, one that loses 1 % of them.
const QUEUE_AND_NOISE: Upload = Upload {
    name: "queue-and-noise",
    links: [
        r#"rate = "8 Mbit/s", delay = "20 ms", queue = "100 packets""#,
        r#"rate = "8 Mbit/s", delay = "20 ms", queue = "100 packets", loss = "1 %""#,
    ],
    subflows: ["queue", "noise"],
    more: "",
};

/// Records ten seconds of the phone's links while they carry the upload of that scenario.
fn recorded(folder: &Path, daemon: &Path, upload: &Upload) -> Scenario {
    // One bed at a time.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let file = folder.join("known.toml");
    fs::write(&file, upload.text()).expect("the folder is writable");
    let bed = Command::new(env!("CARGO_BIN_EXE_anabranch-bed"))
        .args(["run", "--native-congestion", "--out"])
        .args([&folder.join("runs"), &file])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let is_up = || {
        let shown =
            Command::new("ip").args(["-n", "anabranch-phone", "link", "show", "dev", "if1", "up"]).output();
        shown.is_ok_and(|shown| shown.status.success() && !shown.stdout.is_empty())
    };
    for _ in 0..500 {
        if is_up() {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    let out = folder.join("recorded.toml");
    let record = Command::new("ip")
        .args(["netns", "exec", "anabranch-phone"])
        .arg(daemon)
        .args(["path", "record", "--duration", "10s", "-o"])
        .arg(&out)
        .output()
        .expect("it starts");
    let bed = bed.wait_with_output().expect("it ends");
    assert!(bed.status.success(), "{}", String::from_utf8_lossy(&bed.stderr));
    assert!(record.status.success(), "{}", String::from_utf8_lossy(&record.stderr));
    let said = String::from_utf8_lossy(&record.stdout);
    assert_eq!(said.lines().count(), 2, "a line per interface: {said}");
    let loaded = load_path(&out, &[]);
    let text = fs::read_to_string(&out).expect("it was written");
    loaded.unwrap_or_else(|error| panic!("{error}\n{text}")).scenario
}

fn forward(scenario: &Scenario, name: &str) -> Wire {
    scenario.links.iter().find(|link| link.name == name).expect("every interface has a link").forward
}

fn within(value: f64, low: f64, high: f64, what: &str) {
    assert!((low..=high).contains(&value), "{what}: {value}, expected {low} to {high}");
}

fn loss_of(wire: &Wire) -> f64 {
    match wire.loss {
        Loss::None => 0.0,
        Loss::Bernoulli(loss) => loss,
        other => panic!("a record has no such loss: {other:?}"),
    }
}

#[test]
fn known_links_are_recorded_within_the_stated_tolerances_and_the_simulator_runs_the_record() {
    const TEST: &str =
        "known_links_are_recorded_within_the_stated_tolerances_and_the_simulator_runs_the_record";
    let Some(daemon) = common::daemon(TEST) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = recorded(folder.path(), &daemon, &LINKS);
    let (wifi, cellular) = (forward(&scenario, "if0"), forward(&scenario, "if1"));
    // A tenth: slow start, back-offs after losses, and the first and last seconds.
    within(wifi.rate_bps as f64 / 1e6, 7.2, 8.2, "Mbit/s of wifi");
    within(cellular.rate_bps as f64 / 1e6, 2.7, 3.1, "Mbit/s of cellular");
    // The least round trip has a full segment's serialisation in it (1500 B: 1.5 and 4 ms), and the machine's own delays.
    within(2.0 * wifi.delay as f64 / 1e6, 44.0, 49.0, "ms of wifi");
    within(2.0 * cellular.delay as f64 / 1e6, 84.0, 92.0, "ms of cellular");
    // 0.1 % of some 2200 packets, those sent while the queue was not full, are 2; nine or more come once in four thousand records.
    within(loss_of(&wifi), 0.0, 0.004, "loss of wifi");
    within(loss_of(&cellular), 0.0, 0.000_5, "loss of cellular, whose queue was full");
    let of_cellular = |change: &&Change| match change.target {
        ChangeTarget::Link { link, .. } => scenario.links[link].name == "if1" && change.rate_bps.is_some(),
        ChangeTarget::Medium(_) => false,
    };
    let change = scenario.changes.iter().find(of_cellular).expect("cellular became slow");
    // Windows are whole seconds of the record, which began up to a second before the run; one that is half before the
    // change may be counted with either.
    within(change.at as f64 / 1e9, 5.0, 8.0, "seconds until the change");
    within(change.rate_bps.expect("it was found by that") as f64 / 1e6, 1.0, 1.4, "Mbit/s after the change");
    let run = anabranch_sim::run(&scenario, 1, &Control::default()).expect("it runs");
    let goodput = run.summary.figures.iter().find(|figure| figure.metric == "goodput_bps").expect("a figure");
    let most = (wifi.rate_bps + cellular.rate_bps) as f64 / 1e6;
    // What the links carried, less headers and slow start; a link is slower from its change on.
    within(goodput.value / 1e6, 0.6 * most, most, "Mbit/s in the simulator");
}

#[test]
fn losses_at_random_are_told_from_the_drops_of_a_full_queue() {
    const TEST: &str = "losses_at_random_are_told_from_the_drops_of_a_full_queue";
    let Some(daemon) = common::daemon(TEST) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = recorded(folder.path(), &daemon, &QUEUE_AND_NOISE);
    let (queue, noise) = (forward(&scenario, "if0"), forward(&scenario, "if1"));
    // A repetition or two of some 6000 packets come when the queue seems empty again.
    within(loss_of(&queue), 0.0, 0.000_5, "loss of a queue that was full");
    // 1 % of some 2500 packets are 25, with a standard error of 5: three of them.
    within(loss_of(&noise), 0.004, 0.016, "losses at random");
}
