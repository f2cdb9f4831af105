//! How long data stand still when a path dies: with the agent, and with the kernel's own path manager. It measures, so it is not
//! among the tests of every day:
//!
//! `sudo -E env PATH="$PATH" cargo test -p anabranch-device --test agent_handover -- --ignored --nocapture`

mod live;

use std::{
    io::{Read as _, Write as _},
    net::Shutdown,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use live::{
    Conversation,
    agent::{Agent, config},
    common::{lab::Lab, skip},
    subflows, wait,
};

const FAILOVER: &str = r#"{ name = "failover", dead_after = 2 }"#;

/// How a path dies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Death {
    /// The interface goes down, and the kernel says so.
    Link,
    /// The router throws away what comes over it.
    Silent,
}

/// When data came last, and the longest time that they did not since the path died.
struct Seen {
    last: Instant,
    gap: Duration,
    packets: u64,
}

#[allow(clippy::disallowed_methods, reason = "it measures real time")]
fn now() -> Instant {
    Instant::now()
}

/// Milliseconds that data stood still at the server: 1 kB every 5 ms before, over the first link, with the second as a spare.
fn handover(with_agent: bool, death: Death) -> u128 {
    let lab = Lab::unshaped();
    let file = config("role = \"backup\"", FAILOVER);
    let agent = with_agent.then(|| Agent::start(&lab.client, &file));
    if agent.is_none() {
        lab.client.ip("mptcp endpoint add 10.77.2.1 id 2 dev c2 subflow backup");
    }
    let conversation = Conversation::open(&lab);
    wait("the spare", || subflows(&lab.client).iter().any(|subflow| subflow["dev"] == "c2").then_some(()));
    let seen = Mutex::new(Seen { last: now(), gap: Duration::ZERO, packets: 0 });
    thread::scope(|scope| {
        scope.spawn(|| {
            while (&conversation.client).write_all(&[7; 1000]).is_ok() {
                thread::sleep(Duration::from_millis(5));
            }
        });
        scope.spawn(|| {
            let mut buffer = [0; 1000];
            while (&conversation.server).read(&mut buffer).is_ok_and(|bytes| bytes > 0) {
                let mut seen = seen.lock().expect("nobody panics");
                let at = now();
                (seen.gap, seen.last, seen.packets) = (seen.gap.max(at - seen.last), at, seen.packets + 1);
            }
        });
        let packets = || seen.lock().expect("nobody panics").packets;
        wait("data", || (packets() > 20).then_some(()));
        seen.lock().expect("nobody panics").gap = Duration::ZERO;
        match death {
            Death::Link => lab.client.ip("link set c1 down"),
            Death::Silent => lab.router.ip("rule add iif r1 blackhole"),
        }
        // Until data have stood still, or have plainly gone on over the other link.
        thread::sleep(Duration::from_millis(50));
        let before = packets();
        wait("data over the spare", || (packets() > before + 40).then_some(()));
        conversation.client.shutdown(Shutdown::Both).expect("it is open");
        conversation.server.shutdown(Shutdown::Both).expect("it is open");
    });
    seen.into_inner().expect("nobody panics").gap.as_millis()
}

#[test]
#[ignore = "it measures, for docs/agent.md"]
fn data_go_on_over_the_spare() {
    if skip("data_go_on_over_the_spare") {
        return;
    }
    let repetitions =
        std::env::var("ANABRANCH_HANDOVERS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    for death in [Death::Link, Death::Silent] {
        for with_agent in [true, false] {
            let mut gaps: Vec<u128> = (0..repetitions).map(|_| handover(with_agent, death)).collect();
            gaps.sort_unstable();
            let who = if with_agent { "agent" } else { "kernel" };
            let line = format!(
                "{death:?} {who}: median {} ms, worst {} ms of {repetitions}: {gaps:?}\n",
                gaps[gaps.len() / 2],
                gaps[gaps.len() - 1]
            );
            std::io::stdout().write_all(line.as_bytes()).expect("stdout is open");
        }
    }
}
