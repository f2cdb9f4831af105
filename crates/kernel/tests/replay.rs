//! Replay parity: the simulator's build of an algorithm and its BPF build, run in the kernel, are given the
//! same sequence of events. After every call their answer, output, hot state and connection words are equal
//! byte for byte, and the BPF build has left view and peers alone.
//!
//! 256 lanes run side by side. A lane starts with `init` on a zeroed state and carries its state from call
//! to call on either side separately, so that a difference, once there, shows for good (in the cold state
//! too, which only the calls themselves can see).

mod common;

use std::{fs, mem::size_of};

use anabranch_cc::{
    Algorithm, Conn, Context, Controller, Coupling, HOT_STATE_BYTES, Hosts, Kind, MAX_PEERS, OUT_CWND,
    OUT_CWND_CNT, OUT_SSTHRESH, Out, Peer, SSTHRESH_INFINITE, Unit, View,
};
use anabranch_kernel::EVENTS;
use common::{
    Random,
    bytes::{bytes_of, call},
};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, Object, ObjectBuilder, ProgramInput};

const LANES: usize = 256;
const CALLS_PER_LANE: usize = 100;
/// Each with other parameters; the first with the defaults.
const LOADS: u64 = 4;
const SEED: u64 = 0xab_0000_0000;

#[test]
fn every_algorithm_computes_the_same_in_the_kernel_as_in_the_simulator() {
    if common::skip("every_algorithm_computes_the_same_in_the_kernel_as_in_the_simulator") {
        return;
    }
    for algorithm in anabranch_cc::algorithms().iter().filter(|algorithm| algorithm.hosts() == Hosts::Both) {
        for load in 0..LOADS {
            replay(algorithm, SEED + load, load == 0);
        }
        let vectors = LOADS as usize * LANES * CALLS_PER_LANE;
        assert!(vectors >= 100_000);
        common::say(&format!(
            "{}: {vectors} calls equal, seeds {SEED:#x} to +{}",
            algorithm.name(),
            LOADS - 1
        ));
    }
}

fn replay(algorithm: &'static Algorithm, seed: u64, default_params: bool) {
    let mut random = Random(seed);
    let params: Vec<u32> = algorithm
        .params()
        .iter()
        .map(|param| match param.unit {
            _ if default_params => param.default,
            // Every choice has its turn.
            Unit::Choice => param.min + seed as u32 % (param.max - param.min + 1),
            _ => random.between(param.min, param.max),
        })
        .collect();
    let bpf = Bpf::load(algorithm, &params);
    let mut lanes: Vec<Lane> = (0..LANES).map(|_| Lane::new(algorithm, &params, &mut random)).collect();
    let mut frames = vec![0u8; LANES * bpf.entry_bytes];

    for call in 0..CALLS_PER_LANE {
        for (lane, frame) in lanes.iter_mut().zip(frames.chunks_exact_mut(bpf.entry_bytes)) {
            lane.next_event(call == 0, &mut random);
            bpf.layout.write_inputs(frame, lane);
        }
        bpf.run(&mut frames);
        for (index, (lane, frame)) in lanes.iter_mut().zip(frames.chunks_exact(bpf.entry_bytes)).enumerate() {
            let (answer, out) = lane.call();
            let place = || {
                let event = EVENTS[lane.event];
                let name = algorithm.name();
                format!("{name}: {event}, seed {seed:#x}, lane {index}, call {call}, params {params:?}")
            };
            bpf.layout.compare(frame, lane, answer, &out, &place);
            lane.apply(&out);
        }
    }
}

/// One subflow as the host build sees it.
struct Lane {
    controller: Controller,
    conn: Conn,
    peers: [Peer; MAX_PEERS],
    view: View,
    event: usize,
    /// The event of its kind at every ACK.
    answers_to: &'static str,
    /// Samples come steadily, one in four lanes: what is reckoned over intervals needs many of them.
    steady: bool,
}

impl Lane {
    fn new(algorithm: &'static Algorithm, params: &[u32], random: &mut Random) -> Self {
        let view = View {
            now_us: u64::from(random.any_u32()),
            cwnd: 10,
            cwnd_clamp: u32::MAX,
            ssthresh: SSTHRESH_INFINITE,
            mss: 1448,
            ..View::default()
        };
        Self {
            controller: Controller::new(algorithm, params),
            conn: Conn::default(),
            peers: [Peer::default(); MAX_PEERS],
            view,
            event: 0,
            answers_to: match algorithm.kind() {
                Kind::Window => "ack",
                Kind::Rate => "rate",
            },
            steady: random.one_in(4),
        }
    }

