//! What policies gain on links of the test bed: goodput without a harmful subflow, a data cap that is kept, energy. It measures, so
//! it is not among the tests of every day: `make agent-measure`.

mod live;

use std::{
    io::{Read as _, Write as _},
    net::Shutdown,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use anabranch_policy::energy::{Linear, Radio};
use live::{
    agent::{Agent, written},
    bed::{Bed, Device, Ends, Shape},
    common::skip,
    measured::{median_and_worst, number, write},
};

#[allow(clippy::disallowed_methods, reason = "it measures real time")]
fn now() -> Instant {
    Instant::now()
}

fn agent(device: &Device, first: &str, second: &str, policy: &str) -> Agent {
    Agent::start(
        &device.namespace,
        &written(&format!(
            "[agent]\nset_pm_type = true\n[[interface]]\nname = \"if0\"\n{first}\n[[interface]]\nname = \"if1\"\n{second}\n\
             [[connection]]\npolicy = {policy}\n"
        )),
    )
}

/// Sends as much as goes from the client while `work` runs, which gets a count of the bytes that have arrived.
fn bulk<T>(ends: &Ends, work: impl FnOnce(&AtomicU64) -> T) -> T {
    let (arrived, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let data = vec![7; 64 << 10];
            loop {
                if is_over.load(Ordering::Relaxed) || (&ends.client).write(&data).is_err() {
                    break;
                }
            }
        });
        scope.spawn(|| {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(bytes @ 1..) = (&ends.server).read(&mut buffer) {
                arrived.fetch_add(bytes as u64, Ordering::Relaxed);
            }
        });
        let outcome = work(&arrived);
        is_over.store(true, Ordering::Relaxed);
        for end in [&ends.client, &ends.server] {
            end.shutdown(Shutdown::Both).expect("it is open");
        }
        outcome
    })
}

/// Mbit/s that arrive from now on.
fn goodput(arrived: &AtomicU64, seconds: u64) -> f64 {
    let (bytes, at) = (arrived.load(Ordering::Relaxed), now());
    thread::sleep(Duration::from_secs(seconds));
    (arrived.load(Ordering::Relaxed) - bytes) as f64 * 8e-6 / (now() - at).as_secs_f64()
}

/// The second path is slow and long, and the receive buffer is too small for what waits behind it.
#[test]
#[ignore = "it measures, for docs/agent.md"]
fn the_impact_policy_does_without_a_harmful_subflow() {
    const COUNTED_S: u64 = 20;
    if skip("the_impact_policy_does_without_a_harmful_subflow") {
        return;
    }
    let good = Shape("rate = \"20 Mbit/s\"\ndelay = \"20 ms\"\nqueue = \"100 packets\"\n");
    let harmful = Shape("rate = \"1 Mbit/s\"\ndelay = \"150 ms\"\nqueue = \"100 packets\"\nloss = \"1 %\"\n");
    let bed = Bed::start(4, &[good, harmful]);
    bed.server.run("sysctl", "-qw net.ipv4.tcp_rmem=4096\t131072\t262144");
    let [with_all, first, second, managed] = [0, 1, 2, 3];
    bed.devices[with_all].add_endpoint("");
    let policy = r#"{ name = "impact", phase = "3 s", settle = "1 s" }"#;
    let impact = agent(&bed.devices[managed], "", "", policy);
    // The subset of the second subflow alone: the first is a backup.
    let alone = agent(&bed.devices[second], "role = \"backup\"", "", "\"reestablish\"");
    let run = |number: usize| {
        let ends = bed.open(number);
        bulk(&ends, |arrived| {
            // The measurement: five phases of 4 s, after those in which the subflows are opened.
            thread::sleep(Duration::from_secs(24));
            goodput(arrived, COUNTED_S)
        })
    };
    let found: Vec<f64> = thread::scope(|scope| {
        let threads: Vec<_> = [with_all, first, second, managed]
            .into_iter()
            .map(|number| scope.spawn(move || run(number)))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("it measures")).collect()
    });
    let factors: Vec<String> = impact
        .said()
        .iter()
        .filter_map(|line| {
            Some(format!("{} {:.3}", line["dev"].as_str()?, line["impact_ppm"].as_i64()? as f64 / 1e6))
        })
        .collect();
    drop((impact, alone));
    let best = found[..3].iter().copied().fold(0.0, f64::max);
    let mut table = "| subflows | goodput |\n|---|---|\n".to_owned();
    for (name, goodput) in ["both", "the first", "the second"].iter().zip(&found) {
        table += &format!("| {name} | {goodput:.2} Mbit/s |\n");
    }
    table += &format!(
        "| chosen by `impact` (factors: {}) | {:.2} Mbit/s, {:.0} % of the best subset |\n",
        factors.join(", "),
        found[managed],
        found[managed] / best * 100.0
    );
    write("impact", &table);
}

/// An upload over both links of 20 Mbit/s, of which the second may carry 3 MB.
#[test]
#[ignore = "it measures, for docs/agent.md"]
fn a_data_cap_is_kept_to_a_round() {
    const CAP: u64 = 3_000_000;
    if skip("a_data_cap_is_kept_to_a_round") {
        return;
    }
    let link = "rate = \"20 Mbit/s\"\ndelay = \"30 ms\"\nqueue = \"100 packets\"\n";
    let bed = Bed::start(1, &[Shape(link), Shape(link)]);
    let device = &bed.devices[0];
    let mut beyond = Vec::new();
    for _ in 0..number("ANABRANCH_CAPS", 10) {
        // A new agent without a state file: the whole cap is there again.
        let agent = agent(device, "", "cap = \"3 MB\"", "\"cost\"");
        let sum = |(received, sent): (u64, u64)| received + sent;
        let before = sum(device.carried("if1"));
        bulk(&bed.open(0), |_| {
            let closed = agent.wait_for("close", |line| line["reason"] == "cap-reached");
            assert_eq!(closed["cap_bytes"], CAP);
            // What was under way.
            thread::sleep(Duration::from_millis(500));
            beyond.push((sum(device.carried("if1")) - before).saturating_sub(CAP));
        });
    }
    let (median, worst) = median_and_worst(&beyond);
    let text = format!(
        "| repetitions | carried beyond the cap of 3 MB, median / worst |\n|---|---|\n| {} | {:.1} / {:.1} kB |\n",
        beyond.len(),
        median as f64 / 1e3,
        worst as f64 / 1e3
    );
    write("cap", &text);
}

