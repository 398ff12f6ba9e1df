//! The surroundings of one request: the state of the store, the connection, and whether the caller may block.

mod access_limits;
mod account_changes;
mod attempt;
mod audit_calls;
mod statement_read;
mod view_lookup;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pando_catalog::{
    Begin, BlockingMode, CachedReads, Caller, Catalog, CatalogError, Collection, CommitReceipt, Durability,
    Interruption, Lease, Namespace, Operation, QueryAccount, StorageError, Transaction, WriteTransaction,
};
use pando_document::{Document, RawDocument, RawDocumentBuf, Timestamp};
use pando_environment::Monotonic;
use pando_query::QueryError;
use pando_query::explain::{Display, PlanSummary, Purpose, displayed};
use pando_query::expression::{EvaluationWatch, ParseScope};
use pando_query::filter::Filter;
use pando_query::plan::{Plan, point_lookup};
use pando_query::time_series::BUCKETS_PREFIX;
use pando_query::update::EmptyTimestamps;

use self::account_changes::AccountChange;
pub(crate) use self::attempt::{Attempt, RequestForm, Validation};
use crate::cursors::Cursors;
use crate::error::Failure;
use crate::generic_arguments::{ReadConcern, ReadLevel, WriteConcern};
use crate::held_snapshots::HeldSnapshot;
use crate::identity::uuid_text;
use crate::intent_wait::IntentWait;
use crate::operations::{ConnectionRecord, RunningRequest};
use crate::reader::collection_now;
use crate::request_notes::{ProfiledExecution, RequestNotes};
use crate::session_id::SessionId;
use crate::sessions::{OpenTransaction, SessionUse};
use crate::shared_state::SharedState;
use crate::system_profile::{self, PROFILE_COLLECTION};
use crate::tail_wait::TailWait;
use crate::views::View;
use crate::{CommandError, ConnectionState, ErrorCode, Request};

/// The surroundings of one request.
pub(crate) struct Context<'c> {
    pub shared: &'c Arc<SharedState>,
    pub connection: &'c mut ConnectionState,
    pub blocking: BlockingMode,
    /// The record of the connection in the table of operations.
    pub record: &'c Arc<ConnectionRecord>,
    /// The operation that the request is.
    pub operation: &'c Operation,
    /// The first attempt of the request.
    pub began: Monotonic,
    pub form: RequestForm,
    pub database: &'c str,
    pub session: Option<SessionId>,
    pub concern: WriteConcern,
    /// The use of its session, if the request has a transaction number.
    pub session_use: Option<Box<SessionUse>>,
    pub read: ReadConcern,
    pub validation: Validation,
    /// Of the documents that the request writes.
    pub empty_timestamps: EmptyTimestamps,
    /// The snapshot that a read with read concern `snapshot` reads.
    pub past: Option<Arc<HeldSnapshot>>,
    /// The last commit of this request.
    pending: Option<PendingCommit>,
    /// The moment before which the reply is not sent.
    awaited: Option<Monotonic>,
    notes: RefCell<RequestNotes>,
    /// The view that the request has looked up to read it.
    read_view: RefCell<Option<(String, View)>>,
    /// The wait after which the request is handled again.
    suspended: Option<Suspension>,
    /// Units of work that the request has ended with success.
    units: u32,
    /// The request may have changed users or roles.
    account_change: AccountChange,
}

/// A wait without a thread, after which a request is handled again.
pub(crate) enum Suspension {
    /// For a key that another transaction has claimed.
    Intent(IntentWait),
    /// For the next commit to a capped collection.
    Tail(TailWait),
    /// For a change of the topology, until this moment.
    Topology(Monotonic),
}

/// A commit, and the durability that it must reach before the client is answered.
#[derive(Clone, Copy)]
pub(crate) struct PendingCommit {
    pub receipt: CommitReceipt,
    pub durability: Durability,
}

/// The generic fields of a request that commands look at.
#[derive(Clone, Copy)]
pub(crate) struct Addressed<'a> {
    pub database: &'a str,
    pub session: Option<SessionId>,
    pub concern: WriteConcern,
    pub read: ReadConcern,
}