    /// Moves the lane's little world on and chooses what happens. One field in eight takes any value.
    fn next_event(&mut self, first: bool, random: &mut Random) {
        let most_samples = if self.steady { 2..=9 } else { 6..=8 };
        self.event = match (first, random.between(1, 10)) {
            (true, _) => 0,
            (false, n) if most_samples.contains(&n) => position("rtt_sample"),
            (false, 1..=5) => position(self.answers_to),
            _ => random.between(1, EVENTS.len() as u32 - 1) as usize,
        };
        let v = &mut self.view;
        let wild = |random: &mut Random, usual: u32| if random.one_in(8) { random.any_u32() } else { usual };
        let rtt_us = random.between(1_000, 300_000);
        let jumps = random.one_in(20) && !self.steady;
        let step_us = if self.steady { 600_000 } else { 200_000 };
        v.now_us += u64::from(if jumps { random.any_u32() } else { random.between(1, step_us) });
        v.acked = if random.one_in(10) { random.any_u32() } else { random.between(1, 4) };
        v.acked_sacked = wild(random, v.acked);
        v.delivered += u64::from(v.acked_sacked);
        v.rs_prior_delivered = v.delivered - u64::from(v.cwnd).min(v.delivered);
        v.rs_delivered = wild(random, v.acked_sacked);
        v.rs_interval_us = if random.one_in(20) { 0 } else { wild(random, rtt_us) };
        v.rs_losses = if random.one_in(10) { wild(random, 3) } else { 0 };
        v.rs_app_limited = u8::from(random.one_in(8));
        v.bytes_acked = v.delivered * u64::from(v.mss);
        v.newly_lost = if random.one_in(10) { random.between(1, 5) } else { 0 };
        v.total_retrans = v.total_retrans.wrapping_add(v.newly_lost);
        v.cwnd = wild(random, v.cwnd).max(1);
        v.ssthresh = wild(random, v.ssthresh).max(1);
        v.cwnd_clamp = if random.one_in(50) { random.any_u32().max(1) } else { u32::MAX };
        v.prior_cwnd = wild(random, v.cwnd);
        v.in_flight = wild(random, v.cwnd);
        v.prior_in_flight = wild(random, v.in_flight);
        v.rtt_us = wild(random, rtt_us);
        v.rtt_valid = u8::from(v.rtt_us > 0);
        v.srtt8_us = wild(random, rtt_us * 8);
        v.mdev4_us = wild(random, rtt_us);
        v.min_rtt_us = wild(random, 1_000);
        let owd_us = 1_000 * random.between(0, 300);
        v.owd_us = wild(random, owd_us);
        v.owd_valid = u8::from(self.steady || !random.one_in(8));
        v.idle_us = wild(random, rtt_us);
        v.ack_gap_us = wild(random, 1_000);
        v.acked_bytes_gap = wild(random, v.mss);
        v.random = random.word() as u32;
        v.ca_state = random.between(0, 4) as u8;
        v.cwnd_limited = u8::from(!random.one_in(8));
        v.app_limited = u8::from(random.one_in(8));
        v.round_start = u8::from(random.one_in(8));
        v.ece = u8::from(random.one_in(50));
        v.self_index = random.between(0, MAX_PEERS as u32 - 1) as u8;

        let self_index = usize::from(v.self_index);
        for (index, peer) in self.peers.iter_mut().enumerate() {
            *peer = random_peer(random);
            if index == self_index {
                (peer.cwnd, peer.srtt8_us, peer.usable) = (v.cwnd, v.srtt8_us, 1);
            }
        }
        v.n_usable = self.peers.iter().map(|peer| peer.usable).sum();
    }

    /// The host build's answer to the event.
    fn call(&mut self) -> (u32, Out) {
        let mut out = Out::default();
        let context = Context { view: &self.view, peers: &self.peers, conn: &mut self.conn };
        let answer = call(&mut self.controller, EVENTS[self.event], context, &mut out);
        (answer, out)
    }

    fn apply(&mut self, out: &Out) {
        if out.mask & OUT_CWND != 0 {
            self.view.cwnd = out.cwnd;
        }
        if out.mask & OUT_CWND_CNT != 0 {
            self.view.cwnd_cnt = out.cwnd_cnt;
        }
        if out.mask & OUT_SSTHRESH != 0 {
            self.view.ssthresh = out.ssthresh;
        }
    }
}

fn position(event: &str) -> usize {
    EVENTS.iter().position(|name| *name == event).expect("the event exists")
}

fn random_peer(random: &mut Random) -> Peer {
    let usual = random.one_in(2);
    let wide =
        |random: &mut Random, low, high| if usual { random.between(low, high) } else { random.any_u32() };
    Peer {
        bytes_since_loss: u64::from(wide(random, 0, 10_000_000)),
        bytes_between_losses: u64::from(wide(random, 0, 10_000_000)),
        public: std::array::from_fn(|_| u64::from(random.any_u32())),
        cwnd: wide(random, 1, 500),
        ssthresh: wide(random, 1, 500),
        mss: wide(random, 536, 1460),
        srtt8_us: wide(random, 8_000, 2_400_000),
        base_rtt_us: wide(random, 1_000, 300_000),
        loss_events: wide(random, 0, 100),
        retrans: wide(random, 0, 1_000),
        energy_nj_per_bit: wide(random, 0, 1_000),
        usable: u8::from(!random.one_in(3)),
        backup: u8::from(random.one_in(4)),
        in_slow_start: u8::from(random.one_in(4)),
        ca_state: random.between(0, 4) as u8,
        reserved: [0; 4],
    }
}

