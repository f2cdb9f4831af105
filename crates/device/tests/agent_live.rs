//! `anabranchd agent` in conversation with the kernel.

mod live;

use std::{
    fs,
    io::{Read as _, Write as _},
    os::{
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr as UnixAddress, UnixStream},
    },
    thread,
    time::Duration,
};

use live::{
    Conversation,
    agent::{Agent, config},
    common::{
        lab::{Lab, Namespace},
        skip,
    },
    done, run,
    stream::{Stream, set_link, subflow_from},
    subflows, wait,
};
use nix::sys::signal::Signal;
use serde_json::Value;
use socket2::Domain;

/// Tries at once, then every 100 ms.
const REESTABLISH: &str =
    r#"{ name = "reestablish", retry = "100 ms", retry_max = "100 ms", dead_after = 2 }"#;
const FAILOVER: &str = r#"{ name = "failover", retry = "100 ms", retry_max = "200 ms", hold = "300 ms" }"#;

fn pm_type(namespace: &Namespace) -> String {
    namespace.run("sysctl", "-n net.mptcp.pm_type").trim().to_owned()
}

#[test]
fn a_subflow_that_was_reset_is_opened_again() {
    if skip("a_subflow_that_was_reset_is_opened_again") {
        return;
    }
    let lab = Lab::unshaped();
    let agent = Agent::start(&lab.client, &config("", REESTABLISH));
    let conversation = Conversation::open(&lab);
    agent.wait_for("managed", |line| line["policy"] == "reestablish" && line["subflows"] == 1);
    agent.wait_for("open", |line| line["dev"] == "c2" && line["reason"] == "open" && line["try"] == 1);
    for address in ["10.77.2.1", "10.77.1.1", "10.77.2.1"] {
        let before = subflow_from(&lab.client, address);
        lab.server.run("ss", &format!("-K -tn dst {address}"));
        wait("another subflow", || {
            let again = subflows(&lab.client);
            let is_new = |subflow: &&Value| {
                subflow["local"].as_str().is_some_and(|at| at.starts_with(address))
                    && subflow["local"] != before["local"]
            };
            again.iter().find(is_new).map(|_| ())
        });
        conversation.speak();
    }
    agent.wait_for("subflow-closed", |line| line["error"] == "Connection reset by peer");
    drop(conversation);
    agent.wait_for("over", |_| true);
}

#[test]
fn a_subflow_whose_address_is_gone_is_closed_and_another_address_takes_its_place() {
    if skip("a_subflow_whose_address_is_gone_is_closed_and_another_address_takes_its_place") {
        return;
    }
    let lab = Lab::unshaped();
    let agent = Agent::start(&lab.client, &config("", REESTABLISH));
    let conversation = Conversation::open(&lab);
    subflow_from(&lab.client, "10.77.2.1");
    lab.client.ip("addr add 10.77.2.9/24 dev c2");
    lab.client.ip("addr del 10.77.2.1/24 dev c2");
    // The second address goes with the first, which it was secondary to.
    lab.client.ip("addr replace 10.77.2.9/24 dev c2");
    set_link(&lab.client, 2, true);
    agent.wait_for("close", |line| line["reason"] == "address-gone");
    subflow_from(&lab.client, "10.77.2.9");
    conversation.speak();
}

#[test]
fn a_connection_that_has_lost_its_only_subflow_gets_another() {
    if skip("a_connection_that_has_lost_its_only_subflow_gets_another") {
        return;
    }
    let lab = Lab::unshaped();
    let agent = Agent::start(&lab.client, &config("allowed = false", REESTABLISH));
    let conversation = Conversation::open(&lab);
    agent.wait_for("managed", |_| true);
    let before = subflow_from(&lab.client, "10.77.1.1");
    lab.server.run("ss", "-K -tn dst 10.77.1.1");
    wait("another subflow", || {
        subflows(&lab.client).into_iter().find(|subflow| subflow["local"] != before["local"])
    });
    conversation.speak();
    // It is kept while its link is down: there is no other.
    set_link(&lab.client, 1, false);
    thread::sleep(Duration::from_millis(300));
    set_link(&lab.client, 1, true);
    lab.client.ip("route replace default via 10.77.1.254 dev c1");
    conversation.speak();
    assert!(agent.said().iter().all(|line| line["reason"] != "link-down"), "{:#?}", agent.said());
    assert!(agent.said().iter().all(|line| line["dev"] != "c2"), "it is not allowed");
}

