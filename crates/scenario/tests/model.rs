//! What a correct file becomes.

use std::time::Duration;

use anabranch_policy::energy::{Linear, Radio};
use anabranch_scenario::model::{
    Action, Attachment, ChangeTarget, DelayedAck, Direction, Hop, IpVersion, Join, Loss, Protocol,
    QueueLimit, Recovery, RtoRule, Scenario, Traffic, When,
};
use anabranch_scenario::{FILE_BYTES_MAX, load, load_path};

const MS: u64 = 1_000_000;

const HEAD: &str = r#"
name = "test"
duration = "10 s"
[[node]]
names = ["A", "B", "C", "D"]
"#;

const FLOW: &str = r#"
[[connection]]
name = "flow"
from = "A"
to = "D"
congestion = "reno"
"#;

fn wire(name: &str, a: &str, b: &str) -> String {
    format!(
        "[[link]]\nname = {name:?}\nbetween = [{a:?}, {b:?}]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"9 packets\"\n"
    )
}

#[track_caller]
fn scenario(parts: &[&str]) -> Scenario {
    load(&parts.concat(), "test.toml", &[]).unwrap_or_else(|error| panic!("{error}")).scenario
}

#[track_caller]
fn path(parts: &[&str]) -> String {
    let scenario = scenario(parts);
    let hops = scenario.connections[0].subflows[0].hops.iter().map(|hop| match *hop {
        Hop::Wire { link, forward } => {
            format!("{}{}", scenario.links[link].name, if forward { ">" } else { "<" })
        }
        Hop::Medium { medium, from, to } => {
            let name = |node: usize| scenario.nodes[node].name.as_str();
            format!("{}:{}{}", scenario.media[medium].name, name(from), name(to))
        }
    });
    hops.collect::<Vec<_>>().join(" ")
}

fn medium(name: &str, stations: &str) -> String {
    format!(
        "[[medium]]\nname = {name:?}\nstations = {stations}\nrate = \"11 Mbit/s\"\nqueue = \"9 packets\"\n"
    )
}

#[test]
fn a_link_has_exact_quantities_and_an_own_way_back() {
    let link = r#"
[[link]]
between = ["A", "D"]
rate = "0.1 Mbit/s"
delay = "0.001 us"
queue = "1.5 kB"
loss = "0.1 %"
reverse = { rate = "2 Mbit/s", loss = 0 }
"#;
    let link = scenario(&[HEAD, link, FLOW]).links[0].clone();
    assert_eq!((link.name.as_str(), link.a, link.b), ("A-D", 0, 3));
    assert_eq!((link.forward.rate_bps, link.forward.delay), (100_000, 1));
    assert_eq!(link.forward.queue, QueueLimit::Bytes(1500));
    assert_eq!(link.forward.loss, Loss::Bernoulli(0.001));
    assert_eq!((link.reverse.rate_bps, link.reverse.delay), (2_000_000, 1));
    assert_eq!((link.reverse.queue, link.reverse.loss), (QueueLimit::Bytes(1500), Loss::None));
}

