//! What applications send, and when datagrams leave.

use super::edited;

/// The traffic of the base scenario with another text in its place.
#[track_caller]
fn traffic(text: &str, expected: &str) {
    edited(r#"kind = "ftp", start = "uniform(0 s, 1 s)", stop = "9 s""#, text, expected);
}

#[test]
fn a_key_belongs_to_kinds() {
    traffic(
        r#"kind = "file", size = "1 kB", rate = "1 Mbit/s""#,
        "f.toml:34:50: connection.flow.traffic.rate: it means nothing to file; expected no such key, or a kind among cbr, onoff",
    );
    traffic(
        r#"kind = "telemetry", period = "1 s", size = "1 kB", direction = "download""#,
        "f.toml:34:76: connection.flow.traffic.direction: it means nothing to telemetry; expected no such key, or a kind among ftp, file, cbr, onoff, flows",
    );
    traffic(
        r#"kind = "video""#,
        r#"f.toml:34:20: connection.flow.traffic.kind: "video" is not known; expected one of ftp, file, cbr, onoff, telemetry, request, flows"#,
    );
    traffic(
        r#"kind = "cbr", rate = "1 Mbit/s", size = "1 kB", direction = "both""#,
        "f.toml:34:73: connection.flow.traffic.direction: both is for ftp and file; expected upload or download, or another kind than cbr",
    );
}

#[test]
fn what_a_kind_needs_is_asked_for() {
    traffic(
        r#"kind = "cbr", size = "1 kB""#,
        r#"f.toml:34:11: connection.flow.traffic.rate: missing; expected a rate such as "3 Mbit/s" (units: bit/s, kbit/s, Mbit/s, Gbit/s)"#,
    );
    traffic(
        r#"kind = "onoff", rate = "1 Mbit/s", size = "1 kB", mean_on = "1 s""#,
        r#"f.toml:34:11: connection.flow.traffic.mean_off: missing; expected a time such as "50 ms" (units: ns, us, ms, s, min, h)"#,
    );
    traffic(
        r#"kind = "telemetry", size = "1 kB""#,
        r#"f.toml:34:11: connection.flow.traffic.period: missing; expected a time such as "50 ms" (units: ns, us, ms, s, min, h)"#,
    );
    traffic(
        r#"kind = "request""#,
        r#"f.toml:34:11: connection.flow.traffic.response: missing; expected a size such as "64 kB" (units: B, kB, MB, GB, KiB, MiB, GiB), or a table such as { distribution = "exponential", mean = "64 kB" }"#,
    );
    traffic(
        r#"kind = "flows", size = "1 kB""#,
        r#"f.toml:34:11: connection.flow.traffic.interval: missing; expected a time such as "50 ms" (units: ns, us, ms, s, min, h)"#,
    );
    traffic(
        r#"kind = "flows", arrivals = "uniform", size = "1 kB""#,
        "f.toml:34:11: connection.flow.traffic.count: missing; expected an integer from 1 to 1000000",
    );
}

#[test]
fn values_of_applications_do_not_contradict_each_other() {
    traffic(
        r#"kind = "telemetry", period = "1 s", jitter = "2 s", size = "1 kB""#,
        "f.toml:34:58: connection.flow.traffic.jitter: 2 s moves messages past one another; expected at most the period, 1 s",
    );
    traffic(
        r#"kind = "telemetry", period = "1 s", size = "2 GB""#,
        "f.toml:34:56: connection.flow.traffic.size: 2 GB is written at once; expected at most 1 GiB",
    );
    traffic(
        r#"kind = "flows", arrivals = "synchronised", count = 3, interval = "1 s", size = "1 kB""#,
        r#"f.toml:34:78: connection.flow.traffic.interval: synchronised arrivals have none; expected `count` alone, or arrivals = "poisson""#,
    );
    traffic(
        r#"kind = "flows", interval = "1 us", size = "1 kB""#,
        "f.toml:34:40: connection.flow.traffic.interval: it makes about 10000000 flows; expected at most 100000",
    );
    traffic(
        r#"kind = "flows", arrivals = "uniform", count = 200000, size = "1 kB""#,
        "f.toml:34:59: connection.flow.traffic.count: it makes about 200000 flows; expected at most 100000",
    );
    traffic(
        r#"kind = "onoff", rate = "1 Mbit/s", size = "1 kB", mean_on = "1 s", mean_off = "1 s", shape = 1.2"#,
        r#"f.toml:34:106: connection.flow.traffic.shape: exponential bursts have none; expected no such key, or pattern = "pareto""#,
    );
}

#[test]
fn distributions_have_what_they_need() {
    let flows = |size: &str, expected: &str| {
        traffic(&format!(r#"kind = "flows", interval = "1 s", size = {size}"#), expected);
    };
    flows(
        r#"{ distribution = "normal", mean = "1 kB" }"#,
        r#"f.toml:34:71: connection.flow.traffic.size.distribution: "normal" is not known; expected one of exponential, pareto"#,
    );
    flows(
        r#"{ distribution = "exponential" }"#,
        r#"f.toml:34:54: connection.flow.traffic.size.mean: missing; expected a size such as "64 kB" (units: B, kB, MB, GB, KiB, MiB, GiB)"#,
    );
    flows(
        r#"{ distribution = "exponential", mean = "1 kB", max = "2 kB" }"#,
        r#"f.toml:34:107: connection.flow.traffic.size.max: an exponential distribution has a mean alone; expected no such key, or "pareto""#,
    );
    flows(
        r#"{ distribution = "pareto", mean = "1 kB" }"#,
        "f.toml:34:54: connection.flow.traffic.size.shape: missing; expected a number from 0.1 to 100 such as 1.5, with at most three decimals",
    );
    flows(
        r#"{ distribution = "pareto", shape = 1.2 }"#,
        r#"f.toml:34:54: connection.flow.traffic.size.mean: missing; expected a size such as "64 kB" (units: B, kB, MB, GB, KiB, MiB, GiB)"#,
    );
    flows(
        r#"{ distribution = "pareto", shape = 1.2, mean = "1 kB", min = "1 kB" }"#,
        "f.toml:34:115: connection.flow.traffic.size.min: the mean fixes it; expected one of the two keys, mean or min",
    );
    flows(
        r#"{ distribution = "pareto", shape = 1.2, mean = "1 kB", max = "1 kB" }"#,
        "f.toml:34:115: connection.flow.traffic.size.max: it is not above the mean; expected a larger one",
    );
    flows(
        r#"{ distribution = "pareto", shape = 1, mean = "1 kB" }"#,
        "f.toml:34:89: connection.flow.traffic.size.shape: without a maximum, there is no mean; expected a shape above 1, a max, or min in place of mean",
    );
    flows(
        r#"{ distribution = "pareto", shape = 0.01, min = "1 kB" }"#,
        "f.toml:34:89: connection.flow.traffic.size.shape: 0.01 is a number; expected a number from 0.1 to 100 such as 1.5, with at most three decimals",
    );
    flows(
        r#"{ distribution = "pareto", shape = "steep", min = "1 kB" }"#,
        r#"f.toml:34:89: connection.flow.traffic.size.shape: "steep" is text; expected a number from 0.1 to 100 such as 1.5, with at most three decimals"#,
    );
    flows(
        "3",
        r#"f.toml:34:54: connection.flow.traffic.size: 3 has no unit; expected a size such as "64 kB" (units: B, kB, MB, GB, KiB, MiB, GiB), or a table such as { distribution = "exponential", mean = "64 kB" }"#,
    );
    traffic(
        r#"kind = "file", size = { distribution = "exponential", mean = "1 kB" }"#,
        r#"f.toml:34:35: connection.flow.traffic.size: only flows differ in size; expected a size such as "64 kB", or kind = "flows""#,
    );
}

#[test]
fn patterns_of_datagrams_have_what_they_need() {
    let pattern = |text: &str, expected: &str| {
        edited(r#"phase_jitter = "10 ms""#, &format!("phase_jitter = \"10 ms\"\n{text}"), expected);
    };
    pattern(
        r#"pattern = "vbr""#,
        r#"f.toml:48:11: datagram.cbr.pattern: "vbr" is not known; expected one of cbr, exponential, pareto, poisson; did you mean "cbr"?"#,
    );
    pattern(
        "pattern = \"pareto\"\nmean_on = \"1 s\"",
        r#"f.toml:40:1: datagram.cbr.mean_off: missing; expected a time such as "50 ms" (units: ns, us, ms, s, min, h)"#,
    );
    pattern(
        "pattern = \"poisson\"\nmean_on = \"1 s\"",
        r#"f.toml:49:11: datagram.cbr.mean_on: only bursts have it; expected no such key, or pattern = "exponential" or "pareto""#,
    );
    pattern(
        "pattern = \"exponential\"\nmean_on = \"1 ns\"\nmean_off = \"1 s\"",
        r#"f.toml:49:11: datagram.cbr.mean_on: 1 ns is too small; the least is 1 us; expected a time such as "50 ms" (units: ns, us, ms, s, min, h)"#,
    );
}
