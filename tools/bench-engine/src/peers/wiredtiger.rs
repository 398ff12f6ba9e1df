//! WiredTiger 3.2, by its C interface: a table per tree, as B-trees with snappy and prefix compression, pages
//! of 16 KB, and a journal.
//!
//! # Invariants
//! - A session is used by one thread at a time: a writer and each reader take one out of the pool.
//! - Bytes that the library shows live until the next call of their cursor. They are shown and not kept.
//! - Sessions are closed with the connection, whose close needs no session any more.

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use pando_wiredtiger_sys as sys;

use crate::batch::Batch;
use crate::data::Tree;
use crate::error::{BenchError, failed};
use crate::peer::{Peer, PeerSettings, Reader, SeeRow};

const NAME: &str = "WiredTiger";
/// Sessions of this tool: a thread each, and some of the library's own.
const SESSIONS_MAX: u32 = 512;
const TABLE: &str = "key_format=u,value_format=u,type=file,leaf_page_max=16KB,internal_page_max=16KB,block_compressor=snappy,\
                     prefix_compression=true,log=(enabled=true)";

/// Calls a method of a handle: a function pointer that the library fills in.
macro_rules! call {
    ($handle:expr, $method:ident $(, $argument:expr)*) => {{
        let handle = $handle;
        // SAFETY: the handle is open, the library fills in every method, and the arguments live through the
        // call.
        unsafe { ((*handle).$method.expect("WiredTiger fills in every method"))(handle $(, $argument)*) }
    }};
}

/// The outcome of a call; 0 is success.
fn check(code: c_int) -> Result<(), String> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: the function takes any number, and its text lives until this thread's next call of it.
    let text = unsafe { CStr::from_ptr(sys::wiredtiger_strerror(code)) };
    Err(text.to_string_lossy().into_owned())
}

/// Whether a call has found an entry.
fn is_found(code: c_int) -> Result<bool, String> {
    if code == sys::WT_NOTFOUND { Ok(false) } else { check(code).map(|()| true) }
}

struct WiredTigerPeer {
    connection: *mut sys::WT_CONNECTION,
    tables: Vec<CString>,
    idle: Mutex<Vec<Session>>,
}

// SAFETY: the library allows any thread to use a connection at any time.
unsafe impl Send for WiredTigerPeer {}
// SAFETY: as above; the sessions are behind a lock.
unsafe impl Sync for WiredTigerPeer {}

/// A session with its cursors, by the place of their tree.
struct Session {
    raw: *mut sys::WT_SESSION,
    cursors: Vec<*mut sys::WT_CURSOR>,
}

// SAFETY: the library does not bind a session to a thread, and one thread has it at a time.
unsafe impl Send for Session {}

pub fn open(folder: &Path, settings: PeerSettings) -> Result<Box<dyn Peer>, BenchError> {
    let home = CString::new(folder.as_os_str().as_encoded_bytes()).unwrap_or_default();
    let config = format!(
        "create=true,config_base=false,cache_size={},session_max={SESSIONS_MAX},\
         extensions=[\"libwiredtiger_snappy.so\"=(early_load=true)],log=(enabled=true,archive=true,prealloc=false,file_max=32MB),\
         transaction_sync=(enabled=false,method=fsync),checkpoint=(wait=60)",
        settings.cache_bytes
    );
    let config = CString::new(config).unwrap_or_default();
    let mut connection = ptr::null_mut();
    // SAFETY: the texts end with a zero. Without a handler of events the library prints its messages.
    let code =
        unsafe { sys::wiredtiger_open(home.as_ptr(), ptr::null_mut(), config.as_ptr(), &raw mut connection) };
    check(code).map_err(failed(NAME, "opening the store"))?;
    let tables = (0..settings.trees)
        .map(|place| CString::new(format!("table:{}", Tree::new(place).name())).unwrap_or_default())
        .collect();
    let peer = WiredTigerPeer { connection, tables, idle: Mutex::default() };
    peer.make_tables().map_err(failed(NAME, "opening the tables"))?;
    Ok(Box::new(peer))
}

impl WiredTigerPeer {
    fn make_tables(&self) -> Result<(), String> {
        let session = self.session()?;
        let config = CString::new(TABLE).unwrap_or_default();
        for table in &self.tables {
            check(call!(session.raw, create, table.as_ptr(), config.as_ptr()))?;
        }
        self.put_back(session);
        Ok(())
    }

    fn session(&self) -> Result<Session, String> {
        if let Some(session) = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            return Ok(session);
        }
        let mut raw = ptr::null_mut();
        check(call!(self.connection, open_session, ptr::null_mut(), ptr::null(), &raw mut raw))?;
        Ok(Session { raw, cursors: vec![ptr::null_mut(); self.tables.len()] })
    }

    fn put_back(&self, session: Session) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(session);
    }

    /// Runs something with a session.
    fn with_session(&self, work: impl FnOnce(&mut Session) -> Result<(), String>) -> Result<(), String> {
        let mut session = self.session()?;
        let outcome = work(&mut session);
        self.put_back(session);
        outcome
    }

    /// The session's cursor on a tree.
    fn cursor(&self, session: &mut Session, tree: Tree) -> Result<*mut sys::WT_CURSOR, String> {
        let place = tree.place() as usize;
        if session.cursors[place].is_null() {
            let (table, config) = (self.tables[place].as_ptr(), c"overwrite=true".as_ptr());
            let mut cursor = ptr::null_mut();
            check(call!(session.raw, open_cursor, table, ptr::null_mut(), config, &raw mut cursor))?;
            session.cursors[place] = cursor;
        }
        Ok(session.cursors[place])
    }

    fn put_all(&self, session: &mut Session, batch: &Batch) -> Result<(), String> {
        check(call!(session.raw, begin_transaction, c"isolation=snapshot".as_ptr()))?;
        for (tree, key, value) in batch.iter() {
            let cursor = self.cursor(session, tree)?;
            let (key, value) = (item(key), item(value));
            call!(cursor, set_key, ptr::from_ref(&key));
            call!(cursor, set_value, ptr::from_ref(&value));
            check(call!(cursor, insert))?;
            check(call!(cursor, reset))?;
        }
        check(call!(session.raw, commit_transaction, c"sync=off".as_ptr()))?;
        // The log record is in the kernel when the batch is acknowledged.
        check(call!(session.raw, log_flush, c"sync=off".as_ptr()))
    }
}