#[test]
fn defaults_are_those_of_the_reference() {
    let scenario = scenario(&[HEAD, &medium("air", r#"["A", "D"]"#), FLOW]);
    assert_eq!((scenario.title.as_str(), scenario.description.as_str()), ("test", ""));
    assert_eq!(
        (scenario.measure.from, scenario.measure.to, scenario.measure.interval),
        (0, 10_000 * MS, 100 * MS)
    );
    let air = &scenario.media[0];
    assert_eq!((air.slot, air.sifs, air.framing.preamble, air.delay), (20_000, 10_000, 192_000, 1_000));
    assert_eq!((air.cw_min, air.cw_max, air.retry_limit, air.mac_header_bytes), (31, 1023, 7, 34));
    assert_eq!(air.basic_rate_bps, 2_000_000);
    let flow = &scenario.connections[0];
    assert_eq!((flow.protocol, flow.scheduler.name.as_str()), (Protocol::Tcp, "minrtt"));
    assert_eq!(flow.traffic, Traffic::Ftp { start: When::At(0), stop: None, direction: Direction::Upload });
    assert_eq!(
        (flow.subflows.len(), flow.subflows[0].name.as_str(), flow.subflows[0].backup),
        (1, "0", false)
    );
}

#[test]
fn mptcp_without_subflows_has_one_and_names_them_by_index() {
    let mptcp = "protocol = \"mptcp\"\n";
    let link = wire("ad", "A", "D");
    let one = scenario(&[HEAD, &link, FLOW, mptcp]).connections[0].clone();
    assert_eq!((one.protocol, one.subflows.len()), (Protocol::Mptcp, 1));
    let subflows = "[[connection.subflow]]\n[[connection.subflow]]\nbackup = true\ncongestion = \"lia\"\n";
    let two = scenario(&[HEAD, &link, FLOW, mptcp, subflows]).connections[0].clone();
    let seen: Vec<(&str, bool, &str)> =
        two.subflows.iter().map(|s| (s.name.as_str(), s.backup, s.congestion.name.as_str())).collect();
    assert_eq!(seen, [("0", false, "reno"), ("1", true, "lia")]);
}

#[test]
fn tahoe_and_newreno_are_renos_windows_with_a_recovery() {
    for (name, recovery) in [("tahoe", Recovery::Tahoe), ("newreno", Recovery::NewReno)] {
        for profile in ["rfc", "linux", "ns2"] {
            let settings = format!("transport = {{ profile = {profile:?} }}\n");
            let flow = FLOW.replace(r#"congestion = "reno""#, &format!("congestion = {name:?}"));
            let connection = &scenario(&[HEAD, &wire("ad", "A", "D"), &flow, &settings]).connections[0];
            assert_eq!(connection.subflows[0].congestion.name, "reno");
            assert_eq!(connection.transport.recovery, recovery, "{profile}");
        }
    }
}

#[test]
fn profiles_hold_the_values_that_belong_together() {
    let transport = |profile: &str, protocol: &str| {
        let settings = format!("protocol = {protocol:?}\ntransport = {{ profile = {profile:?} }}\n");
        scenario(&[HEAD, &wire("ad", "A", "D"), FLOW, &settings]).connections[0].transport
    };
    let ns2 = transport("ns2", "mptcp");
    assert_eq!((ns2.segment_bytes, ns2.header_bytes, ns2.ack_bytes, ns2.initial_window), (1000, 40, 40, 2));
    assert_eq!((ns2.initial_rto, ns2.min_rto, ns2.max_rto), (3000 * MS, 200 * MS, 60_000 * MS));
    assert_eq!((ns2.delayed_ack, ns2.recovery, ns2.join), (None, Recovery::NewReno, Join::Immediately));
    assert_eq!((ns2.rto_rule, ns2.limited_transmit), (RtoRule::Rfc6298, true));
    assert_eq!((ns2.receive_buffer, ns2.send_buffer), (None, None));
    assert_eq!((ns2.receive_buffer_tuning, ns2.pacing), (false, false));

    let rfc = transport("rfc", "tcp");
    assert_eq!((rfc.segment_bytes, rfc.header_bytes, rfc.ack_bytes, rfc.initial_window), (1448, 52, 52, 10));
    assert_eq!((rfc.initial_rto, rfc.min_rto, rfc.max_rto), (1000 * MS, 1000 * MS, 60_000 * MS));
    let delayed_ack = DelayedAck { timeout: 200 * MS, every: 2, timeout_max: 200 * MS, quick: 0 };
    assert_eq!(rfc.delayed_ack, Some(delayed_ack));
    assert_eq!((rfc.receive_buffer_tuning, rfc.pacing), (false, false));
    assert_eq!((rfc.recovery, rfc.join, rfc.rto_rule), (Recovery::Sack, Join::Established, RtoRule::Rfc6298));
    assert!(!(rfc.prr || rfc.undo || ns2.prr || ns2.undo));

    let linux = transport("linux", "mptcp");
    assert_eq!((linux.segment_bytes, linux.header_bytes, linux.ack_bytes), (1424, 76, 64));
    assert_eq!((linux.min_rto, linux.max_rto, linux.rto_rule), (200 * MS, 120_000 * MS, RtoRule::Linux));
    let delayed_ack = DelayedAck { timeout: 40 * MS, every: 2, timeout_max: 200 * MS, quick: 16 };
    assert_eq!(linux.delayed_ack, Some(delayed_ack));
    assert_eq!((linux.receive_buffer_tuning, linux.pacing), (true, false));
    assert_eq!((linux.recovery, linux.prr, linux.undo), (Recovery::Rack, true, true));
    assert_eq!((linux.receive_buffer, linux.send_buffer), (Some(6_291_456), Some(4_194_304)));
    for (profile, protocol) in [("rfc", "tcp"), ("rfc", "mptcp"), ("linux", "tcp"), ("linux", "mptcp")] {
        let full = transport(profile, protocol);
        assert_eq!(full.segment_bytes + full.header_bytes, 1500, "{profile} {protocol}");
    }
}

#[test]
fn the_connection_overrides_the_file_and_the_file_the_profile() {
    let of_file =
        "[transport]\nprofile = \"linux\"\nwindow_cap = \"50 packets\"\ninitial_window = \"4 packets\"\n";
    let own =
        r#"transport = { initial_window = "3 packets", delayed_ack = "off", receive_buffer = "unlimited" }"#;
    let transport = scenario(&[HEAD, of_file, &wire("ad", "A", "D"), FLOW, own]).connections[0].transport;
    assert_eq!(
        (transport.window_cap, transport.initial_window, transport.max_rto),
        (Some(50), 3, 120_000 * MS)
    );
    assert_eq!((transport.delayed_ack, transport.receive_buffer), (None, None));
    let own = r#"transport = { profile = "ns2", delayed_ack = { every = "4 packets" } }"#;
    let transport = scenario(&[HEAD, of_file, &wire("ad", "A", "D"), FLOW, own]).connections[0].transport;
    assert_eq!((transport.segment_bytes, transport.initial_window), (1000, 4));
    let delayed_ack = DelayedAck { timeout: 200 * MS, every: 4, timeout_max: 200 * MS, quick: 0 };
    assert_eq!(transport.delayed_ack, Some(delayed_ack));
}

#[test]
fn a_timeout_of_its_own_makes_the_delayed_acknowledgement_constant() {
    let delayed_ack = |settings: &str| {
        let own = format!("transport = {{ profile = \"linux\", delayed_ack = {{ {settings} }} }}");
        let transport = scenario(&[HEAD, &wire("ad", "A", "D"), FLOW, &own]).connections[0].transport;
        transport.delayed_ack.expect("they are delayed")
    };
    assert_eq!((delayed_ack("").timeout, delayed_ack("").timeout_max), (40 * MS, 200 * MS));
    let constant = delayed_ack("timeout = \"100 ms\", quick = \"0 packets\"");
    assert_eq!((constant.timeout, constant.timeout_max, constant.quick), (100 * MS, 100 * MS, 0));
    let longer = delayed_ack("timeout_max = \"500 ms\"");
    assert_eq!((longer.timeout, longer.timeout_max, longer.quick), (40 * MS, 500 * MS, 16));
}

#[test]
fn ipv6_takes_twenty_bytes_more_from_the_mtu_and_leaves_the_sizes_of_ns2_alone() {
    let connection = |profile: &str, protocol: &str, ip: &str| {
        let own = format!("protocol = {protocol:?}\n{ip}\ntransport = {{ profile = {profile:?} }}\n");
        let connection = scenario(&[HEAD, &wire("ad", "A", "D"), FLOW, &own]).connections[0].clone();
        let sizes = connection.transport;
        (connection.ip_version, sizes.segment_bytes, sizes.header_bytes, sizes.ack_bytes)
    };
    for (profile, mptcp) in [("rfc", (IpVersion::V6, 1408, 92, 84)), ("linux", (IpVersion::V6, 1404, 96, 84))]
    {
        assert_eq!(connection(profile, "tcp", ""), (IpVersion::V4, 1448, 52, 52));
        assert_eq!(connection(profile, "tcp", "ip = \"v4\""), (IpVersion::V4, 1448, 52, 52));
        assert_eq!(connection(profile, "tcp", "ip = \"v6\""), (IpVersion::V6, 1428, 72, 72));
        assert_eq!(connection(profile, "mptcp", "ip = \"v6\""), mptcp);
    }
    assert_eq!(connection("ns2", "tcp", "ip = \"v6\""), (IpVersion::V6, 1000, 40, 40));
    let datagram = "\n[[datagram]]\nname = \"d\"\nfrom = \"A\"\nto = \"D\"\nrate = \"1 Mbit/s\"\npacket = \"500 B\"\nip = \"v6\"\n";
    let read = scenario(&[HEAD, &wire("ad", "A", "D"), datagram]);
    assert_eq!((read.datagrams[0].ip_version, read.datagrams[0].packet_bytes), (IpVersion::V6, 500));
}

#[test]
fn the_shortest_path_is_taken_and_ties_go_to_the_first_in_the_file() {
    let (ab, ac, bd, cd) =
        (wire("ab", "A", "B"), wire("ac", "A", "C"), wire("bd", "B", "D"), wire("dc", "D", "C"));
    assert_eq!(path(&[HEAD, &ab, &bd, &ac, &cd, FLOW]), "ab> bd>");
    assert_eq!(path(&[HEAD, &ac, &ab, &bd, &cd, FLOW]), "ac> dc<");
    assert_eq!(path(&[HEAD, &cd, &bd, &ac, &ab, FLOW]), "ac> dc<");
    assert_eq!(path(&[HEAD, &ac, &ab, &bd, &cd, &wire("ad", "A", "D"), FLOW]), "ad>");
    let via = "[[connection.subflow]]\nvia = [\"B\"]\n";
    assert_eq!(path(&[HEAD, &ac, &ab, &bd, &cd, FLOW, via]), "ab> bd>");
    assert_eq!(path(&[HEAD, &wire("first", "D", "A"), &wire("second", "A", "D"), FLOW]), "first<");
}

#[test]
fn a_medium_joins_all_its_stations_and_comes_after_links() {
    let air = medium("air", r#"["A", "B", "C"]"#);
    let rest = [wire("bd", "B", "D"), wire("cd", "C", "D")].concat();
    assert_eq!(path(&[HEAD, &air, &rest, FLOW]), "air:AB bd>");
    let reordered = medium("air", r#"["C", "A", "B"]"#);
    assert_eq!(path(&[HEAD, &reordered, &rest, FLOW]), "air:AC cd>");
    assert_eq!(path(&[HEAD, &air, &rest, &wire("ac", "A", "C"), FLOW]), "ac> cd>");
    let all = medium("all", r#"["A", "D"]"#);
    assert_eq!(path(&[HEAD, &air, &all, &rest, FLOW]), "all:AD");
}

#[test]
fn a_family_is_spelled_out_in_the_order_of_its_index() {
    let text = r#"
name = "family"
duration = "1 s"
[[node]]
names = ["gw{i/2}-{i%2}", "m{i}"]
count = 4
[[node]]
name = "server"
[[link]]
count = 4
between = ["m{i}", "gw{i/2}-{i%2}"]
rate = "1 Mbit/s"
delay = "1 ms"
queue = "unlimited"
[[link]]
name = "up{i}"
count = 4
between = ["gw{i/2}-{i%2}", "server"]
rate = "1 Mbit/s"
delay = "1 ms"
queue = "unlimited"
[[datagram]]
name = "d{i}"
count = 4
from = "m{i}"
to = "server"
rate = "1 kbit/s"
packet = "100 B"
[[connection]]
name = "c{i}"
count = 2
from = "server"
to = "m{i}"
congestion = "reno"
"#;
    let scenario = scenario(&[text]);
    let nodes: Vec<&str> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(nodes, ["gw0-0", "m0", "gw0-1", "m1", "gw1-0", "m2", "gw1-1", "m3", "server"]);
    assert_eq!(scenario.links[3].name, "m3-gw1-1");
    let wire = |link, forward| Hop::Wire { link, forward };
    assert_eq!(scenario.datagrams[3].hops, [wire(3, true), wire(7, true)]);
    assert_eq!(scenario.datagrams[3].on, [(0, 1000 * MS)]);
    assert_eq!(scenario.connections[1].subflows[0].hops, [wire(5, false), wire(1, false)]);
}

#[test]
fn changes_are_in_order_of_time_then_of_the_file() {
    let changes = r#"
[[change]]
at = "2 s"
link = "ad"
up = true
[[change]]
at = "1 s"
link = "ad"
direction = "reverse"
rate = "3 Mbit/s"
[[change]]
at = "2 s"
link = "air"
loss = 0.0
"#;
    let scenario = scenario(&[HEAD, &wire("ad", "A", "D"), &medium("air", r#"["A", "B"]"#), FLOW, changes]);
    let [first, second, third] = scenario.changes.as_slice() else { panic!("three changes") };
    assert_eq!(first.target, ChangeTarget::Link { link: 0, forward: false, reverse: true });
    assert_eq!((first.at, first.rate_bps, first.delay, first.up), (1000 * MS, Some(3_000_000), None, None));
    assert_eq!(second.target, ChangeTarget::Link { link: 0, forward: true, reverse: true });
    assert_eq!((second.at, second.up), (2000 * MS, Some(true)));
    assert_eq!((third.target, third.loss), (ChangeTarget::Medium(0), Some(Loss::None)));
}

#[test]
fn parameters_are_stored_as_the_algorithm_wants_them() {
    let params = |congestion: &str| {
        let flow = FLOW.replace("\"reno\"", congestion);
        scenario(&[HEAD, &wire("ad", "A", "D"), &flow]).connections[0].subflows[0].congestion.params.clone()
    };
    let algorithm = anabranch_cc::find("mfvl").expect("the registry has mfvl");
    let at =
        |name: &str| algorithm.params().iter().position(|param| param.name == name).expect("the parameter");
    let defaults: Vec<u32> = algorithm.params().iter().map(|param| param.default).collect();
    assert_eq!(params("\"mfvl\""), defaults);
    let given = params(
        r#"{ name = "mfvl", period = "10 s", bn_thresh = 0.25, detector = "rfc8382", literal = true, initial_fast = 2, vegas_alpha = "2 packets" }"#,
    );
    assert_eq!((given[at("period")], given[at("bn_thresh")], given[at("detector")]), (10_000_000, 250, 1));
    assert_eq!((given[at("literal")], given[at("initial_fast")], given[at("vegas_alpha")]), (1, 2, 2));
    assert_eq!(given[at("interval")], defaults[at("interval")]);
}

#[test]
fn the_canonical_form_ignores_layout_but_nothing_else() {
    let one = "name = 'a'\nduration = \"1 s\" # short\n[[node]]\nnames = ['A', 'B']\n[[medium]]\nname = 'm'\nstations = ['A','B']\nrate = '1 Mbit/s'\nqueue = 'unlimited'\ncw_min = 0x1f\nloss = 1.0e-2\n[[datagram]]\nname = 'd'\nfrom = 'A'\nto = 'B'\nrate = '1 bit/s'\npacket = '1 B'\n";
    let two = "duration = \"\"\"1 s\"\"\"\nname = \"a\"\ndatagram = [{ packet = '1 B', to = 'B', from = 'A', name = 'd', rate = '1 bit/s' }]\nnode = [ { names = [\n'A',\n'B'] } ]\nmedium = [{ queue = 'unlimited', loss = 0.01, name = 'm', cw_min = 31, rate = '1 Mbit/s', stations = ['A', 'B'] }]\n";
    let canonical =
        |text: &str, overrides: &[(String, String)]| load(text, "t", overrides).unwrap().canonical;
    let expected = r#"{"datagram":[{"from":"A","name":"d","packet":"1 B","rate":"1 bit/s","to":"B"}],"duration":"1 s","medium":[{"cw_min":31,"loss":1e-2,"name":"m","queue":"unlimited","rate":"1 Mbit/s","stations":["A","B"]}],"name":"a","node":[{"names":["A","B"]}]}"#;
    assert_eq!(canonical(one, &[]), expected);
    assert_eq!(canonical(two, &[]), expected);
    let set = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(canonical(two, &[set("duration", "2 s"), set("duration", "1 s")]), expected);
    assert_eq!(
        canonical(one, &[set("duration", "2 s")]),
        expected.replace(r#""duration":"1 s""#, r#""duration":"2 s""#)
    );
}

#[test]
fn overrides_reach_every_part_of_the_tree() {
    let text = [HEAD, &wire("a.d", "A", "D"), &wire("ab", "A", "B"), FLOW].concat();
    let with = |overrides: &[(&str, &str)]| {
        let overrides: Vec<_> =
            overrides.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        load(&text, "t", &overrides).unwrap_or_else(|error| panic!("{error}")).scenario
    };
    assert_eq!(with(&[("link.\"a.d\".rate", "2 Mbit/s")]).links[0].forward.rate_bps, 2_000_000);
    assert_eq!(with(&[("link.1.rate", "2 Mbit/s")]).links[1].forward.rate_bps, 2_000_000);
    assert_eq!(with(&[("link.1.rate", "'2 Mbit/s'")]).links[1].forward.rate_bps, 2_000_000);
    assert!(
        with(&[("link.*.loss", "0.5")]).links.iter().all(|link| link.reverse.loss == Loss::Bernoulli(0.5))
    );
    assert_eq!(with(&[("transport.profile", "ns2")]).connections[0].transport.segment_bytes, 1000);
    assert_eq!(with(&[("measure", "{ from = '1 s' }")]).measure.from, 1000 * MS);
    let vegas = [("connection.flow.congestion", "vegas"), ("connection.flow.congestion.alpha", "2 packets")];
    let congestion = with(&vegas).connections[0].subflows[0].congestion.clone();
    assert_eq!((congestion.name.as_str(), congestion.params[1]), ("vegas", 2));
}

#[test]
fn a_hundred_thousand_meters_load_in_seconds() {
    let text = r#"
name = "city"
duration = "1 s"
[[node]]
names = ["meter{i}", "home{i}"]
count = 100000
[[node]]
names = ["gw{i}"]
count = 200
[[node]]
name = "server"
[[link]]
count = 100000
between = ["meter{i}", "gw{i/500}"]
rate = "1 Mbit/s"
delay = "1 ms"
queue = "10 packets"
[[link]]
count = 100000
between = ["meter{i}", "home{i}"]
rate = "1 Mbit/s"
delay = "1 ms"
queue = "10 packets"
[[link]]
count = 200
between = ["gw{i}", "server"]
rate = "100 Mbit/s"
delay = "10 ms"
queue = "100 packets"
[[connection]]
name = "up{i}"
count = 100000
from = "meter{i}"
to = "server"
congestion = "reno"
[[connection]]
name = "down{i}"
count = 100000
from = "server"
to = "home{i}"
congestion = "reno"
"#;
    // The limit is generous: it tells a search per meter (minutes) from one per destination, not fast from slow.
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let city = scenario(&[text]);
        sender.send(Box::new(city))
    });
    let city = receiver.recv_timeout(Duration::from_secs(60)).expect("it loads in time");
    assert_eq!((city.nodes.len(), city.links.len(), city.connections.len()), (200_201, 200_200, 200_000));
    assert!(
        city.connections
            .iter()
            .enumerate()
            .all(|(at, flow)| { flow.subflows[0].hops.len() == if at < 100_000 { 2 } else { 3 } })
    );
}

#[test]
fn what_is_not_a_readable_text_file_is_refused() {
    let folder = std::env::temp_dir().join(format!("anabranch-scenario-test-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.join(name), bytes).unwrap();
        load_path(folder.join(name), &[]).unwrap_err().message
    };
    let at = |name: &str| folder.join(name).display().to_string();
    let messages = [
        (load_path(&folder, &[]).unwrap_err().message, format!("{}: a directory", folder.display())),
        (
            load_path(folder.join("none.toml"), &[]).unwrap_err().message,
            format!("{}: no such file", at("none.toml")),
        ),
        (file("empty.toml", b""), format!("{}: empty", at("empty.toml"))),
        (file("latin.toml", b"name = \"caf\xe9\"\n"), format!("{}: not UTF-8 at byte 11", at("latin.toml"))),
        (file("nul.toml", b"\0\0\0"), format!("{}:1:4: not TOML", at("nul.toml"))),
        (file("big.toml", &vec![b'#'; FILE_BYTES_MAX + 1]), format!("{}: larger than 16 MB", at("big.toml"))),
    ];
    std::fs::remove_dir_all(&folder).unwrap();
    for (message, expected) in messages {
        assert!(message.starts_with(&expected), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn an_interface_has_the_constants_of_its_radio_but_for_those_that_are_given() {
    let link = wire("ad", "A", "D") + &medium("air", r#"["D", "A"]"#);
    let interfaces = r#"
[[interface]]
node = "D"
link = "ad"
radio = "lte"
power = { b = "137.5 nJ/bit", theta = "1 W", tail_time = "2 s" }
[[interface]]
node = "A"
link = "air"
radio = "3g"
"#;
    let scenario = scenario(&[HEAD, &link, FLOW, interfaces]);
    let [lte, umts] = scenario.interfaces.as_slice() else { panic!("two interfaces") };
    assert_eq!(lte.names(&scenario), ("D", "ad"));
    assert_eq!(lte.attachment, Attachment::Link { link: 0, sends_forward: false });
    assert_eq!(umts.attachment, Attachment::Medium { medium: 0, station: 1 });
    assert_eq!(umts.radio, Radio::THREE_G);
    let mut expected = Radio::LTE;
    expected.linear = Linear { b_mw_per_mbps: 137.5, theta_mw: 1000.0 };
    expected.huang.tail[0].duration_ns = 2_000 * MS;
    assert_eq!(lte.radio, expected);
    let hops = &scenario.connections[0].subflows[0].hops;
    assert!(lte.is_on(hops) && !umts.is_on(hops));
}

#[test]
fn a_constant_written_out_is_the_constant_of_the_preset() {
    let interface = r#"
[[interface]]
node = "A"
link = "ad"
radio = "wifi"
power = { b = "52 nJ/bit", theta = "1288 mW", alpha_up = "438.39 nJ/bit", alpha_down = "51.97 nJ/bit", beta = "1288.04 mW", promotion = "1210.7 mW", promotion_time = "260.1 ms", tail = "1060 mW", tail_time = "11576 ms", second_tail = "0 mW", second_tail_time = "0 s", idle = "594.3 mW", idle_on = "43.2 ms", idle_period = "1280.2 ms" }
"#;
    let scenario = scenario(&[HEAD, &wire("ad", "A", "D"), FLOW, interface]);
    assert_eq!(scenario.interfaces[0].radio, Radio::LTE);
}

#[test]
fn a_subflow_goes_by_the_radio_of_the_opener_else_by_the_first_on_its_path() {
    let links =
        [wire("ab", "A", "B"), wire("bd", "B", "D"), wire("ac", "A", "C"), wire("cd", "C", "D")].concat();
    let flow = r#"
[[connection]]
name = "flow"
from = "A"
to = "D"
protocol = "mptcp"
congestion = "reno"
scheduler = { name = "emtcp", order = "listed", cap = 500 }
subflow = [{ via = ["B"] }, { via = ["C"] }]
[[interface]]
node = "D"
link = "bd"
radio = "3g"
[[interface]]
node = "A"
link = "ab"
radio = "wifi"
[[interface]]
node = "D"
link = "cd"
radio = "lte"
"#;
    let scenario = scenario(&[HEAD, &links, flow]);
    let flow = &scenario.connections[0];
    let radios: Vec<_> = flow.subflows.iter().map(|subflow| scenario.radio_of(flow, subflow)).collect();
    assert_eq!(radios, [Some(Radio::WIFI), Some(Radio::LTE)]);
    assert_eq!((flow.scheduler.name.as_str(), flow.scheduler.params.as_slice()), ("emtcp", &[1, 500][..]));
}

#[test]
fn what_flows_over_an_interface_is_told_from_the_rest() {
    let links = wire("ab", "A", "B") + &wire("cd", "C", "D");
    let flows = r#"
[[datagram]]
name = "one"
from = "B"
to = "A"
rate = "1 Mbit/s"
packet = "1 kB"
[[datagram]]
name = "two"
from = "C"
to = "D"
rate = "1 Mbit/s"
packet = "1 kB"
[[interface]]
node = "A"
link = "ab"
radio = "wifi"
"#;
    let scenario = scenario(&[HEAD, &links, flows]);
    let delivered = |index| if index == 0 { 5 } else { 100 };
    assert_eq!(scenario.delivered_over_interfaces(delivered, delivered), 5);
}

#[test]
fn events_of_the_file_and_late_subflows_are_in_order_of_time() {
    let flow = r#"
[[connection]]
name = "flow"
from = "A"
to = "D"
protocol = "mptcp"
congestion = "reno"
subflow = [{}, { start = "3 s" }, { announced = true }]
[[event]]
at = "5 s"
connection = "flow"
subflow = "2"
action = "remove"
[[event]]
at = "2 s"
connection = "flow"
subflow = "1"
action = "backup"
"#;
    let scenario = scenario(&[HEAD, &wire("w", "A", "D"), flow]);
    let events: Vec<_> =
        scenario.events.iter().map(|event| (event.at, event.subflow, event.action)).collect();
    let second = 1_000 * MS;
    assert_eq!(
        events,
        [(2 * second, 1, Action::Backup), (3 * second, 1, Action::Open), (5 * second, 2, Action::Remove)]
    );
    let announced: Vec<bool> =
        scenario.connections[0].subflows.iter().map(|subflow| subflow.announced).collect();
    assert_eq!(announced, [false, false, true]);
}

#[test]
fn no_profile_marks_penalises_or_retransmits_early_by_itself() {
    for profile in ["ns2", "rfc", "linux"] {
        let transport = format!("[transport]\nprofile = {profile:?}\n");
        let of_file = scenario(&[HEAD, &transport, &wire("w", "A", "D"), FLOW]).connections[0].transport;
        assert!(!of_file.ecn && !of_file.opportunistic_retransmission && !of_file.penalisation);
        // net.mptcp.stale_loss_cnt.
        assert_eq!(of_file.stale_after, (profile == "linux").then_some(4));
        assert!(!of_file.send_buffer_tuning);
    }
    let keys = "[transport]\necn = true\nopportunistic_retransmission = true\npenalisation = true\nstale_after = 3\nsend_buffer_tuning = true\n";
    let of_file = scenario(&[HEAD, keys, &wire("w", "A", "D"), FLOW]).connections[0].transport;
    assert!(of_file.ecn && of_file.opportunistic_retransmission && of_file.penalisation);
    assert!(of_file.send_buffer_tuning);
    assert_eq!(of_file.stale_after, Some(3));
}
