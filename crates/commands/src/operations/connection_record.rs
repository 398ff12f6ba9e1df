//! The record of a connection in the table of operations: its client, and its request under way.
//!
//! The thread that works on a request changes the record. Any other thread may read it or interrupt the
//! request. The lock of the record is held for a few instructions only, so that an interruption never hits
//! the next request.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pando_access::UserName;
use pando_catalog::{Interruption, Operation, OperationWait};
use pando_document::{RawDocument, RawDocumentBuf};
use pando_environment::Monotonic;
use pando_query::explain::PlanSummary;
use parking_lot::Mutex;

use crate::cursor_facts::CursorFacts;
use crate::session_id::SessionId;

/// The time that a request has when its client is gone. A client may end its side and still read its answers,
/// which nobody can tell from one that is gone. So short requests are answered.
const CLIENT_PATIENCE: Duration = Duration::from_millis(30);

/// A request that is listed.
#[derive(Clone, Debug)]
pub(crate) struct RunningRequest {
    /// Its number.
    pub number: i32,
    /// Its first attempt.
    pub began: Monotonic,
    /// The kind that lists show: `query`, `getmore`, `insert`, `update`, `remove`, `command`.
    pub kind: &'static str,
    /// `database.collection`, or `database.$cmd`.
    pub namespace: String,
    pub session: Option<SessionId>,
    /// Its command, or its statement under way.
    pub command: RawDocumentBuf,
    pub plan: PlanSummary,
    /// The transaction that it is a statement of.
    pub transaction: Option<ListedTransaction>,
    /// The cursor that a `getMore` works on.
    pub cursor: Option<Arc<CursorFacts>>,
    /// Whether it ends with its client. One whose client wants no answer goes on.
    pub ends_with_client: bool,
    /// Whether it ends when its collection is dropped.
    pub ends_with_collection: bool,
    /// The text of the error if its collection was dropped.
    pub drop_text: Option<String>,
}

/// A transaction as lists show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListedTransaction {
    pub number: i64,
    /// The level of its read concern.
    pub level: &'static str,
    pub began: Monotonic,
    /// Milliseconds since 1970.
    pub began_ms: i64,
    /// The time that earlier requests have worked with it.
    pub active: Duration,
    /// The time after which it is ended.
    pub lifetime: Duration,
}

#[derive(Debug, Default)]
struct State {
    /// The user that has logged in.
    user: Option<Arc<UserName>>,
    running: Option<RunningRequest>,
    is_client_gone: bool,
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct ConnectionRecord {
    id: i64,
    peer: String,
    /// The description of an operation of the server itself.
    description: Option<&'static str>,
    client: OnceLock<RawDocumentBuf>,
    operation: Arc<Operation>,
    state: Mutex<State>,
    /// Its place in the table.
    place: AtomicI64,
}

/// A copy of a record.
pub(crate) struct ListedConnection {
    pub record: Arc<ConnectionRecord>,
    pub running: Option<RunningRequest>,
    /// The user that has logged in.
    pub user: Option<Arc<UserName>>,
}

impl ConnectionRecord {
    pub fn new(id: i64, peer: &str, operation: Arc<Operation>) -> ConnectionRecord {
        ConnectionRecord {
            id,
            peer: peer.to_owned(),
            description: None,
            client: OnceLock::new(),
            operation,
            state: Mutex::default(),
            place: AtomicI64::new(0),
        }
    }

    /// The record of an operation of the server itself, which has no connection.
    pub fn of_server(description: &'static str, operation: Arc<Operation>) -> ConnectionRecord {
        ConnectionRecord { description: Some(description), ..ConnectionRecord::new(0, "", operation) }
    }

    /// The description of an operation of the server itself.
    pub fn description(&self) -> Option<&'static str> {
        self.description
    }

    /// The number of the connection, as its client knows it.
    pub fn id(&self) -> i64 {
        self.id
    }

    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// The client's description of itself.
    pub fn client(&self) -> Option<&RawDocument> {
        self.client.get().map(|client| &**client)
    }

