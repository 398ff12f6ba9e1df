//! The entry of the crate: a request goes in, a reply document comes out.

mod audit_calls;
mod authorization;
mod cluster_times;

mod connection_end;
mod fail_point_effect;
mod load_rules;
mod login_renewal;
mod opening;
mod request_counts;
mod session_turn;
mod start_parameters;
mod stopping;
mod suspended_request;
mod write_passage;

pub use self::start_parameters::{StartParameterError, is_parameter};

use std::sync::Arc;
use std::time::Duration;

use pando_catalog::{
    Begin, BlockingMode, Catalog, CatalogError, CollectionReport, DeviceReads, Durability, Interruption,
    Operation, OperationWait, SharedEngine, StorageError, WriteError, check_database, verify_collection,
};
use pando_document::{DocumentWriter, RawValue};
use pando_environment::{Environment, MissedRead, Monotonic};
use pando_query::QueryError;
use pando_query::explain::PlanSummary;

use self::cluster_times::CommandReads;
use self::fail_point_effect::ClosedConnection;
use self::opening::{open_catalog, persona_of};
use self::session_turn::{check_begun, joined};
use crate::clock_store;
use crate::command_name::Scope;
use crate::connection_transaction::JoiningCommand;
use crate::context::{Addressed, Attempt, Context, PendingCommit, RequestForm, Suspension};
use crate::default_concerns::DefaultConcerns;
use crate::durability_wait::DurabilityWait;
use crate::error::{CommandError, Failure};
use crate::fail_points::FailCommand;
use crate::follower::Follower;
use crate::generic_arguments::{Participation, TransactionSupport};
use crate::handled::Handled;
use crate::housekeeping::{self, Housekeeper};
use crate::last_write::asks_last_write;
use crate::operation_counters::OperationKind;
use crate::operations::{ConnectionRecord, RequestFacts, RunningRequest};
use crate::profiler::ObservedRequest;
use crate::registry::CommandRow;
use crate::reply_timers::TimerWait;
use crate::request_notes::RequestNotes;
use crate::server_counters::MessageTraffic;
use crate::session_id::SessionId;
use crate::sessions::SessionUse;
use crate::shared_state::{CommandsOptions, SharedState};
use crate::suspended_find::SuspendedFind;
use crate::system_profile::{self, PROFILE_COLLECTION};
use crate::ttl_monitor::TtlMonitor;
use crate::{ConnectionState, ErrorCode, Request, registry, topology_version};

/// All commands over one engine.
pub struct Commands {
    pub(crate) shared: Arc<SharedState>,
    housekeeper: Housekeeper,
    ttl_monitor: TtlMonitor,
    follower: Follower,
}

/// The remains of a request beside its reply.
#[derive(Default)]
struct Aftermath<'r> {
    /// The commit that the reply waits for.
    pending: Option<PendingCommit>,
    /// The moment that the reply waits for.
    awaited: Option<Monotonic>,
    /// Whether the client waits for the reply.
    wants_answer: bool,
    /// The wait after which the request is handled again.
    suspended: Option<Suspension>,
    notes: RequestNotes,
    failure: Option<Failure>,
    delivery: Delivery,
    /// The fail point that the request has met, if the reply shows it.
    fail_point: Option<Arc<FailCommand>>,
    /// The place of the command in the registry.
    command: Option<usize>,
    /// Its database, and the collection that it names.
    place: Option<(&'r str, &'r str)>,
}

/// The fate of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Delivery {
    /// It is sent.
    #[default]
    Sent,
    /// A fail point closes the connection instead.
    ConnectionClosed,
}

/// A request that may be carried out.
struct Admitted<'r> {
    command: &'static CommandRow,
    /// The value of the command's own field.
    value: RawValue<'r>,
    addressed: Addressed<'r>,
    /// The use of its session, if it has a transaction number.
    session_use: Option<Box<SessionUse>>,
}

