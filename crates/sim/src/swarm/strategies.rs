//! What random scenarios are drawn from.

use anabranch_policy::scheduler::SCHEDULERS;
use proptest::{collection::vec, option::of, prelude::*, sample::select};

use super::plan::{Change, Cross, Event, Opening, PLAIN, Path, Plan, Radio, SHAPES, Settings};

/// Applications that come to an end.
const APPLICATIONS: [&str; 9] = [
    r#"kind = "telemetry", period = "50 ms", jitter = "30 ms", size = "300 B", count = 40"#,
    r#"kind = "telemetry", period = "1 ms", size = "5 kB", ack = "1 kB", count = 50"#,
    r#"kind = "request", response = "20 kB", think = "1 s", count = 8"#,
    r#"kind = "request", stop = "9 s", response = { distribution = "pareto", min = "2 kB", shape = 1.2, max = "90 kB" }"#,
    r#"kind = "cbr", rate = "300 kbit/s", size = "700 B", stop = "4 s", direction = "download""#,
    r#"kind = "onoff", rate = "1 Mbit/s", size = "4 kB", mean_on = "100 ms", mean_off = "200 ms", stop = "6 s""#,
    r#"kind = "flows", direction = "download", interval = "300 ms", stop = "5 s", size = "9 kB""#,
    r#"kind = "flows", arrivals = "synchronised", count = 12, size = "3 kB""#,
    r#"kind = "ftp", direction = "both", stop = "3 s""#,
];

/// Schedulers with parameters at their ends.
const SCHEDULER_TABLES: [&str; 7] = [
    "{ name = \"roundrobin\", num_segments = 3, cwnd_limited = false }",
    "{ name = \"emtcp\", order = \"listed\", cap = 1 }",
    "{ name = \"otias\", queue = \"1 packet\" }",
    "{ name = \"daps\", granularity = 1, queue = \"2 packets\" }",
    "{ name = \"ecf\", beta = 10 }",
    "{ name = \"ee-mptcp\", objective = \"per-power\", horizon = \"1 packet\" }",
    "{ name = \"emptcp\", hysteresis = 0, level_gain = 1, trend_gain = 1 }",
];

/// Transfers of few chunks and of many, with connections that are given up soon, late or never.
const TRANSFERS: [&str; 4] = [
    "size = \"200 kB\"\nchunk = \"7 kB\"",
    "size = \"200 kB\"\nchunk = \"2 kB\"\ngive_up = \"300 ms\"",
    "size = \"90 kB\"\nchunk = \"40 kB\"\ngive_up = \"10 s\"\ndirection = \"download\"",
    "size = \"1 B\"\ngive_up = \"1 ms\"\nstart = \"3 s\"",
];

/// Patterns of datagram flows.
const PATTERNS: [&str; 3] =
    ["", "pattern = \"poisson\"", "pattern = \"exponential\"\nmean_on = \"90 ms\"\nmean_off = \"40 ms\""];

fn algorithms() -> Vec<&'static str> {
    anabranch_cc::algorithms().iter().map(|algorithm| algorithm.name()).collect()
}

fn schedulers() -> Vec<&'static str> {
    SCHEDULERS.iter().map(|info| info.name).chain(SCHEDULER_TABLES).collect()
}

fn path() -> impl Strategy<Value = Path> {
    let queue = prop_oneof![
        (1_u64..6).prop_map(|packets| format!("{packets} packets")),
        (6_u64..60).prop_map(|packets| format!("{packets} packets")),
        (2_000_u64..20_000).prop_map(|bytes| format!("{bytes} B")),
        Just("unlimited".to_owned()),
    ];
    let loss = prop_oneof![Just(0), 0_u64..=200];
    let opening = prop_oneof![
        4 => Just(Opening::AsSoonAsItMay),
        1 => (0_u64..10_000).prop_map(Opening::At),
        1 => Just(Opening::Announced),
    ];
    let strips = prop_oneof![8 => Just("nothing"), 1 => Just("joins"), 1 => Just("mptcp")];
    (
        100_u64..20_000,
        0_u64..80,
        queue,
        loss,
        prop_oneof![
            4 => Just(None),
            1 => select(vec![Radio::Plain, Radio::Standard, Radio::Announced, Radio::Fallback]).prop_map(Some),
        ],
        select(algorithms()),
        prop::bool::ANY,
        prop_oneof![3 => Just(PLAIN), 2 => select(SHAPES.to_vec())],
        (opening, strips),
    )
        .prop_map(|(rate_kbps, delay_ms, queue, loss_permille, radio, congestion, backup, shape, more)| Path {
            rate_kbps,
            delay_ms,
            queue,
            shape,
            loss_permille,
            radio,
            congestion,
            backup,
            opening: more.0,
            strips: more.1,
        })
}

