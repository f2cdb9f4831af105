//! Attributes (`struct nlattr`): reading and writing them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_core::{DefaultNla, Emitable as _, NLA_F_NESTED, NLA_HEADER_SIZE, NlasIterator};

use super::Malformed;

/// The attributes of a message with types below `N`. Of several with one type the last counts, as in the kernel; those with
/// types from `N` on are not known here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes<'a, const N: usize> {
    values: [Option<&'a [u8]>; N],
}

impl<'a, const N: usize> Attributes<'a, N> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut values = [None; N];
        for attribute in NlasIterator::new(bytes) {
            let attribute = attribute.map_err(|_| Malformed("the length of an attribute does not fit"))?;
            let value = attribute.into_inner().get(NLA_HEADER_SIZE..usize::from(attribute.length()));
            if let Some(slot) = values.get_mut(usize::from(attribute.kind())) {
                *slot = value;
            }
        }
        Ok(Self { values })
    }

    pub(crate) fn bytes(&self, kind: u16) -> Option<&'a [u8]> {
        self.values.get(usize::from(kind)).copied().flatten()
    }

    fn array<const L: usize>(&self, kind: u16) -> Result<Option<[u8; L]>, Malformed> {
        let Some(value) = self.bytes(kind) else { return Ok(None) };
        value.try_into().map(Some).map_err(|_| Malformed("a value has the wrong length"))
    }

    pub(crate) fn u8(&self, kind: u16) -> Result<Option<u8>, Malformed> {
        Ok(self.array(kind)?.map(u8::from_ne_bytes))
    }

    pub(crate) fn u16(&self, kind: u16) -> Result<Option<u16>, Malformed> {
        Ok(self.array(kind)?.map(u16::from_ne_bytes))
    }

    /// In network byte order.
    pub(crate) fn be16(&self, kind: u16) -> Result<Option<u16>, Malformed> {
        Ok(self.array(kind)?.map(u16::from_be_bytes))
    }

    pub(crate) fn u32(&self, kind: u16) -> Result<Option<u32>, Malformed> {
        Ok(self.array(kind)?.map(u32::from_ne_bytes))
    }

    /// An address of IPv4 in an attribute of one type, or one of IPv6 in one of another.
    pub(crate) fn either_ip(&self, v4: u16, v6: u16) -> Result<Option<IpAddr>, Malformed> {
        let v4 = self.array::<4>(v4)?.map(|octets| IpAddr::V4(Ipv4Addr::from(octets)));
        let v6 = self.array::<16>(v6)?.map(|octets| IpAddr::V6(Ipv6Addr::from(octets)));
        if v4.is_some() && v6.is_some() {
            return Err(Malformed("there are two addresses in the place of one"));
        }
        Ok(v4.or(v6))
    }

    /// An address whose length says what it is.
    pub(crate) fn ip(&self, kind: u16) -> Result<Option<IpAddr>, Malformed> {
        self.bytes(kind).map(ip).transpose()
    }

    /// A text, which a zero ends or the end of the value. What is not UTF-8 in it, as names of interfaces may be, is replaced.
    pub(crate) fn text(&self, kind: u16) -> Option<String> {
        let value = self.bytes(kind)?;
        let end = value.iter().position(|&byte| byte == 0).unwrap_or(value.len());
        Some(String::from_utf8_lossy(&value[..end]).into_owned())
    }
}

/// An address whose length says what it is.
pub(crate) fn ip(value: &[u8]) -> Result<IpAddr, Malformed> {
    if let Ok(octets) = <[u8; 4]>::try_from(value) {
        return Ok(Ipv4Addr::from(octets).into());
    }
    let octets = <[u8; 16]>::try_from(value).map_err(|_| Malformed("an address has the wrong length"))?;
    Ok(Ipv6Addr::from(octets).into())
}

