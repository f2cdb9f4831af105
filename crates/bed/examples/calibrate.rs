//! Prints a calibration of the emulator; a shorter one with the argument `quick`. Takes root.
//!
//! ```text
//! cargo run --release -p anabranch-bed --example calibrate [quick]
//! ```
#![allow(clippy::print_stdout, reason = "it is a command")]

use anabranch_bed::{BedError, calibrate::calibrate};

fn main() -> Result<(), BedError> {
    println!("{}", calibrate(std::env::args().nth(1).is_some_and(|argument| argument == "quick"))?);
    Ok(())
}
