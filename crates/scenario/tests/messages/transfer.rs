//! Transfers and the connections that carry them.

use super::{BASE, message};

/// The base scenario with connections on both sides of a router and a transfer with these lines.
#[track_caller]
fn transfer(lines: &str, expected: &str) {
    let connection = |name: &str, from: &str, to: &str| {
        format!(
            "[[connection]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\ncongestion = \"reno\"\n\
             transport.receive_buffer = \"64 kB\"\n"
        )
    };
    let more = format!(
        "{BASE}\n{}{}{}{}{}traffic = {{ kind = \"file\", size = \"1 kB\" }}\n\
         [[relay]]\nname = \"gateway\"\nin = \"up\"\nout = \"on\"\n\
         [[transfer]]\nname = \"log\"\nsize = \"1 MB\"\n{lines}",
        connection("up", "S", "R1"),
        connection("on", "R1", "D"),
        connection("a", "S", "D"),
        connection("b", "S", "D"),
        connection("own", "S", "D"),
    );
    assert_eq!(message(&more, &[]), expected);
}

#[test]
fn a_transfer_goes_over_connections_between_the_same_two_nodes() {
    transfer("over = [\"a\", \"b\"]", "accepted");
    transfer("over = [\"a\", \"up\"]", "accepted");
    transfer(
        "over = [\"a\", \"x\"]",
        r#"f.toml:91:14: transfer.log.over.1: no connection is called "x"; did you mean "a"?"#,
    );
    transfer(
        "over = [\"a\", \"own\"]",
        "f.toml:91:14: transfer.log.over.1: own has traffic of its own, or a relay or a transfer writes to it; expected one without `traffic`",
    );
    transfer(
        "over = [\"a\", \"a\"]",
        "f.toml:91:14: transfer.log.over.1: a has traffic of its own, or a relay or a transfer writes to it; expected one without `traffic`",
    );
    transfer(
        "over = [\"a\", \"on\"]",
        "f.toml:91:14: transfer.log.over.1: on has traffic of its own, or a relay or a transfer writes to it; expected one without `traffic`",
    );
    transfer(
        "over = [\"up\"]\ndirection = \"download\"",
        r#"f.toml:91:9: transfer.log.over.0: a relay reads up, and carries data upwards; expected direction = "upload""#,
    );
    transfer(
        "over = []",
        "f.toml:91:8: transfer.log.over: the array has 0 elements; expected an array of names in quotes",
    );
    transfer(
        "over = [\"a\"]\n[[transfer]]\nname = \"up\"\nsize = \"1 B\"\nover = [\"b\"]",
        r#"f.toml:93:8: transfer.up.name: "up" is the second connection, datagram flow, relay or transfer of that name; expected another name"#,
    );
    transfer(
        "over = [\"a\"]\n[[transfer]]\nname = \"core\"\nsize = \"1 GB\"\nchunk = \"1 B\"\nover = [\"b\"]",
        "f.toml:95:9: transfer.core.chunk: 1 B make 1000000000 chunks of 1 GB; expected at most 10000000",
    );
    transfer(
        "over = [\"a\"]\nchunk = \"0 B\"",
        r#"f.toml:92:9: transfer.log.chunk: 0 B is too small; the least is 1 B; expected a size such as "64 kB" (units: B, kB, MB, GB, KiB, MiB, GiB)"#,
    );
    transfer(
        "over = [\"a\"]\ngive_up = \"0 s\"",
        r#"f.toml:92:11: transfer.log.give_up: 0 ns is too small; the least is 1 ms; expected a time such as "50 ms" (units: ns, us, ms, s, min, h)"#,
    );
    transfer(
        "over = [\"a\"]\nchunks = \"1 kB\"",
        r#"f.toml:92:1: transfer.log.chunks: unknown key; did you mean "chunk"?"#,
    );
    transfer(
        "over = [\"a\", \"b{i}\"]",
        "f.toml:91:14: transfer.log.over.1: {i} needs a family; expected the key count beside it",
    );
}
