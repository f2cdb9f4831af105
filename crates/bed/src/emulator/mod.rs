//! The links of a scenario in real time: one thread between the TUN devices of the namespaces.
//!
//! The thread holds the whole network: every wire, every medium, all routes. Routers exist only as hops.
//! A packet is read from the device it was sent by, finds its route by its addresses, passes the state
//! machines of `anabranch-link` and is written to the device at its route's end. `docs/emulator.md` says how
//! well that works and how it was measured.

pub(crate) mod bare;
mod buffers;
pub mod counters;
mod devices;
mod engine;
mod headers;
pub(crate) mod middlebox;
mod network;
#[cfg(test)]
mod testing;

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    net::IpAddr,
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread::{self, JoinHandle},
};

use anabranch_scenario::model::{Hop, Scenario};
use nix::{
    sys::eventfd::{EfdFlags, EventFd},
    time::ClockId,
};

pub use counters::{Counters, InterfaceCounters, LinkCounters, Report, RouteCounters, Summary, Times};

use crate::{BedError, Nanos, clock::time_of};
use devices::{Devices, make_punctual};
use engine::Engine;
use network::Network;

/// Sees every packet, for captures.
pub trait Tap: Send {
    /// A packet has entered (`leaves == false`) or left (`true`) the emulated network on a route, at a time of
    /// `CLOCK_REALTIME` in nanoseconds.
    fn packet(&mut self, route: usize, leaves: bool, at_ns: u64, bytes: &[u8]);
}

/// What happens to packets from one address to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Source address.
    pub from: IpAddr,
    /// Destination address.
    pub to: IpAddr,
    /// Links in order, at least one.
    pub hops: Vec<Hop>,
    /// Index of the device by which packets leave.
    pub exit: usize,
}

/// An emulated network that does not run yet.
pub struct Emulator {
    network: Network,
    lookup: BTreeMap<(IpAddr, IpAddr), usize>,
    devices: Vec<File>,
    tap: Option<Box<dyn Tap>>,
    bell: EventFd,
}

impl Emulator {
    /// The links of a scenario between `devices`: descriptors of TUN devices that do not block and give and
    /// take bare IP packets. The seed decides random losses and backoffs as it does in the simulator. `tap`
    /// is called in the emulator's thread and had better be quick.
    ///
    /// # Errors
    /// [`BedError::System`] if the process has no descriptor left.
    ///
    /// # Panics
    /// If a route has no hops, names what is not there, or has the addresses of another.
    pub fn new(
        scenario: &Scenario,
        seed: u64,
        routes: &[Route],
        devices: Vec<OwnedFd>,
        tap: Option<Box<dyn Tap>>,
    ) -> Result<Self, BedError> {
        let mut lookup = BTreeMap::new();
        for (index, route) in routes.iter().enumerate() {
            assert!(route.exit < devices.len(), "there is no device {}", route.exit);
            let other = lookup.insert((route.from, route.to), index);
            assert!(other.is_none(), "two routes lead from {} to {}", route.from, route.to);
        }
        let network = Network::new(scenario, seed, routes.iter().map(|route| (&route.hops[..], route.exit)));
        let bell = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
            .map_err(io::Error::from)
            .map_err(BedError::system("making an eventfd"))?;
        Ok(Self { network, lookup, devices: devices.into_iter().map(File::from).collect(), tap, bell })
    }

    /// Starts the thread. Packets pass from now on; the scenario's changes come at `zero_ns` of
    /// `CLOCK_MONOTONIC` plus their own time, those of the past at once.
    ///
    /// # Errors
    /// [`BedError::System`] if there can be no further thread.
    pub fn start(mut self, zero_ns: Nanos) -> Result<Running, BedError> {
        self.network.begin_at(zero_ns);
        let bell = Arc::new(self.bell);
        let (orders, order_receiver) = channel();
        let (reply_sender, replies) = channel();
        let inside = Inside {
            network: self.network,
            lookup: self.lookup,
            devices: self.devices,
            tap: self.tap,
            bell: Arc::clone(&bell),
            orders: order_receiver,
            replies: reply_sender,
        };
        let thread = thread::Builder::new()
            .name("emulator".to_owned())
            .spawn(move || inside.run())
            .map_err(BedError::system("starting the emulator's thread"))?;
        let desk = Mutex::new(Desk { replies, last: Counters::default() });
        Ok(Running { orders, bell, desk, thread: Some(thread) })
    }
}

/// What the thread is asked to do.
enum Order {
    /// Fill in the counters and send them back.
    Count(Box<Counters>),
    /// End.
    Stop,
}

/// What the thread owns.
struct Inside {
    network: Network,
    lookup: BTreeMap<(IpAddr, IpAddr), usize>,
    devices: Vec<File>,
    tap: Option<Box<dyn Tap>>,
    bell: Arc<EventFd>,
    orders: Receiver<Order>,
    replies: Sender<Box<Counters>>,
}

impl Inside {
    fn run(self) -> Result<Report, BedError> {
        let realtime = make_punctual()?;
        let machine = Devices::new(&self.devices, &self.bell);
        let to_realtime = time_of(ClockId::CLOCK_REALTIME).wrapping_sub(time_of(ClockId::CLOCK_MONOTONIC));
        let mut engine = Engine::new(machine, self.network, self.lookup, self.tap, to_realtime);
        loop {
            if !engine.turn()? {
                continue;
            }
            while let Ok(order) = self.orders.try_recv() {
                match order {
                    Order::Count(mut counters) => {
                        engine.count(&mut counters);
                        // Whoever asked may have gone; then nobody misses the answer.
                        let _ = self.replies.send(counters);
                    }
                    Order::Stop => {
                        return Ok(engine.finish(time_of(ClockId::CLOCK_THREAD_CPUTIME_ID), realtime));
                    }
                }
            }
        }
    }
}

/// Where counters are handed out, to one at a time.
struct Desk {
    replies: Receiver<Box<Counters>>,
    last: Counters,
}

/// An emulated network in operation; dropping it stops it.
pub struct Running {
    orders: Sender<Order>,
    bell: Arc<EventFd>,
    desk: Mutex<Desk>,
    thread: Option<JoinHandle<Result<Report, BedError>>>,
}

impl Running {
    /// The counters as they are now: the thread is woken to take stock, which takes some ten microseconds. If
    /// it has ended because of an error, which [`Running::stop`] returns, they are the last that it gave.
    pub fn counters(&self) -> Counters {
        let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        self.order(Order::Count(Box::new(desk.last.clone())));
        if let Ok(counters) = desk.replies.recv() {
            desk.last = *counters;
        }
        desk.last.clone()
    }

    fn order(&self, order: Order) {
        // Both fail only once the thread has ended, which the caller finds by the missing answer.
        if self.orders.send(order).is_ok() {
            let _ = self.bell.write(1);
        }
    }

    /// Stops the thread and closes the devices. Packets that are under way are gone.
    ///
    /// # Errors
    /// [`BedError::System`] if a device failed while the network was in operation.
    ///
    /// # Panics
    /// If the thread did.
    pub fn stop(mut self) -> Result<Report, BedError> {
        let thread = self.thread.take().expect("a network is stopped once");
        self.order(Order::Stop);
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.order(Order::Stop);
            // Nobody asked for the result.
            let _ = thread.join();
        }
    }
}