/// Bytes for the library, which wants an address for none, too.
fn item(bytes: &[u8]) -> sys::WT_ITEM {
    let (data, size): (*const c_char, usize) = (bytes.as_ptr().cast(), bytes.len());
    sys::WT_ITEM { data: data.cast(), size, mem: ptr::null_mut(), memsize: 0, flags: 0 }
}

/// The bytes of an item, for as long as the cursor is not called again.
fn bytes_of(item: &sys::WT_ITEM) -> &[u8] {
    if item.size == 0 {
        return &[];
    }
    // SAFETY: the library has filled the item in, and the caller lets the bytes go before the cursor's next
    // call.
    unsafe { std::slice::from_raw_parts(item.data.cast(), item.size) }
}

impl Peer for WiredTigerPeer {
    fn write(&self, batch: &Batch) -> Result<(), BenchError> {
        self.with_session(|session| self.put_all(session, batch)).map_err(failed(NAME, "writing a batch"))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>, BenchError> {
        let begun = self.session().and_then(|session| {
            check(call!(session.raw, begin_transaction, c"isolation=snapshot".as_ptr())).map(|()| session)
        });
        let session = begun.map_err(failed(NAME, "beginning to read"))?;
        Ok(Box::new(WiredTigerReader { peer: self, session: Mutex::new(Some(session)) }))
    }

    fn sync(&self) -> Result<(), BenchError> {
        let flush = |session: &mut Session| check(call!(session.raw, log_flush, c"sync=on".as_ptr()));
        self.with_session(flush).map_err(failed(NAME, "syncing"))
    }

    fn drain(&self) -> Result<(), BenchError> {
        let checkpoint = |session: &mut Session| check(call!(session.raw, checkpoint, ptr::null()));
        self.with_session(checkpoint).map_err(failed(NAME, "draining"))
    }

    fn compact(&self) -> Result<(), BenchError> {
        let compact = |session: &mut Session| {
            let mut tables = self.tables.iter();
            tables.try_for_each(|table| {
                check(call!(session.raw, compact, table.as_ptr(), c"timeout=0".as_ptr()))
            })
        };
        self.with_session(compact).map_err(failed(NAME, "compacting"))?;
        self.drain()
    }
}

impl Drop for WiredTigerPeer {
    /// The library can only be closed cleanly within a living process.
    fn drop(&mut self) {
        let _closed = call!(self.connection, close, ptr::null());
    }
}

struct WiredTigerReader<'p> {
    peer: &'p WiredTigerPeer,
    /// There until the reader ends.
    session: Mutex<Option<Session>>,
}

impl WiredTigerReader<'_> {
    /// Runs something with the cursor of a tree, and lets its page go.
    fn with_cursor<T>(
        &self,
        tree: Tree,
        work: impl FnOnce(*mut sys::WT_CURSOR) -> Result<T, String>,
    ) -> Result<T, String> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let session = session.as_mut().ok_or("the reader has ended")?;
        let cursor = self.peer.cursor(session, tree)?;
        let outcome = work(cursor);
        check(call!(cursor, reset))?;
        outcome
    }
}

impl Reader for WiredTigerReader<'_> {
    fn get(&self, tree: Tree, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        let found = self.with_cursor(tree, |cursor| {
            let key = item(key);
            call!(cursor, set_key, ptr::from_ref(&key));
            if !is_found(call!(cursor, search))? {
                return Ok(false);
            }
            let mut value = item(&[]);
            check(call!(cursor, get_value, &raw mut value))?;
            see(bytes_of(&value));
            Ok(true)
        });
        found.map_err(failed(NAME, "reading a key"))
    }

    fn scan(&self, tree: Tree, from: &[u8], rows: usize, see: SeeRow<'_>) -> Result<usize, BenchError> {
        let seen = self.with_cursor(tree, |cursor| {
            let mut is_at_entry = if from.is_empty() {
                is_found(call!(cursor, next))?
            } else {
                let from = item(from);
                let mut order: c_int = 0;
                call!(cursor, set_key, ptr::from_ref(&from));
                let is_near = is_found(call!(cursor, search_near, &raw mut order))?;
                if is_near && order < 0 { is_found(call!(cursor, next))? } else { is_near }
            };
            let mut seen = 0;
            while is_at_entry && seen < rows {
                let (mut key, mut value) = (item(&[]), item(&[]));
                check(call!(cursor, get_key, &raw mut key))?;
                check(call!(cursor, get_value, &raw mut value))?;
                see(bytes_of(&key), bytes_of(&value));
                seen += 1;
                is_at_entry = seen < rows && is_found(call!(cursor, next))?;
            }
            Ok(seen)
        });
        seen.map_err(failed(NAME, "scanning"))
    }
}

impl Drop for WiredTigerReader<'_> {
    fn drop(&mut self) {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(session) = session {
            let _ended = call!(session.raw, rollback_transaction, ptr::null());
            self.peer.put_back(session);
        }
    }
}
