//! A run under supervision: after every event, what must hold at that moment is checked; at the end, what
//! must hold of the whole.

use anabranch_cc::CaState;
use anabranch_record::model::Measurements;
use anabranch_scenario::{
    model::{ChangeTarget, Direction, Hop, Scenario, Subflow, Traffic},
    workload,
};

use super::{Connection, Phase, Side, World};
use crate::{
    engine::heads::Key,
    mptcp::later::Later,
    packet::{Packet, flags},
    tcp::{
        segments::{LOST, RETRANSMITTED, SACKED},
        sender::Method,
    },
};

/// Runs a scenario and checks it all the while.
///
/// # Panics
/// If anything is wrong, with the time and the endpoint.
pub(crate) fn run<K: Key>(scenario: &Scenario, seed: u64) -> Measurements {
    run_marked::<K>(scenario, seed, |_| {})
}

/// The same, with a look at each packet that is about to reach its end, which may mark it.
pub(crate) fn run_marked<K: Key>(
    scenario: &Scenario,
    seed: u64,
    mut mark: impl FnMut(&mut Packet),
) -> Measurements {
    let scenario = &*workload::expand(scenario, seed);
    let mut world = World::<K>::new(scenario, seed);
    world.net.log_drops();
    let mut arrived = vec![0; world.endpoints.len()];
    let quiet = advance(
        &mut world,
        |_, _, packet| mark(packet),
        |world, packet| {
            if let Some((sink, packet)) = packet
                && packet.has(flags::DATA)
            {
                arrived[sink as usize] += 1;
            }
            check_now(world);
            check_relays(world);
            check_transfers(world);
        },
    );
    check_files(&world);
    check_transferred(&world);
    if quiet {
        check_applications(&world);
        check_balance(&mut world, &arrived);
    }
    world.measurements()
}

