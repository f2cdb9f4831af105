//! What the emulator's packet path costs, and what other ways into the kernel would.
//!
//! ```text
//! cargo run --release -p anabranch-bed --example emulator_speed [SECONDS]
//! ```
//!
//! First the emulator itself at three loads. Then the bare packet path from one namespace to another through
//! a constant delay, over TUN devices, over AF_PACKET sockets on veth pairs and over AF_XDP sockets (copy
//! mode) on veth pairs: the same loop, the same load, one after the other. Takes root; all that it makes is
//! removed.
#![allow(clippy::print_stdout, reason = "it is a command")]

mod load;
mod packet;
mod path;
mod tun;
mod veth;
mod xdp;

use std::{error::Error, net::UdpSocket, time::Duration};

use anabranch_bed::{
    calibrate::stand::{Stand, parallel_links},
    emulator::Summary,
    host::Session,
};
use anabranch_scenario::model::{Hop, Wire};

use path::Port;

/// Any error, to be printed.
type Failure = Box<dyn Error + Send + Sync>;

/// What a path needs to be measured: the sockets at its ends and the ports in its middle.
type Laid = ((UdpSocket, UdpSocket), [Box<dyn Port>; 2]);

/// Mbit/s: a usual load, the goal, and more than can be.
const LOADS: [Option<u64>; 3] = [Some(25), Some(500), None];
/// How long every packet is held.
const DELAY: Duration = Duration::from_millis(5);

/// One line of the table.
struct Line {
    received_mbps: f64,
    packets: u64,
    /// Processor time of the forwarding thread.
    cpu_ns: u64,
    lateness: Summary,
}

fn main() -> Result<(), Failure> {
    let time = Duration::from_secs(std::env::args().nth(1).map_or(Ok(3), |text| text.parse())?);
    println!("{}-byte packets one way, {} s per line", load::PACKET_BYTES, time.as_secs());
    println!(
        "{:<18} {:>8} {:>8} {:>10} {:>8}  lateness us: {:>6} {:>6} {:>6} {:>6}",
        "path", "offered", "Mbit/s", "CPU us/pkt", "CPU %", "p50", "p99", "p99.9", "max"
    );
    let session = Session::begin()?;
    for offered in LOADS {
        print("emulator on TUN", offered, time, &emulator(&session, offered, time)?);
    }
    let tun = tun::Tunnels::new()?;
    let veth = veth::Veths::new()?;
    for offered in LOADS {
        print("TUN", offered, time, &bare(tun.lay()?, offered, time)?);
        print("AF_PACKET on veth", offered, time, &bare(veth.packet()?, offered, time)?);
        print("AF_XDP on veth", offered, time, &bare(veth.xdp()?, offered, time)?);
    }
    Ok(())
}

fn print(path: &str, offered: Option<u64>, time: Duration, line: &Line) {
    let Line { received_mbps, packets, cpu_ns, lateness } = line;
    let us = |ns: u64| ns / 1000;
    println!(
        "{path:<18} {:>8} {received_mbps:>8.1} {:>10.2} {:>8.1}               {:>6} {:>6} {:>6} {:>6}",
        offered.map_or("all".to_owned(), |mbps| mbps.to_string()),
        *cpu_ns as f64 / 1e3 / (*packets).max(1) as f64,
        *cpu_ns as f64 / time.as_nanos() as f64 * 100.0,
        us(lateness.p50_ns),
        us(lateness.p99_ns),
        us(lateness.p999_ns),
        us(lateness.max_ns),
    );
}

/// The emulator as the test bed uses it.
fn emulator(session: &Session, offered: Option<u64>, time: Duration) -> Result<Line, Failure> {
    let wire = Wire::plain(10_000_000_000, DELAY.as_nanos() as u64);
    let stand = Stand::new(
        session,
        &parallel_links(&[(wire, wire)]),
        1,
        &[vec![Hop::Wire { link: 0, forward: true }]],
    )?;
    let received_mbps = load::run(&stand.sockets(0)?, offered, time)?;
    let report = stand.stop()?;
    Ok(Line {
        received_mbps,
        packets: report.counters.routes[0].packets_out,
        cpu_ns: report.cpu_ns,
        lateness: report.lateness.summary(),
    })
}

/// The bare packet path.
fn bare((sockets, ports): Laid, offered: Option<u64>, time: Duration) -> Result<Line, Failure> {
    let forwarding = path::forward(ports, DELAY)?;
    let received_mbps = load::run(&sockets, offered, time)?;
    let done = forwarding.stop()?;
    Ok(Line { received_mbps, packets: done.packets, cpu_ns: done.cpu_ns, lateness: done.lateness })
}
