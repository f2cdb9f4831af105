//! Quantities, and values that contradict each other.

use super::{BASE, edited, message};

#[test]
fn quantities_have_units_and_bounds() {
    edited(
        r#"rate = "11 Mbit/s""#,
        r#"rate = "11 Mbps""#,
        r#"f.toml:25:8: medium.wlan.rate: "11 Mbps" has the unknown unit "Mbps"; expected a rate such as "3 Mbit/s" (units: bit/s, kbit/s, Mbit/s, Gbit/s); did you mean "11 Mbit/s"?"#,
    );
    edited(
        r#"rate = "11 Mbit/s""#,
        r#"rate = "11 furlongs""#,
        r#"f.toml:25:8: medium.wlan.rate: "11 furlongs" has the unknown unit "furlongs"; expected a rate such as "3 Mbit/s" (units: bit/s, kbit/s, Mbit/s, Gbit/s)"#,
    );
    edited(
        r#"rate = "11 Mbit/s""#,
        r#"rate = "0 Mbit/s""#,
        r#"f.toml:25:8: medium.wlan.rate: 0 bit/s is too small; the least is 1 bit/s; expected a rate such as "3 Mbit/s" (units: bit/s, kbit/s, Mbit/s, Gbit/s)"#,
    );
    edited(
        r#"rate = "11 Mbit/s""#,
        r#"rate = "-1 Mbit/s""#,
        r#"f.toml:25:8: medium.wlan.rate: "-1 Mbit/s" is negative; expected a rate such as "3 Mbit/s" (units: bit/s, kbit/s, Mbit/s, Gbit/s)"#,
    );
    edited(
        r#"rate = "11 Mbit/s""#,
        r#"rate = "2 Tbit/s""#,
        r#"f.toml:25:8: medium.wlan.rate: "2 Tbit/s" has the unknown unit "Tbit/s"; expected a rate such as "3 Mbit/s" (units: bit/s, kbit/s, Mbit/s, Gbit/s)"#,
    );
    edited(
        r#"rate = "11 Mbit/s""#,
        r#"rate = "20000 Gbit/s""#,
        r#"f.toml:25:8: medium.wlan.rate: 20000 Gbit/s is too large; the most is 1000 Gbit/s; expected a rate such as "3 Mbit/s" (units: bit/s, kbit/s, Mbit/s, Gbit/s)"#,
    );
    edited(
        r#"rate = "11 Mbit/s""#,
        r#"rate = "0.5 bit/s""#,
        r#"f.toml:25:8: medium.wlan.rate: "0.5 bit/s" is not a whole number of bit/s; expected a rate such as "3 Mbit/s" (units: bit/s, kbit/s, Mbit/s, Gbit/s)"#,
    );
    edited(
        r#"rate = "11 Mbit/s""#,
        r#"rate = "nan Mbit/s""#,
        r#"f.toml:25:8: medium.wlan.rate: "nan Mbit/s" is not a finite number; expected a rate such as "3 Mbit/s" (units: bit/s, kbit/s, Mbit/s, Gbit/s)"#,
    );
    edited(
        r#"rate = "11 Mbit/s""#,
        "rate = inf",
        r#"f.toml:25:8: medium.wlan.rate: "inf" is not a finite number; expected a rate such as "3 Mbit/s" (units: bit/s, kbit/s, Mbit/s, Gbit/s)"#,
    );
    edited(
        r#"rate = "11 Mbit/s""#,
        "rate = -5",
        r#"f.toml:25:8: medium.wlan.rate: -5 is negative; expected a rate such as "3 Mbit/s" (units: bit/s, kbit/s, Mbit/s, Gbit/s)"#,
    );
    edited(
        r#"rate = "11 Mbit/s""#,
        r#"rate = "1e40 bit/s""#,
        r#"f.toml:25:8: medium.wlan.rate: "1e40 bit/s" is too large; expected a rate such as "3 Mbit/s" (units: bit/s, kbit/s, Mbit/s, Gbit/s)"#,
    );
    edited(
        r#"rate = "11 Mbit/s""#,
        r#"rate = "99999999999999999999999 bit/s""#,
        r#"f.toml:25:8: medium.wlan.rate: "99999999999999999999999 bit/s" has more digits than can be kept exactly (19); expected a rate such as "3 Mbit/s" (units: bit/s, kbit/s, Mbit/s, Gbit/s)"#,
    );
    edited(
        r#"delay = "50 ms""#,
        r#"delay = "50 msec""#,
        r#"f.toml:18:9: link.1.delay: "50 msec" has the unknown unit "msec"; expected a time such as "50 ms" (units: ns, us, ms, s, min, h); did you mean "50 ms"?"#,
    );
    edited(
        r#"delay = "50 ms""#,
        r#"delay = "100 years""#,
        r#"f.toml:18:9: link.1.delay: "100 years" has the unknown unit "years"; expected a time such as "50 ms" (units: ns, us, ms, s, min, h)"#,
    );
    edited(
        r#"delay = "50 ms""#,
        r#"delay = "10000000 h""#,
        r#"f.toml:18:9: link.1.delay: "10000000 h" is too large; expected a time such as "50 ms" (units: ns, us, ms, s, min, h)"#,
    );
    edited(
        r#"delay = "50 ms""#,
        r#"delay = """#,
        r#"f.toml:18:9: link.1.delay: "" does not begin with a number; expected a time such as "50 ms" (units: ns, us, ms, s, min, h)"#,
    );
    edited(
        r#"queue = "64 kB""#,
        "queue = 100",
        r#"f.toml:19:9: link.1.queue: 100 has no unit; expected "100 packets", a size such as "64 kB" (units: B, kB, MB, GB, KiB, MiB, GiB) or "unlimited""#,
    );
    edited(
        r#"queue = "64 kB""#,
        r#"queue = "0 packets""#,
        r#"f.toml:19:9: link.1.queue: the least is 1; expected "100 packets", a size such as "64 kB" (units: B, kB, MB, GB, KiB, MiB, GiB) or "unlimited""#,
    );
    edited(
        r#"queue = "64 kB""#,
        r#"queue = "5000000000 packets""#,
        r#"f.toml:19:9: link.1.queue: "5000000000 packets" is too large; expected "100 packets", a size such as "64 kB" (units: B, kB, MB, GB, KiB, MiB, GiB) or "unlimited""#,
    );
    edited(
        r#"queue = "64 kB""#,
        r#"queue = "100 pkts""#,
        r#"f.toml:19:9: link.1.queue: "100 pkts" has the unknown unit "pkts"; expected "100 packets", a size such as "64 kB" (units: B, kB, MB, GB, KiB, MiB, GiB) or "unlimited"; did you mean "100 packets"?"#,
    );
    edited(
        r#"queue = "64 kB""#,
        r#"queue = "infinite""#,
        r#"f.toml:19:9: link.1.queue: "infinite" does not begin with a number; expected "100 packets", a size such as "64 kB" (units: B, kB, MB, GB, KiB, MiB, GiB) or "unlimited""#,
    );
    edited(
        "loss = 0.001",
        r#"loss = "0.1""#,
        r#"f.toml:20:8: link.1.loss: "0.1" is text without a unit; expected a number from 0 to 1 or a percentage such as "0.1 %""#,
    );
    edited(
        "loss = 0.001",
        "loss = 1.5",
        r#"f.toml:20:8: link.1.loss: a probability is not above 1; expected a number from 0 to 1 or a percentage such as "0.1 %""#,
    );
    edited(
        "loss = 0.001",
        "loss = -0.1",
        r#"f.toml:20:8: link.1.loss: a probability is not negative; expected a number from 0 to 1 or a percentage such as "0.1 %""#,
    );
    edited(
        "loss = 0.001",
        "loss = nan",
        r#"f.toml:20:8: link.1.loss: "nan" is not a finite number; expected a number from 0 to 1 or a percentage such as "0.1 %""#,
    );
    edited(
        "loss = 0.001",
        r#"loss = "101 %""#,
        r#"f.toml:20:8: link.1.loss: a probability is not above 1; expected a number from 0 to 1 or a percentage such as "0.1 %""#,
    );
    edited(
        r#"packet = "1000 B""#,
        r#"packet = "70 kB""#,
        r#"f.toml:45:10: datagram.cbr.packet: 70 kB is too large; the most is 65535 B; expected a size such as "64 kB" (units: B, kB, MB, GB, KiB, MiB, GiB)"#,
    );
    edited(
        r#"start = "uniform(0 s, 1 s)""#,
        r#"start = "uniform(1 s, 1 s)""#,
        r#"f.toml:34:35: connection.flow.traffic.start: "uniform(1 s, 1 s)" is empty; expected a time such as "50 ms" (units: ns, us, ms, s, min, h) or "uniform(0 s, 1 s)""#,
    );
    edited(
        r#"start = "uniform(0 s, 1 s)""#,
        r#"start = "uniform(1 s)""#,
        r#"f.toml:34:35: connection.flow.traffic.start: "uniform(1 s)" has no comma; expected a time such as "50 ms" (units: ns, us, ms, s, min, h) or "uniform(0 s, 1 s)""#,
    );
    edited(
        r#"start = "uniform(0 s, 1 s)""#,
        r#"start = "normal(0 s, 1 s)""#,
        r#"f.toml:34:35: connection.flow.traffic.start: "normal(0 s, 1 s)" does not begin with a number; expected a time such as "50 ms" (units: ns, us, ms, s, min, h) or "uniform(0 s, 1 s)""#,
    );
}

