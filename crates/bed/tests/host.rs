//! What a plan needs on the machine: what it does, and that nothing of it stays.

#![allow(missing_docs)]

mod common;

use std::{
    collections::BTreeMap,
    fs,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
};

use anabranch_bed::{
    BedError,
    host::{Lab, Leftover, Namespace, Session, clean, ip, namespace::PREFIX},
    plan::{Endpoint, Host, Role},
};
use common::{Bed, begin, host, namespaces, plan};

/// A host with all that a plan can ask for.
fn rich_host(name: &str, subnet: u8) -> Host {
    let (first, second) = (format!("10.9.{subnet}.1"), format!("10.9.{subnet}.2"));
    let third = format!("fd00:9::{subnet}");
    let mut host = host(name, &[&[&first], &[&second, &third]]);
    host.interfaces[0].addresses[0].route_options = vec!["initcwnd 4".to_owned(), "rto_min 300ms".to_owned()];
    host.interfaces[1].addresses[0].endpoint =
        Some(Endpoint { id: 7, backup: true, role: Role::Subflow, present: true });
    host.interfaces[1].addresses[1].endpoint =
        Some(Endpoint { id: 8, backup: false, role: Role::Subflow, present: true });
    host.sysctls = [("net.ipv4.tcp_rmem", "4096 65536 262144"), ("net.ipv4.tcp_no_metrics_save", "1")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
    host.mptcp_limits = Some((5, 3));
    host
}

fn sysctl(namespace: &Namespace, path: &str) -> String {
    let read = || fs::read_to_string(Path::new("/proc/sys").join(path));
    namespace.enter(read).unwrap().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What the network of this host looks like: one entry per sysctl and per kind of object.
fn picture_of_the_host() -> BTreeMap<String, String> {
    let queries = [
        "-details address",
        "rule",
        "-6 rule",
        "route show table all",
        "-6 route show table all",
        "mptcp endpoint",
        "mptcp limits",
        "netns",
    ];
    let mut picture = BTreeMap::new();
    for query in queries {
        let text = ip(&query.split(' ').collect::<Vec<_>>()).unwrap();
        // The seconds that leased addresses and announced routes are still valid.
        let mut words: Vec<&str> = text.split_whitespace().collect();
        for at in 1..words.len() {
            if ["valid_lft", "preferred_lft", "expires"].contains(&words[at - 1]) {
                words[at] = "...";
            }
        }
        picture.insert(format!("ip {query}"), words.join(" "));
    }
    add_sysctls(Path::new("/proc/sys/net"), &mut picture);
    picture
}

/// What others than the bed change at any time.
const VOLATILE: [&str; 3] = [
    "/proc/sys/net/netfilter/nf_conntrack_count",
    "/proc/sys/net/ipv4/tcp_available_congestion_control",
    "/proc/sys/net/ipv4/tcp_allowed_congestion_control",
];

fn add_sysctls(folder: &Path, picture: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        if path.is_dir() {
            add_sysctls(&path, picture);
        } else if !VOLATILE.iter().any(|&volatile| path == Path::new(volatile)) {
            // Some can only be written, and some have no value.
            if let Ok(value) = fs::read(&path) {
                picture.insert(path.display().to_string(), String::from_utf8_lossy(&value).into_owned());
            }
        }
    }
}

/// Numbers of the processes that this one has started and not waited for.
fn children() -> Vec<String> {
    let me = std::process::id().to_string();
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
    let processes = processes.filter_map(|name| name.into_string().ok());
    let is_child = |pid: &String| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat.rfind(')').and_then(|end| stat[end + 1..].split_whitespace().nth(1));
        parent == Some(&me)
    };
    processes.filter(is_child).collect()
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn ten_labs_in_a_row_leave_the_host_as_it_was() {
    let Some(bed) = begin("ten_labs_in_a_row_leave_the_host_as_it_was") else { return };
    let plan = plan(vec![rich_host("a", 1), rich_host("b.c-d_e", 2)]);
    let (before, open) = (picture_of_the_host(), descriptors());
    assert!(before.len() > 100, "there are sysctls to compare");
    for _ in 0..10 {
        let lab = Lab::build(&plan, &bed.session).unwrap();
        let devices = lab.devices().unwrap();
        assert_eq!(devices.len(), 4);
        assert_eq!(namespaces(), ["anabranch-a", "anabranch-b.c-d_e"]);
        let mut during = picture_of_the_host();
        let names = during.insert("ip netns".to_owned(), before["ip netns"].clone()).unwrap();
        assert!(names.contains("anabranch-a"), "{names}");
        assert!(
            during == before,
            "the host is changed while the lab is there: {:?}",
            changed(&before, &during)
        );
    }
    let after = picture_of_the_host();
    assert!(after == before, "the host is changed: {:?}", changed(&before, &after));
    assert_eq!(descriptors(), open);
    assert_eq!(children(), Vec::<String>::new());
    let Bed { session, turn: _turn } = bed;
    drop(session);
    assert!(!Path::new("/run/anabranch").exists(), "lock and ledger are gone");
}

fn changed<'a>(
    before: &'a BTreeMap<String, String>,
    after: &'a BTreeMap<String, String>,
) -> Vec<(&'a String, Option<&'a String>, Option<&'a String>)> {
    let keys = before.keys().chain(after.keys().filter(|key| !before.contains_key(*key)));
    keys.map(|key| (key, before.get(key), after.get(key))).filter(|(_, a, b)| a != b).collect()
}