impl<'a> Addressed<'a> {
    /// Those of the server itself.
    pub fn of_server(database: &'a str) -> Addressed<'a> {
        let (concern, read) = (WriteConcern::DEFAULT, ReadConcern::DEFAULT);
        Addressed { database, session: None, concern, read }
    }
}

impl<'c> Context<'c> {
    pub fn new(
        shared: &'c Arc<SharedState>,
        connection: &'c mut ConnectionState,
        attempt: Attempt<'c>,
        addressed: Addressed<'c>,
    ) -> Context<'c> {
        let Attempt { blocking, record, began, form } = attempt;
        let Addressed { database, session, concern, read } = addressed;
        let operation = record.operation();
        let (session_use, pending, notes) = (None, None, RefCell::default());
        Context {
            shared,
            connection,
            blocking,
            record,
            operation,
            began,
            form,
            database,
            session,
            concern,
            session_use,
            read,
            validation: Validation::Checked,
            empty_timestamps: EmptyTimestamps::Filled,
            past: None,
            pending,
            awaited: None,
            notes,
            read_view: RefCell::default(),
            suspended: None,
            units: 0,
            account_change: AccountChange::None,
        }
    }

    /// Reads `bypassDocumentValidation` and `bypassEmptyTsReplacement`, whose types the command checks.
    pub fn read_bypasses(&mut self, body: &RawDocument) -> Result<(), CommandError> {
        if body.get("bypassDocumentValidation")?.is_some_and(|bypass| bypass.to_bool()) {
            self.validation = Validation::Bypassed;
        }
        if body.get("bypassEmptyTsReplacement")?.is_some_and(|bypass| bypass.to_bool()) {
            self.empty_timestamps = EmptyTimestamps::Kept;
        }
        Ok(())
    }

    /// Notes that a unit of work has ended with success.
    pub fn note_unit(&mut self) {
        self.units += 1;
    }

    /// Whether the request may be handled once more from its beginning, after a wait.
    pub fn is_resumable(&self) -> bool {
        let is_untouched = self.units == 0 && self.pending.is_none();
        is_untouched && self.form == RequestForm::Message && self.connection.is_resumable()
    }

    /// Whether a read waits without a thread: its caller handles it again.
    pub fn waits_without_thread(&self) -> bool {
        self.form != RequestForm::LegacyWrite && self.connection.is_resumable()
    }

    /// Whether the request is handled again with a newer snapshot: it begins a transaction, or has its own.
    pub fn begins_anew(&self) -> bool {
        let begins = self.session_use.as_ref().is_none_or(|session| session.begins());
        begins && self.read.at.is_none() && self.is_resumable()
    }

    /// Has the request be handled again after a wait. Its command answers `WouldBlock`.
    pub fn suspend(&mut self, wait: Suspension) {
        self.suspended = Some(wait);
    }

    /// The wait after which the request is handled again.
    pub fn take_suspended(&mut self) -> Option<Suspension> {
        self.suspended.take()
    }

    /// Takes notes of the work.
    pub fn note(&self, take: impl FnOnce(&mut RequestNotes)) {
        take(&mut self.notes.borrow_mut());
    }

    /// Notes the plan of the request, or of its statement under way. Lists of operations show it.
    pub fn note_plan(&self, plan: &Plan, purpose: Purpose) {
        let mut notes = self.notes.borrow_mut();
        notes.note_plan(plan, purpose);
        if self.blocking == BlockingMode::MayBlock {
            self.record.change(|request| request.plan.clone_from(&notes.plan));
        }
    }

    /// Notes the stages of the plan where the database of the request is profiled.
    pub fn note_stages(&self, filter: &Filter, plan: &Plan, display: Display<'_>) {
        if self.shared.profiler.settings.is_profiled(self.database) {
            let stages = Arc::new(displayed(filter, plan, display));
            self.notes.borrow_mut().execution = Some(Box::new(ProfiledExecution { stages, figures: None }));
        }
    }

    /// The summary of the last plan.
    pub fn plan_summary(&self) -> PlanSummary {
        self.notes.borrow().plan.clone()
    }

    /// The stages of the last plan, where they were noted.
    pub fn plan_stages(&self) -> Option<Arc<Document>> {
        self.notes.borrow().execution.as_ref().map(|execution| Arc::clone(&execution.stages))
    }

    /// Has lists of operations show a statement in the place of the command, unless its filter finds one
    /// document by `_id`: that takes no longer than the list.
    pub fn list_statement(&self, filter: &RawDocument, statement: impl FnOnce() -> RawDocumentBuf) {
        if self.blocking == BlockingMode::MayBlock && point_lookup(filter).is_none() {
            self.list_change(|request| request.command = statement());
        }
    }

    /// Changes what lists of operations show of the request, if they show it.
    pub fn list_change(&self, change: impl FnOnce(&mut RunningRequest)) {
        self.record.change(change);
    }

