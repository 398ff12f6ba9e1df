//! Locks, atomics and threads for code whose order of events is tested: the real ones, or those of a
//! scheduler.
//!
//! In every build but one this module only renames `parking_lot`, `arc_swap` and the standard library. Built
//! with `--cfg shuttle` the same names stand for types of the same shape over shuttle's ([`scheduled`]). All
//! threads of a test then run one at a time, every use of a lock or an atomic is a place where another thread
//! may continue, and the choices follow from a seed. `make test-schedules` builds so and runs the tests named
//! `schedules`; no other test works in that build.
//!
//! Code of the engine that threads share takes its primitives from here. Three things do not:
//! - Counters for statistics order nothing. As places to switch at they would only thin out those that
//!   matter.
//! - `quick_cache` has locks of its own in its shards. While one of them is held, the engine takes no lock of
//!   its own but a [`LeafMutex`], so that each call of the cache is one step of a schedule.
//! - Memory orderings: shuttle takes all for `SeqCst`. ThreadSanitizer may find an ordering that is too weak.
//!   `make sanitize` runs the engine's tests of threads with it, with `--cfg thread_sanitizer`.

/// A lock under which no other is taken, also within what others hold, and which may be a `static`: never a
/// place to switch at.
pub use parking_lot::Mutex as LeafMutex;

#[cfg(shuttle)]
mod explore;
#[cfg(shuttle)]
mod scheduled;
#[cfg(all(thread_sanitizer, not(shuttle)))]
mod visible;

#[cfg(shuttle)]
pub use explore::explore;

#[cfg(shuttle)]
pub use scheduled::{
    ArcSwap, Condvar, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic, switch,
    thread,
};

/// A place where another thread may go on, in tests of schedules.
#[cfg(not(shuttle))]
pub(crate) fn switch() {}

#[cfg(not(shuttle))]
pub use {
    arc_swap::ArcSwap,
    parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

#[cfg(not(any(shuttle, thread_sanitizer)))]
pub use std::sync::OnceLock;

#[cfg(all(thread_sanitizer, not(shuttle)))]
pub use visible::OnceLock;

/// Atomic numbers.
#[cfg(not(shuttle))]
pub mod atomic {
    pub use std::sync::atomic::{
        AtomicBool, AtomicI64, AtomicIsize, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
    };
}

/// Threads.
#[cfg(not(shuttle))]
pub mod thread {
    pub use std::thread::{Builder, JoinHandle, current, sleep, spawn, yield_now};
}