/// The types on the way to the attribute that begins at `offset`, which counts from the same place as `start`, where `bytes` begin.
pub(crate) fn path_at(bytes: &[u8], start: usize, offset: usize) -> Option<Vec<u16>> {
    let mut at = start;
    for attribute in NlasIterator::new(bytes) {
        let attribute = attribute.ok()?;
        let end = at + usize::from(attribute.length());
        if at == offset {
            return Some(vec![attribute.kind()]);
        }
        if attribute.nested_flag() && (at..end).contains(&offset) {
            let inner = path_at(attribute.value(), at + NLA_HEADER_SIZE, offset)?;
            return Some([&[attribute.kind()], &inner[..]].concat());
        }
        at = end.next_multiple_of(4);
    }
    None
}

/// Writes attributes one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn bytes(mut self, kind: u16, value: &[u8]) -> Self {
        let attribute = DefaultNla::new(kind, value.to_vec());
        let start = self.bytes.len();
        self.bytes.resize(start + attribute.buffer_len(), 0);
        attribute.emit(&mut self.bytes[start..]);
        self
    }

    pub(crate) fn u8(self, kind: u16, value: u8) -> Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    pub(crate) fn u16(self, kind: u16, value: u16) -> Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    pub(crate) fn u32(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    pub(crate) fn nested(self, kind: u16, inner: Self) -> Self {
        self.bytes(kind | NLA_F_NESTED, &inner.bytes)
    }

    /// An address of IPv4 in an attribute of one type, or one of IPv6 in one of another.
    pub(crate) fn either_ip(self, v4: u16, v6: u16, address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => self.bytes(v4, &address.octets()),
            IpAddr::V6(address) => self.bytes(v6, &address.octets()),
        }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_of_the_wrong_length_is_no_number() {
        let bytes = Writer::default().u16(1, 7).u8(2, 7).into_bytes();
        let read = Attributes::<3>::read(&bytes).unwrap();
        assert!(read.u32(1).is_err());
        assert_eq!(read.u16(1), Ok(Some(7)));
        assert_eq!((read.u8(2), read.u8(0)), (Ok(Some(7)), Ok(None)));
    }

    #[test]
    fn of_two_with_one_type_the_last_counts() {
        let bytes = Writer::default().u8(1, 5).u8(1, 6).into_bytes();
        assert_eq!(Attributes::<2>::read(&bytes).unwrap().u8(1), Ok(Some(6)));
    }

    #[test]
    fn one_place_holds_one_address() {
        let bytes = Writer::default().bytes(1, &[10, 0, 0, 1]).bytes(2, &[0; 16]).into_bytes();
        let read = Attributes::<3>::read(&bytes).unwrap();
        assert!(read.either_ip(1, 2).is_err());
        assert_eq!(read.either_ip(1, 0), Ok(Some("10.0.0.1".parse().unwrap())));
        assert_eq!(read.ip(2), Ok(Some("::".parse().unwrap())));
    }

    #[test]
    fn an_offset_leads_to_the_attribute_that_begins_there() {
        let inner = Writer::default().u16(1, 2).u32(6, 4);
        let bytes = Writer::default().u32(4, 9).nested(1, inner).u8(5, 1).into_bytes();
        let paths: Vec<_> = (20..20 + bytes.len()).filter_map(|offset| path_at(&bytes, 20, offset)).collect();
        assert_eq!(paths, [vec![4], vec![1], vec![1, 1], vec![1, 6], vec![5]]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100), offset in 0usize..120) {
            let _ = path_at(&bytes, 0, offset);
            if let Ok(read) = Attributes::<20>::read(&bytes) {
                for kind in 0..20 {
                    let _ = (read.u8(kind), read.u32(kind), read.ip(kind), read.text(kind));
                }
            }
        }

        #[test]
        fn what_is_written_is_read(values in prop::collection::vec((0u16..8, prop::collection::vec(any::<u8>(), 0..9)), 0..12)) {
            let writer = values.iter().fold(Writer::default(), |writer, (kind, value)| writer.bytes(*kind, value));
            let bytes = writer.into_bytes();
            prop_assert_eq!(bytes.len() % 4, 0);
            let read = Attributes::<8>::read(&bytes).unwrap();
            for kind in 0..8 {
                let last = values.iter().rev().find(|(other, _)| *other == kind);
                prop_assert_eq!(read.bytes(kind), last.map(|(_, value)| &value[..]));
            }
        }
    }
}
