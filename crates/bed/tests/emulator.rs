//! The emulator between real TUN devices. What is asserted is that it works; how well is for `calibrate`.

mod common;

use std::{
    fs,
    io::Write as _,
    net::{IpAddr, TcpListener, TcpStream, UdpSocket},
    thread,
    time::Duration,
};

use anabranch_bed::{
    calibrate::{
        calibrate,
        stand::{Stand, parallel_links},
    },
    emulator::RouteCounters,
    host::ip,
};
use anabranch_scenario::model::{Change, ChangeTarget, Hop, Loss, QueueLimit, Scenario, Wire};
use common::Bed;
use nix::time::{ClockId, clock_gettime};

const PLAIN: Wire = Wire::plain(100_000_000, 1_000_000);

fn stand(bed: &Bed, scenario: &Scenario) -> Stand {
    let paths: Vec<_> =
        (0..scenario.links.len()).map(|link| vec![Hop::Wire { link, forward: true }]).collect();
    Stand::new(&bed.session, scenario, 1, &paths).expect("this process may make namespaces")
}

/// Sends packets and returns how many arrive.
fn send(stand: &Stand, pair: &(UdpSocket, UdpSocket), packets: usize, payload: usize) -> usize {
    // Few enough at a time for any socket's buffer.
    let full = std::iter::repeat_n(100, packets / 100);
    full.chain([packets % 100]).map(|part| send_burst(stand, pair, part, payload)).sum()
}

fn send_burst(stand: &Stand, (from, to): &(UdpSocket, UdpSocket), packets: usize, payload: usize) -> usize {
    let entered = |routes: &[RouteCounters]| routes.iter().map(|route| route.packets_in).sum::<u64>();
    let ended = |routes: &[RouteCounters]| {
        let gone = |r: &RouteCounters| r.packets_out + r.lost_queue + r.lost_down + r.lost_random + r.refused;
        routes.iter().map(gone).sum::<u64>()
    };
    let sent = entered(&stand.emulator().counters().routes) + packets as u64;
    for _ in 0..packets {
        from.send(&vec![0; payload]).expect("the device is up");
    }
    // What is lost is known from the counters, so that nothing has to be waited for in vain.
    loop {
        let routes = stand.emulator().counters().routes;
        if entered(&routes) == sent && ended(&routes) == sent {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    to.set_nonblocking(true).expect("sockets can be told not to block");
    (0..).take_while(|_| to.recv(&mut [0; 2000]).is_ok()).count()
}

#[test]
fn packets_pass_in_both_directions_and_are_counted_with_their_ip_headers() {
    let Some(bed) = common::begin("packets_pass_in_both_directions_and_are_counted_with_their_ip_headers")
    else {
        return;
    };
    let stand = stand(&bed, &parallel_links(&[(PLAIN, PLAIN)]));
    let forth = stand.sockets(0).expect("the addresses are there");
    let back = (forth.1.try_clone().expect("a copy"), forth.0.try_clone().expect("a copy"));
    assert_eq!(send(&stand, &forth, 20, 100), 20);
    assert_eq!(send(&stand, &back, 10, 200), 10);
    let counters = stand.emulator().counters();
    assert_eq!(counters.links.iter().map(|link| link.packets).collect::<Vec<_>>(), [20, 10]);
    assert_eq!(counters.links.iter().map(|link| link.bytes).collect::<Vec<_>>(), [20 * 128, 10 * 228]);
    assert_eq!(counters.routes.iter().map(|route| route.bytes_out).collect::<Vec<_>>(), [20 * 128, 10 * 228]);
    let report = stand.stop().expect("the devices did not fail");
    assert_eq!(report.lateness.summary().count, 30);
    assert!(report.cpu_ns > 0 && report.wakeups > 0);
}

#[test]
fn losses_limits_and_changes_take_effect_in_the_kernel() {
    let Some(bed) = common::begin("losses_limits_and_changes_take_effect_in_the_kernel") else { return };
    let lossy = Wire { loss: Loss::Bernoulli(0.3), ..PLAIN };
    let narrow = Wire { rate_bps: 100_000, queue: QueueLimit::Packets(2), ..PLAIN };
    let mut scenario = parallel_links(&[(lossy, PLAIN), (narrow, PLAIN), (PLAIN, PLAIN)]);
    let target = ChangeTarget::Link { link: 2, forward: true, reverse: true };
    let down = Change { at: 0, target, rate_bps: None, delay: None, loss: None, up: Some(false) };
    scenario.changes = vec![down];
    let stand = stand(&bed, &scenario);
    let pairs: Vec<_> = (0..3).map(|path| stand.sockets(path).expect("the addresses are there")).collect();
    let through_loss = send(&stand, &pairs[0], 1000, 100);
    // Five standard deviations.
    assert!((628..=772).contains(&through_loss), "700 of 1,000 expected: {through_loss}");
    // A packet takes 100 ms, so that a burst of ten finds the queue full on any machine that is alive.
    assert!((2..10).contains(&send(&stand, &pairs[1], 10, 1222)));
    assert_eq!(
        send(&stand, &pairs[2], 10, 100),
        0,
        "the link went down at the scenario's beginning, long ago"
    );
    let counters = stand.stop().expect("the devices did not fail").counters;
    assert_eq!(counters.routes[0].lost_random, 1000 - through_loss as u64);
    assert!(counters.routes[2].lost_queue > 0);
    assert_eq!(counters.routes[4].lost_down, 10);
}

#[test]
fn no_packet_arrives_before_its_time() {
    let Some(bed) = common::begin("no_packet_arrives_before_its_time") else { return };
    let stand = stand(&bed, &parallel_links(&[(Wire { delay: 50_000_000, ..PLAIN }, PLAIN)]));
    let (a, b) = stand.sockets(0).expect("the addresses are there");
    let now = || Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).expect("a clock"));
    let sent = now();
    a.send(&[0; 100]).expect("the device is up");
    b.recv(&mut [0; 100]).expect("the packet comes");
    assert!(now() - sent >= Duration::from_millis(50));
}

