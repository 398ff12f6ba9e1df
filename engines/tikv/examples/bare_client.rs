//! The crate `tikv-client` alone, doing what a server does to the cluster: the peer of `make measure-tikv`.
//!
//! ```text
//! bare_client --pd 127.0.0.1:2379 --prefix NAME --work read --clients 2 --seconds 4
//! ```
//!
//! # Work
//! - `fill`: 100 documents, which `read` reads.
//! - `read`: a timestamp and a get at it.
//! - `insert`: a transaction of a get, which finds nothing, and the puts of a document and three entries.
//! - `load`: transactions of a thousand documents with their index entries each, without gets.
//! - `update`: a transaction of a get and a put of one of the 100 documents, tried again after a failure.
//! - `counter`: the same of one document by all clients, optimistic as the engine is.
//! - `counter-locked`: the same, pessimistic: the get locks the document.
//!
//! With `--rate 500` there are so many operations of all clients a second: at a lower rate each wakes more
//! threads.
//!
//! Keys and values have the lengths of those that the server writes for the documents of
//! `tests/tikv/measure.py`. The client's settings are those of the engine.
//!
//! It prints one line of JSON: operations, seconds, seconds of processor time, failures, and the longest time
//! in milliseconds from one success of a client to its next one.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tikv_client::{CheckLevel, Config, Error, Transaction, TransactionClient, TransactionOptions};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The engine's settings of the client (`engines/tikv/src/cluster.rs`).
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_BYTES_MAX: usize = 512 << 20;
/// Documents of `fill`, and of one transaction of `load`.
const FILLED: u64 = 100;
const LOADED_AT_ONCE: u64 = 1_000;
/// Bytes of a document's value with its kind: 70 of BSON for a load, a read and an insert alike.
const VALUE_BYTES: usize = 71;
/// The pause before an operation is tried again.
const PAUSE: Duration = Duration::from_millis(10);

/// The trees of a collection with three indexes.
#[derive(Clone, Copy)]
enum Tree {
    Documents = 20,
    A,
    B,
    C,
}

/// What a client does again and again.
#[derive(Clone, Copy)]
enum Work {
    Fill,
    Read,
    Insert,
    Load,
    Update,
    Counter(Locking),
}

/// When the key of a counter is locked.
#[derive(Clone, Copy)]
enum Locking {
    /// By the commit, which fails where another one came first.
    AtCommit,
    /// By the get, which waits for the lock of another transaction.
    AtGet,
}

/// The connection and the keys of one run.
struct Bench {
    client: TransactionClient,
    prefix: Vec<u8>,
    /// Makes keys of two runs differ.
    run: u64,
}

/// The totals of all clients.
#[derive(Default)]
struct Totals {
    operations: AtomicU64,
    failures: AtomicU64,
    longest_micros: AtomicU64,
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut options: HashMap<&str, &str> = HashMap::new();
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return Err("each option has a value".into()) };
        options.insert(name.trim_start_matches("--"), value);
    }
    let threads = std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).clamp(1, 8));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
    runtime.block_on(run(&options))
}

async fn run(options: &HashMap<&str, &str>) -> Outcome<()> {
    let option = |name: &str, default: &'static str| options.get(name).copied().unwrap_or(default).to_owned();
    let work = match option("work", "read").as_str() {
        "fill" => Work::Fill,
        "read" => Work::Read,
        "insert" => Work::Insert,
        "load" => Work::Load,
        "update" => Work::Update,
        "counter" => Work::Counter(Locking::AtCommit),
        "counter-locked" => Work::Counter(Locking::AtGet),
        other => {
            let known = "fill, read, insert, load, update, counter or counter-locked";
            return Err(format!("there is no work {other:?}: {known}").into());
        }
    };
    let clients: u64 = option("clients", "1").parse()?;
    let seconds: f64 = option("seconds", "1").parse()?;
    let rate: f64 = option("rate", "0").parse()?;
    let period = (rate > 0.0).then(|| Duration::from_secs_f64(clients as f64 / rate));
    let drivers: Vec<String> = option("pd", "127.0.0.1:2379").split(',').map(str::to_owned).collect();
    let config =
        Config::default().with_timeout(REQUEST_TIMEOUT).with_grpc_max_decoding_message_size(ANSWER_BYTES_MAX);
    let client = TransactionClient::new_with_config(drivers, config).await?;
    let run = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_micros() as u64;
    let prefix = format!("pando/{}\0t", option("prefix", "bare")).into_bytes();
    let bench = Arc::new(Bench { client, prefix, run });
    // The regions and the stores of the keys are known, and the connections are there.
    bench.get_one(0).await?;
    let totals = Arc::new(Totals::default());
    let (began, used_before) = (Instant::now(), processor_seconds()?);
    let until = began + Duration::from_secs_f64(seconds);
    let mut tasks = Vec::new();
    for number in 0..if matches!(work, Work::Fill) { 1 } else { clients } {
        let (bench, totals) = (Arc::clone(&bench), Arc::clone(&totals));
        tasks.push(tokio::spawn(
            async move { work_until(&bench, work, number, (until, period), &totals).await },
        ));
    }
    for task in tasks {
        task.await?;
    }
    let (took, used) = (began.elapsed().as_secs_f64(), processor_seconds()? - used_before);
    println!(
        "{{\"operations\": {}, \"seconds\": {took:.3}, \"processor_seconds\": {used:.3}, \"failures\": {}, \
         \"longest_ms\": {:.1}}}",
        totals.operations.load(Ordering::Relaxed),
        totals.failures.load(Ordering::Relaxed),
        totals.longest_micros.load(Ordering::Relaxed) as f64 / 1e3,
    );
    Ok(())
}

