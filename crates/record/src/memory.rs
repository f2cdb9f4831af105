//! Memory over time, as both engines record it: the names, and a gauge that makes points, a mean and a peak of them.

use crate::model::{Scope, Series};

/// A quantity with the names of its series and figures.
#[derive(Debug, PartialEq, Eq)]
pub struct Quantity {
    series: &'static str,
    peak: &'static str,
    mean: &'static str,
}

/// Held for sending: not acknowledged at the data level.
pub static SEND_MEMORY: Quantity =
    Quantity { series: "send_memory_bytes", peak: "send_memory_peak_bytes", mean: "send_memory_mean_bytes" };

/// Received and not taken by the application, out-of-order data included.
pub static RECEIVE_MEMORY: Quantity = Quantity {
    series: "receive_memory_bytes",
    peak: "receive_memory_peak_bytes",
    mean: "receive_memory_mean_bytes",
};

/// Received out of order: of a connection at the data level, of a subflow in itself.
pub static OUT_OF_ORDER: Quantity = Quantity {
    series: "out_of_order_bytes",
    peak: "out_of_order_peak_bytes",
    mean: "out_of_order_mean_bytes",
};

/// A quantity that is looked at now and then.
#[derive(Clone, Debug)]
pub struct Gauge {
    quantity: &'static Quantity,
    points: Vec<(u64, f64)>,
    sum: f64,
    looks: u32,
    peak: f64,
}

impl Gauge {
    /// A gauge without points.
    pub fn new(quantity: &'static Quantity) -> Self {
        Self { quantity, points: Vec::new(), sum: 0.0, looks: 0, peak: 0.0 }
    }

    /// Adds a point: what is held at a time in nanoseconds.
    pub fn point(&mut self, now: u64, bytes: u64) {
        self.points.push((now, bytes as f64));
    }

    /// Counts what is held for mean and peak.
    pub fn count(&mut self, bytes: u64) {
        let bytes = bytes as f64;
        self.sum += bytes;
        self.looks += 1;
        self.peak = self.peak.max(bytes);
    }

    /// Peak and mean of what has been counted, by name; nothing if nothing has been.
    pub fn figures(&self) -> Vec<(&'static str, f64)> {
        if self.looks == 0 {
            return Vec::new();
        }
        vec![(self.quantity.peak, self.peak), (self.quantity.mean, self.sum / f64::from(self.looks))]
    }

    /// What was held, over time.
    pub fn series(&self, scope: Scope) -> Series {
        Series { scope, metric: self.quantity.series, points: self.points.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_peak_are_of_what_is_counted_and_points_of_all() {
        let mut gauge = Gauge::new(&SEND_MEMORY);
        assert_eq!(gauge.figures(), []);
        for (now, bytes, counts) in [(1, 900, false), (2, 100, true), (3, 200, true), (4, 800, false)] {
            gauge.point(now, bytes);
            if counts {
                gauge.count(bytes);
            }
        }
        assert_eq!(gauge.figures(), [("send_memory_peak_bytes", 200.0), ("send_memory_mean_bytes", 150.0)]);
        let series = gauge.series(Scope::Run);
        assert_eq!((series.metric, series.points.len()), ("send_memory_bytes", 4));
    }
}
