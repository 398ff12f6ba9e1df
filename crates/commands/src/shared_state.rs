//! The state of one open store: its catalog, its open cursors, its counters. Every request works with it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use pando_catalog::{CachedReads, Catalog, SnapshotTimestamp};
use pando_document::{ObjectId, Timestamp, Value};
use pando_environment::{Environment, Monotonic};
use pando_query::expression::Dice;
use parking_lot::Mutex;

use crate::access::{AccessControl, AccessState, LocalhostException, PlainLogins};
use crate::audit::{AuditStamp, AuditTrail};
use crate::certificate_rotation::CertificateRotation;
use crate::chore_figures::HousekeepingFigures;
use crate::cluster_clock::ClusterClock;
use crate::command_name::CommandName;
use crate::cursors::{CursorTimeout, Cursors};
use crate::damage_log::DamageLog;
use crate::default_concerns::DefaultConcerns;
use crate::default_layout::DefaultLayout;
use crate::departures::Departures;
use crate::fail_points::{FailPoints, TestCommands};
use crate::held_snapshots::HeldSnapshots;
use crate::host_facts::HostFacts;
use crate::log_tail::LogTail;
use crate::log_verbosity::LogVerbosity;
use crate::open_buckets::OpenBuckets;
use crate::operation_counters::OperationCounters;
use crate::operations::OperationTable;
use crate::persona::PersonaOptions;
use crate::profiler::{Profiler, ProfilerOptions};
use crate::reply_timers::ReplyTimers;
use crate::server_counters::ServerCounters;
use crate::server_stop::ServerStop;
use crate::sessions::Sessions;
use crate::ttl_state::TtlState;
use crate::wait_figures::WaitFigures;
use crate::write_gate::WriteGate;

/// Facts about the surrounding process, for the commands that show them.
#[derive(Clone, Debug, Default)]
pub struct CommandsOptions {
    /// The time after which an unused cursor is closed.
    pub cursor_timeout: CursorTimeout,
    /// The command line, as `getCmdLineOpts` shows it.
    pub command_line: Vec<String>,
    /// The settings that were given at the start, as `getCmdLineOpts` shows them: paths such as
    /// `net.tls.mode`, and values. Address, folder, engine, replica set and access control are added.
    pub settings: Vec<(String, Value)>,
    /// The address that clients reach the server at, as `serverStatus` shows it; empty in an application's
    /// own process.
    pub address: String,
    /// The connection string of the unix socket; empty where there is none.
    pub unix_socket: String,
    /// The machine.
    pub host: HostFacts,
    /// The most connections at once; 0 in an application's own process.
    pub connections_max: usize,
    /// The folder of the store, if it has one.
    pub folder: Option<PathBuf>,
    /// The last lines of the log.
    pub log_tail: Arc<LogTail>,
    /// The verbosity of the log.
    pub log_verbosity: Arc<LogVerbosity>,
    /// The memory of queries.
    pub query_memory: QueryMemoryOptions,
    /// Processors that one query may use. 0 counts as 1: it is the default, and holds in an application's own
    /// process.
    pub query_threads: usize,
    /// The deployment that clients take the server for.
    pub persona: PersonaOptions,
    /// Whether there are commands for tests.
    pub test_commands: TestCommands,
    /// The layout of a collection that is created without one.
    pub default_layout: DefaultLayout,
    /// Whether clients have to log in.
    pub access_control: AccessControl,
    /// Whether a client on this machine may make the first user without one.
    pub localhost_exception: LocalhostException,
    /// Whether clients may log in by sending their password as it is.
    pub plain_logins: PlainLogins,
    /// The audit trail, if there is one.
    pub audit: Option<AuditTrail>,
    /// The certificates of TLS, if the process has some.
    pub certificates: Option<Arc<dyn CertificateRotation>>,
    /// What stops the process; `None` in an application's own process.
    pub stop: Option<Arc<dyn ServerStop>>,
    /// The settings of the profiler at the start.
    pub profiler: ProfilerOptions,
}

/// The memory of queries of a store.
#[derive(Clone, Debug)]
pub struct QueryMemoryOptions {
    /// The bytes that all queries may hold together.
    pub limit_bytes: usize,
    /// The part of the engine's cache that the limit is, as its divisor, so that it follows a cache which
    /// changes. `None`: it was asked for in bytes, or it has no bound.
    pub share_of_cache: Option<usize>,
    /// The most that the limit can be changed to while the store is open, as long as the engine's cache does
    /// not change.
    pub limit_bytes_max: usize,
    /// The folder of scratch files. Without one, queries cannot spill and take the memory that they need.
    pub scratch_folder: Option<PathBuf>,
    /// Whether these files are encrypted.
    pub scratch_files: ScratchFiles,
}

