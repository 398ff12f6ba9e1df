//! The one entry: a request in, a reply out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use pando_catalog::{
    Begin, BlockingMode, Catalog, CollectionReport, CommitReceipt, Durability, SharedEngine, StorageError,
    WriteError, check_database, verify_collection,
};
use pando_document::{DocumentWriter, ObjectId, RawValue};
use pando_environment::{Environment, MissedRead};

use crate::connection::ConnectionCounts;
use crate::context::Context;
use crate::cursors::{CursorTimeout, Cursors};
use crate::error::{CommandError, Failure};
use crate::generic_arguments::GenericArguments;
use crate::operation_counters::{OperationCounters, OperationKind};
use crate::parked::Parked;
use crate::{ConnectionState, ErrorCode, Request, registry};

/// What the commands need to know of the process that they run in.
#[derive(Clone, Debug, Default)]
pub struct CommandsOptions {
    /// How long an unused cursor lives.
    pub cursor_timeout: CursorTimeout,
    /// The command line, as `getCmdLineOpts` shows it.
    pub command_line: Vec<String>,
    /// The address that clients reach the server at, as `serverStatus` shows it; empty in an application's own process.
    pub address: String,
}

/// All commands over one engine.
pub struct Commands {
    shared: Arc<Shared>,
}

/// What every request works with.
pub(crate) struct Shared {
    pub catalog: Catalog,
    pub cursors: Cursors,
    pub environment: Environment,
    pub options: CommandsOptions,
    pub started_ms: i64,
    pub connections: Arc<ConnectionCounts>,
    pub operations: OperationCounters,
    /// The middle of every `_id` made here: random for each start.
    object_id_process: [u8; 5],
    object_id_counter: AtomicU32,
}

impl Shared {
    /// A random identity of version 4.
    pub fn new_uuid(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        self.environment.random().fill(&mut bytes);
        bytes[6] = (bytes[6] & 0x0F) | 0x40;
        bytes[8] = (bytes[8] & 0x3F) | 0x80;
        bytes
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.environment.clock().wall().millis().cast_signed()
    }

    /// A new `_id` for a document that has none.
    pub fn new_object_id(&self) -> ObjectId {
        let seconds = u32::try_from(self.now_ms() / 1000).unwrap_or(u32::MAX);
        let counter = self.object_id_counter.fetch_add(1, Ordering::Relaxed);
        ObjectId::from_parts(seconds, self.object_id_process, counter)
    }
}

/// How a request came out.
pub enum Handled {
    /// The reply document stands in the buffer.
    Reply(ReplyWhen),
    /// The answer needs the device. Nothing was changed or written: handle the request again with `MayBlock`, or after the read
    /// was made that is missing, if the engine could tell it.
    WouldBlock(Option<Arc<dyn MissedRead>>),
}

/// When a reply may be sent.
pub enum ReplyWhen {
    /// Now.
    Now,
    /// When the log has got far enough.
    Durable(DurabilityWait),
}

/// A reply that waits for the log.
pub struct DurabilityWait {
    engine: SharedEngine,
    receipt: CommitReceipt,
    durability: Durability,
}

impl DurabilityWait {
    /// Calls `done` once: with `Ok` when the reply may be sent, with an error when the log never gets there (the connection
    /// must then be closed: nobody may be told that the write happened). May call on this thread, at once.
    pub fn on_done(self, done: Box<dyn FnOnce(Result<(), StorageError>) + Send>) {
        self.engine.when_durable(self.receipt, self.durability, done);
    }

    /// Waits, for callers in the same process.
    pub fn wait(self) -> Result<(), StorageError> {
        self.engine.wait_durable(self.receipt, self.durability)
    }
}

