//! The scenario parser never panics, refuses in one line, and reads the same text twice as the same scenario.
//!
//! The input is a file; after a zero byte come overrides, each a key, a zero byte and a value.

#![no_main]

use anabranch_scenario::load_limited;
use libfuzzer_sys::fuzz_target;

/// Members of a family; more only makes the target slow.
const FAMILY_LIMIT: u64 = 50;

fuzz_target!(|data: &[u8]| {
    let Ok(input) = std::str::from_utf8(data) else { return };
    let mut parts = input.split('\0');
    let text = parts.next().unwrap_or_default();
    let words: Vec<&str> = parts.collect();
    let overrides: Vec<(String, String)> =
        words.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect();
    match load_limited(text, "fuzz.toml", &overrides, FAMILY_LIMIT) {
        Ok(first) => {
            let again =
                load_limited(text, "fuzz.toml", &overrides, FAMILY_LIMIT).expect("it was accepted before");
            assert_eq!(first.scenario, again.scenario);
            assert_eq!(first.canonical, again.canonical);
        }
        Err(error) => assert_eq!(error.message.lines().count(), 1, "{error}"),
    }
});
