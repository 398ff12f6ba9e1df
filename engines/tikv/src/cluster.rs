//! The connection to the cluster: the client's asynchronous calls as calls that wait.
//!
//! Every call has a deadline, the engine's patience. A request that a node could not take, because a leader
//! has moved or a node is down, is sent again until then, with growing pauses.
//!
//! A read also ends with the operation of its thread, when that is interrupted or its time is over. A commit
//! does not, and neither does a change of the engine's own: their outcome would be unknown.
//!
//! # Invariants
//! - A commit is sent once. Where its answer is missing, the caller finds out what has become of it.
//! - A transaction is rolled back only where its first key is certainly not committed: the rollback of
//!   another key does not look at it.

use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pando_environment::Clock;
use pando_storage::{DeviceAccount, ErrorKind, StorageError, ThreadCharge};
use tikv_client::transaction::HeartbeatOption;
use tikv_client::{
    CheckLevel, Config, Error, KvPair, Snapshot, Timestamp, TimestampExt, Transaction, TransactionClient,
    TransactionOptions,
};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::failure::{
    Outcome, invalid, missing_transaction, operation_ended, outcome_of, request_failed, text_of, tikv_failed,
    too_slow,
};
use crate::figures::{Calls, Figures};
use crate::locks::{Keys, behind, remove_orphans};
use crate::options::{CommitMode, TikvOptions};

/// The first pause before a request is sent again.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// The longest one.
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// The time after which a request that meets a lock looks whether its transaction is gone.
const ORPHANS_FROM: Duration = Duration::from_millis(100);
/// The time that a lock has at least, in the steps of timestamps: no transaction is gone before.
const LOCK_LIVES_MIN: u64 = 3_000 << TIMESTAMP_BITS;
/// The low bits of a timestamp, which count within a millisecond.
pub(crate) const TIMESTAMP_BITS: u32 = 18;
/// The time between two looks whether the operation of the thread has ended. Each request has this time.
const LOOKS_EVERY: Duration = Duration::from_millis(100);
/// How long a rollback may take. Where it does not succeed, the locks go by their time.
const ROLLBACK_WITHIN: Duration = Duration::from_secs(2);
/// How long the removal of old versions may take: it looks for locks in all regions of the cluster.
const COLLECTED_WITHIN: Duration = Duration::from_secs(20 * 60);
/// How long the client waits for the answer to one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest answer that the client takes: a page of a scan with the largest values.
const ANSWER_BYTES_MAX: usize = 512 << 20;
/// Threads that drive the client at most.
const THREADS_MAX: usize = 8;

/// A change of one key of the cluster.
pub(crate) enum Mutation {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
}

/// The way in which a commit has failed.
pub(crate) enum CommitFailure {
    /// No write was committed.
    Failed(StorageError),
    /// All writes were committed, or none.
    Unknown(StorageError, Unfinished),
}

/// A transaction with an unknown outcome that may still commit by itself, if there is one: its request may be
/// on its way, and a commit in one phase needs no other.
pub(crate) struct Unfinished(Option<Box<Transaction>>);

/// The order of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Ascending,
    Descending,
}

/// See the module's head.
pub(crate) struct Cluster {
    client: TransactionClient,
    patience: Duration,
    commit: CommitMode,
    /// That of the operations.
    clock: Arc<dyn Clock>,
    /// The account of threads whose waits do not end with an operation.
    unlimited: Arc<DeviceAccount>,
    pub(crate) figures: Figures,
    // Dropped last: the client's connections live on it.
    runtime: Runtime,
}

