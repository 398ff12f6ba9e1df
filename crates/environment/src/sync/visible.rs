//! What ThreadSanitizer cannot see of the standard library, made visible: built with `--cfg thread_sanitizer` only.
//!
//! The library is linked as the toolchain brings it, built without the sanitizer. Where its own code orders two threads and nothing else
//! does, the sanitizer takes what is ordered for a race. `OnceLock` is the one such type that the engine shares data through.

use std::sync::atomic::{AtomicBool, Ordering};

/// `std::sync::OnceLock`, with a flag beside it whose order the sanitizer sees.
#[derive(Debug)]
pub struct OnceLock<T> {
    value: std::sync::OnceLock<T>,
    is_set: AtomicBool,
}

impl<T> Default for OnceLock<T> {
    fn default() -> OnceLock<T> {
        OnceLock::new()
    }
}

impl<T> From<T> for OnceLock<T> {
    fn from(value: T) -> OnceLock<T> {
        OnceLock { value: std::sync::OnceLock::from(value), is_set: AtomicBool::new(true) }
    }
}

impl<T> OnceLock<T> {
    /// An empty one.
    pub const fn new() -> OnceLock<T> {
        OnceLock { value: std::sync::OnceLock::new(), is_set: AtomicBool::new(false) }
    }

    /// The value, if there is one.
    pub fn get(&self) -> Option<&T> {
        if self.is_set.load(Ordering::Acquire) { self.value.get() } else { None }
    }

    /// Sets the value, or gives it back where there is one.
    pub fn set(&self, value: T) -> Result<(), T> {
        self.value.set(value)?;
        self.is_set.store(true, Ordering::Release);
        Ok(())
    }

    /// The value; the first who asks makes it, while others wait.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        let mut is_maker = false;
        let value = self.value.get_or_init(|| {
            is_maker = true;
            make()
        });
        if is_maker {
            self.is_set.store(true, Ordering::Release);
        }
        // Whoever made it is about to say so.
        while !self.is_set.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        value
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
