//! TUN devices, one packet per call.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    net::{SocketAddr, UdpSocket},
    os::fd::{AsFd as _, BorrowedFd},
};

use anabranch_bed::host::{Namespace, ip, tun};

use crate::{
    Failure, Laid,
    path::{Buffer, Port},
};

/// Two namespaces.
pub(crate) struct Tunnels {
    sides: [Namespace; 2],
}

impl Tunnels {
    pub(crate) fn new() -> Result<Self, Failure> {
        let namespace = |side| Namespace::new(&format!("speed-tun-{}-{side}", std::process::id()));
        Ok(Self { sides: [namespace("a")?, namespace("b")?] })
    }

    /// Makes the devices and the sockets.
    pub(crate) fn lay(&self) -> Result<Laid, Failure> {
        let mut ports: Vec<Box<dyn Port>> = Vec::new();
        for (namespace, own, peer) in
            [(&self.sides[0], "10.0.0.1", "10.0.0.2"), (&self.sides[1], "10.0.0.2", "10.0.0.1")]
        {
            ports.push(Box::new(Tun(File::from(namespace.enter(|| tun::open("if0"))??))));
            ip(&["-n", namespace.name(), "address", "add", own, "peer", peer, "dev", "if0"])?;
            ip(&["-n", namespace.name(), "link", "set", "if0", "txqueuelen", "10000", "up"])?;
        }
        let ports = ports.try_into().map_err(|_| "two sides make two ports")?;
        Ok((sockets(&self.sides)?, ports))
    }
}

/// Sockets at 10.0.0.1 and 10.0.0.2, connected to each other.
pub(crate) fn sockets([a, b]: &[Namespace; 2]) -> Result<(UdpSocket, UdpSocket), Failure> {
    let socket = |namespace: &Namespace, own, peer| {
        namespace.enter(|| -> io::Result<UdpSocket> {
            let socket = UdpSocket::bind(SocketAddr::from(([10, 0, 0, own], 7000)))?;
            socket.connect(SocketAddr::from(([10, 0, 0, peer], 7000)))?;
            Ok(socket)
        })
    };
    Ok((socket(a, 1, 2)??, socket(b, 2, 1)??))
}

struct Tun(File);

impl Port for Tun {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn receive(&mut self, buffers: &mut [Buffer]) -> io::Result<usize> {
        for (index, buffer) in buffers.iter_mut().enumerate() {
            match self.0.read(&mut buffer.bytes[..]) {
                Ok(length) => buffer.length = length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(index),
                Err(error) => return Err(error),
            }
        }
        Ok(buffers.len())
    }

    fn send(&mut self, packets: &[Buffer]) -> io::Result<()> {
        for packet in packets {
            self.0.write_all(&packet.bytes[..packet.length])?;
        }
        Ok(())
    }
}
