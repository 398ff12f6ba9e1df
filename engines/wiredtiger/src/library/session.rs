//! A session: one transaction at a time, and cursors on a few tables that stay open for the next call.

use std::ffi::{CStr, CString, c_char};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use pando_wiredtiger_sys as sys;

use super::cursor::{RawCursor, item};
use super::error::{LibraryError, clear_messages};
use super::{BulkCursor, Connection, Cursor, call};

/// Cursors that a session keeps open. The library keeps closed ones at hand, too, but opening one costs more
/// than a get.
const CURSORS_MAX: usize = 8;

/// The configuration of a begin, a commit or a flush.
type Config = CStr;

/// A table and the way in which its cursor writes.
pub(crate) struct TableCursor<'t> {
    /// A number that no other table has.
    pub(crate) number: u32,
    pub(crate) uri: &'t CStr,
    pub(crate) config: &'t CStr,
}

/// See the module's head.
pub(crate) struct Session {
    raw: NonNull<sys::WT_SESSION>,
    /// The open cursors by the number of their table, the last used one last.
    cursors: Vec<(u32, RawCursor)>,
    /// Keeps the database open.
    _connection: Arc<Connection>,
}

// SAFETY: the library does not bind a session to a thread; `&mut self` keeps two threads from using it at
// once.
unsafe impl Send for Session {}

impl Session {
    pub(super) fn new(raw: NonNull<sys::WT_SESSION>, connection: Arc<Connection>) -> Session {
        Session { raw, cursors: Vec::new(), _connection: connection }
    }

    fn ptr(&self) -> *mut sys::WT_SESSION {
        self.raw.as_ptr()
    }

    pub(crate) fn begin(&mut self, config: &Config) -> Result<(), LibraryError> {
        clear_messages();
        LibraryError::check(call!(self.ptr(), begin_transaction, config.as_ptr()))
    }

    /// Commits. After an error the transaction is rolled back.
    pub(crate) fn commit(&mut self, config: &Config) -> Result<(), LibraryError> {
        clear_messages();
        LibraryError::check(call!(self.ptr(), commit_transaction, config.as_ptr()))
    }

    pub(crate) fn rollback(&mut self) {
        // It fails only where there is no transaction, or the library has stopped: both leave none behind.
        let _rolled_back = call!(self.ptr(), rollback_transaction, ptr::null());
    }

    pub(crate) fn create(&mut self, uri: &CStr, config: &CStr) -> Result<(), LibraryError> {
        clear_messages();
        LibraryError::check(call!(self.ptr(), create, uri.as_ptr(), config.as_ptr()))
    }

    pub(crate) fn drop_table(&mut self, uri: &CStr, config: &CStr) -> Result<(), LibraryError> {
        clear_messages();
        LibraryError::check(call!(self.ptr(), drop, uri.as_ptr(), config.as_ptr()))
    }

    pub(crate) fn checkpoint(&mut self) -> Result<(), LibraryError> {
        clear_messages();
        LibraryError::check(call!(self.ptr(), checkpoint, ptr::null()))
    }

    pub(crate) fn compact(&mut self, uri: &CStr, config: &Config) -> Result<(), LibraryError> {
        clear_messages();
        LibraryError::check(call!(self.ptr(), compact, uri.as_ptr(), config.as_ptr()))
    }

    pub(crate) fn verify(&mut self, uri: &CStr) -> Result<(), LibraryError> {
        clear_messages();
        LibraryError::check(call!(self.ptr(), verify, uri.as_ptr(), ptr::null()))
    }

    pub(crate) fn flush_log(&mut self, config: &Config) -> Result<(), LibraryError> {
        clear_messages();
        LibraryError::check(call!(self.ptr(), log_flush, config.as_ptr()))
    }

    /// Removes all keys of a table from `start` on, up to and with `stop` where there is one.
    pub(crate) fn truncate(
        &mut self,
        uri: &CStr,
        start: &[u8],
        stop: Option<&[u8]>,
    ) -> Result<(), LibraryError> {
        clear_messages();
        let first = self.open_cursor(uri, c"overwrite=true")?;
        let start = item(start);
        first.set_key(&start);
        let last = match stop {
            Some(_) => Some(self.open_cursor(uri, c"overwrite=true").inspect_err(|_| first.close())?),
            None => None,
        };
        let stop = stop.map(item);
        if let (Some(last), Some(stop)) = (&last, &stop) {
            last.set_key(stop);
        }
        let last_ptr = last.as_ref().map_or(ptr::null_mut(), RawCursor::ptr);
        let code = call!(self.ptr(), truncate, ptr::null(), first.ptr(), last_ptr, ptr::null());
        let outcome = LibraryError::check(code);
        first.close();
        if let Some(last) = last {
            last.close();
        }
        outcome
    }

