//! Encoding and decoding, against bytes and under damage.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use proptest::prelude::*;

use super::{
    manager::{endpoint, limits, of_subflow},
    uapi::{address, attribute, command, event, event_attribute as a},
    *,
};
use crate::{
    Notification as _,
    generic::body,
    wire::{Body, Message, Writer},
};

/// An event from its command and attributes.
fn event_of(command: u8, attributes: Vec<u8>) -> Event {
    let body = [&[command, 1, 0, 0], &attributes[..]].concat();
    Event::read(&Message { kind: 30, flags: 0, sequence: 0, body: &body })
}

/// One attribute as it is written.
type Written = (u16, Vec<u8>);

fn bytes(attributes: &[Written]) -> Vec<u8> {
    attributes.iter().fold(Writer::default(), |writer, (kind, value)| writer.bytes(*kind, value)).into_bytes()
}

fn subflow() -> Subflow {
    Subflow {
        token: Token(0xc0ff_ee00),
        local_id: 2,
        remote_id: 0,
        address: SubflowAddress {
            local: "10.0.2.1:40000".parse().unwrap(),
            remote: "10.0.0.2:5001".parse().unwrap(),
        },
        is_backup: true,
        interface: Some(7),
    }
}

/// What the kernel sends of that subflow when it ends after a reset.
fn of_closed() -> Vec<Written> {
    vec![
        (a::TOKEN, 0xc0ff_ee00u32.to_ne_bytes().to_vec()),
        (2, 2u16.to_ne_bytes().to_vec()),
        (a::SADDR4, vec![10, 0, 2, 1]),
        (a::DADDR4, vec![10, 0, 0, 2]),
        (a::SPORT, 40000u16.to_be_bytes().to_vec()),
        (a::DPORT, 5001u16.to_be_bytes().to_vec()),
        (a::LOC_ID, vec![2]),
        (a::REM_ID, vec![0]),
        (a::BACKUP, vec![1]),
        (a::IF_IDX, 7u32.to_ne_bytes().to_vec()),
        (a::ERROR, vec![libc::ECONNRESET as u8]),
        (a::RESET_REASON, 3u32.to_ne_bytes().to_vec()),
        (a::RESET_FLAGS, 1u32.to_ne_bytes().to_vec()),
    ]
}

fn closed() -> Event {
    let reset = Some(Reset { reason: 3, is_transient: true });
    Event::SubflowClosed(Closed { subflow: subflow(), error: Some(libc::ECONNRESET as u8), reset })
}

/// Those of which each must be there for the event to have a meaning.
const NEEDED: [u16; 8] =
    [a::TOKEN, a::SADDR4, a::DADDR4, a::SPORT, a::DPORT, a::LOC_ID, a::REM_ID, a::BACKUP];

#[test]
fn opening_a_subflow_has_the_bytes_that_the_kernel_wants() {
    let local = Endpoint { id: 2, interface: Some(7), ..Endpoint::new("10.0.2.1".parse().unwrap()) };
    let attributes = of_subflow(Token(0x0102_0304), local.write(), "10.0.0.2:5001".parse().unwrap());
    let port = 5001u16.to_ne_bytes();
    #[rustfmt::skip]
    let expected: &[&[u8]] = &[
        &[10, 1, 0, 0],
        &8u16.to_ne_bytes(), &4u16.to_ne_bytes(), &0x0102_0304u32.to_ne_bytes(),
        &44u16.to_ne_bytes(), &0x8001u16.to_ne_bytes(),
        &6u16.to_ne_bytes(), &1u16.to_ne_bytes(), &2u16.to_ne_bytes(), &[0, 0],
        &5u16.to_ne_bytes(), &2u16.to_ne_bytes(), &[2, 0, 0, 0],
        &8u16.to_ne_bytes(), &3u16.to_ne_bytes(), &[10, 0, 2, 1],
        &8u16.to_ne_bytes(), &6u16.to_ne_bytes(), &[0; 4],
        &8u16.to_ne_bytes(), &7u16.to_ne_bytes(), &7u32.to_ne_bytes(),
        &28u16.to_ne_bytes(), &0x8006u16.to_ne_bytes(),
        &6u16.to_ne_bytes(), &1u16.to_ne_bytes(), &2u16.to_ne_bytes(), &[0, 0],
        &8u16.to_ne_bytes(), &3u16.to_ne_bytes(), &[10, 0, 0, 2],
        &6u16.to_ne_bytes(), &5u16.to_ne_bytes(), &port, &[0, 0],
    ];
    assert_eq!(body(command::SUBFLOW_CREATE, 1, attributes), expected.concat());
}

