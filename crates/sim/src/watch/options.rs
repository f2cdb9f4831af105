//! Options of TCP: maximum segment size, window scale, timestamps (RFC 7323), SACK (RFC 2018), and those of Multipath
//! TCP, version 1 (RFC 8684 section 3).
//!
//! Left out: the MP_CAPABLE that repeats the keys on the first data (RFC 8684 section 3.1: a DSS is there instead, as
//! on all other data), checksums of the data level, DATA_FIN, for connections are not closed in the simulator, and ports in
//! ADD_ADDR.

use std::net::IpAddr;

/// Most bytes of options that a TCP header holds (RFC 9293 section 3.1).
const MOST: usize = 40;

const NO_OPERATION: u8 = 1;
const MAXIMUM_SEGMENT_SIZE: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const MULTIPATH: u8 = 30;

/// Subtypes, in the upper half of their byte.
const MP_CAPABLE: u8 = 0x00;
const MP_JOIN: u8 = 0x10;
const DSS: u8 = 0x20;
const ADD_ADDR: u8 = 0x30;
const REMOVE_ADDR: u8 = 0x40;
const MP_PRIO: u8 = 0x50;
const MP_TCPRST: u8 = 0x80;
/// In the lower half of MP_CAPABLE's.
const VERSION: u8 = 1;
/// Of MP_CAPABLE: HMAC-SHA256, and no checksums.
const USES_SHA256: u8 = 0x01;
/// Of DSS.
const HAS_DATA_ACK: u8 = 0x01;
const DATA_ACK_HAS_8_BYTES: u8 = 0x02;
const HAS_MAPPING: u8 = 0x04;
/// Of ADD_ADDR.
const IS_ECHO: u8 = 0x01;
/// Of MP_TCPRST: "unspecified error".
const NO_REASON: u8 = 0;

/// Room that timestamps take with their padding.
pub(super) const TIMESTAMPS_BYTES: u16 = 12;

/// What a SYN says of its sender.
#[derive(Clone, Copy)]
pub(super) struct Opening {
    pub(super) maximum_segment: u16,
    pub(super) window_shift: u8,
    pub(super) selective: bool,
    pub(super) timestamps: bool,
}

/// Bytes of options in the making.
pub(super) struct Options {
    bytes: [u8; MOST],
    len: usize,
}