#[test]
fn a_socket_of_ipv6_that_speaks_ipv4_has_its_subflows_too() {
    if skip("a_socket_of_ipv6_that_speaks_ipv4_has_its_subflows_too") {
        return;
    }
    let lab = Lab::unshaped();
    let agent = Agent::start(&lab.client, &config("", REESTABLISH));
    let conversation = Conversation::from(&lab, Domain::IPV6);
    agent.wait_for("managed", |line| line["to"] == "10.78.0.2:5001");
    agent.wait_for("subflow-established", |_| true);
    lab.server.run("ss", "-K -tn dst 10.77.2.1");
    agent.wait_for("open", |line| line["dev"] == "c2" && line["reason"] != "open");
    conversation.speak();
}

#[test]
fn data_go_over_to_the_spare_when_the_link_goes_down_and_back_when_it_returns() {
    if skip("data_go_over_to_the_spare_when_the_link_goes_down_and_back_when_it_returns") {
        return;
    }
    let lab = Lab::unshaped();
    let agent = Agent::start(&lab.client, &config("role = \"backup\"", FAILOVER));
    let conversation = Conversation::open(&lab);
    wait("the spare", || {
        subflows(&lab.client).into_iter().find(|subflow| subflow["dev"] == "c2" && subflow["backup"] == true)
    });
    Stream::run(&conversation, |stream| {
        stream.flows(20_000);
        set_link(&lab.client, 1, false);
        agent.wait_for("close", |line| line["reason"] == "link-down");
        agent.wait_for("regular", |line| line["dev"] == "c2" && line["reason"] == "preferred-failed");
        stream.flows(50_000);
        set_link(&lab.client, 1, true);
        agent.wait_for("regular", |line| line["dev"] == "c1" && line["reason"] == "preferred-returned");
        let spare = |subflow: &Value| subflow["dev"] == "c2" && subflow["backup"] == true;
        wait("the spare to wait again", || subflows(&lab.client).iter().any(spare).then_some(()));
        stream.flows(50_000);
    });
}

#[test]
fn a_path_that_dies_in_silence_is_closed_after_its_timeouts_and_opened_when_it_answers() {
    if skip("a_path_that_dies_in_silence_is_closed_after_its_timeouts_and_opened_when_it_answers") {
        return;
    }
    let lab = Lab::unshaped();
    let agent = Agent::start(&lab.client, &config("role = \"backup\"", FAILOVER));
    let conversation = Conversation::open(&lab);
    subflow_from(&lab.client, "10.77.2.1");
    Stream::run(&conversation, |stream| {
        stream.flows(20_000);
        // The router throws away what comes from the first link: the client's links stay up.
        lab.router.ip("rule add iif r1 blackhole");
        agent.wait_for("close", |line| {
            line["dev"] == "c1" && line["reason"] == "dead" && line["timeouts"] == 2
        });
        agent.wait_for("regular", |line| line["dev"] == "c2" && line["reason"] == "preferred-failed");
        stream.flows(50_000);
        lab.router.ip("rule del iif r1 blackhole");
        agent.wait_for("regular", |line| line["dev"] == "c1" && line["reason"] == "preferred-returned");
        stream.flows(50_000);
    });
}

#[test]
fn an_agent_that_is_killed_leaves_connections_working_and_the_next_one_takes_them_over() {
    if skip("an_agent_that_is_killed_leaves_connections_working_and_the_next_one_takes_them_over") {
        return;
    }
    let lab = Lab::unshaped();
    let config = config("", REESTABLISH);
    let agent = Agent::start(&lab.client, &config);
    let conversation = Conversation::open(&lab);
    subflow_from(&lab.client, "10.77.2.1");
    Stream::run(&conversation, |stream| {
        stream.flows(20_000);
        assert!(!agent.end(Signal::SIGKILL));
        stream.flows(20_000);
        lab.server.run("ss", "-K -tn dst 10.77.2.1");
        stream.flows(20_000);
        assert_eq!(subflows(&lab.client).len(), 1, "nobody opens it");
        let next = Agent::start(&lab.client, &config);
        next.wait_for("managed", |line| line["subflows"] == 1);
        subflow_from(&lab.client, "10.77.2.1");
        stream.flows(20_000);
        assert!(next.end(Signal::SIGTERM));
        stream.flows(20_000);
        assert_eq!(subflows(&lab.client).len(), 2, "its end closes nothing");
    });
    // The second agent found it as the first had left it.
    assert_eq!(pm_type(&lab.client), "1");
}

