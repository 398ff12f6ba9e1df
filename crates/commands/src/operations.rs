//! The table of operations: every connection, and the request that it has under way.
//!
//! # Terms
//! - *Record*: what the table knows of a connection ([`ConnectionRecord`]).
//! - *Listed*: a request stands in the record of its connection while it runs on a thread that may wait, and
//!   while it waits without a thread.
//!
//! # Steps
//! 1. The first request of a connection enters its record.
//! 2. A request that may wait is [listed](OperationTable::list): with its number, its session, a copy of its
//!    command ([`command_copy`]), and its begin, which is that of its first attempt. A request that is
//!    answered from the cache examines few entries, and is not listed.
//! 3. `currentOp` reads the records, `killOp` and its kin interrupt their operations.
//! 4. The request ends, and leaves the list. The connection ends, and leaves the table.
//!
//! # Invariants
//! - Listing a request takes only the lock of its own record, never that of the table.
//! - An interruption hits the request that it was meant for, or none.
//!
//! # Not here
//! The checks by which an interrupted request ends: loops call [`pando_catalog::Operation::check`].

mod command_copy;
mod connection_record;
mod listed_request;
mod report;
mod stored_secrets;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering};

use pando_access::UserName;
use pando_catalog::{Interruption, Operation, OperationWait};
use parking_lot::Mutex;

pub(crate) use self::command_copy::{command_copy, statement_copy};
pub(crate) use self::connection_record::{
    ConnectionRecord, ListedConnection, ListedTransaction, RunningRequest,
};
pub(crate) use self::listed_request::{RequestFacts, kind_of, namespace_of, statement_of};
pub(crate) use self::report::{
    OperationNames, Surroundings, connection_document, cursor_document, write_transaction,
};
pub(crate) use self::stored_secrets::without_keys;
use crate::session_id::SessionId;

/// See the module's head.
#[derive(Debug, Default)]
pub(crate) struct OperationTable {
    connections: Mutex<BTreeMap<i64, Arc<ConnectionRecord>>>,
    /// The operations of the server itself.
    background: Mutex<Vec<Arc<ConnectionRecord>>>,
    /// Connections since the start.
    connections_ever: AtomicI64,
    /// The number of the last request that was listed.
    last_number: AtomicI32,
    /// The store is about to be closed.
    is_closing: AtomicBool,
}

/// A request that is listed while it waits without a thread.
#[derive(Debug)]
pub(crate) struct ListedWait {
    record: Arc<ConnectionRecord>,
    number: i32,
    wait: OperationWait,
}

impl Drop for ListedWait {
    fn drop(&mut self) {
        self.record.operation().end_wait(self.wait);
        self.record.end_numbered(self.number);
    }
}

/// The place of a connection in the table; it leaves when this is dropped.
#[derive(Debug)]
pub(crate) struct Entered {
    table: Arc<OperationTable>,
    record: Arc<ConnectionRecord>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.table.connections.lock().remove(&self.record.place());
    }
}

impl Entered {
    pub fn record(&self) -> &Arc<ConnectionRecord> {
        &self.record
    }
}

/// The place of an operation of the server itself; it leaves when this is dropped.
#[derive(Debug)]
pub(crate) struct EnteredBackground {
    table: Arc<OperationTable>,
    record: Arc<ConnectionRecord>,
}

impl Drop for EnteredBackground {
    fn drop(&mut self) {
        self.table.background.lock().retain(|record| !Arc::ptr_eq(record, &self.record));
    }
}

impl EnteredBackground {
    pub fn record(&self) -> &Arc<ConnectionRecord> {
        &self.record
    }
}

impl OperationTable {
    /// Enters an operation of the server itself, which lists show by its description. It counts as no
    /// connection.
    pub fn enter_background(
        self: &Arc<OperationTable>,
        description: &'static str,
        operation: &Arc<Operation>,
    ) -> EnteredBackground {
        let record = Arc::new(ConnectionRecord::of_server(description, Arc::clone(operation)));
        self.background.lock().push(Arc::clone(&record));
        EnteredBackground { table: Arc::clone(self), record }
    }

    /// Interrupts the operations of the server itself.
    pub fn end_background(&self, interruption: Interruption) {
        for record in self.background.lock().iter() {
            record.operation().interrupt(interruption);
        }
    }

    /// Enters a connection.
    pub fn enter(self: &Arc<OperationTable>, id: i64, peer: &str, operation: &Arc<Operation>) -> Entered {
        let record = Arc::new(ConnectionRecord::new(id, peer, Arc::clone(operation)));
        let place = self.connections_ever.fetch_add(1, Ordering::Relaxed);
        record.set_place(place);
        self.connections.lock().insert(place, Arc::clone(&record));
        Entered { table: Arc::clone(self), record }
    }