#[test]
fn every_event_of_the_header_has_its_meaning() {
    let subflow = subflow();
    let of_subflow = bytes(&of_closed()[..10]);
    let token = Writer::default().u32(a::TOKEN, 0xc0ff_ee00);
    let connection = Connection {
        token: subflow.token,
        first: subflow.address,
        is_server_side: false,
        denies_join_id0: false,
    };
    let listener =
        Writer::default().u16(2, 2).bytes(a::SPORT, &[0x13, 0x89]).bytes(a::SADDR4, &[10, 0, 2, 1]);
    let listener = listener.into_bytes();
    let listens = "10.0.2.1:5001".parse().unwrap();
    let announced = token.clone().u8(a::REM_ID, 4).bytes(a::DPORT, &[0x13, 0x89]).bytes(a::DADDR6, &[1; 16]);
    let announcement =
        Announcement { token: subflow.token, remote_id: 4, address: [1; 16].into(), port: Some(5001) };
    let removed = Event::Removed { token: subflow.token, remote_id: 4 };
    for (command, attributes, expected) in [
        (event::CREATED, of_subflow.clone(), Event::Created(connection)),
        (event::ESTABLISHED, of_subflow.clone(), Event::Established(connection)),
        (event::CLOSED, token.clone().into_bytes(), Event::Closed(subflow.token)),
        (event::ANNOUNCED, announced.into_bytes(), Event::Announced(announcement)),
        (event::REMOVED, token.u8(a::REM_ID, 4).into_bytes(), removed),
        (event::SUB_ESTABLISHED, of_subflow.clone(), Event::SubflowEstablished(subflow)),
        (event::SUB_CLOSED, bytes(&of_closed()), closed()),
        (event::SUB_PRIORITY, of_subflow, Event::SubflowPriority(subflow)),
        (event::LISTENER_CREATED, listener.clone(), Event::ListenerCreated(listens)),
        (event::LISTENER_CLOSED, listener, Event::ListenerClosed(listens)),
        (12, Vec::new(), Event::Unknown { command: 12 }),
    ] {
        assert_eq!(event_of(command, attributes), expected, "{command}");
    }
}

#[test]
fn who_accepted_a_connection_is_told_by_an_attribute_or_by_a_flag() {
    let created = |more: Writer| {
        let attributes = [bytes(&of_closed()[..10]), more.into_bytes()].concat();
        let Event::Created(connection) = event_of(event::CREATED, attributes) else {
            panic!("it is readable")
        };
        (connection.is_server_side, connection.denies_join_id0)
    };
    assert_eq!(created(Writer::default().u8(a::SERVER_SIDE, 0)), (false, false));
    assert_eq!(created(Writer::default().u8(a::SERVER_SIDE, 1)), (true, false));
    assert_eq!(created(Writer::default().u16(a::FLAGS, 2)), (true, false));
    assert_eq!(created(Writer::default().u16(a::FLAGS, 1)), (false, true));
}

#[test]
fn limits_are_read_by_their_types() {
    let answer = |attributes| Body { kind: 30, bytes: body(command::GET_LIMITS, 1, attributes) };
    let attributes = Writer::default().u32(attribute::SUBFLOWS, 3).u32(attribute::RCV_ADD_ADDRS, 1);
    assert_eq!(limits(&answer(attributes)), Ok(Limits { add_addr_accepted: 1, subflows: 3 }));
    assert!(limits(&answer(Writer::default().u32(attribute::SUBFLOWS, 3))).is_err());
}

#[test]
fn endpoints_and_flags_are_written_as_ip_mptcp_does() {
    let flags = EndpointFlags::SUBFLOW | EndpointFlags::BACKUP | EndpointFlags::from_bits(1 << 9);
    let mut endpoint =
        Endpoint { id: 3, interface: Some(2), flags, ..Endpoint::new("fd00::1".parse().unwrap()) };
    assert_eq!(endpoint.to_string(), "fd00::1 id 3 subflow backup 0x200 dev 2");
    endpoint.port = Some(80);
    endpoint.flags = EndpointFlags::SIGNAL;
    assert_eq!(endpoint.to_string(), "[fd00::1]:80 id 3 signal dev 2");
    assert_eq!(Token(0xab).to_string(), "000000ab");
}

fn any_ip() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<u32>().prop_map(|bits| Ipv4Addr::from_bits(bits).into()),
        any::<u128>().prop_map(|bits| Ipv6Addr::from_bits(bits).into()),
    ]
}

