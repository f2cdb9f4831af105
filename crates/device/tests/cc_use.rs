//! Selection for namespaces, control groups and routes, on the running kernel.

mod common;

use std::{
    fs,
    path::{Path, PathBuf},
};

use common::{
    Daemon, Said,
    kernel::{
        lab::{Lab, Namespace},
        skip_for,
        transfer::{Connection, End, wait_for},
    },
    names, said, skip,
};
use socket2::Protocol;

const KERNEL_RENO: End = End { protocol: Protocol::MPTCP, congestion: "reno" };
const TCP: End = End { protocol: Protocol::TCP, congestion: "reno" };

/// The congestion control of new sockets in a namespace.
fn default_of(namespace: &Namespace) -> String {
    let default = "/proc/sys/net/ipv4/tcp_congestion_control";
    namespace.enter(|| fs::read_to_string(default).expect("it is readable")).trim().to_owned()
}

/// Established sockets and subflows on the data port that use a congestion control.
fn sockets_with(namespace: &Namespace, congestion: &str) -> usize {
    let listing = namespace.run("ss", "-tinHO state established");
    listing.lines().filter(|line| line.contains(":5001") && line.contains(&format!(" {congestion} "))).count()
}

/// Runs the command inside of a namespace.
fn run_in(daemon: &Daemon, namespace: &Namespace, arguments: &str) -> Said {
    namespace.enter(|| said(daemon.command(arguments).output().expect("the command starts")))
}

#[test]
fn a_namespace_gets_the_algorithm_as_default_and_gets_its_own_back() {
    if skip("a_namespace_gets_the_algorithm_as_default_and_gets_its_own_back") {
        return;
    }
    let daemon = Daemon::new();
    let lab = Lab::new(20);
    let server = &lab.server;
    let before = default_of(server);
    // Outside of the first namespace only what is allowed there can be chosen again.
    let allowed = fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").expect("readable");
    let back = if allowed.split_whitespace().any(|name| name == before) { before.as_str() } else { "reno" };
    let absent = daemon.run(&format!("use lia --netns {}", server.name));
    assert_eq!(absent.code, Some(1), "{absent:?}");
    assert!(absent.err.contains("`anabranchd cc load lia`"), "{absent:?}");

    daemon.done("load lia reno");
    let chosen = daemon.done(&format!("use lia --netns {}", server.name));
    let expected = format!("new sockets of network namespace {} use ab_lia, before: {before}\n", server.name);
    assert!(chosen.starts_with(&expected), "{chosen}");
    assert_eq!(chosen.lines().count() == 1, back == before, "{chosen}");
    assert_eq!((default_of(server).as_str(), default_of(&lab.client) == "ab_lia"), ("ab_lia", false));
    daemon.done(&format!("use reno --netns /run/netns/{}", server.name));
    assert_eq!(default_of(server), "ab_reno");

    // As long as it is a default, it is in use.
    let refused = daemon.run("unload reno");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains(&format!("ab_reno: the default of network namespace {}", server.name)));

    daemon.done(&format!("use --off --netns {}", server.name));
    assert_eq!(default_of(server), back, "what was before the first of our own");
    let again = daemon.run(&format!("use --off --netns {}", server.name));
    assert!(again.code == Some(1) && again.err.contains(", none of ours"), "{again:?}");
    assert_eq!(daemon.done("unload reno"), "unloaded ab_reno\n");

    // Taken away by force, it is no default either.
    daemon.done(&format!("use lia --netns {}", server.name));
    let forced = daemon.done("unload lia --force");
    assert!(
        forced.contains(&format!("the default of network namespace {} is {back} now", server.name)),
        "{forced}"
    );
    assert_eq!(default_of(server), back);
    assert_eq!(names(&daemon.folder), Vec::<String>::new());

    // From within it has no name.
    daemon.done("load lia");
    let within = run_in(&daemon, server, "use lia --netns this");
    assert_eq!(within.code, Some(0), "{within:?}");
    assert!(within.out.contains("new sockets of this network namespace use ab_lia"), "{within:?}");
    assert_eq!(default_of(server), "ab_lia");
    assert_eq!(run_in(&daemon, server, "use --off --netns this").code, Some(0));
    assert_eq!(default_of(server), back);

    let unknown = daemon.run("use --off --netns ab-no-such");
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.err.contains("no network namespace `ab-no-such`"), "{unknown:?}");
}

/// A control group that the test's process is in until the value is dropped.
struct ControlGroup {
    path: PathBuf,
    before: PathBuf,
}

