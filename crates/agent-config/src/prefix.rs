//! Beginnings of addresses.

use std::{fmt, net::IpAddr};

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl From<IpAddr> for Prefix {
    /// Of this address alone.
    fn from(address: IpAddr) -> Self {
        Self { address, length: if address.is_ipv4() { 32 } else { 128 } }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl Prefix {
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is no address and no prefix like \"192.0.2.0/24\"");
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length.parse::<u8>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let length = length.unwrap_or(bits);
        if length > bits { Err(wrong()) } else { Ok(Self { address, length }) }
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let top = |bits: u128, width: u32| bits.checked_shr(width - u32::from(self.length)).unwrap_or(0);
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                top(u128::from(own.to_bits()), 32) == top(u128::from(other.to_bits()), 32)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => top(own.to_bits(), 128) == top(other.to_bits(), 128),
            _ => false,
        }
    }
}