    /// The session's cursor on a table.
    pub(crate) fn cursor(&mut self, table: &TableCursor<'_>) -> Result<Cursor<'_>, LibraryError> {
        clear_messages();
        if let Some(at) = self.cursors.iter().rposition(|(number, _)| *number == table.number) {
            let last = self.cursors.len() - 1;
            self.cursors[at..=last].rotate_left(1);
        } else {
            if self.cursors.len() == CURSORS_MAX {
                self.cursors.remove(0).1.close();
            }
            let cursor = self.open_cursor(table.uri, table.config)?;
            self.cursors.push((table.number, cursor));
        }
        let (_, cursor) = self.cursors.last().expect("a cursor was found or opened");
        Ok(Cursor::new(cursor))
    }

    /// A cursor that fills a table which was just created.
    pub(crate) fn bulk_cursor(&mut self, uri: &CStr) -> Result<BulkCursor<'_>, LibraryError> {
        clear_messages();
        Ok(BulkCursor::new(self.open_cursor(uri, c"bulk")?, self))
    }

    /// The figures of these numbers, for the database or a table. Those that it does not have are 0.
    pub(crate) fn statistics(
        &mut self,
        uri: &CStr,
        config: &CStr,
        numbers: &[u32],
    ) -> Result<Vec<u64>, LibraryError> {
        clear_messages();
        let cursor = self.open_cursor(uri, config)?;
        let values = numbers.iter().map(|number| cursor.statistic(*number)).collect();
        cursor.close();
        Ok(values)
    }

    /// The names that a cursor of the library gives as keys: of `metadata:` its objects, of `backup:` the
    /// files. The cursor stays open while `work` has them: that of a backup keeps the files as they are.
    pub(crate) fn with_names<T>(
        &mut self,
        uri: &CStr,
        work: impl FnOnce(&[String]) -> T,
    ) -> Result<T, LibraryError> {
        clear_messages();
        let cursor = self.open_cursor(uri, c"")?;
        let names = Self::names(&cursor);
        let outcome = names.map(|names| work(&names));
        cursor.close();
        outcome
    }

    /// All names of a cursor.
    fn names(cursor: &RawCursor) -> Result<Vec<String>, LibraryError> {
        let mut names = Vec::new();
        loop {
            match call!(cursor.ptr(), next) {
                0 => {}
                sys::WT_NOTFOUND => return Ok(names),
                code => return Err(LibraryError::of_code(code)),
            }
            let mut text: *const c_char = ptr::null();
            LibraryError::check(call!(cursor.ptr(), get_key, &raw mut text))?;
            // SAFETY: the key's format is text, which ends with a zero and lives until the cursor's next
            // call.
            names.push(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned());
        }
    }

    /// Closes the cursors, so that nobody finds their tables in use.
    pub(crate) fn close_cursors(&mut self) {
        self.cursors.drain(..).for_each(|(_, cursor)| cursor.close());
    }

    fn open_cursor(&self, uri: &CStr, config: &CStr) -> Result<RawCursor, LibraryError> {
        let mut raw = ptr::null_mut();
        let code =
            call!(self.ptr(), open_cursor, uri.as_ptr(), ptr::null_mut(), config.as_ptr(), &raw mut raw);
        LibraryError::check(code)?;
        Ok(RawCursor::new(NonNull::new(raw).expect("an opened cursor has an address")))
    }
}

impl Drop for Session {
    /// Rolls back what is under way, and closes all cursors.
    fn drop(&mut self) {
        let _closed = call!(self.ptr(), close, ptr::null());
    }
}

/// A text for the library. Texts of this engine have no zero in them; one that has is cut before it.
pub(crate) fn c_text(text: &str) -> CString {
    let text = text.split('\0').next().unwrap_or_default();
    CString::new(text).unwrap_or_default()
}
