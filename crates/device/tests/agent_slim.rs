//! What the slim build of the agent takes (`make agent-slim`): bytes of the file, memory, wake-ups. Other builds are larger, so
//! that these tests are skipped where it has not been built.

mod live;

use std::{
    fs,
    io::Write as _,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use live::{
    PORT,
    agent::{Agent, config},
    common::{
        lab::{Lab, SERVER},
        pair::socket,
        skip,
    },
    wait,
};
use socket2::{Domain, Socket};

const CONNECTIONS: usize = 100;
const MIB: u64 = 1 << 20;

/// The slim build; says that the test is skipped if there is none.
fn slim(test: &str) -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), PathBuf::from);
    let triples = fs::read_dir(target).into_iter().flatten().flatten();
    let found = triples.map(|entry| entry.path().join("slim/anabranchd")).find(|path| path.is_file());
    if found.is_none() {
        let line = format!("SKIPPED: {test}: there is no slim build; enable with: make agent-slim\n");
        std::io::stderr().write_all(line.as_bytes()).expect("stderr is open");
    }
    found
}

fn say(line: &str) {
    std::io::stdout().write_all(line.as_bytes()).expect("stdout is open");
}

#[test]
fn the_slim_build_has_less_than_4_mib_and_needs_no_library() {
    let Some(program) = slim("the_slim_build_has_less_than_4_mib_and_needs_no_library") else { return };
    let file = fs::read(program).expect("it is readable");
    say(&format!("{} bytes\n", file.len()));
    assert!((file.len() as u64) < 4 * MIB, "{}", file.len());
    // An ELF file that needs a loader names it in a segment of type 3 (elf(5), 64 bits).
    let word = |at: usize, bytes: usize| {
        file[at..at + bytes].iter().rev().fold(0, |word, &byte| word << 8 | usize::from(byte))
    };
    let (table, entry, count) = (word(32, 8), word(54, 2), word(56, 2));
    assert!(count > 0);
    assert!((0..count).all(|number| word(table + number * entry, 4) != 3), "it is not static");
}

/// Connections of the lab's first link, and all their sockets.
fn connections(lab: &Lab) -> Vec<Socket> {
    let listener = lab.server.enter(|| {
        let listener = socket(Domain::IPV4);
        listener.bind(&SocketAddr::from(([0, 0, 0, 0], PORT)).into()).expect("the port is free");
        listener.listen(128).expect("it can listen");
        listener
    });
    let to = SocketAddr::from((Ipv4Addr::from(SERVER), PORT)).into();
    let mut sockets = vec![];
    for _ in 0..CONNECTIONS {
        let client = lab.client.enter(|| {
            let client = socket(Domain::IPV4);
            client.connect(&to).expect("the server is reachable");
            client
        });
        let (server, _) = listener.accept().expect("the client has connected");
        (&client).write_all(b"!").expect("it is open");
        (&server).write_all(b"!").expect("it is open");
        sockets.extend([client, server]);
    }
    sockets.push(listener);
    sockets
}

/// Two subflows each. While nothing happens, a look a second is all that the agent does; ten seconds can hold the beginnings of
/// eleven.
#[test]
fn with_100_idle_connections_it_holds_less_than_6_mib_and_wakes_once_a_second() {
    const TEST: &str = "with_100_idle_connections_it_holds_less_than_6_mib_and_wakes_once_a_second";
    let Some(program) = slim(TEST) else { return };
    if skip(TEST) {
        return;
    }
    let lab = Lab::unshaped();
    let program = program.to_str().expect("a plain path");
    let agent = Agent::of(program, &lab.client, &config("", "\"reestablish\""));
    let _sockets = connections(&lab);
    wait("all subflows", || {
        let established = agent.said().iter().filter(|line| line["event"] == "subflow-established").count();
        (established == CONNECTIONS).then_some(())
    });
    std::thread::sleep(Duration::from_secs(2));
    let before = agent.status("voluntary_ctxt_switches");
    std::thread::sleep(Duration::from_secs(10));
    let wakes = agent.status("voluntary_ctxt_switches") - before;
    let (now, most) = (agent.status("VmRSS"), agent.status("VmHWM"));
    say(&format!("{CONNECTIONS} connections: {now} kB, at most {most} kB; {wakes} wake-ups in 10 s\n"));
    assert!(most * 1024 < 6 * MIB, "{most} kB");
    assert!((8..=11).contains(&wakes), "{wakes} in 10 s");
}