/// The form of scratch files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ScratchFiles {
    /// As they are.
    #[default]
    Plain,
    /// Under keys that only this process has.
    Encrypted,
}

impl Default for QueryMemoryOptions {
    fn default() -> QueryMemoryOptions {
        QueryMemoryOptions {
            limit_bytes: usize::MAX,
            share_of_cache: None,
            limit_bytes_max: usize::MAX,
            scratch_folder: None,
            scratch_files: ScratchFiles::Plain,
        }
    }
}

/// The state of one open store, shared by all its requests.
pub(crate) struct SharedState {
    pub catalog: Catalog,
    /// The buckets of time series that take more measurements.
    pub open_buckets: OpenBuckets,
    pub cursors: Cursors,
    /// The sessions with transactions and retryable writes.
    pub sessions: Sessions,
    /// The snapshots that reads may come back to.
    pub held_snapshots: HeldSnapshots,
    /// The snapshots that were logged because they pin much history.
    pub logged_snapshots: Mutex<Vec<SnapshotTimestamp>>,
    /// Statements that wait on a thread for a transaction which has changed the same document.
    pub conflict_waits: AtomicUsize,
    /// Scans that several threads read, and their ranges.
    pub ranged_scans: AtomicU64,
    pub scanned_ranges: AtomicU64,
    pub fail_points: FailPoints,
    /// Whether reads can be tried where they must not block.
    pub cached_reads: CachedReads,
    /// The memory of queries that somebody has set while the server runs, in bytes.
    pub query_memory_asked_for: Mutex<Option<usize>>,
    /// Whether a statement or a batch that fails leaves nothing behind, as in TokuMX.
    pub atomic_statements: AtomicBool,
    /// Whether a search that would read a whole collection is refused.
    pub no_table_scan: AtomicBool,
    /// The gate that `fsync` with `lock` closes.
    pub write_gate: WriteGate,
    pub default_concerns: ArcSwap<DefaultConcerns>,
    /// Held by a request that changes the default concerns.
    pub default_concerns_turn: Mutex<()>,
    /// Logins, and whether they are needed.
    pub access: AccessState,
    pub environment: Environment,
    /// What `$rand` draws from.
    pub dice: Dice,
    pub options: CommandsOptions,
    /// The commands that there are, for those that list or name them.
    pub commands: Vec<CommandName>,
    pub started_ms: i64,
    /// The same moment by the clock that does not jump.
    started: Monotonic,
    /// The moment since which requests are refused, because the server is about to stop.
    pub stopping_since: OnceLock<Monotonic>,
    /// Requests that were refused since then.
    pub refused_at_stop: AtomicU64,
    /// Clients that left and may not come back.
    pub departures: Departures,
    /// The connections, and their requests under way.
    pub running: Arc<OperationTable>,
    pub operations: OperationCounters,
    pub counters: ServerCounters,
    pub damage_log: DamageLog,
    pub profiler: Profiler,
    /// The bytes of each collection of the profiler; held by the thread that writes them.
    pub profile_bytes: Mutex<BTreeMap<String, usize>>,
    pub housekeeping: HousekeepingFigures,
    /// The clock of the replies, unless the persona is that of a standalone server.
    pub cluster_clock: Option<ClusterClock>,
    pub reply_timers: Arc<ReplyTimers>,
    /// The timers of waits for claimed keys.
    pub wait_timers: Arc<ReplyTimers>,
    pub wait_figures: WaitFigures,
    /// The expiry of documents.
    pub ttl: TtlState,
    /// The process, as topology versions show it.
    pub process_id: ObjectId,
    /// The middle of every `_id` made here: random for each start.
    object_id_process: [u8; 5],
    object_id_counter: AtomicU32,
}

