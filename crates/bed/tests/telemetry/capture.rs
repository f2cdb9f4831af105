//! Captures, read back by others: the library `pcap-file` and, where it is installed, tshark.

use std::{fs::File, io::Write as _, path::Path, process::Command, time::Duration};

use anabranch_bed::{
    emulator::Tap as _,
    telemetry::capture::{Capture, CaptureTap, Captured, Options, Points},
};
use pcap_file::{
    DataLink,
    pcapng::{Block, PcapNgReader, blocks::interface_description::InterfaceDescriptionOption},
};

/// 2023-11-14 22:13:20 UTC and some nanoseconds, which need both halves of the time.
const TIME_NS: u64 = 1_700_000_000_123_456_789;

/// A SYN with MP_CAPABLE of version 1 (RFC 8684 section 3.1) from 10.0.0.1 to 10.0.9.1, and payload to cut.
fn syn(payload: usize) -> Vec<u8> {
    let mut bytes = vec![0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 9, 1];
    let length = (bytes.len() + 24 + payload) as u16;
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes.extend([0xc3, 0x50, 0x13, 0x88, 0, 0, 0, 9, 0, 0, 0, 0, 0x60, 0x02, 0xff, 0xff, 0, 0, 0, 0]);
    bytes.extend([30, 4, 0x01, 0x01]);
    bytes.resize(bytes.len() + payload, 0x55);
    bytes
}

fn names(paths: usize) -> Vec<String> {
    (0..paths).map(|path| format!("path {path}")).collect()
}

/// Makes a capture of what `show` shows the tap.
fn capture(file: &Path, paths: usize, options: Options, show: impl FnOnce(&mut CaptureTap)) -> Captured {
    let (mut tap, capture) = Capture::start(file, &names(paths), options).expect("the folder is there");
    show(&mut tap);
    drop(tap);
    capture.finish().expect("the disk has room")
}

/// A packet as a reader sees it.
#[derive(Debug, PartialEq)]
struct Seen {
    interface: String,
    at_ns: u128,
    kept: Vec<u8>,
    bytes: u32,
}

/// Reads packets, and the number of those that the file says are not in it.
fn read(file: &Path) -> (Vec<Seen>, u64) {
    let mut reader = PcapNgReader::new(File::open(file).expect("it was written")).expect("it is pcapng");
    let (mut interfaces, mut seen, mut left_out) = (Vec::new(), Vec::new(), 0);
    while let Some(block) = reader.next_block() {
        match block.expect("every block is well-formed") {
            Block::InterfaceDescription(interface) => {
                assert_eq!(interface.linktype, DataLink::RAW);
                let name = interface.options.iter().find_map(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                    _ => None,
                });
                assert!(interface.options.contains(&InterfaceDescriptionOption::IfTsResol(9)));
                interfaces.push(name.expect("every interface has a name"));
            }
            Block::EnhancedPacket(packet) => seen.push(Seen {
                interface: interfaces[packet.interface_id as usize].clone(),
                at_ns: time_of(packet.timestamp),
                kept: packet.data.to_vec(),
                bytes: packet.original_len,
            }),
            Block::InterfaceStatistics(statistics) => {
                use pcap_file::pcapng::blocks::interface_statistics::InterfaceStatisticsOption::IsbIfDrop;
                left_out += statistics
                    .options
                    .iter()
                    .map(|option| if let IsbIfDrop(packets) = option { *packets } else { 0 })
                    .sum::<u64>();
            }
            other => panic!("a block of no use: {other:?}"),
        }
    }
    (seen, left_out)
}

/// The library takes the two halves for nanoseconds.
fn time_of(timestamp: Duration) -> u128 {
    timestamp.as_nanos()
}

#[test]
fn packets_are_read_back_as_they_were_shown() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("run.pcapng");
    let packet = syn(1000);
    let captured = capture(&file, 2, Options::default(), |tap| {
        tap.packet(1, false, TIME_NS, &packet);
        tap.packet(1, true, TIME_NS + 5_000_000, &packet);
        tap.packet(0, false, TIME_NS + 5_000_001, &packet[..40]);
    });
    assert_eq!(captured, Captured { packets: 3, left_out: 0 });
    let seen = |interface: &str, later, kept: &[u8], bytes| Seen {
        interface: interface.into(),
        at_ns: u128::from(TIME_NS + later),
        kept: kept.to_vec(),
        bytes,
    };
    let expected = vec![
        seen("path 1 (in)", 0, &packet[..128], 1044),
        seen("path 1 (out)", 5_000_000, &packet[..128], 1044),
        seen("path 0 (in)", 5_000_001, &packet[..40], 40),
    ];
    assert_eq!(read(&file), (expected, 0));
}

