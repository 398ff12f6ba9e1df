//! The permits of connections: a limit over all of them, and a count for each I/O thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Gives out permits and counts those that are out.
#[derive(Debug)]
pub(crate) struct Permits {
    all: Arc<AtomicUsize>,
    all_max: usize,
    by_thread: Vec<Arc<AtomicUsize>>,
}

/// The permit of one connection. Dropping gives it back.
#[derive(Debug)]
pub(crate) struct Permit {
    all: Arc<AtomicUsize>,
    of_thread: Arc<AtomicUsize>,
}

impl Permits {
    pub(crate) fn new(all_max: usize, threads: usize) -> Permits {
        assert!(threads > 0, "connections need a thread");
        Permits { all: Arc::default(), all_max, by_thread: (0..threads).map(|_| Arc::default()).collect() }
    }

    /// A permit for the thread that has the fewest connections. `None` at the limit. Only the acceptor asks,
    /// so the count cannot rise between the comparison and the claim.
    pub(crate) fn claim(&self) -> Option<(usize, Permit)> {
        if self.all.load(Ordering::Relaxed) >= self.all_max {
            return None;
        }
        let fewest =
            (0..self.by_thread.len()).min_by_key(|thread| self.by_thread[*thread].load(Ordering::Relaxed))?;
        let of_thread = Arc::clone(&self.by_thread[fewest]);
        of_thread.fetch_add(1, Ordering::Relaxed);
        self.all.fetch_add(1, Ordering::Relaxed);
        Some((fewest, Permit { all: Arc::clone(&self.all), of_thread }))
    }

    /// The limit.
    pub(crate) fn max(&self) -> usize {
        self.all_max
    }

    /// The live count of connections, for statistics.
    pub(crate) fn count(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.all)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Ordering::Relaxed);
        self.of_thread.fetch_sub(1, Ordering::Relaxed);
    }
}
