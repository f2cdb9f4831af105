//! Endpoints and limits, in conversation with the kernel.

mod common;

use std::net::IpAddr;

use anabranch_netlink::mptcp::{Endpoint, EndpointFlags, Event, Events, Limits, PathManager};
use common::{lab::Lab, skip, until};

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn interface(lab: &Lab, name: &str) -> u32 {
    lab.client.enter(|| nix::net::if_::if_nametoindex(name).expect("the link is there"))
}

#[test]
fn endpoints_are_listed_as_they_were_added() {
    if skip("endpoints_are_listed_as_they_were_added") {
        return;
    }
    let lab = Lab::unshaped();
    let mut manager = lab.client.enter(|| PathManager::open().expect("the kernel has Multipath TCP"));
    assert_eq!(manager.endpoints().unwrap(), []);

    let flags = EndpointFlags::SUBFLOW | EndpointFlags::BACKUP;
    let wifi =
        Endpoint { id: 7, interface: Some(interface(&lab, "c2")), flags, ..Endpoint::new(ip("10.77.2.1")) };
    manager.add_endpoint(&wifi).unwrap();
    let announced =
        Endpoint { port: Some(4000), flags: EndpointFlags::SIGNAL, ..Endpoint::new(ip("10.77.1.1")) };
    manager.add_endpoint(&announced).unwrap();
    let v6 = Endpoint { id: 9, flags: EndpointFlags::FULLMESH, ..Endpoint::new(ip("fd00::1")) };
    manager.add_endpoint(&v6).unwrap();

    let mut listed = manager.endpoints().unwrap();
    listed.sort_by_key(|endpoint| endpoint.address);
    let given = listed[0].id;
    assert!(given != 0 && given != 7 && given != 9, "the kernel gives an identifier that is free: {given}");
    assert_eq!(listed, [Endpoint { id: given, ..announced }, wifi, v6]);
    assert_eq!(manager.endpoint(7).unwrap(), wifi);
    // ip(8) sees the same.
    let shown = lab.client.run("ip", "mptcp endpoint show id 7");
    assert_eq!(
        shown.split_whitespace().collect::<Vec<_>>().join(" "),
        "10.77.2.1 id 7 subflow backup dev c2"
    );

    manager.set_endpoint_flags(7, EndpointFlags::FULLMESH).unwrap();
    let changed = EndpointFlags::SUBFLOW | EndpointFlags::FULLMESH;
    assert_eq!(manager.endpoint(7).unwrap().flags, changed, "the others stay");
    manager.delete_endpoint(7).unwrap();
    assert_eq!(manager.endpoints().unwrap().len(), 2);
    manager.flush_endpoints().unwrap();
    assert_eq!(manager.endpoints().unwrap(), []);
}

#[test]
fn limits_are_read_as_they_were_set() {
    if skip("limits_are_read_as_they_were_set") {
        return;
    }
    let lab = Lab::unshaped();
    let mut manager = lab.client.enter(|| PathManager::open().unwrap());
    assert_eq!(manager.limits().unwrap(), Limits { add_addr_accepted: 0, subflows: 8 }, "of the lab");
    let limits = Limits { add_addr_accepted: 3, subflows: 5 };
    manager.set_limits(limits).unwrap();
    assert_eq!(manager.limits().unwrap(), limits);
    let shown = lab.client.run("ip", "mptcp limits show");
    assert_eq!(shown.trim(), "add_addr_accepted 3 subflows 5");
}