impl Commands {
    /// Opens the catalog of an engine. Blocks.
    pub fn open(
        engine: SharedEngine,
        environment: Environment,
        mut options: CommandsOptions,
    ) -> Result<Commands, CatalogError> {
        let catalog = open_catalog(engine, &environment, &options)?;
        options.persona.persona = persona_of(&catalog, options.persona.persona);
        let cluster_clock = clock_store::open(&catalog, &environment, &options);
        let commands = registry::command_names();
        let chores = housekeeping::chore_names();
        let shared = SharedState::new(catalog, environment, options, cluster_clock, commands, chores);
        let shared = Arc::new(shared);
        let stored = DefaultConcerns::stored(&shared.catalog, shared.started_ms).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read the default concerns in config.settings; w: 1 holds");
            DefaultConcerns::implicit(shared.started_ms)
        });
        shared.default_concerns.store(Arc::new(stored));
        // A killed server must not have given out times that a later start does not know of.
        clock_store::store(&shared);
        let follower = Follower::start(&shared)?;
        let housekeeper = Housekeeper::start(&shared);
        let ttl_monitor = TtlMonitor::start(&shared);
        Ok(Commands { shared, housekeeper, ttl_monitor, follower })
    }

    /// Handles one request. The reply document is appended to `reply`, unless this answers
    /// [`Handled::WouldBlock`].
    pub fn handle(
        &self,
        connection: &mut ConnectionState,
        request: &Request<'_>,
        blocking: BlockingMode,
        reply: &mut Vec<u8>,
    ) -> Handled {
        self.handle_for(connection, request, RequestForm::Message, blocking, reply)
    }

    /// See [`Commands::handle`]. The client of an older write is not interrupted when it hangs up.
    pub(crate) fn handle_for(
        &self,
        connection: &mut ConnectionState,
        request: &Request<'_>,
        form: RequestForm,
        blocking: BlockingMode,
        reply: &mut Vec<u8>,
    ) -> Handled {
        let is_question = || request.command().is_ok_and(|(name, _)| asks_last_write(name));
        if connection.last_write().is_some() && !is_question() {
            connection.forget_last_write();
        }
        let start = reply.len();
        let mut aftermath = Aftermath::default();
        let (record, began) = connection.begin_request(&self.shared.running, self.shared.environment.clock());
        let attempt = Attempt { blocking, record: &record, began, form };
        let may_block = blocking == BlockingMode::MayBlock;
        connection.end_tail_list();
        if let Some(wait) = connection.wait_mut().as_mut().filter(|_| may_block) {
            wait.end_list();
        }
        let owner = self.shared.access.session_owner(connection.login());
        let _charge = may_block.then(|| record.operation().device().charge_thread());
        let outcome = self.run(connection, request, attempt, reply, &mut aftermath);
        // A request that did not get as far as to be listed is not listed here either.
        let ended = if may_block { record.end() } else { None };
        let drop_text = ended.as_ref().and_then(|request| request.drop_text.clone());
        match outcome {
            Ok(()) => {}
            Err(CommandError::WouldBlock(missed)) => {
                reply.truncate(start);
                if let Some(wait) = aftermath.suspended {
                    record.operation().forget_work();
                    connection.expect_attempt(began);
                    let waits = || RunningRequest::of_waiting(request.body, owner, began);
                    let ends_with_client = aftermath.wants_answer;
                    let statement = aftermath.notes.waiting_statement;
                    let listed = || RunningRequest { ends_with_client, ..ended.unwrap_or_else(waits) };
                    let listed = || listed().of_statement(statement);
                    return Handled::Again(self.suspended(connection, &record, wait, listed));
                }
                if blocking == BlockingMode::CachedOnly {
                    return decline(connection, request, &record, began, missed);
                }
                let sentence = "a request that may block was told to wait for the device: report this defect";
                self.write_failure(reply, &Failure::new(ErrorCode::InternalError, sentence));
            }
            Err(CommandError::Failed(failure)) => {
                reply.truncate(start);
                let failure = interrupted_or(*failure, record.operation(), drop_text);
                self.write_failure(reply, &failure);
                self.audit_refusal(connection, request, &failure);
                aftermath.failure = Some(failure);
            }
        }
        connection.wait_mut().take();
        let took = self.shared.environment.clock().monotonic().since(began);
        self.tell_of_damage(&mut aftermath);
        self.count(&record, took, &aftermath);
        if self.shared.profiler.is_of_interest(took) {
            self.observe(request, &record, took, &aftermath, reply.len() - start);
        }
        if let Some(PendingCommit { receipt, .. }) = aftermath.pending {
            connection.note_commit(receipt);
        }
        let listed = || ended.unwrap_or_else(|| RunningRequest::of_waiting(request.body, owner, began));
        self.handled(&aftermath, &record, listed)
    }

    /// Whether the reply may go at once, or the wait before it.
    fn handled(
        &self,
        aftermath: &Aftermath<'_>,
        record: &Arc<ConnectionRecord>,
        listed: impl FnOnce() -> RunningRequest,
    ) -> Handled {
        if aftermath.delivery == Delivery::ConnectionClosed {
            return Handled::ReplyLater(Box::new(ClosedConnection));
        }
        if let Some(moment) = aftermath.awaited {
            let timers = Arc::clone(&self.shared.reply_timers);
            return Handled::ReplyLater(Box::new(TimerWait { timers, moment }));
        }
        match aftermath.pending {
            Some(PendingCommit { receipt, durability: Durability::Synced }) => {
                Handled::ReplyLater(Box::new(DurabilityWait {
                    engine: Arc::clone(self.shared.catalog.engine()),
                    receipt,
                    durability: Durability::Synced,
                    listed: self.shared.running.list_wait(record, listed(), OperationWait::GroupCommit),
                }))
            }
            // A logged commit is in the kernel when it returns, and the others promise no durability.
            _ => Handled::Reply,
        }
    }

    /// Hands a request that has ended to the profiler.
    #[cold]
    fn observe(
        &self,
        request: &Request<'_>,
        record: &ConnectionRecord,
        took: Duration,
        aftermath: &Aftermath<'_>,
        reply_bytes: usize,
    ) {
        let Ok(Some(RawValue::String(database))) = request.body.get("$db") else { return };
        let observed = ObservedRequest {
            request,
            database,
            record,
            took,
            now_ms: self.shared.now_ms(),
            usage: record.operation().usage().figures(),
            reads: record.operation().device().reads(),
            notes: &aftermath.notes,
            failure: aftermath.failure.as_ref(),
            reply_bytes,
        };
        self.shared.profiler.observe(&observed, &**self.shared.environment.random());
    }

    /// Runs the command, or goes on with its suspended find. `aftermath` is set even if the command fails.
    fn run<'r>(
        &self,
        connection: &mut ConnectionState,
        request: &Request<'r>,
        attempt: Attempt<'_>,
        reply: &mut Vec<u8>,
        aftermath: &mut Aftermath<'r>,
    ) -> Result<(), CommandError> {
        request.check_nesting()?;
        aftermath.command = registry::position_of(request);
        self.authorize(connection, request, aftermath.command, attempt.blocking)?;
        if let Some(find) = connection.take_suspended(request) {
            aftermath.notes = RequestNotes::of_point_lookup();
            aftermath.place = find_place(request);
            let returned = self.resume(connection, request, find, attempt, reply)?;
            aftermath.notes.returned = Some(returned);
            return Ok(());
        }
        if !connection.has_worked() && !is_greeting(request) {
            connection.note_work();
        }
        self.check_not_stopping(request, aftermath.command, attempt.began)?;
        self.meet_fail_point(request, attempt, aftermath)?;
        let admitted = self.admit(request, aftermath.command, attempt, connection)?;
        let Admitted { command, value, addressed, session_use } = admitted;
        aftermath.wants_answer = addressed.concern.wants_answer();
        let collection = match command.name {
            "getMore" => request.body.get("collection")?,
            _ => Some(value),
        };
        let collection = collection.and_then(|name| name.as_str());
        aftermath.place = collection.map(|collection| (addressed.database, collection));
        let concern = addressed.concern;
        let mut context = Context::new(&self.shared, connection, attempt, addressed);
        context.session_use = session_use;
        self.select_snapshot(&mut context, collection, attempt)?;
        if value.as_str() == Some(PROFILE_COLLECTION) {
            // Its reader sees the requests that have ended before.
            context.require_may_block()?;
            system_profile::write_queue(&self.shared);
        }
        let mut writer = DocumentWriter::begin(reply);
        let outcome = self.carry_out(command, &mut context, request, &mut writer);
        self.audit_end(context.connection, request, &outcome);
        let session_use = context.session_use.take();
        self.meet_write_point(command, session_use.as_deref(), aftermath);
        // The client hears of a failed statement only when the statements that committed before it are
        // durable.
        aftermath.pending = context.take_pending_commit();
        aftermath.awaited = context.take_awaited_moment();
        aftermath.notes = context.take_notes();
        aftermath.suspended = context.take_suspended();
        if let (Some(kind), Ok(()) | Err(CommandError::Failed(_))) = (command.counted, &outcome) {
            self.shared.operations.add(kind, 1);
        }
        let outcome = match session_use {
            None => outcome,
            Some(session) => {
                let outcome = outcome.and_then(|()| check_begun(&session, attempt.record));
                self.leave_session(*session, command.generic.transactions, attempt.began, outcome)
            }
        };
        self.move_clock(command.generic.writes);
        self.tell_broken_promise(request, concern, outcome, &mut writer)?;
        self.write_fail_point(command, request, aftermath, &mut writer);
        writer.append("ok", RawValue::Double(1.0));
        self.write_times(&mut writer);
        writer.finish();
        Ok(())
    }

    /// Checks the fields that every command may have, and lists the request if it may wait. `position` is
    /// that of the command in the registry.
    fn admit<'r>(
        &self,
        request: &Request<'r>,
        position: Option<usize>,
        attempt: Attempt<'_>,
        connection: &ConnectionState,
    ) -> Result<Admitted<'r>, CommandError> {
        let bound = connection.transaction();
        let generic = self.read_generic_arguments(request, connection)?;
        let (name, value) = request.command()?;
        let command =
            position.map(|position| &registry::COMMANDS[position]).ok_or_else(|| registry::unknown(name))?;
        let (database, session) = (generic.database, generic.session);
        generic.api.check_command(command.name)?;
        let ends_bound = bound.is_some() && command.generic.transactions == TransactionSupport::End;
        if command.scope == Scope::Admin && database != "admin" && !ends_bound {
            return Err(only_on_admin(command.name));
        }
        check_database(database)?;
        let time_limit = generic.time_limit().filter(|_| command.generic.time_limit.bounds_work());
        self.shared.fail_points.check_time_limit(time_limit)?;
        let statement_ids = generic.transaction.statement_ids;
        let collection = value.as_str().unwrap_or_default();
        let api = generic.api;
        let checked = generic.check(command.name, collection, &command.generic)?;
        api.check_fields(command.name, request.body)?;
        let concern = checked.concern;
        let joining = JoiningCommand {
            name: command.name,
            support: &command.generic,
            database,
            collection,
            participation: checked.participation,
        };
        let (participation, session) = joined(connection, joining, session)?;
        if let Some(limit) = time_limit {
            attempt.record.operation().limit_time(attempt.began, limit);
        }
        if let Some(session) = session {
            self.shared.cursors.touch_session(session, || self.shared.now_ms());
        }
        if attempt.blocking == BlockingMode::MayBlock {
            let wants_answer = concern.wants_answer() && attempt.form != RequestForm::LegacyWrite;
            let facts = RequestFacts { database, session, began: attempt.began, wants_answer };
            self.shared.running.list(attempt.record, RunningRequest::of(request.body, facts));
        }
        self.meet_times(&checked, CommandReads { database, collection, request }, attempt)?;
        let addressed = Addressed { database, session, concern, read: checked.read };
        let session_use = match (participation, session) {
            (Participation::Alone, _) | (_, None) => None,
            (participation, Some(session)) => {
                let support = command.generic.transactions;
                let entry = self.entry(participation, support, statement_ids, attempt.blocking);
                let session_use = self.enter_session(session, &entry, attempt, checked.read)?;
                self.renew_snapshot(bound, &session_use)?;
                if let Some(open) = session_use.open() {
                    let lifetime = self.shared.sessions.lifetime();
                    attempt.record.change(|listed| listed.transaction = Some(open.listed(lifetime)));
                }
                Some(session_use)
            }
        };
        Ok(Admitted { command, value, addressed, session_use })
    }

    /// Goes on with a find that waited for the device. Gives the number of documents that it returns.
    fn resume(
        &self,
        connection: &mut ConnectionState,
        request: &Request<'_>,
        find: Box<SuspendedFind>,
        attempt: Attempt<'_>,
        reply: &mut Vec<u8>,
    ) -> Result<u64, CommandError> {
        if attempt.blocking == BlockingMode::MayBlock {
            let database = find.lookup().collection.namespace().database();
            let session = request.body.get("lsid").ok().flatten().and_then(|lsid| lsid.as_document());
            let owner = self.shared.access.session_owner(connection.login());
            let session = session.and_then(|session| SessionId::of(session, owner));
            let facts = RequestFacts { database, session, began: attempt.began, wants_answer: true };
            let listed = RunningRequest { plan: PlanSummary::Id, ..RunningRequest::of(request.body, facts) };
            self.shared.running.list(attempt.record, listed);
        }
        let mut writer = DocumentWriter::begin(reply);
        let outcome = find.lookup().answer(attempt.caller(), &mut writer);
        match outcome {
            Err(CommandError::WouldBlock(missed)) => {
                connection.suspend(find);
                return Err(CommandError::WouldBlock(missed));
            }
            Ok(_) | Err(CommandError::Failed(_)) => self.shared.operations.add(OperationKind::Query, 1),
        }
        let returned = outcome?;
        writer.append("ok", RawValue::Double(1.0));
        self.write_times(&mut writer);
        writer.finish();
        Ok(returned)
    }

    /// Counts a message that the network has brought on a connection, and its reply.
    pub fn count_message(&self, connection: &ConnectionState, traffic: MessageTraffic) {
        self.shared.counters.count_message(connection.id(), traffic);
    }

    /// The state that all requests share.
    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Arc<SharedState> {
        &self.shared
    }

    /// The catalog, for tools in the same process.
    pub fn catalog(&self) -> &Catalog {
        &self.shared.catalog
    }

    /// Compares the documents of every collection with their index entries. Blocks; reads everything.
    ///
    /// # Errors
    /// A collection that cannot be read. The reports list the disagreements.
    pub fn verify_collections(&self) -> Result<Vec<(String, CollectionReport)>, WriteError> {
        let catalog = &self.shared.catalog;
        let mut reports = Vec::new();
        for database in catalog.databases() {
            for collection in catalog.collections(&database) {
                let transaction = catalog.begin(Begin::READ)?;
                let report = verify_collection(&collection, &*transaction, &Operation::default())?;
                reports.push((collection.full_name().to_owned(), report));
            }
        }
        Ok(reports)
    }

    /// Whether there are no users and no roles, as far as that can be read now.
    pub fn lacks_accounts(&self) -> bool {
        self.shared.access.is_vacant(&self.shared.catalog, BlockingMode::MayBlock).unwrap_or(false)
    }

    /// Interrupts the requests under way and those that still come: the store is about to be closed.
    pub fn interrupt_all(&self) {
        self.release_replies();
        self.shared.running.begin_closing();
    }

    /// Ends the waits for a moment, and lets no other request wait for one: the server is about to stop.
    pub fn release_replies(&self) {
        self.shared.reply_timers.close();
    }

    /// Ends the removal of expired documents and the other periodic work, for a caller that only reads.
    /// Blocks.
    pub fn stop_periodic_work(&self) {
        self.ttl_monitor.stop();
        self.housekeeper.stop();
    }

    /// Ends the periodic work, closes the open cursors and then the engine, cleanly. Blocks.
    pub fn close(&self) -> Result<(), StorageError> {
        self.stop_periodic_work();
        self.follower.stop_builds(&self.shared);
        self.shared.reply_timers.stop();
        self.shared.wait_timers.stop();
        clock_store::store(&self.shared);
        system_profile::write_queue(&self.shared);
        self.shared.cursors.clear();
        self.shared.held_snapshots.clear();
        self.shared.sessions.clear();
        if let Err(error) = self.shared.catalog.leave() {
            tracing::warn!(%error, "the other servers of the store wait for this one until they hold it for dead");
        }
        self.follower.stop();
        self.shared.catalog.engine().close()
    }
}