/// Joules of an interface by the linear model, from what it has carried in each 100 ms (docs/energy.md).
struct Meter {
    radio: Linear,
    interface: &'static str,
    carried: u64,
    at: Instant,
    joules: f64,
}

impl Meter {
    fn new(device: &Device, radio: &str, interface: &'static str) -> Self {
        let radio = Radio::find(radio).expect("it is in the table").linear;
        let (received, sent) = device.carried(interface);
        Self { radio, interface, carried: received + sent, at: now(), joules: 0.0 }
    }

    fn read(&mut self, device: &Device) {
        let (received, sent) = device.carried(self.interface);
        let (bytes, at) = (received + sent - self.carried, now());
        let seconds = (at - self.at).as_secs_f64();
        if bytes > 0 {
            let mbit = bytes as f64 * 8e-6;
            self.joules += (self.radio.b_mw_per_mbps * mbit + self.radio.theta_mw * seconds) / 1e3;
        }
        (self.carried, self.at) = (received + sent, at);
    }
}

/// Seconds and joules of one upload.
fn upload(bed: &Bed, number: usize, radios: [&str; 2], bytes: usize) -> (f64, f64) {
    let device = &bed.devices[number];
    let begun = now();
    let mut meters = [Meter::new(device, radios[0], "if0"), Meter::new(device, radios[1], "if1")];
    let ends = bed.open(number);
    thread::scope(|scope| {
        scope.spawn(|| {
            (&ends.client).write_all(&vec![7; bytes]).expect("the connection lasts");
        });
        let receiver = scope.spawn(|| {
            let (mut left, mut buffer) = (bytes, vec![0; 64 << 10]);
            while left > 0 {
                left -= (&ends.server).read(&mut buffer).expect("data come");
            }
            (now() - begun).as_secs_f64()
        });
        while !receiver.is_finished() {
            thread::sleep(Duration::from_millis(100));
            meters.iter_mut().for_each(|meter| meter.read(device));
        }
        (receiver.join().expect("it receives"), meters.iter().map(|meter| meter.joules).sum())
    })
}

/// A set-up of the paper: its name, its links and their radios.
type SetUp = (&'static str, [Shape; 2], [&'static str; 2]);

#[test]
#[ignore = "it measures, for docs/agent.md"]
fn what_the_energy_policy_saves() {
    const BYTES: usize = 10_000_000;
    if skip("what_the_energy_policy_saves") {
        return;
    }
    let repetitions = number("ANABRANCH_UPLOADS", 4);
    let set_ups: [SetUp; 2] = [
        (
            "section 3.2: WLAN 25 Mbit/s, 25 ms, 1 % loss; 3G 5 Mbit/s, 65 ms",
            [
                Shape("rate = \"25 Mbit/s\"\ndelay = \"12.5 ms\"\nqueue = \"100 packets\"\nloss = \"1 %\"\n"),
                Shape("rate = \"5 Mbit/s\"\ndelay = \"32.5 ms\"\nqueue = \"100 packets\"\n"),
            ],
            ["wifi", "3g"],
        ),
        (
            "section 5: WLAN 7.5 Mbit/s, 50 ms, 0.5 % loss; LTE 17.5 Mbit/s, 150 ms",
            [
                Shape(
                    "rate = \"7.5 Mbit/s\"\ndelay = \"25 ms\"\nqueue = \"100 packets\"\nloss = \"0.5 %\"\n",
                ),
                Shape("rate = \"17.5 Mbit/s\"\ndelay = \"75 ms\"\nqueue = \"500 packets\"\n"),
            ],
            ["wifi", "lte"],
        ),
    ];
    let mut table = format!(
        "| set-up | policy | completion, mean of {repetitions} | energy, mean |\n|---|---|---|---|\n"
    );
    for (name, shapes, radios) in set_ups {
        let bed = Bed::start(3, &shapes);
        let radio = |radio: &str| format!("radio = \"{radio}\"");
        let [first, second] = radios.map(radio);
        let agents = ["\"energy\"", "\"fullmesh\"", "\"default\""]
            .iter()
            .zip(&bed.devices)
            .map(|(policy, device)| agent(device, &first, &second, policy));
        let agents: Vec<Agent> = agents.collect();
        let bed = &bed;
        let found: Vec<Vec<(f64, f64)>> = thread::scope(|scope| {
            let run = |number| move || (0..repetitions).map(|_| upload(bed, number, radios, BYTES)).collect();
            let threads: Vec<_> = (0..3).map(|number| scope.spawn(run(number))).collect();
            threads.into_iter().map(|thread| thread.join().expect("it measures")).collect()
        });
        drop(agents);
        for (policy, found) in ["`energy`", "`fullmesh`", "Wi-Fi only (`default`)"].iter().zip(found) {
            let mean = |of: fn(&(f64, f64)) -> f64| found.iter().map(of).sum::<f64>() / found.len() as f64;
            table +=
                &format!("| {name} | {policy} | {:.2} s | {:.2} J |\n", mean(|of| of.0), mean(|of| of.1));
        }
    }
    write("energy", &table);
}