impl Options {
    pub(super) fn new() -> Self {
        Self { bytes: [NO_OPERATION; MOST], len: 0 }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Those of a SYN, in the order and with the padding of Linux.
    pub(super) fn opening(&mut self, opening: Opening, clock: (u32, u32)) {
        let [high, low] = opening.maximum_segment.to_be_bytes();
        self.put(&[MAXIMUM_SEGMENT_SIZE, 4, high, low]);
        if opening.selective {
            self.put(&[SACK_PERMITTED, 2]);
        } else if opening.timestamps {
            self.put(&[NO_OPERATION; 2]);
        }
        if opening.timestamps {
            self.clock(clock);
        } else if opening.selective {
            self.put(&[NO_OPERATION; 2]);
        }
        self.put(&[NO_OPERATION, WINDOW_SCALE, 3, opening.window_shift]);
    }

    /// Bytes that are left in a header.
    pub(super) fn room(&self) -> usize {
        MOST - self.len
    }

    /// Timestamps: value and echo.
    pub(super) fn timestamps(&mut self, clock: (u32, u32)) {
        self.put(&[NO_OPERATION; 2]);
        self.clock(clock);
    }

    fn clock(&mut self, (value, echo): (u32, u32)) {
        self.put(&[TIMESTAMPS, 10]);
        self.put(&value.to_be_bytes());
        self.put(&echo.to_be_bytes());
    }

    /// Blocks `[from, to)` in sequence numbers, as many as there is room for.
    pub(super) fn blocks(&mut self, blocks: impl Iterator<Item = (u32, u32)>) {
        let room = self.room().saturating_sub(4) / 8;
        if room == 0 {
            return;
        }
        let begin = self.len;
        self.put(&[NO_OPERATION, NO_OPERATION, SACK, 0]);
        for (from, to) in blocks.take(room) {
            self.put(&from.to_be_bytes());
            self.put(&to.to_be_bytes());
        }
        self.bytes[begin + 3] = (self.len - begin - 2) as u8;
    }

    /// MP_CAPABLE with the keys that its packet carries: none on the SYN, the own one on the SYN-ACK, both on the third.
    pub(super) fn capable(&mut self, keys: &[[u8; 8]]) {
        self.put(&[MULTIPATH, (4 + 8 * keys.len()) as u8, MP_CAPABLE | VERSION, USES_SHA256]);
        for key in keys {
            self.put(key);
        }
    }

    /// MP_JOIN on a SYN.
    pub(super) fn join(&mut self, backup: bool, address: u8, token: u32, nonce: u32) {
        self.put(&[MULTIPATH, 12, MP_JOIN | u8::from(backup), address]);
        self.put(&token.to_be_bytes());
        self.put(&nonce.to_be_bytes());
    }

    /// MP_JOIN on a SYN-ACK: the authentication is cut to 64 bits.
    pub(super) fn join_answer(&mut self, backup: bool, address: u8, authentication: &[u8; 32], nonce: u32) {
        self.put(&[MULTIPATH, 16, MP_JOIN | u8::from(backup), address]);
        self.put(&authentication[..8]);
        self.put(&nonce.to_be_bytes());
    }

    /// MP_JOIN on the third packet: the authentication is cut to 160 bits.
    pub(super) fn join_end(&mut self, authentication: &[u8; 32]) {
        self.put(&[MULTIPATH, 24, MP_JOIN, 0]);
        self.put(&authentication[..20]);
    }

    /// A data acknowledgement, in eight bytes.
    pub(super) fn data_ack(&mut self, data_ack: u64) {
        self.put(&[MULTIPATH, 12, DSS, HAS_DATA_ACK | DATA_ACK_HAS_8_BYTES]);
        self.put(&data_ack.to_be_bytes());
    }

    /// A data acknowledgement and a mapping, in four bytes each. Linux acknowledges in eight, which has tshark 4.0 lose
    /// the upper half of the mapping.
    pub(super) fn mapping(&mut self, data_ack: u32, map: Mapping) {
        self.put(&[MULTIPATH, 18, DSS, HAS_DATA_ACK | HAS_MAPPING]);
        self.put(&data_ack.to_be_bytes());
        self.put(&map.data.to_be_bytes());
        self.put(&map.subflow.to_be_bytes());
        self.put(&map.len.to_be_bytes());
    }

    /// ADD_ADDR without port (section 3.4.1), in the form of an echo if nothing authenticates it.
    pub(super) fn add_address(&mut self, identifier: u8, address: IpAddr, authentication: Option<[u8; 8]>) {
        let (address_bytes, code_bytes) =
            (if address.is_ipv4() { 4 } else { 16 }, authentication.map_or(0, |_| 8));
        let echo = if authentication.is_none() { IS_ECHO } else { 0 };
        self.put(&[MULTIPATH, 4 + address_bytes + code_bytes, ADD_ADDR | echo, identifier]);
        match address {
            IpAddr::V4(address) => self.put(&address.octets()),
            IpAddr::V6(address) => self.put(&address.octets()),
        }
        if let Some(code) = authentication {
            self.put(&code);
        }
    }

    /// REMOVE_ADDR of one address (section 3.4.2).
    pub(super) fn remove_address(&mut self, identifier: u8) {
        self.put(&[MULTIPATH, 4, REMOVE_ADDR, identifier]);
    }

    /// MP_PRIO (section 3.3.8).
    pub(super) fn priority(&mut self, backup: bool) {
        self.put(&[MULTIPATH, 3, MP_PRIO | u8::from(backup)]);
    }

    /// MP_TCPRST (section 3.6).
    pub(super) fn reset(&mut self) {
        self.put(&[MULTIPATH, 4, MP_TCPRST, NO_REASON]);
    }

    /// The options, padded to four bytes, and further to `bytes` if a header holds as many.
    pub(super) fn padded(&self, bytes: u16) -> &[u8] {
        let wanted = (usize::from(bytes) / 4 * 4).min(MOST);
        &self.bytes[..self.len.next_multiple_of(4).max(wanted)]
    }
}

/// Which bytes of the data level a packet carries.
pub(super) struct Mapping {
    /// Data sequence number of the first one, the lower half.
    pub(super) data: u32,
    /// Its number on the subflow, counted from the initial sequence number.
    pub(super) subflow: u32,
    pub(super) len: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENING: Opening =
        Opening { maximum_segment: 1460, window_shift: 7, selective: true, timestamps: true };

