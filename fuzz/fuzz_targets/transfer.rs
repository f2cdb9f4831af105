//! No bytes make the reader of the transfer protocol panic, and what it accepts has no other encoding.
//!
//! The input is what a peer sends: frames one after the other. Lengths are judged by heads alone, so that a payload that is not
//! there is never waited for with memory in hand.

#![no_main]

use anabranch_transfer::wire::{CHUNK_HEAD_BYTES, Frame, HASH_BYTES, HEAD_BYTES, Head, chunk_place, chunk_prefix};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut rest = data;
    while let Some((head, after)) = rest.split_first_chunk::<HEAD_BYTES>() {
        let Ok(read) = Head::decode(*head) else { return };
        assert_eq!(read.encode(), *head);
        let length = match read {
            Head::Whole { length, .. } => length,
            Head::Chunk { bytes } => CHUNK_HEAD_BYTES + bytes as usize + HASH_BYTES,
        };
        let Some((payload, after)) = after.split_at_checked(length) else { return };
        match read {
            Head::Whole { kind, .. } => {
                let Ok(frame) = Frame::decode(kind, payload) else { return };
                assert_eq!(frame.encode(), [head, payload].concat());
                if let Frame::Offer(offer) = frame {
                    assert!(!offer.name.contains(&b'/') && offer.grains().count() <= 1 << 18);
                }
            }
            Head::Chunk { bytes } => {
                let before = *payload.first_chunk().expect("a chunk's payload has it");
                let prefix = chunk_prefix(chunk_place(bytes, before));
                assert_eq!(prefix[..], [&head[..], &before].concat());
            }
        }
        rest = after;
    }
});
