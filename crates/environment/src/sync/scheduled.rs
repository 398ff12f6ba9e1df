//! The primitives of a build for tests of schedules: shuttle's types in the shape of those that they stand
//! for.
//!
//! A wait with a time limit always runs into its limit, after other threads have had their turn. Code must be
//! ready for that at any moment, and a thread that relies on the limit is not stuck for ever. A wait without
//! a limit is a real one: a lost wake-up is found as a deadlock.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError, TryLockError};
use std::time::Duration;

pub use shuttle::sync::atomic;
pub use shuttle::thread;

/// A place where another thread may go on, like every use of an atomic.
pub fn switch() {
    atomic::AtomicBool::new(false).load(atomic::Ordering::SeqCst);
}

/// `parking_lot::Mutex`.
#[derive(Default)]
pub struct Mutex<T>(shuttle::sync::Mutex<T>);

/// `parking_lot::MutexGuard`.
pub struct MutexGuard<'m, T> {
    mutex: &'m Mutex<T>,
    /// Away only while its holder waits for a condition.
    guard: Option<shuttle::sync::MutexGuard<'m, T>>,
}

impl<T> Mutex<T> {
    /// A free one.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(shuttle::sync::Mutex::new(value))
    }

    /// Waits for it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        MutexGuard { mutex: self, guard: Some(guard) }
    }

    /// Takes it where it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let guard = match self.0.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(MutexGuard { mutex: self, guard: Some(guard) })
    }

    /// The guarded value, for its only owner.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// The guarded value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mutex")
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.guard.as_deref().expect("who waits for a condition does nothing else")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.guard.as_deref_mut().expect("who waits for a condition does nothing else")
    }
}

impl<T: fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// `parking_lot::Condvar`.
#[derive(Debug, Default)]
pub struct Condvar(shuttle::sync::Condvar);

/// Whether a wait ran into its limit: here, always.
#[derive(Clone, Copy, Debug)]
pub struct WaitTimeoutResult;

impl WaitTimeoutResult {
    /// See the type.
    pub fn timed_out(&self) -> bool {
        true
    }
}

impl Condvar {
    /// One that nobody waits for.
    pub const fn new() -> Condvar {
        Condvar(shuttle::sync::Condvar::new())
    }

    /// Frees the mutex, waits to be told, and takes it again.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.guard.take().expect("a thread waits for one condition at a time");
        guard.guard = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
    }

    /// Frees the mutex, gives others a turn, and takes it again: see the module.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _limit: Duration) -> WaitTimeoutResult {
        drop(guard.guard.take());
        thread::yield_now();
        guard.guard = guard.mutex.lock().guard.take();
        WaitTimeoutResult
    }

    /// Wakes one waiting thread.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// `parking_lot::RwLock`.
#[derive(Default)]
pub struct RwLock<T>(shuttle::sync::RwLock<T>);

/// `parking_lot::RwLockReadGuard`.
pub struct RwLockReadGuard<'l, T>(shuttle::sync::RwLockReadGuard<'l, T>);

/// `parking_lot::RwLockWriteGuard`.
pub struct RwLockWriteGuard<'l, T>(shuttle::sync::RwLockWriteGuard<'l, T>);

impl<T> RwLock<T> {
    /// A free one.
    pub const fn new(value: T) -> RwLock<T> {
        RwLock(shuttle::sync::RwLock::new(value))
    }

    /// Waits for the read side.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        RwLockReadGuard(self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the read side where nobody has the write side.
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        match self.0.try_read() {
            Ok(guard) => Some(RwLockReadGuard(guard)),
            Err(TryLockError::Poisoned(poisoned)) => Some(RwLockReadGuard(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Waits for the write side.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        RwLockWriteGuard(self.0.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the write side where nobody has any.
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        match self.0.try_write() {
            Ok(guard) => Some(RwLockWriteGuard(guard)),
            Err(TryLockError::Poisoned(poisoned)) => Some(RwLockWriteGuard(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl<T> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RwLock")
    }
}

impl<T> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// `std::sync::OnceLock`.
#[derive(Debug)]
pub struct OnceLock<T> {
    value: std::sync::OnceLock<T>,
    filling: Mutex<()>,
}

impl<T> Default for OnceLock<T> {
    fn default() -> OnceLock<T> {
        OnceLock::new()
    }
}

impl<T> From<T> for OnceLock<T> {
    fn from(value: T) -> OnceLock<T> {
        OnceLock { value: std::sync::OnceLock::from(value), filling: Mutex::new(()) }
    }
}

impl<T> OnceLock<T> {
    /// An empty one.
    pub const fn new() -> OnceLock<T> {
        OnceLock { value: std::sync::OnceLock::new(), filling: Mutex::new(()) }
    }

    /// The value, if there is one.
    pub fn get(&self) -> Option<&T> {
        switch();
        self.value.get()
    }

    /// Sets the value, or gives it back where there is one.
    pub fn set(&self, value: T) -> Result<(), T> {
        let _filling = self.filling.lock();
        self.value.set(value)
    }

    /// The value. The first caller makes it, while others wait.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        if let Some(value) = self.get() {
            return value;
        }
        let _filling = self.filling.lock();
        self.value.get_or_init(make)
    }

    /// The value, for its only owner.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.value.get_mut()
    }

    /// The value that it had.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }
}

/// `arc_swap::ArcSwap`: the real one, each of whose calls is a step.
#[derive(Debug)]
pub struct ArcSwap<T>(arc_swap::ArcSwap<T>);

impl<T: Default> Default for ArcSwap<T> {
    fn default() -> ArcSwap<T> {
        ArcSwap::from_pointee(T::default())
    }
}

impl<T> ArcSwap<T> {
    /// One that holds this.
    pub fn new(value: Arc<T>) -> ArcSwap<T> {
        ArcSwap(arc_swap::ArcSwap::new(value))
    }

    /// One that holds this.
    pub fn from_pointee(value: T) -> ArcSwap<T> {
        ArcSwap(arc_swap::ArcSwap::from_pointee(value))
    }

    /// The present value, borrowed.
    pub fn load(&self) -> arc_swap::Guard<Arc<T>> {
        switch();
        self.0.load()
    }

    /// The present value, shared.
    pub fn load_full(&self) -> Arc<T> {
        switch();
        self.0.load_full()
    }

    /// Puts another in its place.
    pub fn store(&self, value: Arc<T>) {
        drop(self.swap(value));
    }

    /// Replaces the value; returns the one before.
    pub fn swap(&self, value: Arc<T>) -> Arc<T> {
        switch();
        self.0.swap(value)
    }
}
