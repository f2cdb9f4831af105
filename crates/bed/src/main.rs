//! The command `anabranch-bed`.

fn main() {}