#[test]
fn connections_of_the_kernels_path_manager_and_accepted_ones_are_left_alone() {
    if skip("connections_of_the_kernels_path_manager_and_accepted_ones_are_left_alone") {
        return;
    }
    let lab = Lab::unshaped();
    let before = Conversation::open(&lab);
    let config = config("", REESTABLISH);
    let agent = Agent::start(&lab.client, &config);
    assert_eq!(pm_type(&lab.client), "1");
    agent.wait_for("left-alone", |line| line["why"] == "managed-by-the-kernel");
    let accepting = Agent::start(&lab.server, &config);
    accepting.wait_for("left-alone", |line| line["why"] == "accepted");
    before.speak();
    assert_eq!(subflows(&lab.client).len(), 1);
    assert!(agent.end(Signal::SIGINT));
    assert_eq!(pm_type(&lab.client), "0", "as it was before");
}

#[test]
fn the_agent_says_why_and_counts() {
    if skip("the_agent_says_why_and_counts") {
        return;
    }
    let lab = Lab::unshaped();
    let client = &lab.client;
    let (code, _, err) = run(client, "path why 0000beef");
    assert_eq!((code, err.trim()), (1, "anabranchd: no agent runs in this network namespace"));
    let agent = Agent::start(client, &config("", REESTABLISH));
    let _conversation = Conversation::open(&lab);
    let token = agent.wait_for("subflow-established", |_| true)["of"].as_str().expect("a token").to_owned();
    let why = done(client, &format!("path why {token}"));
    assert!(why.contains(" managed policy=reestablish "), "{why}");
    assert!(why.contains(" open dev=c2 to=10.78.0.2:5001 reason=open try=1 "), "{why}");
    let (code, _, err) = run(client, "path why 0000beef");
    assert_eq!(code, 1, "{err}");
    let metrics = client.enter(|| {
        let name = UnixAddress::from_abstract_name("anabranch-agent").expect("a name");
        let mut stream = UnixStream::connect_addr(&name).expect("the agent listens");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: agent\r\n\r\n").expect("it is open");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers and closes");
        answer
    });
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n") && metrics.ends_with("# EOF\n"), "{metrics}");
    assert!(metrics.contains("anabranch_agent_connections{state=\"managed\"} 1\n"), "{metrics}");
    assert!(metrics.contains("_decisions_total{action=\"open\",reason=\"open\"} 1\n"), "{metrics}");
    assert!(metrics.contains("_subflows{dev=\"c2\",backup=\"false\"} 1\n"), "{metrics}");
}

#[test]
fn only_one_agent_manages_a_namespace_and_only_if_it_may() {
    if skip("only_one_agent_manages_a_namespace_and_only_if_it_may") {
        return;
    }
    let lab = Lab::unshaped();
    let good = config("", "\"fullmesh\"");
    let path = good.path().display();
    assert_eq!(done(&lab.client, &format!("agent --config {path} --check")), format!("{path} is good\n"));
    let _agent = Agent::start(&lab.client, &good);
    let (code, _, err) = run(&lab.client, &format!("agent --config {path}"));
    assert_eq!((code, err.trim()), (1, "anabranchd: another agent manages this network namespace"));

    let text = fs::read_to_string(good.path()).expect("it is readable").replace("set_pm_type = true", "");
    fs::write(good.path(), text).expect("it can be written");
    let (code, _, err) = run(&lab.server, &format!("agent --config {path}"));
    assert_eq!(code, 1);
    assert!(err.contains("the path manager of this network namespace is `kernel`"), "{err}");
    fs::write(good.path(), "[[interface]]\nname = 1\n").expect("it can be written");
    let (code, _, err) = run(&lab.client, &format!("agent --config {path} --check"));
    assert_eq!(code, 2);
    assert!(err.contains(&format!("{path}:2:8: ")), "{err}");
}
