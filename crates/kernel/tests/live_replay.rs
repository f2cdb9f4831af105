//! Live parity: every call that the shim makes on real traffic is recorded, with what the algorithm was given and
//! what it gave, and put to the host build, which must give the same, bit for bit.
//!
//! The replay test gives both builds the same random numbers; this one gives the host build what the shim's
//! arithmetic makes of a real kernel, with joins, losses and leaves, in an object that differs from the shipped one by
//! the recording only (`bpf/record.h`).

mod common;

use std::{cell::RefCell, collections::HashMap, fs, rc::Rc, time::Duration};

use anabranch_cc::{
    Algorithm, Conn, Context, Controller, Coupling, HOT_STATE_BYTES, Hosts, MAX_PEERS, Out, Peer, View,
};
use anabranch_kernel::EVENTS;
use common::{
    bytes::{bytes_of, call, from_bytes},
    lab::Lab,
    transfer::{Connection, End},
};
use libbpf_rs::{
    Link, MapCore as _, MapFlags, MapType, Object, ObjectBuilder, RingBufferBuilder, libbpf_sys,
};
use socket2::Protocol;

/// Bytes to the client; a second or less over two bottlenecks.
const DOWN: usize = 3_000_000;
const UP: usize = 300_000;
const MBIT: u32 = 20;

#[test]
fn what_the_shim_computes_on_real_traffic_the_host_computes_too() {
    if common::skip("what_the_shim_computes_on_real_traffic_the_host_computes_too") {
        return;
    }
    for algorithm in anabranch_cc::algorithms().iter().filter(|algorithm| algorithm.hosts() == Hosts::Both) {
        let recorder = Recorder::load(algorithm);
        let lab = Lab::new(MBIT);
        lab.add_second_subflow();
        let kernel_name: &'static str = format!("ab_{}", algorithm.name()).leak();
        let end = End { protocol: Protocol::MPTCP, congestion: kernel_name };
        let connection = Connection::open(&lab, end, end);
        connection.transfer(DOWN, UP, || lab.wait_for_second_subflow());
        drop(connection);
        drop(lab);
        let calls = recorder.compare();
        common::say(&format!("{}: {calls} recorded calls equal", algorithm.name()));
        // How many there are depends on how ACKs bunch; some 2,000 segments and as many ACKs or fewer go either way.
        assert!(calls > 100, "{}: {calls} calls in {DOWN} bytes", algorithm.name());
    }
}

/// The recording object, registered.
struct Recorder {
    algorithm: &'static Algorithm,
    // Declared before the object: the name goes before the programs do.
    _link: Link,
    object: Object,
}

impl Recorder {
    fn load(algorithm: &'static Algorithm) -> Self {
        let path = format!("{}/ab_{}.record.bpf.o", env!("ANABRANCH_BPF_DIR"), algorithm.name());
        let elf = fs::read(&path).expect("the build has made the object");
        let mut open = ObjectBuilder::default().open_memory(&elf).expect("the object opens");
        for mut map in open.maps_mut().filter(|map| map.map_type() == MapType::StructOps) {
            let flags = map.map_flags() | libbpf_sys::BPF_F_LINK;
            map.set_map_flags(flags).expect("a table takes flags before it is loaded");
        }
        let mut object = open.load().unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut table = object
            .maps_mut()
            .find(|map| map.map_type() == MapType::StructOps)
            .expect("the shim defines one table");
        let link = table.attach_struct_ops().unwrap_or_else(|error| panic!("{path}: {error}"));
        Self { algorithm, _link: link, object }
    }

    /// Puts every recorded call to the host build; the number of calls.
    fn compare(&self) -> usize {
        let lost =
            self.object.maps().find(|map| map.name() == ".data.lost").expect("it counts what it loses");
        let lost = lost.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).expect("it can be read");
        assert_eq!(lost.expect("an array has its first element"), [0; 8], "records lost");

        let host = Rc::new(RefCell::new(Host::new(self.algorithm)));
        let records = self.object.maps().find(|map| map.name() == "ab_records").expect("it records");
        let mut ring = RingBufferBuilder::new();
        let callee = Rc::clone(&host);
        ring.add(&records, move |bytes| {
            callee.borrow_mut().check(bytes);
            0
        })
        .expect("the ring can be read");
        ring.build().expect("the ring can be read").poll(Duration::ZERO).expect("it can be read");
        host.borrow().calls
    }
}

/// The host build's controllers, by socket.
struct Host {
    algorithm: &'static Algorithm,
    controllers: HashMap<u64, Controller>,
    calls: usize,
}

impl Host {
    fn new(algorithm: &'static Algorithm) -> Self {
        Self { algorithm, controllers: HashMap::new(), calls: 0 }
    }

    fn check(&mut self, record: &[u8]) {
        let mut at = 0;
        let mut take = |bytes: usize| {
            at += bytes;
            &record[at - bytes..at]
        };
        let socket = u64::from_ne_bytes(take(8).try_into().expect("eight bytes"));
        let event = u32::from_ne_bytes(take(4).try_into().expect("four bytes")) as usize;
        let answer = u32::from_ne_bytes(take(4).try_into().expect("four bytes"));
        let view: View = from_bytes(take(size_of::<View>()));
        let out = take(size_of::<Out>());
        let state = take(HOT_STATE_BYTES);
        let coupled = self.algorithm.coupling() == Coupling::Coupled;
        let (mut peers, mut conn, mut after) = ([Peer::default(); MAX_PEERS], Conn::default(), None);
        if coupled {
            peers = from_bytes(take(size_of::<[Peer; MAX_PEERS]>()));
            conn = from_bytes(take(size_of::<Conn>()));
            after = Some(take(size_of::<Conn>()));
        }

        let fresh = || Controller::with_defaults(self.algorithm);
        if EVENTS[event] == "init" || !self.controllers.contains_key(&socket) {
            self.controllers.insert(socket, fresh());
        }
        let controller = self.controllers.get_mut(&socket).expect("it was just made");
        let mut own = Out::default();
        let context = Context { view: &view, peers: &peers, conn: &mut conn };
        let own_answer = call(controller, EVENTS[event], context, &mut own);

        let place = format!(
            "{}: call {} of socket {socket:#x}: {}, {view:?}",
            self.algorithm.name(),
            self.calls,
            EVENTS[event]
        );
        assert_eq!(own_answer, answer, "answer: {place}");
        assert_eq!(bytes_of(&own), out, "output: {place}");
        assert_eq!(controller.state_bytes(), state, "hot state: {place}");
        if let Some(after) = after {
            assert_eq!(bytes_of(&conn), after, "connection: {place}");
        }
        self.calls += 1;
    }
}
