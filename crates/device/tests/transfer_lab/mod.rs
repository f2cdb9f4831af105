//! Namespaces, folders and keys for the real commands, `anabranchd send` and `receive`.

// Every test binary compiles this module and uses a part of it.
#![allow(dead_code, unreachable_pub, missing_docs)]

// The tests of other crates use the rest of it.
#[allow(dead_code, unreachable_pub)]
#[path = "../../../kernel/tests/common/lab.rs"]
pub mod lab;
pub mod looks;
#[allow(unreachable_pub)]
#[path = "../../../netlink/tests/common/skip.rs"]
pub mod skip;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use lab::{Lab, Namespace};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

pub const GRAIN: u64 = 16 << 10;
const PORT: u16 = 7427;
pub const ADDRESSES: [&str; 4] = ["10.77.1.1", "10.77.2.1", "10.77.1.2", "10.77.2.2"];

/// Namespaces and processors are the machine's.
static TURN: Mutex<()> = Mutex::new(());

/// A process of ours, ended with the value.
pub struct Running(pub Child);

impl Running {
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.0.id().try_into().expect("process numbers are small"));
        // It may have ended by itself in the same moment.
        let _ = kill(pid, signal);
    }

    /// Its exit code, if it ends in time; none if a signal has ended it.
    pub fn end(&mut self) -> Option<i32> {
        for _ in 0..1200 {
            if let Some(status) = self.0.try_wait().expect("it is ours") {
                return status.code();
            }
            thread::sleep(Duration::from_millis(50));
        }
        panic!("it does not end");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Namespaces, folders and keys.
pub struct Place {
    pub lab: Lab,
    folder: tempfile::TempDir,
    fingerprints: [String; 2],
    _turn: MutexGuard<'static, ()>,
}

impl Place {
    pub fn new() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let lab = Lab::unshaped();
        for (link, address) in [(1, ADDRESSES[2]), (2, ADDRESSES[3])] {
            lab.client.ip(&format!("addr add {address}/24 dev c{link}"));
        }
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("in")).unwrap();
        let fingerprints = ["sender", "receiver"].map(|role| {
            let said = output(anabranchd().arg("keygen").arg("--key").arg(folder.path().join(role)));
            String::from_utf8(said.stdout).unwrap().trim().to_owned()
        });
        Self { lab, folder, fingerprints, _turn: turn }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn inside(&self, namespace: &Namespace) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &namespace.name, env!("CARGO_BIN_EXE_anabranchd")]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    /// A receiver whose folder is a file system of its own, of that size, which nobody else sees.
    pub fn receive_into_tmpfs(&self, size: &str, more: &str) -> Running {
        let mount =
            format!("mount -t tmpfs -o size={size} tmpfs {} && exec \"$@\"", self.file("in").display());
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.lab.server.name, "sh", "-c", &mount, "sh"]);
        command.arg(env!("CARGO_BIN_EXE_anabranchd")).stderr(Stdio::null());
        self.listen(command, false, more)
    }

    pub fn receive(&self, is_secret: bool, more: &str) -> Running {
        self.listen(self.inside(&self.lab.server), is_secret, more)
    }

    fn listen(&self, mut command: Command, is_secret: bool, more: &str) -> Running {
        command.arg("receive").arg("--dir").arg(self.file("in")).args(["--listen", "0.0.0.0:7427"]);
        match is_secret {
            true => command.arg("--key").arg(self.file("receiver")).args(["--trust", &self.fingerprints[0]]),
            false => command.arg("--plaintext"),
        };
        let child = command.args(more.split_whitespace()).stdout(Stdio::null()).spawn().unwrap();
        let mut running = Running(child);
        for _ in 0..400 {
            let listens = self.lab.server.read_net("tcp").contains(&format!(":{PORT:04X} 00000000:0000 0A"));
            if listens {
                return running;
            }
            assert_eq!(running.0.try_wait().unwrap(), None, "it cannot listen");
            thread::sleep(Duration::from_millis(25));
        }
        panic!("it does not listen");
    }

    pub fn send(&self, name: &str, is_secret: bool, more: &str) -> Command {
        self.send_all(&[name], is_secret, more)
    }

    pub fn send_all(&self, names: &[&str], is_secret: bool, more: &str) -> Command {
        let mut command = self.inside(&self.lab.client);
        command.arg("send").args(names.iter().map(|name| self.file(name))).arg("10.78.0.2").arg("--json");
        match is_secret {
            true => command.arg("--key").arg(self.file("sender")).args(["--peer", &self.fingerprints[1]]),
            false => command.arg("--plaintext"),
        };
        command.args(more.split_whitespace());
        command
    }

    /// Takes a link of the sender away for a while.
    pub fn flap(&self, link: u64, time: Duration) {
        self.lab.client.ip(&format!("link set c{link} down"));
        thread::sleep(time);
        self.up(link);
    }

    /// Brings a link back. Routes go with it, and do not come back with it.
    pub fn up(&self, link: u64) {
        let client = &self.lab.client;
        client.ip(&format!("link set c{link} up"));
        client.ip(&format!("route add default via 10.77.{link}.254 dev c{link} table {link}"));
        if link == 1 {
            client.ip("route add default via 10.77.1.254 dev c1");
        }
    }

    /// Whether what has arrived is what was sent, and nothing else is left in the folder.
    pub fn check(&self, name: &str, what: &str) {
        let [sent, received] = [self.file(name), self.file("in").join(name)].map(|path| hash(&path));
        assert_eq!(sent, received, "{what}");
        let left: Vec<_> =
            fs::read_dir(self.file("in")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [name], "{what}");
        fs::remove_file(self.file("in").join(name)).unwrap();
    }
}

fn anabranchd() -> Command {
    Command::new(env!("CARGO_BIN_EXE_anabranchd"))
}

pub fn output(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

pub fn hash(path: &Path) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut fs::File::open(path).unwrap(), &mut hasher).unwrap();
    hasher.finalize()
}

pub fn write_noise(path: &Path, bytes: u64, seed: u64) {
    let mut reader = blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof();
    let mut data = vec![0; usize::try_from(bytes).unwrap()];
    reader.fill(&mut data);
    fs::write(path, data).unwrap();
}

pub fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("it is a number"))
}