#[test]
fn a_refusal_says_what_was_asked_and_why_not() {
    if skip("a_refusal_says_what_was_asked_and_why_not") {
        return;
    }
    let lab = Lab::unshaped();
    let mut manager = lab.client.enter(|| PathManager::open().unwrap());
    let error = manager.set_limits(Limits { add_addr_accepted: 0, subflows: 9 }).unwrap_err();
    assert_eq!(error.errno(), Some(libc::EINVAL));
    let said = error.to_string();
    assert!(said.starts_with("setting the limits subflows 9 add_addr_accepted 0: "), "{said}");
    assert!(said.contains("limit greater than maximum") && said.contains("Invalid argument"), "{said}");

    let endpoint = Endpoint { id: 3, flags: EndpointFlags::SUBFLOW, ..Endpoint::new(ip("10.77.2.1")) };
    manager.add_endpoint(&endpoint).unwrap();
    let error = manager.add_endpoint(&Endpoint { id: 4, ..endpoint }).unwrap_err();
    assert_eq!(error.errno(), Some(libc::EEXIST), "{error}");
    let error = manager.add_endpoint(&Endpoint { address: ip("10.77.2.2"), ..endpoint }).unwrap_err();
    assert_eq!(error.errno(), Some(libc::EBUSY), "{error}");
    let error = manager.endpoint(200).unwrap_err();
    assert!(error.to_string().starts_with("reading the endpoint 200: "), "{error}");
    assert_eq!(manager.endpoints().unwrap(), [endpoint], "the socket works after refusals");
}

/// Set in the process that has given up its rights.
const UNPRIVILEGED: &str = "ANABRANCH_TEST_UNPRIVILEGED";

#[test]
fn without_the_right_the_error_names_it() {
    if std::env::var_os(UNPRIVILEGED).is_some() {
        let mut manager = PathManager::open().expect("asking for the family needs no right");
        let limits = manager.limits().expect("reading limits needs none");
        for error in [manager.set_limits(limits).unwrap_err(), Events::open().err().expect("it is refused")] {
            assert_eq!(error.errno(), Some(libc::EPERM), "{error}");
            assert!(error.to_string().contains("needs CAP_NET_ADMIN"), "{error}");
        }
        return;
    }
    if skip("without_the_right_the_error_names_it") {
        return;
    }
    let lab = Lab::unshaped();
    // In a user namespace of its own, which has no rights over the network namespace.
    let this = std::env::current_exe().expect("the test has a file");
    let test = format!("{} --exact without_the_right_the_error_names_it", this.display());
    let said = lab.client.run("unshare", &format!("--user env {UNPRIVILEGED}=1 {test}"));
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
fn listeners_are_told_of() {
    if skip("listeners_are_told_of") {
        return;
    }
    let lab = Lab::unshaped();
    let (mut manager, mut events) =
        lab.client.enter(|| (PathManager::open().unwrap(), Events::open().unwrap()));
    let endpoint =
        Endpoint { id: 5, port: Some(4000), flags: EndpointFlags::SIGNAL, ..Endpoint::new(ip("10.77.1.1")) };
    manager.add_endpoint(&endpoint).unwrap();
    manager.delete_endpoint(5).unwrap();
    let listens = "10.77.1.1:4000".parse().unwrap();
    let mut heard = Vec::new();
    until(&mut events, |event| {
        heard.push(*event);
        (heard.len() == 2).then_some(())
    });
    assert_eq!(heard, [Event::ListenerCreated(listens), Event::ListenerClosed(listens)]);
}

#[test]
fn after_a_loss_nothing_older_than_the_gap_is_told() {
    if skip("after_a_loss_nothing_older_than_the_gap_is_told") {
        return;
    }
    let lab = Lab::unshaped();
    let (mut manager, mut events) =
        lab.client.enter(|| (PathManager::open().unwrap(), Events::open().unwrap()));
    // The kernel makes it the least that it allows, a few events.
    events.set_receive_buffer(1).unwrap();
    let endpoint = |port| Endpoint {
        id: 5,
        port: Some(port),
        flags: EndpointFlags::SIGNAL,
        ..Endpoint::new(ip("10.77.1.1"))
    };
    for port in 4000..4100 {
        manager.add_endpoint(&endpoint(port)).unwrap();
        manager.delete_endpoint(5).unwrap();
    }
    assert_eq!(events.next().unwrap(), Some(Event::Lost), "it is told first");
    assert_eq!(events.next().unwrap(), None, "and once");
    manager.add_endpoint(&endpoint(5000)).unwrap();
    let listens = "10.77.1.1:5000".parse().unwrap();
    assert_eq!(events.next().unwrap(), Some(Event::ListenerCreated(listens)), "events go on");
}
