//! A limit to how fast all connections together may bring data.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::clock;

/// A bucket that fills with time; what is taken beyond it is waited for.
#[derive(Debug)]
pub(super) struct Pace {
    bytes_per_second: u64,
    /// When everything that has been taken is paid for.
    paid_until: Mutex<Instant>,
}

impl Pace {
    pub(super) fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second: bytes_per_second.max(1), paid_until: Mutex::new(clock::now()) }
    }

    /// How long to wait after taking so many bytes at that time.
    fn take(&self, bytes: usize, now: Instant) -> Duration {
        let mut paid_until = self.paid_until.lock().unwrap_or_else(PoisonError::into_inner);
        let price = Duration::from_nanos(
            u64::try_from(bytes as u128 * 1_000_000_000 / u128::from(self.bytes_per_second))
                .unwrap_or(u64::MAX),
        );
        *paid_until = (*paid_until).max(now) + price;
        *paid_until - now
    }

    /// Takes so many bytes, which are few, and waits for them.
    pub(super) fn wait_for(&self, bytes: usize) {
        std::thread::sleep(self.take(bytes, clock::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_who_take_wait_as_long_as_one_who_takes_as_much() {
        let pace = Pace::new(1000);
        let now = clock::now() + Duration::from_secs(1);
        assert_eq!(pace.take(100, now), Duration::from_millis(100));
        assert_eq!(pace.take(100, now), Duration::from_millis(200));
        let later = now + Duration::from_secs(9);
        assert_eq!(pace.take(1, later), Duration::from_millis(1), "what nobody took is not saved up");
    }
}
