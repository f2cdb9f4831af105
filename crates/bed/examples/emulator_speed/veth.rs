//! Two namespaces that are joined to a third by veth pairs.

use anabranch_bed::host::{Namespace, ip};

use crate::{Failure, Laid, packet::Packet, path::Port, tun::sockets, xdp::Xdp};

/// The devices in the middle.
const DEVICES: [&str; 2] = ["if0", "if1"];

/// Namespaces with their devices.
pub(crate) struct Veths {
    sides: [Namespace; 2],
    middle: Namespace,
}

impl Veths {
    pub(crate) fn new() -> Result<Self, Failure> {
        let namespace = |side| Namespace::new(&format!("speed-veth-{}-{side}", std::process::id()));
        let veths = Self { sides: [namespace("a")?, namespace("b")?], middle: namespace("m")? };
        for ((side, device), (own, peer)) in
            veths.sides.iter().zip(DEVICES).zip([("10.0.0.1", "10.0.0.2"), ("10.0.0.2", "10.0.0.1")])
        {
            let (side, middle) = (side.name(), veths.middle.name());
            ip(&["-n", middle, "link", "add", device, "type", "veth", "peer", "name", "if0", "netns", side])?;
            ip(&["-n", middle, "link", "set", device, "up"])?;
            ip(&["-n", side, "address", "add", own, "peer", peer, "dev", "if0"])?;
            ip(&["-n", side, "link", "set", "if0", "up"])?;
        }
        Ok(veths)
    }

    fn lay(&self, port: impl Fn(&str) -> Result<Box<dyn Port>, Failure> + Sync) -> Result<Laid, Failure> {
        let [a, b] = self.middle.enter(|| DEVICES.map(&port))?;
        Ok((sockets(&self.sides)?, [a?, b?]))
    }

    /// With AF_PACKET sockets in the middle.
    pub(crate) fn packet(&self) -> Result<Laid, Failure> {
        self.lay(|device| Ok(Box::new(Packet::new(device)?)))
    }

    /// With AF_XDP sockets in the middle.
    pub(crate) fn xdp(&self) -> Result<Laid, Failure> {
        self.lay(|device| Ok(Box::new(Xdp::new(device)?)))
    }
}
