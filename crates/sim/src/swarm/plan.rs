//! A random scenario as data, and its text.

use std::fmt::Write as _;

use anabranch_policy::scheduler::SCHEDULERS;
use anabranch_scenario::model::Scenario;

/// A plain link.
pub(super) const PLAIN: &str = "queue = \"QUEUE\"\nloss = LOSS";
/// What makes a shaped link.
pub(super) const SHAPES: [&str; 4] = [
    "queue = { kind = \"red\", limit = \"QUEUE\", min = \"2 packets\", weight = 0.1, ecn = true }\nloss = LOSS",
    "queue = { kind = \"codel\", limit = \"QUEUE\" }\nloss = LOSS\njitter = \"20 ms\"",
    "queue = { kind = \"fq_codel\", limit = \"QUEUE\", flows = 4 }\nloss = LOSS",
    "queue = \"QUEUE\"\nloss = { kind = \"gilbert-elliott\", p = 0.01, r = 0.3, loss_good = LOSS }\n\
     jitter = { range = \"30 ms\", distribution = \"exponential\", reorder = true }",
];

/// One path between the two ends: a first hop with these properties, then a fast wire.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) rate_kbps: u64,
    pub(super) delay_ms: u64,
    pub(super) queue: String,
    /// Queue and loss, with places for `queue` and the loss; radios are plain.
    pub(super) shape: &'static str,
    pub(super) loss_permille: u64,
    pub(super) radio: Option<Radio>,
    pub(super) congestion: &'static str,
    pub(super) backup: bool,
    pub(super) opening: Opening,
    pub(super) strips: &'static str,
}

/// When a further subflow is opened.
#[derive(Clone, Debug)]
pub(super) enum Opening {
    AsSoonAsItMay,
    At(u64),
    Announced,
}

/// What happens to a subflow.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) at_ms: u64,
    pub(super) path: usize,
    pub(super) action: &'static str,
}

/// How the stations of a first hop by radio share it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Radio {
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
pub(super) struct Change {
    pub(super) at_ms: u64,
    pub(super) path: usize,
    pub(super) what: String,
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
pub(super) struct Settings {
    pub(super) profile: &'static str,
    pub(super) recovery: &'static str,
    pub(super) scheduler: &'static str,
    pub(super) join: &'static str,
    pub(super) delayed_ack: &'static str,
    pub(super) limited_transmit: bool,
    pub(super) prr: bool,
    pub(super) undo: bool,
    pub(super) initial_window: u64,
    pub(super) window_cap: Option<u64>,
    pub(super) receive_segments: Option<u64>,
    pub(super) receive_buffer_tuning: bool,
    pub(super) send_segments: Option<u64>,
    pub(super) send_jitter_us: u64,
    pub(super) pacing: bool,
    pub(super) ip: &'static str,
    pub(super) ecn: bool,
    pub(super) opportunistic_retransmission: bool,
    pub(super) penalisation: bool,
    pub(super) stale_after: Option<u64>,
    pub(super) send_buffer_tuning: bool,
}

/// A scenario with one file transfer.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) tcp: bool,
    pub(super) paths: Vec<Path>,
    pub(super) changes: Vec<Change>,
    pub(super) events: Vec<Event>,
    pub(super) settings: Settings,
    pub(super) file_bytes: u64,
    pub(super) direction: &'static str,
    pub(super) cross_traffic: Cross,
    /// Energy and memory are measured.
    pub(super) metered: bool,
    /// The path manager of the file's connection.
    pub(super) manager: Option<String>,
}

/// What else uses the first path.
#[derive(Clone, Debug)]
pub(super) enum Cross {
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

    pub(super) fn scenario(&self) -> Scenario {
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
