//! Random scenarios, each run under supervision (`world::audit`) and with both widths of the event key.
//!
//! A failing plan is printed by proptest; put its text into a named test below.

use std::fmt::Write as _;

use anabranch_link::Frame as _;
use anabranch_policy::scheduler::SCHEDULERS;
use anabranch_record::model::{Measurements, Scope};
use anabranch_scenario::model::Scenario;
use proptest::{collection::vec, option::of, prelude::*, sample::select};

use crate::{
    Control,
    packet::Packet,
    run, run_with,
    world::audit::{self, run_marked},
};

/// A plain link.
const PLAIN: &str = "queue = \"QUEUE\"\nloss = LOSS";
/// What makes a shaped link.
const SHAPES: [&str; 4] = [
    "queue = { kind = \"red\", limit = \"QUEUE\", min = \"2 packets\", weight = 0.1, ecn = true }\nloss = LOSS",
    "queue = { kind = \"codel\", limit = \"QUEUE\" }\nloss = LOSS\njitter = \"20 ms\"",
    "queue = { kind = \"fq_codel\", limit = \"QUEUE\", flows = 4 }\nloss = LOSS",
    "queue = \"QUEUE\"\nloss = { kind = \"gilbert-elliott\", p = 0.01, r = 0.3, loss_good = LOSS }\n\
     jitter = { range = \"30 ms\", distribution = \"exponential\", reorder = true }",
];

/// One path between the two ends: a first hop with these properties, then a fast wire.
#[derive(Clone, Debug)]
struct Path {
    rate_kbps: u64,
    delay_ms: u64,
    queue: String,
    /// Queue and loss, with places for `queue` and the loss; radios are plain.
    shape: &'static str,
    loss_permille: u64,
    radio: Option<Radio>,
    congestion: &'static str,
    backup: bool,
    opening: Opening,
    strips: &'static str,
}

/// When a further subflow is opened.
#[derive(Clone, Debug)]
enum Opening {
    AsSoonAsItMay,
    At(u64),
    Announced,
}

/// What happens to a subflow.
#[derive(Clone, Debug)]
struct Event {
    at_ms: u64,
    path: usize,
    action: &'static str,
}

/// How the stations of a first hop by radio share it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Radio {
    Plain,
    Standard,
    Announced,
    Fallback,
}

impl Radio {
    /// Its keys on a medium of so many kbit/s.
    fn keys(self, rate_kbps: u64) -> String {
        match self {
            Self::Plain => String::new(),
            Self::Standard => {
                "phy = \"802.11g\"\nafter_failure = \"eifs\"\nbackoff_when_busy = true\nack_loss = 0.05"
                    .to_owned()
            }
            Self::Announced => {
                "rts_threshold = \"300 B\"\nafter_failure = \"difs\"\nlong_retry = 3".to_owned()
            }
            Self::Fallback => {
                let half = rate_kbps * 500;
                format!(
                    "rates = [{{ rate = \"{half} bit/s\", loss = 0 }}, {{ rate = \"{rate_kbps} kbit/s\" }}]\nfallback = {{}}"
                )
            }
        }
    }
}

/// What happens to the first hop of a path.
#[derive(Clone, Debug)]
struct Change {
    at_ms: u64,
    path: usize,
    what: String,
}

impl Change {
    /// Whether the path is there and may change so: several rates are not replaced by one.
    fn fits(&self, paths: &[Path]) -> bool {
        let keeps_rates = self.what.starts_with("up") || self.what.starts_with("delay");
        paths.get(self.path).is_some_and(|path| keeps_rates || path.radio != Some(Radio::Fallback))
    }
}

/// Settings of the transport.
#[derive(Clone, Debug)]
struct Settings {
    profile: &'static str,
    recovery: &'static str,
    scheduler: &'static str,
    join: &'static str,
    delayed_ack: &'static str,
    limited_transmit: bool,
    prr: bool,
    undo: bool,
    initial_window: u64,
    window_cap: Option<u64>,
    receive_segments: Option<u64>,
    receive_buffer_tuning: bool,
    send_segments: Option<u64>,
    send_jitter_us: u64,
    pacing: bool,
    ip: &'static str,
    ecn: bool,
    opportunistic_retransmission: bool,
    penalisation: bool,
    stale_after: Option<u64>,
    send_buffer_tuning: bool,
}

