//! Check vectors of Huang's model, and rules that hold for all traffic.

use super::*;
use crate::energy::{RADIOS, Radio};
use proptest::{collection::vec, prelude::*, sample::select};

const MS: u64 = 1_000_000;
const BIN: u64 = 100 * MS;

fn busy(length_ns: u64, up_bytes: u64, down_bytes: u64) -> Bin {
    Bin { length_ns, up_bytes, down_bytes }
}

fn quiet(length_ns: u64) -> Bin {
    busy(length_ns, 0, 0)
}

fn near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} is not {expected} ± {tolerance}");
}

/// Promotion and tail of one packet that takes no time.
fn isolated_packet_j(radio: &Radio) -> f64 {
    let mut meter = EnergyMeter::new(radio.huang);
    meter.bin(busy(0, 1500, 0));
    let energy = radio.huang.energy(&meter.finish());
    energy.promotion_j + energy.tail_j
}

#[test]
fn an_isolated_packet_costs_its_promotion_and_its_tail() {
    // The vectors are rounded to the digits that the tolerances leave.
    near(isolated_packet_j(&Radio::LTE), 12.585, 0.001);
    near(isolated_packet_j(&Radio::WIFI), 0.0382, 0.0001);
    near(isolated_packet_j(&Radio::THREE_G), 7.381, 0.001);
    let energy = |radio: &Radio| {
        let mut meter = EnergyMeter::new(radio.huang);
        meter.bin(busy(0, 1, 0));
        radio.huang.energy(&meter.finish())
    };
    near(energy(&Radio::LTE).promotion_j, 0.3149, 0.0001);
    near(energy(&Radio::LTE).tail_j, 12.271, 0.001);
    near(energy(&Radio::WIFI).promotion_j, 0.00984, 0.00001);
    near(energy(&Radio::WIFI).tail_j, 0.0284, 0.0001);
    near(energy(&Radio::THREE_G).promotion_j, 0.3838, 0.0001);
    near(energy(&Radio::THREE_G).tail_j, 6.502 + 0.4956, 0.0005);
}

#[test]
fn a_transfer_takes_its_slopes_and_its_base_power() {
    // 10 s of LTE at 6 Mbit/s up and 18 Mbit/s down.
    let mut meter = EnergyMeter::new(Radio::LTE.huang);
    for _ in 0..100 {
        meter.bin(busy(BIN, 75_000, 225_000));
    }
    let energy = Radio::LTE.huang.energy(&meter.activity());
    near(energy.active_j, (438.39 * 6.0 + 51.97 * 18.0 + 1288.04) * 10.0 / 1e3, 1e-9);
    near(energy.promotion_j, 1.2107 * 0.2601, 1e-12);
    assert_eq!((energy.tail_j, energy.idle_j), (0.0, 0.0));
}

#[test]
fn every_packet_begins_the_tail_anew() {
    let mut meter = EnergyMeter::new(Radio::LTE.huang);
    meter.bin(busy(BIN, 1, 0));
    meter.bin(quiet(11_000 * MS));
    assert_eq!(meter.tail_left().tail_ns, [576 * MS, 0]);
    meter.bin(busy(BIN, 0, 1));
    assert_eq!(meter.tail_left().tail_ns, [11_576 * MS, 0]);
    assert_eq!(meter.activity().promotions, 1, "the radio was still awake");
    meter.bin(quiet(11_576 * MS));
    assert_eq!((meter.tail_left(), meter.activity().idle_ns), (Activity::default(), 0));
    meter.bin(quiet(MS));
    meter.bin(busy(BIN, 1, 0));
    assert_eq!((meter.activity().promotions, meter.activity().idle_ns), (2, MS), "it had fallen asleep");
}

#[test]
fn a_bin_across_the_stages_of_a_tail_is_split() {
    let mut meter = EnergyMeter::new(Radio::THREE_G.huang);
    meter.bin(busy(BIN, 1, 0));
    let rest = meter.bin(quiet(10_000 * MS));
    assert_eq!(rest.tail_ns, [8_088_200_000, 824_200_000]);
    assert_eq!(rest.idle_ns, 10_000 * MS - 8_912_400_000);
}

