//! The permits of connections: a limit over all of them, one for each address, and a count for each I/O
//! thread.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::address_book::{AddressBook, AddressLimits, AddressShare};

/// Connections beyond the limit for processes of this machine, through the unix socket: an operator gets in
/// where clients that leave theirs open have taken all.
const RESERVED_FOR_PROCESSES: usize = 8;

/// Gives out permits and counts those that are out.
#[derive(Debug)]
pub(crate) struct Permits {
    all: Arc<AtomicUsize>,
    all_max: usize,
    by_thread: Vec<Arc<AtomicUsize>>,
    by_address: AddressBook,
}

/// The reason why there is no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPermit {
    /// So many connections are open, which is the limit.
    All(usize),
    /// The address has so many, which is its limit.
    OfAddress(usize),
}

/// The permit of one connection. Dropping gives it back.
#[derive(Debug)]
pub(crate) struct Permit {
    all: Arc<AtomicUsize>,
    of_thread: Arc<AtomicUsize>,
    /// The share in its address, if addresses have limits.
    share: Option<AddressShare>,
}

impl Permits {
    pub(crate) fn new(all_max: usize, threads: usize, of_address: AddressLimits) -> Permits {
        assert!(threads > 0, "connections need a thread");
        let by_thread = (0..threads).map(|_| Arc::default()).collect();
        Permits { all: Arc::default(), all_max, by_thread, by_address: AddressBook::new(of_address) }
    }

    /// A permit for the thread that has the fewest connections, for a client of this address; `None` is a
    /// process of this machine. Only the acceptor asks, so the count cannot rise between the comparison and
    /// the claim.
    pub(crate) fn claim(&mut self, address: Option<IpAddr>) -> Result<(usize, Permit), NoPermit> {
        let reserved = if address.is_none() { RESERVED_FOR_PROCESSES } else { 0 };
        if self.all.load(Ordering::Relaxed) >= self.all_max + reserved {
            return Err(NoPermit::All(self.all_max));
        }
        let share = match address.filter(|_| self.by_address.is_needed()) {
            Some(address) => Some(self.by_address.enter(address).map_err(NoPermit::OfAddress)?),
            None => None,
        };
        let count_of = |thread: &usize| self.by_thread[*thread].load(Ordering::Relaxed);
        let fewest = (0..self.by_thread.len()).min_by_key(count_of).unwrap_or_default();
        let of_thread = Arc::clone(&self.by_thread[fewest]);
        of_thread.fetch_add(1, Ordering::Relaxed);
        self.all.fetch_add(1, Ordering::Relaxed);
        Ok((fewest, Permit { all: Arc::clone(&self.all), of_thread, share }))
    }

    /// The live count of connections, for statistics.
    pub(crate) fn count(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.all)
    }
}

impl Permit {
    /// Pays for a request, or gives the time until the address may send the next one.
    pub(super) fn pay(&self) -> Result<(), Duration> {
        match &self.share {
            None => Ok(()),
            Some(share) => share.pay(Instant::now()),
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Ordering::Relaxed);
        self.of_thread.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_this_machine_have_a_reserve_and_other_clients_have_none() {
        let mut permits = Permits::new(2, 1, AddressLimits::default());
        let other = Some(IpAddr::from([127, 0, 0, 1]));
        let held: Vec<_> = (0..2).map(|_| permits.claim(other).expect("within the limit")).collect();
        assert_eq!(permits.claim(other).err(), Some(NoPermit::All(2)));
        let own: Vec<_> = (0..RESERVED_FOR_PROCESSES).map(|_| permits.claim(None)).collect();
        assert!(own.iter().all(Result::is_ok));
        assert_eq!(permits.claim(None).err(), Some(NoPermit::All(2)));
        drop(held);
        assert_eq!(permits.claim(other).err(), Some(NoPermit::All(2)), "the reserve counts");
    }
}
