//! Accounts of memory that is held outside of the engine and counts against its limit: a sorter's arena, a
//! cursor's batch.
//!
//! # Terms
//! - *Account*: a sum of bytes. The component that limits memory keeps it, and reads it.
//! - *Held memory*: one part of the sum, which leaves it when it is dropped.
//!
//! # Not here
//! Allocation and refusal: an account only reports.

use std::cmp::Ordering as Cmp;
use std::sync::Arc;

use pando_environment::sync::atomic::{AtomicUsize, Ordering};

/// See the module's head. Clones are the same account.
#[derive(Clone, Debug, Default)]
pub struct MemoryAccount(Arc<AtomicUsize>);

impl MemoryAccount {
    /// Bytes that are held.
    pub fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds this many bytes, until the answer is dropped.
    pub fn hold(&self, bytes: usize) -> HeldMemory {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        HeldMemory { account: self.clone(), bytes }
    }

    /// Adds as many of the wanted bytes as keep the sum within the limit, but not fewer than `least`.
    pub fn hold_within(&self, least: usize, wanted: usize, limit: usize) -> HeldMemory {
        let granted = |held: usize| wanted.min(limit.saturating_sub(held)).max(least);
        let before =
            self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| Some(held + granted(held)));
        let held = before.unwrap_or_else(|held| held);
        HeldMemory { account: self.clone(), bytes: granted(held) }
    }
}

/// Bytes in an account.
#[derive(Debug)]
pub struct HeldMemory {
    account: MemoryAccount,
    bytes: usize,
}

impl HeldMemory {
    /// How many.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes how many.
    pub fn set(&mut self, bytes: usize) {
        match bytes.cmp(&self.bytes) {
            Cmp::Greater => self.account.0.fetch_add(bytes - self.bytes, Ordering::Relaxed),
            Cmp::Less => self.account.0.fetch_sub(self.bytes - bytes, Ordering::Relaxed),
            // As a rule, and then nothing that others look at is touched.
            Cmp::Equal => return,
        };
        self.bytes = bytes;
    }

    /// Whether it is in this account.
    pub fn is_in(&self, account: &MemoryAccount) -> bool {
        Arc::ptr_eq(&self.account.0, &account.0)
    }
}

impl Clone for HeldMemory {
    fn clone(&self) -> HeldMemory {
        self.account.hold(self.bytes)
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        self.account.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_what_is_held_and_nothing_when_all_is_dropped() {
        let account = MemoryAccount::default();
        let mut first = account.hold(100);
        let second = first.clone();
        first.set(30);
        assert_eq!((first.bytes(), account.bytes()), (30, 130));
        first.set(40);
        drop(second);
        assert_eq!(account.bytes(), 40);
        assert!(first.is_in(&account) && !first.is_in(&MemoryAccount::default()));
        drop(first);
        assert_eq!(account.bytes(), 0);
    }

    #[test]
    fn no_more_is_held_than_the_limit_leaves_but_for_the_least() {
        let account = MemoryAccount::default();
        let first = account.hold_within(10, 70, 100);
        let second = account.hold_within(10, 70, 100);
        let third = account.hold_within(10, 70, 100);
        assert_eq!([first.bytes(), second.bytes(), third.bytes()], [70, 30, 10]);
        assert_eq!(account.bytes(), 110);
        drop((first, second, third));
        assert_eq!(account.bytes(), 0);
    }
}