/// Attributes of types that are not known here.
fn strangers() -> impl Strategy<Value = Vec<(prop::sample::Index, Written)>> {
    let value = prop::collection::vec(any::<u8>(), 0..9);
    prop::collection::vec((any::<prop::sample::Index>(), (a::END as u16..0x3fff, value)), 0..4)
}

proptest! {
    #[test]
    fn any_bytes_are_an_event(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Event::read(&Message { kind: 30, flags: 0, sequence: 0, body: &body });
    }

    #[test]
    fn any_attributes_are_an_event_an_endpoint_and_limits(
        command in 0u8..20,
        attributes in prop::collection::vec((0u16..24, prop::collection::vec(any::<u8>(), 0..17)), 0..16),
    ) {
        let attributes = bytes(&attributes);
        let event = event_of(command, attributes.clone());
        prop_assert!(event != Event::Lost);
        let answer = Body { kind: 30, bytes: [&[command, 1, 0, 0], &attributes[..]].concat() };
        let _ = (endpoint(&answer), limits(&answer));
    }

    #[test]
    fn neither_order_nor_strangers_change_an_event(
        order in Just(of_closed()).prop_shuffle(),
        strangers in strangers(),
    ) {
        let mut attributes = order;
        for (place, stranger) in strangers {
            attributes.insert(place.index(attributes.len() + 1), stranger);
        }
        prop_assert_eq!(event_of(event::SUB_CLOSED, bytes(&attributes)), closed());
    }

    #[test]
    fn without_what_it_needs_an_event_is_unreadable(missing in prop::sample::select(&NEEDED[..])) {
        let mut attributes = of_closed();
        attributes.retain(|(kind, _)| *kind != missing);
        prop_assert_eq!(event_of(event::SUB_CLOSED, bytes(&attributes)), Event::Unreadable);
    }

    #[test]
    fn an_event_with_a_value_of_the_wrong_length_is_unreadable(place in 0usize..13, longer in any::<bool>()) {
        let mut attributes = of_closed();
        // The family says nothing that the addresses do not say, and is not read.
        prop_assume!(attributes[place].0 != 2);
        if longer {
            attributes[place].1.push(0);
        } else {
            attributes[place].1.pop();
        }
        prop_assert_eq!(event_of(event::SUB_CLOSED, bytes(&attributes)), Event::Unreadable);
    }

    #[test]
    fn an_event_that_is_cut_within_an_attribute_is_unreadable(cut in 1usize..200) {
        let whole = bytes(&of_closed());
        let cut = cut.min(whole.len() - 1);
        let ends: Vec<usize> = (0..13).map(|count| bytes(&of_closed()[..count]).len()).collect();
        prop_assume!(!ends.contains(&cut));
        let event = event_of(event::SUB_CLOSED, whole[..cut].to_vec());
        // The value of the last attribute may be whole where only its padding is missing.
        let padded = ends.iter().any(|&end| cut < end && end - cut < 4);
        prop_assert!(event == Event::Unreadable || padded, "{:?}", event);
    }

    #[test]
    fn an_endpoint_is_read_as_it_was_written(
        id in any::<u8>(),
        address in any_ip(),
        port in prop::option::of(1u16..),
        interface in prop::option::of(1u32..),
        flags in any::<u32>(),
        stranger in (address::END as u16..0x3fff, any::<u32>()),
    ) {
        let written = Endpoint { id, address, port, interface, flags: EndpointFlags::from_bits(flags) };
        let attributes = written.write().u32(stranger.0, stranger.1);
        let nest = Writer::default().nested(attribute::ADDR, attributes);
        let answer = Body { kind: 30, bytes: body(command::GET_ADDR, 1, nest) };
        prop_assert_eq!(endpoint(&answer), Ok(written));
    }
}

#[test]
fn ends_of_two_families_are_unreadable() {
    let mut attributes = of_closed();
    attributes[3] = (a::DADDR6, vec![1; 16]);
    assert_eq!(event_of(event::SUB_CLOSED, bytes(&attributes)), Event::Unreadable);
    let v6: SocketAddr = "[::ffff:10.0.0.2]:5001".parse().unwrap();
    attributes[2] = (a::SADDR6, Ipv6Addr::LOCALHOST.octets().to_vec());
    attributes[3] = (a::DADDR6, Ipv4Addr::new(10, 0, 0, 2).to_ipv6_mapped().octets().to_vec());
    let Event::SubflowClosed(closed) = event_of(event::SUB_CLOSED, bytes(&attributes)) else {
        panic!("it is readable")
    };
    assert_eq!(closed.subflow.address.remote, v6);
}