impl Commands {
    /// Opens the catalog of an engine. Blocks.
    pub fn open(
        engine: SharedEngine,
        environment: Environment,
        options: CommandsOptions,
    ) -> Result<Commands, pando_catalog::CatalogError> {
        let catalog = Catalog::open(engine)?;
        let cursors = Cursors::new(options.cursor_timeout);
        let started_ms = environment.clock().wall().millis().cast_signed();
        let mut object_id_process = [0; 5];
        environment.random().fill(&mut object_id_process);
        let object_id_counter =
            AtomicU32::new(u32::try_from(environment.random().next_u64() >> 40).unwrap_or(0));
        Ok(Commands {
            shared: Arc::new(Shared {
                catalog,
                cursors,
                environment,
                options,
                started_ms,
                connections: Arc::default(),
                operations: OperationCounters::default(),
                object_id_process,
                object_id_counter,
            }),
        })
    }

    /// Handles one request. The reply document is appended to `reply`, unless this answers [`Handled::WouldBlock`].
    pub fn handle(
        &self,
        connection: &mut ConnectionState,
        request: &Request<'_>,
        blocking: BlockingMode,
        reply: &mut Vec<u8>,
    ) -> Handled {
        let start = reply.len();
        let mut wait = None;
        connection.count_in(&self.shared.connections);
        match self.run(connection, request, blocking, reply, &mut wait) {
            Ok(()) => {}
            Err(CommandError::WouldBlock(missed)) => {
                reply.truncate(start);
                if blocking == BlockingMode::CachedOnly {
                    return Handled::WouldBlock(missed);
                }
                write_failure(
                    reply,
                    &Failure::new(ErrorCode::InternalError, "a blocking_one request was told to wait"),
                );
            }
            Err(CommandError::Failed(failure)) => {
                reply.truncate(start);
                write_failure(reply, &failure);
            }
        }
        match wait {
            Some((receipt, Durability::Synced)) => Handled::Reply(ReplyWhen::Durable(DurabilityWait {
                engine: Arc::clone(self.shared.catalog.engine()),
                receipt,
                durability: Durability::Synced,
            })),
            // A logged commit is in the kernel when it returns, and nothing is promised of the others.
            _ => Handled::Reply(ReplyWhen::Now),
        }
    }

    fn run(
        &self,
        connection: &mut ConnectionState,
        request: &Request<'_>,
        blocking: BlockingMode,
        reply: &mut Vec<u8>,
        wait: &mut Option<(CommitReceipt, Durability)>,
    ) -> Result<(), CommandError> {
        if let Some(parked) = connection.take_parked(request) {
            return self.resume(connection, parked, blocking, reply);
        }
        let generic = GenericArguments::read(request)?;
        let (name, _) = request.command()?;
        let command = registry::find(name).ok_or_else(|| {
            CommandError::failed(ErrorCode::CommandNotFound, format!("no such command: '{name}'"))
        })?;
        let database = generic.database;
        if command.scope == registry::Scope::Admin && database != "admin" {
            return Err(CommandError::failed(
                ErrorCode::Unauthorized,
                format!("{} may only be run against the admin database.", command.name),
            ));
        }
        check_database(database)?;
        let concern = generic.check(command)?;
        let mut context = Context::new(&self.shared, connection, blocking, database, concern);
        let mut writer = DocumentWriter::begin(reply);
        let outcome = (command.run)(&mut context, request, &mut writer);
        // A statement that fails after an earlier one has committed is told only when that is durable, too.
        *wait = context.take_wait();
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
        parked: Box<Parked>,
        blocking: BlockingMode,
        reply: &mut Vec<u8>,
    ) -> Result<(), CommandError> {
        let mut writer = DocumentWriter::begin(reply);
        let outcome = parked.lookup().answer(blocking, &mut writer);
        match outcome {
            Err(CommandError::WouldBlock(missed)) => {
                connection.park(parked);
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
    /// A collection that cannot be read; what disagrees is in the reports.
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

    /// Forgets cursors that nobody has used for too long. Call it every few seconds.
    pub fn expire_cursors(&self) {
        self.shared.cursors.expire(self.shared.now_ms());
    }

    /// Ends: open cursors are forgotten and the engine is closed cleanly. Blocks.
    pub fn close(&self) -> Result<(), StorageError> {
        self.shared.cursors.clear();
        self.shared.catalog.engine().close()
    }
}

/// A reply that says what went wrong.
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
