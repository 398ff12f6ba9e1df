//! The allocator of Pando's own programs: mimalloc, and the time for which it keeps freed pages. An
//! application that embeds the database brings its own allocator.
//!
//! By default mimalloc returns freed pages to the kernel after one second. Flushes free tens of megabytes a
//! second, in sizes that differ from one to the next, so about a second's worth of them stayed with the
//! process. Measured with a cache of 64 MB and inserts only:
//!
//! | delay | memory of the process | processor time |
//! |---|---|---|
//! | 1 s | 187 MB, after four minutes 235 MB | |
//! | 0.1 s (chosen) | 149 MB | 2 to 4 % more |
//! | 0.01 s | 138 MB | 5 to 7 % more |

use libmimalloc_sys::{mi_option_set, mi_option_t};

/// `mi_option_purge_delay` in mimalloc 3; the crate does not name it.
const PURGE_DELAY: mi_option_t = 15;
const PURGE_DELAY_MILLISECONDS: std::ffi::c_long = 100;

/// Sets how long freed memory is kept; to be called first of all.
pub fn configure() {
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_some() {
        return;
    }
    // SAFETY: the function stores a number in a table of its own, and may be called as long as no other
    // thread does so.
    unsafe { mi_option_set(PURGE_DELAY, PURGE_DELAY_MILLISECONDS) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_the_one_that_this_version_of_the_allocator_means() {
        // SAFETY: both only look at tables of the allocator.
        let (version, usual) =
            unsafe { (libmimalloc_sys::mi_version(), libmimalloc_sys::mi_option_get(PURGE_DELAY)) };
        assert_eq!(version / 10_000, 3, "look up the option's number in the new version's `mi_option_e`");
        assert_eq!(usual, 1_000, "the option has the usual value of the purge delay");
    }
}
