use std::{
    cell::RefCell,
    collections::VecDeque,
    net::Ipv6Addr,
    rc::Rc,
    sync::{Arc, Mutex},
};

use super::*;
use crate::emulator::testing::{MS, chain, wire};
use anabranch_scenario::model::{CoDel, Discipline, Hop, Scenario, Wire};

/// A machine on which time passes only by waiting and by the set cost of each read and write.
#[derive(Default)]
struct World {
    now: Nanos,
    /// What each read and write takes.
    cost: Nanos,
    /// How much too long each wait takes.
    oversleep: Nanos,
    /// Packets to come, in order: when, at which device.
    coming: VecDeque<(Nanos, usize, Vec<u8>)>,
    /// What has been written: when, to which device.
    written: Vec<(Nanos, usize, Vec<u8>)>,
    /// Writes to this device are refused.
    refusing: Option<usize>,
}

#[derive(Clone, Default)]
struct Fake(Rc<RefCell<World>>);

impl Machine for Fake {
    fn now(&mut self) -> Nanos {
        self.0.borrow().now
    }

    fn wait(&mut self, until: Nanos, ready: &mut Vec<usize>) -> io::Result<bool> {
        let mut world = self.0.borrow_mut();
        ready.clear();
        let next = world.coming.front().map_or(until, |&(at, ..)| at.min(until));
        if next > world.now {
            world.now = next.saturating_add(world.oversleep);
        }
        let now = world.now;
        ready.extend(world.coming.front().filter(|&&(at, ..)| at <= now).map(|&(_, device, _)| device));
        Ok(false)
    }

    fn read(&mut self, device: usize, start: &mut [u8], rest: &mut [u8]) -> io::Result<usize> {
        let mut world = self.0.borrow_mut();
        world.now += world.cost;
        let now = world.now;
        if world.coming.front().is_none_or(|&(at, to, _)| at > now || to != device) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let (_, _, packet) = world.coming.pop_front().expect("there is a first");
        let (head, tail) = packet.split_at(packet.len().min(start.len()));
        start[..head.len()].copy_from_slice(head);
        rest[..tail.len()].copy_from_slice(tail);
        Ok(packet.len())
    }

    fn write(&mut self, device: usize, packet: &[u8]) -> io::Result<()> {
        let mut world = self.0.borrow_mut();
        let now = world.now;
        world.now += world.cost;
        if world.refusing == Some(device) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        world.written.push((now, device, packet.to_vec()));
        Ok(())
    }
}

/// An IPv6 packet of `bytes` from one small address to another.
fn packet(from: u8, to: u8, bytes: usize) -> Vec<u8> {
    let mut packet = vec![0xaa; bytes];
    packet[..40].fill(0);
    (packet[0], packet[23], packet[39]) = (0x60, from, to);
    packet
}

fn v6(address: u8) -> IpAddr {
    Ipv6Addr::from(u128::from(address)).into()
}

/// Routes from 1 to 2 and back over all links, whose ends are devices 0 and 1.
fn engine(scenario: &Scenario, fake: &Fake) -> Engine<Fake> {
    let forth: Vec<Hop> = (0..scenario.links.len()).map(|link| Hop::Wire { link, forward: true }).collect();
    let back: Vec<Hop> = forth.iter().rev().map(|hop| hop.reversed()).collect();
    let network = Network::new(scenario, 1, [(&forth[..], 1), (&back[..], 0)]);
    let lookup = BTreeMap::from([((v6(1), v6(2)), 0), ((v6(2), v6(1)), 1)]);
    Engine::new(fake.clone(), network, lookup, None, 0)
}

/// Lets the engine turn until everything has come and nothing is to happen any more.
fn settle(engine: &mut Engine<Fake>, fake: &Fake) {
    let end = |network: &Network| network.next_event() == anabranch_link::NEVER;
    while !(fake.0.borrow().coming.is_empty() && end(&engine.network)) {
        engine.turn().expect("the fake machine does not fail");
    }
    assert_eq!(engine.buffers.in_use(), 0, "every buffer is given back");
}

#[test]
fn packets_go_to_the_device_at_the_end_of_their_route() {
    let fake = Fake::default();
    fake.0.borrow_mut().coming = [(MS, 0, packet(1, 2, 1000)), (2 * MS, 1, packet(2, 1, 1000))].into();
    let mut engine = engine(&chain(&[wire(8_000_000, 10 * MS)]), &fake);
    settle(&mut engine, &fake);
    let world = fake.0.borrow();
    assert_eq!(
        world.written,
        [(12 * MS, 1, packet(1, 2, 1000)), (13 * MS, 0, packet(2, 1, 1000))],
        "1 ms of transmission and 10 ms of propagation"
    );
}

#[test]
fn what_has_no_route_is_a_stray() {
    let fake = Fake::default();
    let nonsense = vec![0; 60];
    fake.0.borrow_mut().coming =
        [(0, 0, packet(1, 3, 100)), (0, 0, nonsense), (0, 0, packet(1, 2, 100))].into();
    let mut engine = engine(&chain(&[wire(8_000_000, 0)]), &fake);
    settle(&mut engine, &fake);
    let counters = engine.finish(0, false).counters;
    assert_eq!((counters.strays, counters.routes[0].packets_out), (2, 1));
}

#[test]
fn lateness_does_not_add_up_over_hops() {
    let late = |links: usize| {
        let fake = Fake::default();
        fake.0.borrow_mut().oversleep = MS / 2;
        fake.0.borrow_mut().coming = [(0, 0, packet(1, 2, 1000))].into();
        let mut engine = engine(&chain(&vec![wire(8_000_000, 10 * MS); links]), &fake);
        settle(&mut engine, &fake);
        let written = fake.0.borrow().written[0].0;
        (written - links as u64 * 11 * MS, engine.finish(0, false).lateness.summary().max_ns)
    };
    assert_eq!(late(1).0, MS / 2);
    assert_eq!(late(5).0, MS / 2);
    assert!(late(5).1.abs_diff(MS / 2) < MS / 100, "the lateness is recorded: {} ns", late(5).1);
}

