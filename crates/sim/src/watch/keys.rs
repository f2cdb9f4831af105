//! Keys, tokens and authentication codes of Multipath TCP (RFC 8684 sections 3.1, 3.2, 3.4.1), drawn from the seed.

use std::net::IpAddr;

use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};

use anabranch_link::Rng;

/// What both sides of a connection have agreed on.
pub(super) struct Keys {
    /// By side.
    pub(super) keys: [[u8; 8]; 2],
}

impl Keys {
    pub(super) fn new(rng: &mut Rng) -> Self {
        Self { keys: [rng.next_u64().to_be_bytes(), rng.next_u64().to_be_bytes()] }
    }

    /// What names the connection at a side: the first 32 bits of its key's hash.
    pub(super) fn token(&self, side: usize) -> u32 {
        let hash = Sha256::digest(self.keys[side]);
        u32::from_be_bytes(hash[..4].try_into().expect("four bytes"))
    }

    /// A side's initial data sequence number: the last 64 bits of its key's hash. The first byte of data has the
    /// number behind it.
    pub(super) fn initial_data_number(&self, side: usize) -> u64 {
        let hash = Sha256::digest(self.keys[side]);
        u64::from_be_bytes(hash[24..].try_into().expect("eight bytes"))
    }

    /// A side's authentication of a join, given what both sides have drawn for it: own key and number first.
    pub(super) fn authentication(&self, side: usize, nonces: [u32; 2]) -> [u8; 32] {
        let [own, other] = [side, side ^ 1];
        self.code(side, &[&nonces[own].to_be_bytes(), &nonces[other].to_be_bytes()])
    }

    /// A side's authentication of an address that it announces: identifier, address, and no port, which counts as two
    /// zero bytes; of the code the last 64 bits are sent.
    pub(super) fn announcement(&self, side: usize, identifier: u8, address: IpAddr) -> [u8; 8] {
        let code = match address {
            IpAddr::V4(address) => self.code(side, &[&[identifier], &address.octets(), &[0; 2]]),
            IpAddr::V6(address) => self.code(side, &[&[identifier], &address.octets(), &[0; 2]]),
        };
        code[24..].try_into().expect("eight bytes")
    }

    /// HMAC-SHA256 with a side's own key and the other's behind it.
    fn code(&self, side: usize, message: &[&[u8]]) -> [u8; 32] {
        let key = [self.keys[side], self.keys[side ^ 1]].concat();
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key of any length will do");
        message.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_link::Streams;

    #[test]
    fn token_and_initial_number_are_the_ends_of_the_hash_of_the_key() {
        let keys = Keys { keys: [[1, 2, 3, 4, 5, 6, 7, 8], [0; 8]] };
        // printf '\1\2\3\4\5\6\7\10' | sha256sum
        let hash = "66840dda154e8a113c31dd0ad32f7f3a366a80e8136979d8f5a101d3d29d6f72";
        assert_eq!(format!("{:08x}", keys.token(0)), hash[..8]);
        assert_eq!(format!("{:016x}", keys.initial_data_number(0)), hash[48..]);
    }

    #[test]
    fn both_sides_authenticate_a_join_differently_and_by_both_keys() {
        let vector =
            Keys { keys: [[1, 2, 3, 4, 5, 6, 7, 8], [0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]] };
        // openssl dgst -sha256 -mac HMAC -macopt hexkey:01020304050607081112131415161718
        assert_eq!(vector.authentication(0, [7, 9])[..4], [0x17, 0x9e, 0x6d, 0x84]);
        let keys = Keys::new(&mut Streams::new(1).stream("capture"));
        let nonces = [7, 9];
        assert_ne!(keys.authentication(0, nonces), keys.authentication(1, nonces));
        let turned = Keys { keys: [keys.keys[1], keys.keys[0]] };
        assert_eq!(keys.authentication(0, nonces), turned.authentication(1, [9, 7]));
    }
}
