//! Endpoints: local addresses, and what subflows may do with them (ip-mptcp(8)).

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    ops::BitOr,
};

use super::{
    family,
    uapi::address::{ADDR4, ADDR6, END, FAMILY, FLAGS, ID, IF_IDX, PORT},
};
use crate::wire::{Attributes, Malformed, Writer};

/// What an endpoint is for. Bits that are not known here are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointFlags(u32);

impl EndpointFlags {
    /// None.
    pub const NONE: Self = Self(0);
    /// The address is announced to the peer (ADD_ADDR).
    pub const SIGNAL: Self = Self(1 << 0);
    /// Subflows begin at the address.
    pub const SUBFLOW: Self = Self(1 << 1);
    /// Subflows from the address are used only where there is no other.
    pub const BACKUP: Self = Self(1 << 2);
    /// Subflows from the address go to each address of the peer.
    pub const FULLMESH: Self = Self(1 << 3);
    /// The kernel made the endpoint itself, for a connection that was there.
    pub const IMPLICIT: Self = Self(1 << 4);
    /// Subflows from the address answer announcements of the peer only (Linux 6.18).
    pub const LAMINAR: Self = Self(1 << 5);

    const WORDS: [(Self, &str); 6] = [
        (Self::SIGNAL, "signal"),
        (Self::SUBFLOW, "subflow"),
        (Self::BACKUP, "backup"),
        (Self::FULLMESH, "fullmesh"),
        (Self::IMPLICIT, "implicit"),
        (Self::LAMINAR, "laminar"),
    ];

    /// From the kernel's bits.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The kernel's bits.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether all of those are set.
    pub const fn contains(self, those: Self) -> bool {
        self.0 & those.0 == those.0
    }
}

impl BitOr for EndpointFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Display for EndpointFlags {
    /// In the words of ip-mptcp(8), with a space between them.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Self::WORDS.iter().filter(|(flag, _)| self.contains(*flag));
        let unknown = Self::WORDS.iter().fold(self.0, |bits, (flag, _)| bits & !flag.0);
        let mut words: Vec<String> = known.map(|(_, word)| (*word).to_owned()).collect();
        if unknown != 0 {
            words.push(format!("{unknown:#x}"));
        }
        out.write_str(&words.join(" "))
    }
}

/// A local address with its identifier, and what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// What names the address towards the peer (RFC 8684 section 3.4.1). In a new endpoint, 0 leaves it to the kernel.
    pub id: u8,
    /// The address.
    pub address: IpAddr,
    /// The port that is announced with it, at which the kernel then listens.
    pub port: Option<u16>,
    /// Number of the interface that its subflows are bound to.
    pub interface: Option<u32>,
    /// What it is for.
    pub flags: EndpointFlags,
}

impl Endpoint {
    /// An address alone, without flags.
    pub fn new(address: IpAddr) -> Self {
        Self { id: 0, address, port: None, interface: None, flags: EndpointFlags::NONE }
    }

    /// As the kernel reads it.
    pub(super) fn write(&self) -> Writer {
        let mut writer = Writer::default().u16(FAMILY, family(self.address)).u8(ID, self.id);
        writer = writer.either_ip(ADDR4, ADDR6, self.address);
        if let Some(port) = self.port {
            writer = writer.u16(PORT, port);
        }
        writer = writer.u32(FLAGS, self.flags.bits());
        if let Some(interface) = self.interface {
            writer = writer.u32(IF_IDX, interface);
        }
        writer
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let attributes = Attributes::<END>::read(bytes)?;
        let address = attributes.either_ip(ADDR4, ADDR6)?.ok_or(Malformed("an endpoint has no address"))?;
        Ok(Self {
            id: attributes.u8(ID)?.ok_or(Malformed("an endpoint has no identifier"))?,
            address,
            port: attributes.u16(PORT)?.filter(|&port| port != 0),
            interface: attributes.u32(IF_IDX)?.filter(|&interface| interface != 0),
            flags: EndpointFlags::from_bits(attributes.u32(FLAGS)?.unwrap_or(0)),
        })
    }
}

impl fmt::Display for Endpoint {
    /// As `ip mptcp endpoint show` does, with the number of the interface.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(out, "{}", SocketAddr::new(self.address, port))?,
            None => write!(out, "{}", self.address)?,
        }
        if self.id != 0 {
            write!(out, " id {}", self.id)?;
        }
        if self.flags != EndpointFlags::NONE {
            write!(out, " {}", self.flags)?;
        }
        match self.interface {
            Some(interface) => write!(out, " dev {interface}"),
            None => Ok(()),
        }
    }
}
