//! The lines of the log about damage on the device that requests meet: clients are told, but those who watch
//! a server read its log. A loop of a client over damaged documents must not fill the device.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The least time between two lines.
const EVERY_MS: u64 = 1_000;

/// See the module's head.
#[derive(Debug)]
pub(crate) struct DamageLog {
    /// The moment of the last line.
    last_ms: AtomicI64,
    /// Errors since then.
    left_out: AtomicU64,
}

impl Default for DamageLog {
    fn default() -> DamageLog {
        DamageLog { last_ms: AtomicI64::new(i64::MIN / 2), left_out: AtomicU64::new(0) }
    }
}

impl DamageLog {
    /// Tells of an error, unless another one was told just before.
    pub fn tell(&self, now_ms: i64, namespace: &str, error: &str) {
        let last = self.last_ms.load(Ordering::Relaxed);
        let is_due = now_ms.abs_diff(last) >= EVERY_MS;
        let is_mine =
            || self.last_ms.compare_exchange(last, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if !(is_due && is_mine()) {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let left_out = self.left_out.swap(0, Ordering::Relaxed);
        tracing::error!(
            namespace,
            left_out,
            "damage on the device: {error}; docs/operations.md has what to do (The store is damaged)"
        );
    }
}