async fn work_until(
    bench: &Bench,
    work: Work,
    client: u64,
    (until, period): (Instant, Option<Duration>),
    totals: &Totals,
) {
    let (mut last, mut step) = (Instant::now(), 0);
    let mut due = last;
    while last < until {
        if let Some(period) = period {
            tokio::time::sleep_until(due.into()).await;
            due += period;
        }
        match bench.work_once(work, client, step).await {
            Ok(operations) => {
                totals.operations.fetch_add(operations, Ordering::Relaxed);
                let now = Instant::now();
                totals.longest_micros.fetch_max((now - last).as_micros() as u64, Ordering::Relaxed);
                last = now;
                step += 1;
            }
            Err(_) => {
                totals.failures.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(PAUSE).await;
            }
        }
        if matches!(work, Work::Fill) {
            return;
        }
    }
}

impl Bench {
    fn key(&self, tree: Tree, own: &[u8]) -> Vec<u8> {
        [&self.prefix, &(tree as u32).to_be_bytes()[..], own].concat()
    }

    /// The key of a document of `fill`: ten bytes, as a number of the key order.
    fn filled(&self, number: u64) -> Vec<u8> {
        self.key(Tree::Documents, &[&[0x2d, 0], &number.to_be_bytes()[..]].concat())
    }

    async fn begin(&self) -> Result<Transaction, Error> {
        let options = TransactionOptions::new_optimistic().drop_check(CheckLevel::None);
        self.client.begin_with_options(options).await
    }

    async fn get_one(&self, number: u64) -> Result<Option<Vec<u8>>, Error> {
        let at = self.client.current_timestamp().await?;
        let options = TransactionOptions::new_optimistic().drop_check(CheckLevel::None);
        self.client.snapshot(at, options).get(self.filled(number)).await
    }

    /// The key of a new document, and the four puts.
    fn document(&self, client: u64, number: u64) -> (Vec<u8>, Vec<(Vec<u8>, Vec<u8>)>) {
        let identity = format!("{client}-{:016}", self.run * 1_000_000 + number);
        let own = [&[0x3c], identity.as_bytes(), &[0]].concat();
        let field = number.to_be_bytes();
        let entry = |tree, field: &[u8]| (self.key(tree, &[field, &own].concat()), vec![0]);
        let key = self.key(Tree::Documents, &own);
        let puts = vec![
            (key.clone(), vec![7; VALUE_BYTES]),
            entry(Tree::A, &[&[0x2d, 0], &field[..]].concat()),
            entry(Tree::B, &[&[0x2d, 0], &client.to_be_bytes()[..]].concat()),
            entry(Tree::C, format!("<x{number}\0").as_bytes()),
        ];
        (key, puts)
    }

    /// One operation. Gives how many it counts for.
    async fn work_once(&self, work: Work, client: u64, step: u64) -> Result<u64, Error> {
        match work {
            Work::Fill => {
                let mut transaction = self.begin().await?;
                for number in 0..FILLED {
                    transaction.put(self.filled(number), vec![7; VALUE_BYTES]).await?;
                }
                transaction.commit().await?;
                Ok(FILLED)
            }
            Work::Read => {
                let found = self.get_one((client * 25 + step) % FILLED).await?;
                assert!(found.is_some_and(|found| found.len() == VALUE_BYTES), "`fill` comes before `read`");
                Ok(1)
            }
            Work::Insert => {
                let mut transaction = self.begin().await?;
                let (key, puts) = self.document(client, step);
                transaction.get(key).await?;
                self.put_and_commit(transaction, puts).await?;
                Ok(1)
            }
            Work::Load => {
                let transaction = self.begin().await?;
                let numbers = (0..LOADED_AT_ONCE).map(|number| step * LOADED_AT_ONCE + number);
                let puts = numbers.flat_map(|number| self.document(client, number).1).collect();
                self.put_and_commit(transaction, puts).await?;
                Ok(LOADED_AT_ONCE)
            }
            Work::Update => self.update((client * 25 + step) % FILLED, Locking::AtCommit).await,
            Work::Counter(locking) => self.update(0, locking).await,
        }
    }

    /// Reads a document of `fill` and puts it again.
    async fn update(&self, number: u64, locking: Locking) -> Result<u64, Error> {
        let key = self.filled(number);
        let transaction = match locking {
            Locking::AtCommit => {
                let mut transaction = self.begin().await?;
                transaction.get(key.clone()).await?;
                transaction
            }
            Locking::AtGet => {
                let options = TransactionOptions::new_pessimistic().drop_check(CheckLevel::None);
                let mut transaction = self.client.begin_with_options(options).await?;
                if let Err(error) = transaction.get_for_update(key.clone()).await {
                    // A lock would stay until it expires.
                    let _expires_otherwise = transaction.rollback().await;
                    return Err(error);
                }
                transaction
            }
        };
        self.put_and_commit(transaction, vec![(key, vec![7; VALUE_BYTES])]).await?;
        Ok(1)
    }

    async fn put_and_commit(
        &self,
        mut transaction: Transaction,
        puts: Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Result<(), Error> {
        for (key, value) in puts {
            transaction.put(key, value).await?;
        }
        match transaction.commit().await {
            Ok(_) => Ok(()),
            Err(error) => {
                // The locks go now rather than when they expire.
                let _expires_otherwise = transaction.rollback().await;
                Err(error)
            }
        }
    }
}

/// The processor time of this process so far.
fn processor_seconds() -> Outcome<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> =
        stat.rsplit(')').next().ok_or("a line of /proc/self/stat")?.split_whitespace().collect();
    // User and system time, in ticks of a hundredth of a second.
    Ok((fields[11].parse::<f64>()? + fields[12].parse::<f64>()?) / 100.0)
}
