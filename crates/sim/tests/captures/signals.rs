//! Signals of Multipath TCP, and subflows that are opened again, as tshark reads them.

use std::{collections::BTreeSet, net::IpAddr};

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use crate::{
    runs::{Recorded, eventful},
    tshark::tshark,
};

const CASES: [(&str, &str); 2] = [("rfc", "v4"), ("linux", "v6")];

fn one<'f>(text: &'f str, what: &str) -> &'f str {
    text.split(',').next().filter(|text| !text.is_empty()).unwrap_or_else(|| panic!("{what}"))
}

/// Digits after 0x, or decimal ones: versions of tshark differ.
fn number(text: &str) -> u64 {
    let text = one(text, "a number");
    let digits = text.trim_start_matches("0x");
    u64::from_str_radix(digits, if digits.len() < text.len() { 16 } else { 10 }).expect("a number")
}

#[test]
fn rfc_8684_3_4_1_an_announcement_is_authenticated_with_the_keys_of_the_handshake() {
    let test = "rfc_8684_3_4_1_an_announcement_is_authenticated_with_the_keys_of_the_handshake";
    for (profile, ip) in CASES {
        let run = Recorded::new(&eventful(profile, ip), 1);
        let view = run.at("S");
        let keys = ["tcp.options.mptcp.sendkey", "tcp.options.mptcp.recvkey"];
        let capable = "tcp.options.mptcp.subtype == 0 && tcp.flags.syn == 0";
        let Some(keys) = tshark(test, &view, capable, &keys) else { return };
        let [opener, acceptor] = [0, 1].map(|side| number(&keys[0][side]).to_be_bytes());
        let fields = [
            "tcp.options.mptcp.echo",
            "tcp.options.mptcp.addrid",
            "tcp.options.mptcp.ipv4",
            "tcp.options.mptcp.ipv6",
            "tcp.options.mptcp.addaddrtrunchmac",
        ];
        let Some(found) = tshark(test, &view, "tcp.options.mptcp.subtype == 3", &fields) else { return };
        let (mut announced, mut echoed) = (BTreeSet::new(), BTreeSet::new());
        for line in &found {
            let address = if line[2].is_empty() { &line[3] } else { &line[2] };
            let address: IpAddr = one(address, "an address").parse().expect("an address");
            let id = number(&line[1]) as u8;
            if line[4].is_empty() {
                assert!(["1", "True"].contains(&line[0].as_str()), "{line:?}");
                echoed.insert((id, address));
                continue;
            }
            assert!(["0", "False"].contains(&line[0].as_str()), "{line:?}");
            // The server announces: its key comes first.
            let mut mac =
                Hmac::<Sha256>::new_from_slice(&[acceptor, opener].concat()).expect("any length will do");
            mac.update(&[id]);
            match address {
                IpAddr::V4(address) => mac.update(&address.octets()),
                IpAddr::V6(address) => mac.update(&address.octets()),
            }
            mac.update(&[0, 0]);
            let code = mac.finalize().into_bytes();
            let rightmost = u64::from_be_bytes(code[24..].try_into().expect("eight bytes"));
            assert_eq!(number(&line[4]), rightmost, "{profile} {ip}");
            announced.insert((id, address));
        }
        assert_eq!(announced, echoed, "{profile} {ip}");
        assert_eq!(announced.len(), 1, "{profile} {ip}: of one subflow");
        let (id, address) = announced.first().expect("one");
        assert_eq!(*id, 2);
        let join = "tcp.options.mptcp.subtype == 1 && tcp.flags.syn == 1 && tcp.flags.ack == 0 \
                    && tcp.options.mptcp.addrid == 2";
        let Some(joins) = tshark(test, &view, join, &["ip.dst", "ipv6.dst"]) else { return };
        let to = if joins[0][0].is_empty() { &joins[0][1] } else { &joins[0][0] };
        assert_eq!(to.parse(), Ok(*address), "{profile} {ip}: the join leads to what was announced");
    }
}

#[test]
fn every_signal_is_an_option_of_its_packet() {
    let test = "every_signal_is_an_option_of_its_packet";
    for (profile, ip) in CASES {
        let run = Recorded::new(&eventful(profile, ip), 1);
        let view = run.at("S");
        let of = |subtype: u8, fields: &[&str]| {
            tshark(test, &view, &format!("tcp.options.mptcp.subtype == {subtype}"), fields)
        };
        let Some(priorities) = of(5, &["tcp.options.mptcp.backup.flag", "tcp.stream"]) else { return };
        let bits: Vec<bool> =
            priorities.iter().map(|line| ["1", "True"].contains(&line[0].as_str())).collect();
        assert_eq!(bits, [true, false], "{profile} {ip}");
        let Some(removals) = of(4, &["tcp.options.mptcp.addrid", "mptcp.rm_addr.count"]) else { return };
        assert!(!removals.is_empty(), "{profile} {ip}");
        assert!(removals.iter().all(|line| line[0] == "1" && line[1] == "1"), "{removals:?}");
        let Some(resets) = of(8, &["tcp.flags.reset", "tcp.options.mptcp.rst_reason"]) else { return };
        assert!(!resets.is_empty(), "{profile} {ip}");
        assert!(resets.iter().all(|line| ["1", "True"].contains(&line[0].as_str())), "{resets:?}");
        let Some(others) = tshark(test, &view, "tcp.flags.reset == 1", &["frame.number"]) else { return };
        assert_eq!(others.len(), resets.len(), "{profile} {ip}: every reset has its option");
    }
}

#[test]
fn a_subflow_that_is_opened_again_is_a_connection_of_its_own_for_tcp() {
    let test = "a_subflow_that_is_opened_again_is_a_connection_of_its_own_for_tcp";
    for (profile, ip) in CASES {
        let run = Recorded::new(&eventful(profile, ip), 1);
        let view = run.at("D");
        let fields = ["tcp.stream", "tcp.seq", "tcp.len", "mptcp.stream", "mptcp.dss.dsn", "tcp.srcport"];
        let Some(found) = tshark(test, &view, "tcp.len > 0", &fields) else { return };
        // wifi, cell, more; cell once more; and again.
        let streams: BTreeSet<u64> = found.iter().map(|line| number(&line[0])).collect();
        assert_eq!(streams.len(), 5, "{profile} {ip}");
        let ports: BTreeSet<(u64, u64)> =
            found.iter().map(|line| (number(&line[0]), number(&line[5]))).collect();
        let different: BTreeSet<u64> = ports.iter().map(|(_, port)| *port).collect();
        assert_eq!((ports.len(), different.len()), (5, 5), "{profile} {ip}: {ports:?}");
        assert!(found.iter().all(|line| line[3] == "0"), "{profile} {ip}: all of one connection");
        for stream in streams {
            let of_stream = found.iter().filter(|line| number(&line[0]) == stream);
            let first = of_stream.map(|line| number(&line[1])).min();
            assert_eq!(first, Some(1), "{profile} {ip}, stream {stream}: behind its own SYN");
        }
        let pieces: BTreeSet<(u64, u64)> =
            found.iter().map(|line| (number(&line[4]), number(&line[2]))).collect();
        let mut next = 1;
        for (begin, len) in pieces {
            assert_eq!(begin, next, "{profile} {ip}");
            next = begin + len;
        }
        assert_eq!(next, 5_000_124, "{profile} {ip}: every byte has come");
    }
}