#[test]
fn values_make_sense_together() {
    edited(
        r#"from = "1 s""#,
        r#"from = "10 s""#,
        "f.toml:4:8: measure.from: 10 s is not before the end of the window; expected less than 10 s",
    );
    edited(
        r#"from = "1 s""#,
        r#"to = "11 s""#,
        "f.toml:4:6: measure.to: 11 s is after the end of the run; expected at most 10 s",
    );
    edited(
        r#"from = "1 s""#,
        r#"interval = "1 ns""#,
        "f.toml:4:12: measure.interval: 1 ns makes more than 10000000 points in 10 s; expected more",
    );
    edited(
        r#"protocol = "mptcp""#,
        r#"protocol = "tcp""#,
        r#"f.toml:35:1: connection.flow.subflow: 2 subflows, but tcp has exactly one; expected protocol = "mptcp""#,
    );
    edited(
        r#"to = "D"
protocol"#,
        r#"to = "S"
protocol"#,
        "f.toml:30:6: connection.flow.to: the flow ends where it begins; expected another node",
    );
    edited(
        r#"to = "D"
protocol"#,
        r#"to = "alone"
protocol"#,
        r#"f.toml:35:1: connection.flow.subflow.wired: no path leads from "R1" to "alone"; expected links or media that join them"#,
    );
    edited(
        r#"via = ["R1"]"#,
        r#"via = ["alone"]"#,
        r#"f.toml:35:1: connection.flow.subflow.wired: no path leads from "S" to "alone"; expected links or media that join them"#,
    );
    edited(
        r#"via = ["R1"]"#,
        r#"via = ["R1", "R1"]"#,
        "f.toml:37:14: connection.flow.subflow.wired.via.1: the path passes this node already; expected way-points between its ends, each once",
    );
    edited(
        r#"via = ["R1"]"#,
        r#"via = ["D"]"#,
        "f.toml:37:8: connection.flow.subflow.wired.via.0: the path passes this node already; expected way-points between its ends, each once",
    );
    edited(
        r#"via = ["R1"]"#,
        r#"via = ["R1", "R2"]"#,
        r#"f.toml:35:1: connection.flow.subflow.wired: the shortest path through the way-points passes "S" twice; expected way-points that lead on"#,
    );
    edited(
        r#"on = [["1 s", "2 s"], ["3 s", "4 s"]]"#,
        r#"on = [["1 s", "3.5 s"], ["3 s", "4 s"]]"#,
        r#"f.toml:46:25: datagram.cbr.on: the interval from 3 s begins before the one until 3500 ms ends; expected pairs of times such as [["5 s", "15 s"], ["35 s", "45 s"]]"#,
    );
    edited(
        r#"on = [["1 s", "2 s"], ["3 s", "4 s"]]"#,
        r#"on = [["2 s", "2 s"]]"#,
        r#"f.toml:46:7: datagram.cbr.on: the interval from 2 s ends at 2 s; expected pairs of times such as [["5 s", "15 s"], ["35 s", "45 s"]]"#,
    );
    edited(
        r#"on = [["1 s", "2 s"], ["3 s", "4 s"]]"#,
        "on = []",
        r#"f.toml:46:6: datagram.cbr.on: the array is empty; expected pairs of times such as [["5 s", "15 s"], ["35 s", "45 s"]]"#,
    );
    edited(
        r#"phase_jitter = "10 ms""#,
        r#"phase_jitter = "1.5 s""#,
        "f.toml:47:16: datagram.cbr.phase_jitter: 1500 ms moves the interval from 1 s over its neighbour or its own end; expected less",
    );
    edited(
        r#"stop = "9 s""#,
        r#"stop = "1 s""#,
        "f.toml:34:63: connection.flow.traffic.stop: 1 s is not after the start at 1 s; expected a later time",
    );
    edited(
        r#"stop = "9 s""#,
        r#"size = "1 MB""#,
        r#"f.toml:34:63: connection.flow.traffic.size: ftp is unlimited; expected no such key, or kind = "file""#,
    );
    edited(
        r#"kind = "ftp""#,
        r#"kind = "file""#,
        r#"f.toml:34:64: connection.flow.traffic.stop: a file ends by itself; expected no such key, or kind = "ftp""#,
    );
    edited(
        r#"kind = "ftp", start = "uniform(0 s, 1 s)", stop = "9 s""#,
        r#"kind = "file""#,
        r#"f.toml:34:11: connection.flow.traffic.size: missing; expected a size such as "64 kB" (units: B, kB, MB, GB, KiB, MiB, GiB), or a table such as { distribution = "exponential", mean = "64 kB" }"#,
    );
    edited(
        r#"queue = "50 packets""#,
        r#"queue = "50 packets"
cw_max = 15"#,
        "f.toml:27:10: medium.wlan.cw_max: 15 is below cw_min, 31",
    );
    edited(
        r#"profile = "ns2""#,
        r#"min_rto = "70 s""#,
        "f.toml:27:1: connection.flow.transport: min_rto 70 s is above max_rto 1 min",
    );
    edited(
        r#"profile = "ns2""#,
        r#"segment = "65 kB"
header = "600 B""#,
        "f.toml:28:1: connection.flow.transport: segment and header are 65600 B together; the most is 65535 B",
    );
    edited(
        r#"profile = "ns2""#,
        r#"receive_buffer = "1 kB""#,
        "f.toml:27:1: connection.flow.transport: receive_buffer 1 kB does not hold one segment of 1428 B",
    );
    edited(
        r#"profile = "ns2""#,
        r#"delayed_ack = { timeout_max = "100 ms" }"#,
        "f.toml:27:1: connection.flow.transport: delayed_ack.timeout 200 ms is above delayed_ack.timeout_max 100 ms",
    );
    edited(
        r#"link = "access"
loss = "1 %""#,
        r#"link = "access""#,
        "f.toml:48:1: change.0: nothing changes; expected at least one of rate, delay, loss, up",
    );
    edited(
        r#"link = "access"
"#,
        r#"link = "wlan"
direction = "forward"
"#,
        "f.toml:51:13: change.0.direction: a medium has no directions; expected no such key",
    );
}

