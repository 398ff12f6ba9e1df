//! The clients by their addresses: connections of each, and requests a second.
//!
//! A rate is kept by GCRA (the generic cell rate algorithm): each address has one time, up to which its
//! requests are paid for. A request moves that time by the interval of two requests. It has to wait if the
//! time is further ahead than a burst allows.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The limits of one address; `None` is without limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressLimits {
    /// Connections at one time.
    pub connections: Option<usize>,
    /// Requests a second, and as many at once after a pause.
    pub requests_per_second: Option<u32>,
}

/// Addresses without a connection are forgotten once there are this many entries.
const ENTRIES_SWEPT_AT: usize = 1024;

/// The addresses that have connections.
#[derive(Debug)]
pub(super) struct AddressBook {
    limits: AddressLimits,
    entries: HashMap<IpAddr, Arc<AddressEntry>>,
    swept_at: usize,
    begun: Instant,
}

/// One address.
#[derive(Debug)]
struct AddressEntry {
    connections: AtomicUsize,
    /// Nanoseconds since `begun` up to which requests are paid for.
    paid_ns: AtomicU64,
}

/// The share of one connection in its address. Dropping ends the connection there.
#[derive(Debug)]
pub(super) struct AddressShare {
    entry: Arc<AddressEntry>,
    begun: Instant,
    /// Nanoseconds between two requests; 0 is without limit.
    interval_ns: u64,
}

impl AddressBook {
    pub(super) fn new(limits: AddressLimits) -> AddressBook {
        AddressBook { limits, entries: HashMap::new(), swept_at: ENTRIES_SWEPT_AT, begun: Instant::now() }
    }

    /// Whether there is any limit.
    pub(super) fn is_needed(&self) -> bool {
        self.limits != AddressLimits::default()
    }

    /// Notes a connection. `Err` is the limit that the address has reached.
    pub(super) fn enter(&mut self, address: IpAddr) -> Result<AddressShare, usize> {
        if self.entries.len() >= self.swept_at {
            self.entries.retain(|_, entry| entry.connections.load(Ordering::Relaxed) > 0);
            self.swept_at = ENTRIES_SWEPT_AT.max(2 * self.entries.len());
        }
        let fresh = || AddressEntry { connections: AtomicUsize::new(0), paid_ns: AtomicU64::new(0) };
        let entry = self.entries.entry(address.to_canonical()).or_insert_with(|| Arc::new(fresh()));
        if let Some(max) = self.limits.connections
            && entry.connections.load(Ordering::Relaxed) >= max
        {
            return Err(max);
        }
        entry.connections.fetch_add(1, Ordering::Relaxed);
        let interval_ns =
            self.limits.requests_per_second.map_or(0, |rate| 1_000_000_000 / u64::from(rate.max(1)));
        Ok(AddressShare { entry: Arc::clone(entry), begun: self.begun, interval_ns })
    }
}

impl AddressShare {
    /// Pays for a request, or gives the time until it can be paid for.
    pub(super) fn pay(&self, now: Instant) -> Result<(), Duration> {
        if self.interval_ns == 0 {
            return Ok(());
        }
        /// The burst: a second's worth.
        const BURST_NS: u64 = 1_000_000_000;
        let now_ns = u64::try_from(now.saturating_duration_since(self.begun).as_nanos()).unwrap_or(u64::MAX);
        let pay = |paid: u64| {
            let next = paid.max(now_ns) + self.interval_ns;
            (next <= now_ns + BURST_NS).then_some(next)
        };
        match self.entry.paid_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, pay) {
            Ok(_) => Ok(()),
            Err(paid) => {
                Err(Duration::from_nanos((paid + self.interval_ns).saturating_sub(now_ns + BURST_NS)))
            }
        }
    }
}

impl Drop for AddressShare {
    fn drop(&mut self) {
        self.entry.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_so_many_connections_and_another_has_its_own() {
        let mut book = AddressBook::new(AddressLimits { connections: Some(2), requests_per_second: None });
        let one: IpAddr = "10.0.0.1".parse().unwrap();
        let mapped: IpAddr = "::ffff:10.0.0.1".parse().unwrap();
        let kept = [book.enter(one).unwrap(), book.enter(mapped).unwrap()];
        assert_eq!(book.enter(one).unwrap_err(), 2);
        book.enter("10.0.0.2".parse().unwrap()).unwrap();
        drop(kept);
        book.enter(one).unwrap();
    }

    #[test]
    fn requests_beyond_the_rate_wait_and_a_pause_is_credited_for_a_second() {
        let mut book = AddressBook::new(AddressLimits { connections: None, requests_per_second: Some(10) });
        let share = book.enter("10.0.0.1".parse().unwrap()).unwrap();
        let now = Instant::now() + Duration::from_secs(60);
        assert_eq!((0..20).filter(|_| share.pay(now).is_ok()).count(), 10);
        assert_eq!(share.pay(now), Err(Duration::from_millis(100)));
        assert_eq!(share.pay(now + Duration::from_millis(100)), Ok(()));
        assert!(share.pay(now + Duration::from_millis(150)).is_err());
    }

    #[test]
    fn addresses_without_connections_are_forgotten() {
        let mut book = AddressBook::new(AddressLimits { connections: Some(1), requests_per_second: None });
        for number in 0..10_000_u32 {
            drop(book.enter(IpAddr::from(number.to_be_bytes())).unwrap());
        }
        assert!(book.entries.len() <= ENTRIES_SWEPT_AT);
    }
}