impl Cluster {
    /// Connects to the cluster.
    pub(crate) fn connect(options: &TikvOptions, clock: &Arc<dyn Clock>) -> Result<Cluster, StorageError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads())
            .thread_name("tikv-client")
            .enable_all()
            .build()
            .map_err(|error| {
                StorageError::with_source(
                    ErrorKind::Io,
                    format!("cannot start the client of TiKV: {error}"),
                    error,
                )
            })?;
        let mut config = Config::default()
            .with_timeout(REQUEST_TIMEOUT)
            .with_grpc_max_decoding_message_size(ANSWER_BYTES_MAX);
        if let Some(files) = &options.certificates {
            config = config.with_security(&files.authority, &files.certificate, &files.key);
        }
        let drivers = options.placement_drivers.clone();
        let named = drivers.join(", ");
        let connected = runtime.block_on(async {
            let deadline = Instant::now() + options.patience;
            timeout_at(deadline, TransactionClient::new_with_config(drivers, config)).await
        });
        let cannot = |cause: String| {
            let message = format!(
                "cannot reach the placement drivers of TiKV at {named}: {cause}; start them, or correct `pd`"
            );
            StorageError::new(ErrorKind::Io, message)
        };
        let client = match connected {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => return Err(cannot(text_of(&error))),
            Err(_) => return Err(cannot(format!("no answer within {} s", options.patience.as_secs()))),
        };
        let (patience, commit, clock) = (options.patience, options.commit, Arc::clone(clock));
        let (unlimited, figures) = (Arc::default(), Figures::default());
        Ok(Cluster { client, patience, commit, clock, unlimited, figures, runtime })
    }

    /// Has the waits of this thread not end with its operation, until the answer is dropped.
    pub(crate) fn to_the_end(&self) -> ThreadCharge {
        self.unlimited.charge_thread()
    }

    /// Sends a request until it is answered, refused, or the patience is over.
    fn ask<T>(
        &self,
        calls: &Calls,
        doing: &str,
        keys: Keys<'_>,
        request: impl AsyncFnMut() -> Result<T, Error>,
    ) -> Result<T, StorageError> {
        let began = Instant::now();
        let answer = self.ask_until(began + self.patience, doing, keys, request);
        calls.note(began.elapsed());
        answer
    }

    fn ask_until<T>(
        &self,
        deadline: Instant,
        doing: &str,
        keys: Keys<'_>,
        mut request: impl AsyncFnMut() -> Result<T, Error>,
    ) -> Result<T, StorageError> {
        self.runtime.block_on(async {
            let (began, mut pause) = (Instant::now(), PAUSE_MIN);
            loop {
                let error = match self.wait(deadline, doing, request()).await? {
                    Ok(answer) => return Ok(answer),
                    Err(error) => error,
                };
                // A read conflicts only with a commit under way, whose locks go.
                let is_refused = outcome_of(&error) == Outcome::Refused;
                if !is_refused && began.elapsed() >= ORPHANS_FROM {
                    // Where that fails, the request does, and it is tried again.
                    let _later =
                        self.wait(deadline, doing, remove_orphans(&self.client, keys, &error)).await?;
                }
                if is_refused || Instant::now() + pause >= deadline {
                    return Err(request_failed(doing, error));
                }
                self.figures.retries.fetch_add(1, Ordering::Relaxed);
                self.wait(deadline, doing, sleep(pause)).await?;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        })
    }

    /// Waits for an answer until the deadline, or until the operation of this thread has ended.
    async fn wait<T>(
        &self,
        deadline: Instant,
        doing: &str,
        request: impl Future<Output = T>,
    ) -> Result<T, StorageError> {
        let mut request = pin!(request);
        loop {
            match timeout_at(deadline.min(Instant::now() + LOOKS_EVERY), &mut request).await {
                Ok(answer) => return Ok(answer),
                Err(_) if Instant::now() >= deadline => {
                    return Err(too_slow(doing, self.patience.as_secs()));
                }
                Err(_) => {}
            }
            let left = DeviceAccount::time_left_of_thread(|| self.clock.monotonic());
            if left.is_some_and(|left| left.is_zero()) {
                return Err(operation_ended(doing));
            }
        }
    }

    fn options(&self) -> TransactionOptions {
        let options = TransactionOptions::new_optimistic().drop_check(CheckLevel::None);
        match self.commit {
            CommitMode::TwoPhase => options,
            // A transaction that is kept until its outcome is known must not keep its locks alive.
            CommitMode::OnePhase => {
                options.use_async_commit().try_one_pc().heartbeat_option(HeartbeatOption::NoHeartbeat)
            }
        }
    }

    /// A snapshot of the client. It remembers all that it has read, so each read takes a new one.
    fn snapshot(&self, at: u64) -> Snapshot {
        self.client.snapshot(Timestamp::from_version(at), self.options())
    }

    /// A timestamp above those of all commits so far.
    pub(crate) fn timestamp(&self) -> Result<u64, StorageError> {
        self.ask(&self.figures.timestamps, "taking a timestamp", Keys::None, async || {
            Ok(self.client.current_timestamp().await?.version())
        })
    }

    /// The value of a key at a timestamp.
    pub(crate) fn get(&self, at: u64, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        let found = self.ask(&self.figures.gets, "reading an entry", Keys::One(key), async || {
            self.snapshot(at).get(key.to_vec()).await
        })?;
        // No value that a store writes is empty. A store of the tests answers so for an absent key.
        Ok(found.filter(|value| !value.is_empty()))
    }

    /// The values of several keys at a timestamp; absent ones are left out.
    pub(crate) fn get_all(&self, at: u64, keys: &[Vec<u8>]) -> Result<Vec<(Vec<u8>, Vec<u8>)>, StorageError> {
        self.ask(&self.figures.gets, "reading entries", Keys::Several(keys), async || {
            let mut found = pairs(self.snapshot(at).batch_get(keys.to_vec()).await?);
            // As in `get`.
            found.retain(|(_, value)| !value.is_empty());
            Ok(found)
        })
    }

    /// The first entries of a range at a timestamp.
    pub(crate) fn scan(
        &self,
        at: u64,
        range: &Range<Vec<u8>>,
        order: Order,
        count: u32,
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>, StorageError> {
        self.ask(&self.figures.scans, "scanning", Keys::Range(range), async || {
            let (mut snapshot, range) = (self.snapshot(at), range.clone());
            Ok(match order {
                Order::Ascending => pairs(snapshot.scan(range, count).await?),
                Order::Descending => pairs(snapshot.scan_reverse(range, count).await?),
            })
        })
    }

    /// The first keys of a range at a timestamp, ascending.
    pub(crate) fn scan_keys(
        &self,
        at: u64,
        range: &Range<Vec<u8>>,
        count: u32,
    ) -> Result<Vec<Vec<u8>>, StorageError> {
        self.ask(&self.figures.scans, "scanning keys", Keys::Range(range), async || {
            let keys = self.snapshot(at).scan_keys(range.clone(), count).await?;
            Ok(keys.map(Vec::<u8>::from).collect())
        })
    }

    /// Begins a transaction that writes.
    pub(crate) fn begin(&self) -> Result<Transaction, StorageError> {
        self.ask(&self.figures.timestamps, "beginning a transaction", Keys::None, async || {
            self.client.begin_with_options(self.options()).await
        })
    }

    /// Commits changes, and gives the timestamp of the commit. Ends as soon as no time is `left`, which is
    /// asked again then: a lease may have been renewed.
    pub(crate) fn commit(
        &self,
        mut transaction: Transaction,
        mutations: Vec<Mutation>,
        left: &dyn Fn() -> Duration,
    ) -> Result<u64, CommitFailure> {
        let (began, keys) = (Instant::now(), bounds_of(&mutations));
        let outcome = self.runtime.block_on(async {
            let work = pin!(async {
                for mutation in mutations {
                    match mutation {
                        Mutation::Put(key, value) => transaction.put(key, value).await?,
                        Mutation::Delete(key) => transaction.delete(key).await?,
                    }
                }
                transaction.commit().await
            });
            while_left(left, work).await
        });
        self.figures.commits.note(began.elapsed());
        let error = match outcome {
            Some(Ok(Some(timestamp))) => return Ok(timestamp.version()),
            Some(Ok(None)) => return Err(CommitFailure::Failed(invalid("a commit without changes"))),
            Some(Err(error)) => error,
            None => return Err(self.unknown(too_slow(COMMITTING, began.elapsed().as_secs()), transaction)),
        };
        match outcome_of(&error) {
            // Refused by a node, so that nothing is committed.
            Outcome::Conflict | Outcome::Refused => self.give_up(transaction, keys, error),
            Outcome::Unavailable | Outcome::Undetermined => {
                Err(self.unknown(tikv_failed(COMMITTING, error), transaction))
            }
        }
    }

    fn unknown(&self, error: StorageError, transaction: Transaction) -> CommitFailure {
        self.figures.undetermined.fetch_add(1, Ordering::Relaxed);
        // In two phases its first key tells what has happened, as soon as that has no lock. The transaction
        // goes here, since it would keep its locks alive.
        let may_commit = self.commit == CommitMode::OnePhase;
        CommitFailure::Unknown(error, Unfinished(may_commit.then(|| Box::new(transaction))))
    }

    /// Ends a transaction of which a node has refused a key. Its locks go now rather than by their time, and
    /// requests of it that are on their way find the rollback.
    fn give_up(
        &self,
        mut transaction: Transaction,
        keys: Option<Range<Vec<u8>>>,
        error: Error,
    ) -> Result<u64, CommitFailure> {
        let start = start_of(&transaction);
        let is_rolled_back = self.runtime.block_on(async {
            let rolled_back = timeout(ROLLBACK_WITHIN, transaction.rollback()).await;
            let is_old = |missing: u64| missing.saturating_add(LOCK_LIVES_MIN) <= start;
            if let (Some(keys), true) = (&keys, missing_transaction(&error).is_some_and(is_old)) {
                let removal = remove_orphans(&self.client, Keys::Range(keys), &error);
                let _later = timeout(ROLLBACK_WITHIN, removal).await;
            }
            matches!(rolled_back, Ok(Ok(())))
        });
        if outcome_of(&error) == Outcome::Conflict {
            self.figures.conflicts.fetch_add(1, Ordering::Relaxed);
        }
        let failed = tikv_failed(COMMITTING, error);
        // A request for one phase that is sent twice conflicts with itself.
        match self.commit == CommitMode::OnePhase && !is_rolled_back {
            true => Err(self.unknown(failed, transaction)),
            false => Err(CommitFailure::Failed(failed)),
        }
    }

    /// Sees to it that a commit which has not happened so far never will.
    ///
    /// # Errors
    /// The cluster does not answer, or it has happened meanwhile.
    pub(crate) fn fence(&self, unfinished: Unfinished) -> Result<(), StorageError> {
        let Unfinished(Some(mut transaction)) = unfinished else { return Ok(()) };
        self.runtime.block_on(async {
            match timeout(self.patience, transaction.rollback()).await {
                Ok(rolled_back) => rolled_back.map_err(|error| tikv_failed("rolling back", error)),
                Err(_) => Err(too_slow("rolling back", self.patience.as_secs())),
            }
        })
    }

    /// Runs a small transaction of the engine's own until it commits. `changes` gets its timestamp, and is
    /// called again after a conflict; it returns no changes where there is nothing to do.
    pub(crate) fn change(
        &self,
        mut changes: impl FnMut(u64) -> Result<Vec<Mutation>, StorageError>,
    ) -> Result<(), StorageError> {
        let _whole = self.to_the_end();
        let mut tries = 0;
        loop {
            let transaction = self.begin()?;
            let mutations = changes(transaction.start_timestamp().version())?;
            if mutations.is_empty() {
                return Ok(());
            }
            let deadline = Instant::now() + self.patience;
            let left = || deadline.saturating_duration_since(Instant::now());
            match self.commit(transaction, mutations, &left) {
                Ok(_) => return Ok(()),
                Err(CommitFailure::Failed(error))
                    if error.kind() == ErrorKind::Conflict && tries < CHANGES_TRIED =>
                {
                    tries += 1;
                }
                // The engine's own changes may be made twice.
                Err(CommitFailure::Unknown(..)) if tries < CHANGES_TRIED => tries += 1,
                Err(CommitFailure::Failed(error) | CommitFailure::Unknown(error, _)) => return Err(error),
            }
        }
    }

    /// Removes every version of the keys of a range. No transaction may read them any more.
    pub(crate) fn destroy(&self, range: &Range<Vec<u8>>) -> Result<(), StorageError> {
        self.runtime.block_on(async {
            let deadline = Instant::now() + self.patience;
            match timeout_at(deadline, self.client.unsafe_destroy_range(range.clone())).await {
                Ok(destroyed) => destroyed.map_err(|error| request_failed("removing a range", error)),
                Err(_) => Err(too_slow("removing a range", self.patience.as_secs())),
            }
        })
    }

    /// Begins to let the cluster remove versions that no snapshot from this timestamp on sees. All locks from
    /// before have to go first, which takes minutes where the cluster is large.
    pub(crate) fn collect_garbage(&self, before: u64) -> Collecting {
        let client = self.client.clone();
        let work = self.runtime.spawn(async move {
            match timeout(COLLECTED_WITHIN, client.gc(Timestamp::from_version(before))).await {
                Ok(Ok(true)) => Ok(Collected::Done),
                Ok(Ok(false)) => Ok(Collected::ByOthers),
                Ok(Err(error)) => Err(request_failed("collecting garbage", error)),
                Err(_) => Err(too_slow("collecting garbage", COLLECTED_WITHIN.as_secs())),
            }
        });
        Collecting { before, work }
    }

    /// The outcome of a removal, if it has ended.
    pub(crate) fn collected(&self, collecting: &mut Collecting) -> Option<Result<Collected, StorageError>> {
        if !collecting.work.is_finished() {
            return None;
        }
        let joined = self.runtime.block_on(&mut collecting.work);
        let collected = joined.unwrap_or_else(|error| {
            let message = format!("the removal of old versions has ended early: {error}");
            Err(StorageError::with_source(ErrorKind::Io, message, error))
        });
        if matches!(collected, Ok(Collected::Done)) {
            self.figures.safepoint.store(collecting.before, Ordering::Relaxed);
        }
        Some(collected)
    }
}

/// A removal of old versions under way.
pub(crate) struct Collecting {
    /// No snapshot before this is needed.
    pub(crate) before: u64,
    work: JoinHandle<Result<Collected, StorageError>>,
}

/// The end of a removal of old versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collected {
    /// The cluster removes them.
    Done,
    /// Another program or store has let the cluster remove younger versions. The client does not tell which.
    ByOthers,
}

