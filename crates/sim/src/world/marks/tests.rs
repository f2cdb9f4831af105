//! Marks on their way through a whole connection: every packet is looked at as it arrives, and marked where a test says.

use anabranch_link::{Frame as _, Nanos};
use anabranch_scenario::model::{Recovery, Transport};

use super::*;
use crate::{
    testing::{Alone, transport},
    world::audit::{advance, run_marked},
};

/// A packet as it arrived.
struct Seen {
    at: Nanos,
    /// From the side that sends the file.
    forth: bool,
    packet: Packet,
}

const SETUP: &str = r#"
    name = "marks"
    duration = "60 s"
    node = [{ names = ["S", "D"] }]
    link = [{ between = ["S", "D"], rate = "10 Mbit/s", delay = "20 ms", queue = "unlimited", loss = 0 }]
    transport = { profile = "rfc", segment = "1000 B", delayed_ack = "off", ecn = true }
    connection = [{ name = "file", from = "S", to = "D", congestion = "reno", traffic = { kind = "file", size = "400 kB" } }]"#;

fn scenario(text: &str) -> &'static anabranch_scenario::model::Scenario {
    let loaded = anabranch_scenario::load(text, "marks.toml", &[]);
    Box::leak(Box::new(loaded.unwrap_or_else(|error| panic!("{error}")).scenario))
}

/// What arrives, if the new segments with these numbers are marked, and the world at the end.
fn run(text: &str, marked: &[u32]) -> (World<'static, u64>, Vec<Seen>) {
    let mut world = World::<u64>::new(scenario(text), 1);
    let mut seen = Vec::new();
    let look = |world: &World<'_, u64>, sink: u32, packet: &mut Packet| {
        if packet.is_ecn_capable() && marked.contains(&packet.seq) {
            packet.mark();
        }
        seen.push(Seen { at: world.now, forth: sink & 1 == 1, packet: *packet });
    };
    advance(&mut world, look, |_, _| {});
    (world, seen)
}

fn is_data(seen: &&Seen) -> bool {
    seen.packet.has(flags::DATA)
}

#[test]
fn rfc_3168_6_1_1_a_syn_offers_with_two_flags_and_its_answer_accepts_with_one() {
    let (_, seen) = run(SETUP, &[]);
    let both = flags::ECE | flags::CWR;
    let handshake: Vec<u16> = seen[..3].iter().map(|seen| seen.packet.flags & (both | flags::ECT)).collect();
    assert_eq!(handshake, [both, flags::ECE, 0], "and neither may be marked");
    assert!(seen.iter().filter(is_data).all(|seen| seen.packet.has(flags::ECT)));
    assert!(seen.iter().filter(|seen| !is_data(seen)).all(|seen| !seen.packet.has(flags::ECT)));
    let (_, silent) = run(&SETUP.replace("ecn = true", "ecn = false"), &[]);
    let all = both | flags::ECT | flags::CE;
    assert!(silent.iter().all(|seen| seen.packet.flags & all == 0));
}

#[test]
fn rfc_3168_6_1_5_what_is_sent_again_may_not_be_marked() {
    let (world, seen) = run(&SETUP.replace("loss = 0", "loss = 0.02"), &[]);
    assert!(world.endpoints[0].sender.counters.retransmits > 3);
    for seen in seen.iter().filter(is_data) {
        assert_ne!(seen.packet.has(flags::ECT), seen.packet.has(flags::RETRANSMIT));
    }
}

#[test]
fn rfc_3168_6_1_3_marks_are_echoed_until_the_sender_says_that_it_has_reduced() {
    let (world, seen) = run(SETUP, &[50]);
    let marked = seen.iter().find(|seen| seen.packet.has(flags::CE)).expect("one is marked").at;
    let told = seen.iter().find(|seen| seen.forth && is_data(seen) && seen.packet.has(flags::CWR));
    let told = told.expect("the sender has reduced").at;
    for seen in seen.iter().skip(3).filter(|seen| !seen.forth) {
        // An acknowledgement takes 20 ms and the transmission of its 52 B to arrive.
        let left = seen.at - 20_000_000 - 41_600;
        let echo = (marked..told).contains(&left);
        assert_eq!(seen.packet.has(flags::ECE), echo, "an acknowledgement that left at {left} ns");
    }
    assert_eq!(world.endpoints[1].ecn.marks, 1);
    assert_eq!(world.endpoints[0].sender.counters.retransmits, 0);
}

