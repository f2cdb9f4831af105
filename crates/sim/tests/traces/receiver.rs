//! When acknowledgements leave (RFC 5681 section 4.2, and Linux's quick ones), and pacing.

use crate::golden::{lines, one_path, trace};
use crate::packets::{Line, Lines};

/// One full segment of 1500 bytes on the wire of 10 Mbit/s, and an acknowledgement of 52 bytes.
const SEGMENT_US: u64 = 1200;

/// How many segments each acknowledgement covers, in order.
fn strides(lines: &Lines) -> Vec<u64> {
    let mut last = 0;
    let acks = lines.acks().into_iter().filter_map(|line| line.ack);
    acks.map(|ack| ack - std::mem::replace(&mut last, ack)).filter(|&stride| stride > 0).collect()
}

#[test]
fn linux_acknowledges_sixteen_segments_at_once_and_those_that_let_the_window_grow() {
    let lines = trace("linux-quick-acks", &one_path(r#"profile = "linux""#, "120 kB", &[]));
    lines.check(83);
    let strides = strides(&lines);
    // The window grows by two segments from 45 up to 80,896 bytes, 55.9 segments: six steps.
    assert_eq!(strides[..22], [1; 22], "16 and 6, as Linux 6.18 does");
    assert_eq!(strides[22..29], [2; 7], "RFC 5681 section 4.2: at least every second segment");
    // Twice as much was read in the second round trip as in the first.
    assert_eq!(strides[29..59], [1; 30], "the window grows again");
}

#[test]
fn a_segment_that_ends_the_data_is_acknowledged_at_once_where_acknowledgements_are_quick() {
    for (profile, waits) in [("linux", false), ("rfc", true)] {
        let text = one_path(&format!("profile = \"{profile}\", window_cap = \"3 packets\""), "36200 B", &[]);
        let lines = lines("last-ack", &text);
        let (acks, data) = (lines.acks(), lines.data());
        let last: &Line = acks.last().expect("acknowledgements");
        assert_eq!((last.ack, data.len()), (Some(25), 25));
        let left_us = data.last().expect("segments").time_us;
        let arrived_us = left_us + 2 * SEGMENT_US + 21_000;
        let delayed_us = last.time_us - arrived_us;
        assert_eq!(delayed_us > 10_000, waits, "{profile}: {delayed_us} us after the last segment came");
    }
}

#[test]
fn a_delayed_acknowledgement_waits_as_long_as_the_timeout_says() {
    // Each segment waits for the acknowledgement of the one before, and that for the timer. The first one queues
    // behind the handshake.
    let settings = |timeout: &str| {
        format!(r#"profile = "rfc", window_cap = "1 packets", delayed_ack = {{ timeout = "{timeout}" }}"#)
    };
    for (timeout, timeout_us) in [("200 ms", 200_000), ("70 ms", 70_000)] {
        let lines = lines("delayed", &one_path(&settings(timeout), "7240 B", &[]));
        let sent_us: Vec<u64> = lines.data().iter().map(|line| line.time_us).collect();
        let round_trip_us = 42_000 + 2 * SEGMENT_US + 2 * 52 * 8 / 10;
        for pair in sent_us.windows(2).skip(1) {
            let waited_us = pair[1] - pair[0] - round_trip_us;
            assert!(waited_us.abs_diff(timeout_us) <= 2, "{waited_us} us, not {timeout_us}");
        }
    }
}

#[test]
fn paced_data_never_outruns_its_rate_and_leaves_in_pairs() {
    let settings = r#"profile = "linux", pacing = true, initial_ssthresh = "20 packets", window_cap = "20 packets",
        delayed_ack = "off", receive_buffer_tuning = false"#;
    let lines = lines("paced", &one_path(&settings.replace('\n', " "), "300 kB", &[]));
    let left: Vec<(u64, u64)> = lines.data().iter().map(|line| (line.time_us, line.bytes - 52)).collect();
    let steady: Vec<_> = left.iter().copied().filter(|&(at_us, _)| at_us > 200_000).collect();
    assert!(steady.len() > 100, "{} segments", steady.len());
    // 1.2 x 20 segments per round trip; the wire is idle for half of it, so nothing queues.
    let round_trip_us = 42_000 + 2 * SEGMENT_US + 2 * 52 * 8 / 10;
    let most_per_us = 1.2 * 20.0 * 1448.0 / round_trip_us as f64;
    for (first, &(from_us, _)) in steady.iter().enumerate() {
        let mut bytes = 0;
        for &(at_us, size) in &steady[first..] {
            bytes += size;
            let allowed = most_per_us * (at_us - from_us) as f64 + 2.0 * 1448.0;
            assert!(bytes as f64 <= allowed + 1.0, "{bytes} bytes in {} us from {from_us}", at_us - from_us);
        }
    }
    let bursts = left.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len).filter(|&burst| burst > 2).count();
    assert_eq!(bursts, 1, "only the first ten segments leave at once");
}

#[test]
fn without_pacing_a_window_leaves_at_once() {
    let settings = r#"profile = "linux", delayed_ack = "off", initial_window = "15 packets""#;
    let lines = lines("unpaced", &one_path(settings, "30 kB", &[]));
    let first_us = lines.data()[0].time_us;
    assert_eq!(lines.sent_at(first_us).len(), 15);
}

#[test]
fn ipv6_packets_fill_the_same_mtu() {
    let text = one_path(r#"profile = "linux""#, "14280 B", &[])
        .replace("name = \"file\"", "name = \"file\"\nip = \"v6\"");
    let lines = lines("ipv6", &text);
    lines.check(10);
    assert!(lines.data().iter().all(|line| line.bytes == 1500));
    assert!(lines.acks().iter().all(|line| line.bytes == 72));
}