/// The BPF build, loaded.
struct Bpf {
    object: Object,
    calls: MapHandle,
    entry_bytes: usize,
    layout: Layout,
}

impl Bpf {
    fn load(algorithm: &Algorithm, params: &[u32]) -> Self {
        let path = format!("{}/ab_{}.replay.bpf.o", env!("ANABRANCH_BPF_DIR"), algorithm.name());
        let elf = fs::read(&path).expect("the build has made the object");
        let mut open = ObjectBuilder::default().open_memory(&elf).expect("the object opens");
        let mut section =
            open.maps_mut().find(|map| map.name() == ".rodata.params").expect("it has parameters");
        let values = section.initial_value_mut().expect("parameters have defaults");
        for (bytes, value) in values.chunks_exact_mut(4).zip(params) {
            bytes.copy_from_slice(&value.to_ne_bytes());
        }
        let object = open.load().unwrap_or_else(|error| panic!("{path}: {error}"));
        let map = object.maps().find(|map| map.name() == ".data.calls").expect("it has a batch of calls");
        let entry_bytes = map.value_size() as usize / LANES;
        let calls = MapHandle::try_from(&map).expect("a map can be held");
        let layout = Layout { coupled: algorithm.coupling() == Coupling::Coupled };
        let cold_bytes = algorithm.cold_bytes().div_ceil(8) * 8;
        assert_eq!(entry_bytes, layout.end() + cold_bytes, "{path}: layout of struct ab_frame");
        Self { object, calls, entry_bytes, layout }
    }

    fn run(&self, frames: &mut [u8]) {
        let key = 0u32.to_ne_bytes();
        self.calls.update(&key, frames, MapFlags::ANY).expect("the batch can be written");
        let program =
            self.object.progs_mut().find(|prog| prog.name() == "ab_replay").expect("it has a program");
        let output = program.test_run(ProgramInput::default()).expect("the program runs");
        assert_eq!(output.return_value, 0);
        let after = self.calls.lookup(&key, MapFlags::ANY).expect("the batch can be read");
        frames.copy_from_slice(&after.expect("the batch is there"));
    }
}

/// Offsets in `struct ab_replay_call` of bpf/replay.bpf.h.
struct Layout {
    coupled: bool,
}

impl Layout {
    const ANSWER: usize = 4;
    const VIEW: usize = 8;
    const OUT: usize = Self::VIEW + size_of::<View>();
    const STATE: usize = Self::OUT + size_of::<Out>();
    const PEERS: usize = Self::STATE + HOT_STATE_BYTES;
    const CONN: usize = Self::PEERS + size_of::<Peer>() * MAX_PEERS;

    fn end(&self) -> usize {
        if self.coupled { Self::CONN + size_of::<Conn>() } else { Self::PEERS }
    }

    /// State, conn and cold part stay as the last call left them.
    fn write_inputs(&self, frame: &mut [u8], lane: &Lane) {
        put(frame, 0, &(lane.event as u32).to_ne_bytes());
        put(frame, Self::ANSWER, &0u32.to_ne_bytes());
        put(frame, Self::VIEW, bytes_of(&lane.view));
        put(frame, Self::OUT, bytes_of(&Out::default()));
        if self.coupled {
            put(frame, Self::PEERS, bytes_of(&lane.peers));
        }
    }

    fn compare(&self, frame: &[u8], lane: &Lane, answer: u32, out: &Out, place: &dyn Fn() -> String) {
        let same = |what: &str, offset: usize, host: &[u8]| {
            let kernel = &frame[offset..offset + host.len()];
            assert!(kernel == host, "{}: {what}\n  kernel {kernel:?}\n  host   {host:?}", place());
        };
        same("answer", Self::ANSWER, &answer.to_ne_bytes());
        same("view", Self::VIEW, bytes_of(&lane.view));
        same("output", Self::OUT, bytes_of(out));
        same("hot state", Self::STATE, &lane.controller.state_bytes());
        if self.coupled {
            same("peers", Self::PEERS, bytes_of(&lane.peers));
            same("connection", Self::CONN, bytes_of(&lane.conn));
        }
    }
}

fn put(frame: &mut [u8], offset: usize, bytes: &[u8]) {
    frame[offset..offset + bytes.len()].copy_from_slice(bytes);
}
