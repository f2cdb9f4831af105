//! Names the build of the test bed after its sources.

#[path = "../../build/sources.rs"]
mod sources;

/// What decides a result, besides the kernel.
const SOURCES: [&str; 21] = [
    "algorithms",
    "crates/agent-config/src",
    "crates/agent-config/Cargo.toml",
    "Cargo.lock",
    "crates/bed/src",
    "crates/bed/Cargo.toml",
    "crates/cc/src",
    "crates/cc/Cargo.toml",
    "crates/draw/src",
    "crates/draw/Cargo.toml",
    "crates/kernel/bpf",
    "crates/kernel/src",
    "crates/kernel/Cargo.toml",
    "crates/link/src",
    "crates/link/Cargo.toml",
    "crates/policy/src",
    "crates/policy/Cargo.toml",
    "crates/record/src",
    "crates/record/Cargo.toml",
    "crates/scenario/src",
    "crates/scenario/Cargo.toml",
];

fn main() {
    sources::name_after(&SOURCES);
}
