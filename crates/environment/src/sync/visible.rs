//! Annotations that make orderings of the standard library visible to ThreadSanitizer: built with `--cfg
//! thread_sanitizer` only.
//!
//! The toolchain's standard library is built without the sanitizer. Where only its code orders two threads,
//! the sanitizer reports a race that does not exist. `OnceLock` is the one such type through which the engine
//! shares data.

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

    /// The value. The first caller makes it, while others wait.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        let mut is_maker = false;
        let value = self.value.get_or_init(|| {
            is_maker = true;
            make()
        });
        if is_maker {
            self.is_set.store(true, Ordering::Release);
        }
        // The thread that made it is about to say so.
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
