//! The entry of the crate: a request goes in, a reply document comes out.

use std::sync::Arc;

use pando_catalog::{
    Begin, BlockingMode, Caller, Catalog, CatalogError, CollectionReport, CommitReceipt, Durability,
    DurabilityWaker, SharedEngine, StorageError, WriteError, check_database, verify_collection,
};
use pando_document::{DocumentWriter, RawValue};
use pando_environment::{Environment, MissedRead, Monotonic};

use crate::command_name::Scope;
use crate::context::{Context, PendingCommit};
use crate::error::{CommandError, Failure};
use crate::generic_arguments::GenericArguments;
use crate::operation_counters::OperationKind;
use crate::shared_state::{CommandsOptions, SharedState};
use crate::suspended_find::SuspendedFind;
use crate::{ConnectionState, ErrorCode, Request, registry};

/// All commands over one engine.
pub struct Commands {
    shared: Arc<SharedState>,
}

/// An attempt to handle a request.
#[derive(Clone, Copy)]
struct Attempt<'a> {
    caller: Caller<'a>,
    /// The first attempt of the same request, from which its time counts.
    began: Monotonic,
}

/// The outcome of a request.
pub enum Handled {
    /// The reply document stands in the buffer and may be sent.
    Reply,
    /// The reply document stands in the buffer and must not be sent before the wait is over.
    ReplyLater(Box<dyn ReplyWait>),
    /// The answer needs the device. The request has changed and written nothing. Handle it again with
    /// [`BlockingMode::MayBlock`], or after the missed read was made, where the engine can name it. The next
    /// request of the connection is the same one; until then the connection keeps the state of a suspended
    /// find.
    WouldBlock(Option<Arc<dyn MissedRead>>),
}

/// The condition of a reply that has to wait: as a rule, that a commit is durable.
pub trait ReplyWait: Send {
    /// Calls `waker` once: with `Ok` when the reply may be sent; with the error when the reply will never be
    /// true. Then the connection has to be closed without it. May call on this thread, at once. Never blocks.
    fn notify(self: Box<Self>, waker: DurabilityWaker);

    /// Waits on this thread, for callers in the same process.
    ///
    /// # Errors
    /// The reply will never be true.
    fn wait(self: Box<Self>) -> Result<(), StorageError>;
}

/// Waits until the log has reached a commit.
struct DurabilityWait {
    engine: SharedEngine,
    receipt: CommitReceipt,
    durability: Durability,
}

impl ReplyWait for DurabilityWait {
    fn notify(self: Box<Self>, waker: DurabilityWaker) {
        self.engine.when_durable(self.receipt, self.durability, waker);
    }

    fn wait(self: Box<Self>) -> Result<(), StorageError> {
        self.engine.wait_durable(self.receipt, self.durability)
    }
}

impl Commands {
    /// Opens the catalog of an engine. Blocks.
    pub fn open(
        engine: SharedEngine,
        environment: Environment,
        options: CommandsOptions,
    ) -> Result<Commands, CatalogError> {
        let catalog = Catalog::open(engine)?;
        let commands = registry::command_names();
        Ok(Commands { shared: Arc::new(SharedState::new(catalog, environment, options, commands)) })
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
        let start = reply.len();
        let mut pending = None;
        connection.count_in(&self.shared.connections);
        let (operation, began) = connection.begin_operation(self.shared.environment.clock());
        let caller = Caller { blocking, operation: &operation };
        match self.run(connection, request, Attempt { caller, began }, reply, &mut pending) {
            Ok(()) => {}
            Err(CommandError::WouldBlock(missed)) => {
                reply.truncate(start);
                if blocking == BlockingMode::CachedOnly {
                    connection.expect_attempt(began);
                    return Handled::WouldBlock(missed);
                }
                let sentence = "a request that may block was told to wait for the device: report this defect";
                write_failure(reply, &Failure::new(ErrorCode::InternalError, sentence));
            }
            Err(CommandError::Failed(failure)) => {
                reply.truncate(start);
                write_failure(reply, &failure);
            }
        }
        match pending {
            Some(PendingCommit { receipt, durability: Durability::Synced }) => {
                Handled::ReplyLater(Box::new(DurabilityWait {
                    engine: Arc::clone(self.shared.catalog.engine()),
                    receipt,
                    durability: Durability::Synced,
                }))
            }
            // A logged commit is in the kernel when it returns, and the others promise no durability.
            _ => Handled::Reply,
        }
    }

