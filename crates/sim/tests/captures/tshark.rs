//! Captures as tshark reads them.

use std::{collections::BTreeSet, io::Write as _, path::Path, process::Command};

use crate::runs::{Recorded, eventful, mptcp, tcp};

/// What tshark prints of the packets of a file that `filter` takes; `None`, with a line that says so, without tshark.
pub(crate) fn tshark(test: &str, file: &Path, filter: &str, fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let home = tempfile::tempdir().expect("a temporary folder can be made");
    let output = Command::new("tshark")
        .args(["-n", "-r"])
        .arg(file)
        .args([
            "-o",
            "ip.check_checksum:TRUE",
            "-o",
            "tcp.check_checksum:TRUE",
            "-o",
            "udp.check_checksum:TRUE",
        ])
        // Payload is zeros, which no protocol above TCP explains.
        .args(["-o", "tcp.try_heuristic_first:FALSE"])
        .args(["-Y", filter, "-T", "fields"])
        .args(fields.iter().flat_map(|field| ["-e", field]))
        // The user's own settings must not matter.
        .env("HOME", home.path())
        .env_remove("XDG_CONFIG_HOME")
        .output();
    let Ok(output) = output else {
        let line = format!("SKIPPED: {test}: no tshark; enable with: apt-get install tshark\n");
        std::io::stderr().write_all(line.as_bytes()).expect("stderr is open");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("numbers and names");
    Some(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

fn cases() -> Vec<(String, String)> {
    let mut cases = Vec::new();
    for profile in ["rfc", "linux", "ns2"] {
        for ip in ["v4", "v6"] {
            cases.push((format!("TCP, {profile}, {ip}"), tcp(profile, ip)));
            cases.push((format!("MPTCP, {profile}, {ip}"), mptcp(profile, ip)));
        }
    }
    for (profile, ip) in [("rfc", "v4"), ("linux", "v6"), ("ns2", "v4")] {
        cases.push((format!("MPTCP with events, {profile}, {ip}"), eventful(profile, ip)));
    }
    cases
}

#[test]
fn no_packet_is_malformed_and_every_checksum_is_good() {
    let test = "no_packet_is_malformed_and_every_checksum_is_good";
    for (case, text) in cases() {
        let run = Recorded::new(&text, 1);
        let wrong = "_ws.malformed || _ws.expert.severity == \"Error\" || ip.checksum.status == \"Bad\" \
                     || !((tcp && tcp.checksum.status == \"Good\") || (udp && udp.checksum.status == \"Good\"))";
        let fields = ["frame.number", "frame.interface_name", "_ws.col.Info"];
        let Some(found) = tshark(test, &run.packets(), wrong, &fields) else { return };
        assert!(found.is_empty(), "{case}: {:?}", found[0]);
        let Some(all) = tshark(test, &run.packets(), "ip || ipv6", &["frame.number"]) else { return };
        assert!(all.len() > 1000, "{case}: {}", all.len());
    }
}

#[test]
fn retransmissions_and_packets_are_as_many_as_the_summary_says() {
    let test = "retransmissions_and_packets_are_as_many_as_the_summary_says";
    for (case, text) in cases() {
        let run = Recorded::new(&text, 1);
        let view = run.at("S");
        let Some(data) = tshark(test, &view, "tcp.len > 0", &["frame.number"]) else { return };
        assert_eq!(data.len() as u64, run.figure("up", "packets_sent"), "{case}");
        // Wireshark calls those that follow soon on others out of order.
        let again = "tcp.analysis.retransmission || tcp.analysis.out_of_order";
        let Some(again) = tshark(test, &view, again, &["frame.number"]) else { return };
        assert_eq!(again.len() as u64, run.figure("up", "retransmits"), "{case}");
        let Some(gaps) = tshark(test, &view, "tcp.analysis.lost_segment", &["frame.number"]) else { return };
        assert!(gaps.is_empty(), "{case}: the sender's sequence numbers have no gaps");
    }
}

#[test]
fn both_subflows_belong_to_one_connection_with_right_tokens_and_authentication() {
    let test = "both_subflows_belong_to_one_connection_with_right_tokens_and_authentication";
    // In the profile ns2 joins leave together with the first SYN, before a reader can know the token.
    for (profile, ip) in [("rfc", "v4"), ("linux", "v6"), ("linux", "v4")] {
        let run = Recorded::new(&mptcp(profile, ip), 1);
        let view = run.at("S");
        let streams = ["tcp.stream", "mptcp.stream"];
        let Some(found) = tshark(test, &view, "tcp.len > 0", &streams) else { return };
        let found: BTreeSet<(&str, &str)> =
            found.iter().map(|line| (line[0].as_str(), line[1].as_str())).collect();
        assert_eq!(found, BTreeSet::from([("0", "0"), ("1", "0")]), "{profile} {ip}");
        let fields = ["tcp.options.mptcp.recvtok", "mptcp.expected_token"];
        let joins = "tcp.options.mptcp.subtype == 1 && tcp.flags.syn == 1 && tcp.flags.ack == 0";
        let Some(joins) = tshark(test, &view, joins, &fields) else { return };
        assert!(!joins.is_empty());
        for join in joins {
            let number = |text: &str| {
                let digits = text.trim_start_matches("0x");
                u64::from_str_radix(digits, if digits.len() < text.len() { 16 } else { 10 })
                    .expect("a number")
            };
            let expected = tshark(test, &view, "tcp.options.mptcp.subtype == 0", &["mptcp.expected_token"]);
            let expected: BTreeSet<u64> = expected
                .iter()
                .flatten()
                .filter_map(|line| Some(number(line.first().filter(|t| !t.is_empty())?)))
                .collect();
            assert!(expected.contains(&number(&join[0])), "{join:?} of {expected:?}");
        }
    }
}

#[test]
fn data_sequence_numbers_cover_the_file_once() {
    let test = "data_sequence_numbers_cover_the_file_once";
    for (profile, ip) in [("rfc", "v4"), ("linux", "v6")] {
        let run = Recorded::new(&mptcp(profile, ip), 1);
        let fields = ["mptcp.dss.dsn", "tcp.len"];
        let Some(found) = tshark(test, &run.at("D"), "tcp.len > 0", &fields) else { return };
        let number =
            |text: &String| text.split(',').next().and_then(|one| one.parse().ok()).expect("a number");
        let pieces: BTreeSet<(u64, u64)> =
            found.iter().map(|line| (number(&line[0]), number(&line[1]))).collect();
        let mut next = pieces.first().expect("data has come").0;
        assert_eq!(next, 1, "{profile} {ip}: relative to the key's initial number");
        for (begin, len) in pieces {
            assert_eq!(begin, next, "{profile} {ip}");
            next = begin + len;
        }
        assert_eq!(next, 1_000_124, "{profile} {ip}");
    }
}
