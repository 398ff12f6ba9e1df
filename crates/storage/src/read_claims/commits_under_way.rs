//! The commits under way, for a reader that has to wait for those that noted nothing.
//!
//! # Algorithm
//! 1. A commit counts itself in one of two *sides* of a stripe of its thread. Then it looks whether there are
//!    readers.
//! 2. A reader counts itself first. Then it waits until both sides were empty once. Commits turn to the other
//!    side meanwhile, so that the wait ends while others begin.
//!
//! A commit that found no reader had counted itself before the reader looked. So the reader has waited for
//! it.

use std::cell::Cell;

use pando_environment::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use pando_environment::sync::{Condvar, Mutex};

/// Stripes by which threads keep out of each other's way; a power of two.
const STRIPES: usize = 8;

static NEXT_STRIPE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

thread_local! {
    static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// See the module's head.
#[derive(Default)]
pub(super) struct CommitsUnderWay {
    stripes: [Stripe; STRIPES],
    /// The side of commits that begin now.
    side: AtomicUsize,
    /// Held by the reader that waits.
    turn: Mutex<()>,
    is_awaited: AtomicBool,
    wait: Mutex<()>,
    ended: Condvar,
}

#[derive(Default)]
#[repr(align(64))]
struct Stripe {
    sides: [AtomicUsize; 2],
}

/// A commit that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommitToken {
    stripe: usize,
    side: usize,
}

fn stripe() -> usize {
    STRIPE.with(|mine| {
        if mine.get() == usize::MAX {
            mine.set(NEXT_STRIPE.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % STRIPES);
        }
        mine.get()
    })
}

impl CommitsUnderWay {
    pub(super) fn begin(&self) -> CommitToken {
        let token = CommitToken { stripe: stripe(), side: self.side.load(Ordering::Relaxed) & 1 };
        self.count(token).fetch_add(1, Ordering::SeqCst);
        token
    }

    pub(super) fn end(&self, token: CommitToken) {
        self.count(token).fetch_sub(1, Ordering::SeqCst);
        if self.is_awaited.load(Ordering::SeqCst) {
            // The reader holds the lock from its look at the counts until it waits.
            drop(self.wait.lock());
            self.ended.notify_all();
        }
    }

    fn count(&self, token: CommitToken) -> &AtomicUsize {
        &self.stripes[token.stripe].sides[token.side]
    }

    /// Waits until every commit that has begun before is over.
    pub(super) fn wait(&self) {
        let _turn = self.turn.lock();
        self.is_awaited.store(true, Ordering::SeqCst);
        let now = self.side.load(Ordering::SeqCst) & 1;
        self.wait_for_side(1 - now);
        self.side.store(1 - now, Ordering::SeqCst);
        self.wait_for_side(now);
        self.is_awaited.store(false, Ordering::SeqCst);
    }

    fn wait_for_side(&self, side: usize) {
        for stripe in &self.stripes {
            let mut held = self.wait.lock();
            while stripe.sides[side].load(Ordering::SeqCst) > 0 {
                self.ended.wait(&mut held);
            }
        }
    }
}