#[test]
fn one_end_only_and_whole_packets_on_request() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (points, name, at) in [(Points::Entering, "path 0 (in)", 1), (Points::Leaving, "path 0 (out)", 2)] {
        let file = folder.path().join(name);
        let packet = syn(1456);
        let options = Options { snaplen: None, points };
        let captured = capture(&file, 1, options, |tap| {
            tap.packet(0, false, 1, &packet);
            tap.packet(0, true, 2, &packet);
        });
        assert_eq!(captured.packets, 1);
        let expected = Seen { interface: name.into(), at_ns: at, kept: packet, bytes: 1500 };
        assert_eq!(read(&file), (vec![expected], 0));
    }
}

#[test]
fn many_packets_lie_in_the_file_in_their_order() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("run.pcapng");
    let packet = syn(0);
    let options = Options { snaplen: None, points: Points::Entering };
    // Several pieces' worth, but less than the memory, so that none is left out however slow the disk.
    let captured =
        capture(&file, 1, options, |tap| (0..20_000).for_each(|at| tap.packet(0, false, at, &packet)));
    assert_eq!(captured, Captured { packets: 20_000, left_out: 0 });
    let (seen, _) = read(&file);
    assert!(seen.iter().map(|packet| packet.at_ns).eq(0..20_000));
}

#[test]
fn a_disk_that_is_too_slow_leaves_packets_out_and_the_file_says_so() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe can be made");
    let copy = folder.path().join("copy.pcapng");
    // A reader that takes nothing until all packets have been shown.
    let (all_shown, wait) = std::sync::mpsc::channel::<()>();
    let (from, to) = (pipe.clone(), copy.clone());
    let reader = std::thread::spawn(move || {
        let mut pipe = File::open(from).expect("the pipe is there");
        wait.recv().expect("the sender lives");
        std::io::copy(&mut pipe, &mut File::create(to).expect("the folder is there"))
    });
    let packet = syn(1456);
    let shown = 20_000;
    let options = Options { snaplen: None, points: Points::Entering };
    let captured = capture(&pipe, 1, options, |tap| {
        (0..shown).for_each(|at| tap.packet(0, false, at, &packet));
        assert!(tap.left_out() > 0, "30 MB do not fit");
        all_shown.send(()).expect("the reader waits");
    });
    reader.join().expect("the reader lives").expect("the folder has room");
    assert_eq!(captured.packets + captured.left_out, shown);
    let (seen, left_out) = read(&copy);
    assert_eq!((seen.len() as u64, left_out), (captured.packets, captured.left_out));
}

#[test]
fn a_file_that_cannot_be_written_is_an_error() {
    let file = Path::new("/nonexistent/run.pcapng");
    let error = Capture::start(file, &names(1), Options::default()).expect_err("there is no such folder");
    assert!(error.to_string().contains("/nonexistent/run.pcapng"), "{error}");
    // The beginning can be written, what follows cannot.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe can be made");
    let from = pipe.clone();
    let reader = std::thread::spawn(move || File::open(from).expect("the pipe is there"));
    let (mut tap, capture) =
        Capture::start(&pipe, &names(1), Options::default()).expect("the reader is there");
    drop(reader.join().expect("the reader has opened it"));
    tap.packet(0, false, 0, &syn(0));
    drop(tap);
    let error = capture.finish().expect_err("nobody reads");
    assert!(error.to_string().contains("pipe"), "{error}");
}

#[test]
fn tshark_finds_the_options_of_mptcp() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("run.pcapng");
    capture(&file, 1, Options::default(), |tap| tap.packet(0, true, TIME_NS, &syn(1000)));
    let fields = ["frame.interface_name", "frame.time_epoch", "frame.len", "ip.src", "tcp.dstport"];
    let fields = fields.into_iter().chain(["tcp.options.mptcp.subtype", "tcp.options.mptcp.version"]);
    let output = Command::new("tshark")
        .arg("-r")
        .arg(&file)
        .args(["-n", "-T", "fields"])
        .args(fields.flat_map(|field| ["-e", field]))
        // The user's own settings must not matter.
        .env("HOME", folder.path())
        .env_remove("XDG_CONFIG_HOME")
        .output();
    let Ok(output) = output else {
        let line =
            "SKIPPED: tshark_finds_the_options_of_mptcp: no tshark; enable with: apt-get install tshark\n";
        std::io::stderr().write_all(line.as_bytes()).expect("stderr is open");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("numbers and names");
    let expected = "path 0 (out)\t1700000000.123456789\t1044\t10.0.0.1\t5000\t0\t1";
    assert_eq!(text.trim(), expected);
}