#[test]
fn tcp_gets_through_in_packets_no_larger_than_the_mtu() {
    let Some(bed) = common::begin("tcp_gets_through_in_packets_no_larger_than_the_mtu") else { return };
    let stand = stand(&bed, &parallel_links(&[(PLAIN, PLAIN)]));
    let [a, b] = stand.namespaces();
    let server = (IpAddr::from(Stand::address(0, 2)), 7001);
    let listener = b.enter(|| TcpListener::bind(server)).expect("namespaces").expect("a free port");
    let client = a.enter(|| TcpStream::connect(server)).expect("namespaces").expect("the server is there");
    let received = thread::scope(|scope| {
        scope.spawn(move || {
            let mut client = client;
            client.write_all(&vec![7; 1_000_000]).expect("the server reads");
        });
        let (mut connection, _) = listener.accept().expect("the client is there");
        std::io::copy(&mut connection, &mut std::io::sink()).expect("the client writes")
    });
    assert_eq!(received, 1_000_000);
    let counters = stand.stop().expect("the devices did not fail").counters;
    assert_eq!(counters.largest_bytes, 1500, "no segment was left whole for an interface to cut");
    assert_eq!(counters.refused(), 0);
}

#[test]
fn nothing_is_left_after_a_stop_or_a_drop() {
    let Some(bed) = common::begin("nothing_is_left_after_a_stop_or_a_drop") else { return };
    let threads = || {
        let tasks = fs::read_dir("/proc/self/task").expect("proc is mounted");
        let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.trim() == "emulator").count()
    };
    let descriptors = || {
        let links = fs::read_dir("/proc/self/fd").expect("proc is mounted");
        let targets = links.filter_map(|link| fs::read_link(link.ok()?.path()).ok());
        targets
            .filter(|to| ["tun", "eventfd", "net:"].iter().any(|s| to.to_string_lossy().contains(s)))
            .count()
    };
    let before = descriptors();
    for stops in [true, false] {
        let stand = stand(&bed, &parallel_links(&[(PLAIN, PLAIN)]));
        let names = stand.namespaces().map(|namespace| namespace.name().to_owned());
        let there =
            || names.iter().filter(|name| fs::exists(format!("/run/netns/{name}")).expect("readable"));
        // An answer says that the thread is under way and has its name.
        stand.emulator().counters();
        assert_eq!((there().count(), threads()), (2, 1));
        assert!(descriptors() > before);
        if stops {
            stand.stop().expect("the devices did not fail");
        } else {
            drop(stand);
        }
        assert_eq!((there().count(), threads(), descriptors()), (0, 0, before));
    }
}

#[test]
fn an_interface_that_is_down_refuses_packets_and_takes_them_again_when_it_is_up() {
    let name = "an_interface_that_is_down_refuses_packets_and_takes_them_again_when_it_is_up";
    let Some(bed) = common::begin(name) else { return };
    let stand = stand(&bed, &parallel_links(&[(PLAIN, PLAIN)]));
    let pair = stand.sockets(0).expect("the addresses are there");
    let far = stand.namespaces()[1].name().to_owned();
    let set = |state| ip(&["-n", &far, "link", "set", "if0", state]).expect("the device is there");
    set("down");
    assert_eq!(send(&stand, &pair, 5, 100), 0);
    set("up");
    assert_eq!(send(&stand, &pair, 5, 100), 5);
    let report = stand.stop().expect("the devices did not fail");
    assert_eq!((report.counters.refused(), report.counters.routes[0].packets_out), (5, 5));
    assert!(report.refusal.is_some());
}

#[test]
fn a_device_that_goes_away_ends_the_emulation_with_an_error() {
    let Some(bed) = common::begin("a_device_that_goes_away_ends_the_emulation_with_an_error") else { return };
    let stand = stand(&bed, &parallel_links(&[(PLAIN, PLAIN)]));
    let name = stand.namespaces()[0].name().to_owned();
    ip(&["-n", &name, "link", "delete", "if0"]).expect("the device is there");
    let error = stand.stop().expect_err("a device is gone").to_string();
    assert!(error.contains("device 0"), "{error}");
}

#[test]
fn a_quick_calibration_keeps_rates_losses_and_limits() {
    let Some(bed) = common::begin("a_quick_calibration_keeps_rates_losses_and_limits") else { return };
    let calibration = calibrate(&bed.session, true).expect("this process may make namespaces");
    // Delays and rates depend on how busy the machine is; losses and limits do not.
    for check in calibration.checks.iter().filter(|check| ["loss", "queue"].contains(&check.what)) {
        assert!(check.passed(), "{calibration}");
    }
    assert_eq!(calibration.checks.len(), 10, "{calibration}");
}
