//! The state of a connection that outlives its requests.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use pando_access::RoleName;
use pando_catalog::{CommitReceipt, Operation, QueryMemory, Reservation};
use pando_document::{RawDocumentBuf, Value, doc};
use pando_environment::{Clock, Monotonic};

use crate::Request;
use crate::access::{Conversation, Login};
use crate::accounts::Ends;
use crate::audit::Parties;
use crate::connection_transaction::ConnectionTransaction;
use crate::cursor_facts::Expiry;
use crate::intent_wait::StatementWait;
use crate::last_write::LastWrite;
use crate::open_load::OpenLoad;
use crate::operations::{ConnectionRecord, Entered, ListedWait, OperationTable};
use crate::suspended_find::SuspendedFind;

/// The state of one connection: made by the server at accept, handed to every request of it.
#[derive(Debug)]
pub struct ConnectionState {
    id: i64,
    peer: String,
    /// The address at this end; `None` through a unix socket and in the same process.
    local_address: Option<String>,
    /// The subject of the certificate that its client has shown, in the form of RFC 2253.
    certificate_subject: Option<Arc<str>>,
    /// Its bytes are encrypted, or stay on this machine.
    is_protected: bool,
    /// The user of the client's process, where such users are logged in.
    process_user: Option<Arc<str>>,
    /// The client's description of itself in its first `hello`.
    client: Option<RawDocumentBuf>,
    /// The compressors that both sides speak, in the client's order.
    compressors: Vec<&'static str>,
    /// A find of it that waits for the device.
    suspended: Option<Box<SuspendedFind>>,
    /// Its place in the table of operations, from its first request on.
    entered: Option<Entered>,
    /// The first attempt of a request that is to be handled again.
    first_attempt: Option<Monotonic>,
    /// The outcome of its last request, if that was a write without a reply.
    last_write: Option<Box<LastWrite>>,
    /// Its last commit.
    last_commit: Option<CommitReceipt>,
    /// The transaction that `beginTransaction` has begun. It ends with the connection.
    transaction: Option<ConnectionTransaction>,
    /// The load that `beginLoad` has begun. It ends with the connection, and with its transaction.
    load: Option<OpenLoad>,
    further_replies: FurtherReplies,
    /// It was of more use than to ask `hello`.
    has_worked: bool,
    /// The wait of its request for a key, which goes on where the request is handled again.
    wait: Option<Box<StatementWait>>,
    /// Its `getMore`, listed while it waits at the end of a capped collection.
    tail_listing: Option<ListedWait>,
    /// Whether its request is one that has waited for a change of the topology.
    has_awaited_topology: bool,
    /// Whether its requests may be handled again after a wait.
    is_resumable: bool,
    /// The time that its statements wait for a key, if its client has set one.
    lock_timeout: LockTimeout,
    default_durability: DefaultDurability,
    cursor_life: CursorLife,
    /// The memory of replies that its client does not read.
    unsent: Option<Reservation>,
    /// The user that has logged in.
    login: Option<Box<Login>>,
    /// The login under way.
    conversation: Option<Box<Conversation>>,
}

/// The state of a connection that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamState {
    /// No reply was to come.
    Idle,
    /// A request of it had further replies, which nobody takes now.
    Abandoned,
}

/// The replies that a request has beyond its first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FurtherReplies {
    #[default]
    None,
    /// The next change of the topology, or that there was none.
    Topology,
    /// The next batch of this cursor.
    Batches { cursor: i64 },
}

/// The time for which the statements of a connection wait for a key that another transaction has claimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LockTimeout {
    /// As the server's parameters say.
    #[default]
    OfServer,
    /// This time.
    Own(Duration),
}

/// The durability of the writes of requests that name no write concern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultDurability {
    /// As the default concern of the store says.
    #[default]
    OfStore,
    /// On the device.
    Synced,
}

/// Whether the cursors that a connection opens are closed when they are not used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CursorLife {
    /// After the time-out of the store, unless the request says otherwise.
    #[default]
    TimesOut,
    /// Never: the program that holds the store ends each of them.
    Kept,
}

/// Tells the request of a connection that its client has closed the connection.
#[derive(Clone)]
pub struct ClientWatch {
    record: Arc<ConnectionRecord>,
}

