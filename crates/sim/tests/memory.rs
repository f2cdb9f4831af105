//! What a connection costs: 10,000 Multipath TCP connections with two subflows each, counted by the allocator.
//!
//! The scenario itself (its names and paths) belongs to the caller and exists before the run; it is measured
//! apart, as is everything that does not depend on the number of connections.
#![allow(unsafe_code, clippy::print_stdout)] // a counting allocator; the figures are shown with --nocapture

#[allow(unreachable_pub)] // public for whichever test binary uses it
mod common;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use anabranch_scenario::model::Scenario;
use anabranch_sim::{Control, Interrupted};

/// The system's allocator, with a count of the bytes that are alive.
struct Counting;

static ALIVE_BYTES: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call is passed on unchanged to the system's allocator, which upholds the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALIVE_BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        ALIVE_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `block` came from `System.alloc` with this layout, as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }
}

const CONNECTIONS: usize = 10_000;
const SECOND: u64 = 1_000_000_000;

/// `connections` over two paths with a round trip of 1 s; `clock` keeps time moving when they are idle.
fn scenario(connections: usize, duration: &str, delay: &str, traffic: &str) -> Scenario {
    common::parse(&format!(
        r#"
name = "memory"
duration = "{duration}"
measure = {{ from = "20 s", interval = "0 s" }}
transport = {{ profile = "ns2", window_cap = "20 packets" }}

[[node]]
names = ["s", "d", "a0", "a1", "x", "y"]

[[link]]
name = "up{{i}}"
count = 2
between = ["s", "a{{i}}"]
rate = "100 Gbit/s"
delay = "{delay}"
queue = "unlimited"

[[link]]
name = "down{{i}}"
count = 2
between = ["a{{i}}", "d"]
rate = "100 Gbit/s"
delay = "1 us"
queue = "unlimited"

[[link]]
name = "clock"
between = ["x", "y"]
rate = "1 Gbit/s"
delay = "1 us"
queue = "unlimited"

[[connection]]
name = "meter{{i}}"
count = {connections}
from = "s"
to = "d"
protocol = "mptcp"
congestion = "lia"
traffic = {{ {traffic}, start = "uniform(0 s, 10 s)" }}
subflow = [{{ name = "0", via = ["a0"] }}, {{ name = "1", via = ["a1"] }}]

[[datagram]]
name = "clock"
from = "x"
to = "y"
rate = "8 Mbit/s"
packet = "100 B"
"#
    ))
}

/// Bytes that a run holds when it has reached 20 s: every connection has been open for 10 s. The run would go on
/// for hours, so it cannot end before it is looked at.
fn held_bytes(scenario: &Scenario) -> usize {
    let control = Control::default();
    let before = ALIVE_BYTES.load(Ordering::Relaxed);
    thread::scope(|scope| {
        let run = scope.spawn(|| anabranch_sim::run(scenario, 1, &control));
        while control.reached.load(Ordering::Relaxed) < 20 * SECOND {
            assert!(!run.is_finished(), "the run ended early");
            thread::sleep(Duration::from_millis(1));
        }
        let held = ALIVE_BYTES.load(Ordering::Relaxed) - before;
        control.cancel.store(true, Ordering::Relaxed);
        assert_eq!(run.join().expect("the run does not panic"), Err(Interrupted));
        held
    })
}

/// Bytes per connection; prints also what the scenario and a run with a single connection hold.
fn cost(what: &str, delay: &str, traffic: &str) -> usize {
    let alone = held_bytes(&scenario(1, "10 h", delay, traffic));
    let before = ALIVE_BYTES.load(Ordering::Relaxed);
    let all = scenario(CONNECTIONS, "10 h", delay, traffic);
    let described = (ALIVE_BYTES.load(Ordering::Relaxed) - before) / CONNECTIONS;
    let each = held_bytes(&all) / CONNECTIONS;
    println!("{what}: {each} B each; {described} B each in the scenario; a run of one holds {alone} B");
    each
}

/// The threads of a process share the count, so one test at a time.
static COUNT: Mutex<()> = Mutex::new(());

#[test]
fn connections_cost_what_they_may() {
    let _alone = COUNT.lock();
    let idle = cost("opened, one byte sent", "500 ms", r#"kind = "file", size = "1 B""#);
    let used = cost("idle after 200 kB", "500 us", r#"kind = "file", size = "200 kB""#);
    let both = cost(
        "idle after 200 kB both ways",
        "500 us",
        r#"kind = "file", size = "200 kB", direction = "both""#,
    );
    let active = cost("20 + 20 packets in flight", "500 ms", r#"kind = "ftp""#);
    for (state, bytes) in [("open", idle), ("used", used), ("used both ways", both)] {
        assert!(bytes <= 8_000, "an idle connection ({state}) costs {bytes} B");
    }
    assert!(active <= 40_000, "an active connection costs {active} B");
}

/// The measured states are those that the names promise.
#[test]
fn the_connections_are_in_the_states_that_are_measured() {
    let _alone = COUNT.lock();
    let idle = common::run(&scenario(10, "30 s", "500 ms", r#"kind = "file", size = "1 B""#), 1);
    let active = common::run(&scenario(10, "30 s", "500 ms", r#"kind = "ftp""#), 1);
    for i in 0..10 {
        let name = format!("meter{i}");
        assert!(common::connection(&idle, &name, "completion_s") < 5.0);
        for subflow in ["0", "1"] {
            let sent = common::subflow(&active, &name, subflow, "packets_sent");
            assert!((180.0..=200.0).contains(&sent), "{sent} packets in 10 round trips of 1 s and 20 each");
        }
    }
}