    /// Lists a request that waits without a thread, until the answer is dropped. It keeps the number that it
    /// has.
    pub fn list_wait(
        &self,
        record: &Arc<ConnectionRecord>,
        request: RunningRequest,
        wait: OperationWait,
    ) -> ListedWait {
        let number = if request.number == 0 { self.next_number() } else { request.number };
        record.begin(RunningRequest { number, ..request });
        record.operation().begin_wait(wait);
        if matches!(wait, OperationWait::Intent | OperationWait::Tail) {
            record.end_without_client();
        }
        if self.is_closing.load(Ordering::SeqCst) {
            record.operation().interrupt(Interruption::Shutdown);
        }
        ListedWait { record: Arc::clone(record), number, wait }
    }

    /// A number of 31 bits that is positive, as MongoDB's clients expect.
    fn next_number(&self) -> i32 {
        self.last_number.fetch_add(1, Ordering::Relaxed).wrapping_add(1) & i32::MAX
    }

    /// Lists a request under a new number.
    pub fn list(&self, record: &ConnectionRecord, request: RunningRequest) {
        let number = self.next_number();
        record.begin(RunningRequest { number, ..request });
        if self.is_closing.load(Ordering::SeqCst) {
            record.operation().interrupt(Interruption::Shutdown);
        }
    }

    /// All connections, in the order in which they came, and the operations of the server itself.
    pub fn connections(&self) -> Vec<ListedConnection> {
        self.records().iter().map(ConnectionRecord::listed).collect()
    }

    fn records(&self) -> Vec<Arc<ConnectionRecord>> {
        let mut records: Vec<_> = self.connections.lock().values().cloned().collect();
        records.extend(self.background.lock().iter().cloned());
        records
    }

    /// Connections that are open.
    pub fn open(&self) -> usize {
        self.connections.lock().len()
    }

    /// Connections since the start.
    pub fn ever(&self) -> i64 {
        self.connections_ever.load(Ordering::Relaxed)
    }

    /// Connections whose request is listed.
    pub fn busy(&self) -> usize {
        self.connections.lock().values().filter(|record| record.is_busy()).count()
    }

    /// Interrupts every listed request that is wanted. Gives their number.
    pub fn interrupt(
        &self,
        interruption: Interruption,
        mut is_wanted: impl FnMut(&mut RunningRequest) -> bool,
    ) -> usize {
        self.records().iter().filter(|record| record.interrupt_if(interruption, &mut is_wanted)).count()
    }

    /// Interrupts the request of this number; false where there is none.
    pub fn kill(&self, number: i32) -> bool {
        self.interrupt(Interruption::Killed, |request| request.number == number) > 0
    }

    /// Whether the request of this number is one of this user.
    pub fn is_of(&self, number: i32, user: &UserName) -> bool {
        self.records().iter().any(|record| record.is_of(number, user))
    }

    /// Interrupts the requests of the sessions that are wanted, but for that of this record.
    pub fn kill_sessions(&self, own: &ConnectionRecord, is_wanted: impl Fn(SessionId) -> bool) {
        for record in self.records() {
            if !std::ptr::eq(&*record, own) {
                record.interrupt_if(Interruption::Killed, |request| request.session.is_some_and(&is_wanted));
            }
        }
    }

    /// The sessions whose listed requests wait for a key, most of them without holding their session.
    pub fn waiting_sessions(&self) -> Vec<SessionId> {
        let mut sessions = Vec::new();
        for record in self.records() {
            if record.operation().wait() == Some(OperationWait::Intent) {
                sessions.extend(record.listed().running.and_then(|request| request.session));
            }
        }
        sessions
    }

    /// Interrupts the requests of these sessions that wait for a key without holding their session.
    pub fn end_waits_of(&self, sessions: &[SessionId]) {
        for record in self.records() {
            if record.operation().wait() == Some(OperationWait::Intent) {
                record.interrupt_if(Interruption::Killed, |request| {
                    request.session.is_some_and(|session| sessions.contains(&session))
                });
            }
        }
    }

    /// Interrupts the requests that work on a collection which is dropped, but for that of this record.
    /// `text` is the error that their clients are told.
    pub fn end_users_of(&self, namespace: &str, text: &str, own: &ConnectionRecord) {
        for record in self.records() {
            if !std::ptr::eq(&*record, own) {
                record.interrupt_if(Interruption::CollectionDropped, |request| {
                    let is_user = request.ends_with_collection && request.namespace == namespace;
                    if is_user && request.drop_text.is_none() {
                        request.drop_text = Some(text.to_owned());
                    }
                    is_user
                });
            }
        }
    }

    /// Interrupts all requests, now and from now on: the store is about to be closed.
    pub fn begin_closing(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.interrupt(Interruption::Shutdown, |_| true);
    }
}

#[cfg(test)]
mod tests;
