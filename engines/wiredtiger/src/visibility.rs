//! The moment at which a commit becomes visible, seen from the transactions that begin.
//!
//! A snapshot has to know its number: the last commit that it sees. WiredTiger takes a snapshot without
//! telling, so a begin looks whether a commit came between (a sequence lock). A lock would be simpler. But
//! WiredTiger may stop a begin while its cache is full, and the commit that could make room would then wait
//! for the lock.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// See the module's head.
#[derive(Default)]
pub(crate) struct Visibility {
    /// Odd while a commit becomes visible.
    changes: AtomicU64,
}

/// A commit that becomes visible; ends when it is dropped.
pub(crate) struct Changing<'v>(&'v Visibility);

/// The moment before a snapshot was taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment(u64);

impl Visibility {
    /// Begins a change. The caller holds the lock by which there is one at a time.
    pub(crate) fn change(&self) -> Changing<'_> {
        self.changes.fetch_add(1, Ordering::SeqCst);
        Changing(self)
    }

    /// The present moment; `None` while a commit becomes visible.
    pub(crate) fn moment(&self) -> Option<Moment> {
        let changes = self.changes.load(Ordering::SeqCst);
        changes.is_multiple_of(2).then_some(Moment(changes))
    }

    /// Whether no commit has become visible since, not even in part.
    pub(crate) fn is_unchanged_since(&self, moment: Moment) -> bool {
        fence(Ordering::SeqCst);
        self.changes.load(Ordering::SeqCst) == moment.0
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.changes.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_during_and_after_it() {
        let visibility = Visibility::default();
        let before = visibility.moment().expect("nothing changes");
        assert!(visibility.is_unchanged_since(before));
        let changing = visibility.change();
        assert!(visibility.moment().is_none() && !visibility.is_unchanged_since(before));
        drop(changing);
        assert!(visibility.moment().is_some_and(|after| after != before));
        assert!(!visibility.is_unchanged_since(before));
    }
}
