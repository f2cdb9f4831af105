//! What the mechanics of MPTCP are for: a small receive buffer over unlike paths, paths that fail, and the figures
//! that tell of it.

#![allow(clippy::print_stdout)] // the figures are shown with --nocapture

#[allow(unreachable_pub)] // public for whichever test binary uses it
mod common;

use anabranch_record::model::Measurements;
use common::{connection, parse, run, subflow};

/// A path like Wi-Fi of 8 Mbit/s and 20 ms and one like 3G of 2 Mbit/s and 150 ms whose queue holds two seconds: the
/// set-up of Raiciu et al. (NSDI 2012, section 4.2), as `docs/mptcp.md` tells it.
fn unlike_paths(protocol: &str, buffer: &str, transport: &str) -> Measurements {
    let second = if protocol == "mptcp" { "{ name = \"slow\", via = [\"B\"] }" } else { "" };
    let text = format!(
        r#"
        name = "unlike"
        duration = "60 s"
        measure = {{ from = "10 s", head_of_line = true }}
        transport = {{ profile = "rfc", receive_buffer = "{buffer}", min_rto = "200 ms"{transport} }}
        node = [{{ names = ["S", "A", "B", "D"] }}]
        link = [
          {{ between = ["S", "A"], rate = "8 Mbit/s", delay = "9 ms", queue = "55 packets" }},
          {{ between = ["A", "D"], rate = "1 Gbit/s", delay = "1 ms", queue = "unlimited" }},
          {{ between = ["S", "B"], rate = "2 Mbit/s", delay = "74 ms", queue = "330 packets" }},
          {{ between = ["B", "D"], rate = "1 Gbit/s", delay = "1 ms", queue = "unlimited" }},
        ]
        [[connection]]
        name = "flow"
        from = "S"
        to = "D"
        protocol = "{protocol}"
        congestion = "lia"
        subflow = [{{ name = "fast", via = ["A"] }}, {second}]
        "#
    );
    run(&parse(&text), 1)
}

#[test]
fn raiciu_4_2_with_both_remedies_more_than_tcp_on_the_best_path_and_without_a_fifth_less() {
    for buffer in ["150 kB", "200 kB", "300 kB", "500 kB"] {
        let goodput = |protocol: &str, transport: &str| {
            connection(&unlike_paths(protocol, buffer, transport), "flow", "goodput_bps") / 1e6
        };
        let tcp = goodput("tcp", "");
        let plain = goodput("mptcp", "");
        let retransmitting = goodput("mptcp", ", opportunistic_retransmission = true");
        let penalising = goodput("mptcp", ", penalisation = true");
        let both = goodput("mptcp", ", opportunistic_retransmission = true, penalisation = true");
        println!(
            "{buffer}: TCP {tcp:.2}, plain {plain:.2}, retransmitting {retransmitting:.2}, penalising {penalising:.2}, \
             both {both:.2} Mbit/s"
        );
        assert!(both > tcp, "{buffer}: {both} Mbit/s, TCP {tcp}");
        assert!(plain < 0.8 * tcp, "{buffer}: {plain} Mbit/s without, TCP {tcp}");
    }
}

#[test]
fn the_remedies_are_counted_and_shorten_the_wait_for_earlier_data() {
    let plain = unlike_paths("mptcp", "100 kB", "");
    let both = unlike_paths("mptcp", "100 kB", ", opportunistic_retransmission = true, penalisation = true");
    let figure = |metric: &str| connection(&both, "flow", metric);
    assert!(figure("opportunistic_retransmissions") > 0.0 && figure("penalisations") > 0.0);
    assert!(figure("reinjections") >= figure("opportunistic_retransmissions"));
    let mean = |run: &Measurements| connection(run, "flow", "hol_delay_mean_s");
    println!("mean wait {:.4} s, {:.4} s with both remedies", mean(&plain), mean(&both));
    assert!(mean(&both) < mean(&plain));
}

#[test]
fn without_a_second_path_nothing_waits_at_the_data_level() {
    let text = r#"
        name = "alone"
        duration = "10 s"
        measure.head_of_line = true
        node = [{ names = ["S", "D"] }]
        link = [{ between = ["S", "D"], rate = "10 Mbit/s", delay = "10 ms", queue = "10 packets", loss = 0.01 }]
        connection = [{ name = "flow", from = "S", to = "D", protocol = "mptcp", congestion = "reno" }]"#;
    assert_eq!(connection(&run(&parse(text), 1), "flow", "hol_blocked_s"), 0.0);
}

/// Two like paths, one of which is down from 5 s to 10 s.
fn failing(transport: &str) -> Measurements {
    let text = format!(
        r#"
        name = "failing"
        duration = "30 s"
        transport = {{ profile = "linux"{transport} }}
        node = [{{ names = ["S", "A", "B", "D"] }}]
        link = [
          {{ name = "a", between = ["S", "A"], rate = "10 Mbit/s", delay = "10 ms", queue = "50 packets" }},
          {{ between = ["A", "D"], rate = "1 Gbit/s", delay = "1 ms", queue = "unlimited" }},
          {{ name = "b", between = ["S", "B"], rate = "10 Mbit/s", delay = "10 ms", queue = "50 packets" }},
          {{ between = ["B", "D"], rate = "1 Gbit/s", delay = "1 ms", queue = "unlimited" }},
        ]
        change = [{{ at = "5 s", link = "b", up = false }}, {{ at = "10 s", link = "b", up = true }}]
        [[connection]]
        name = "flow"
        from = "S"
        to = "D"
        protocol = "mptcp"
        congestion = "lia"
        subflow = [{{ name = "a", via = ["A"] }}, {{ name = "b", via = ["B"] }}]
        "#
    );
    run(&parse(&text), 1)
}

