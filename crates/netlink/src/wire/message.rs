//! Messages (`struct nlmsghdr`): a datagram holds several, one behind the other.

use netlink_packet_core::{Emitable as _, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader};

use super::Malformed;

/// Length of a message's header.
pub(crate) const HEADER: usize = 16;

/// A message in a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its type: one of netlink's own, one of the protocol's, or a generic netlink family.
    pub kind: u16,
    /// `NLM_F_*`.
    pub flags: u16,
    /// The number of the request that it answers; 0 for an event.
    pub sequence: u32,
    /// What follows the header.
    pub body: &'a [u8],
}

/// The messages of a datagram; a malformed one ends them.
pub fn messages(datagram: &[u8]) -> impl Iterator<Item = Result<Message<'_>, Malformed>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Ok(message) = NetlinkBuffer::new_checked(rest) else {
            rest = &[];
            return Some(Err(Malformed("the length of a message does not fit")));
        };
        let length = message.length() as usize;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Ok(Message {
            kind: message.message_type(),
            flags: message.flags(),
            sequence: message.sequence_number(),
            body: message.payload(),
        }))
    })
}

/// What the attributes of a request are called: from the types on the way to one to its name.
pub(crate) type Words = fn(&[u16]) -> Option<&'static str>;

/// A request, not yet numbered.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// What is asked, in words, for errors.
    pub(crate) what: String,
    /// Type of the message.
    pub(crate) kind: u16,
    /// Header of the protocol, and attributes.
    pub(crate) body: Vec<u8>,
    /// Where in the body the attributes begin.
    pub(crate) attributes_at: usize,
    /// The names of the attributes.
    pub(crate) words: Words,
}

impl Question {
    /// As bytes. `flags` are besides `NLM_F_REQUEST`.
    pub(crate) fn emit(&self, flags: u16, sequence: u32) -> Vec<u8> {
        let mut header = NetlinkHeader::default();
        header.length = (HEADER + self.body.len()) as u32;
        header.message_type = self.kind;
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = sequence;
        let mut bytes = vec![0; HEADER];
        header.emit(&mut bytes);
        bytes.extend(&self.body);
        bytes
    }
}

#[cfg(test)]
pub(crate) fn framed(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.length = (HEADER + body.len()) as u32;
    header.message_type = kind;
    header.flags = flags;
    header.sequence_number = sequence;
    let mut bytes = vec![0; HEADER];
    header.emit(&mut bytes);
    bytes.extend(body);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_length_that_lies_ends_the_datagram() {
        let good = framed(20, 0, 1, b"body");
        for length in [0u32, 15, 21, 1 << 31] {
            let mut bad = good.clone();
            bad[..4].copy_from_slice(&length.to_ne_bytes());
            let datagram = [good.clone(), bad].concat();
            let read: Vec<_> = messages(&datagram).collect();
            assert_eq!(read.len(), 2, "{length}");
            assert_eq!(read[0], Ok(Message { kind: 20, flags: 0, sequence: 1, body: b"body" }));
            assert!(read[1].is_err(), "{length}");
        }
    }

    #[test]
    fn a_request_has_the_layout_of_netlink() {
        let question = Question {
            what: String::new(),
            kind: 0x18,
            body: vec![1, 2, 3, 4],
            attributes_at: 4,
            words: |_| None,
        };
        let expected = [
            &20u32.to_ne_bytes()[..],
            &0x18u16.to_ne_bytes(),
            &5u16.to_ne_bytes(),
            &9u32.to_ne_bytes(),
            &[0; 4],
            &[1, 2, 3, 4],
        ];
        assert_eq!(question.emit(4, 9), expected.concat());
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let read: Vec<_> = messages(&bytes).collect();
            prop_assert!(read.len() <= bytes.len() / HEADER + 1);
        }

        #[test]
        fn a_datagram_that_is_cut_gives_only_whole_messages(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..4),
            cut in 0usize..100,
        ) {
            let whole: Vec<u8> = bodies.iter().flat_map(|body| framed(20, 0, 0, body)).collect();
            let cut = cut.min(whole.len());
            let read: Vec<_> = messages(&whole[..cut]).filter_map(Result::ok).collect();
            prop_assert!(read.len() <= bodies.len());
            for (message, body) in read.iter().zip(&bodies) {
                prop_assert_eq!(message.body, &body[..]);
            }
        }
    }
}
