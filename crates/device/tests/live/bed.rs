//! Devices with two shaped links each, in the test bed's namespaces: `anabranch-bed emulate`.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    mem::ManuallyDrop,
    net::{IpAddr, SocketAddr},
    process::{Child, Command, Stdio},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use socket2::{Domain, Socket};
use tempfile::NamedTempFile;

use super::{
    PORT,
    common::{lab::Namespace, pair::socket},
    wait,
};

/// What a link does, as in scenario files.
pub struct Shape(pub &'static str);

/// Several devices, each with the links `if0` and `if1` to one server; gone when dropped.
pub struct Bed {
    child: Child,
    pub server: ManuallyDrop<Namespace>,
    pub devices: Vec<Device>,
    _file: NamedTempFile,
}

pub struct Device {
    // The bed takes its namespaces away itself.
    pub namespace: ManuallyDrop<Namespace>,
    /// Of `if0` and `if1`.
    pub addresses: [IpAddr; 2],
    pub server: IpAddr,
}

/// A connection of a device, opened over its first link.
pub struct Ends {
    pub client: Socket,
    pub server: Socket,
    // Without it nobody can join.
    _listener: Socket,
}

fn scenario(devices: usize, shapes: &[Shape; 2]) -> String {
    let mut text =
        "name = \"agent\"\nduration = \"10 s\"\n[transport]\nprofile = \"linux\"\n[[node]]\nnames = [\"server\"]\n".to_owned();
    for device in 0..devices {
        text += &format!("[[node]]\nnames = [\"device{device}\", \"a{device}\", \"b{device}\"]\n");
        for (hop, shape) in ["a", "b"].into_iter().zip(shapes) {
            let between = |from: &str, to: &str| format!("[[link]]\nbetween = [\"{from}\", \"{to}\"]\n");
            text += &between(&format!("device{device}"), &format!("{hop}{device}"));
            text += shape.0;
            text += &between(&format!("{hop}{device}"), "server");
            text += "rate = \"1 Gbit/s\"\ndelay = \"0 ms\"\nqueue = \"unlimited\"\n";
        }
        // The algorithm is not used: sockets choose the kernel's.
        text += &format!(
            "[[connection]]\nname = \"of{device}\"\nfrom = \"device{device}\"\nto = \"server\"\nprotocol = \"mptcp\"\n\
             congestion = \"compound\"\nsubflow = [{{ name = \"a\", via = [\"a{device}\"] }}, {{ name = \"b\", via = [\"b{device}\"] }}]\n"
        );
    }
    text
}

/// The program: `ANABRANCH_BED`, or the release build.
fn program() -> String {
    let built = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/release/anabranch-bed");
    std::env::var("ANABRANCH_BED").unwrap_or_else(|_| built.to_owned())
}

impl Bed {
    pub fn start(devices: usize, shapes: &[Shape; 2]) -> Self {
        let mut file = NamedTempFile::with_suffix(".toml").expect("a temporary file");
        file.write_all(scenario(devices, shapes).as_bytes()).expect("it can be written");
        let mut command = Command::new(program());
        let mut child = command
            .arg("emulate")
            .arg(file.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("make bed builds it; ANABRANCH_BED names another");
        let out = BufReader::new(child.stdout.take().expect("it is a pipe"));
        let mut said = Vec::new();
        for line in out.lines().map_while(Result::ok) {
            let is_ready = line.starts_with("Ctrl-C");
            said.push(line);
            if is_ready {
                break;
            }
        }
        let name = |name: String| ManuallyDrop::new(Namespace { name });
        let bed = Self {
            devices: (0..devices).map(|device| Device::read(device, &said)).collect(),
            server: name("anabranch-server".to_owned()),
            child,
            _file: file,
        };
        for namespace in bed.devices.iter().map(|device| &device.namespace).chain([&bed.server]) {
            namespace.ip("mptcp endpoint flush");
            namespace.ip("mptcp limits set subflow 8 add_addr_accepted 0");
        }
        // Behind rules that throw away what is for the server itself.
        bed.server.ip("rule add pref 100 lookup local");
        bed.server.ip("rule del pref 0 lookup local");
        bed
    }

    /// The server throws away what comes from an address, or does so no more.
    pub fn silence(&self, from: IpAddr, is_silent: bool) {
        let verb = if is_silent { "add" } else { "del" };
        self.server.ip(&format!("rule {verb} pref 50 from {from} blackhole"));
    }

    pub fn open(&self, device: usize) -> Ends {
        let device = &self.devices[device];
        let at = SocketAddr::new(device.server, PORT).into();
        let listener = self.server.enter(|| {
            let listener = socket(Domain::IPV4);
            listener.set_reuse_address(true).expect("it can be set");
            listener.bind(&at).expect("the port is free");
            listener.listen(1).expect("it can listen");
            listener
        });
        let client = device.namespace.enter(|| {
            let client = socket(Domain::IPV4);
            client.set_tcp_congestion(b"cubic").expect("every kernel has it");
            client.connect(&at).expect("the server is reachable");
            client
        });
        let (server, _) = listener.accept().expect("the client has connected");
        Ends { client, server, _listener: listener }
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        // A test that has failed already must not abort here.
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT);
        let _ = self.child.wait();
    }
}

impl Device {
    /// From what the bed says of its hosts and connections.
    fn read(number: usize, said: &[String]) -> Self {
        let name = format!("anabranch-device{number}");
        let host =
            said.iter().position(|line| line.starts_with(&format!("{name} "))).expect("it lists its hosts");
        let word = |line: &str, place: usize| line.split_whitespace().nth(place).map(str::to_owned);
        let address = |line: usize| {
            word(&said[host + line], 2)
                .and_then(|text| text.parse().ok())
                .expect("an address of the interface")
        };
        let example =
            said.iter().position(|line| *line == format!("connection of{number}, for example with iperf3:"));
        let client = &said[example.expect("it lists its connections") + 2];
        let words: Vec<&str> = client.split_whitespace().collect();
        let server = words.iter().position(|word| *word == "-c").expect("it connects") + 1;
        Self {
            addresses: [address(1), address(2)],
            server: words[server].parse().expect("an address"),
            namespace: ManuallyDrop::new(Namespace { name }),
        }
    }

    /// Has the kernel's path manager open a subflow from the second link.
    pub fn add_endpoint(&self, flag: &str) {
        let words = format!("mptcp endpoint add {} dev if1 subflow {flag}", self.addresses[1]);
        self.namespace.ip(words.trim_end());
    }

    pub fn joins(&self) -> u64 {
        self.namespace.mib("MPTcpExt", "MPJoinSynAckRx")
    }

    /// Waits until there has been another subflow than before.
    pub fn wait_for_join(&self, before: u64) {
        wait("a further subflow", || (self.joins() > before).then_some(()));
    }

    /// Takes the first link down or up; its routes go and come with it.
    pub fn set_first_link(&self, up: bool) {
        self.namespace.ip(&format!("link set if0 {}", if up { "up" } else { "down" }));
        if up {
            let address = self.addresses[0];
            self.namespace.ip("route replace default dev if0 table 1001");
            self.namespace.ip(&format!("route replace default dev if0 src {address}"));
        }
    }

    /// Bytes that an interface has received and sent.
    pub fn carried(&self, interface: &str) -> (u64, u64) {
        let table = self.namespace.read_net("dev");
        let prefix = format!("{interface}:");
        let line = table.lines().find_map(|line| line.trim().strip_prefix(&prefix)).expect("it exists");
        let number = |place: usize| line.split_whitespace().nth(place).and_then(|text| text.parse().ok());
        number(0).zip(number(8)).expect("columns of numbers")
    }
}