#[test]
fn queue_disciplines_have_their_own_settings() {
    edited(
        r#"queue = "64 kB""#,
        r#"queue = { limit = "9 packets" }"#,
        "f.toml:19:9: link.1.queue.kind: missing; expected one of drop-tail, red, codel, fq_codel",
    );
    edited(
        r#"queue = "64 kB""#,
        r#"queue = { kind = "fqcodel" }"#,
        r#"f.toml:19:18: link.1.queue.kind: "fqcodel" is not known; expected one of drop-tail, red, codel, fq_codel; did you mean "fq_codel"?"#,
    );
    edited(
        r#"queue = "64 kB""#,
        r#"queue = { kind = "red" }"#,
        r#"f.toml:19:9: link.1.queue.limit: missing; expected "100 packets", a size such as "64 kB" (units: B, kB, MB, GB, KiB, MiB, GiB) or "unlimited""#,
    );
    edited(
        r#"queue = "64 kB""#,
        r#"queue = { kind = "codel", min = "5 packets" }"#,
        "f.toml:19:33: link.1.queue.min: codel has no such setting; expected another kind, or no such key",
    );
    edited(
        r#"queue = "64 kB""#,
        r#"queue = { kind = "drop-tail", limit = "5 packets", ecn = true }"#,
        "f.toml:19:58: link.1.queue.ecn: drop-tail has no such setting; expected another kind, or no such key",
    );
    edited(
        r#"queue = "64 kB""#,
        r#"queue = { kind = "red", limit = "9 packets", min = "7 packets", max = "7 packets" }"#,
        "f.toml:19:71: link.1.queue.max: 7 packets are not above min, 7 packets; expected more",
    );
    edited(
        r#"queue = "64 kB""#,
        r#"queue = { kind = "red", limit = "9 packets", weight = 0 }"#,
        "f.toml:19:55: link.1.queue.weight: with 0 the average never moves; expected a number above 0, at most 1",
    );
}

