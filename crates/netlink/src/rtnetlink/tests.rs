//! Decoding, against messages as Linux 6.18 sends them and under damage.

use std::net::IpAddr;

use proptest::prelude::*;

use super::*;
use crate::{
    Notification as _,
    wire::{Message, Writer},
};

fn event(kind: u16, header: &[u8], attributes: Writer) -> Event {
    let body = [header, &attributes.into_bytes()].concat();
    Event::read(&Message { kind, flags: 0, sequence: 0, body: &body })
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn octets(text: &str) -> Vec<u8> {
    match ip(text) {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// `struct ifinfomsg` of link 3.
fn of_link(family: u8, flags: u32) -> Vec<u8> {
    [&[family, 0, 1, 0], &3u32.to_ne_bytes()[..], &flags.to_ne_bytes(), &[0; 4]].concat()
}

/// `struct rtmsg`.
fn of_route(family: u8, prefix_length: u8, table: u8, kind: u8, flags: u32) -> Vec<u8> {
    [&[family, prefix_length, 0, 0, table, 3, 0, kind], &flags.to_ne_bytes()[..]].concat()
}

#[test]
fn a_link_is_up_in_three_ways() {
    let mut statistics = [0; 200];
    statistics[16] = 7;
    statistics[24] = 5;
    let named = || {
        let named = Writer::default().bytes(3, b"wwan0\0").u32(4, 1430);
        named.bytes(23, &statistics).bytes(61, &[1, 2, 3])
    };
    let link = Link {
        index: 3,
        name: "wwan0".to_owned(),
        is_up: true,
        is_lower_up: true,
        is_running: true,
        is_loopback: false,
        mtu: Some(1430),
        carried_bytes: Some(12),
    };
    assert_eq!(event(16, &of_link(0, 0x1_1043), named()), Event::LinkChanged(link.clone()));
    let dark = Link { is_lower_up: false, is_running: false, ..link.clone() };
    assert_eq!(event(16, &of_link(0, 0x1003), named()), Event::LinkChanged(dark));
    assert_eq!(event(17, &of_link(0, 0x1_1043), named()), Event::LinkGone(link));
}

#[test]
fn a_port_that_leaves_a_bridge_is_no_link_that_is_gone() {
    let attributes = Writer::default().bytes(3, b"eth0\0");
    assert_eq!(event(17, &of_link(7, 0x1_1043), attributes), Event::Unknown { kind: 17 });
}

#[test]
fn a_name_that_is_no_text_does_not_hide_the_link() {
    let Event::LinkChanged(link) = event(16, &of_link(0, 1), Writer::default().bytes(3, b"\xffx\0")) else {
        panic!("it is readable")
    };
    assert_eq!((link.index, &link.name[..]), (3, "\u{fffd}x"));
}

#[test]
fn an_address_is_the_near_end_and_usable_when_nobody_else_has_it() {
    let header = [2, 32, 0x80, 0, 3, 0, 0, 0];
    let attributes = Writer::default().bytes(1, &octets("10.0.0.9")).bytes(2, &octets("10.0.0.1"));
    let Event::AddressChanged(address) = event(20, &header, attributes.u32(8, 0x80)) else {
        panic!("it is readable")
    };
    assert_eq!((address.address, address.interface, address.is_usable), (ip("10.0.0.1"), 3, true));

    let header = [10, 64, 0xc0, 0, 3, 0, 0, 0];
    let tentative = || Writer::default().bytes(1, &octets("fd00::1"));
    for (flags, usable, deprecated) in [(0x40, false, false), (0x08, false, false), (0x20, true, true)] {
        let Event::AddressGone(address) = event(21, &header, tentative().u32(8, flags)) else {
            panic!("it is readable")
        };
        assert_eq!((address.is_usable, address.is_deprecated), (usable, deprecated), "{flags:#x}");
    }
    // Without the attribute the short flags of the header count.
    let Event::AddressChanged(address) = event(20, &header, tentative()) else { panic!("it is readable") };
    assert!(!address.is_usable);
}

#[test]
fn routes_have_their_next_hops_however_they_are_told() {
    let route = |attributes, kind| match event(24, &of_route(2, 0, 254, kind, 0), attributes) {
        Event::RouteChanged(route) => route,
        other => panic!("{other:?}"),
    };
    let single = Writer::default().u32(15, 1000).u32(6, 600).bytes(5, &octets("10.0.0.254")).u32(4, 3);
    let single = route(single, 1);
    let hop = |interface, gateway: Option<&str>| NextHop { interface, gateway: gateway.map(ip) };
    assert!(single.is_default());
    assert_eq!(
        (single.table, single.metric, &single.next_hops[..]),
        (1000, 600, &[hop(3, Some("10.0.0.254"))][..])
    );

    let via = Writer::default().u32(4, 3).bytes(18, &[&[10, 0], &octets("fe80::1")[..]].concat());
    assert_eq!(route(via, 1).next_hops, [hop(3, Some("fe80::1"))]);

    let second = Writer::default().bytes(5, &octets("10.0.1.254")).into_bytes();
    let several = [&[8, 0, 0, 0, 3, 0, 0, 0, 16, 0, 0, 0, 4, 0, 0, 0], &second[..]].concat();
    let several = route(Writer::default().bytes(9, &several), 1);
    assert_eq!(several.next_hops, [hop(3, None), hop(4, Some("10.0.1.254"))]);

    let refused = route(Writer::default(), 6);
    assert_eq!((refused.kind, refused.next_hops.len(), refused.is_default()), (RouteKind::Refused, 0, false));
}

#[test]
fn entries_for_one_destination_and_other_families_are_no_routes() {
    for header in [of_route(2, 32, 254, 1, 0x200), of_route(128, 0, 254, 1, 0)] {
        assert_eq!(event(24, &header, Writer::default()), Event::Unknown { kind: 24 });
    }
}

#[test]
fn an_address_of_the_wrong_family_is_unreadable() {
    let header = [2, 32, 0x80, 0, 3, 0, 0, 0];
    assert_eq!(event(20, &header, Writer::default().bytes(1, &[0; 16])), Event::Unreadable);
    let route = of_route(10, 32, 254, 1, 0);
    assert_eq!(event(24, &route, Writer::default().bytes(1, &[10, 0, 0, 0])), Event::Unreadable);
}

proptest! {
    #[test]
    fn any_bytes_are_an_event(kind in 16u16..32, body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Event::read(&Message { kind, flags: 0, sequence: 0, body: &body });
    }

    #[test]
    fn any_attributes_are_an_event(
        kind in prop::sample::select(&[16u16, 17, 20, 21, 24, 25][..]),
        family in prop::sample::select(&[0u8, 2, 10][..]),
        rest in prop::collection::vec(any::<u8>(), 15),
        attributes in prop::collection::vec((0u16..20, prop::collection::vec(any::<u8>(), 0..24)), 0..10),
    ) {
        let length = match kind { 16 | 17 => link::HEADER, 20 | 21 => address::HEADER, _ => route::HEADER };
        let header = [&[family], &rest[..length - 1]].concat();
        let writer = attributes.iter().fold(Writer::default(), |writer, (kind, value)| writer.bytes(*kind, value));
        let event = event(kind, &header, writer);
        prop_assert!(event != Event::Lost);
    }

    #[test]
    fn neither_order_nor_strangers_change_a_route(
        order in Just(vec![
            (1, octets("10.9.0.0")), (4, vec![3, 0, 0, 0]), (5, octets("10.0.0.254")), (6, 7u32.to_ne_bytes().to_vec()),
            (7, octets("10.0.0.1")), (15, 1000u32.to_ne_bytes().to_vec()),
        ]).prop_shuffle(),
        strangers in prop::collection::vec(
            (any::<prop::sample::Index>(), 19u16..0x3fff, prop::collection::vec(any::<u8>(), 0..9)),
            0..4,
        ),
    ) {
        let mut attributes = order;
        for (place, kind, value) in strangers {
            attributes.insert(place.index(attributes.len() + 1), (kind, value));
        }
        let writer = attributes.iter().fold(Writer::default(), |writer, (kind, value)| writer.bytes(*kind, value));
        let route = Route {
            destination: ip("10.9.0.0"),
            prefix_length: 16,
            kind: RouteKind::Unicast,
            table: 1000,
            metric: 7,
            preferred_source: Some(ip("10.0.0.1")),
            next_hops: vec![NextHop { interface: u32::from_ne_bytes([3, 0, 0, 0]), gateway: Some(ip("10.0.0.254")) }],
        };
        prop_assert_eq!(event(24, &of_route(2, 16, 0, 1, 0), writer), Event::RouteChanged(route));
    }

    #[test]
    fn a_message_that_is_cut_never_gives_another_link(cut in 0usize..40) {
        let attributes = Writer::default().bytes(3, b"wlan0\0").u32(4, 1500).into_bytes();
        let whole = [of_link(0, 0x1_1043), attributes].concat();
        let cut = cut.min(whole.len() - 1);
        let message = Message { kind: 16, flags: 0, sequence: 0, body: &whole[..cut] };
        match Event::read(&message) {
            Event::Unreadable => {}
            // Cut where an attribute ends, the rest is as if it had not been sent.
            Event::LinkChanged(link) => prop_assert_eq!((&link.name[..], link.index, link.mtu), ("wlan0", 3, None)),
            other => prop_assert!(false, "{:?}", other),
        }
    }
}