fn event() -> impl Strategy<Value = Event> {
    let actions = vec!["open", "close", "remove", "backup", "regular"];
    (0_u64..10_000, 0_usize..4, select(actions)).prop_map(|(at_ms, path, action)| Event {
        at_ms,
        path,
        action,
    })
}

fn change() -> impl Strategy<Value = Change> {
    let what = prop_oneof![
        Just("up = false".to_owned()),
        Just("up = true".to_owned()),
        (100_u64..20_000).prop_map(|rate| format!("rate = \"{rate} kbit/s\"")),
        (0_u64..200).prop_map(|delay| format!("delay = \"{delay} ms\"")),
        (0_u64..=20).prop_map(|percent| format!("loss = \"{percent} %\"")),
        Just("loss = { kind = \"gilbert-elliott\", p = 0.05, r = 0.4, loss_bad = 0.9 }".to_owned()),
    ];
    (0_u64..20_000, 0_usize..4, what).prop_map(|(at_ms, path, what)| Change { at_ms, path, what })
}

fn settings() -> impl Strategy<Value = Settings> {
    let delayed_ack = select(vec![
        "",
        "\"off\"",
        "{ timeout = \"40 ms\", every = \"2 packets\" }",
        "{ timeout = \"500 ms\", every = \"5 packets\" }",
        "{ timeout = \"1 ms\", timeout_max = \"2 s\", quick = \"3 packets\" }",
    ]);
    let buffer = || of(1_u64..80);
    let words = (
        select(vec!["ns2", "rfc", "linux"]),
        select(vec!["tahoe", "newreno", "sack", "rack"]),
        select(schedulers()),
        select(vec!["immediately", "established"]),
        delayed_ack,
    );
    let jitter = prop_oneof![Just(0), 1_u64..5_000];
    let numbers =
        (any::<bool>(), any::<(bool, bool)>(), 1_u64..20, of(1_u64..50), buffer(), buffer(), jitter);
    let receiver_and_pacing = (any::<bool>(), any::<bool>(), select(vec!["v4", "v6"]));
    let mechanics = (any::<bool>(), any::<bool>(), any::<bool>(), of(1_u64..5), any::<bool>());
    (words, numbers, receiver_and_pacing, mechanics).prop_map(|(words, numbers, more, mechanics)| Settings {
        profile: words.0,
        recovery: words.1,
        scheduler: words.2,
        join: words.3,
        delayed_ack: words.4,
        limited_transmit: numbers.0,
        prr: numbers.1.0,
        undo: numbers.1.1,
        initial_window: numbers.2,
        window_cap: numbers.3,
        receive_segments: numbers.4,
        send_segments: numbers.5,
        send_jitter_us: numbers.6,
        receive_buffer_tuning: more.0,
        pacing: more.1,
        ip: more.2,
        ecn: mechanics.0,
        opportunistic_retransmission: mechanics.1,
        penalisation: mechanics.2,
        stale_after: mechanics.3,
        send_buffer_tuning: mechanics.4,
    })
}

pub(super) fn plan() -> impl Strategy<Value = Plan> {
    let size = prop_oneof![1_u64..5_000, 5_000_u64..400_000];
    let cross = prop_oneof![
        4 => Just(Cross::Nothing),
        1 => select(PATTERNS.to_vec()).prop_map(Cross::Datagrams),
        2 => (select(APPLICATIONS.to_vec()), any::<bool>())
            .prop_map(|(traffic, mptcp)| Cross::Application { traffic, mptcp }),
        1 => (2_u64..30, 1_u64..30, 0_u64..20).prop_map(|(receive_kb, buffer_kb, delay_ms)| {
            Cross::Relay { receive_kb, buffer_kb, delay_ms }
        }),
        1 => select(algorithms()).prop_map(Cross::Tcp),
        1 => (select(TRANSFERS.to_vec()), any::<bool>())
            .prop_map(|(keys, mptcp)| Cross::Transfer { keys, mptcp }),
    ];
    let direction = select(vec!["upload", "upload", "download", "both"]);
    let file = (size, direction);
    let changes_and_events = (vec(change(), 0..6), vec(event(), 0..6));
    (any::<bool>(), vec(path(), 2..=4), changes_and_events, settings(), file, cross, any::<bool>()).prop_map(
        |(tcp, paths, (changes, events), settings, (file_bytes, direction), cross_traffic, metered)| Plan {
            tcp,
            paths,
            changes,
            events,
            settings,
            file_bytes,
            direction,
            cross_traffic,
            metered,
            manager: None,
        },
    )
}
