//! Random scenarios, each run under supervision (`world::audit`) and with both widths of the event key.
//!
//! A failing plan is printed by proptest; put its text into a named test below.

use std::fmt::Write as _;

use anabranch_link::Frame as _;
use anabranch_scenario::model::Scenario;
use proptest::{collection::vec, option::of, prelude::*, sample::select};

use crate::{
    Control,
    packet::Packet,
    run, run_with,
    world::audit::{self, run_marked},
};

/// One path between the two ends: a first hop with these properties, then a fast wire.
#[derive(Clone, Debug)]
struct Path {
    rate_kbps: u64,
    delay_ms: u64,
    queue: String,
    loss_permille: u64,
    radio: bool,
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

/// What happens to the first hop of a path.
#[derive(Clone, Debug)]
struct Change {
    at_ms: u64,
    path: usize,
    what: String,
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
    cross_traffic: Cross,
}

/// What else uses the first path.
#[derive(Clone, Debug)]
enum Cross {
    Nothing,
    Datagrams,
    Tcp(&'static str),
}

impl Plan {
    fn toml(&self) -> String {
        let paths = if self.tcp { &self.paths[..1] } else { &self.paths[..] };
        let mut text = "name = \"swarm\"\nduration = \"4 h\"\nmeasure = { interval = \"10 min\", head_of_line = true }\n".to_owned();
        let mut add = |line: &str| writeln!(text, "{line}").expect("writing to a string");
        self.settings.write(&mut add);
        add("[[node]]\nnames = [\"S\", \"D\"]");
        for (i, path) in paths.iter().enumerate() {
            add(&format!("[[node]]\nname = \"A{i}\""));
            let (table, ends) = if path.radio { ("medium", "stations") } else { ("link", "between") };
            add(&format!("[[{table}]]\nname = \"hop{i}\"\n{ends} = [\"S\", \"A{i}\"]"));
            add(&format!("rate = \"{} kbit/s\"\ndelay = \"{} ms\"", path.rate_kbps, path.delay_ms));
            add(&format!("queue = \"{}\"\nloss = {}", path.queue, path.loss_permille as f64 / 1000.0));
            add(&format!("[[link]]\nname = \"last{i}\"\nbetween = [\"A{i}\", \"D\"]"));
            add("rate = \"100 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"unlimited\"");
            if self.settings.join == "established" {
                add(&format!("strips = \"{}\"", path.strips));
            }
        }
        let protocol = if self.tcp { "tcp" } else { "mptcp" };
        add("[[connection]]\nname = \"file\"\nfrom = \"S\"\nto = \"D\"");
        add(&format!("ip = \"{}\"", self.settings.ip));
        add(&format!("protocol = \"{protocol}\"\nscheduler = \"{}\"", self.settings.scheduler));
        add(&format!("traffic = {{ kind = \"file\", size = \"{} B\" }}", self.file_bytes));
        for (i, path) in paths.iter().enumerate() {
            add(&format!("[[connection.subflow]]\nvia = [\"A{i}\"]\ncongestion = \"{}\"", path.congestion));
            if !self.tcp {
                add(&format!("backup = {}", path.backup));
            }
            match path.opening {
                Opening::At(ms) if i > 0 => add(&format!("start = \"{ms} ms\"")),
                Opening::Announced if i > 0 => add("announced = true"),
                _ => {}
            }
        }
        if let Cross::Tcp(congestion) = self.cross_traffic {
            add("[[connection]]\nname = \"rival\"\nfrom = \"S\"\nto = \"D\"\nsubflow = [{ via = [\"A0\"] }]");
            add("traffic = { kind = \"file\", size = \"100 kB\", start = \"100 ms\" }");
            add(&format!("congestion = \"{congestion}\""));
        }
        if let Cross::Datagrams = self.cross_traffic {
            let rate = paths[0].rate_kbps / 2;
            add("[[datagram]]\nname = \"cbr\"\nfrom = \"S\"\nto = \"D\"\nvia = [\"A0\"]\npacket = \"500 B\"");
            add(&format!("rate = \"{rate} kbit/s\"\non = [[\"0 s\", \"5 s\"]]"));
        }
        for change in self.changes.iter().filter(|change| change.path < paths.len()) {
            add(&format!("[[change]]\nat = \"{} ms\"\nlink = \"hop{}\"", change.at_ms, change.path));
            add(&change.what);
        }
        for event in self.events.iter().filter(|event| !self.tcp && event.path < paths.len()) {
            add("[[event]]\nconnection = \"file\"");
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
        if let Some(timeouts) = self.stale_after {
            add(&format!("stale_after = {timeouts}"));
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

fn algorithms() -> Vec<&'static str> {
    anabranch_cc::algorithms().iter().map(|algorithm| algorithm.name()).collect()
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
        prop::bool::weighted(0.2),
        select(algorithms()),
        prop::bool::ANY,
        (opening, strips),
    )
        .prop_map(|(rate_kbps, delay_ms, queue, loss_permille, radio, congestion, backup, more)| Path {
            rate_kbps,
            delay_ms,
            queue,
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
        select(vec!["newreno", "sack", "rack"]),
        select(vec!["minrtt", "roundrobin"]),
        select(vec!["immediately", "established"]),
        delayed_ack,
    );
    let jitter = prop_oneof![Just(0), 1_u64..5_000];
    let numbers =
        (any::<bool>(), any::<(bool, bool)>(), 1_u64..20, of(1_u64..50), buffer(), buffer(), jitter);
    let receiver_and_pacing = (any::<bool>(), any::<bool>(), select(vec!["v4", "v6"]));
    let mechanics = (any::<bool>(), any::<bool>(), any::<bool>(), of(1_u64..5));
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
    })
}

fn plan() -> impl Strategy<Value = Plan> {
    let size = prop_oneof![1_u64..5_000, 5_000_u64..400_000];
    let cross = prop_oneof![
        4 => Just(Cross::Nothing),
        1 => Just(Cross::Datagrams),
        1 => select(algorithms()).prop_map(Cross::Tcp),
    ];
    let changes_and_events = (vec(change(), 0..6), vec(event(), 0..6));
    (any::<bool>(), vec(path(), 2..=4), changes_and_events, settings(), size, cross).prop_map(
        |(tcp, paths, (changes, events), settings, file_bytes, cross_traffic)| Plan {
            tcp,
            paths,
            changes,
            events,
            settings,
            file_bytes,
            cross_traffic,
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