    pub fn operation(&self) -> &Arc<Operation> {
        &self.operation
    }

    /// The name of the application, as its client gave it.
    pub fn application(&self) -> Option<&str> {
        self.client()?.get("application").ok()??.as_document()?.get("name").ok()??.as_str()
    }

    pub(super) fn place(&self) -> i64 {
        self.place.load(Ordering::Relaxed)
    }

    pub(super) fn set_place(&self, place: i64) {
        self.place.store(place, Ordering::Relaxed);
    }

    /// Remembers what the client says of itself, the first time.
    pub fn remember_client(&self, client: &RawDocument) {
        let _first_stays = self.client.set(client.to_owned());
    }

    /// Lists a request.
    pub(super) fn begin(&self, request: RunningRequest) {
        let mut state = self.state.lock();
        if state.is_client_gone && request.ends_with_client {
            self.operation.end_without_client(CLIENT_PATIENCE);
        }
        state.running = Some(request);
    }

    /// Ends the listed request.
    pub fn end(&self) -> Option<RunningRequest> {
        self.state.lock().running.take()
    }

    /// Ends the listed request if it has this number. A connection may have sent the next one already.
    pub(super) fn end_numbered(&self, number: i32) {
        let mut state = self.state.lock();
        if state.running.as_ref().is_some_and(|request| request.number == number) {
            state.running = None;
        }
    }

    /// Changes the listed request, if there is one.
    pub fn change(&self, change: impl FnOnce(&mut RunningRequest)) {
        if let Some(request) = &mut self.state.lock().running {
            change(request);
        }
    }

    /// Interrupts the listed request if it is the wanted one; false where there is none.
    pub fn interrupt_if(
        &self,
        interruption: Interruption,
        is_wanted: impl FnOnce(&mut RunningRequest) -> bool,
    ) -> bool {
        let mut state = self.state.lock();
        let is_hit = state.running.as_mut().is_some_and(is_wanted);
        if is_hit {
            self.operation.interrupt(interruption);
        }
        is_hit
    }

    /// The client has closed the connection: its request ends soon, and so do those that still come. One that
    /// waits for a key ends at once. It would get the key for a client that is gone.
    pub fn client_gone(&self) {
        let mut state = self.state.lock();
        state.is_client_gone = true;
        if state.running.as_ref().is_some_and(|request| request.ends_with_client) {
            match self.operation.wait() {
                Some(OperationWait::Intent | OperationWait::Tail) => {
                    self.operation.interrupt(Interruption::ClientGone)
                }
                _ => self.operation.end_without_client(CLIENT_PATIENCE),
            }
        }
    }

    /// Interrupts the listed request, which begins to wait for a key, if its client is gone.
    pub(super) fn end_without_client(&self) {
        let state = self.state.lock();
        if state.is_client_gone && state.running.as_ref().is_some_and(|request| request.ends_with_client) {
            self.operation.interrupt(Interruption::ClientGone);
        }
    }

    /// Whether the client has closed the connection.
    pub fn is_client_gone(&self) -> bool {
        self.state.lock().is_client_gone
    }

    pub(super) fn listed(self: &Arc<ConnectionRecord>) -> ListedConnection {
        let state = self.state.lock();
        ListedConnection {
            record: Arc::clone(self),
            running: state.running.clone(),
            user: state.user.clone(),
        }
    }

    /// Changes the user that has logged in.
    pub fn set_user(&self, user: Option<Arc<UserName>>) {
        self.state.lock().user = user;
    }

    /// The user that has logged in.
    pub fn user(&self) -> Option<Arc<UserName>> {
        self.state.lock().user.clone()
    }

    /// Whether a request of this number is listed, and the user is this one.
    pub(super) fn is_of(&self, number: i32, user: &UserName) -> bool {
        let state = self.state.lock();
        let is_listed = state.running.as_ref().is_some_and(|request| request.number == number);
        is_listed && state.user.as_deref() == Some(user)
    }

    pub(super) fn is_busy(&self) -> bool {
        self.state.lock().running.is_some()
    }
}