#[test]
fn losses_in_bursts_come_to_an_end() {
    edited(
        "loss = 0.001",
        r#"loss = { kind = "gilbert", p = 0.1, r = 0.1 }"#,
        r#"f.toml:20:17: link.1.loss.kind: "gilbert" is not known; expected one of gilbert-elliott"#,
    );
    edited(
        "loss = 0.001",
        r#"loss = { kind = "gilbert-elliott", p = "1 %" }"#,
        r#"f.toml:20:8: link.1.loss.r: missing; expected a number from 0 to 1 or a percentage such as "0.1 %""#,
    );
    edited(
        "loss = 0.001",
        r#"loss = { kind = "gilbert-elliott", p = "1 %", r = 0 }"#,
        "f.toml:20:51: link.1.loss.r: with 0 the bad state never ends; expected a number above 0, at most 1",
    );
}

#[test]
fn a_jitter_has_a_range_and_a_known_distribution() {
    edited(
        "loss = 0.001",
        r#"jitter = { reorder = true }"#,
        r#"f.toml:20:10: link.1.jitter.range: missing; expected a time such as "50 ms" (units: ns, us, ms, s, min, h)"#,
    );
    edited(
        "loss = 0.001",
        r#"jitter = { range = "5 ms", distribution = "gaussian" }"#,
        r#"f.toml:20:43: link.1.jitter.distribution: "gaussian" is not known; expected one of uniform, exponential, normal"#,
    );
    edited(
        "loss = 0.001",
        "jitter = 5",
        r#"f.toml:20:10: link.1.jitter: 5 has no unit; expected a time such as "50 ms" (units: ns, us, ms, s, min, h)"#,
    );
}