    #[test]
    fn rfc_8684_the_longest_handshake_fits_beside_timestamps() {
        let mut answer = Options::new();
        answer.opening(OPENING, (1, 2));
        answer.join_answer(false, 1, &[7; 32], 9);
        assert_eq!(answer.padded(0).len(), 36);
        let mut end = Options::new();
        end.timestamps((1, 2));
        end.join_end(&[7; 32]);
        assert_eq!(end.padded(0).len(), 36);
    }

    #[test]
    fn a_syn_is_padded_to_words_whatever_is_left_out_of_it() {
        for (selective, timestamps, bytes) in
            [(true, true, 20), (true, false, 12), (false, true, 20), (false, false, 8)]
        {
            let mut options = Options::new();
            options.opening(Opening { selective, timestamps, ..OPENING }, (1, 2));
            assert_eq!((options.len, options.padded(0).len()), (bytes, bytes));
        }
    }

    #[test]
    fn rfc_8684_3_3_a_mapping_takes_18_bytes_and_is_padded_to_what_the_packet_has_room_for() {
        for (room, with_padding) in [(0, 20), (20, 20), (24, 24)] {
            let mut options = Options::new();
            options.mapping(1, Mapping { data: 2, subflow: 3, len: 4 });
            assert_eq!((options.len, options.padded(room).len()), (18, with_padding));
        }
    }

    #[test]
    fn rfc_2018_3_as_many_blocks_are_written_as_there_is_room_for() {
        let mut options = Options::new();
        options.timestamps((1, 2));
        options.blocks([(1, 2), (3, 4), (5, 6), (7, 8)].into_iter());
        assert_eq!(options.padded(0).len(), 40);
        assert_eq!(options.bytes[12..16], [1, 1, 5, 26]);
    }

    #[test]
    fn rfc_8684_3_3_8_and_3_4_and_3_6_signals_have_their_lengths() {
        let bytes = |put: &dyn Fn(&mut Options)| {
            let mut options = Options::new();
            put(&mut options);
            options.bytes[..options.len].to_vec()
        };
        let (v4, v6) = ("10.64.1.2".parse().expect("one"), "fd00:ab::1:2".parse().expect("one"));
        let code = Some([9; 8]);
        assert_eq!(bytes(&|to| to.priority(true)), [30, 3, 0x51]);
        assert_eq!(bytes(&|to| to.priority(false)), [30, 3, 0x50]);
        assert_eq!(bytes(&|to| to.remove_address(7)), [30, 4, 0x40, 7]);
        assert_eq!(bytes(&|to| to.reset()), [30, 4, 0x80, 0]);
        assert_eq!(
            bytes(&|to| to.add_address(3, v4, code)),
            [30, 16, 0x30, 3, 10, 64, 1, 2, 9, 9, 9, 9, 9, 9, 9, 9]
        );
        assert_eq!(bytes(&|to| to.add_address(3, v4, None)), [30, 8, 0x31, 3, 10, 64, 1, 2]);
        assert_eq!(bytes(&|to| to.add_address(3, v6, code))[..4], [30, 28, 0x30, 3]);
        assert_eq!(bytes(&|to| to.add_address(3, v6, None))[..4], [30, 20, 0x31, 3]);
    }

    #[test]
    fn without_room_for_a_block_there_is_no_option_for_blocks() {
        let mut options = Options::new();
        options.timestamps((1, 2));
        options.add_address(1, "fd00:ab::1:2".parse().expect("one"), Some([9; 8]));
        options.blocks([(1, 2)].into_iter());
        assert_eq!(options.len, 40);
    }

    #[test]
    fn padding_does_not_exceed_what_a_header_holds() {
        let mut options = Options::new();
        options.timestamps((1, 2));
        assert_eq!(options.padded(21).len(), 20);
        assert_eq!(options.padded(60).len(), 40);
    }
}
