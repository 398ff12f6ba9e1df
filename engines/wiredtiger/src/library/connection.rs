//! An open database.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use pando_wiredtiger_sys as sys;

use super::error::{LibraryError, clear_messages, drop_message, keep_message};
use super::{Session, call};

/// See the module's head.
pub(crate) struct Connection {
    raw: NonNull<sys::WT_CONNECTION>,
    /// The library keeps a pointer to it until the connection is closed.
    handler: Box<sys::WT_EVENT_HANDLER>,
}

// SAFETY: the library allows any thread to use a connection at any time.
unsafe impl Send for Connection {}
// SAFETY: as above.
unsafe impl Sync for Connection {}

impl Connection {
    /// Opens the database in a folder, which exists. Blocks while the library recovers.
    pub(crate) fn open(folder: &Path, config: &CStr) -> Result<Arc<Connection>, LibraryError> {
        clear_messages();
        let folder = CString::new(folder.as_os_str().as_encoded_bytes()).unwrap_or_default();
        let mut handler = Box::new(sys::WT_EVENT_HANDLER {
            handle_error: Some(keep_message),
            handle_message: Some(drop_message),
            handle_progress: None,
            handle_close: None,
        });
        let mut raw = ptr::null_mut();
        // SAFETY: the texts end with a zero, and the handler lives until the connection is closed.
        let code = unsafe {
            sys::wiredtiger_open(folder.as_ptr(), &raw mut *handler, config.as_ptr(), &raw mut raw)
        };
        LibraryError::check(code)?;
        let raw = NonNull::new(raw).expect("an opened connection has an address");
        Ok(Arc::new(Connection { raw, handler }))
    }

    /// A new session.
    pub(crate) fn open_session(self: &Arc<Connection>) -> Result<Session, LibraryError> {
        clear_messages();
        let mut session = ptr::null_mut();
        let code = call!(self.raw.as_ptr(), open_session, ptr::null_mut(), ptr::null(), &raw mut session);
        LibraryError::check(code)?;
        let session = NonNull::new(session).expect("an opened session has an address");
        Ok(Session::new(session, Arc::clone(self)))
    }

    /// Changes settings of the running database.
    pub(crate) fn reconfigure(&self, config: &CStr) -> Result<(), LibraryError> {
        clear_messages();
        LibraryError::check(call!(self.raw.as_ptr(), reconfigure, config.as_ptr()))
    }
}

impl Drop for Connection {
    /// Closes the database: a checkpoint, and the end of the library's threads. Whoever wants to know of an
    /// error makes a checkpoint before.
    fn drop(&mut self) {
        let _closed = call!(self.raw.as_ptr(), close, ptr::null());
        // The handler is read by the library up to here.
        let _handler: &sys::WT_EVENT_HANDLER = &self.handler;
    }
}