/// A scenario with one file transfer.
#[derive(Clone, Debug)]
struct Plan {
    tcp: bool,
    paths: Vec<Path>,
    changes: Vec<Change>,
    events: Vec<Event>,
    settings: Settings,
    file_bytes: u64,
    direction: &'static str,
    cross_traffic: Cross,
    /// Energy and memory are measured.
    metered: bool,
    /// The path manager of the file's connection.
    manager: Option<String>,
}

/// What else uses the first path.
#[derive(Clone, Debug)]
enum Cross {
    Nothing,
    /// With this pattern.
    Datagrams(&'static str),
    Tcp(&'static str),
    /// An application with this traffic, over TCP or over all paths.
    Application {
        traffic: &'static str,
        mptcp: bool,
    },
    /// A file to D and, by a relay, back to S.
    Relay {
        receive_kb: u64,
        buffer_kb: u64,
        delay_ms: u64,
    },
    /// A file over a connection on each of the first two paths, with these keys; MPTCP has the other path as a backup.
    Transfer {
        keys: &'static str,
        mptcp: bool,
    },
}

impl Plan {
    fn toml(&self) -> String {
        let paths = if self.tcp { &self.paths[..1] } else { &self.paths[..] };
        // A path manager that looks again and again costs time.
        let duration = if self.manager.is_some() { "1 h" } else { "4 h" };
        let mut text = format!("name = \"swarm\"\nduration = \"{duration}\"\n");
        text += "measure.interval = \"10 min\"\nmeasure.head_of_line = true\n";
        if self.metered {
            text += "measure.energy_bin = \"7 min\"\nmeasure.memory = true\n";
        }
        let mut add = |line: &str| writeln!(text, "{line}").expect("writing to a string");
        self.settings.write(&mut add);
        add("[[node]]\nnames = [\"S\", \"D\"]");
        for (i, path) in paths.iter().enumerate() {
            add(&format!("[[node]]\nname = \"A{i}\""));
            let (table, ends) =
                if path.radio.is_some() { ("medium", "stations") } else { ("link", "between") };
            add(&format!("[[{table}]]\nname = \"hop{i}\"\n{ends} = [\"S\", \"A{i}\"]"));
            add(&format!("rate = \"{} kbit/s\"\ndelay = \"{} ms\"", path.rate_kbps, path.delay_ms));
            let loss = path.loss_permille as f64 / 1000.0;
            let shape = if path.radio.is_some() { PLAIN } else { path.shape };
            add(&shape.replace("QUEUE", &path.queue).replace("LOSS", &loss.to_string()));
            if let Some(radio) = path.radio {
                add(&radio.keys(path.rate_kbps));
            }
            add(&format!("[[link]]\nname = \"last{i}\"\nbetween = [\"A{i}\", \"D\"]"));
            add("rate = \"100 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"unlimited\"");
            if self.settings.join == "established" {
                add(&format!("strips = \"{}\"", path.strips));
            }
        }
        let protocol = if self.tcp { "tcp" } else { "mptcp" };
        add("[[connection]]\nname = \"file\"\nfrom = \"S\"\nto = \"D\"");
        add(&format!("ip = \"{}\"", self.settings.ip));
        let named = self.settings.scheduler;
        let scheduler = if named.starts_with('{') { named.to_owned() } else { format!("\"{named}\"") };
        add(&format!("protocol = \"{protocol}\"\nscheduler = {scheduler}"));
        let (bytes, direction) = (self.file_bytes, self.direction);
        add(&format!("traffic = {{ kind = \"file\", size = \"{bytes} B\", direction = \"{direction}\" }}"));
        if let Some(manager) = &self.manager {
            add(&format!("path_manager = {manager}"));
        }
        for (i, path) in paths.iter().enumerate() {
            add(&format!("[[connection.subflow]]\nvia = [\"A{i}\"]\ncongestion = \"{}\"", path.congestion));
            if !self.tcp {
                add(&format!("backup = {}", path.backup));
            }
            match path.opening {
                Opening::At(ms) if i > 0 && self.manager.is_none() => add(&format!("start = \"{ms} ms\"")),
                Opening::Announced if i > 0 => add("announced = true"),
                _ => {}
            }
        }
        if let Cross::Tcp(congestion) = self.cross_traffic {
            add("[[connection]]\nname = \"rival\"\nfrom = \"S\"\nto = \"D\"\nsubflow = [{ via = [\"A0\"] }]");
            add("traffic = { kind = \"file\", size = \"100 kB\", start = \"100 ms\" }");
            add(&format!("congestion = \"{congestion}\""));
        }
        if let Cross::Application { traffic, mptcp } = self.cross_traffic {
            let over = if mptcp { paths.len() } else { 1 };
            let protocol = if mptcp { "mptcp" } else { "tcp" };
            add("[[connection]]\nname = \"application\"\nfrom = \"S\"\nto = \"D\"\ncongestion = \"lia\"");
            add(&format!("protocol = \"{protocol}\"\ntraffic = {{ {traffic} }}"));
            (0..over).for_each(|i| add(&format!("[[connection.subflow]]\nvia = [\"A{i}\"]")));
        }
        if let Cross::Relay { receive_kb, buffer_kb, delay_ms } = self.cross_traffic {
            for (name, from, to) in [("there", "S", "D"), ("back", "D", "S")] {
                add(&format!("[[connection]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\""));
                add("congestion = \"reno\"\nsubflow = [{ via = [\"A0\"] }]");
                add(&format!("transport.receive_buffer = \"{receive_kb} kB\""));
                if name == "there" {
                    add("traffic = { kind = \"file\", size = \"90 kB\" }");
                }
            }
            add("[[relay]]\nname = \"relay\"\nin = \"there\"\nout = \"back\"");
            add(&format!("buffer = \"{buffer_kb} kB\"\ndelay = \"{delay_ms} ms\""));
        }
        if let Cross::Transfer { keys, mptcp } = self.cross_traffic {
            for number in 0..2 {
                // TCP alone has but one path.
                let (own, other) = (number.min(paths.len() - 1), (1 - number).min(paths.len() - 1));
                let (protocol, second) = if mptcp && own != other {
                    ("mptcp", format!(", {{ via = [\"A{other}\"], backup = true }}"))
                } else {
                    ("tcp", String::new())
                };
                add(&format!("[[connection]]\nname = \"carrier{number}\"\nfrom = \"S\"\nto = \"D\""));
                add(&format!("protocol = \"{protocol}\"\nscheduler = \"dedicated\"\ncongestion = \"reno\""));
                add(&format!("subflow = [{{ via = [\"A{own}\"] }}{second}]"));
            }
            add("[[transfer]]\nname = \"transfer\"\nover = [\"carrier0\", \"carrier1\"]");
            add(keys);
        }
        if let Cross::Datagrams(pattern) = self.cross_traffic {
            let rate = paths[0].rate_kbps / 2;
            add("[[datagram]]\nname = \"cbr\"\nfrom = \"S\"\nto = \"D\"\nvia = [\"A0\"]\npacket = \"500 B\"");
            add(pattern);
            add(&format!("rate = \"{rate} kbit/s\"\non = [[\"0 s\", \"5 s\"]]"));
        }
        let is_managed = self.manager.as_ref().is_some_and(|manager| manager.contains("energy"));
        let reckons =
            is_managed || SCHEDULERS.iter().any(|info| info.reckons_energy && named.contains(info.name));
        for i in 0..paths.len() {
            if reckons || self.metered && i == 0 {
                let radio = ["lte", "wifi", "3g"][i % 3];
                add(&format!("[[interface]]\nnode = \"S\"\nlink = \"hop{i}\"\nradio = \"{radio}\""));
            }
        }
        if self.metered {
            add("[[interface]]\nnode = \"A0\"\nlink = \"hop0\"\nradio = \"3g\"");
        }
        for change in self.changes.iter().filter(|change| change.fits(paths)) {
            add(&format!("[[change]]\nat = \"{} ms\"\nlink = \"hop{}\"", change.at_ms, change.path));
            add(&change.what);
        }
        for event in self.events.iter().filter(|event| event.path < paths.len()) {
            let connection = match self.cross_traffic {
                Cross::Application { mptcp: true, .. } => "application",
                _ if self.tcp => continue,
                _ => "file",
            };
            add(&format!("[[event]]\nconnection = \"{connection}\""));
            add(&format!("at = \"{} ms\"\nsubflow = \"{}\"", event.at_ms, event.path));
            add(&format!("action = \"{}\"", event.action));
        }
        text
    }

    fn scenario(&self) -> Scenario {
        let text = self.toml();
        let loaded = anabranch_scenario::load(&text, "swarm.toml", &[]);
        loaded.unwrap_or_else(|error| panic!("{error}\n{text}")).scenario
    }
}

impl Settings {
    fn write(&self, add: &mut impl FnMut(&str)) {
        add("[transport]\nsegment = \"1000 B\"\nheader = \"60 B\"");
        for (key, value) in [("profile", self.profile), ("recovery", self.recovery), ("join", self.join)] {
            add(&format!("{key} = \"{value}\""));
        }
        if !self.delayed_ack.is_empty() {
            add(&format!("delayed_ack = {}", self.delayed_ack));
        }
        add(&format!("limited_transmit = {}", self.limited_transmit));
        add(&format!("receive_buffer_tuning = {}", self.receive_buffer_tuning));
        add(&format!("pacing = {}\necn = {}", self.pacing, self.ecn));
        add(&format!("opportunistic_retransmission = {}", self.opportunistic_retransmission));
        add(&format!("penalisation = {}", self.penalisation));
        add(&format!("send_buffer_tuning = {}", self.send_buffer_tuning));
        if let Some(periods) = self.stale_after {
            add(&format!("stale_after = {periods}"));
        }
        add(&format!("prr = {}\nundo = {}", self.prr, self.undo));
        add(&format!("send_jitter = \"{} us\"", self.send_jitter_us));
        add(&format!("initial_window = \"{} packets\"", self.initial_window));
        let limits = [
            ("window_cap", self.window_cap, "packets"),
            ("receive_buffer", self.receive_segments, "kB"),
            ("send_buffer", self.send_segments, "kB"),
        ];
        for (key, limit, unit) in limits {
            if let Some(limit) = limit {
                add(&format!("{key} = \"{limit} {unit}\""));
            }
        }
    }
}

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

fn plan() -> impl Strategy<Value = Plan> {
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

/// Runs a scenario under supervision, and again with either key.
fn check(scenario: &Scenario, seed: u64) {
    let supervised = audit::run::<u64>(scenario, seed);
    let narrow = run_with::<u64>(scenario, seed, &Control::default()).expect("nobody interrupts");
    let wide = run_with::<u128>(scenario, seed, &Control::default()).expect("nobody interrupts");
    let chosen = run(scenario, seed, &Control::default()).expect("nobody interrupts");
    assert_eq!(supervised, narrow, "the same seed gives the same measurements");
    assert_eq!(narrow, wide, "the width of the key changes nothing");
    assert_eq!(narrow, chosen);
    check_energy(scenario, &narrow);
}

/// The energies of the states, and the power of all bins, add up to that of each interface.
fn check_energy(scenario: &Scenario, run: &Measurements) {
    for interface in &scenario.interfaces {
        let (node, link) = interface.names(scenario);
        let scope = Scope::Interface(node.to_owned(), link.to_owned());
        let figure = |metric: &str| {
            let found = run.summary.figures.iter().find(|of| of.scope == scope && of.metric == metric);
            found.unwrap_or_else(|| panic!("no {metric} of {scope:?}")).value
        };
        let near = |what: &str, sum: f64, expected: f64| {
            assert!((sum - expected).abs() <= 1e-9 * expected.max(1.0), "{what}: {sum} is not {expected}");
        };
        let states =
            ["promotion", "active", "tail", "idle"].map(|of| figure(&format!("energy_huang_{of}_j")));
        near("states", states.iter().sum(), figure("energy_huang_j"));
        for (power, energy) in [("power_linear_w", "energy_linear_j"), ("power_huang_w", "energy_huang_j")] {
            let found = run.series.iter().find(|of| of.scope == scope && of.metric == power);
            let points = &found.expect("there is power over time").points;
            let begins = std::iter::once(0).chain(points.iter().map(|point| point.0));
            let bins = points.iter().zip(begins).map(|(&(end, w), begin)| w * (end - begin) as f64 / 1e9);
            near(power, bins.sum(), figure(energy));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_scenarios_keep_every_invariant(plan in plan(), seed in 0_u64..1000) {
        check(&plan.scenario(), seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_scenarios_keep_every_invariant_when_packets_are_marked(
        plan in plan(),
        every in 1_u32..40,
        seed in 0_u64..1000,
    ) {
        let marked = Plan { settings: Settings { ecn: true, ..plan.settings }, ..plan };
        let mut seen = 0;
        let mark = |packet: &mut Packet| if packet.is_ecn_capable() {
            seen += 1;
            if seen % every == 0 {
                packet.mark();
            }
        };
        run_marked::<u64>(&marked.scenario(), seed, mark);
    }
}

/// Every path manager with its defaults, and some in a hurry.
fn managers() -> Vec<String> {
    let hurried = [
        r#"{ name = "failover", hold = "100 ms", retry = "50 ms" }"#,
        r#"{ name = "pcdc", phase = "500 ms", settle = "0 s", again_after = "3 s" }"#,
        r#"{ name = "energy", late_bytes = "50 kB", late_after = "500 ms", dead_after = 2, retry = "50 ms" }"#,
        r#"{ name = "reestablish", dead_after = 1, retry = "10 ms", retry_max = "1 s", jitter = 1 }"#,
    ];
    let names = anabranch_policy::paths::PATH_MANAGERS.iter().map(|info| format!("{:?}", info.name));
    names.chain(hurried.map(str::to_owned)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_scenarios_keep_every_invariant_under_every_path_manager(
        plan in plan(),
        manager in select(managers()),
        seed in 0_u64..1000,
    ) {
        check(&Plan { tcp: false, manager: Some(manager), ..plan }.scenario(), seed);
    }
}

fn extreme(traffic: &str, more: &str) -> Scenario {
    let text = format!(
        r#"
        name = "extreme"
        duration = "10 h"
        measure.interval = "10 min"
        node = [{{ names = ["S", "D"] }}]
        connection = [{{ name = "flow", from = "S", to = "D", congestion = "reno", traffic = {{ {traffic} }} }}]
        {more}"#
    );
    anabranch_scenario::load(&text, "extreme.toml", &[]).unwrap_or_else(|error| panic!("{error}")).scenario
}

#[test]
fn round_trips_of_many_minutes_do_not_overflow_the_estimator() {
    let more = r#"
        link = [{ between = ["S", "D"], rate = "100 bit/s", delay = "1 s", queue = "unlimited" }]
        transport.max_rto = "2 h""#;
    check(&extreme(r#"kind = "ftp""#, more), 1);
}

#[test]
fn the_largest_acknowledgement_has_room_for_sack_blocks() {
    let more = r#"
        link = [{ between = ["S", "D"], rate = "10 Mbit/s", delay = "1 ms", queue = "5 packets" }]
        transport.ack = "65535 B""#;
    check(&extreme(r#"kind = "file", size = "100 kB""#, more), 1);
}