#[test]
fn a_text_that_is_no_file_cannot_name_a_trace() {
    let refused = "there is no folder to find it in; expected a scenario that is read from a file";
    edited(r#"rate = "1 Mbit/s""#, r#"trace = "drive.up""#, &format!("f.toml:17:9: link.1.trace: {refused}"));
    assert_eq!(message(BASE, &[("link.1.trace", "drive.up")]), format!("--set link.1.trace: {refused}"),);
}

#[test]
fn a_connection_has_at_most_32_subflows() {
    let protocol = "protocol = \"mptcp\"\ncongestion = \"reno\"\n";
    assert_eq!(BASE.matches(protocol).count(), 1);
    let with = |subflows: usize| {
        let (before, after) = BASE.split_once("[[connection.subflow]]").expect("the base has subflows");
        let end = after.rfind("[[connection.subflow]]").map_or(0, |at| at + "[[connection.subflow]]".len());
        let rest = after[end..].split_once("\n[[").map_or("", |(_, rest)| rest);
        format!("{before}{}[[{rest}", "[[connection.subflow]]\n".repeat(subflows))
    };
    assert_eq!(message(&with(32), &[]), "accepted");
    assert_eq!(
        message(&with(33), &[]),
        "f.toml:35:1: connection.flow.subflow: 33 subflows; expected at most 32"
    );
}
