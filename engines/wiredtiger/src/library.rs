//! WiredTiger's C interface behind safe types: the only module with unsafe code.
//!
//! | type | what it is |
//! |---|---|
//! | [`Connection`] | an open database; closed when the last session and the last handle are gone |
//! | [`Session`] | one thread of control at a time: a transaction, and the open cursors of a few tables |
//! | [`Cursor`] | a place in one table, borrowed from its session |
//! | [`BulkCursor`] | fills a new table in order |
//!
//! # Invariants
//! - A session keeps its connection open, and a cursor borrows its session. So no handle outlives what it is
//!   of.
//! - Bytes that the library shows are borrowed from the cursor, and are copied before its next call.
//! - A session may go to another thread, but is never used by two at once: its methods take `&mut self`.

mod connection;
mod cursor;
mod error;
mod session;

pub(crate) use connection::Connection;
pub(crate) use cursor::{BulkCursor, Cursor, Inserted};
pub(crate) use error::{LibraryError, LibraryFault};
pub(crate) use session::{Session, TableCursor, c_text};

/// Calls a method of a handle: a function pointer that the library fills in.
macro_rules! call {
    ($handle:expr, $method:ident $(, $argument:expr)*) => {{
        let handle = $handle;
        // SAFETY: the handle is open (see the module's head), the library fills in every method, and the
        // arguments live through the call.
        unsafe { ((*handle).$method.expect("WiredTiger fills in every method"))(handle $(, $argument)*) }
    }};
}
pub(crate) use call;