#[test]
fn a_slow_machine_keeps_the_spacing_of_the_links() {
    let fake = Fake::default();
    fake.0.borrow_mut().cost = 30_000;
    fake.0.borrow_mut().coming = (0..50).map(|_| (0, 0, packet(1, 2, 1000))).collect();
    let mut engine = engine(&chain(&[wire(80_000_000, 0), wire(8_000_000, 5 * MS)]), &fake);
    settle(&mut engine, &fake);
    let world = fake.0.borrow();
    let first = world.written[0].0;
    for (index, &(at, ..)) in (0..).zip(&world.written) {
        // A millisecond each, and as much later as a write and a vain read take.
        assert!(at.abs_diff(first + index * MS) <= 60_000, "packet {index} left at {at} ns");
    }
    assert_eq!(world.written.len(), 50);
}

#[test]
fn a_packet_beyond_the_usual_size_arrives_whole() {
    let fake = Fake::default();
    let mut large = packet(1, 2, 60_000);
    large[59_999] = 0x55;
    fake.0.borrow_mut().coming = [(0, 0, large.clone())].into();
    let mut engine = engine(&chain(&[wire(8_000_000, 0)]), &fake);
    settle(&mut engine, &fake);
    assert_eq!(fake.0.borrow().written[0].2, large);
    assert_eq!(engine.finish(0, false).counters.largest_bytes, 60_000);
}

#[test]
fn a_refused_packet_is_counted_as_such_and_not_as_delivered() {
    let fake = Fake::default();
    fake.0.borrow_mut().refusing = Some(1);
    fake.0.borrow_mut().coming = [(0, 0, packet(1, 2, 100)), (0, 1, packet(2, 1, 100))].into();
    let mut engine = engine(&chain(&[wire(8_000_000, 0)]), &fake);
    settle(&mut engine, &fake);
    let report = engine.finish(0, false);
    let [forth, back] = report.counters.routes[..] else { panic!("two routes") };
    assert_eq!((forth.packets_out, forth.bytes_out, forth.refused), (0, 0, 1));
    assert_eq!((back.packets_out, back.refused), (1, 0));
    assert_eq!(report.counters.refused(), 1);
    assert!(report.refusal.is_some_and(|why| why.contains("Input/output error")));
}

#[test]
fn the_gap_between_two_looks_at_the_devices_is_recorded() {
    let fake = Fake::default();
    fake.0.borrow_mut().cost = 100_000;
    fake.0.borrow_mut().coming = (0..10).map(|_| (0, 0, packet(1, 2, 100))).collect();
    let mut engine = engine(&chain(&[wire(8_000_000, MS)]), &fake);
    settle(&mut engine, &fake);
    let longest = engine.finish(0, false).gaps.summary().max_ns;
    assert!((1_000_000..1_500_000).contains(&longest), "ten reads and a vain one take 1.1 ms: {longest} ns");
}

#[test]
fn the_tap_sees_packets_enter_and_leave() {
    type Sighting = (usize, bool, u64, usize);
    struct Seen(Arc<Mutex<Vec<Sighting>>>);
    impl Tap for Seen {
        fn packet(&mut self, route: usize, leaves: bool, at_ns: u64, bytes: &[u8]) {
            self.0.lock().expect("nobody panics").push((route, leaves, at_ns, bytes.len()));
        }
    }
    let seen = Arc::default();
    let fake = Fake::default();
    fake.0.borrow_mut().coming = [(MS, 0, packet(1, 2, 1000))].into();
    let mut engine = engine(&chain(&[wire(8_000_000, 10 * MS)]), &fake);
    engine.tap = Some(Box::new(Seen(Arc::clone(&seen))));
    engine.to_realtime = 1_000 * MS;
    settle(&mut engine, &fake);
    let seen = seen.lock().expect("nobody panics");
    assert_eq!(*seen, [(0, false, 1_001 * MS, 1000), (0, true, 1_012 * MS, 1000)]);
}

#[test]
fn a_mark_is_written_into_the_header_and_only_of_packets_that_can_bear_it() {
    let sent = |ecn_capable: bool| {
        let fake = Fake::default();
        let mut bytes = packet(1, 2, 1000);
        bytes[1] = if ecn_capable { 2 << 4 } else { 0 };
        fake.0.borrow_mut().coming = vec![(0, 0, bytes.clone()); 10].into();
        let discipline = Discipline::CoDel(CoDel { target: 0, interval: 1, ecn: true });
        let mut engine = engine(&chain(&[Wire { discipline, ..wire(8_000_000, 0) }]), &fake);
        settle(&mut engine, &fake);
        let world = fake.0.borrow();
        let marked = world.written.iter().filter(|(_, _, written)| written[1] == 3 << 4).count() as u64;
        let same = world.written.iter().filter(|(_, _, written)| *written == bytes).count() as u64;
        assert_eq!(marked + same, world.written.len() as u64, "nothing else is written to");
        let counters = engine.finish(0, false).counters;
        assert_eq!(counters.links[0].marked, marked);
        (marked, counters.routes[0].packets_out, counters.routes[0].lost_queue)
    };
    // The first goes at once, the second is the first above the target, and behind the last two no more than one waits.
    assert_eq!(sent(true), (6, 10, 0));
    let (marked, out, lost) = sent(false);
    assert!(marked == 0 && lost > 0 && out + lost == 10, "{marked} marked, {out} out, {lost} lost");
}
