//! Names the build of the simulator after its sources.

#[path = "../../build/sources.rs"]
mod sources;

/// What decides a result.
const SOURCES: [&str; 20] = [
    "algorithms",
    "crates/agent-config/src",
    "crates/agent-config/Cargo.toml",
    "Cargo.lock",
    "crates/cc/build.rs",
    "crates/cc/host",
    "crates/cc/src",
    "crates/cc/Cargo.toml",
    "crates/draw/src",
    "crates/draw/Cargo.toml",
    "crates/link/src",
    "crates/link/Cargo.toml",
    "crates/policy/src",
    "crates/policy/Cargo.toml",
    "crates/record/src",
    "crates/record/Cargo.toml",
    "crates/scenario/src",
    "crates/scenario/Cargo.toml",
    "crates/sim/src",
    "crates/sim/Cargo.toml",
];

fn main() {
    sources::name_after(&SOURCES);
}
