//! Background reading that keeps to a pace: so many bytes a second on average, in short rests.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use pando_environment::sync::{Condvar, Mutex};
use pando_environment::{Clock, Environment, Monotonic};

/// Shorter rests are added up first.
const REST_MIN: Duration = Duration::from_millis(2);
/// The longest rest at once, so that a machine that slept does not make anybody sleep on.
const REST_MAX: Duration = Duration::from_secs(1);

/// See the [module](self).
pub(crate) struct Throttle(Option<Pace>);

struct Pace {
    clock: Arc<dyn Clock>,
    bytes_per_second: NonZeroU64,
    began: Monotonic,
    spent: u64,
}

impl Throttle {
    /// As fast as it goes.
    pub(crate) fn none() -> Throttle {
        Throttle(None)
    }

    pub(crate) fn new(environment: &Environment, bytes_per_second: Option<NonZeroU64>) -> Throttle {
        Throttle(bytes_per_second.map(|bytes_per_second| {
            let clock = Arc::clone(environment.clock());
            Pace { began: clock.monotonic(), clock, bytes_per_second, spent: 0 }
        }))
    }

    /// Rests, if so many bytes more are ahead of the time.
    pub(crate) fn spend(&mut self, bytes: u64) {
        let Some(pace) = &mut self.0 else { return };
        pace.spent += bytes;
        let nanos = u128::from(pace.spent) * 1_000_000_000 / u128::from(pace.bytes_per_second.get());
        let due = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let ahead = due.saturating_sub(pace.clock.monotonic().since(pace.began));
        if ahead >= REST_MIN {
            // Nobody tells: only the time passes.
            let (lock, never) = (Mutex::new(()), Condvar::new());
            let _timed_out = never.wait_for(&mut lock.lock(), ahead.min(REST_MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::verify::throttle::*;

    #[test]
    fn so_many_bytes_take_their_time() {
        let environment = Environment::real();
        let mut throttle = Throttle::new(&environment, NonZeroU64::new(1 << 20));
        let began = environment.clock().monotonic();
        (0..10).for_each(|_| throttle.spend(8 << 10));
        let took = environment.clock().monotonic().since(began);
        assert!(took >= Duration::from_millis(70), "80 KiB at 1 MiB/s took {took:?}");
        Throttle::none().spend(u64::MAX);
    }
}
