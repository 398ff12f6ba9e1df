//! Hot set detection: whether commits mostly overwrite keys that are still in the write buffers.
//!
//! A small set of keys that is written again and again needs no more buffer than it has keys. Each new
//! version replaces one that no snapshot sees any more. A flush of a part writes pages, and the next writes
//! bring that part back. So where at least half of the written bytes grow no buffer, flushing begins at three
//! quarters of the budget instead of half. The rest of the budget is enough, since such buffers fill at half
//! the rate at most. Then a buffer is not flushed for its size alone: all keys may lie in one partition.
//!
//! 1. Commits count the bytes that they write, and by how much the buffers grow.
//! 2. The flush scheduler compares both once a quarter of the budget has been written since the last look.

use pando_environment::sync::Mutex;
use pando_environment::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct HotSet {
    /// Bytes that commits have written, as they count in buffers.
    written: AtomicU64,
    /// Bytes by which these writes made the buffers grow.
    grown: AtomicI64,
    last: Mutex<Look>,
    is_hot: AtomicBool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Look {
    written: u64,
    grown: i64,
}

impl HotSet {
    /// Counts a commit's writes to one tree.
    pub(crate) fn note(&self, written: u64, grown: i64) {
        self.written.fetch_add(written, Ordering::Relaxed);
        self.grown.fetch_add(grown, Ordering::Relaxed);
    }

    /// Compares both since the last look, if at least `least` bytes were written.
    pub(crate) fn look(&self, least: u64) {
        let Some(mut last) = self.last.try_lock() else { return };
        let now =
            Look { written: self.written.load(Ordering::Relaxed), grown: self.grown.load(Ordering::Relaxed) };
        let written = now.written - last.written;
        if written < least {
            return;
        }
        let grown = now.grown - last.grown;
        self.is_hot.store(grown <= (written / 2) as i64, Ordering::Relaxed);
        *last = now;
    }

    /// Whether at least half of the bytes written lately replaced buffered ones.
    pub(crate) fn is_hot(&self) -> bool {
        self.is_hot.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use crate::background::hot_set::*;

    #[test]
    fn a_set_is_hot_while_half_of_the_writes_or_less_makes_buffers_grow() {
        let set = HotSet::default();
        set.note(1_000, 1_000);
        set.look(1_000);
        assert!(!set.is_hot());
        set.note(600, 100);
        set.look(1_000);
        assert!(!set.is_hot(), "too little was written for a verdict");
        set.note(400, 400);
        set.look(1_000);
        assert!(set.is_hot());
        set.note(1_000, 501);
        set.look(1_000);
        assert!(!set.is_hot());
        set.note(1_000, -100);
        set.look(1_000);
        assert!(set.is_hot());
    }
}