/// The loop of [`World::run`], with a look at each packet that is about to reach its end, and one after every event; says
/// whether nothing was under way at the end.
pub(crate) fn advance<K: Key>(
    world: &mut World<'_, K>,
    mut touch: impl FnMut(&World<'_, K>, u32, &mut Packet),
    mut look: impl FnMut(&World<'_, K>, Option<(u32, Packet)>),
) -> bool {
    let end = world.scenario.duration;
    loop {
        let (time, link) = world.net.first();
        let timer = world.timers.first();
        if time.min(timer) > end {
            world.now = end;
            return world.net.is_empty();
        }
        let mut packet = None;
        if time <= timer {
            world.now = time;
            packet = world.net.advance(time, link);
            if let Some((sink, packet)) = &mut packet {
                touch(world, *sink, packet);
                world.receive(*sink, *packet);
            }
        } else if let Some((time, id)) = world.timers.pop() {
            world.now = time;
            world.fire(time, id);
        }
        look(world, packet);
    }
}

fn check_now<K: Key>(world: &World<'_, K>) {
    for (index, endpoint) in world.endpoints.iter().enumerate() {
        let sender = &endpoint.sender;
        let at = || format!("endpoint {index} at {} ns, in {:?}", world.now, sender.state);
        if sender.state == CaState::Cwr {
            assert!(sender.una <= sender.recover, "a reduction lasts a round trip, {}", at());
            assert!(endpoint.ecn.is_agreed(), "nobody asked for marks, {}", at());
        }
        assert!((1..=sender.clamp).contains(&sender.cwnd), "cwnd {} of {}", sender.cwnd, at());
        assert!(sender.ssthresh >= 1, "ssthresh {} of {}", sender.ssthresh, at());
        let answers = endpoint.phase == Phase::SynReceived && world.repeats_answer(index);
        let waits = answers || matches!(endpoint.phase, Phase::SynSent | Phase::PreEstablished);
        let timed = waits || endpoint.life.announces || sender.outstanding() > 0;
        assert_eq!(sender.timer.is_armed(), timed, "timer of {}, {:?}", at(), endpoint.phase);
        let marks = (sender.una..sender.next).map(|number| sender.segments.get(number).flags);
        if sender.uses_sack() {
            // SetPipe (RFC 6675 section 4).
            let pipe: u32 = marks
                .map(|marks| match (marks & SACKED != 0, marks & LOST != 0, marks & RETRANSMITTED != 0) {
                    (true, lost, again) => {
                        assert!(!lost && !again, "a SACKed segment is neither lost nor under way, {}", at());
                        0
                    }
                    (false, lost, again) => u32::from(!lost) + u32::from(again),
                })
                .sum();
            assert_eq!(sender.in_flight(), pipe, "pipe of {}", at());
        }
        if let (Method::Rack(_), CaState::Open) = (&sender.method, sender.state) {
            let mut marks = (sender.una..sender.next).map(|n| sender.segments.get(n).flags);
            assert!(
                marks.all(|marks| marks & (LOST | RETRANSMITTED) != LOST),
                "a loss begins recovery, {}",
                at()
            );
        }
        if let Method::Sack(_) = sender.method {
            let mut lost = (sender.una..sender.next).map(|n| sender.segments.get(n).flags & LOST != 0);
            assert!(lost.next() != Some(false) || !lost.any(|lost| lost), "the oldest is lost too, {}", at());
        }
        assert!(u64::from(sender.in_flight()) <= 2 * sender.outstanding(), "{}", at());
    }
    for (number, connection) in world.connections.iter().enumerate() {
        let transport = &world.scenario.connections[number].transport;
        let at = || format!("connection {number} at {} ns", world.now);
        for (sender, receiver) in [(0, 1), (1, 0)] {
            let send = &connection.sides[sender].send;
            let unacknowledged = send.unacknowledged_bytes();
            let receive = &connection.sides[receiver].receive;
            // RFC 9293 section 3.8.6, RFC 8684 section 3.3.1: never beyond the window.
            let offered = connection.sides[receiver].window.offered.map_or(u64::MAX, u64::from);
            assert!(offered <= transport.receive_buffer.unwrap_or(u64::MAX), "window {offered}, {}", at());
            // The receiver holds nothing beyond what it has offered, counted from what it has delivered.
            let edge = send.window_edge();
            assert!(edge <= receive.delivered_bytes.saturating_add(offered), "window edge {edge}, {}", at());
            assert!(send.cut_bytes() <= edge, "{}", at());
            assert!(connection.feeds.is_some() || unacknowledged <= offered, "{}", at());
            // A buffer that shrinks, for a subflow has ended, still holds what is in it.
            let held = if transport.send_buffer_tuning {
                u64::MAX
            } else {
                transport.send_buffer.unwrap_or(u64::MAX)
            };
            assert!(unacknowledged <= held, "{}", at());
            assert!(receive.held_bytes <= transport.receive_buffer.unwrap_or(u64::MAX), "{}", at());
            let written = send.written_bytes().unwrap_or(u64::MAX);
            assert!(receive.delivered_bytes <= written, "{}", at());
            assert!(receive.next <= send.next, "delivered what was never sent, {}", at());
        }
    }
}

fn check_relays<K: Key>(world: &World<'_, K>) {
    for (index, relay) in world.relays.iter().enumerate() {
        let at = || format!("relay {index} at {} ns", world.now);
        let model = &world.scenario.relays[index];
        let held = world.held_by(index);
        assert!(held <= model.buffer_bytes, "{held} bytes are held by {}", at());
        let [input, output] = [relay.input, relay.output].map(|at| &world.connections[at as usize]);
        let unread = input.sides[1].receive.delivered_bytes - relay.read;
        let room = world.scenario.connections[model.input].transport.receive_buffer;
        assert!(unread <= room.unwrap_or(u64::MAX), "{unread} bytes are unread at {}", at());
        assert_eq!(
            relay.read,
            output.sides[0].send.cut_bytes() + held,
            "nothing is lost or added at {}",
            at()
        );
    }
}

/// Every chunk has arrived, or one connection has it, or it can be claimed.
fn check_transfers<K: Key>(world: &World<'_, K>) {
    for (model, transfer) in world.scenario.transfers.iter().zip(&world.transfers) {
        let distributor = transfer.carriers.distributor();
        let arrived = distributor.arrived_chunks();
        let mut held: Vec<u64> = (0..model.over.len()).flat_map(|worker| distributor.held(worker)).collect();
        held.retain(|&chunk| !arrived.contains(chunk));
        held.sort_unstable();
        let at = || format!("transfer {} at {} ns", model.name, world.now);
        assert!(held.windows(2).all(|pair| pair[0] < pair[1]), "a chunk is with two, {}", at());
        let known = arrived.set_count() + held.len() as u64 + distributor.unclaimed();
        assert_eq!(known, arrived.count(), "{}", at());
    }
}

/// A transfer is complete unless one of its connections cannot carry anything in the end; if they may be given up, unless none
/// can.
fn check_transferred<K: Key>(world: &World<'_, K>) {
    for (model, transfer) in world.scenario.transfers.iter().zip(&world.transfers) {
        let able = |&number: &usize| is_able(world, number);
        let expected = match model.give_up {
            None => model.over.iter().all(able),
            Some(_) => model.over.iter().any(able),
        };
        assert!(!expected || transfer.completed_at.is_some(), "the transfer {} is not complete", model.name);
    }
}

/// A file arrives whole unless no subflow that could carry it has a path in the end.
fn check_files<K: Key>(world: &World<'_, K>) {
    for (number, connection) in world.connections.iter().enumerate() {
        let model = &world.scenario.connections[number];
        let Traffic::File { bytes, direction, .. } = model.traffic else { continue };
        let able = is_able(world, number);
        let (up, down) = (direction != Direction::Download, direction != Direction::Upload);
        let expected = [if down { bytes } else { 0 }, if up { bytes } else { 0 }];
        let delivered = [0, 1].map(|side| connection.sides[side].receive.delivered_bytes);
        if able {
            assert_eq!(delivered, expected, "the file {} is not complete", model.name);
            let completed = connection.completed_at.expect("a complete file has its time");
            let spent = completed - connection.opened_at;
            let fastest: u64 = model.subflows.iter().map(|subflow| fastest(world.scenario, subflow)).sum();
            let carried = u128::from(spent) * u128::from(fastest) / 8_000_000_000;
            assert!(u128::from(bytes) <= carried, "{bytes} bytes in {spent} ns over {fastest} bit/s");
        }
    }
}

/// Where nothing is under way, whatever has been written has been delivered, unless no subflow could carry it.
fn check_applications<K: Key>(world: &World<'_, K>) {
    for (number, connection) in world.connections.iter().enumerate().filter(|(at, _)| is_able(world, *at)) {
        for (sender, receiver) in [(0, 1), (1, 0)] {
            let delivered = connection.sides[receiver].receive.delivered_bytes;
            let written = connection.sides[sender].send.written_bytes().unwrap_or(delivered);
            assert_eq!(delivered, written, "side {sender} of connection {number} is stuck");
        }
    }
}

/// Whether a subflow has a path in the end, and both its ends take part or the first one is still being opened.
fn is_able<K: Key>(world: &World<'_, K>, number: usize) -> bool {
    let subflows = &world.scenario.connections[number].subflows;
    world.connections[number].endpoints(0).zip(subflows).enumerate().any(|(at, (index, subflow))| {
        let ends = &world.endpoints[index..=index + 1];
        let begins = at == 0 && ends[0].life.ended == 0;
        let opens = begins || ends.iter().all(|end| end.phase == Phase::Established);
        opens && is_up(world.scenario, subflow)
    })
}

/// Every data packet sent has arrived or is known to be lost, and no pooled memory is held by the lost.
fn check_balance<K: Key>(world: &mut World<'_, K>, arrived: &[u64]) {
    let mut lost = vec![0; world.endpoints.len()];
    for (_, packet) in world.net.take_drops() {
        let sink = world.net.sink_of(packet) as usize;
        if packet.has(flags::DATA) {
            lost[sink] += 1;
        }
    }
    for (index, endpoint) in world.endpoints.iter().enumerate() {
        let peer = index ^ 1;
        let sent = endpoint.sender.counters.packets;
        assert_eq!(sent, arrived[peer] + lost[peer], "packets of endpoint {index}");
        // A number is left out where a subflow has ended.
        let unique = endpoint.sender.next - u64::from(endpoint.life.ended);
        assert_eq!(sent, unique + endpoint.sender.counters.retransmits, "retransmissions of {index}");
    }
    assert_eq!(world.net.sacks.in_use(), 0, "SACK blocks of packets that are gone");
    for (number, connection) in world.connections.iter().enumerate() {
        check_carried(world, number, connection);
    }
}

/// Whatever has left a side more often than once at the data level is counted as a reinjection or a copy.
fn check_carried<K: Key>(world: &World<'_, K>, number: usize, connection: &Connection) {
    for (sender, receiver) in [(0, 1), (1, 0)] {
        let Side { send, mechanics, .. } = &connection.sides[sender];
        let again = send.reinjections + send.copies;
        let unique = |index: usize| {
            let endpoint = &world.endpoints[index];
            endpoint.sender.next - u64::from(endpoint.life.ended)
        };
        let carried: u64 = connection.endpoints(sender).map(unique).sum();
        // What waited for a subflow that failed has been counted, and has left on another one alone.
        let later = mechanics.as_ref().and_then(|mechanics| mechanics.later.as_deref());
        let queues = matches!(later, Some(Later::Queues(_)));
        let counted = if queues { carried <= send.next + again } else { carried == send.next + again };
        assert!(counted, "{carried} segments, {} and {again} again, side {sender} of {number}", send.next);
        let duplicates = connection.sides[receiver].receive.duplicates;
        assert!(
            duplicates <= again,
            "{duplicates} came twice, {again} were sent again, side {sender} of {number}"
        );
    }
}

fn is_up(scenario: &Scenario, subflow: &Subflow) -> bool {
    subflow.hops.iter().all(|&hop| {
        [hop, hop.reversed()].into_iter().all(|hop| {
            let of_hop = scenario.changes.iter().filter(|change| is_about(change.target, hop));
            of_hop.filter_map(|change| change.up).next_back().unwrap_or(true)
        })
    })
}

/// The rate of the slowest hop, each at its fastest.
fn fastest(scenario: &Scenario, subflow: &Subflow) -> u64 {
    let rate = |&hop: &Hop| {
        let first = match hop {
            Hop::Wire { link, forward: true } => scenario.links[link].forward.rate_bps,
            Hop::Wire { link, forward: false } => scenario.links[link].reverse.rate_bps,
            Hop::Medium { medium, .. } => {
                let rates = scenario.media[medium].transmitters.iter().flat_map(|of| &of.rates);
                rates.map(|step| step.rate_bps).max().expect("a station has a rate")
            }
        };
        let of_hop = scenario.changes.iter().filter(|change| is_about(change.target, hop));
        of_hop.filter_map(|change| change.rate_bps).fold(first, u64::max)
    };
    subflow.hops.iter().map(rate).min().expect("a path has a hop")
}

fn is_about(target: ChangeTarget, hop: Hop) -> bool {
    match (target, hop) {
        (ChangeTarget::Link { link, forward, reverse }, Hop::Wire { link: of, forward: there }) => {
            link == of && if there { forward } else { reverse }
        }
        (ChangeTarget::Medium(medium), Hop::Medium { medium: of, .. }) => medium == of,
        _ => false,
    }
}
