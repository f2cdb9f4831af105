//! Two namespaces, joined by two pairs of veth devices, and a plan for what runs between them.

use std::{
    fs,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

use anabranch_bed::{
    BedError, Nanos,
    clock::monotonic,
    host::{Namespace, ip},
    plan::{ConnectionPlan, DatagramPlan, Plan},
    traffic::Applications,
};
use anabranch_scenario::model::{Direction, Scenario, Traffic, When};

use crate::common::{self, Bed};

pub const MS: Nanos = 1_000_000;
pub const SECOND: Nanos = 1000 * MS;
pub const PORT: u16 = 5001;

pub struct Lab {
    pub hosts: Vec<Namespace>,
    pub interrupt: Arc<AtomicBool>,
    before: usize,
    // Last, so that the namespaces go while the host is still ours.
    _bed: Bed,
}

impl Lab {
    /// `None`, said on stderr, if this machine cannot be a test bed.
    ///
    /// # Panics
    /// Instead, if `ANABRANCH_REQUIRE` lists `bed`.
    pub fn new(test: &str) -> Option<Self> {
        let bed = common::begin(test)?;
        let before = descriptors();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let id = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let hosts: Vec<_> = ["c", "s"]
            .iter()
            .map(|role| Namespace::new(&format!("abx-traffic-{role}{id}")).expect("the name is free"))
            .collect();
        let (client, server) = (hosts[0].name(), hosts[1].name());
        for pair in 0..2 {
            let name = format!("if{pair}");
            run(&format!("-n {client} link add {name} type veth peer name {name} netns {server}"));
            for (host, number) in [(client, 1), (server, 2)] {
                run(&format!("-n {host} addr add 10.79.{pair}.{number}/24 dev {name}"));
                run(&format!("-n {host} addr add fd79:{pair}::{number}/64 dev {name} nodad"));
                run(&format!("-n {host} link set {name} up"));
            }
        }
        for host in [client, server] {
            run(&format!("-n {host} mptcp limits set subflow 2 add_addr_accepted 2"));
        }
        Some(Self { hosts, interrupt: Arc::new(AtomicBool::new(false)), before, _bed: bed })
    }

    /// Lets the client open a second subflow over the second pair.
    pub fn add_second_subflow(&self) {
        run(&format!("-n {} mptcp endpoint add 10.79.1.1 id 2 dev if1 subflow", self.hosts[0].name()));
        // From there to the server's first address, which is on the other pair.
        run(&format!("-n {} route add default via 10.79.1.2 dev if1 table 2", self.hosts[0].name()));
        run(&format!("-n {} rule add from 10.79.1.1 table 2", self.hosts[0].name()));
        run(&format!("-n {} rule add from 10.79.0.2 to 10.79.1.1 table 2", self.hosts[1].name()));
        run(&format!("-n {} route add default via 10.79.1.1 dev if1 table 2", self.hosts[1].name()));
    }

    /// Bytes that the client has sent over a pair.
    pub fn client_sent_bytes(&self, pair: usize) -> u64 {
        let table = self.read_net(0, "dev");
        let name = format!("if{pair}:");
        let line = table.lines().find_map(|line| line.trim().strip_prefix(&name)).expect("it exists");
        let column = line.split_whitespace().nth(8).expect("ninth column is bytes sent");
        column.parse().expect("it is a number")
    }

    /// Takes the first pair down, or up again.
    pub fn cut(&self, down: bool) {
        run(&format!("-n {} link set if0 {}", self.hosts[0].name(), if down { "down" } else { "up" }));
    }

    pub fn start(&self, plan: &Plan, scenario: &Scenario) -> Result<Applications, BedError> {
        Applications::start(plan, scenario, &self.hosts, monotonic() + 50 * MS, &self.interrupt)
    }

    fn read_net(&self, host: usize, file: &str) -> String {
        let path = format!("/proc/thread-self/net/{file}");
        let text = self.hosts[host].enter(|| fs::read_to_string(path)).expect("it can be entered");
        text.expect("it is readable")
    }

    /// Sockets of TCP, MPTCP and UDP that the namespaces still hold.
    pub fn sockets(&self) -> u64 {
        let of = |host| -> u64 {
            let table = self.read_net(host, "protocols");
            let rows = table.lines().map(|row| row.split_whitespace().collect::<Vec<_>>());
            rows.filter(|row| row[0].contains("TCP") || row[0].contains("UDP"))
                .map(|row| row[2].parse::<u64>().expect("third column is sockets"))
                .sum()
        };
        of(0) + of(1)
    }

    /// Nothing that the applications made is left, in this process or in the namespaces.
    pub fn assert_nothing_left(&self) {
        assert_eq!(threads(), 0, "threads are left");
        assert_eq!(descriptors(), self.before, "descriptors are left");
        wait_for("the namespaces' sockets to go", || self.sockets() == 0);
    }
}

fn run(arguments: &str) {
    ip(&arguments.split(' ').collect::<Vec<_>>()).expect("ip does it");
}

/// Waits until `condition` holds, at most twenty seconds; `what` is for the failure.
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if condition() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("twenty seconds have passed, waiting for {what}");
}

