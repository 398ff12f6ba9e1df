//! Errors of the library: the code of a call, and the last message that the library gave on this thread.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int};

use pando_wiredtiger_sys as sys;

thread_local! {
    /// The messages of the call under way, the first one first: the first says most.
    static MESSAGES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Messages of one call that are kept.
const MESSAGES_MAX: usize = 4;

/// A class of errors that have one treatment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LibraryFault {
    /// A conflict, or the cache had no room for what the transaction has written.
    Rollback,
    /// The call has waited for room in the cache as long as it may.
    CacheFull,
    /// Somebody uses the object.
    InUse,
    /// Bytes on the device are not what was written.
    Damaged,
    /// The library has stopped itself.
    Panic,
    /// The request is wrong.
    Invalid,
    /// The system refused.
    System,
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct LibraryError {
    code: c_int,
    message: String,
}

impl LibraryError {
    /// The fault of a call; `Ok` for the code 0.
    pub(crate) fn check(code: c_int) -> Result<(), LibraryError> {
        if code == 0 { Ok(()) } else { Err(LibraryError::of_code(code)) }
    }

    pub(crate) fn of_code(code: c_int) -> LibraryError {
        let messages = MESSAGES.with(|messages| std::mem::take(&mut *messages.borrow_mut()));
        let message = if messages.is_empty() { strerror(code) } else { messages.join("; ") };
        LibraryError { code, message }
    }

    /// Whether the call was ended by others who use the object, or by its time limit.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.code == ETIMEDOUT || self.is_for_room() || self.fault() == LibraryFault::InUse
    }

    /// Whether the call failed for want of room in the cache, or by a conflict, which has the same code.
    pub(crate) fn is_for_room(&self) -> bool {
        matches!(self.fault(), LibraryFault::Rollback | LibraryFault::CacheFull)
    }

    pub(crate) fn fault(&self) -> LibraryFault {
        let is_damage =
            ["checksum", "corrupt", "read error", "does not appear to be a", "unsupported WiredTiger file"]
                .iter()
                .any(|word| self.message.contains(word));
        match self.code {
            sys::WT_ROLLBACK => LibraryFault::Rollback,
            sys::WT_CACHE_FULL => LibraryFault::CacheFull,
            EBUSY => LibraryFault::InUse,
            sys::WT_TRY_SALVAGE => LibraryFault::Damaged,
            _ if is_damage => LibraryFault::Damaged,
            sys::WT_PANIC | sys::WT_RUN_RECOVERY => LibraryFault::Panic,
            sys::WT_ERROR => LibraryFault::Damaged,
            EINVAL => LibraryFault::Invalid,
            _ => LibraryFault::System,
        }
    }
}

/// The numbers of Linux.
const EBUSY: c_int = 16;
const EINVAL: c_int = 22;
const ETIMEDOUT: c_int = 110;

impl std::fmt::Display for LibraryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LibraryError {}

fn strerror(code: c_int) -> String {
    // SAFETY: the function takes any number and returns a text that lives until the thread's next call of it.
    let text = unsafe { CStr::from_ptr(sys::wiredtiger_strerror(code)) };
    text.to_string_lossy().into_owned()
}

/// Forgets messages of calls before.
pub(super) fn clear_messages() {
    MESSAGES.with(|messages| messages.borrow_mut().clear());
}

/// The library's callback for errors: keeps the message for the call that fails on this thread.
pub(super) unsafe extern "C" fn keep_message(
    _: *mut sys::WT_EVENT_HANDLER,
    _: *mut sys::WT_SESSION,
    _: c_int,
    message: *const c_char,
) -> c_int {
    if !message.is_null() {
        // SAFETY: the library passes a text that ends with a zero.
        let message = unsafe { CStr::from_ptr(message) }.to_string_lossy();
        MESSAGES.with(|messages| {
            let mut messages = messages.borrow_mut();
            if messages.len() < MESSAGES_MAX {
                messages.push(without_place(&message).to_owned());
            }
        });
    }
    0
}

/// The callback for information, which nobody wants.
pub(super) unsafe extern "C" fn drop_message(
    _: *mut sys::WT_EVENT_HANDLER,
    _: *mut sys::WT_SESSION,
    _: *const c_char,
) -> c_int {
    0
}

/// A message without the time and the thread before it: `[17:29][32226:0x7f], file:t.wt, …`.
fn without_place(message: &str) -> &str {
    match message.rfind("], ") {
        Some(at) if message.starts_with('[') => &message[at + 3..],
        _ => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_loses_the_time_and_the_thread() {
        let told =
            "[1795460606:29552][32634:0x7f1676c57380], WT_SESSION.create: unknown configuration key: 'foo'";
        assert_eq!(without_place(told), "WT_SESSION.create: unknown configuration key: 'foo'");
        assert_eq!(without_place("plain"), "plain");
    }

    #[test]
    fn a_code_without_a_message_is_told_in_the_words_of_the_library() {
        clear_messages();
        let error = LibraryError::of_code(sys::WT_ROLLBACK);
        assert!(error.to_string().contains("conflict"), "{error}");
        assert_eq!(error.fault(), LibraryFault::Rollback);
        assert_eq!(LibraryError::of_code(EBUSY).fault(), LibraryFault::InUse);
    }
}