fn only_on_admin(command: &str) -> CommandError {
    let sentence = format!("{command} may only be run against the admin database.");
    CommandError::failed(ErrorCode::Unauthorized, sentence)
}

/// Has the caller handle a request again where it may wait, or after the missed read.
fn decline(
    connection: &mut ConnectionState,
    request: &Request<'_>,
    record: &ConnectionRecord,
    began: Monotonic,
    missed: Option<Arc<dyn MissedRead>>,
) -> Handled {
    connection.expect_attempt(began);
    // A `getMore` keeps the documents that it has fetched. All others begin once more.
    if !matches!(request.command(), Ok(("getMore", _))) {
        record.operation().forget_work();
    }
    if let Some(read) = &missed {
        // The caller makes it before the next attempt.
        let reads = DeviceReads { pages: 1, bytes: read.length() as u64, ..DeviceReads::NONE };
        record.operation().device().add(reads);
    }
    Handled::WouldBlock(missed)
}

/// Whether a request only asks what the server is, or nothing at all.
fn is_greeting(request: &Request<'_>) -> bool {
    request.command().map_or(true, |(name, _)| matches!(name, "hello" | "isMaster" | "ismaster"))
}

/// The database of a find, and the collection that it names.
fn find_place<'r>(request: &Request<'r>) -> Option<(&'r str, &'r str)> {
    let collection = request.command().ok()?.1;
    Some((request.body.get("$db").ok()??.as_str()?, collection.as_str()?))
}

