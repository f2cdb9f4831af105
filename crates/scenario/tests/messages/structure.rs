//! Keys, types and names.

use super::{edited, message};

#[test]
fn keys_are_known_and_complete() {
    edited(
        r#"duration = "10 s""#,
        r#"durration = "10 s""#,
        r#"f.toml:2:1: durration: unknown key; did you mean "duration"?"#,
    );
    edited(
        r#"profile = "ns2""#,
        r#"profile = "ns2"
windowcap = "50 packets""#,
        r#"f.toml:7:1: transport.windowcap: unknown key; did you mean "window_cap"?"#,
    );
    edited(
        r#"stations = ["S", "R2", "D"]"#,
        r#"stations = ["S", "R2", "D"]
frequency = "2.4 GHz""#,
        "f.toml:25:1: medium.wlan.frequency: unknown key; expected one of name, stations, phy, rate, rates, fallback, transmitter, basic_rate, delay, queue, loss, ack_loss, slot, sifs, preamble, mac_header, cw_min, cw_max, retry, long_retry, rts_threshold, after_failure, backoff_when_busy",
    );
    edited(
        r#"reverse = { queue = "unlimited" }"#,
        r#"reverse = { que = "unlimited" }"#,
        r#"f.toml:21:13: link.1.reverse.que: unknown key; did you mean "queue"?"#,
    );
    edited(
        r#"name = "test"
"#,
        "",
        "f.toml:1:1: name: missing; expected a name in quotes",
    );
    edited(
        r#"rate = "100 kbit/s"
"#,
        "",
        r#"f.toml:40:1: datagram.cbr.rate: missing; expected a rate such as "3 Mbit/s" (units: bit/s, kbit/s, Mbit/s, Gbit/s)"#,
    );
    edited(
        r#"congestion = "reno"
"#,
        "",
        r#"f.toml:27:1: connection.flow.congestion: missing; expected a congestion control such as "reno" or a table such as { name = "reno" }"#,
    );
    edited("[[change]]", "[[chnage]]", r#"f.toml:48:3: chnage: unknown key; did you mean "change"?"#);
}

#[test]
fn values_have_the_right_type() {
    edited(
        r#"duration = "10 s""#,
        "duration = 10",
        r#"f.toml:2:12: duration: 10 has no unit; expected a time such as "50 ms" (units: ns, us, ms, s, min, h)"#,
    );
    edited(
        r#"duration = "10 s""#,
        "duration = true",
        r#"f.toml:2:12: duration: true is a boolean; expected a time such as "50 ms" (units: ns, us, ms, s, min, h)"#,
    );
    edited(r#"name = "test""#, "name = 3", "f.toml:1:8: name: 3 is a number; expected a name in quotes");
    edited(
        r#"names = ["S", "R1", "R2", "D", "alone"]"#,
        r#"names = "S""#,
        r#"f.toml:8:9: node.0.names: "S" is text; expected an array of names in quotes"#,
    );
    edited(
        r#"names = ["S", "R1", "R2", "D", "alone"]"#,
        r#"names = ["S", 4]"#,
        "f.toml:8:15: node.0.names.1: 4 is a number; expected a name in quotes",
    );
    edited(
        r#"[measure]
from = "1 s""#,
        r#"measure = "all""#,
        r#"f.toml:3:11: measure: "all" is text; expected a table such as [measure]"#,
    );
    edited(
        "[[medium]]",
        "[medium]",
        "f.toml:22:1: medium: this is a table; expected tables that begin with [[medium]]",
    );
    edited(
        r#"from = "1 s""#,
        "from = 1979-05-27",
        r#"f.toml:4:8: measure.from: this is a date; expected a time such as "50 ms" (units: ns, us, ms, s, min, h)"#,
    );
    edited(
        r#"on = [["1 s", "2 s"], ["3 s", "4 s"]]"#,
        r#"on = ["1 s", "2 s"]"#,
        r#"f.toml:46:7: datagram.cbr.on: "1 s" is text; expected pairs of times such as [["5 s", "15 s"], ["35 s", "45 s"]]"#,
    );
    edited(
        r#"on = [["1 s", "2 s"], ["3 s", "4 s"]]"#,
        r#"on = [["1 s", "2 s", "3 s"]]"#,
        r#"f.toml:46:7: datagram.cbr.on: this pair has 3 elements; expected pairs of times such as [["5 s", "15 s"], ["35 s", "45 s"]]"#,
    );
    edited(
        r#"name = "radio""#,
        r#"backup = "yes""#,
        r#"f.toml:39:10: connection.flow.subflow.1.backup: "yes" is text; expected true or false"#,
    );
    edited(
        "[transport]",
        "[transport]\nsend_buffer_tuning = 1",
        "f.toml:6:22: transport.send_buffer_tuning: 1 is a number; expected true or false",
    );
    edited(
        r#"traffic = { kind = "ftp", start = "uniform(0 s, 1 s)", stop = "9 s" }"#,
        r#"traffic = "ftp""#,
        r#"f.toml:34:11: connection.flow.traffic: "ftp" is text; expected a table such as [traffic]"#,
    );
    edited(
        r#"queue = "50 packets""#,
        r#"queue = "50 packets"
cw_min = 31.5"#,
        "f.toml:27:10: medium.wlan.cw_min: 31.5 is a number; expected an integer from 1 to 65535",
    );
}

#[test]
fn names_are_unique_and_known() {
    edited(
        r#"between = ["R1", "D"]"#,
        r#"between = ["R3", "D"]"#,
        r#"f.toml:16:12: link.1.between.0: no node is called "R3"; did you mean "R1"?"#,
    );
    edited(
        r#"between = ["R1", "D"]"#,
        r#"between = ["Q-router", "D"]"#,
        r#"f.toml:16:12: link.1.between.0: no node is called "Q-router"; expected one of S, R1, R2, D, alone"#,
    );
    edited(
        r#"between = ["R1", "D"]"#,
        r#"between = ["R1", "R1"]"#,
        "f.toml:16:11: link.1.between: the link joins a node to itself; expected two different nodes",
    );
    edited(
        r#"between = ["R1", "D"]"#,
        r#"between = ["R1", "R2", "D"]"#,
        "f.toml:16:11: link.1.between: 3 names; expected two",
    );
    edited(
        r#"between = ["R1", "D"]"#,
        r#"between = ["R1"]"#,
        "f.toml:16:11: link.1.between: the array has 1 elements; expected an array of at least 2 names in quotes",
    );
    edited(
        r#"stations = ["S", "R2", "D"]"#,
        r#"stations = ["S", "R2", "S"]"#,
        "f.toml:24:24: medium.wlan.stations.2: the station is named twice; expected different nodes",
    );
    edited(
        r#"names = ["S", "R1", "R2", "D", "alone"]"#,
        r#"names = ["S", "R1", "R2", "D", "S"]"#,
        r#"f.toml:8:9: node.0.names: "S" is the second node of that name; expected another name"#,
    );
    edited(
        r#"names = ["S", "R1", "R2", "D", "alone"]"#,
        r#"names = ["S", "R1", "R2", "D", "a b"]"#,
        r#"f.toml:8:32: node.0.names.4: "a b" is not a name; expected letters, digits, "-", "_" and ".""#,
    );
    edited(
        r#"names = ["S", "R1", "R2", "D", "alone"]"#,
        r#"name = "S"
names = ["R1", "R2", "D"]"#,
        "f.toml:9:9: node.S.names: beside name; expected one of the two",
    );
    edited(
        r#"names = ["S", "R1", "R2", "D", "alone"]"#,
        "count = 3",
        "f.toml:7:1: node.0.name: missing; expected a name in quotes",
    );
    edited(
        r#"name = "wlan""#,
        r#"name = "access""#,
        r#"f.toml:23:8: medium.access.name: "access" is the second link or medium of that name; expected another name"#,
    );
    edited(
        r#"name = "cbr""#,
        r#"name = "flow""#,
        r#"f.toml:41:8: datagram.flow.name: "flow" is the second connection or datagram flow of that name; expected another name"#,
    );
    edited(
        r#"name = "radio""#,
        r#"name = "wired""#,
        r#"f.toml:39:8: connection.flow.subflow.wired.name: "wired" is the second subflow of that name; expected another name"#,
    );
    edited(
        r#"link = "access""#,
        r#"link = "acess""#,
        r#"f.toml:50:8: change.0.link: no link or medium is called "acess"; did you mean "access"?"#,
    );
    edited(
        r#"congestion = "reno""#,
        r#"congestion = "rino""#,
        r#"f.toml:32:14: connection.flow.congestion: no congestion control is called "rino"; did you mean "reno"?"#,
    );
    edited(
        r#"congestion = "reno""#,
        r#"congestion = { nam = "reno" }"#,
        "f.toml:32:14: connection.flow.congestion.name: missing; expected a congestion control",
    );
    edited(
        r#"congestion = "reno""#,
        "congestion = { name = 5 }",
        "f.toml:32:23: connection.flow.congestion.name: 5 is a number; expected the name of a congestion control in quotes",
    );
    edited(
        r#"congestion = "reno""#,
        r#"congestion = { name = "reno", alpha = 1 }"#,
        "f.toml:32:31: connection.flow.congestion.alpha: reno has no parameters",
    );
    edited(
        r#"congestion = "reno""#,
        "congestion = 5",
        r#"f.toml:32:14: connection.flow.congestion: 5 is a number; expected a congestion control such as "reno" or a table such as { name = "reno" }"#,
    );
    edited(
        r#"profile = "ns2""#,
        r#"profile = "ns3""#,
        r#"f.toml:6:11: transport.profile: "ns3" is not known; expected one of ns2, rfc, linux; did you mean "ns2"?"#,
    );
    edited(
        r#"protocol = "mptcp""#,
        r#"protocol = "udp""#,
        r#"f.toml:31:12: connection.flow.protocol: "udp" is not known; expected one of tcp, mptcp"#,
    );
}

#[test]
fn families_are_spelled_out() {
    edited(
        r#"name = "access""#,
        r#"name = "access"
count = 2"#,
        "f.toml:10:8: link.access.name: the members of a family need different names; expected {i} in the name",
    );
    edited(
        r#"name = "access""#,
        r#"name = "access{i}""#,
        "f.toml:10:8: link.access{i}.name: {i} needs a family; expected the key count beside it",
    );
    edited(
        r#"name = "access""#,
        r#"name = "access{j}""#,
        r#"f.toml:10:8: link.access{j}.name: "access{j}" has braces that are not {i}, {i/K} or {i%K}"#,
    );
    edited(
        r#"name = "access"
between = ["S", "R1"]"#,
        r#"name = "access"
between = ["S", "R{i}"]"#,
        "f.toml:11:17: link.access.between.1: {i} needs a family; expected the key count beside it",
    );
    edited(
        r#"name = "access"
between = ["S", "R1"]"#,
        r#"name = "access{i}"
count = 9
between = ["S", "R{i}"]"#,
        r#"f.toml:12:17: link.access{i}.between.1: no node is called "R0"; did you mean "R1"?"#,
    );
    edited(
        r#"name = "access"
between = ["S", "R1"]"#,
        r#"name = "access{i/2}"
count = 9
between = ["S", "R1"]"#,
        r#"f.toml:10:8: link.access{i/2}.name: "access0" is the second link or medium of that name; expected another name"#,
    );
    edited(
        r#"name = "access""#,
        r#"name = "access{i}"
count = 0"#,
        "f.toml:11:9: link.access{i}.count: 0 is a number; expected an integer from 1 to 1000000",
    );
    edited(
        r#"name = "access""#,
        r#"name = "access{i}"
count = 100000000"#,
        "f.toml:11:9: link.access{i}.count: 100000000 is a number; expected an integer from 1 to 1000000",
    );
}

#[test]
fn a_file_that_is_no_scenario_is_refused() {
    for (text, expected) in [
        ("", "f.toml: empty; expected a scenario with at least name, duration, [[node]] and a flow"),
        ("   \n\t", "f.toml: empty; expected a scenario with at least name, duration, [[node]] and a flow"),
        ("name = \n", "f.toml:1:8: not TOML: string values must be quoted, expected literal string"),
        ("a = 1\na = 2\n", "f.toml:2:1: not TOML: duplicate key"),
        ("# only a comment\n", "f.toml:1:1: name: missing; expected a name in quotes"),
        (
            r#"name = "x"
duration = "1 s"
node = []
"#,
            "f.toml:1:1: nothing to run; expected at least one [[connection]] or [[datagram]]",
        ),
        (
            r#"name = "x"
duration = "1 s"
node = [[[[["#,
            "f.toml:3:13: not TOML: unclosed array, expected `]`",
        ),
    ] {
        assert_eq!(message(text, &[]), expected);
    }
}
