//! The energy of a radio, from the bytes that its interface sends and receives over time.
//!
//! Two models, side by side: [`Linear`] is what EE-MPTCP (Electronics 2022, 11(19), 3104, eq. (3)) reckons with,
//! [`Huang`] adds what a transfer costs before and after it (Huang et al., MobiSys 2012). Both see traffic as
//! [`Bin`]s. An [`EnergyMeter`] keeps integers only, an [`Activity`]: times in each state and bytes. Energy is a
//! linear function of it, so that the energies of any two stretches of time add up to that of both, to the bit of
//! the sums.
//!
//! Powers are in milliwatts, rates in megabits per second, so a slope is in mW per Mbit/s, which is nJ/bit; energies
//! are in joules. Only sums, differences, products and quotients are used: equal bytes on every machine.
//!
//! Left out, and who could notice: the processor and the screen (all of a device's energy is more than its radios');
//! signal strength and rate, on which a real radio's slopes depend (a device at the edge of a cell takes more);
//! frames that a link layer repeats (the models were fitted to throughput, with the repetitions of their place and
//! time in the slopes).

mod huang;
mod interface;
mod linear;
mod meter;
mod radio;

pub use huang::{DutyCycle, Huang, Stage, StateEnergy};
pub use interface::{InterfaceMeter, run_figures};
pub use linear::Linear;
pub use meter::{Activity, Bin, EnergyMeter};
pub use radio::{RADIOS, Radio, RadioInfo};

/// Millijoules of a power over a time.
fn millijoules(power_mw: f64, time_ns: u64) -> f64 {
    power_mw * (time_ns as f64 / 1e9)
}

/// Megabits of a number of bytes.
fn megabits(bytes: u64) -> f64 {
    bytes as f64 * 8.0 / 1e6
}