/// The name of a commit in errors.
const COMMITTING: &str = "committing";

/// Waits for an answer while there is time left; `None` where there is none any more.
async fn while_left<T>(
    left: &dyn Fn() -> Duration,
    mut work: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    loop {
        let left = left();
        if left.is_zero() {
            return None;
        }
        if let Ok(answer) = timeout(left, &mut work).await {
            return Some(answer);
        }
    }
}

/// A range that has the keys of all changes; `None` where there are none.
fn bounds_of(mutations: &[Mutation]) -> Option<Range<Vec<u8>>> {
    let keys = || {
        mutations.iter().map(|mutation| match mutation {
            Mutation::Put(key, _) | Mutation::Delete(key) => key,
        })
    };
    Some(keys().min()?.clone()..behind(keys().max()?))
}

/// How many threads drive the client. The waiting threads do the larger part of the work. On two cores a
/// second one costs a fifth of the processor time of an insert, because the two hand answers on to each
/// other.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).clamp(1, THREADS_MAX))
}

/// How often a change of the engine's own is tried again.
const CHANGES_TRIED: u32 = 20;

/// The timestamp of a transaction.
pub(crate) fn start_of(transaction: &Transaction) -> u64 {
    transaction.start_timestamp().version()
}

/// The timestamp of a moment before another one.
pub(crate) fn earlier(timestamp: u64, by: Duration) -> u64 {
    let milliseconds = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
    timestamp.saturating_sub(milliseconds.saturating_mul(1 << TIMESTAMP_BITS))
}

fn pairs(found: impl Iterator<Item = KvPair>) -> Vec<(Vec<u8>, Vec<u8>)> {
    found.map(|KvPair(key, value)| (Vec::from(key), value)).collect()
}
