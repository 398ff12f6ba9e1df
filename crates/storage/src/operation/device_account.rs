//! The account of an operation with the device: its reads, and what it waits for below the layer of queries.
//!
//! An engine's read path knows no operation. It charges the account of its *thread*, which the thread has
//! while it works for an operation ([`DeviceAccount::charge_thread`]). Threads of the engine have none, so
//! background work is charged to nobody. A worker that reads ahead for others has an account of its own, and
//! who takes the pages takes over the charge.
//!
//! An engine whose reads wait for other machines asks by the thread, too, when such a wait has to end
//! ([`DeviceAccount::time_left_of_thread`]).
//!
//! # Invariants
//! - Counts, names of waits and the end of a wait for other machines go by the thread. Other interruptions do
//!   not: each function that may end early has its operation as a parameter.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pando_environment::Monotonic;

use super::wait::CurrentWait;
use super::{OperationWait, add};

thread_local! {
    static OF_THREAD: RefCell<Option<Arc<DeviceAccount>>> = const { RefCell::new(None) };
}

/// The end of an operation without a time limit.
const NEVER: u64 = u64::MAX;

/// See the module's head.
#[derive(Debug)]
pub struct DeviceAccount {
    pages: AtomicU64,
    bytes: AtomicU64,
    nanos: AtomicU64,
    pub(super) wait: CurrentWait,
    /// When the operation has to end, in nanoseconds of the monotonic clock; 0 at once.
    ends_at: AtomicU64,
}

impl Default for DeviceAccount {
    fn default() -> DeviceAccount {
        DeviceAccount {
            pages: AtomicU64::default(),
            bytes: AtomicU64::default(),
            nanos: AtomicU64::default(),
            wait: CurrentWait::default(),
            ends_at: AtomicU64::new(NEVER),
        }
    }
}

/// Reads of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceReads {
    /// Blocks: pages, nodes, large values.
    pub pages: u64,
    /// Bytes.
    pub bytes: u64,
    /// The time that threads waited for them.
    pub time: Duration,
}

impl DeviceReads {
    /// No reads.
    pub const NONE: DeviceReads = DeviceReads { pages: 0, bytes: 0, time: Duration::ZERO };
}

/// The thread has an account as long as this lives.
#[derive(Debug)]
pub struct ThreadCharge {
    before: Option<Arc<DeviceAccount>>,
}

impl Drop for ThreadCharge {
    fn drop(&mut self) {
        OF_THREAD.set(self.before.take());
    }
}

impl DeviceAccount {
    /// Has this thread charge the account, until the answer is dropped.
    pub fn charge_thread(self: &Arc<DeviceAccount>) -> ThreadCharge {
        ThreadCharge { before: OF_THREAD.replace(Some(Arc::clone(self))) }
    }

    /// Charges the account of this thread, if it has one.
    pub fn charge(reads: DeviceReads) {
        OF_THREAD.with_borrow(|account| {
            if let Some(account) = account {
                account.add(reads);
            }
        });
    }

    /// Notes what the operation of this thread waits for, until the answer is dropped.
    pub fn waiting(wait: OperationWait) -> DeviceWait {
        let account = OF_THREAD.with_borrow(Option::clone);
        let account = account.map(|account| {
            let before = account.wait.get();
            account.wait.set(Some(wait));
            (account, before)
        });
        DeviceWait { account }
    }

    /// The time that the operation of this thread has left, by the clock of its environment: zero where it
    /// was interrupted, `None` where it has no limit or the thread has no operation.
    pub fn time_left_of_thread(now: impl FnOnce() -> Monotonic) -> Option<Duration> {
        let ends_at = OF_THREAD.with_borrow(|account| {
            account.as_ref().map_or(NEVER, |account| account.ends_at.load(Ordering::SeqCst))
        });
        match ends_at {
            NEVER => None,
            0 => Some(Duration::ZERO),
            ends_at => Some(Duration::from_nanos(ends_at).saturating_sub(now().since_start())),
        }
    }

    /// Sets the moment at which the operation has to end, in nanoseconds of the monotonic clock.
    pub(super) fn set_end(&self, nanos: u64) {
        self.ends_at.store(nanos, Ordering::SeqCst);
    }

    /// Adds reads.
    pub fn add(&self, reads: DeviceReads) {
        add(&self.pages, reads.pages);
        add(&self.bytes, reads.bytes);
        add(&self.nanos, u64::try_from(reads.time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// The reads so far.
    pub fn reads(&self) -> DeviceReads {
        DeviceReads {
            pages: self.pages.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            time: Duration::from_nanos(self.nanos.load(Ordering::Relaxed)),
        }
    }

    /// Sets the reads to zero, and the end to never.
    pub(super) fn clear(&self) {
        self.set_end(NEVER);
        [&self.pages, &self.bytes, &self.nanos].into_iter().for_each(|sum| sum.store(0, Ordering::Relaxed));
    }
}

/// A wait of a thread's operation; it is over when this is dropped.
#[derive(Debug)]
pub struct DeviceWait {
    account: Option<(Arc<DeviceAccount>, Option<OperationWait>)>,
}

impl Drop for DeviceWait {
    fn drop(&mut self) {
        if let Some((account, before)) = self.account.take() {
            account.wait.set(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: DeviceReads = DeviceReads { pages: 1, bytes: 4096, time: Duration::from_micros(80) };

    #[test]
    fn a_thread_charges_the_account_that_it_has_and_the_outer_one_afterwards() {
        DeviceAccount::charge(PAGE);
        let (outer, inner) = (Arc::new(DeviceAccount::default()), Arc::new(DeviceAccount::default()));
        let charge = outer.charge_thread();
        DeviceAccount::charge(PAGE);
        {
            let _inner = inner.charge_thread();
            DeviceAccount::charge(PAGE);
            DeviceAccount::charge(PAGE);
        }
        DeviceAccount::charge(PAGE);
        drop(charge);
        DeviceAccount::charge(PAGE);
        assert_eq!((outer.reads().pages, inner.reads().pages), (2, 2));
        assert_eq!(inner.reads().bytes, 8192);
        inner.clear();
        assert_eq!(inner.reads(), DeviceReads::NONE);
    }

    #[test]
    fn a_wait_is_shown_at_the_operation_of_the_thread() {
        let account = Arc::new(DeviceAccount::default());
        let _without_an_account = DeviceAccount::waiting(OperationWait::Device);
        assert_eq!(account.wait.get(), None);
        let _charge = account.charge_thread();
        let outer = DeviceAccount::waiting(OperationWait::QueryMemory);
        {
            let _inner = DeviceAccount::waiting(OperationWait::Device);
            assert_eq!(account.wait.get(), Some(OperationWait::Device));
        }
        assert_eq!(account.wait.get(), Some(OperationWait::QueryMemory));
        drop(outer);
        assert_eq!(account.wait.get(), None);
    }
}