/// Threads of applications in this process.
pub fn threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").expect("it is readable");
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with("bed-")).count()
}

/// Open sockets, pipes and eventfds of this process.
fn descriptors() -> usize {
    let open = fs::read_dir("/proc/self/fd").expect("it is readable");
    let targets = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let kinds = ["socket:", "pipe:", "anon_inode:[eventfd]"];
    targets.filter(|target| kinds.iter().any(|kind| target.to_string_lossy().starts_with(kind))).count()
}

/// A scenario with one connection of `protocol` and these overrides of its traffic.
pub fn scenario(protocol: &str, traffic: Traffic) -> Scenario {
    let mut scenario = load(&format!(
        "[[connection]]\nname = \"meter\"\nfrom = \"C\"\nto = \"S\"\nprotocol = \"{protocol}\"\n\
         congestion = \"reno\"\ntraffic = {{ kind = \"ftp\", start = \"0 s\" }}\n"
    ));
    scenario.connections[0].traffic = traffic;
    scenario
}

/// Two hosts and a link, with these flows.
pub fn load(flows: &str) -> Scenario {
    let text = format!(
        "name = \"traffic\"\nduration = \"10 s\"\n[[node]]\nnames = [\"C\", \"S\"]\n[[link]]\nname = \"wire\"\n\
         between = [\"C\", \"S\"]\nrate = \"100 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"100 packets\"\n{flows}"
    );
    anabranch_scenario::load(&text, "traffic.toml", &[]).expect("a valid scenario").scenario
}

pub fn file(bytes: u64) -> Traffic {
    Traffic::File { start: When::At(0), bytes, direction: Direction::Upload }
}

pub fn ftp(stop: Option<Nanos>) -> Traffic {
    Traffic::Ftp { start: When::At(0), stop, direction: Direction::Upload }
}

/// The plan of [`scenario`] from one address to another.
pub fn plan(from: &str, to: &str) -> Plan {
    let connection = ConnectionPlan {
        client: 0,
        server: 1,
        client_addresses: vec![address(from)],
        server_address: address(to),
        port: PORT,
        paths: Vec::new(),
        joins: Vec::new(),
        open_at: 0,
        congestion: "reno".into(),
        pacing: false,
    };
    Plan { connections: vec![connection], ..common::plan(Vec::new()) }
}

/// The plan of one UDP flow.
pub fn datagram_plan(from: &str, to: &str, payload_bytes: u32, on: Vec<(Nanos, Nanos)>) -> Plan {
    let (from, to) = (address(from), address(to));
    let flow = DatagramPlan { sender: 0, receiver: 1, from, to, port: PORT, payload_bytes, on, path: 0 };
    Plan { datagrams: vec![flow], ..common::plan(Vec::new()) }
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}
