//! Links, addresses and routes, in conversation with the kernel.

mod common;

use std::net::IpAddr;

use anabranch_netlink::rtnetlink::{Event, Events, Link, NextHop, Route, Rtnetlink};
use common::{lab::Lab, skip, until};

/// The main table.
const MAIN: u32 = 254;

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn open(lab: &Lab) -> (Rtnetlink, Events) {
    lab.client
        .enter(|| (Rtnetlink::open().expect("it needs no right"), Events::open().expect("it needs no right")))
}

fn link(rtnetlink: &mut Rtnetlink, name: &str) -> Link {
    let links = rtnetlink.links().expect("links are listed");
    links.into_iter().find(|link| link.name == name).unwrap_or_else(|| panic!("{name} is there"))
}

/// The default routes of a table.
fn defaults(rtnetlink: &mut Rtnetlink, table: u32) -> Vec<Route> {
    let routes = rtnetlink.routes().expect("routes are listed");
    routes.into_iter().filter(|route| route.is_default() && route.table == table).collect()
}

#[test]
fn links_addresses_and_routes_are_those_of_the_namespace() {
    if skip("links_addresses_and_routes_are_those_of_the_namespace") {
        return;
    }
    let lab = Lab::unshaped();
    let (mut rtnetlink, _) = open(&lab);
    let c1 = link(&mut rtnetlink, "c1");
    assert!(c1.is_up && c1.is_lower_up && c1.is_running && !c1.is_loopback, "{c1:?}");
    assert_eq!(c1.mtu, Some(1500));
    assert!(link(&mut rtnetlink, "lo").is_loopback);

    let addresses = rtnetlink.addresses().unwrap();
    let of_c1 = addresses.iter().find(|address| address.address == ip("10.77.1.1")).expect("the lab gave it");
    assert_eq!((of_c1.interface, of_c1.prefix_length, of_c1.scope), (c1.index, 24, 0));
    assert!(of_c1.is_usable && !of_c1.is_deprecated);

    let hop = |gateway| NextHop { interface: c1.index, gateway: Some(ip(gateway)) };
    assert_eq!(defaults(&mut rtnetlink, MAIN)[0].next_hops, [hop("10.77.1.254")]);
    assert_eq!(defaults(&mut rtnetlink, 1)[0].next_hops, [hop("10.77.1.254")], "of a table of its own");
    assert_eq!(defaults(&mut rtnetlink, 2).len(), 1);

    lab.client.ip("route add default via 10.77.1.253 dev c1 metric 50 table 9");
    let by_c1 = rtnetlink.default_routes(c1.index).unwrap();
    let by_c1: Vec<_> = by_c1.iter().map(|route| (route.table, route.next_hop_by(c1.index))).collect();
    assert_eq!(by_c1.len(), 3, "{by_c1:?}");
    assert_eq!(by_c1[2], (9, Some(hop("10.77.1.253"))), "the metric is higher");

    lab.client
        .ip("route add 10.99.0.0/16 metric 7 nexthop via 10.77.1.254 dev c1 nexthop via 10.77.2.254 dev c2");
    lab.client.ip("route add blackhole 10.98.0.0/16");
    lab.client.ip("-6 route add default via inet6 fe80::1 dev c2 metric 55");
    let routes = rtnetlink.routes().unwrap();
    let to =
        |destination| routes.iter().find(|route| route.destination == ip(destination)).expect("it was added");
    assert_eq!((to("10.99.0.0").next_hops.len(), to("10.99.0.0").metric), (2, 7));
    assert!(to("10.98.0.0").next_hops.iter().all(|hop| hop.gateway.is_none()));
    let v6 = routes.iter().find(|route| route.is_default() && route.metric == 55).expect("it was added");
    assert_eq!((v6.destination, v6.next_hops[0].gateway), (ip("::"), Some(ip("fe80::1"))));
}

#[test]
fn a_link_that_goes_down_and_comes_back_is_told_of_in_order() {
    if skip("a_link_that_goes_down_and_comes_back_is_told_of_in_order") {
        return;
    }
    let lab = Lab::unshaped();
    let (mut rtnetlink, mut events) = open(&lab);
    let index = link(&mut rtnetlink, "c2").index;
    let mut changed = |wanted: fn(&Link) -> bool| {
        until(&mut events, |event| match event {
            Event::LinkChanged(link) if link.index == index && wanted(link) => Some(link.clone()),
            _ => None,
        })
    };
    lab.client.ip("link set c2 down");
    let down = changed(|link| !link.is_up);
    assert!(!down.is_lower_up && !down.is_running, "{down:?}");
    assert_eq!(defaults(&mut rtnetlink, 2), [], "its routes went with it");

    lab.client.ip("link set c2 up");
    changed(|link| link.is_up && link.is_running);
}

#[test]
fn the_far_end_that_goes_down_takes_the_lower_layer_away() {
    if skip("the_far_end_that_goes_down_takes_the_lower_layer_away") {
        return;
    }
    let lab = Lab::unshaped();
    // A pair of its own, whose far end the test reaches.
    lab.client.ip("link add near type veth peer name far");
    lab.client.ip("link set near up");
    lab.client.ip("link set far up");
    let (mut rtnetlink, mut events) = open(&lab);
    let index = link(&mut rtnetlink, "near").index;
    lab.client.ip("link set far down");
    let dark = until(&mut events, |event| match event {
        Event::LinkChanged(link) if link.index == index && !link.is_lower_up => Some(link.clone()),
        _ => None,
    });
    assert!(dark.is_up && !dark.is_running, "{dark:?}");
    lab.client.ip("link delete near");
    let gone = until(&mut events, |event| match event {
        Event::LinkGone(link) if link.index == index => Some(link.name.clone()),
        _ => None,
    });
    assert_eq!(gone, "near");
}

#[test]
fn addresses_and_routes_that_come_and_go_are_told_of() {
    if skip("addresses_and_routes_that_come_and_go_are_told_of") {
        return;
    }
    let lab = Lab::unshaped();
    let (_, mut events) = open(&lab);
    lab.client.ip("addr add 10.77.2.9/24 dev c2");
    lab.client.ip("addr add fd00::9/64 dev c2 nodad");
    lab.client.ip("route add 10.99.0.0/16 via 10.77.2.254 dev c2 src 10.77.2.9 table 77");
    lab.client.ip("route del 10.99.0.0/16 table 77");
    lab.client.ip("addr del 10.77.2.9/24 dev c2");
    let mut heard = Vec::new();
    until(&mut events, |event| {
        match event {
            Event::AddressChanged(address) => heard.push(format!("+{}", address.address)),
            Event::AddressGone(address) => heard.push(format!("-{}", address.address)),
            Event::RouteChanged(route) if route.table == 77 => {
                heard.push(format!("+route from {}", route.preferred_source.expect("it has one")));
            }
            Event::RouteGone(route) if route.table == 77 => heard.push("-route".to_owned()),
            _ => {}
        }
        heard.last().filter(|last| *last == "-10.77.2.9").map(|_| ())
    });
    assert_eq!(heard, ["+10.77.2.9", "+fd00::9", "+route from 10.77.2.9", "-route", "-10.77.2.9"]);
}
