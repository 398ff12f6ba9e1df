//! Throttle: limits the bytes per second that a background check reads, with short rests.
//!
//! Not here: back-pressure on commits, which is in [`crate::background`].

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use pando_environment::sync::{Condvar, Mutex};
use pando_environment::{Clock, Environment, Monotonic};

/// Shorter rests are added up first.
const REST_MIN: Duration = Duration::from_millis(2);
/// The longest rest at once, so that a machine that was suspended does not cause a long rest.
const REST_MAX: Duration = Duration::from_secs(1);

/// See the [module](self).
pub(crate) struct Throttle(Option<Rate>);

struct Rate {
    clock: Arc<dyn Clock>,
    bytes_per_second: NonZeroU64,
    began: Monotonic,
    spent: u64,
}

impl Throttle {
    /// No limit.
    pub(crate) fn none() -> Throttle {
        Throttle(None)
    }

    pub(crate) fn new(environment: &Environment, bytes_per_second: Option<NonZeroU64>) -> Throttle {
        Throttle(bytes_per_second.map(|bytes_per_second| {
            let clock = Arc::clone(environment.clock());
            Rate { began: clock.monotonic(), clock, bytes_per_second, spent: 0 }
        }))
    }

    /// Counts bytes, and rests if they are ahead of the rate.
    pub(crate) fn spend(&mut self, bytes: u64) {
        let Some(rate) = &mut self.0 else { return };
        rate.spent += bytes;
        let nanos = u128::from(rate.spent) * 1_000_000_000 / u128::from(rate.bytes_per_second.get());
        let due = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let ahead = due.saturating_sub(rate.clock.monotonic().since(rate.began));
        if ahead >= REST_MIN {
            // The condition variable is never notified: the wait ends with its timeout.
            let (lock, never) = (Mutex::new(()), Condvar::new());
            let _timed_out = never.wait_for(&mut lock.lock(), ahead.min(REST_MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::verify::throttle::*;

    #[test]
    fn bytes_take_the_time_of_their_rate() {
        let environment = Environment::real();
        let mut throttle = Throttle::new(&environment, NonZeroU64::new(1 << 20));
        let began = environment.clock().monotonic();
        (0..10).for_each(|_| throttle.spend(8 << 10));
        let took = environment.clock().monotonic().since(began);
        assert!(took >= Duration::from_millis(70), "80 KiB at 1 MiB/s took {took:?}");
        Throttle::none().spend(u64::MAX);
    }
}
