//! Cursors: gets, writes and scans of one table, and the filling of a new one.

use std::cmp::Ordering;
use std::ffi::{c_char, c_int};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use pando_storage::Direction;
use pando_wiredtiger_sys as sys;

use super::error::{LibraryError, clear_messages};
use super::{Session, call};

/// An open cursor, which its owner closes.
pub(super) struct RawCursor(NonNull<sys::WT_CURSOR>);

impl RawCursor {
    pub(super) fn new(raw: NonNull<sys::WT_CURSOR>) -> RawCursor {
        RawCursor(raw)
    }

    pub(super) fn ptr(&self) -> *mut sys::WT_CURSOR {
        self.0.as_ptr()
    }

    /// Closes it; it is not used afterwards.
    pub(super) fn close(&self) {
        let _closed = call!(self.ptr(), close);
    }

    /// The bytes have to live until the call that uses the key.
    pub(super) fn set_key(&self, key: &sys::WT_ITEM) {
        call!(self.ptr(), set_key, ptr::from_ref(key));
    }

    fn set_value(&self, value: &sys::WT_ITEM) {
        call!(self.ptr(), set_value, ptr::from_ref(value));
    }

    /// A figure of a cursor of statistics; 0 where there is none.
    pub(super) fn statistic(&self, number: u32) -> u64 {
        call!(self.ptr(), set_key, number as c_int);
        if call!(self.ptr(), search) != 0 {
            return 0;
        }
        let (mut text, mut printed): (*const c_char, *const c_char) = (ptr::null(), ptr::null());
        let mut value = 0_i64;
        match call!(self.ptr(), get_value, &raw mut text, &raw mut printed, &raw mut value) {
            0 => u64::try_from(value).unwrap_or(0),
            _ => 0,
        }
    }
}

/// Bytes for the library. It wants an address for no bytes, too.
pub(super) fn item(bytes: &[u8]) -> sys::WT_ITEM {
    sys::WT_ITEM {
        data: bytes.as_ptr().cast(),
        size: bytes.len(),
        mem: ptr::null_mut(),
        memsize: 0,
        flags: 0,
    }
}

/// The outcome of an insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// The key is new, or the cursor does not tell.
    New,
    /// The key is there, and has its old value.
    Present,
}

/// A session's cursor on one table. Dropping it lets its page go.
pub(crate) struct Cursor<'s> {
    raw: *mut sys::WT_CURSOR,
    _session: PhantomData<&'s mut Session>,
}

impl<'s> Cursor<'s> {
    pub(super) fn new(raw: &RawCursor) -> Cursor<'s> {
        Cursor { raw: raw.ptr(), _session: PhantomData }
    }

    fn set_key(&mut self, key: &sys::WT_ITEM) {
        call!(self.raw, set_key, ptr::from_ref(key));
    }

    fn set_value(&mut self, value: &sys::WT_ITEM) {
        call!(self.raw, set_value, ptr::from_ref(value));
    }

    /// Goes to a key. False: it is not there.
    pub(crate) fn find(&mut self, key: &[u8]) -> Result<bool, LibraryError> {
        let key = item(key);
        self.set_key(&key);
        found(call!(self.raw, search))
    }

    /// Goes to a key or to one beside it, and tells how that one compares to the wanted one. `None`: there is
    /// none.
    pub(crate) fn find_near(&mut self, key: &[u8]) -> Result<Option<Ordering>, LibraryError> {
        let key = item(key);
        self.set_key(&key);
        let mut order: c_int = 0;
        Ok(found(call!(self.raw, search_near, &raw mut order))?.then(|| order.cmp(&0)))
    }

    /// Goes to the next entry; from nowhere to the first. False: there is none.
    pub(crate) fn step(&mut self, direction: Direction) -> Result<bool, LibraryError> {
        found(match direction {
            Direction::Forward => call!(self.raw, next),
            Direction::Backward => call!(self.raw, prev),
        })
    }

    /// The key of the entry where the cursor is.
    pub(crate) fn key(&self) -> Result<&[u8], LibraryError> {
        let mut found = item(&[]);
        LibraryError::check(call!(self.raw, get_key, &raw mut found))?;
        Ok(self.bytes(&found))
    }

    /// The value of the entry where the cursor is.
    pub(crate) fn value(&self) -> Result<&[u8], LibraryError> {
        let mut found = item(&[]);
        LibraryError::check(call!(self.raw, get_value, &raw mut found))?;
        Ok(self.bytes(&found))
    }

    fn bytes(&self, item: &sys::WT_ITEM) -> &[u8] {
        if item.size == 0 || item.data.is_null() {
            return &[];
        }
        // SAFETY: the library keeps the bytes until the cursor's next call, and each of those needs `&mut
        // self`.
        unsafe { std::slice::from_raw_parts(item.data.cast(), item.size) }
    }

    /// Adds an entry. The cursor's configuration says what becomes of one that is there.
    pub(crate) fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<Inserted, LibraryError> {
        let (key, value) = (item(key), item(value));
        self.set_key(&key);
        self.set_value(&value);
        match call!(self.raw, insert) {
            0 => Ok(Inserted::New),
            sys::WT_DUPLICATE_KEY => {
                clear_messages();
                Ok(Inserted::Present)
            }
            code => Err(LibraryError::of_code(code)),
        }
    }

    /// Changes the value of an entry that is there.
    pub(crate) fn update(&mut self, key: &[u8], value: &[u8]) -> Result<(), LibraryError> {
        let (key, value) = (item(key), item(value));
        self.set_key(&key);
        self.set_value(&value);
        LibraryError::check(call!(self.raw, update))
    }

    /// Removes an entry, if it is there.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Result<(), LibraryError> {
        let key = item(key);
        self.set_key(&key);
        found(call!(self.raw, remove)).map(|_was_there| ())
    }
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        let _reset = call!(self.raw, reset);
    }
}

fn found(code: c_int) -> Result<bool, LibraryError> {
    match code {
        0 => Ok(true),
        sys::WT_NOTFOUND => Ok(false),
        code => Err(LibraryError::of_code(code)),
    }
}

/// Fills a table that was just created, in ascending order of the keys.
pub(crate) struct BulkCursor<'s> {
    raw: Option<RawCursor>,
    _session: &'s mut Session,
}

impl<'s> BulkCursor<'s> {
    pub(super) fn new(raw: RawCursor, session: &'s mut Session) -> BulkCursor<'s> {
        BulkCursor { raw: Some(raw), _session: session }
    }

    /// Adds an entry.
    pub(crate) fn append(&mut self, key: &[u8], value: &[u8]) -> Result<(), LibraryError> {
        let Some(raw) = &self.raw else { return Ok(()) };
        let (key, value) = (item(key), item(value));
        raw.set_key(&key);
        raw.set_value(&value);
        LibraryError::check(call!(raw.ptr(), insert))
    }

    /// Writes the rest.
    pub(crate) fn finish(mut self) -> Result<(), LibraryError> {
        match self.raw.take() {
            Some(raw) => LibraryError::check(call!(raw.ptr(), close)),
            None => Ok(()),
        }
    }
}

impl Drop for BulkCursor<'_> {
    fn drop(&mut self) {
        if let Some(raw) = self.raw.take() {
            raw.close();
        }
    }
}
