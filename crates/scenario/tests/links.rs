//! Links with a queue discipline, losses in bursts, a varying delay or a rate trace.

use anabranch_scenario::model::{
    CoDel, Discipline, Jitter, JitterDistribution, Loss, QueueLimit, Red, Scenario, Wire,
};
use anabranch_scenario::{load, load_path};

const MS: u64 = 1_000_000;

const HEAD: &str = r#"
name = "test"
duration = "10 s"
[[node]]
names = ["A", "D"]
"#;

const FLOW: &str = r#"
[[connection]]
name = "flow"
from = "A"
to = "D"
congestion = "reno"
"#;

#[track_caller]
fn scenario(parts: &[&str]) -> Scenario {
    load(&parts.concat(), "test.toml", &[]).unwrap_or_else(|error| panic!("{error}")).scenario
}

fn link_with(settings: &str) -> Wire {
    let link =
        format!("[[link]]\nbetween = [\"A\", \"D\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n{settings}\n");
    let link = scenario(&[HEAD, &link, FLOW]).links[0].clone();
    assert_eq!(link.forward, link.reverse);
    link.forward
}

#[test]
fn queue_disciplines_have_the_defaults_of_their_papers() {
    let queue = |text: &str| {
        let wire = link_with(&format!("queue = {text}"));
        (wire.queue, wire.discipline)
    };
    let codel = CoDel { target: 5 * MS, interval: 100 * MS, ecn: false };
    assert_eq!(queue(r#""9 packets""#), (QueueLimit::Packets(9), Discipline::DropTail));
    assert_eq!(
        queue(r#"{ kind = "drop-tail", limit = "9 packets" }"#),
        (QueueLimit::Packets(9), Discipline::DropTail)
    );
    assert_eq!(queue(r#"{ kind = "codel" }"#), (QueueLimit::Packets(1000), Discipline::CoDel(codel)));
    assert_eq!(
        queue(r#"{ kind = "fq_codel", limit = "1 MB", ecn = true, interval = "50 ms" }"#),
        (
            QueueLimit::Bytes(1_000_000),
            Discipline::FqCoDel {
                codel: CoDel { interval: 50 * MS, ecn: true, ..codel },
                flows: 1024,
                quantum_bytes: 1514
            }
        )
    );
    let red = Red { min_packets: 5, max_packets: 15, max_p: 0.1, weight: 0.002, gentle: true, ecn: false };
    assert_eq!(
        queue(r#"{ kind = "red", limit = "unlimited" }"#),
        (QueueLimit::Unlimited, Discipline::Red(red))
    );
    assert_eq!(
        queue(
            r#"{ kind = "red", limit = "100 packets", min = "20 packets", gentle = false, max_p = "2 %" }"#
        )
        .1,
        Discipline::Red(Red { min_packets: 20, max_packets: 60, max_p: 0.02, gentle: false, ..red })
    );
}

#[test]
fn losses_may_come_in_bursts_and_delays_may_vary() {
    let wire = link_with(
        r#"
queue = "9 packets"
loss = { kind = "gilbert-elliott", p = "1 %", r = "20 %" }
jitter = "5 ms""#,
    );
    assert_eq!(wire.loss, Loss::GilbertElliott { p: 0.01, r: 0.2, loss_good: 0.0, loss_bad: 1.0 });
    let jitter = Jitter { range: 5 * MS, distribution: JitterDistribution::Uniform, reorder: false };
    assert_eq!(wire.jitter, Some(jitter));
    let wire = link_with(
        r#"
queue = "9 packets"
jitter = { range = "5 ms", distribution = "normal", reorder = true }"#,
    );
    let distribution = JitterDistribution::Normal;
    assert_eq!(wire.jitter, Some(Jitter { distribution, reorder: true, ..jitter }));
    assert_eq!(link_with("queue = \"9 packets\"\njitter = \"0 ms\"").jitter, None);
}

/// A folder with a scenario and traces, which is gone afterwards.
struct Traced(std::path::PathBuf);

impl Traced {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("anabranch-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }

    fn load(&self, link: &str, more: &str) -> Result<anabranch_scenario::Loaded, anabranch_scenario::Error> {
        let link =
            format!("[[link]]\nbetween = [\"A\", \"D\"]\ndelay = \"1 ms\"\nqueue = \"9 packets\"\n{link}\n");
        self.file("s.toml", &[HEAD, &link, FLOW, more].concat());
        load_path(self.0.join("s.toml"), &[])
    }

    fn refusal(&self, link: &str, more: &str) -> String {
        let message = self.load(link, more).unwrap_err().message;
        message.replace(&self.0.join("s.toml").display().to_string(), "s.toml")
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn a_trace_is_read_beside_the_scenario_and_identified_by_its_content() {
    let folder = Traced::new("trace");
    folder.file("a", "1\n2\n2\n4\n");
    folder.file("b", "1\n2\n2\n4\n");
    let one = folder.load(r#"trace = "a""#, "").unwrap();
    let wire = one.scenario.links[0].forward;
    assert_eq!((wire.trace, wire.rate_bps), (Some(0), 12_000_000), "four times 1500 B in 4 ms");
    assert_eq!(wire, one.scenario.links[0].reverse);
    assert_eq!(*one.scenario.traces[0].opportunities_ms, [1, 2, 2, 4]);
    assert!(one.canonical.contains(r#""trace":"blake3:"#), "{}", one.canonical);
    assert_eq!(folder.load(r#"trace = "b""#, "").unwrap().canonical, one.canonical);
    folder.file("b", "1\n2\n3\n4\n");
    assert_ne!(folder.load(r#"trace = "b""#, "").unwrap().canonical, one.canonical);

    let both = folder.load("trace = \"a\"\nreverse = { trace = \"b\" }", "").unwrap().scenario;
    assert_eq!((both.links[0].forward.trace, both.links[0].reverse.trace), (Some(0), Some(1)));
    assert_eq!(both.traces.len(), 2);
    let back = folder.load("trace = \"a\"\nreverse = { rate = \"3 Mbit/s\" }", "").unwrap().scenario;
    assert_eq!((back.links[0].reverse.trace, back.links[0].reverse.rate_bps), (None, 3_000_000));
}

#[test]
fn what_is_wrong_with_a_trace_is_said() {
    let folder = Traced::new("bad-trace");
    folder.file("good", "1\n2\n");
    folder.file("back", "1\n5\n4\n");
    assert_eq!(
        folder.refusal(r#"trace = "back""#, ""),
        r#"s.toml:10:9: link.0.trace: "back": line 3: 4 comes after 5; expected times that do not decrease"#
    );
    assert_eq!(
        folder.refusal(r#"trace = "none""#, ""),
        r#"s.toml:10:9: link.0.trace: "none": no such file; expected a path from the scenario's folder"#
    );
    assert_eq!(
        folder.refusal(r#"trace = ".""#, ""),
        r#"s.toml:10:9: link.0.trace: ".": a directory; expected a file with a rate trace"#
    );
    assert_eq!(
        folder.refusal("rate = \"1 Mbit/s\"\ntrace = \"good\"", ""),
        "s.toml:11:9: link.0.trace: beside rate; expected one of the two"
    );
    assert_eq!(
        folder.refusal("", ""),
        r#"s.toml:6:1: link.0.rate: missing; expected a rate such as "3 Mbit/s" (units: bit/s, kbit/s, Mbit/s, Gbit/s)"#
    );
    let change = "[[change]]\nat = \"1 s\"\nlink = \"A-D\"\nrate = \"1 Mbit/s\"\n";
    assert_eq!(
        folder.refusal(r#"trace = "good""#, change),
        "s.toml:20:8: change.0.rate: the rate of this link follows a trace; expected no such key"
    );
}
