//! The connection to the cluster: the client's asynchronous calls as calls that wait.
//!
//! Every call has a deadline, the engine's patience. A request that a node could not take, because a leader
//! has moved or a node is down, is sent again until then, with growing pauses.
//!
//! # Invariant
//! A commit is sent once. Where its answer is missing, the caller finds out what has become of it.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pando_storage::{ErrorKind, StorageError};
use tikv_client::{
    CheckLevel, Config, Error, KvPair, Snapshot, Timestamp, TimestampExt, Transaction, TransactionClient,
    TransactionOptions,
};
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep, timeout_at};

use crate::failure::{Outcome, invalid, outcome_of, tikv_failed, too_slow};
use crate::figures::{Calls, Figures};
use crate::options::{CommitMode, TikvOptions};

/// The first pause before a request is sent again.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// The longest one.
const PAUSE_MAX: Duration = Duration::from_millis(500);
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
    Unknown(StorageError),
}

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
    pub(crate) figures: Figures,
    // Dropped last: the client's connections live on it.
    runtime: Runtime,
}

impl Cluster {
    /// Connects to the cluster.
    pub(crate) fn connect(options: &TikvOptions) -> Result<Cluster, StorageError> {
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
            Ok(Err(error)) => return Err(cannot(error.to_string())),
            Err(_) => return Err(cannot(format!("no answer within {} s", options.patience.as_secs()))),
        };
        let (patience, commit) = (options.patience, options.commit);
        Ok(Cluster { client, patience, commit, figures: Figures::default(), runtime })
    }

    /// Sends a request until it is answered, refused, or the patience is over.
    fn ask<T>(
        &self,
        calls: &Calls,
        doing: &str,
        request: impl AsyncFnMut() -> Result<T, Error>,
    ) -> Result<T, StorageError> {
        let began = Instant::now();
        let answer = self.ask_until(began + self.patience, doing, request);
        calls.note(began.elapsed());
        answer
    }

    fn ask_until<T>(
        &self,
        deadline: Instant,
        doing: &str,
        mut request: impl AsyncFnMut() -> Result<T, Error>,
    ) -> Result<T, StorageError> {
        self.runtime.block_on(async {
            let mut pause = PAUSE_MIN;
            loop {
                let error = match timeout_at(deadline, request()).await {
                    Ok(Ok(answer)) => return Ok(answer),
                    Ok(Err(error)) => error,
                    Err(_) => return Err(too_slow(doing, self.patience.as_secs())),
                };
                // A read conflicts only with a commit under way, whose locks go.
                if outcome_of(&error) == Outcome::Refused || Instant::now() + pause >= deadline {
                    return Err(tikv_failed(doing, error));
                }
                self.figures.retries.fetch_add(1, Ordering::Relaxed);
                sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        })
    }

    fn options(&self) -> TransactionOptions {
        let options = TransactionOptions::new_optimistic().drop_check(CheckLevel::None);
        match self.commit {
            CommitMode::TwoPhase => options,
            CommitMode::OnePhase => options.use_async_commit().try_one_pc(),
        }
    }

    /// A snapshot of the client. It remembers all that it has read, so each read takes a new one.
    fn snapshot(&self, at: u64) -> Snapshot {
        self.client.snapshot(Timestamp::from_version(at), self.options())
    }

    /// A timestamp above those of all commits so far.
    pub(crate) fn timestamp(&self) -> Result<u64, StorageError> {
        self.ask(&self.figures.timestamps, "taking a timestamp", async || {
            Ok(self.client.current_timestamp().await?.version())
        })
    }

    /// The value of a key at a timestamp.
    pub(crate) fn get(&self, at: u64, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        let found = self.ask(&self.figures.gets, "reading an entry", async || {
            self.snapshot(at).get(key.to_vec()).await
        })?;
        // No value that a store writes is empty. A store of the tests answers so for an absent key.
        Ok(found.filter(|value| !value.is_empty()))
    }

    /// The values of several keys at a timestamp; absent ones are left out.
    pub(crate) fn get_all(&self, at: u64, keys: &[Vec<u8>]) -> Result<Vec<(Vec<u8>, Vec<u8>)>, StorageError> {
        self.ask(&self.figures.gets, "reading entries", async || {
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
        self.ask(&self.figures.scans, "scanning", async || {
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
        self.ask(&self.figures.scans, "scanning keys", async || {
            let keys = self.snapshot(at).scan_keys(range.clone(), count).await?;
            Ok(keys.map(Vec::<u8>::from).collect())
        })
    }

    /// Begins a transaction that writes.
    pub(crate) fn begin(&self) -> Result<Transaction, StorageError> {
        self.ask(&self.figures.timestamps, "beginning a transaction", async || {
            self.client.begin_with_options(self.options()).await
        })
    }

    /// Commits changes, and gives the timestamp of the commit. Waits no longer than this.
    pub(crate) fn commit(
        &self,
        mut transaction: Transaction,
        mutations: Vec<Mutation>,
        within: Duration,
    ) -> Result<u64, CommitFailure> {
        let began = Instant::now();
        let outcome = self.runtime.block_on(async {
            let deadline = began + within;
            let work = async {
                for mutation in mutations {
                    match mutation {
                        Mutation::Put(key, value) => transaction.put(key, value).await?,
                        Mutation::Delete(key) => transaction.delete(key).await?,
                    }
                }
                transaction.commit().await
            };
            let outcome = timeout_at(deadline, work).await;
            if let Ok(Err(error)) = &outcome
                && outcome_of(error) == Outcome::Conflict
            {
                // Locks of the prewrite go now rather than when they expire. Where that fails, they expire.
                let _expires_otherwise = timeout_at(deadline, transaction.rollback()).await;
            }
            outcome
        });
        self.figures.commits.note(began.elapsed());
        let unknown = |error| {
            self.figures.undetermined.fetch_add(1, Ordering::Relaxed);
            CommitFailure::Unknown(error)
        };
        let doing = "committing";
        match outcome {
            Ok(Ok(Some(timestamp))) => Ok(timestamp.version()),
            Ok(Ok(None)) => Err(CommitFailure::Failed(invalid("a commit without changes"))),
            Err(_) => Err(unknown(too_slow(doing, within.as_secs()))),
            Ok(Err(error)) => match outcome_of(&error) {
                Outcome::Conflict => {
                    self.figures.conflicts.fetch_add(1, Ordering::Relaxed);
                    Err(CommitFailure::Failed(tikv_failed(doing, error)))
                }
                Outcome::Refused => Err(CommitFailure::Failed(tikv_failed(doing, error))),
                Outcome::Unavailable | Outcome::Undetermined => Err(unknown(tikv_failed(doing, error))),
            },
        }
    }

    /// Runs a small transaction of the engine's own until it commits. `changes` gets its timestamp, and is
    /// called again after a conflict; it returns no changes where there is nothing to do.
    pub(crate) fn change(
        &self,
        mut changes: impl FnMut(u64) -> Result<Vec<Mutation>, StorageError>,
    ) -> Result<(), StorageError> {
        let mut tries = 0;
        loop {
            let transaction = self.begin()?;
            let mutations = changes(transaction.start_timestamp().version())?;
            if mutations.is_empty() {
                return Ok(());
            }
            match self.commit(transaction, mutations, self.patience) {
                Ok(_) => return Ok(()),
                Err(CommitFailure::Failed(error))
                    if error.kind() == ErrorKind::Conflict && tries < CHANGES_TRIED =>
                {
                    tries += 1;
                }
                // The engine's own changes may be made twice.
                Err(CommitFailure::Unknown(_)) if tries < CHANGES_TRIED => tries += 1,
                Err(CommitFailure::Failed(error) | CommitFailure::Unknown(error)) => return Err(error),
            }
        }
    }

    /// Removes every version of the keys of a range. No transaction may read them any more.
    pub(crate) fn destroy(&self, range: &Range<Vec<u8>>) -> Result<(), StorageError> {
        self.runtime.block_on(async {
            let deadline = Instant::now() + self.patience;
            match timeout_at(deadline, self.client.unsafe_destroy_range(range.clone())).await {
                Ok(destroyed) => destroyed.map_err(|error| tikv_failed("removing a range", error)),
                Err(_) => Err(too_slow("removing a range", self.patience.as_secs())),
            }
        })
    }

    /// Lets the cluster remove versions that no snapshot from this timestamp on sees.
    pub(crate) fn collect_garbage(&self, before: u64) -> Result<(), StorageError> {
        self.runtime.block_on(async {
            let deadline = Instant::now() + self.patience;
            match timeout_at(deadline, self.client.gc(Timestamp::from_version(before))).await {
                Ok(Ok(_)) => {
                    self.figures.safepoint.store(before, Ordering::Relaxed);
                    Ok(())
                }
                Ok(Err(error)) => Err(tikv_failed("collecting garbage", error)),
                Err(_) => Err(too_slow("collecting garbage", self.patience.as_secs())),
            }
        })
    }
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
    timestamp.saturating_sub(milliseconds.saturating_mul(1 << 18))
}

fn pairs(found: impl Iterator<Item = KvPair>) -> Vec<(Vec<u8>, Vec<u8>)> {
    found.map(|KvPair(key, value)| (Vec::from(key), value)).collect()
}