    /// Runs the command, or goes on with its suspended find. `pending` is set even if the command fails.
    fn run(
        &self,
        connection: &mut ConnectionState,
        request: &Request<'_>,
        attempt: Attempt<'_>,
        reply: &mut Vec<u8>,
        pending: &mut Option<PendingCommit>,
    ) -> Result<(), CommandError> {
        let caller = attempt.caller;
        if let Some(find) = connection.take_suspended(request) {
            return self.resume(connection, find, caller, reply);
        }
        let generic = GenericArguments::read(request)?;
        let (name, _) = request.command()?;
        let command = registry::find(name).ok_or_else(|| {
            CommandError::failed(ErrorCode::CommandNotFound, format!("no such command: '{name}'"))
        })?;
        let database = generic.database;
        if command.scope == Scope::Admin && database != "admin" {
            return Err(CommandError::failed(
                ErrorCode::Unauthorized,
                format!("{} may only be run against the admin database.", command.name),
            ));
        }
        check_database(database)?;
        let time_limit = generic.time_limit();
        let concern = generic.check(command.name, &command.generic)?;
        if let Some(limit) = time_limit {
            caller.operation.limit_time(attempt.began, limit);
        }
        let mut context = Context::new(&self.shared, connection, caller, database, concern);
        let mut writer = DocumentWriter::begin(reply);
        let outcome = (command.run)(&mut context, request, &mut writer);
        // The client hears of a failed statement only when the statements that committed before it are
        // durable.
        *pending = context.take_pending_commit();
        if let (Some(kind), Ok(()) | Err(CommandError::Failed(_))) = (command.counted, &outcome) {
            self.shared.operations.add(kind, 1);
        }
        outcome?;
        writer.append("ok", RawValue::Double(1.0));
        writer.finish();
        Ok(())
    }

    /// Goes on with a find that waited for the device.
    fn resume(
        &self,
        connection: &mut ConnectionState,
        find: Box<SuspendedFind>,
        caller: Caller<'_>,
        reply: &mut Vec<u8>,
    ) -> Result<(), CommandError> {
        let mut writer = DocumentWriter::begin(reply);
        let outcome = find.lookup().answer(caller, &mut writer);
        match outcome {
            Err(CommandError::WouldBlock(missed)) => {
                connection.suspend(find);
                return Err(CommandError::WouldBlock(missed));
            }
            Ok(()) | Err(CommandError::Failed(_)) => self.shared.operations.add(OperationKind::Query, 1),
        }
        outcome?;
        writer.append("ok", RawValue::Double(1.0));
        writer.finish();
        Ok(())
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
                let report = verify_collection(&collection, &*transaction)?;
                reports.push((collection.full_name().to_owned(), report));
            }
        }
        Ok(reports)
    }

    /// Closes the cursors whose time-out is over. To be called every few seconds.
    pub fn expire_cursors(&self) {
        self.shared.cursors.expire(self.shared.now_ms());
    }

    /// Closes the open cursors and then the engine, cleanly. Blocks.
    pub fn close(&self) -> Result<(), StorageError> {
        self.shared.cursors.clear();
        self.shared.catalog.engine().close()
    }
}

/// Writes the reply of a failed command.
fn write_failure(reply: &mut Vec<u8>, failure: &Failure) {
    let mut writer = DocumentWriter::begin(reply);
    writer.append("ok", RawValue::Double(0.0));
    writer.append("errmsg", RawValue::String(&failure.message));
    if failure.code != ErrorCode::Untold {
        writer.append("code", RawValue::Int32(failure.code.code()));
        writer.append("codeName", RawValue::String(&failure.code.name()));
    }
    for (name, value) in failure.details.iter() {
        writer.append_value(name, value);
    }
    if !failure.labels.is_empty() {
        let mut labels = writer.array("errorLabels");
        for label in &failure.labels {
            labels.push(RawValue::String(label));
        }
        labels.finish();
    }
    writer.finish();
}