#[test]
fn a_host_has_what_the_plan_says() {
    let Some(bed) = begin("a_host_has_what_the_plan_says") else { return };
    let lab = Lab::build(&plan(vec![rich_host("rich", 3)]), &bed.session).unwrap();
    let namespace = &lab.hosts[0];
    let said = |arguments: &str| {
        let all: Vec<_> = ["-n", namespace.name()].into_iter().chain(arguments.split(' ')).collect();
        ip(&all).unwrap()
    };
    let devices = said("-details link show");
    for part in ["if0:", "alias link0", "if1:", "alias link1", "mtu 1500", "qdisc noqueue"] {
        assert!(devices.contains(part), "{part} in {devices}");
    }
    let addresses = said("address show dev if1");
    assert!(
        addresses.contains("inet 10.9.3.2/32") && addresses.contains("inet6 fd00:9::3/128"),
        "{addresses}"
    );
    assert!(!addresses.contains("fe80"), "no link-local address: {addresses}");
    let route = said("route show table 1001");
    assert!(route.contains("default dev if0") && route.contains("initcwnd 4"), "{route}");
    assert!(route.contains("rto_min lock 300ms"), "{route}");
    assert!(said("rule").contains("from 10.9.3.1 lookup 1001"));
    assert!(said("-6 rule").contains("from fd00:9::3 lookup 1003"));
    let limits = said("mptcp limits");
    assert!(limits.contains("add_addr_accepted 3") && limits.contains("subflows 5"), "{limits}");
    let endpoints = said("mptcp endpoint");
    assert!(endpoints.contains("10.9.3.2 id 7 subflow backup dev if1"), "{endpoints}");
    assert!(endpoints.contains("fd00:9::3 id 8 subflow dev if1"), "{endpoints}");
    assert_eq!(sysctl(namespace, "net/ipv4/tcp_rmem"), "4096 65536 262144");
    for (path, value) in [
        ("net/ipv4/conf/all/rp_filter", "0"),
        ("net/ipv4/conf/if1/rp_filter", "0"),
        ("net/ipv6/conf/if0/disable_ipv6", "0"),
        ("net/ipv6/conf/if1/disable_ipv6", "0"),
        ("net/ipv6/conf/if1/accept_ra", "0"),
        ("net/ipv6/conf/if1/autoconf", "0"),
        ("net/ipv6/conf/if1/router_solicitations", "0"),
    ] {
        assert_eq!(sysctl(namespace, path), value, "{path}");
    }
}

/// Builds a plan that cannot be, and checks that nothing of it is left.
fn refused(session: &Session, hosts: Vec<Host>) -> BedError {
    let open = descriptors();
    let error = Lab::build(&plan(hosts), session).expect_err("it cannot be built");
    assert_eq!(namespaces(), Vec::<String>::new());
    assert!(!Path::new("/run/anabranch/bed.json").exists(), "the ledger is empty");
    assert_eq!(descriptors(), open);
    error
}

#[test]
fn sysctls_that_are_not_of_a_namespace_are_refused() {
    let Some(bed) = begin("sysctls_that_are_not_of_a_namespace_are_refused") else { return };
    for (name, value, part) in [
        ("kernel.hostname", "x", "is not one of network namespaces"),
        ("net.core.netdev_max_backlog", "1000", "belongs to the whole host"),
        ("net.ipv4.tcp_mem", "1 2 3", "belongs to the whole host"),
        ("net.ipv4.tcp_ehash_entries", "1", "belongs to the whole host"),
        ("net.ipv4.tcp_rmem", "many", "the kernel refuses the value \"many\""),
    ] {
        // The first host is complete when the second fails.
        let mut second = host("second", &[&["10.9.0.2"]]);
        second.sysctls = vec![(name.to_owned(), value.to_owned())];
        let error = refused(&bed.session, vec![host("first", &[&["10.9.0.1"]]), second]);
        assert!(matches!(&error, BedError::Input(text) if text.contains(part)), "{name}: {error}");
    }
    let mut host = host("first", &[&["10.9.0.1"]]);
    host.sysctls = vec![("net.ipv4.tcp_from_the_future".to_owned(), "1".to_owned())];
    let error = refused(&bed.session, vec![host]);
    let expected = "this kernel has no sysctl net.ipv4.tcp_from_the_future";
    assert!(matches!(&error, BedError::Unavailable(text) if text == expected), "{error}");
}

