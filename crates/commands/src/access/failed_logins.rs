//! Failed logins by address, and the delay that they bring to further logins from there.
//!
//! The first few failures of an address cost nothing: people mistype. Each further one doubles the delay, up
//! to a bound. The delay holds for every answer of a login from that address, right or wrong, whatever its
//! connection. Connections wait side by side: an address guesses as often in that time as it has connections.
//! Failures are forgotten with time.
//!
//! A delayed reply waits with a timer and holds no thread. The table is bounded: the address with the oldest
//! failure gives way to a new one.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use pando_environment::Monotonic;
use parking_lot::Mutex;

/// Failures that cost nothing.
const FREE_FAILURES: u32 = 5;
/// The delay after the first failure that costs something.
const FIRST_DELAY: Duration = Duration::from_millis(100);
/// The longest delay of a reply.
const DELAY_MAX: Duration = Duration::from_secs(4);
/// One failure is forgotten in this time.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(2);
/// Failures that are remembered of one address.
const FAILURES_MAX: u32 = 64;
/// Addresses in the table.
const ADDRESSES_MAX: usize = 4096;

/// See the module's head.
#[derive(Default)]
pub(crate) struct FailedLogins {
    rows: Mutex<HashMap<Origin, Row>>,
}

/// The place that logins come from. Whoever has an IPv6 address has its whole network of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Origin {
    /// A unix socket, or a caller in the same process.
    WithoutAddress,
    V4([u8; 4]),
    V6Network([u8; 8]),
}

#[derive(Clone, Copy)]
struct Row {
    failures: u32,
    /// The moment of the last one, or of the last that was forgotten.
    last: Monotonic,
    /// No login from there is answered before.
    free_at: Monotonic,
}

impl Origin {
    fn of(client: Option<IpAddr>) -> Origin {
        match client.map(|address| address.to_canonical()) {
            None => Origin::WithoutAddress,
            Some(IpAddr::V4(address)) => Origin::V4(address.octets()),
            Some(IpAddr::V6(address)) => {
                let mut network = [0; 8];
                network.copy_from_slice(&address.octets()[..8]);
                Origin::V6Network(network)
            }
        }
    }
}

impl Row {
    fn forget(&mut self, now: Monotonic) {
        let forgotten = now.since(self.last).as_millis() / FORGOTTEN_AFTER.as_millis();
        let forgotten = u32::try_from(forgotten).unwrap_or(u32::MAX);
        if forgotten > 0 {
            self.failures = self.failures.saturating_sub(forgotten);
            self.last = now;
        }
    }

    fn delay(&self) -> Duration {
        match self.failures.checked_sub(FREE_FAILURES) {
            None | Some(0) => Duration::ZERO,
            Some(costly) => (FIRST_DELAY * 2_u32.pow((costly - 1).min(16))).min(DELAY_MAX),
        }
    }
}

impl FailedLogins {
    /// The moment before which a login from this address is not answered.
    pub fn free_at(&self, client: Option<IpAddr>, now: Monotonic) -> Option<Monotonic> {
        let rows = self.rows.lock();
        let row = rows.get(&Origin::of(client))?;
        (row.free_at > now).then_some(row.free_at)
    }

    /// Notes a failure. Gives the moment at which the client is told of it, if that is not now.
    pub fn note(&self, client: Option<IpAddr>, now: Monotonic) -> Option<Monotonic> {
        let mut rows = self.rows.lock();
        let origin = Origin::of(client);
        if rows.len() >= ADDRESSES_MAX && !rows.contains_key(&origin) {
            let oldest = rows.iter().min_by_key(|(_, row)| row.last).map(|(origin, _)| *origin);
            if let Some(oldest) = oldest {
                rows.remove(&oldest);
            }
        }
        let row = rows.entry(origin).or_insert(Row { failures: 0, last: now, free_at: now });
        row.forget(now);
        row.failures = (row.failures + 1).min(FAILURES_MAX);
        row.last = now;
        let delay = row.delay();
        if !delay.is_zero() {
            row.free_at = row.free_at.max(now.plus(delay));
        }
        (row.free_at > now).then_some(row.free_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Monotonic {
        Monotonic::new(Duration::from_millis(milliseconds))
    }

    fn v4(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([10, 0, 0, last]))
    }

    #[test]
    fn the_delay_grows_from_the_sixth_failure_to_a_bound_and_is_forgotten() {
        let failed = FailedLogins::default();
        for _ in 0..FREE_FAILURES {
            assert_eq!(failed.note(v4(1), at(0)), None);
        }
        assert_eq!(failed.note(v4(1), at(0)), Some(at(100)));
        assert_eq!(failed.note(v4(1), at(0)), Some(at(200)));
        for _ in 0..20 {
            failed.note(v4(1), at(0));
        }
        assert_eq!(failed.free_at(v4(1), at(0)), Some(at(4000)));
        // Others do not wait.
        assert_eq!(failed.free_at(v4(2), at(0)), None);
        assert_eq!(failed.note(None, at(0)), None);
        let later = at(1000 * 60 * 60);
        assert_eq!(failed.free_at(v4(1), later), None);
        assert_eq!(failed.note(v4(1), later), None);
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_one_and_mapped_ones_are_those_of_ipv4() {
        let of = |text: &str| Origin::of(Some(text.parse().unwrap()));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    }

    #[test]
    fn the_table_is_bounded_and_the_oldest_gives_way() {
        let failed = FailedLogins::default();
        for number in 0..ADDRESSES_MAX + 10 {
            let address = IpAddr::from(u32::try_from(number).unwrap().to_be_bytes());
            failed.note(Some(address), at(number as u64));
        }
        let rows = failed.rows.lock();
        assert_eq!(rows.len(), ADDRESSES_MAX);
        assert!(
            !rows.contains_key(&Origin::V4([0, 0, 0, 9])) && rows.contains_key(&Origin::V4([0, 0, 0, 10]))
        );
    }
}