impl ClientWatch {
    /// The client has closed the connection. Its request under way is interrupted unless it ends soon, and so
    /// are those that still come. One whose client wants no answer goes on.
    pub fn client_gone(&self) {
        self.record.client_gone();
    }
}

impl fmt::Debug for ClientWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a watch of connection {}", self.record.id())
    }
}

/// A copy counts as another connection, which has sent no request yet.
impl Clone for ConnectionState {
    fn clone(&self) -> ConnectionState {
        ConnectionState {
            id: self.id,
            peer: self.peer.clone(),
            local_address: self.local_address.clone(),
            certificate_subject: self.certificate_subject.clone(),
            is_protected: self.is_protected,
            process_user: self.process_user.clone(),
            client: self.client.clone(),
            compressors: self.compressors.clone(),
            suspended: None,
            entered: None,
            first_attempt: None,
            last_write: None,
            last_commit: None,
            transaction: None,
            load: None,
            further_replies: FurtherReplies::None,
            has_worked: false,
            wait: None,
            tail_listing: None,
            has_awaited_topology: false,
            is_resumable: self.is_resumable,
            lock_timeout: self.lock_timeout,
            default_durability: self.default_durability,
            cursor_life: self.cursor_life,
            unsent: None,
            login: None,
            conversation: None,
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
            local_address: None,
            certificate_subject: None,
            is_protected: false,
            process_user: None,
            client: None,
            compressors: Vec::new(),
            suspended: None,
            entered: None,
            first_attempt: None,
            last_write: None,
            last_commit: None,
            transaction: None,
            load: None,
            further_replies: FurtherReplies::None,
            has_worked: false,
            wait: None,
            tail_listing: None,
            has_awaited_topology: false,
            is_resumable: false,
            lock_timeout: LockTimeout::default(),
            default_durability: DefaultDurability::default(),
            cursor_life: CursorLife::default(),
            unsent: None,
            login: None,
            conversation: None,
        }
    }

    /// The same with the address at this end, by which the client came in.
    #[must_use]
    pub fn through(self, local_address: Option<String>) -> ConnectionState {
        ConnectionState { local_address, ..self }
    }

    /// The same with writes of this durability where a request names no write concern.
    #[must_use]
    pub fn writing(self, default_durability: DefaultDurability) -> ConnectionState {
        ConnectionState { default_durability, ..self }
    }

    /// The same with cursors of this life.
    #[must_use]
    pub fn with_cursors(self, cursor_life: CursorLife) -> ConnectionState {
        ConnectionState { cursor_life, ..self }
    }

    /// The same through a unix socket. The user of the client's process is given where such users are logged
    /// in.
    #[must_use]
    pub fn on_this_machine(self, process_user: Option<Arc<str>>) -> ConnectionState {
        ConnectionState { is_protected: true, process_user, ..self }
    }

    /// Whether its bytes are encrypted, or stay on this machine.
    pub(crate) fn is_protected(&self) -> bool {
        self.is_protected
    }

    /// The user of the client's process, where such users are logged in.
    pub(crate) fn process_user(&self) -> Option<&str> {
        self.process_user.as_deref()
    }

    /// Its ends, its user and the roles of that, as the audit trail shows them.
    pub(crate) fn audit_parties(&self) -> Parties {
        let (mut users, mut roles) = (Vec::new(), Vec::new());
        if let Some(login) = &self.login {
            let user = &login.user;
            users.push(Value::Document(doc! { "user": &*user.name, "db": &*user.database }));
            let role = |role: &RoleName| Value::Document(doc! { "role": &*role.name, "db": &*role.database });
            roles.extend(login.granted.roles.iter().map(role));
        }
        Parties::new(self.local_address.as_deref(), &self.peer, users, roles)
    }

    /// Its TLS handshake is complete. The client has shown a certificate with this subject, or none.
    pub fn secure(&mut self, certificate_subject: Option<String>) {
        self.certificate_subject = certificate_subject.map(Arc::from);
        self.is_protected = true;
    }

    /// The subject of the certificate that its client has shown.
    pub fn certificate_subject(&self) -> Option<&str> {
        self.certificate_subject.as_deref()
    }

