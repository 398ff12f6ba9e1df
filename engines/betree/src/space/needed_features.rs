//! The incompatible features that a store needs of programs: those of its superblock, and those of what was
//! written since.
//!
//! A block that needs one may be written at once: the next superblock has the feature before any generation
//! leads to the block. A record of the log is reached without a new superblock, so whoever writes one asks
//! first whether the device has the feature ([`has`](NeededFeatures::has)).

use pando_environment::sync::atomic::{AtomicU64, Ordering};

use super::superblock::FeatureMasks;

/// See the [module](self).
pub(crate) struct NeededFeatures {
    /// Noted since the store was opened.
    noted: AtomicU64,
    /// Of the newest superblock on the device.
    durable: AtomicU64,
}

impl NeededFeatures {
    pub(super) fn of(durable: FeatureMasks) -> NeededFeatures {
        NeededFeatures { noted: AtomicU64::new(0), durable: AtomicU64::new(durable.incompatible) }
    }

    /// Notes that a block needs programs that know a feature.
    pub(super) fn note(&self, bit: u64) {
        if self.noted.load(Ordering::Relaxed) & bit == 0 {
            self.noted.fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// Whether the device has a superblock with a feature. If not, the next checkpoint writes one, and the
    /// caller must do without until then.
    pub(crate) fn has(&self, bit: u64) -> bool {
        if self.durable() & bit != 0 {
            return true;
        }
        self.note(bit);
        false
    }

    /// The features of the newest superblock on the device.
    pub(super) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Notes the features of a superblock that is on the device.
    pub(super) fn set_durable(&self, features: FeatureMasks) {
        self.durable.store(features.incompatible, Ordering::Release);
    }

    /// The features of the superblock that is written next, after one with these.
    pub(super) fn after(&self, features: FeatureMasks) -> FeatureMasks {
        let noted = self.noted.load(Ordering::SeqCst);
        FeatureMasks { incompatible: features.incompatible | noted, ..features }
    }
}
