//! How long data stand still when a path dies, and when they go back: with the agent, and with the kernel's own path manager, at
//! the same time on links of one test bed. It measures, so it is not among the tests of every day: `make agent-measure`.

mod live;

use std::{
    io::{Read as _, Write as _},
    net::Shutdown,
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use live::{
    agent::{Agent, written},
    bed::{Bed, Device, Shape},
    common::skip,
    measured::{median_and_worst, number, write},
    wait,
};

/// 60 ms there and back.
const LINK: &str = "rate = \"20 Mbit/s\"\ndelay = \"30 ms\"\nqueue = \"100 packets\"\n";
/// Bytes over the first link after which the data are back on it.
const BACK: u64 = 20_000;

/// Who manages paths.
#[derive(Clone, Copy)]
enum Who {
    Agent { bpf: bool, dead_after: u32 },
    Kernel,
}

impl Who {
    fn name(self) -> String {
        match self {
            Who::Kernel => "the kernel's path manager".to_owned(),
            Who::Agent { bpf, dead_after } => {
                let tier = if bpf { "tier A" } else { "tier B" };
                format!("agent, {tier}, `dead_after = {dead_after}`")
            }
        }
    }

    fn start(self, device: &Device) -> Option<Agent> {
        let Who::Agent { bpf, dead_after } = self else {
            device.add_endpoint("backup");
            return None;
        };
        let agent = Agent::start(
            &device.namespace,
            &written(&format!(
                "[agent]\nset_pm_type = true\nbpf = {bpf}\n[[interface]]\nname = \"if0\"\n[[interface]]\nname = \"if1\"\nrole = \"backup\"\n\
                 [[connection]]\npolicy = {{ name = \"failover\", dead_after = {dead_after} }}\n"
            )),
        );
        let told = if bpf { "told" } else { "looked-for" };
        agent.wait_for("started", |line| line["timeouts"] == told);
        Some(agent)
    }
}

/// How a path dies.
#[derive(Clone, Copy, PartialEq)]
enum Death {
    /// The interface goes down, and the kernel says so.
    Link,
    /// Packets from it are thrown away where nobody sees it.
    Silent,
}

impl Death {
    fn set(self, bed: &Bed, device: &Device, dies: bool) {
        match self {
            Death::Link => device.set_first_link(!dies),
            Death::Silent => bed.silence(device.addresses[0], dies),
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "it measures real time")]
fn now() -> Instant {
    Instant::now()
}

/// When data came last, and the longest time that they did not since the path died.
struct Seen {
    last: Instant,
    gap: Duration,
    packets: u64,
}

/// Milliseconds that data stood still at the server, 1 kB every 5 ms before; and from the return of the path to
/// data on it, if somebody is there to bring them back.
fn handover(bed: &Bed, number: usize, death: Death, goes_back: bool) -> (u64, Option<u64>) {
    let device = &bed.devices[number];
    let joins = device.joins();
    let ends = bed.open(number);
    let seen = Mutex::new(Seen { last: now(), gap: Duration::ZERO, packets: 0 });
    let packets = || seen.lock().expect("nobody panics").packets;
    let mut back = None;
    thread::scope(|scope| {
        scope.spawn(|| {
            while (&ends.client).write_all(&[7; 1000]).is_ok() {
                thread::sleep(Duration::from_millis(5));
            }
        });
        scope.spawn(|| {
            let mut buffer = [0; 1000];
            while (&ends.server).read(&mut buffer).is_ok_and(|bytes| bytes > 0) {
                let mut seen = seen.lock().expect("nobody panics");
                let at = now();
                (seen.gap, seen.last, seen.packets) = (seen.gap.max(at - seen.last), at, seen.packets + 1);
            }
        });
        device.wait_for_join(joins);
        let before = packets();
        wait("data", || (packets() > before + 100).then_some(()));
        seen.lock().expect("nobody panics").gap = Duration::ZERO;
        death.set(bed, device, true);
        // Until data have stood still, or have plainly gone on over the other link.
        thread::sleep(Duration::from_millis(150));
        let before = packets();
        wait("data over the spare", || (packets() > before + 40).then_some(()));
        // Long enough for the policy to have done what it does.
        thread::sleep(Duration::from_millis(300));
        let (sent, at) = (device.carried("if0").1, now());
        death.set(bed, device, false);
        if goes_back {
            wait("data on the first path", || (device.carried("if0").1 >= sent + BACK).then_some(()));
            back = Some((now() - at).as_millis() as u64);
        }
        ends.client.shutdown(Shutdown::Both).expect("it is open");
        ends.server.shutdown(Shutdown::Both).expect("it is open");
    });
    let seen = seen.into_inner().expect("nobody panics");
    (seen.gap.as_millis() as u64, back)
}

/// The table of one kind of death.
fn measure(part: &str, death: Death, all: &[Who]) {
    if skip(part) {
        return;
    }
    let repetitions = number("ANABRANCH_HANDOVERS", 30);
    let bed = Bed::start(all.len(), &[Shape(LINK), Shape(LINK)]);
    let agents: Vec<Option<Agent>> =
        all.iter().zip(&bed.devices).map(|(who, device)| who.start(device)).collect();
    let mut table = format!(
        "| who ({repetitions} repetitions) | data stand still, median / worst | back on the first path, median / worst |\n|---|---|---|\n"
    );
    thread::scope(|scope| {
        let bed = &bed;
        let threads = all.iter().enumerate().map(|(number, who)| {
            let goes_back = matches!(who, Who::Agent { .. });
            scope.spawn(move || -> Vec<_> {
                (0..repetitions).map(|_| handover(bed, number, death, goes_back)).collect()
            })
        });
        let threads: Vec<_> = threads.collect();
        for (who, thread) in all.iter().zip(threads) {
            let found = thread.join().expect("it measures");
            let gaps: Vec<u64> = found.iter().map(|(gap, _)| *gap).collect();
            let backs: Vec<u64> = found.iter().filter_map(|(_, back)| *back).collect();
            let (median, worst) = median_and_worst(&gaps);
            std::io::stdout()
                .write_all(format!("{}: {gaps:?} ms\n", who.name()).as_bytes())
                .expect("stdout is open");
            let back = match backs.is_empty() {
                true => "not measured".to_owned(),
                false => {
                    let (median, worst) = median_and_worst(&backs);
                    format!("{:.1} / {:.1} s", median as f64 / 1e3, worst as f64 / 1e3)
                }
            };
            table += &format!("| {} | {median} / {worst} ms | {back} |\n", who.name());
        }
    });
    drop(agents);
    write(part, &table);
}

const DEFAULT: u32 = 2;

#[test]
#[ignore = "it measures, for docs/agent.md"]
fn a_link_goes_down() {
    measure("link-down", Death::Link, &[Who::Agent { bpf: true, dead_after: DEFAULT }, Who::Kernel]);
}

#[test]
#[ignore = "it measures, for docs/agent.md"]
fn a_path_dies_in_silence() {
    let all = [
        Who::Agent { bpf: true, dead_after: 1 },
        Who::Agent { bpf: true, dead_after: DEFAULT },
        Who::Agent { bpf: false, dead_after: DEFAULT },
        Who::Kernel,
    ];
    measure("silent", Death::Silent, &all);
}
