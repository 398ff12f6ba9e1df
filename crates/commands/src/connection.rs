//! The state of a connection that outlives its requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use pando_catalog::Operation;
use pando_document::RawDocumentBuf;
use pando_environment::{Clock, Monotonic};

use crate::Request;
use crate::suspended_find::SuspendedFind;

/// The state of one connection: made by the server at accept, handed to every request of it.
#[derive(Debug)]
pub struct ConnectionState {
    id: i64,
    peer: String,
    /// The client's description of itself in its first `hello`.
    client: Option<RawDocumentBuf>,
    /// The compressors that both sides speak, in the client's order.
    compressors: Vec<&'static str>,
    /// Where it is counted, from its first request on.
    counted: Option<Arc<ConnectionCounts>>,
    /// A find of it that waits for the device.
    suspended: Option<Box<SuspendedFind>>,
    /// The operation of its requests, from its first one on.
    operation: Option<Arc<Operation>>,
    /// The first attempt of a request that is to be handled again.
    first_attempt: Option<Monotonic>,
}

/// The number of connections that have sent a request.
#[derive(Debug, Default)]
pub(crate) struct ConnectionCounts {
    open: AtomicI64,
    ever: AtomicI64,
}

impl ConnectionCounts {
    /// Those that are open.
    pub fn open(&self) -> i64 {
        self.open.load(Ordering::Relaxed)
    }

    /// All since the start.
    pub fn ever(&self) -> i64 {
        self.ever.load(Ordering::Relaxed)
    }
}

/// A copy counts as another connection, which has sent no request yet.
impl Clone for ConnectionState {
    fn clone(&self) -> ConnectionState {
        ConnectionState {
            id: self.id,
            peer: self.peer.clone(),
            client: self.client.clone(),
            compressors: self.compressors.clone(),
            counted: None,
            suspended: None,
            operation: None,
            first_attempt: None,
        }
    }
}

impl Drop for ConnectionState {
    fn drop(&mut self) {
        if let Some(counts) = &self.counted {
            counts.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl ConnectionState {
    /// A connection: its number (from 1) and the address at its other end (`127.0.0.1:41484`, or the socket's
    /// path).
    pub fn new(id: i64, peer: impl Into<String>) -> ConnectionState {
        let peer = peer.into();
        ConnectionState {
            id,
            peer,
            client: None,
            compressors: Vec::new(),
            counted: None,
            suspended: None,
            operation: None,
            first_attempt: None,
        }
    }

    /// Counts the connection, the first time.
    pub(crate) fn count_in(&mut self, counts: &Arc<ConnectionCounts>) {
        if self.counted.is_none() {
            counts.open.fetch_add(1, Ordering::Relaxed);
            counts.ever.fetch_add(1, Ordering::Relaxed);
            self.counted = Some(Arc::clone(counts));
        }
    }

    /// Begins the operation of a request, or goes on with that of a request which is handled again. Gives it
    /// with the moment of the first attempt.
    pub(crate) fn begin_operation(&mut self, clock: &Arc<dyn Clock>) -> (Arc<Operation>, Monotonic) {
        let operation = Arc::clone(self.operation.get_or_insert_with(|| Arc::new(Operation::new(clock))));
        let began = self.first_attempt.take().unwrap_or_else(|| {
            operation.begin();
            clock.monotonic()
        });
        (operation, began)
    }

    /// Keeps the operation for the next attempt of its request.
    pub(crate) fn expect_attempt(&mut self, began: Monotonic) {
        self.first_attempt = Some(began);
    }

    /// Keeps a find until its request is handled again.
    pub(crate) fn suspend(&mut self, find: Box<SuspendedFind>) {
        self.suspended = Some(find);
    }

    /// The suspended find, if this request is its request. Any other request drops it.
    pub(crate) fn take_suspended(&mut self, request: &Request<'_>) -> Option<Box<SuspendedFind>> {
        self.suspended.take().filter(|find| find.is_of(request))
    }

    /// Drops a suspended find that cannot go on soon, because its snapshot keeps old versions alive.
    pub fn drop_suspended(&mut self) {
        self.suspended = None;
    }

    /// Its number, as `hello` shows it.
    pub fn id(&self) -> i64 {
        self.id
    }

    /// The address at its other end.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// The client's description of itself.
    pub fn client(&self) -> Option<&RawDocumentBuf> {
        self.client.as_ref()
    }

    /// The compressors that both sides speak, in the client's order.
    pub(crate) fn compressors(&self) -> &[&'static str] {
        &self.compressors
    }

    /// Remembers what both sides agreed on.
    pub(crate) fn agree_on_compressors(&mut self, compressors: Vec<&'static str>) {
        self.compressors = compressors;
    }

    /// Remembers what the client says of itself, the first time.
    pub(crate) fn remember_client(&mut self, client: RawDocumentBuf) {
        self.client.get_or_insert(client);
    }
}
