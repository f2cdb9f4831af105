//! What needs no tshark: packets at the right interfaces at the right times, equal files for equal seeds.

use std::{collections::BTreeMap, fs, fs::File, path::Path};

use anabranch_sim::{Control, RecordError, Records};
use pcap_file::{
    DataLink,
    pcapng::{Block, PcapNgReader, blocks::interface_description::InterfaceDescriptionOption},
};

use crate::runs::{Recorded, mptcp, tcp};

/// A packet of a capture.
struct Seen {
    interface: usize,
    at_ns: u64,
    bytes: u32,
    kept: Vec<u8>,
}

/// The names of the interfaces, and the packets in their order.
fn read(file: &Path) -> (Vec<String>, Vec<Seen>) {
    let mut reader = PcapNgReader::new(File::open(file).expect("it was written")).expect("it is pcapng");
    let (mut names, mut packets) = (Vec::new(), Vec::new());
    while let Some(block) = reader.next_block() {
        match block.expect("every block is well-formed") {
            Block::InterfaceDescription(interface) => {
                assert_eq!(interface.linktype, DataLink::RAW);
                let name = interface.options.iter().find_map(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                    _ => None,
                });
                names.push(name.expect("every interface has a name"));
            }
            Block::EnhancedPacket(packet) => packets.push(Seen {
                interface: packet.interface_id as usize,
                // The library takes the unit for nanoseconds, which it is here.
                at_ns: packet.timestamp.as_nanos() as u64,
                bytes: packet.original_len,
                kept: packet.data.to_vec(),
            }),
            Block::InterfaceStatistics(_) => {}
            other => panic!("a block of no use: {other:?}"),
        }
    }
    (names, packets)
}

#[test]
fn a_path_has_two_interfaces_and_what_is_lost_is_at_the_first_only() {
    for text in
        [tcp("rfc", "v4"), tcp("linux", "v6"), mptcp("rfc", "v6"), mptcp("linux", "v4"), mptcp("ns2", "v4")]
    {
        let run = Recorded::new(&text, 1);
        let (names, packets) = read(&run.packets());
        let mut counts = vec![0_u64; names.len()];
        packets.iter().for_each(|packet| counts[packet.interface] += 1);
        let mut lost_forward = 0;
        for (pair, counts) in names.chunks(2).zip(counts.chunks(2)) {
            let path = pair[0].strip_suffix(" (in)").expect("where packets enter");
            assert_eq!(pair[1], format!("{path} (out)"));
            assert!(counts[0] >= counts[1], "{path}");
            if path.starts_with("S/") && path.contains(", up/") {
                lost_forward += counts[0] - counts[1];
            }
        }
        assert_eq!(lost_forward, run.figure("up", "drops"), "{names:?}");
        assert!(lost_forward > 0);
    }
}

#[test]
fn packets_have_the_simulators_sizes_where_headers_fit() {
    for (text, mtu, ack) in [
        (tcp("rfc", "v4"), 1500, 52),
        (tcp("linux", "v6"), 1500, 72),
        (mptcp("rfc", "v6"), 1500, 84),
        (mptcp("linux", "v4"), 1500, 64),
        (tcp("ns2", "v4"), 1040, 40),
    ] {
        let run = Recorded::new(&text, 1);
        let (names, packets) = read(&run.packets());
        let of_kind = |place: &str| {
            let here = |packet: &&Seen| {
                let name = &names[packet.interface];
                name.starts_with(place) && name.contains(", up") && name.ends_with("(in)")
            };
            let mut sizes = BTreeMap::new();
            packets.iter().filter(here).for_each(|packet| *sizes.entry(packet.bytes).or_insert(0) += 1);
            sizes
        };
        let most_frequent =
            |sizes: &BTreeMap<u32, u32>| sizes.iter().max_by_key(|(_, count)| **count).map(|(size, _)| *size);
        let (data, acks) = (of_kind("S/"), of_kind("D/"));
        assert_eq!(most_frequent(&data), Some(mtu), "{data:?}");
        assert_eq!(*data.keys().last().expect("there is data"), mtu);
        assert!(acks.contains_key(&ack), "{acks:?}");
        let whole = |packet: &Seen| packet.kept.len() as u32 == packet.bytes;
        assert!(packets.iter().all(whole));
    }
}

#[test]
fn packets_are_cut_to_their_headers_unless_they_are_wanted_whole() {
    let run = Recorded::with(&tcp("rfc", "v6"), 1, Records { packets: true, ..Records::default() });
    let (_, packets) = read(&run.packets());
    assert!(packets.iter().all(|packet| packet.kept.len() as u32 == packet.bytes.min(128)));
    assert!(packets.iter().any(|packet| packet.bytes == 1500));
}

#[test]
fn times_ascend_even_where_packets_wait_before_they_enter() {
    let jittered =
        mptcp("ns2", "v4").replace("profile = \"ns2\"", "profile = \"ns2\", send_jitter = \"5 ms\"");
    for text in [mptcp("rfc", "v4"), jittered] {
        let run = Recorded::new(&text, 3);
        let (_, packets) = read(&run.packets());
        assert!(packets.is_sorted_by_key(|packet| packet.at_ns));
    }
}

#[test]
fn equal_seeds_give_equal_files_and_figures_do_not_depend_on_them() {
    let text = mptcp("linux", "v4");
    let bytes = |seed| fs::read(Recorded::new(&text, seed).packets()).expect("it was written");
    assert!(bytes(1) == bytes(1));
    assert!(bytes(1) != bytes(2));
    let plain = Recorded::with(&text, 1, Records::default());
    let mut watched = Recorded::new(&text, 1).measured;
    assert_eq!(watched.written, ["packets.pcapng"]);
    watched.written.clear();
    assert_eq!(plain.measured, watched);
}

#[test]
fn captures_are_the_committed_ones() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/captures.txt");
    let cases = [
        ("tcp-rfc-v4", tcp("rfc", "v4")),
        ("tcp-linux-v6", tcp("linux", "v6")),
        ("mptcp-linux-v4", mptcp("linux", "v4")),
    ];
    let mut lines = String::new();
    for (name, text) in cases {
        let run = Recorded::with(&text, 1, Records { packets: true, ..Records::default() });
        let bytes = fs::read(run.packets()).expect("it was written");
        lines += &format!("{name:<16} {:>8} {}\n", bytes.len(), &blake3::hash(&bytes).to_hex()[..32]);
    }
    if std::env::var_os("ANABRANCH_ACCEPT").is_some() {
        fs::write(&golden, &lines).expect("golden/ is writable");
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    assert!(
        lines == expected,
        "captures have changed:\n{lines}\nexpected:\n{expected}\nif that is right, say so in CHANGELOG.md and run\n\
         ANABRANCH_ACCEPT=1 cargo test -p anabranch-sim --test captures"
    );
}

#[test]
fn a_file_that_cannot_be_written_ends_the_run() {
    let scenario =
        anabranch_scenario::load(&tcp("rfc", "v4"), "test.toml", &[]).expect("it is right").scenario;
    let records = Records { packets: true, ..Records::default() };
    let nowhere = Path::new("/dev/null/nowhere");
    let result = anabranch_sim::record(&scenario, 1, &Control::default(), nowhere, records);
    let error = result.expect_err("there is no such folder");
    assert!(matches!(&error, RecordError::Write { path, .. } if path.ends_with("packets.pcapng")), "{error}");
}
