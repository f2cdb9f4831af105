//! What the kernel tests share: skipping by name, and reproducible random numbers.

// Every test binary compiles this module and uses a part of it.
#![allow(dead_code, unreachable_pub)]

pub mod bytes;
pub mod lab;
pub mod transfer;

use std::io::Write as _;

use anabranch_kernel::{KernelError, available, check_host};

pub use lab::random::Random;

/// Whether to skip a test because this machine cannot load BPF; says why and what would enable it.
///
/// # Panics
/// As [`skip_for`].
pub fn skip(test: &str) -> bool {
    let Err(error) = available().and_then(|_| check_host()) else { return false };
    let enable = match error {
        KernelError::NotBuilt { .. } => "apt-get install -y clang-14 llvm-14",
        KernelError::NotPermitted => {
            concat!("sudo -E env PATH=\"$PATH\" cargo test -p ", env!("CARGO_PKG_NAME"))
        }
        _ => "boot Linux 6.4 or later with CONFIG_DEBUG_INFO_BTF=y",
    };
    skip_for(test, &error.to_string(), enable)
}

/// Says that a test is skipped; always `true`.
///
/// # Panics
/// Instead of skipping, if `ANABRANCH_REQUIRE` lists `bpf`.
pub fn skip_for(test: &str, why: &str, enable: &str) -> bool {
    let required = std::env::var("ANABRANCH_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|what| what == "bpf"), "{test} is required: {why}; {enable}");
    say(&format!("SKIPPED: {test}: {why}; enable with: {enable}"));
    true
}

/// Writes a line to stderr past the test harness, which hides what a passing test prints.
pub fn say(line: &str) {
    writeln!(std::io::stderr(), "{line}").expect("stderr is open");
}

impl Random {
    /// Uniform over `min..=max`.
    pub fn between(&mut self, min: u32, max: u32) -> u32 {
        let span = u64::from(max) - u64::from(min) + 1;
        min + (self.word() % span) as u32
    }

    /// True once in `n`.
    pub fn one_in(&mut self, n: u32) -> bool {
        self.between(1, n) == 1
    }

    /// A number whose length in bits is uniform, so that small and extreme ones are both frequent.
    pub fn any_u32(&mut self) -> u32 {
        let bits = self.between(0, 32);
        if bits == 0 { 0 } else { (self.word() as u32) >> (32 - bits) }
    }
}
