//! Idle sessions. A session is opened when there is none, and goes back when its transaction ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use pando_storage::{ErrorKind, StorageError};
use parking_lot::Mutex;

use crate::failure::{closed, library_failed};
use crate::library::{Connection, Session};

/// Idle sessions that are kept; further ones are closed. Each keeps closed cursors at hand.
const IDLE_MAX: usize = 64;

/// See the module's head.
pub(crate) struct SessionPool {
    /// `None`: the engine is closed.
    connection: Mutex<Option<Arc<Connection>>>,
    idle: Mutex<Vec<Session>>,
    /// Sessions that are lent.
    lent: AtomicU32,
    lent_max: u32,
}

impl SessionPool {
    pub(crate) fn new(connection: Arc<Connection>, lent_max: u32) -> SessionPool {
        SessionPool {
            connection: Mutex::new(Some(connection)),
            idle: Mutex::default(),
            lent: AtomicU32::new(0),
            lent_max,
        }
    }

    /// The database, while it is open.
    pub(crate) fn connection(&self) -> Result<Arc<Connection>, StorageError> {
        self.connection.lock().clone().ok_or_else(closed)
    }

    /// A session without a transaction.
    pub(crate) fn take(&self) -> Result<Session, StorageError> {
        let session = self.idle.lock().pop();
        let session = match session {
            Some(session) => session,
            None if self.lent.load(Ordering::Relaxed) >= self.lent_max => {
                let message =
                    format!("{} transactions live already: retry when some have ended", self.lent_max);
                return Err(StorageError::new(ErrorKind::Busy, message));
            }
            None => {
                let opened = self.connection()?.open_session();
                opened.map_err(|error| library_failed("opening a session", error))?
            }
        };
        self.lent.fetch_add(1, Ordering::Relaxed);
        Ok(session)
    }

    /// Takes a session back, whose transaction has ended.
    pub(crate) fn put_back(&self, mut session: Session) {
        self.lent.fetch_sub(1, Ordering::Relaxed);
        // An open cursor would keep its table from being dropped.
        session.close_cursors();
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX && self.connection.lock().is_some() {
            idle.push(session);
        }
    }

    /// Closes the idle sessions, and lends no more. The database closes when the last lent session is gone.
    pub(crate) fn close(&self) {
        let connection = self.connection.lock().take();
        let idle = std::mem::take(&mut *self.idle.lock());
        drop(idle);
        drop(connection);
    }

    /// Sessions that are lent.
    pub(crate) fn lent(&self) -> u32 {
        self.lent.load(Ordering::Relaxed)
    }
}
