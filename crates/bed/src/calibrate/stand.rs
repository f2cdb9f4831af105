//! Two namespaces with emulated links between them, and sockets at both ends: enough to measure the emulator
//! with, and nothing else.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

use anabranch_scenario::model::{Hop, Link, Node, Scenario, Strips, Wire};

use crate::{
    BedError,
    emulator::{Emulator, Route, Running, bare::links_alone},
    host::{Leftover, Namespace, Session, ip, namespace::PREFIX, tun},
};

/// Packets that the kernel keeps for the emulator at a device; more than any measurement has under way.
const DEVICE_QUEUE: &str = "10000";
/// Name of the device in both namespaces.
const DEVICE: &str = "if0";

/// A scenario of two nodes, `a` and `b`, and links that all go from one to the other.
pub fn parallel_links(wires: &[(Wire, Wire)]) -> Scenario {
    let link = |(index, &(forward, reverse)): (usize, &(Wire, Wire))| Link {
        name: index.to_string(),
        a: 0,
        b: 1,
        forward,
        reverse,
        strips: Strips::Nothing,
    };
    let nodes = ["a", "b"].map(|name| Node { name: name.to_owned(), agent: None });
    links_alone(nodes.into(), wires.iter().enumerate().map(link).collect())
}

/// Namespaces `a` and `b`, one TUN device in each. Path `i` of a stand lies between addresses of its own.
pub struct Stand {
    // The order is that of removal: first the emulator with the devices, then the namespaces.
    running: Option<Running>,
    a: Namespace,
    b: Namespace,
    _noted: Noted,
}

/// The namespaces in the session's ledger, until dropped.
struct Noted {
    session: Session,
    namespaces: [Leftover; 2],
}

impl Drop for Noted {
    fn drop(&mut self) {
        for namespace in &self.namespaces {
            // What stays in the ledger is looked for, in vain, when the session ends.
            let _ = self.session.forget(namespace);
        }
    }
}

impl Stand {
    /// Builds the namespaces and starts the emulator on the links of `scenario`. `paths` are the hops of each
    /// path from `a` to `b`; its way back is the same, reversed. Routes are numbered `2 * path` forth and
    /// `2 * path + 1` back.
    ///
    /// # Errors
    /// [`BedError::Unavailable`] without ip(8), [`BedError::Failed`] or [`BedError::System`] if something
    /// cannot be made, for want of privileges in the first place.
    ///
    /// # Panics
    /// If there are more than 255 paths.
    pub fn new(
        session: &Session,
        scenario: &Scenario,
        seed: u64,
        paths: &[Vec<Hop>],
    ) -> Result<Self, BedError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let roles = ["a", "b"].map(|side| format!("stand-{}-{number}-{side}", process::id()));
        let namespaces = roles.each_ref().map(|role| Leftover::Namespace(format!("{PREFIX}{role}")));
        for namespace in &namespaces {
            session.note(namespace.clone())?;
        }
        let noted = Noted { session: session.clone(), namespaces };
        let (a, b) = (Namespace::new(&roles[0])?, Namespace::new(&roles[1])?);
        let mut devices = Vec::new();
        for (own, other, namespace) in [(1, 2, &a), (2, 1, &b)] {
            devices.push(
                namespace.enter(|| tun::open(DEVICE))?.map_err(BedError::system("making a TUN device"))?,
            );
            let name = namespace.name();
            for path in 0..paths.len() {
                let (local, peer) = (address(path, own).to_string(), address(path, other).to_string());
                ip(&["-n", name, "address", "add", &local, "peer", &peer, "dev", DEVICE])?;
            }
            ip(&["-n", name, "link", "set", DEVICE, "txqueuelen", DEVICE_QUEUE, "up"])?;
        }
        let route = |path: usize, hops, from, to, exit| Route {
            from: address(path, from).into(),
            to: address(path, to).into(),
            hops,
            exit,
        };
        let routes: Vec<Route> = paths
            .iter()
            .enumerate()
            .flat_map(|(path, hops)| {
                let back = hops.iter().rev().map(|hop| hop.reversed()).collect();
                [route(path, hops.clone(), 1, 2, 1), route(path, back, 2, 1, 0)]
            })
            .collect();
        let running = Emulator::new(scenario, seed, &routes, devices, None)?.start(0)?;
        Ok(Self { running: Some(running), a, b, _noted: noted })
    }

    /// Two UDP sockets at the ends of a path, the first at `a`, connected to each other.
    ///
    /// # Errors
    /// [`BedError::System`].
    ///
    /// # Panics
    /// If there are more than 255 paths.
    pub fn sockets(&self, path: usize) -> Result<(UdpSocket, UdpSocket), BedError> {
        let socket = |namespace: &Namespace, own, other| {
            let open = || -> io::Result<UdpSocket> {
                let socket = UdpSocket::bind(SocketAddr::from((address(path, own), PORT)))?;
                socket.connect(SocketAddr::from((address(path, other), PORT)))?;
                Ok(socket)
            };
            namespace.enter(open)?.map_err(BedError::system("opening a UDP socket"))
        };
        Ok((socket(&self.a, 1, 2)?, socket(&self.b, 2, 1)?))
    }

    /// The namespaces `a` and `b`.
    pub fn namespaces(&self) -> [&Namespace; 2] {
        [&self.a, &self.b]
    }

    /// Address of an end of a path: `side` is 1 at `a` and 2 at `b`.
    ///
    /// # Panics
    /// If there are more than 255 paths.
    pub fn address(path: usize, side: u8) -> Ipv4Addr {
        address(path, side)
    }

    /// The emulator.
    ///
    /// # Panics
    /// Never: it runs until [`Stand::stop`] takes the stand.
    pub fn emulator(&self) -> &Running {
        self.running.as_ref().expect("it runs until it is stopped")
    }

    /// Stops the emulator and removes the namespaces.
    ///
    /// # Errors
    /// As [`Running::stop`].
    ///
    /// # Panics
    /// As [`Running::stop`].
    pub fn stop(mut self) -> Result<crate::emulator::Report, BedError> {
        self.running.take().expect("it runs until it is stopped").stop()
    }
}

const PORT: u16 = 7000;

fn address(path: usize, side: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, u8::try_from(path).expect("at most 255 paths"), side)
}
