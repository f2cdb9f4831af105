//! One interface of a run: from its counters to the figures of a window and to power over time.

use super::{Activity, Bin, EnergyMeter, Radio, StateEnergy};

/// What is counted over the window.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    activity: Activity,
    /// What was left of the tail at its end.
    tail_left: Activity,
}

/// Meters one interface by readings of its counters. Every reading ends a bin.
#[derive(Clone, Debug)]
pub struct InterfaceMeter {
    radio: Radio,
    meter: EnergyMeter,
    /// Time and counters of the last reading.
    last: (u64, u64, u64),
    begin: Option<Activity>,
    window: Option<Window>,
    keeps_power: bool,
    linear_power_w: Vec<(u64, f64)>,
    huang_power_w: Vec<(u64, f64)>,
}

impl InterfaceMeter {
    /// A meter at time 0, with counters at 0 and an idle radio; `keeps_power` over time for [`InterfaceMeter::power_w`].
    pub fn new(radio: Radio, keeps_power: bool) -> Self {
        Self {
            radio,
            meter: EnergyMeter::new(radio.huang),
            last: (0, 0, 0),
            begin: None,
            window: None,
            keeps_power,
            linear_power_w: Vec::new(),
            huang_power_w: Vec::new(),
        }
    }

    /// Takes the counters at a time; a second reading at the same time begins where the first ended and counts
    /// nothing.
    ///
    /// # Panics
    /// If time or a counter has gone back.
    pub fn read(&mut self, now_ns: u64, up_bytes: u64, down_bytes: u64) {
        let (last_ns, last_up, last_down) = self.last;
        let since = |now: u64, last: u64| now.checked_sub(last).expect("times and counters do not go back");
        let length_ns = since(now_ns, last_ns);
        if length_ns == 0 {
            return;
        }
        let bin =
            Bin { length_ns, up_bytes: since(up_bytes, last_up), down_bytes: since(down_bytes, last_down) };
        self.last = (now_ns, up_bytes, down_bytes);
        let done = self.meter.bin(bin);
        if self.keeps_power {
            let length_s = length_ns as f64 / 1e9;
            self.linear_power_w.push((now_ns, self.radio.linear.energy_j(&done) / length_s));
            self.huang_power_w.push((now_ns, self.radio.huang.energy(&done).total_j() / length_s));
        }
    }

    /// The window begins at the last reading.
    pub fn begin_window(&mut self) {
        self.begin = Some(self.meter.activity());
    }

    /// The window ends at the last reading.
    ///
    /// # Panics
    /// If it has not begun.
    pub fn end_window(&mut self) {
        let begin = self.begin.expect("a window begins before it ends");
        let activity = self.meter.activity().since(&begin);
        self.window = Some(Window { activity, tail_left: self.meter.tail_left() });
    }

    /// Mean power of each bin by both models, the linear one first: (end of the bin in ns, W).
    pub fn power_w(self) -> [Vec<(u64, f64)>; 2] {
        [self.linear_power_w, self.huang_power_w]
    }

    fn energy(&self, activity: &Activity) -> (f64, StateEnergy) {
        (self.radio.linear.energy_j(activity), self.radio.huang.energy(activity))
    }

    /// Figures over the window, by name; energies per bit are per bit that the interface has carried.
    ///
    /// # Panics
    /// If the window has not ended.
    pub fn figures(&self) -> Vec<(&'static str, f64)> {
        let Window { activity, tail_left } = self.window.expect("a run ends after its window");
        let (linear_j, huang) = self.energy(&activity);
        let bits = (activity.up_bytes + activity.down_bytes) as f64 * 8.0;
        let mut figures = vec![
            ("bytes_up", activity.up_bytes as f64),
            ("bytes_down", activity.down_bytes as f64),
            ("active_s", activity.active_ns as f64 / 1e9),
            ("promotions", activity.promotions as f64),
            ("energy_huang_promotion_j", huang.promotion_j),
            ("energy_huang_active_j", huang.active_j),
            ("energy_huang_idle_j", huang.idle_j),
            ("energy_huang_tail_left_j", self.radio.huang.energy(&tail_left).tail_j),
        ];
        figures.extend(totals(linear_j, &huang));
        figures.extend(per_bit(linear_j, &huang, bits));
        figures
    }
}

/// Figures of all interfaces of a run together; energies per bit are per bit that was delivered, and so are the bits
/// per joule.
///
/// # Panics
/// If the window of one has not ended.
pub fn run_figures<'a>(
    interfaces: impl IntoIterator<Item = &'a InterfaceMeter>,
    delivered_bits: f64,
) -> Vec<(&'static str, f64)> {
    let (mut linear_j, mut huang) = (0.0, StateEnergy::default());
    for interface in interfaces {
        let window = interface.window.expect("a run ends after its window");
        let (linear, one) = interface.energy(&window.activity);
        linear_j += linear;
        huang.promotion_j += one.promotion_j;
        huang.active_j += one.active_j;
        huang.tail_j += one.tail_j;
        huang.idle_j += one.idle_j;
    }
    let mut figures = totals(linear_j, &huang);
    figures.extend(per_bit(linear_j, &huang, delivered_bits));
    let per_joule = [
        ("bits_per_joule_linear", linear_j),
        ("bits_per_joule_huang", huang.total_j()),
        ("bits_per_joule_huang_no_tail", huang.without_tail_j()),
    ];
    figures.extend(per_joule.iter().filter(|(_, j)| *j > 0.0).map(|&(name, j)| (name, delivered_bits / j)));
    figures
}