#[test]
fn an_idle_radio_takes_the_mean_power_of_its_wake_ups() {
    let mut meter = EnergyMeter::new(Radio::LTE.huang);
    meter.bin(quiet(1_280_200_000));
    near(Radio::LTE.huang.energy(&meter.activity()).total_j(), 0.5943 * 0.0432, 1e-12);
}

fn radios() -> impl Strategy<Value = Radio> {
    select(RADIOS.map(|info| info.radio).to_vec())
}

fn bins() -> impl Strategy<Value = Vec<Bin>> {
    let bytes = || prop_oneof![2 => Just(0_u64), 1 => 0_u64..3_000_000];
    let length = prop_oneof![Just(BIN), 1_u64..3_000 * MS, Just(5_000 * MS)];
    vec((length, bytes(), bytes()).prop_map(|(length, up, down)| busy(length, up, down)), 0..60)
}

/// Equal up to the rounding of sums of a few hundred terms.
fn equal(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1.0)
}

proptest! {
    #[test]
    fn the_power_of_all_bins_integrates_to_the_energy_of_all_states(radio in radios(), bins in bins()) {
        let mut meter = EnergyMeter::new(radio.huang);
        let (mut huang_j, mut linear_j) = (0.0, 0.0);
        for bin in &bins {
            let done = meter.bin(*bin);
            prop_assert_eq!(done.time_ns(), bin.length_ns);
            huang_j += radio.huang.energy(&done).total_j();
            linear_j += radio.linear.energy_j(&done);
        }
        let energy = radio.huang.energy(&meter.activity());
        prop_assert!(equal(huang_j, energy.total_j()), "{huang_j} {energy:?}");
        prop_assert!(equal(linear_j, radio.linear.energy_j(&meter.activity())));
        prop_assert_eq!(meter.activity().time_ns(), bins.iter().map(|bin| bin.length_ns).sum::<u64>());
    }

    #[test]
    fn a_quiet_bin_may_be_split_anywhere(radio in radios(), bins in bins(), at in 0_u64..1000, length in 1_u64..20_000) {
        let (mut whole, mut split) = (EnergyMeter::new(radio.huang), EnergyMeter::new(radio.huang));
        for bin in &bins {
            whole.bin(*bin);
            split.bin(*bin);
        }
        let length = length * MS;
        let first = length / 1000 * at;
        whole.bin(quiet(length));
        split.bin(quiet(first));
        split.bin(quiet(length - first));
        prop_assert_eq!(whole.activity(), split.activity());
        prop_assert_eq!(whole.finish(), split.finish());
    }

    #[test]
    fn more_bytes_take_more_energy_and_no_energy_is_negative(
        radio in radios(),
        bins in bins(),
        at in any::<prop::sample::Index>(),
        more in 1_u64..1_000_000,
    ) {
        let reckon = |bins: &[Bin]| {
            let mut meter = EnergyMeter::new(radio.huang);
            for bin in bins {
                meter.bin(*bin);
            }
            let activity = meter.finish();
            (radio.linear.energy_j(&activity), radio.huang.energy(&activity))
        };
        let before = reckon(&bins);
        for part in [before.1.promotion_j, before.1.active_j, before.1.tail_j, before.1.idle_j, before.0] {
            prop_assert!(part >= 0.0);
        }
        let mut larger = bins.clone();
        // Not in any bin: a packet in the tail may save a later one its promotion.
        let busy: Vec<&mut Bin> = larger.iter_mut().filter(|bin| bin.is_busy()).collect();
        prop_assume!(!busy.is_empty());
        let at = at.index(busy.len());
        busy.into_iter().nth(at).expect("an index below the length").up_bytes += more;
        let after = reckon(&larger);
        prop_assert!(before.0 < after.0 && before.1.total_j() < after.1.total_j(), "{before:?} {after:?}");
    }
}
