//! What the tests of `path` and `agent` share: namespaces, a connection over the first link, and the command inside.

// Every test binary compiles this module and uses a part of it.
#![allow(dead_code, unreachable_pub)]

pub mod agent;
pub mod bed;
#[path = "../../../netlink/tests/common/mod.rs"]
pub mod common;
pub mod measured;
pub mod stream;

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use common::{
    lab::{Lab, Namespace, SERVER},
    pair,
};
use serde_json::Value;
use socket2::{Domain, Socket};

pub const PORT: u16 = 5001;

/// A connection of the lab's first link.
pub struct Conversation {
    pub client: Socket,
    pub server: Socket,
    _listener: Socket,
}

impl Conversation {
    pub fn open(lab: &Lab) -> Self {
        Self::from(lab, Domain::IPV4)
    }

    /// The client's socket is of this family; they speak IPv4.
    pub fn from(lab: &Lab, family: Domain) -> Self {
        // The wildcard, for joins to further addresses of the server are for this listener too.
        let at = SocketAddr::from(([0, 0, 0, 0], PORT));
        let server = Ipv4Addr::from(SERVER);
        let to = match family {
            Domain::IPV4 => SocketAddr::from((server, PORT)),
            _ => SocketAddr::from((server.to_ipv6_mapped(), PORT)),
        };
        let [client, server, listener] = pair::connect(lab, at, family, to);
        let conversation = Self { client, server, _listener: listener };
        conversation.speak();
        conversation
    }

    /// A byte each way.
    pub fn speak(&self) {
        for (mut from, mut to) in [(&self.client, &self.server), (&self.server, &self.client)] {
            from.write_all(b"!").expect("the connection is open");
            to.read_exact(&mut [0]).expect("the byte arrives in time");
        }
    }
}

/// The command in a namespace, not yet started.
pub fn daemon(namespace: &Namespace, arguments: &str) -> Command {
    inside(namespace, env!("CARGO_BIN_EXE_anabranchd"), arguments)
}

/// A program in a namespace, not yet started.
pub fn inside(namespace: &Namespace, program: &str, arguments: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &namespace.name, program]);
    command.args(arguments.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Exit code, and what it printed and complained of.
pub fn run(namespace: &Namespace, arguments: &str) -> (i32, String, String) {
    let output = daemon(namespace, arguments).output().expect("the command starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it speaks UTF-8");
    (output.status.code().expect("it was not killed"), text(output.stdout), text(output.stderr))
}

/// Runs it, and it must succeed; returns what it printed.
pub fn done(namespace: &Namespace, arguments: &str) -> String {
    let (code, out, err) = run(namespace, arguments);
    assert_eq!(code, 0, "anabranchd {arguments}: {out} {err}");
    out
}

/// What `path show --json` prints.
pub fn shown(namespace: &Namespace) -> Value {
    serde_json::from_str(&done(namespace, "path show --json")).expect("it is JSON")
}

/// The subflows of the only connection, of those that are established.
pub fn subflows(namespace: &Namespace) -> Vec<Value> {
    let shown = shown(namespace);
    let connections = shown["connections"].as_array().expect("an array");
    let all = connections.iter().flat_map(|connection| connection["subflows"].as_array().expect("an array"));
    all.filter(|subflow| subflow["state"] == "established").cloned().collect()
}

/// What `look` gives once it gives something.
///
/// # Panics
/// If it does not within ten seconds.
pub fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..500 {
        if let Some(found) = look() {
            return found;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("not within ten seconds: {what}");
}
