//! A rate algorithm in the running kernel: who owns the window, and that data leave at the rate it sets.

mod common;

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use anabranch_kernel::Attached;
use common::{
    lab::Lab,
    skip,
    transfer::{Connection, End, wait_for},
};
use socket2::Protocol;

const BBR: End = End { protocol: Protocol::TCP, congestion: "ab_bbr" };
const KERNEL_RENO: End = End { protocol: Protocol::TCP, congestion: "reno" };
const MBIT: u32 = 20;
/// What the bottleneck carries of payload, in bytes per second.
const PAYLOAD: f64 = MBIT as f64 * 1e6 / 8.0 * 1448.0 / 1514.0;
const SAMPLES: usize = 40;

/// Names of congestion controls are host-wide.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Downloads over one connection; the median of its pacing rates once it has settled, in bytes per second.
fn median_pacing(lab: &Lab, server: End) -> f64 {
    let connection = Connection::open(lab, KERNEL_RENO, server);
    let mut rates = Vec::new();
    connection.transfer(1_000_000, 0, || {
        thread::sleep(Duration::from_millis(1500));
        for _ in 0..SAMPLES {
            thread::sleep(Duration::from_millis(50));
            rates.push(pacing_rate(&lab.server.run("ss", "-tinHO state established")));
        }
    });
    rates.sort_by(f64::total_cmp);
    rates[SAMPLES / 2]
}

/// Bytes per second, from a listing of `ss` with one socket that sends.
fn pacing_rate(listing: &str) -> f64 {
    let line = listing.lines().find(|line| line.contains(":5001")).expect("the connection is there");
    let rate = line.split(" pacing_rate ").nth(1).and_then(|rest| rest.split("bps").next());
    rate.and_then(|bits| bits.parse::<f64>().ok()).unwrap_or_else(|| panic!("no rate in {line}")) / 8.0
}

/// The rates of a cycle are 1.24, 0.74 and, six times of eight, 0.99 of the estimate; a third for what a busy machine does
/// to the estimate. Seen here: 0.90 to 1.11, and 0.91 to 0.98 with the kernel's own bbr.
#[test]
fn bbr_paces_at_the_rate_of_the_bottleneck() {
    if skip("bbr_paces_at_the_rate_of_the_bottleneck") {
        return;
    }
    let _turn = turn();
    let attached = Attached::load_with_defaults("bbr").expect("ab_bbr loads");
    let lab = Lab::new(MBIT);
    let share = median_pacing(&lab, BBR) / PAYLOAD;
    common::say(&format!("ab_bbr paces at {share:.3} of the bottleneck"));
    assert!((0.67..=1.33).contains(&share), "{share}");

    let seen = attached.counters().expect("counters are readable");
    for event in ["init", "rate", "idle_restart"] {
        assert!(seen.event(event) > 0, "{event}: {seen:?}");
    }
    for event in ["ack", "recovery_exit"] {
        assert_eq!(seen.event(event), 0, "{event}: {seen:?}");
    }
    assert!(seen.event("rate") > 500, "{seen:?}");
}

#[test]
fn bbr_carries_two_subflows() {
    if skip("bbr_carries_two_subflows") {
        return;
    }
    let _turn = turn();
    let attached = Attached::load_with_defaults("bbr").expect("ab_bbr loads");
    let lab = Lab::new(MBIT);
    lab.add_second_subflow();
    let mptcp = End { protocol: Protocol::MPTCP, ..BBR };
    let connection = Connection::open(&lab, mptcp, mptcp);
    wait_for("two subflows", || lab.client.mib("MPTcpExt", "MPJoinSynAckRx") == 1);
    connection.transfer(6_000_000, 1_000_000, || ());
    let received = lab.received_bytes();
    assert!(received.iter().all(|&bytes| bytes > 1_200_000), "bytes per path: {received:?}");
    drop(connection);
    wait_for("a release for every init", || {
        let seen = attached.counters().expect("counters are readable");
        seen.event("init") == seen.event("release")
    });
}