/// The failure that the client is told. After an interruption, any other one comes from it.
fn interrupted_or(failure: Failure, operation: &Operation, drop_text: Option<String>) -> Failure {
    if failure.code == ErrorCode::HostUnreachable {
        // The engine has ended a wait for its cluster, also where the time of the operation was over.
        let _noted = operation.check_now();
    }
    let Some(interruption) = operation.interruption() else { return failure };
    match (interruption, drop_text) {
        (Interruption::CollectionDropped, Some(text)) => Failure::new(ErrorCode::QueryPlanKilled, text),
        _ => match CommandError::from(QueryError::from(interruption)) {
            // It may name its command.
            CommandError::Failed(told) if told.code == failure.code => failure,
            CommandError::Failed(told) => *told,
            CommandError::WouldBlock(_) => failure,
        },
    }
}

impl Commands {
    /// Writes the reply of a failed command.
    pub(crate) fn write_failure(&self, reply: &mut Vec<u8>, failure: &Failure) {
        let mut writer = DocumentWriter::begin(reply);
        if topology_version::is_carried_by(failure.code.code(), self.shared.options.persona.persona) {
            topology_version::write(self.shared.process_id, &mut writer);
        }
        failure.write(&mut writer);
        self.write_times(&mut writer);
        writer.finish();
    }
}
