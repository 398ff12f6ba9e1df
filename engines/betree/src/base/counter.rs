//! Counters that many threads raise at once without contending for a cache line.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const STRIPES: usize = 8;

static NEXT_STRIPE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// A number of this thread below `limit`, a power of two. Threads spread evenly, and each keeps its number.
pub(crate) fn stripe(limit: usize) -> usize {
    let mine = STRIPE.get();
    let mine = if mine == usize::MAX {
        let mine = NEXT_STRIPE.fetch_add(1, Ordering::Relaxed) & 0xFFFF;
        STRIPE.set(mine);
        mine
    } else {
        mine
    };
    mine & (limit - 1)
}

/// A count that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    stripes: [Stripe; STRIPES],
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Stripe(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.stripes[stripe(STRIPES)].0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.stripes.iter().map(|stripe| stripe.0.load(Ordering::Relaxed)).sum()
    }
}