impl ControlGroup {
    /// Nothing, if control groups of version 2 are not mounted.
    fn join() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("it is readable");
        let mount = mounts.lines().find_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let place = fields.next()?;
            (fields.next()? == "cgroup2").then(|| PathBuf::from(place))
        })?;
        let own = fs::read_to_string("/proc/self/cgroup").expect("it is readable");
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let group = Self {
            path: mount.join(format!("anabranch-test-{}", std::process::id())),
            before: mount.join(own),
        };
        fs::create_dir(&group.path).expect("root may make control groups");
        group.enter(&group.path);
        Some(group)
    }

    fn enter(&self, path: &Path) {
        fs::write(path.join("cgroup.procs"), std::process::id().to_string()).expect("root may move itself");
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        self.enter(&self.before);
        let _ = fs::remove_dir(&self.path);
    }
}

#[test]
fn a_control_group_chooses_for_every_subflow_that_its_processes_open_or_accept() {
    let name = "a_control_group_chooses_for_every_subflow_that_its_processes_open_or_accept";
    if skip(name) {
        return;
    }
    let daemon = Daemon::new();
    let Some(group) = ControlGroup::join() else {
        assert!(skip_for(name, "no control groups of version 2", "mount -t cgroup2 cgroup2 /sys/fs/cgroup"));
        return;
    };
    daemon.done("load lia reno");
    let path = group.path.display();
    daemon.done(&format!("use reno --cgroup {path}"));
    daemon.done(&format!("use lia --cgroup {path}"));
    let status = daemon.done("status");
    assert!(status.contains(&format!("new sockets of control group {path} use ab_lia\n")), "{status}");
    assert!(!status.contains("use ab_reno\n"), "the later choice replaces the earlier: {status}");

    let lab = Lab::new(20);
    lab.add_second_subflow();
    let connection = Connection::open(&lab, KERNEL_RENO, KERNEL_RENO);
    wait_for("two subflows with ab_lia at either end", || {
        sockets_with(&lab.server, "ab_lia") == 2 && sockets_with(&lab.client, "ab_lia") == 2
    });
    connection.transfer(1_000_000, 100_000, || ());
    drop(connection);
    assert!(common::count(&daemon.loaded("lia"), "coupled") > 0);

    daemon.done(&format!("use --off --cgroup {path}"));
    let again = daemon.run(&format!("use --off --cgroup {path}"));
    assert_eq!(again.code, Some(1), "{again:?}");
    let lab = Lab::new(20);
    let connection = Connection::open(&lab, KERNEL_RENO, KERNEL_RENO);
    assert_eq!((sockets_with(&lab.server, "reno"), sockets_with(&lab.server, "ab_lia")), (1, 0));
    drop(connection);

    let wrong = daemon.run("use lia --cgroup /tmp");
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("/tmp is no control group"), "{wrong:?}");
}

#[test]
fn a_route_chooses_for_its_connections_and_is_otherwise_as_before() {
    if skip("a_route_chooses_for_its_connections_and_is_otherwise_as_before") {
        return;
    }
    let daemon = Daemon::new();
    daemon.done("load reno");
    let lab = Lab::new(20);
    let (client, server) = (&lab.client, &lab.server);
    client.ip("route add 10.79.0.0/16 via 10.77.1.254 metric 7 mtu 1400");
    client.ip("route add 10.80.0.0/16 nexthop via 10.77.1.254 weight 2 nexthop via 10.77.2.254");
    client.ip("-6 route add 2001:db8:1::/64 dev c1 metric 300");
    let routes = || -> Vec<String> {
        let shown =
            ["-4", "-6"].map(|family| client.run("ip", &format!("{family} route show table all"))).concat();
        shown.split_whitespace().map(str::to_owned).collect()
    };
    let before = routes();
    let prefixes = "default 10.79.0.0/16 10.80.0.0/16 2001:db8:1::/64";
    let done = run_in(&daemon, client, &format!("use reno --route {prefixes}"));
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("the route 10.79.0.0/16 in table 254 has ab_reno\n"), "{done:?}");
    let with = routes().join(" ");
    let congctl = " congctl ab_reno";
    // The default route is in the main table and in one table per link.
    assert_eq!(with.matches(congctl).count(), 6, "{with}");
    assert_eq!(with.replace(congctl, ""), before.join(" "));
    assert!(with.contains("mtu 1400 congctl ab_reno"), "{with}");

    let connection = Connection::open(&lab, TCP, TCP);
    assert_eq!((sockets_with(client, "ab_reno"), sockets_with(server, "ab_reno")), (1, 0));
    connection.transfer(1_000_000, 100_000, || ());
    drop(connection);

    let missing = run_in(&daemon, client, "use reno --route default 10.99.0.0/16");
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert!(missing.err.contains("no route to exactly 10.99.0.0/16"), "{missing:?}");

    let undone = run_in(&daemon, client, &format!("use --off --route {prefixes}"));
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert_eq!(routes(), before);
    let wrong = daemon.run("use reno --route 10.0.0.0/40");
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}