#[test]
fn a_subflow_fails_once_with_its_path_and_carries_data_again_after_it() {
    let run = failing(", stale_after = 4");
    assert_eq!(subflow(&run, "flow", "b", "subflow_failures"), 1.0);
    assert_eq!(subflow(&run, "flow", "a", "subflow_failures"), 0.0);
    let series = run.series.iter().find(|series| {
        series.metric == "throughput_bps"
            && matches!(&series.scope, anabranch_record::model::Scope::Subflow(_, name) if name == "b")
    });
    let points = &series.expect("the subflow has a series").points;
    let mean = |from_s: u64, to_s: u64| {
        let inside = points.iter().filter(|(at, _)| (from_s..to_s).contains(&(at / 1_000_000_000)));
        let values: Vec<f64> = inside.map(|&(_, value)| value).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    let (before, during, after) = (mean(2, 5), mean(6, 10), mean(20, 30));
    println!("{before:.0}, {during:.0}, {after:.0} bit/s");
    assert_eq!(during, 0.0);
    assert!(after > 0.7 * before, "{after} bit/s after, {before} before");
}

/// Two like paths with a middlebox each.
fn stripped(first: &str, second: &str) -> Measurements {
    let text = format!(
        r#"
        name = "stripped"
        duration = "10 s"
        node = [{{ names = ["S", "A", "B", "D"] }}]
        link = [
          {{ between = ["S", "A"], rate = "10 Mbit/s", delay = "10 ms", queue = "50 packets", strips = "{first}" }},
          {{ between = ["A", "D"], rate = "1 Gbit/s", delay = "1 ms", queue = "unlimited" }},
          {{ between = ["S", "B"], rate = "10 Mbit/s", delay = "10 ms", queue = "50 packets", strips = "{second}" }},
          {{ between = ["B", "D"], rate = "1 Gbit/s", delay = "1 ms", queue = "unlimited" }},
        ]
        [[connection]]
        name = "flow"
        from = "S"
        to = "D"
        protocol = "mptcp"
        congestion = "lia"
        subflow = [{{ name = "a", via = ["A"] }}, {{ name = "b", via = ["B"] }}]
        "#
    );
    run(&parse(&text), 1)
}

#[test]
fn fallback_and_refused_joins_are_told() {
    for (first, second, fallback, refused) in
        [("mptcp", "nothing", 1.0, 0.0), ("nothing", "joins", 0.0, 1.0), ("joins", "nothing", 0.0, 0.0)]
    {
        let run = stripped(first, second);
        let figure = |metric: &str| connection(&run, "flow", metric);
        assert_eq!((figure("fallback"), figure("joins_refused")), (fallback, refused), "{first}, {second}");
        let joined = subflow(&run, "flow", "b", "packets_sent") > 0.0;
        assert_eq!(joined, fallback + refused == 0.0, "{first}, {second}");
        assert!(figure("goodput_bps") > 9e6, "one path is left in any case");
    }
}

/// The first path goes down with data under way, in one or both directions, and a backup is left: all arrives. (The
/// window of one segment and the times were found by the swarm of random scenarios.)
#[test]
fn data_on_a_path_that_fails_go_to_a_backup_whatever_keeps_them_back() {
    for (receive_buffer, down_at, direction, bytes, stale_after) in [
        ("1 kB", "9 ms", "upload", 1_001, 2),
        ("unlimited", "1856 ms", "both", 8_001, 1),
        ("3 kB", "1343 ms", "both", 47_001, 1),
    ] {
        let scenario = parse(&format!(
            r#"
name = "fails"
duration = "10 min"
node = [{{ names = ["S", "A", "B", "D"] }}]
change = [{{ at = "{down_at}", link = "first", up = false }}]

[transport]
profile = "ns2"
recovery = "sack"
segment = "1000 B"
header = "60 B"
initial_window = "1 packet"
receive_buffer = "{receive_buffer}"
stale_after = {stale_after}

[[link]]
name = "first"
between = ["S", "A"]
rate = "100 kbit/s"
delay = "0 ms"
queue = "1 packet"

[[link]]
name = "second"
between = ["S", "B"]
rate = "100 kbit/s"
delay = "0 ms"
queue = "2 packets"

[[link]]
between = ["A", "D"]
rate = "100 Mbit/s"
delay = "1 ms"
queue = "unlimited"

[[link]]
between = ["B", "D"]
rate = "100 Mbit/s"
delay = "1 ms"
queue = "unlimited"

[[connection]]
name = "file"
from = "S"
to = "D"
protocol = "mptcp"
congestion = "reno"
traffic = {{ kind = "file", size = "{bytes} B", direction = "{direction}" }}
subflow = [{{ via = ["A"] }}, {{ via = ["B"], backup = true }}]
"#
        ));
        for seed in 1..=20 {
            let run = run(&scenario, seed);
            let ways = if direction == "both" { 2 } else { 1 };
            let delivered = connection(&run, "file", "bytes_delivered");
            assert_eq!(delivered, f64::from(ways * bytes), "{receive_buffer}, {down_at}, seed {seed}");
        }
    }
}