#[test]
fn rfc_3168_6_1_2_the_window_is_halved_once_for_all_marks_of_a_window_of_data() {
    for marked in [vec![50], (50..70).collect::<Vec<_>>()] {
        let (world, seen) = run(SETUP, &marked);
        let sender = &world.endpoints[0].sender;
        assert_eq!((sender.loss_events, sender.counters.recoveries), (1, 0), "{marked:?}");
        let told: Vec<&Seen> = seen.iter().filter(|seen| seen.forth && seen.packet.has(flags::CWR)).collect();
        assert_eq!(told.len(), 2, "the SYN, and the first new segment after the reduction");
        assert_eq!(sender.ssthresh, sender.prior_cwnd / 2);
        assert_eq!(sender.state, CaState::Open);
    }
}

#[test]
fn rfc_3168_6_1_2_marks_of_a_later_window_halve_again() {
    let (world, _) = run(SETUP, &[50, 150, 250]);
    assert_eq!(world.endpoints[0].sender.loss_events, 3);
}

#[test]
fn rfc_3168_6_1_2_a_loss_or_timeout_in_the_window_of_a_mark_does_not_reduce_again() {
    for recovery in [Recovery::NewReno, Recovery::Sack, Recovery::Rack] {
        let mut sender = Alone::new(recovery, 20).0;
        sender.begin_cwr(10);
        assert!(!sender.timeout_begins_episode());
        sender.enter_recovery(sender.ssthresh);
        assert_eq!((sender.cwnd, sender.ssthresh, sender.loss_events), (10, 10, 1));
        assert_eq!(sender.prior_cwnd, 10, "what an undone recovery returns to");
    }
}

#[test]
fn rfc_9937_a_marked_window_shrinks_in_proportion_to_what_is_delivered() {
    let settings = Transport { recovery: Recovery::Sack, prr: true, initial_window: 20, ..transport() };
    let mut sender = Alone::with(&settings);
    sender.0.begin_cwr(10);
    let mut sent = 0;
    for n in 1..=20_u64 {
        let (absorbed, _) = sender.absorb(n, &[]);
        sender.0.reduce_window(&absorbed);
        sent += sender.send().len() as u64;
        let in_proportion = n.div_ceil(2);
        assert!(sent == in_proportion || (n == 19 && sent == 9), "{sent} after {n} acknowledgements");
    }
    assert_eq!(sender.0.in_flight(), 10, "as much as ssthresh: one was kept back when that was reached");
}

#[test]
fn reno_whose_every_400th_packet_is_marked_has_a_mean_window_of_1_22_by_the_root_of_that_rate() {
    // RFC 5681's sawtooth: 3/8 W^2 packets per mark. Tolerance 10 %: the window stands still for the round trip of the
    // reduction, which takes 3 % off, and is whole packets.
    let text = r#"
        name = "sawtooth"
        duration = "500 s"
        measure.from = "100 s"
        node = [{ names = ["S", "D"] }]
        link = [{ between = ["S", "D"], rate = "100 Mbit/s", delay = "50 ms", queue = "unlimited" }]
        transport = { profile = "rfc", delayed_ack = "off", ecn = true }
        connection = [{ name = "ftp", from = "S", to = "D", congestion = "reno" }]"#;
    let mut count = 0;
    let run = run_marked::<u64>(scenario(text), 1, |packet| {
        count += u32::from(packet.is_ecn_capable());
        if packet.is_ecn_capable() && count % 400 == 0 {
            packet.mark();
        }
    });
    let figure = |metric: &str| {
        let found = run.summary.figures.iter().find(|figure| figure.metric == metric);
        found.unwrap_or_else(|| panic!("no {metric}")).value
    };
    let expected = (1.5_f64 * 400.0).sqrt();
    let mean = figure("mean_cwnd_packets");
    assert!((mean / expected - 1.0).abs() < 0.1, "{mean} packets, expected {expected}");
    let (marks, sent) = (figure("ecn_marks"), figure("packets_sent"));
    assert!((marks - sent / 400.0).abs() <= 1.0, "{marks} marks on {sent} packets");
}
