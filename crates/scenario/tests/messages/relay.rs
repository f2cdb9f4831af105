//! Relays and the connections that they join.

use super::{BASE, message};

/// The base scenario with two more connections and a relay with these lines.
#[track_caller]
fn relay(lines: &str, expected: &str) {
    let more = format!(
        "{BASE}\n[[connection]]\nname = \"up\"\nfrom = \"S\"\nto = \"R1\"\ncongestion = \"reno\"\n\
         transport.receive_buffer = \"64 kB\"\n\
         [[connection]]\nname = \"on\"\nfrom = \"R1\"\nto = \"D\"\ncongestion = \"reno\"\n\
         [[connection]]\nname = \"own\"\nfrom = \"R1\"\nto = \"D\"\ncongestion = \"reno\"\n\
         traffic = {{ kind = \"file\", size = \"1 kB\" }}\n\
         [[relay]]\nname = \"gateway\"\n{lines}"
    );
    assert_eq!(message(&more, &[]), expected);
}

#[test]
fn a_relay_joins_two_connections_at_one_node() {
    relay("in = \"up\"\nout = \"on\"", "accepted");
    relay(
        "in = \"up\"\nout = \"no\"",
        r#"f.toml:73:7: relay.gateway.out: no connection is called "no"; did you mean "on"?"#,
    );
    relay(
        "in = \"up\"\nout = \"flow\"",
        "f.toml:73:7: relay.gateway.out: it does not begin where the other one ends; expected a connection from that node",
    );
    relay(
        "in = \"up\"\nout = \"own\"",
        "f.toml:73:7: relay.gateway.out: it has traffic of its own, or another relay writes to it; expected one without `traffic`",
    );
    relay(
        "in = \"flow\"\nout = \"on\"",
        "f.toml:72:6: relay.gateway.in: the receive buffer of flow is unlimited, so nothing would hold its sender back; expected a transport.receive_buffer",
    );
    relay(
        "in = \"up\"\nout = \"on\"\n[[relay]]\nname = \"second\"\nin = \"up\"\nout = \"on\"",
        "f.toml:77:7: relay.second.out: it has traffic of its own, or another relay writes to it; expected one without `traffic`",
    );
    relay(
        "in = \"up\"\nout = \"on\"\n[[relay]]\nname = \"up\"\nin = \"up\"\nout = \"on\"",
        r#"f.toml:75:8: relay.up.name: "up" is the second connection, datagram flow or relay of that name; expected another name"#,
    );
}
