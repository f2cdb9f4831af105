//! `anabranchd agent` when paths are silent: timeouts that the kernel tells, outages of all links, translators that forget, links
//! without Internet, events that are lost.

mod live;

use std::{fs, io::Write as _, thread, time::Duration};

use live::{
    Conversation, PORT,
    agent::{Agent, config, written},
    common::{
        lab::{Lab, Namespace, SERVER},
        pair::socket,
        skip,
    },
    stream::{Stream, set_link, subflow_from},
    subflows, wait,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use socket2::Domain;

/// Hands over at the first timeout.
const FAILOVER: &str =
    r#"{ name = "failover", dead_after = 1, retry = "100 ms", retry_max = "200 ms", hold = "300 ms" }"#;

fn sysctl(namespace: &Namespace, assignment: &str) {
    namespace.run("sysctl", &format!("-qw {assignment}"));
}

/// The router throws away what comes over a link of the client, or does so no more. The links stay up.
fn silence(lab: &Lab, link: u32, is_silent: bool) {
    lab.router.ip(&format!("rule {} iif r{link} blackhole", if is_silent { "add" } else { "del" }));
}

/// Whether an agent that has begun hears of timeouts from the kernel; says that the test is skipped if not.
fn is_told(test: &str, agent: &Agent) -> bool {
    let started = agent.wait_for("started", |_| true);
    let is_told = started["timeouts"] == "told";
    if !is_told {
        let line =
            format!("SKIPPED: {test}: {}; enable with: make device on Linux 6.4 or later\n", started["why"]);
        std::io::stderr().write_all(line.as_bytes()).expect("stderr is open");
    }
    is_told
}

#[test]
fn the_first_timeout_is_told_at_once_and_data_go_over_to_the_spare() {
    const TEST: &str = "the_first_timeout_is_told_at_once_and_data_go_over_to_the_spare";
    if skip(TEST) {
        return;
    }
    let lab = Lab::unshaped();
    let agent = Agent::start(&lab.client, &config("role = \"backup\"", FAILOVER));
    if !is_told(TEST, &agent) {
        return;
    }
    let conversation = Conversation::open(&lab);
    let first = subflow_from(&lab.client, "10.77.1.1")["local"].clone();
    subflow_from(&lab.client, "10.77.2.1");
    Stream::run(&conversation, |stream| {
        stream.flows(20_000);
        silence(&lab, 1, true);
        let of_first = |line: &Value| {
            let subflow = line["subflow"].as_str().expect("it names one");
            line["timeouts"] == 1 && subflow.starts_with(&format!("{} ", first.as_str().expect("text")))
        };
        let told = agent.wait_for("timeout", of_first);
        let closed = agent.wait_for("close", |line| line["dev"] == "c1" && line["reason"] == "dead");
        assert_eq!(closed["timeouts"], 1);
        let late = closed["at_ms"].as_u64().expect("a time") - told["at_ms"].as_u64().expect("a time");
        // The next timeout comes 400 ms after the first.
        assert!(late < 300, "{late} ms after it was told");
        stream.flows(50_000);
        silence(&lab, 1, false);
        agent.wait_for("regular", |line| line["dev"] == "c1" && line["reason"] == "preferred-returned");
        stream.flows(50_000);
    });
}

#[test]
fn timeouts_are_looked_for_where_the_kernel_does_not_tell() {
    if skip("timeouts_are_looked_for_where_the_kernel_does_not_tell") {
        return;
    }
    let lab = Lab::unshaped();
    let text = fs::read_to_string(config("role = \"backup\"", FAILOVER).path()).expect("it is readable");
    let agent = Agent::start(&lab.client, &written(&text.replace("[agent]", "[agent]\nbpf = false")));
    let started = agent.wait_for("started", |_| true);
    assert_eq!((&started["timeouts"], &started["why"]), (&"looked-for".into(), &"bpf = false".into()));
    let conversation = Conversation::open(&lab);
    subflow_from(&lab.client, "10.77.2.1");
    Stream::run(&conversation, |stream| {
        stream.flows(20_000);
        silence(&lab, 1, true);
        agent.wait_for("close", |line| line["dev"] == "c1" && line["reason"] == "dead");
        stream.flows(50_000);
    });
    assert!(agent.said().iter().all(|line| line["event"] != "timeout"), "{:#?}", agent.said());
}

/// The outage lasts several times as long as Linux lets a connection live that has no subflow.
#[test]
fn a_connection_outlives_an_outage_of_all_links() {
    if skip("a_connection_outlives_an_outage_of_all_links") {
        return;
    }
    let lab = Lab::unshaped();
    for end in [&lab.client, &lab.server] {
        sysctl(end, "net.mptcp.close_timeout=1");
    }
    let agent = Agent::start(&lab.client, &config("role = \"backup\"", FAILOVER));
    let conversation = Conversation::open(&lab);
    subflow_from(&lab.client, "10.77.2.1");
    Stream::run(&conversation, |stream| {
        stream.flows(20_000);
        silence(&lab, 1, true);
        silence(&lab, 2, true);
        for dev in ["c1", "c2"] {
            agent.wait_for("close", |line| line["dev"] == dev && line["reason"] == "dead");
        }
        thread::sleep(Duration::from_secs(4));
        assert!(agent.said().iter().all(|line| line["event"] != "over"), "{:#?}", agent.said());
        silence(&lab, 1, false);
        silence(&lab, 2, false);
        stream.flows(50_000);
        wait("what was kept to be closed", || {
            let kept = |line: &Value| line["reason"] == "dead" && line["subflow"].is_string();
            agent.said().iter().any(kept).then_some(())
        });
        wait("both subflows", || (subflows(&lab.client).len() == 2).then_some(()));
        stream.flows(50_000);
    });
}

/// Of both links in turn, each taken down until its subflow has been closed.
#[test]
fn after_50_flaps_every_subflow_is_there_again_and_every_byte() {
    const FLAPS: u64 = 50;
    if skip("after_50_flaps_every_subflow_is_there_again_and_every_byte") {
        return;
    }
    let lab = Lab::unshaped();
    let agent = Agent::start(&lab.client, &config("", r#"{ name = "reestablish", retry = "100 ms" }"#));
    let conversation = Conversation::open(&lab);
    // Those that the server has taken: it refuses one now and then, as long as it counts subflows of whose end it has not heard, and
    // the agent tries again.
    let joins = || lab.server.mib("MPTcpExt", "MPJoinAckRx");
    wait("the second subflow", || (joins() == 1).then_some(()));
    let closed = || agent.said().iter().filter(|line| line["reason"] == "link-down").count() as u64;
    Stream::run(&conversation, |stream| {
        for flap in 1..=FLAPS {
            let link = 1 + (flap % 2) as u32;
            set_link(&lab.client, link, false);
            wait("its subflow to be closed", || (closed() == flap).then_some(()));
            set_link(&lab.client, link, true);
            wait("another one", || (joins() == 1 + flap).then_some(()));
            stream.flows(2_000);
        }
        let bytes = stream.finish();
        assert!(bytes >= FLAPS * 2_000, "{bytes}");
    });
    assert_eq!(joins(), 1 + FLAPS);
}

#[test]
fn a_silent_subflow_sends_something_as_often_as_it_is_told_to() {
    if skip("a_silent_subflow_sends_something_as_often_as_it_is_told_to") {
        return;
    }
    let lab = Lab::unshaped();
    let agent = Agent::start(&lab.client, &config("keepalive = \"1 s\"", "\"reestablish\""));
    let conversation = Conversation::open(&lab);
    subflow_from(&lab.client, "10.77.2.1");
    let sent = || lab.client.mib("MPTcpExt", "MPPrioTx");
    let before = sent();
    thread::sleep(Duration::from_millis(4_500));
    // The first a second after the look that saw it last, and the second link's alone.
    let prio = sent() - before;
    assert!((3..=4).contains(&prio), "{prio}");
    assert_eq!(subflows(&lab.client).iter().filter(|subflow| subflow["backup"] == true).count(), 0);
    conversation.speak();
    drop(agent);
}

#[test]
fn a_link_without_internet_is_found_though_nothing_is_sent() {
    if skip("a_link_without_internet_is_found_though_nothing_is_sent") {
        return;
    }
    let lab = Lab::unshaped();
    // Nobody listens at port 9: it is refused, and that is an answer.
    let policy = r#"{ name = "failover", hold = "300 ms" }"#;
    let agent = Agent::start(
        &lab.client,
        &written(&format!(
            "[agent]\nset_pm_type = true\n[[interface]]\nname = \"c*\"\nprobe = {{ to = \"10.78.0.2:9\", every = \"1 s\" }}\n\
             [[connection]]\npolicy = {policy}\n"
        )),
    );
    let conversation = Conversation::open(&lab);
    wait("the spare", || {
        subflows(&lab.client).into_iter().find(|subflow| subflow["dev"] == "c2" && subflow["backup"] == true)
    });
    thread::sleep(Duration::from_millis(2_500));
    assert!(agent.said().iter().all(|line| line["event"] != "probe-failed"), "{:#?}", agent.said());
    silence(&lab, 1, true);
    agent.wait_for("probe-failed", |line| line["of"] == "c1" && line["failures"] == 2);
    agent.wait_for("regular", |line| line["dev"] == "c2" && line["reason"] == "preferred-failed");
    conversation.speak();
    silence(&lab, 1, false);
    agent.wait_for("probe-answered", |line| line["of"] == "c1");
    agent.wait_for("regular", |line| line["dev"] == "c1" && line["reason"] == "preferred-returned");
    conversation.speak();
}

/// While the agent is stopped, so much happens that the kernel has to drop events of both kinds; among them that of a subflow that was
/// reset.
#[test]
fn events_that_were_lost_are_made_good_by_looking() {
    if skip("events_that_were_lost_are_made_good_by_looking") {
        return;
    }
    let lab = Lab::unshaped();
    let agent = Agent::start(&lab.client, &config("", r#"{ name = "reestablish", retry = "100 ms" }"#));
    let conversation = Conversation::open(&lab);
    let before = subflow_from(&lab.client, "10.77.2.1");
    agent.wait_for("subflow-established", |_| true);
    let process = Pid::from_raw(agent.process() as i32);
    kill(process, Signal::SIGSTOP).expect("it runs");
    let changes = "addr add 10.99.0.1/32 dev lo\naddr del 10.99.0.1/32 dev lo\n".repeat(1_000);
    let mut batch = tempfile::NamedTempFile::new().expect("a temporary file");
    batch.write_all(changes.as_bytes()).expect("it can be written");
    lab.client.ip(&format!("-batch {}", batch.path().display()));
    let listener = lab.server.enter(|| {
        let listener = socket(Domain::IPV4);
        listener.bind(&std::net::SocketAddr::from((SERVER, PORT + 1)).into()).expect("the port is free");
        listener.listen(8).expect("it can listen");
        listener
    });
    lab.client.enter(|| {
        for _ in 0..2_500 {
            let client = socket(Domain::IPV4);
            client.connect(&std::net::SocketAddr::from((SERVER, PORT + 1)).into()).expect("it listens");
            drop(listener.accept().expect("the client has connected"));
        }
    });
    lab.server.run("ss", "-K -tn dst 10.77.2.1");
    kill(process, Signal::SIGCONT).expect("it runs");
    for of in ["links", "connections"] {
        agent.wait_for("events-lost", |line| line["of"] == of);
    }
    wait("another subflow", || {
        subflows(&lab.client)
            .into_iter()
            .find(|subflow| subflow["dev"] == "c2" && subflow["local"] != before["local"])
    });
    conversation.speak();
}