    /// The same for a caller that handles a request again where it is told to
    /// ([`Handled::Again`](crate::Handled::Again)).
    #[must_use]
    pub fn resumable(self) -> ConnectionState {
        ConnectionState { is_resumable: true, ..self }
    }

    /// Whether its requests may be handled again after a wait.
    pub(crate) fn is_resumable(&self) -> bool {
        self.is_resumable
    }

    /// The wait of its request for a key.
    pub(crate) fn wait(&self) -> Option<&StatementWait> {
        self.wait.as_deref()
    }

    /// The same, to be changed.
    pub(crate) fn wait_mut(&mut self) -> &mut Option<Box<StatementWait>> {
        &mut self.wait
    }

    /// Has lists of operations show its `getMore` while that waits at the end of a capped collection.
    pub(crate) fn list_tail(&mut self, listed: ListedWait) {
        self.tail_listing = Some(listed);
    }

    /// The wait at the end of a capped collection is over.
    pub(crate) fn end_tail_list(&mut self) {
        self.tail_listing = None;
    }

    /// Its request is handled again after a wait for a change of the topology. It then counts as one that
    /// begins there: the wait is no work, and a server that has begun to stop meanwhile refuses the request.
    pub(crate) fn note_topology_wait(&mut self) {
        self.first_attempt = None;
        self.has_awaited_topology = true;
    }

    /// Whether its request has waited for a change of the topology. Its next one waits again.
    pub(crate) fn end_topology_wait(&mut self) -> bool {
        std::mem::take(&mut self.has_awaited_topology)
    }

    /// The durability of the writes of its requests that name no write concern.
    pub(crate) fn default_durability(&self) -> DefaultDurability {
        self.default_durability
    }

    /// When a cursor that it opens is closed, for one whose request says this.
    pub(crate) fn cursor_expiry(&self, of_request: Expiry) -> Expiry {
        match self.cursor_life {
            CursorLife::TimesOut => of_request,
            CursorLife::Kept => Expiry::Kept,
        }
    }

    /// The time for which its statements wait for a key.
    pub(crate) fn lock_timeout(&self) -> LockTimeout {
        self.lock_timeout
    }

    /// Changes that time. Gives the one before.
    pub(crate) fn set_lock_timeout(&mut self, timeout: LockTimeout) -> LockTimeout {
        std::mem::replace(&mut self.lock_timeout, timeout)
    }

    /// Whether the last request has further replies, if its client takes them: a cursor has further batches,
    /// and a monitor that has waited waits again.
    pub fn has_further_replies(&self) -> bool {
        self.further_replies != FurtherReplies::None
    }

    /// The further replies of the last request.
    pub(crate) fn further_replies(&self) -> FurtherReplies {
        self.further_replies
    }

    /// Notes that the request has further replies. Each request begins without.
    pub(crate) fn announce(&mut self, replies: FurtherReplies) {
        self.further_replies = replies;
    }

    /// Whether it was of more use than to ask `hello`.
    pub(crate) fn has_worked(&self) -> bool {
        self.has_worked
    }

    /// Notes that it is of more use than to ask `hello`.
    pub(crate) fn note_work(&mut self) {
        self.has_worked = true;
    }

    /// The address by which its client reaches this server as a replica set: the advertised one, else the one
    /// that it came in by.
    pub(crate) fn address<'a>(&'a self, advertised: Option<&'a str>) -> Option<&'a str> {
        advertised.or(self.local_address.as_deref())
    }

    /// Begins a request, or goes on with one that is handled again. Gives the record of the connection, whose
    /// operation is the request, and the moment of the first attempt.
    pub(crate) fn begin_request(
        &mut self,
        table: &Arc<OperationTable>,
        clock: &Arc<dyn Clock>,
    ) -> (Arc<ConnectionRecord>, Monotonic) {
        self.further_replies = FurtherReplies::None;
        let entered = self.entered.get_or_insert_with(|| {
            let entered = table.enter(self.id, &self.peer, &Arc::new(Operation::new(clock)));
            if let Some(client) = &self.client {
                entered.record().remember_client(client);
            }
            entered
        });
        let record = Arc::clone(entered.record());
        let began = self.first_attempt.take().unwrap_or_else(|| {
            record.operation().begin();
            clock.monotonic()
        });
        (record, began)
    }

