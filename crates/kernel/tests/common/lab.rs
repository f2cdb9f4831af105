//! Network namespaces for one test: a client with two links, a router that limits their rate towards the
//! client, and a server with one link.
//!
//! ```text
//! client 10.77.1.1 ── 10.77.1.254 router 10.78.0.254 ── 10.78.0.2 server
//!        10.77.2.1 ── 10.77.2.254
//! ```
//! A download crosses two bottlenecks, one per client address. Everything goes when the value is dropped.

#[path = "random.rs"]
pub mod random;

use std::{
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

use nix::sched::{CloneFlags, setns};

pub const SERVER: [u8; 4] = [10, 78, 0, 2];
pub const LINKS: usize = 2;

pub struct Lab {
    pub client: Namespace,
    pub server: Namespace,
    pub router: Namespace,
}

impl Lab {
    /// Makes the namespaces, with a token bucket of `mbit` Mbit/s and 40 packets on either way to the client.
    pub fn new(mbit: u32) -> Self {
        let lab = Self::unshaped();
        for link in 1..=LINKS {
            lab.router
                .run("tc", &format!("qdisc add dev r{link} root tbf rate {mbit}mbit burst 8kb limit 60000"));
        }
        lab
    }

    /// Makes the namespaces, with links as fast as the processor.
    pub fn unshaped() -> Self {
        let lab =
            Self { client: Namespace::new("c"), server: Namespace::new("s"), router: Namespace::new("r") };
        let (client, server, router) = (&lab.client, &lab.server, &lab.router);
        for link in 1..=LINKS {
            pair(client, &format!("c{link}"), router, &format!("r{link}"));
            client.ip(&format!("addr add 10.77.{link}.1/24 dev c{link}"));
            router.ip(&format!("addr add 10.77.{link}.254/24 dev r{link}"));
            client.ip(&format!("route add default via 10.77.{link}.254 dev c{link} table {link}"));
            client.ip(&format!("rule add from 10.77.{link}.0/24 table {link}"));
        }
        client.ip("route add default via 10.77.1.254 dev c1");
        pair(server, "s0", router, "r0");
        server.ip("addr add 10.78.0.2/24 dev s0");
        router.ip("addr add 10.78.0.254/24 dev r0");
        server.ip("route add default via 10.78.0.254 dev s0");
        router.sysctl("net.ipv4.ip_forward=1");
        for end in [client, server] {
            end.sysctl("net.mptcp.enabled=1");
            end.ip("mptcp limits set subflow 8 add_addr_accepted 0");
        }
        lab
    }

    /// Has the client open a second subflow, from its second link.
    pub fn add_second_subflow(&self) {
        self.client.ip("mptcp endpoint add 10.77.2.1 id 2 dev c2 subflow");
    }

    /// Waits until the client has joined a second subflow, for ten seconds at most.
    pub fn wait_for_second_subflow(&self) {
        for _ in 0..500 {
            if self.client.mib("MPTcpExt", "MPJoinSynAckRx") > 0 {
                return;
            }
            thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("no second subflow within ten seconds");
    }

    /// Has the client open eight further subflows, from addresses on its second link.
    pub fn add_eight_subflows(&self) {
        for number in 1..=8 {
            if number > 1 {
                self.client.ip(&format!("addr add 10.77.2.{number}/24 dev c2"));
            }
            self.client.ip(&format!("mptcp endpoint add 10.77.2.{number} dev c2 subflow"));
        }
    }

    /// Closes the second subflow.
    pub fn remove_second_subflow(&self) {
        self.client.ip("mptcp endpoint delete id 2");
    }

    /// Bytes that the client has received on each link.
    pub fn received_bytes(&self) -> [u64; LINKS] {
        let table = self.client.read_net("dev");
        std::array::from_fn(|link| {
            let name = format!("c{}:", link + 1);
            let line =
                table.lines().find_map(|line| line.trim().strip_prefix(&name)).expect("the link exists");
            line.split_whitespace()
                .next()
                .and_then(|bytes| bytes.parse().ok())
                .expect("first column is bytes")
        })
    }
}

fn pair(a: &Namespace, a_name: &str, b: &Namespace, b_name: &str) {
    a.ip(&format!("link add {a_name} type veth peer name {b_name} netns {}", b.name));
    a.ip(&format!("link set {a_name} up"));
    b.ip(&format!("link set {b_name} up"));
}

/// A named network namespace, deleted when dropped.
pub struct Namespace {
    pub name: String,
}

impl Namespace {
    fn new(role: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let suffix = random::Random(u64::from(std::process::id()) << 32 | u64::from(count)).word() as u32;
        let name = format!("ab-{role}-{suffix:08x}");
        command("ip", &format!("netns add {name}"));
        let namespace = Self { name };
        namespace.ip("link set lo up");
        namespace
    }

    pub fn ip(&self, arguments: &str) {
        command("ip", &format!("-n {} {arguments}", self.name));
    }

    pub fn run(&self, program: &str, arguments: &str) -> String {
        command("ip", &format!("netns exec {} {program} {arguments}", self.name))
    }

    fn sysctl(&self, assignment: &str) {
        self.run("sysctl", &format!("-qw {assignment}"));
    }

    /// Runs `work` in a thread that has moved into the namespace. What it opens stays there.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let file = std::fs::File::open(format!("/run/netns/{}", self.name)).expect("the namespace exists");
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                setns(&file, CloneFlags::CLONE_NEWNET).expect("root may enter a namespace");
                work()
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// A file of the namespace's `/proc/net`.
    pub fn read_net(&self, file: &str) -> String {
        self.enter(|| {
            std::fs::read_to_string(format!("/proc/thread-self/net/{file}")).expect("it is readable")
        })
    }

    /// A counter of `/proc/net/netstat`, such as `MPTcpExt: MPJoinSynAckRx`.
    pub fn mib(&self, group: &str, counter: &str) -> u64 {
        let text = self.read_net("netstat");
        let mut rows = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(": "));
        let names = rows.next().expect("the group has a line of names");
        let values = rows.next().expect("the group has a line of values");
        let value = names.split(' ').zip(values.split(' ')).find(|(name, _)| *name == counter);
        value.expect("the counter exists").1.parse().expect("it is a number")
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // A test that has failed already must not abort here; one that has not checks afterwards.
        let _ = Command::new("ip").args(["netns", "delete", &self.name]).status();
    }
}

/// Runs a program to its end and returns its output.
pub fn command(program: &str, arguments: &str) -> String {
    let output = Command::new(program).args(arguments.split(' ')).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