    /// The notes.
    pub fn take_notes(&mut self) -> RequestNotes {
        self.notes.take()
    }

    /// The operation with its blocking mode.
    pub fn caller(&self) -> Caller<'c> {
        Caller { blocking: self.blocking, operation: self.operation }
    }

    /// Fails if the operation has to end: for loops over statements and documents.
    pub fn check(&self) -> Result<(), CommandError> {
        Ok(self.operation.check().map_err(QueryError::from)?)
    }

    pub fn catalog(&self) -> &'c Catalog {
        &self.shared.catalog
    }

    /// The scope of the request's expressions, whose evaluations end with its operation.
    pub fn parse_scope(&self) -> ParseScope {
        self.watched_scope(&EvaluationWatch::of(self.record.operation()))
    }

    /// The same for a request that begins anew on another thread if an evaluation takes long, as it does if
    /// it misses a block.
    pub fn restartable_scope(&self) -> ParseScope {
        self.watched_scope(&EvaluationWatch::in_mode(self.record.operation(), self.blocking))
    }

    /// The same with a watch that a cursor keeps.
    pub fn watched_scope(&self, watch: &EvaluationWatch) -> ParseScope {
        let now_ms = self.shared.now_ms();
        let cluster_time = self.shared.cluster_clock.as_ref().map(|clock| clock.now(now_ms));
        ParseScope::at(now_ms)
            .watched_by(watch)
            .with_dice(&self.shared.dice)
            .at_cluster_time(cluster_time)
            .of_user(self.connection.login().map(|login| login.user_roles.clone()).unwrap_or_default())
            .optimised(self.shared.fail_points.optimisation())
    }

    /// The account of a new query.
    pub fn query_account(&self) -> QueryAccount {
        self.shared.catalog.query_memory().account()
    }

    pub fn cursors(&self) -> &'c Cursors {
        &self.shared.cursors
    }

    /// Answers `WouldBlock` where the caller must not block: for commands that may take long even if
    /// everything is cached.
    pub fn require_may_block(&self) -> Result<(), CommandError> {
        match self.blocking {
            BlockingMode::MayBlock => Ok(()),
            BlockingMode::CachedOnly => Err(CommandError::WouldBlock(None)),
        }
    }

    /// Refuses a command that only clients from before OP_MSG know, unless one of them asks.
    pub fn require_legacy_query(&self, request: &Request<'_>) -> Result<(), CommandError> {
        if self.form == RequestForm::LegacyQuery {
            return Ok(());
        }
        let (name, _) = request.command()?;
        Err(CommandError::failed(ErrorCode::CommandNotFound, format!("no such command: '{name}'")))
    }

    /// The namespace of a collection of this request's database, which may or may not be there.
    pub fn namespace(&self, collection: &str) -> Result<Namespace, CommandError> {
        Ok(Namespace::new(self.database, collection)?)
    }

    /// The namespace of a collection that is to be read.
    pub fn readable(&self, collection: &str) -> Result<Namespace, CommandError> {
        let namespace = self.namespace(collection)?;
        namespace.check_readable()?;
        Ok(namespace)
    }

    /// The namespace of a collection that is to be written to.
    pub fn writable(&mut self, collection: &str) -> Result<Namespace, CommandError> {
        let namespace = self.namespace(collection)?;
        self.check_writable(&namespace)?;
        Ok(namespace)
    }

    /// Refuses to write to a collection that belongs to the server.
    pub fn check_writable(&mut self, namespace: &Namespace) -> Result<(), CommandError> {
        if let Some(session) = self.session_use.as_mut().filter(|session| session.open().is_some())
            && namespace.is_system()
        {
            session.touch();
            return Err(CommandError::failed(
                ErrorCode::Location(50_791),
                format!("Cannot write to system collection {namespace} within a transaction."),
            ));
        }
        self.note_target(namespace);
        if namespace.collection().starts_with(BUCKETS_PREFIX) {
            return Err(CommandError::failed(
                ErrorCode::CommandNotSupported,
                format!("the buckets of a time series are written through the series, and not {namespace}"),
            ));
        }
        Ok(namespace.check_writable()?)
    }

    /// Refuses a transaction where it must not block, if the engine would not answer its first read there: a
    /// begin may already cost a round trip.
    pub fn require_reads(&self) -> Result<(), StorageError> {
        match (self.blocking, self.shared.cached_reads) {
            (BlockingMode::CachedOnly, CachedReads::NotTold) => Err(StorageError::would_block()),
            _ => Ok(()),
        }
    }

    /// Begins a reader of the newest snapshot.
    pub fn begin_read(&self) -> Result<Box<dyn Transaction>, StorageError> {
        self.require_reads()?;
        self.catalog().begin(Begin::READ)
    }

    /// The open transaction of its session, if the request is a statement of it.
    pub fn open_transaction(&self) -> Option<&Arc<OpenTransaction>> {
        self.session_use.as_ref()?.open()
    }

    /// Whether the statement has all of its effect or none: it runs in one transaction, whatever its size.
    /// One of an open transaction does, because a failure ends that.
    pub fn is_atomic(&self) -> bool {
        self.open_transaction().is_some() || self.shared.atomic_statements.load(Ordering::Relaxed)
    }

    /// Whether a failure undoes the batch as a whole. In an open transaction it ends that.
    pub fn undoes_failed_batch(&self) -> bool {
        self.open_transaction().is_none() && self.is_atomic()
    }

    /// The number of the statement that an earlier request has carried out.
    pub fn retried_statement(&self) -> i32 {
        self.session_use.as_ref().and_then(|session| session.retried().first().copied()).unwrap_or(0)
    }

    /// Whether the request is a write that may repeat an earlier one.
    pub fn is_retryable_write(&self) -> bool {
        self.session_use.as_ref().is_some_and(|session| session.is_write())
    }

    /// The collection of this name in the database of the request, as a statement reads it.
    pub fn collection(&self, name: &str) -> Result<Option<Arc<Collection>>, CommandError> {
        match (self.open_transaction(), &self.past) {
            (None, Some(held)) => Ok(held.names.collection(self.catalog(), self.database, name)),
            (None, None) => Ok(collection_now(self.catalog(), self.database, name)),
            (Some(open), _) => {
                let held = open.lock()?;
                match held.as_ref() {
                    Some(transaction) => Ok(transaction.collection(self.catalog(), self.database, name)?),
                    None => Ok(None),
                }
            }
        }
    }

    /// The collection for a statement that writes.
    ///
    /// # Errors
    /// Among others, the name is one of a view.
    pub fn lease(&mut self, namespace: &Namespace) -> Result<Option<Lease>, CommandError> {
        let caller = self.caller();
        let lease = match &mut self.session_use {
            Some(session) if session.open().is_some() => {
                session.touch();
                lease_in_session(session, &self.shared.catalog, namespace, caller)?
            }
            _ => self.catalog().lease(namespace.database(), namespace.collection(), caller)?,
        };
        if lease.is_none() {
            self.refuse_view(namespace)?;
        }
        Ok(lease)
    }

    /// The collection for a statement that writes; created if there is none.
    pub fn lease_or_create(&mut self, namespace: &Namespace) -> Result<Lease, CommandError> {
        loop {
            if let Some(lease) = self.lease(namespace)? {
                return Ok(lease);
            }
            // Creating waits for the device.
            self.require_may_block()?;
            match self.create_collection(namespace, RawDocumentBuf::new()) {
                Ok(()) => self.audit_creation(namespace),
                Err(CatalogError::CollectionExists { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Creates an empty collection: at once, or with the commit of the session's transaction. Blocks.
    pub fn create_collection(
        &mut self,
        namespace: &Namespace,
        options: RawDocumentBuf,
    ) -> Result<(), CatalogError> {
        let (catalog, uuid) = (self.catalog(), self.shared.new_uuid());
        let options = self.shared.options.default_layout.complete(options);
        if let Some(session) = self.session_use.as_mut().filter(|session| session.open().is_some()) {
            session.touch();
            let held = session.open().and_then(|open| open.lock().ok());
            // One that has ended meanwhile is run again by its client.
            let mut held = held.ok_or_else(StorageError::conflict)?;
            let transaction = held.as_mut().ok_or_else(StorageError::conflict)?;
            return transaction.create_collection(catalog, namespace, options, uuid).map(|_| ());
        }
        catalog.create_collection(namespace, options, uuid).map(|_| ())
    }

    /// Whether the operation has to end because its collection was dropped.
    pub fn is_collection_dropped(&self) -> bool {
        self.operation.interruption() == Some(Interruption::CollectionDropped)
    }

    /// The failure of a statement whose collection was dropped.
    pub fn drop_failure(&self) -> Failure {
        let mut sentence = None;
        self.record.change(|request| sentence.clone_from(&request.drop_text));
        let sentence = sentence.unwrap_or_else(|| Interruption::CollectionDropped.to_string());
        Failure::new(ErrorCode::QueryPlanKilled, sentence)
    }

    /// Drops a collection. Requests and cursors that work on it end, and are told why.
    pub fn drop_collection(&self, namespace: &Namespace) -> Result<Arc<Collection>, CatalogError> {
        let sentence =
            |collection: &Collection| format!("collection dropped. UUID {}", uuid_text(collection.uuid()));
        let dropped = self.catalog().drop_collection(namespace, self.operation, &|collection| {
            let sentence = sentence(collection);
            self.shared.running.end_users_of(collection.full_name(), &sentence, self.record);
        })?;
        self.cursors().end_users_of(dropped.full_name(), &sentence(&dropped));
        if namespace.collection() == PROFILE_COLLECTION {
            system_profile::forget(self.shared, namespace.database());
        }
        Ok(dropped)
    }

    /// Commits as durably as the client wants it. The reply waits for the last of these commits.
    pub fn commit(&mut self, mut transaction: WriteTransaction) -> Result<(), CommandError> {
        let durability = self.concern.durability;
        if let Some(session) = &mut self.session_use {
            if self.shared.catalog.is_shared() {
                session.check_record(&transaction)?;
            }
            session.write_record(&mut transaction, durability, self.shared.now_ms())?;
        }
        let committed = transaction.commit(durability);
        if let Some(session) = &mut self.session_use {
            match &committed {
                Ok(_) => session.keep_news(),
                Err(error) => session.doubt_if_undetermined(error),
            }
        }
        let receipt = committed?;
        self.wait_for(receipt);
        Ok(())
    }

    /// Has the reply wait until this commit is as durable as the client wants it.
    pub fn wait_for(&mut self, receipt: CommitReceipt) {
        let durability = self.concern.durability;
        // A transaction without writes, after one with writes, has nothing to wait for.
        if self.pending.is_none_or(|have| have.receipt.lsn <= receipt.lsn) {
            self.pending = Some(PendingCommit { receipt, durability });
        }
    }

    /// The address by which clients of a replica set reach this server.
    pub fn address(&self) -> String {
        let options = &self.shared.options;
        let advertised = options.persona.advertised.as_deref();
        self.connection.address(advertised).unwrap_or(&options.address).to_owned()
    }

    /// Has the reply wait for this moment.
    pub fn await_moment(&mut self, moment: Monotonic) {
        self.awaited = Some(moment);
    }

    /// The moment that the reply waits for.
    pub fn take_awaited_moment(&mut self) -> Option<Monotonic> {
        self.awaited.take()
    }

    /// Has the reply wait until the last commit of the connection is as durable as this.
    pub fn await_last_commit(&mut self, durability: Durability) {
        self.pending = self.connection.last_commit().map(|receipt| PendingCommit { receipt, durability });
    }

    /// Whether a read is answered as soon as it has its documents, from the newest snapshot.
    pub fn reads_plainly(&self) -> bool {
        !matches!(self.read.level, ReadLevel::Snapshot | ReadLevel::Linearizable)
    }

    /// The time of the snapshot that a read with read concern `snapshot` reads.
    pub fn read_time(&self) -> Option<Timestamp> {
        self.past.as_ref().map(|held| held.time)
    }

    /// Has the reply of a read wait until all that it has seen is on the device. The record that is written
    /// comes later in the log.
    ///
    /// In a store of several servers nothing is seen before it is on the devices of the cluster.
    pub fn confirm_read(&mut self) -> Result<(), CommandError> {
        if self.catalog().is_shared() {
            return Ok(());
        }
        let receipt = self.catalog().commit_marker(Durability::Synced)?;
        self.pending = Some(PendingCommit { receipt, durability: Durability::Synced });
        Ok(())
    }

    /// The commit that the reply waits for.
    pub fn take_pending_commit(&mut self) -> Option<PendingCommit> {
        self.pending.take()
    }
}

/// The lease of a statement in a session's transaction.
#[cold]
fn lease_in_session(
    session: &SessionUse,
    catalog: &Catalog,
    namespace: &Namespace,
    caller: Caller<'_>,
) -> Result<Option<Lease>, CommandError> {
    let Some(open) = session.open() else { return Ok(None) };
    let mut held = open.lock()?;
    let Some(transaction) = &mut *held else { return Ok(None) };
    Ok(transaction.lease(catalog, namespace, caller)?)
}

/// The function of a command. It reads the request and writes its fields into the reply.
pub(crate) type Run =
    fn(&mut Context<'_>, &Request<'_>, &mut pando_document::DocumentWriter<'_>) -> Result<(), CommandError>;
