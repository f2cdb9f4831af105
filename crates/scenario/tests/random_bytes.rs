//! Random bytes and damaged files are refused or read, never a panic; the fuzz target does the same for longer.

use std::path::Path;

use anabranch_scenario::{load_limited, load_path};
use proptest::prelude::*;

const VALID: &str = include_str!("../../../scenarios/papers/mfvl/setup3.toml");
const MANY: &str = include_str!("../../../scenarios/regress/many-flows.toml");

/// A small deterministic generator (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

#[test]
fn ten_megabytes_of_random_bytes_are_refused_in_one_line() {
    let mut random = Random(1);
    let bytes: Vec<u8> = (0..10_000_000).map(|_| random.next() as u8).collect();
    let path = std::env::temp_dir().join(format!("anabranch-random-{}.toml", std::process::id()));
    std::fs::write(&path, &bytes).unwrap();
    let message = load_path(Path::new(&path), &[]).unwrap_err().message;
    std::fs::remove_file(&path).unwrap();
    assert!(message.contains("not UTF-8"), "{message}");

    let ascii: String = bytes.iter().map(|byte| char::from(byte % 128)).collect();
    let message = load_limited(&ascii, "random.toml", &[], 100).unwrap_err().message;
    assert!(message.starts_with("random.toml:1:") && message.lines().count() == 1, "{message}");
}

#[test]
fn damaged_files_do_not_panic() {
    let mut random = Random(2);
    let mut accepted = 0;
    for round in 0..3_000 {
        let mut text = if round % 2 == 0 { VALID } else { MANY }.as_bytes().to_vec();
        for _ in 0..=random.below(3) {
            let at = random.below(text.len());
            match random.below(5) {
                0 => text[at] = random.next() as u8 & 0x7f,
                1 => drop(text.remove(at)),
                2 => text.truncate(at.max(1)),
                3 => text.insert(at, b"0123456789.\"-[]{}=\n"[random.below(19)]),
                _ => {
                    let from = random.below(text.len());
                    let piece = text[from..(from + random.below(60)).min(text.len())].to_vec();
                    text.splice(at..at, piece);
                }
            }
        }
        let Ok(text) = String::from_utf8(text) else { continue };
        match load_limited(&text, "damaged.toml", &[], 1_000) {
            Ok(_) => accepted += 1,
            Err(error) => assert!(error.message.starts_with("damaged.toml"), "{error}"),
        }
    }
    assert!(accepted > 0, "some damage is harmless, such as in a comment");
}

#[test]
fn deep_nesting_is_refused() {
    for open in ["[", "{a=", "[{a="] {
        let text = format!("node = {}", open.repeat(100_000));
        assert!(load_limited(&text, "deep.toml", &[], 1_000).is_err());
        let deep_value = ("duration".to_owned(), open.repeat(100_000));
        assert!(load_limited(VALID, "valid.toml", &[deep_value], 1_000).is_err());
    }
    let deep_key = ("a.".repeat(100_000) + "b", "1".to_owned());
    assert!(load_limited(VALID, "valid.toml", &[deep_key], 1_000).is_err());
    let dotted = format!("{}b = 1", "a.".repeat(100_000));
    assert!(load_limited(&dotted, "deep.toml", &[], 1_000).is_err());
}

proptest! {
    #[test]
    fn any_override_is_applied_or_refused(key in "\\PC{0,20}", value in "\\PC{0,20}") {
        let _ = load_limited(VALID, "valid.toml", &[(key, value)], 1_000);
    }

    #[test]
    fn any_value_of_any_known_key_is_read_or_refused(line in 0usize..200, value in "\\PC{0,20}") {
        let damaged: Vec<String> = VALID.lines().enumerate().map(|(at, text)| match text.split_once(" = ") {
            Some((key, _)) if at == line => format!("{key} = {value}"),
            _ => text.to_owned(),
        }).collect();
        let _ = load_limited(&damaged.join("\n"), "valid.toml", &[], 1_000);
    }
}