    /// A handle by which the caller tells that the client has closed the connection while a request of it is
    /// under way. `None` before the first request.
    pub fn client_watch(&self) -> Option<ClientWatch> {
        self.entered.as_ref().map(|entered| ClientWatch { record: Arc::clone(entered.record()) })
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

    /// The client does not read its replies: so many bytes of them wait. They count in the memory of queries.
    /// A suspended find is dropped, because its snapshot keeps old versions alive, and so is the place in the
    /// queue of a key.
    pub fn stall(&mut self, memory: &QueryMemory, unsent_bytes: usize) {
        self.suspended = None;
        self.wait = None;
        self.unsent.get_or_insert_with(|| memory.account().reserve()).hold(unsent_bytes);
    }

    /// The client has read its replies.
    pub fn resume(&mut self) {
        self.unsent = None;
    }

    /// Keeps the outcome of a write for `getLastError`.
    pub(crate) fn note_last_write(&mut self, write: LastWrite) {
        self.last_write = Some(Box::new(write));
    }

    /// The outcome of its last request, if that was a write without a reply.
    pub(crate) fn last_write(&self) -> Option<&LastWrite> {
        self.last_write.as_deref()
    }

    /// Forgets the outcome of its last write: another request has come since.
    pub(crate) fn forget_last_write(&mut self) {
        self.last_write = None;
    }

    /// Keeps a commit, for a client that asks later that it be durable.
    pub(crate) fn note_commit(&mut self, receipt: CommitReceipt) {
        self.last_commit = Some(receipt);
    }

    /// Its last commit.
    pub(crate) fn last_commit(&self) -> Option<CommitReceipt> {
        self.last_commit
    }

    /// The transaction that `beginTransaction` has begun.
    pub(crate) fn transaction(&self) -> Option<&ConnectionTransaction> {
        self.transaction.as_ref()
    }

    /// Keeps a transaction, which later statements join.
    pub(crate) fn hold_transaction(&mut self, transaction: ConnectionTransaction) {
        self.transaction = Some(transaction);
    }

    /// Forgets the transaction. One that has not committed is rolled back, and its load with it.
    pub(crate) fn forget_transaction(&mut self) {
        self.load = None;
        self.transaction = None;
    }

    /// The load that `beginLoad` has begun.
    pub(crate) fn load(&self) -> Option<&OpenLoad> {
        self.load.as_ref()
    }

    /// Keeps a load, which later inserts go to.
    pub(crate) fn hold_load(&mut self, load: OpenLoad) {
        self.load = Some(load);
    }

    /// Gives the load up.
    pub(crate) fn take_load(&mut self) -> Option<OpenLoad> {
        self.load.take()
    }

    /// The user that has logged in. Compare its generation before its rights are used.
    pub(crate) fn login(&self) -> Option<&Login> {
        self.login.as_deref()
    }

    /// Changes the user that has logged in.
    pub(crate) fn set_login(&mut self, login: Option<Login>) {
        if login.is_none() {
            // They belong to the user.
            self.forget_transaction();
            self.suspended = None;
            self.wait = None;
        }
        self.login = login.map(Box::new);
        if let Some(entered) = &self.entered {
            entered.record().set_user(self.login.as_ref().map(|login| Arc::new(login.user.clone())));
        }
    }

    /// Keeps a login under way. One before it is over.
    pub(crate) fn hold_conversation(&mut self, conversation: Option<Conversation>) {
        self.conversation = conversation.map(Box::new);
    }

    /// Takes the login under way.
    pub(crate) fn take_conversation(&mut self) -> Option<Conversation> {
        self.conversation.take().map(|conversation| *conversation)
    }

    /// The addresses at both ends.
    pub(crate) fn ends(&self) -> Ends {
        let address = |text: &str| text.parse::<SocketAddr>().ok().map(|address| address.ip());
        Ends { client: address(&self.peer), server: self.local_address.as_deref().and_then(address) }
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
        if let Some(entered) = &self.entered {
            entered.record().remember_client(&client);
        }
        self.client.get_or_insert(client);
    }
}