#[test]
fn a_lab_that_fails_half_way_says_why_and_leaves_nothing() {
    let Some(bed) = begin("a_lab_that_fails_half_way_says_why_and_leaves_nothing") else { return };
    let mut second = host("second", &[&["10.9.0.2"]]);
    second.interfaces[0].addresses[0].route_options = vec!["initcwnd lots".to_owned()];
    let error = refused(&bed.session, vec![host("first", &[&["10.9.0.1"]]), second]).to_string();
    assert!(error.contains("anabranch-second") && error.contains("\"lots\" is wrong"), "{error}");

    let long = "n".repeat(246);
    let error = refused(&bed.session, vec![host("first", &[]), host(&long, &[])]);
    assert!(matches!(&error, BedError::Input(text) if text.contains("246 bytes")), "{error}");
    drop(Lab::build(&plan(vec![host(&long[1..], &[])]), &bed.session).expect("245 bytes are not too many"));
}

#[test]
fn a_namespace_that_exists_is_neither_used_nor_removed() {
    let Some(bed) = begin("a_namespace_that_exists_is_neither_used_nor_removed") else { return };
    let _mine = Namespace::new("taken").unwrap();
    let hosts = vec![host("free", &[&["10.9.0.1"]]), host("taken", &[&["10.9.0.2"]])];
    let error = Lab::build(&plan(hosts), &bed.session).unwrap_err().to_string();
    assert!(error.contains("anabranch-taken exists already"), "{error}");
    assert_eq!(namespaces(), ["anabranch-taken"]);
}

#[test]
fn a_hundred_hosts_can_be_built() {
    let Some(bed) = begin("a_hundred_hosts_can_be_built") else { return };
    let one = |number: usize| host(&format!("meter{number}"), &[&[&format!("10.9.1.{number}")]]);
    let lab = Lab::build(&plan((1..=100).map(one).collect()), &bed.session).unwrap();
    assert_eq!((lab.hosts.len(), namespaces().len()), (100, 100));
    assert_eq!(lab.devices().unwrap().len(), 100);
    drop(lab);
    assert_eq!(namespaces(), Vec::<String>::new());
}

#[test]
fn packets_that_the_emulator_does_not_read_in_time_are_reported() {
    let Some(bed) = begin("packets_that_the_emulator_does_not_read_in_time_are_reported") else { return };
    let hosts = vec![host("quiet", &[&["10.9.0.9"]]), host("flood", &[&["10.9.0.1"], &["10.9.0.2"]])];
    let lab = Lab::build(&plan(hosts), &bed.session).unwrap();
    assert_eq!(lab.device_drops().unwrap(), []);
    let socket = lab.hosts[1].enter(|| std::net::UdpSocket::bind("10.9.0.2:0")).unwrap().unwrap();
    // The queue has a place for 20,000 packets, and nobody reads.
    let to = SocketAddr::new(IpAddr::from([10, 9, 0, 9]), 9);
    let sent = (0..20_100).filter(|_| socket.send_to(b"x", to).is_ok()).count();
    let drops = lab.device_drops().unwrap();
    assert_eq!(drops.len(), 1);
    assert_eq!((drops[0].host, drops[0].interface.as_str(), drops[0].link.as_str()), (1, "if1", "link1"));
    assert_eq!((drops[0].from_host, drops[0].to_host), (sent as u64 - 20_000, 0));
}

#[test]
fn a_second_session_is_told_who_has_the_host() {
    let Some(_bed) = begin("a_second_session_is_told_who_has_the_host") else { return };
    let holder = format!("(process {}: host-", std::process::id());
    for error in [Session::begin().unwrap_err(), clean().unwrap_err()] {
        let BedError::Busy(text) = error else { panic!("{error}") };
        assert!(text.starts_with("another bed runs on this host ") && text.contains(&holder), "{text}");
    }
}

#[test]
fn what_is_noted_goes_with_the_last_clone_of_the_session() {
    let Some(bed) = begin("what_is_noted_goes_with_the_last_clone_of_the_session") else { return };
    let folder = tempfile::tempdir().unwrap();
    let staging = folder.path().join(".tmp-1-2-3");
    fs::create_dir(&staging).unwrap();
    bed.session.note(Leftover::Folder(staging.clone())).unwrap();
    let namespace = format!("{PREFIX}noted");
    bed.session.note(Leftover::Namespace(namespace.clone())).unwrap();
    ip(&["netns", "add", &namespace]).unwrap();
    let clone = bed.session.clone();
    let Bed { session, turn: _turn } = bed;
    drop(session);
    assert!(staging.exists());
    drop(clone);
    assert!(!staging.exists());
    assert_eq!(namespaces(), Vec::<String>::new());
}

#[test]
fn a_namespace_that_no_ledger_knows_is_cleaned_by_its_prefix_and_others_are_not() {
    let Some(bed) = begin("a_namespace_that_no_ledger_knows_is_cleaned_by_its_prefix_and_others_are_not")
    else {
        return;
    };
    let Bed { session, turn: _turn } = bed;
    drop(session);
    let others = format!("abx-host-{}", std::process::id());
    ip(&["netns", "add", &others]).unwrap();
    ip(&["netns", "add", "anabranch-lost"]).unwrap();
    let removed = clean();
    ip(&["netns", "delete", &others]).expect("it is still there");
    assert_eq!(removed.unwrap(), ["network namespace anabranch-lost"]);
    assert_eq!(clean().unwrap(), Vec::<String>::new());
}