fn totals(linear_j: f64, huang: &StateEnergy) -> Vec<(&'static str, f64)> {
    vec![
        ("energy_linear_j", linear_j),
        ("energy_huang_j", huang.total_j()),
        ("energy_huang_tail_j", huang.tail_j),
    ]
}

/// Nothing if there are no bits.
fn per_bit(linear_j: f64, huang: &StateEnergy, bits: f64) -> Vec<(&'static str, f64)> {
    if bits == 0.0 {
        return Vec::new();
    }
    vec![
        ("energy_linear_per_bit_j", linear_j / bits),
        ("energy_huang_per_bit_j", huang.total_j() / bits),
        ("energy_huang_no_tail_per_bit_j", huang.without_tail_j() / bits),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn of(figures: &[(&'static str, f64)], name: &str) -> f64 {
        figures.iter().find(|figure| figure.0 == name).unwrap_or_else(|| panic!("no {name}")).1
    }

    /// One second of traffic from the end of the first, then quiet for two more.
    fn metered(window: (u64, u64)) -> InterfaceMeter {
        let mut meter = InterfaceMeter::new(Radio::LTE, true);
        for (second, bytes) in [(1, 0), (2, 1_000_000), (3, 1_000_000), (4, 1_000_000)] {
            if second > 1 && (second - 1) * S == window.0 {
                meter.begin_window();
            }
            meter.read(second * S, bytes, bytes / 2);
            if second * S == window.1 {
                meter.end_window();
            }
        }
        meter
    }

    #[test]
    fn a_window_counts_what_lies_in_it_and_names_what_is_left() {
        let figures = metered((S, 3 * S)).figures();
        let active_j = (438.39 * 8.0 + 51.97 * 4.0 + 1288.04) / 1e3;
        let expected = [
            ("bytes_up", 1e6),
            ("bytes_down", 5e5),
            ("active_s", 1.0),
            ("promotions", 1.0),
            ("energy_huang_promotion_j", 1.2107 * 0.2601),
            ("energy_huang_active_j", active_j),
            ("energy_huang_tail_j", 1.06),
            ("energy_huang_tail_left_j", 1.06 * 10.576),
            ("energy_huang_idle_j", 0.0),
            ("energy_huang_j", 1.2107 * 0.2601 + active_j + 1.06),
            ("energy_linear_j", (52.0 * 12.0 + 1288.0) / 1e3),
            ("energy_linear_per_bit_j", (52.0 * 12.0 + 1288.0) / 1e3 / 12e6),
        ];
        for (name, value) in expected {
            assert!((of(&figures, name) - value).abs() < 1e-9, "{name}: {}", of(&figures, name));
        }
    }

    #[test]
    fn a_window_that_begins_in_a_tail_has_the_rest_of_it_and_no_promotion() {
        let figures = metered((2 * S, 4 * S)).figures();
        assert_eq!(of(&figures, "promotions"), 0.0);
        assert!((of(&figures, "energy_huang_j") - 2.0 * 1.06).abs() < 1e-9);
        assert!(figures.iter().all(|(name, _)| !name.ends_with("per_bit_j")), "nothing was carried");
    }

    #[test]
    fn a_run_adds_its_interfaces_and_relates_them_to_what_was_delivered() {
        let both = [metered((S, 4 * S)), metered((S, 4 * S))];
        let (one, run) = (both[0].figures(), run_figures(&both, 8e6));
        for name in ["energy_linear_j", "energy_huang_j", "energy_huang_tail_j"] {
            assert!((of(&run, name) - 2.0 * of(&one, name)).abs() < 1e-9, "{name}");
        }
        assert_eq!(of(&run, "energy_huang_per_bit_j"), of(&run, "energy_huang_j") / 8e6);
        assert_eq!(of(&run, "bits_per_joule_linear"), 8e6 / of(&run, "energy_linear_j"));
        let without = of(&run, "energy_huang_j") - of(&run, "energy_huang_tail_j");
        assert!((of(&run, "bits_per_joule_huang_no_tail") * without - 8e6).abs() < 1e-3);
    }

    #[test]
    fn power_over_time_integrates_to_the_energy() {
        let meter = metered((S, 4 * S));
        let energy = meter.energy(&meter.meter.activity());
        let [linear, huang] = meter.power_w().map(|points| points.iter().map(|(_, w)| w).sum::<f64>());
        assert!((linear - energy.0).abs() < 1e-9 && (huang - energy.1.total_j()).abs() < 1e-9);
    }
}
