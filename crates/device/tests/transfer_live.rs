//! `anabranchd send` and `receive` across network namespaces: killed at random points, with links that die. Whatever happens, the file arrives
//! whole, or the command fails and the same command goes on.

mod transfer_lab;

use std::{fs, io::Write as _, os::unix::fs::FileExt as _, process::Stdio, thread, time::Duration};

use nix::sys::signal::Signal;
use serde_json::Value;
use transfer_lab::{
    ADDRESSES, GRAIN, Place, Running, hash, json, lab::random::Random, number, output, skip::skip,
    write_noise,
};

#[test]
fn whoever_is_killed_and_when_the_file_arrives_whole_in_the_end() {
    if skip("whoever_is_killed_and_when_the_file_arrives_whole_in_the_end") {
        return;
    }
    let place = Place::new();
    let (cases, first) = (number("ANABRANCH_TRANSFER_CASES", 6), number("ANABRANCH_TRANSFER_SEED", 1));
    let (mut kills, mut flaps, mut resumed) = (0, 0, 0);
    for seed in first..first + cases {
        let mut random = Random(seed);
        let bytes = match random.below(8) {
            0 => [0, 1, GRAIN - 1, GRAIN, GRAIN + 1][random.below(5) as usize],
            _ => 1 + random.below(12 << 20),
        };
        let name = format!("case-{seed}");
        write_noise(&place.file(&name), bytes, seed);
        let paths = 1 + random.below(4) as usize;
        let mut sending: String =
            ADDRESSES[..paths].iter().map(|address| format!(" --via {address}")).collect();
        let is_secret = random.below(2) == 0;
        // A journal is written once a second or every 8 MiB: some transfers last longer than that, others do not.
        let rate = [2, 8, 64][random.below(3) as usize];
        let receiving = format!("--max-rate {rate}M");
        if random.below(3) == 0 {
            sending += " --memory 512K";
        }
        let what = format!(
            "ANABRANCH_TRANSFER_SEED={seed}: {bytes} bytes, {sending}, {receiving}, secret {is_secret}"
        );
        let mut receiver = place.receive(is_secret, &receiving);
        let mut kills_left = 1 + random.below(3);
        let mut sender = Running(place.send(&name, is_secret, &sending).spawn().unwrap());
        let code = loop {
            if kills_left == 0 {
                break sender.end();
            }
            thread::sleep(Duration::from_millis(random.below(900)));
            kills_left -= 1;
            kills += 1;
            match random.below(4) {
                3 => {
                    let link = 1 + random.below(2);
                    place.flap(link, Duration::from_millis(random.below(1500)));
                    flaps += 1;
                    continue;
                }
                0 => {
                    receiver.signal(Signal::SIGKILL);
                    receiver.end();
                    receiver = place.receive(is_secret, &receiving);
                    continue;
                }
                1 => sender.signal(Signal::SIGKILL),
                _ => sender.signal(Signal::SIGINT),
            }
            let code = sender.end();
            assert!(matches!(code, None | Some(0 | 130)), "{what}: {code:?}");
            sender = Running(place.send(&name, is_secret, &sending).spawn().unwrap());
        };
        let mut said = String::new();
        std::io::Read::read_to_string(&mut sender.0.stdout.take().unwrap(), &mut said).unwrap();
        assert_eq!(code, Some(0), "{what}: {said}");
        let outcome: Value =
            serde_json::from_str(&said).unwrap_or_else(|error| panic!("{what}: {error}: {said}"));
        resumed += u64::from(outcome["files"][0]["resumed_bytes"].as_u64().unwrap() > 0);
        place.check(&name, &what);
        fs::remove_file(place.file(&name)).unwrap();
    }
    let kills = kills - flaps;
    let line = format!(
        "{cases} cases, {kills} kills and {flaps} links down for a while, {resumed} of them resumed or already there\n"
    );
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

#[test]
fn a_path_that_dies_costs_only_what_was_under_way_and_all_paths_may_die_and_return() {
    if skip("a_path_that_dies_costs_only_what_was_under_way_and_all_paths_may_die_and_return") {
        return;
    }
    let place = Place::new();
    let bytes = 12 << 20;
    write_noise(&place.file("large"), bytes, 1);
    let _receiver = place.receive(true, "--max-rate 4M");
    let mut sender = Running(place.send("large", true, "--timeout 3").spawn().unwrap());
    thread::sleep(Duration::from_millis(800));
    place.lab.client.ip("link set c2 down");
    thread::sleep(Duration::from_millis(800));
    place.lab.client.ip("link set c1 down");
    thread::sleep(Duration::from_secs(6));
    place.up(1);
    let code = sender.end();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut sender.0.stdout.take().unwrap(), &mut said).unwrap();
    assert_eq!(code, Some(0), "{said}");
    let outcome: Value = serde_json::from_str(&said).unwrap();
    let paths = outcome["paths"].as_array().unwrap();
    assert_eq!(paths.iter().map(|path| path["name"].as_str().unwrap()).collect::<Vec<_>>(), ["c1", "c2"]);
    assert!(paths.iter().all(|path| path["arrived_bytes"].as_u64().unwrap() > 0), "{said}");
    let connections = |path: usize| paths[path]["connections"].as_u64().unwrap();
    assert!(connections(0) >= 2 && connections(1) == 1, "the first came back, the second could not: {said}");
    place.check("large", "two links that die");
}

#[test]
fn a_large_file_with_holes_arrives_whole_over_both_links_with_little_memory() {
    if skip("a_large_file_with_holes_arrives_whole_over_both_links_with_little_memory") {
        return;
    }
    let place = Place::new();
    let bytes = 200 << 20;
    let file = fs::File::create(place.file("holes")).unwrap();
    file.set_len(bytes).unwrap();
    for at in [0, 70 << 20, bytes - 5] {
        file.write_all_at(b"noise", at).unwrap();
    }
    let mut receiver = place.receive(true, "--memory 1M --once");
    let said = output(&mut place.send("holes", true, "--memory 256K"));
    let outcome = json(&said);
    assert_eq!(outcome["files"][0]["blake3"], hash(&place.file("holes")).to_hex().as_str());
    assert!(
        outcome["paths"].as_array().unwrap().iter().all(|path| path["transport"] == "MPTCP"),
        "{outcome}"
    );
    assert_eq!(receiver.end(), Some(0), "the sender has left");
    place.check("holes", "a large file with holes");
}

#[test]
fn without_multipath_tcp_the_sender_takes_tcp_and_says_so() {
    if skip("without_multipath_tcp_the_sender_takes_tcp_and_says_so") {
        return;
    }
    let place = Place::new();
    write_noise(&place.file("a"), 300_000, 1);
    let _receiver = place.receive(false, "");
    place.lab.client.run("sysctl", "-qw net.mptcp.enabled=0");
    let said = output(place.send("a", false, "").stderr(Stdio::piped()));
    let outcome = json(&said);
    assert!(outcome["paths"].as_array().unwrap().iter().all(|path| path["transport"] == "TCP"), "{outcome}");
    let errors = String::from_utf8(said.stderr).unwrap();
    assert!(errors.contains("c1: this kernel has no Multipath TCP"), "{errors}");
    place.check("a", "plain TCP");
}