impl SharedState {
    /// The state at the start of a store.
    pub fn new(
        catalog: Catalog,
        environment: Environment,
        options: CommandsOptions,
        cluster_clock: Option<ClusterClock>,
        commands: Vec<CommandName>,
        chores: impl Iterator<Item = &'static str>,
    ) -> SharedState {
        let cursors = Cursors::new(options.cursor_timeout);
        let profiler = Profiler::new(options.profiler);
        let reply_timers = Arc::new(ReplyTimers::new(&environment));
        let wait_timers = Arc::new(ReplyTimers::new(&environment));
        let started_ms = environment.clock().wall().millis().cast_signed();
        let started = environment.clock().monotonic();
        let mut object_id_process = [0; 5];
        environment.random().fill(&mut object_id_process);
        let mut access_seed = [0; 32];
        environment.random().fill(&mut access_seed);
        let object_id_counter =
            AtomicU32::new(u32::try_from(environment.random().next_u64() >> 40).unwrap_or(0));
        let cached_reads = catalog.engine().capabilities().cached_reads;
        SharedState {
            catalog,
            cached_reads,
            query_memory_asked_for: Mutex::default(),
            cursors,
            open_buckets: OpenBuckets::default(),
            sessions: Sessions::default(),
            held_snapshots: HeldSnapshots::default(),
            logged_snapshots: Mutex::default(),
            conflict_waits: AtomicUsize::new(0),
            ranged_scans: AtomicU64::new(0),
            scanned_ranges: AtomicU64::new(0),
            fail_points: FailPoints::default(),
            atomic_statements: AtomicBool::new(false),
            no_table_scan: AtomicBool::new(false),
            write_gate: WriteGate::default(),
            default_concerns: ArcSwap::from_pointee(DefaultConcerns::implicit(started_ms)),
            default_concerns_turn: Mutex::default(),
            access: AccessState::new(options.access_control, options.localhost_exception, access_seed),
            dice: Dice::new(environment.random().next_u64()),
            environment,
            options,
            counters: ServerCounters::new(commands.len()),
            damage_log: DamageLog::default(),
            commands,
            started_ms,
            started,
            stopping_since: OnceLock::new(),
            refused_at_stop: AtomicU64::new(0),
            departures: Departures::default(),
            running: Arc::default(),
            operations: OperationCounters::default(),
            profiler,
            profile_bytes: Mutex::default(),
            housekeeping: HousekeepingFigures::new(chores),
            cluster_clock,
            reply_timers,
            wait_timers,
            wait_figures: WaitFigures::default(),
            ttl: TtlState::default(),
            process_id: ObjectId::from_parts(
                u32::try_from(started_ms / 1000).unwrap_or(0),
                object_id_process,
                0,
            ),
            object_id_process,
            object_id_counter,
        }
    }

    /// A random identity of version 4.
    pub fn new_uuid(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        self.environment.random().fill(&mut bytes);
        bytes[6] = (bytes[6] & 0x0F) | 0x40;
        bytes[8] = (bytes[8] & 0x3F) | 0x80;
        bytes
    }

    /// The moment and the identity of an event of the audit trail.
    pub fn audit_stamp(&self) -> AuditStamp {
        AuditStamp { now_ms: self.now_ms(), uuid: self.new_uuid() }
    }

    /// The name by which operations name the server: of several over one store by the address for clients.
    pub fn server_name(&self) -> String {
        match &self.options.persona.advertised {
            Some(advertised) if self.catalog.is_shared() => advertised.clone(),
            None if self.catalog.is_shared() => self.options.address.clone(),
            _ => self.machine_name(),
        }
    }

    /// The name of the machine, with the server's port.
    pub fn machine_name(&self) -> String {
        self.options.host.named(&self.options.address)
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.environment.clock().wall().millis().cast_signed()
    }

    /// Milliseconds since the start, also where the wall clock was set meanwhile.
    pub fn uptime_ms(&self) -> i64 {
        let up = self.environment.clock().monotonic().since(self.started);
        i64::try_from(up.as_millis()).unwrap_or(i64::MAX)
    }

    /// The time of the last write, as clients of a replica set see it.
    pub fn operation_time(&self) -> Timestamp {
        self.cluster_clock.as_ref().map_or(Timestamp::from_u64(0), |clock| clock.now(self.now_ms()))
    }

    /// A new `_id` for a document that has none.
    pub fn new_object_id(&self) -> ObjectId {
        let seconds = u32::try_from(self.now_ms() / 1000).unwrap_or(u32::MAX);
        let counter = self.object_id_counter.fetch_add(1, Ordering::Relaxed);
        ObjectId::from_parts(seconds, self.object_id_process, counter)
    }
}
