use proptest::{collection::vec, prelude::*};

use super::*;
use crate::tree::ChunkHasher;

/// Hexadecimal without its spaces.
fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks_exact(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// Reads one frame that is the whole of `bytes`.
fn read(bytes: &[u8]) -> Result<Frame, Malformed> {
    let (head, payload) = bytes.split_first_chunk().expect("a frame has a head");
    match Head::decode(*head)? {
        Head::Whole { kind, length } => {
            assert_eq!(length, payload.len());
            Frame::decode(kind, payload)
        }
        Head::Chunk { .. } => panic!("a chunk is not read whole"),
    }
}

/// The test vectors of the document: the frame's name and its bytes.
fn vectors() -> Vec<(String, Vec<u8>)> {
    let document = include_str!("../../../../docs/transfer-protocol.md");
    let (_, rest) = document.split_once("```vectors\n").expect("the document has vectors");
    let (block, _) = rest.split_once("```").expect("they end");
    let lines = block.lines().map(|line| line.split_once(':').expect("a name and bytes"));
    lines.map(|(name, hex)| (name.trim().to_owned(), bytes_of(hex))).collect()
}

fn example_offer() -> Offer {
    Offer {
        file: 7,
        size_bytes: 40_000,
        modified_s: 1_700_000_000,
        modified_ns: 5,
        grain_bytes: 16_384,
        name: b"log.txt".to_vec(),
    }
}

#[test]
fn the_vectors_of_the_document_are_what_is_sent_and_read() {
    let session = std::array::from_fn(|byte| byte as u8);
    let hash = *blake3::hash(&[0; 40_000]).as_bytes();
    let frames = [
        ("hello", Frame::Hello(Hello { version: VERSION, session, token: None })),
        ("hello with a token", Frame::Hello(Hello { version: VERSION, session, token: Some([0xaa; 16]) })),
        ("welcome", Frame::Welcome(Welcome { version: VERSION, connections: 16 })),
        ("offer", Frame::Offer(example_offer())),
        ("have", Frame::Have(Have { file: 7, held: Held::Part, map: vec![0b101] })),
        ("have, whole", Frame::Have(Have { file: 7, held: Held::Whole, map: vec![] })),
        ("have, alike", Frame::Have(Have { file: 7, held: Held::Alike, map: vec![] })),
        ("arrived", Frame::Arrived(Place { file: 7, offset: 32_768, bytes: 7_232 })),
        ("finish", Frame::Finish { file: 7, hash }),
        ("done", Frame::Done(7)),
        ("error", Frame::Error(Problem::new(Code::DiskFull, Some(7), "no room"))),
        ("alive", Frame::Alive),
        ("bye", Frame::Bye),
    ];
    let vectors = vectors();
    for (name, frame) in &frames {
        let (_, bytes) = vectors.iter().find(|(named, _)| named == name).unwrap_or_else(|| {
            let hex: String = frame.encode().iter().map(|byte| format!("{byte:02x}")).collect();
            panic!("the document lacks {name}: {hex}")
        });
        assert_eq!(frame.encode(), *bytes, "{name}");
        assert_eq!(read(bytes).as_ref(), Ok(frame), "{name}");
    }
    let (_, chunk) = vectors.iter().find(|(named, _)| named == "chunk").expect("a chunk");
    // The second grain of a file of 16,387 bytes.
    let data = *b"abc";
    let place = Place { file: 7, offset: 16_384, bytes: 3 };
    let mut hasher = ChunkHasher::new(Offer { size_bytes: 16_387, ..example_offer() }.grains(), 1..2);
    hasher.update(&data);
    let sent = [&chunk_prefix(place)[..], &data, &hasher.finish().check].concat();
    assert_eq!(sent, *chunk, "{}", sent.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    assert_eq!(Head::decode(chunk[..8].try_into().unwrap()), Ok(Head::Chunk { bytes: 3 }));
    assert_eq!(chunk_place(3, chunk[8..20].try_into().unwrap()), place);
    assert_eq!(vectors.len(), frames.len() + 1, "each is tested");
}

#[test]
fn names_with_a_way_out_of_the_folder_are_none() {
    for name in
        [&b""[..], b".", b"..", b"/etc/passwd", b"../x", b"a/b", b"a\0b", b".anabranch-x", &[b'x'; 256]]
    {
        assert!(!is_file_name(name), "{name:?}");
        let offer = Offer { name: name.to_vec(), ..example_offer() };
        let mut bytes = Frame::Offer(offer).encode();
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            assert!(Head::decode(bytes[..8].try_into().unwrap()).is_err());
        } else {
            assert_eq!(read(&bytes), Err(Malformed("a file's name is none")));
        }
        bytes.clear();
    }
    for name in [&b"..."[..], b".hidden", b"a b", "\u{fc}".as_bytes(), &[0xff], &[b'x'; 255]] {
        assert!(is_file_name(name), "{name:?}");
    }
}

#[test]
fn what_a_frame_cannot_say_is_malformed() {
    let too_many = Offer { size_bytes: GRAINS_MAX * 16_384 + 1, ..example_offer() };
    let malformed = [
        Frame::Offer(too_many).encode(),
        Frame::Offer(Offer { grain_bytes: 16_385, ..example_offer() }).encode(),
        Frame::Offer(Offer { grain_bytes: 8_192, ..example_offer() }).encode(),
        Frame::Offer(Offer { grain_bytes: GRAIN_BYTES_MAX * 2, ..example_offer() }).encode(),
        Frame::Offer(Offer { file: u32::MAX, ..example_offer() }).encode(),
        Frame::Offer(Offer { modified_ns: 1_000_000_000, ..example_offer() }).encode(),
        Frame::Have(Have { file: 1, held: Held::Whole, map: vec![1] }).encode(),
        Frame::Have(Have { file: 1, held: Held::Alike, map: vec![1] }).encode(),
        Frame::Have(Have { file: 1, held: Held::Part, map: vec![0] }).encode(),
        bytes_of("04000000 00000005 00000007 03"),
        Frame::Arrived(Place { file: 1, offset: 0, bytes: 0 }).encode(),
        Frame::Arrived(Place { file: 1, offset: 0, bytes: CHUNK_BYTES_MAX + 1 }).encode(),
        bytes_of("01000000 00000016 41425458 0001 00000000000000000000000000000000")
            .iter()
            .map(|byte| byte ^ u8::from(*byte == 0x58))
            .collect(),
        bytes_of("02000001 00000004 0001 0010"),
        bytes_of("0c000000 00000000"),
        bytes_of("09000000 00000007 0001 ffffffff 1b"),
        bytes_of("09000000 00000007 0001 ffffffff ff"),
        bytes_of("09000000 00000006 0000 ffffffff"),
    ];
    for bytes in malformed {
        assert!(read(&bytes).is_err(), "{bytes:02x?}");
    }
}

#[test]
fn a_head_that_claims_more_than_its_kind_may_have_is_refused_before_anything_is_read() {
    for (kind, longest) in
        [(4u8, 5 + MAP_BYTES_MAX), (5, 44 + CHUNK_BYTES_MAX as usize), (9, 6 + TEXT_BYTES_MAX)]
    {
        for (length, is_fine) in [(longest, true), (longest + 1, false), (u32::MAX as usize, false)] {
            let [a, b, c, d] = (length as u32).to_be_bytes();
            assert_eq!(Head::decode([kind, 0, 0, 0, a, b, c, d]).is_ok(), is_fine, "{kind} {length}");
        }
    }
}

#[test]
fn chunks_begin_and_end_with_grains_or_the_file() {
    let offer = example_offer();
    let grains = |offset, bytes| offer.grains_of(Place { file: 7, offset, bytes });
    assert_eq!(grains(0, 16_384), Some(0..1));
    assert_eq!(grains(16_384, 23_616), Some(1..3));
    assert_eq!(grains(32_768, 7_232), Some(2..3));
    for (offset, bytes) in [(0, 0), (0, 1), (1, 16_384), (32_768, 7_233), (49_152, 1), (u64::MAX, 16_384)] {
        assert_eq!(grains(offset, bytes), None, "{offset} {bytes}");
    }
}

#[test]
fn long_texts_are_cut_between_characters() {
    let problem = Problem::new(Code::Storage, None, &"\u{fc}\n".repeat(300));
    assert!(problem.text.len() <= TEXT_BYTES_MAX && problem.text.len() > TEXT_BYTES_MAX - 2);
    assert_eq!(read(&Frame::Error(problem.clone()).encode()), Ok(Frame::Error(problem)));
}

fn some_frame() -> impl Strategy<Value = Frame> {
    let hello = (any::<[u8; 16]>(), any::<Option<[u8; 16]>>(), any::<u16>());
    let offer = (0..u32::MAX, 0..=FILE_BYTES_MAX, any::<i64>(), 0..1_000_000_000u32);
    let name = vec(any::<u8>(), 1..=NAME_BYTES_MAX).prop_filter("a name", |name| is_file_name(name));
    let map = vec(any::<u8>(), 0..100)
        .prop_filter("not empty", |map| map.is_empty() || map.iter().any(|b| *b != 0));
    let place = (any::<u32>(), any::<u64>(), 1..=CHUNK_BYTES_MAX);
    prop_oneof![
        hello.prop_map(|(session, token, version)| Frame::Hello(Hello { version, session, token })),
        (any::<u16>(), any::<u16>())
            .prop_map(|(version, connections)| Frame::Welcome(Welcome { version, connections })),
        (offer, name).prop_map(|((file, size_bytes, modified_s, modified_ns), name)| {
            let grain_bytes = grain_bytes(size_bytes);
            Frame::Offer(Offer { file, size_bytes, modified_s, modified_ns, grain_bytes, name })
        }),
        (any::<u32>(), map).prop_map(|(file, map)| Frame::Have(Have { file, held: Held::Part, map })),
        place.prop_map(|(file, offset, bytes)| Frame::Arrived(Place { file, offset, bytes })),
        any::<(u32, [u8; 32])>().prop_map(|(file, hash)| Frame::Finish { file, hash }),
        any::<u32>().prop_map(Frame::Done),
        (0..u32::MAX, ".{0,200}").prop_map(|(file, text)| Frame::Error(Problem::new(
            Code::Protocol,
            Some(file),
            &text
        ))),
    ]
}

proptest! {
    #[test]
    fn a_frame_is_read_as_it_was_sent(frame in some_frame()) {
        prop_assert_eq!(read(&frame.encode()), Ok(frame));
    }

    #[test]
    fn any_bytes_are_refused_or_are_the_only_encoding_of_what_they_say(kind in 0u8..13, payload in vec(any::<u8>(), 0..400)) {
        let [a, b, c, d] = (payload.len() as u32).to_be_bytes();
        if let Ok(Head::Whole { kind, length }) = Head::decode([kind, 0, 0, 0, a, b, c, d]) {
            prop_assert_eq!(length, payload.len());
            if let Ok(frame) = Frame::decode(kind, &payload) {
                prop_assert_eq!(&frame.encode()[HEAD_BYTES..], &payload[..]);
            }
        }
    }
}

#[test]
fn the_grain_is_the_smallest_with_which_the_map_stays_small() {
    let limit = GRAINS_MAX * u64::from(GRAIN_BYTES_MIN);
    let grains = [0, 1, limit, limit + 1, 2 * limit, FILE_BYTES_MAX].map(grain_bytes);
    assert_eq!(grains, [16 << 10, 16 << 10, 16 << 10, 32 << 10, 32 << 10, 64 << 20]);
}
