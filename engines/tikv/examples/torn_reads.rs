//! Whether the snapshots of a cluster are whole, with the crate `tikv-client` alone.
//!
//! ```text
//! torn_reads --pd 127.0.0.1:2379 --writers 2 --seconds 60 [--commit one-phase] [--age 60 --pairs 4000]
//! ```
//!
//! Each writer puts one number under two keys in one transaction, again and again. Readers take a timestamp,
//! scan all first keys, and get each second key at the same timestamp. Where the two numbers differ, the
//! snapshot was torn. `tests/tikv` compares documents with their index entries in the same way, so this tells
//! whether a disagreement there is one of the cluster.
//!
//! With `--age` the snapshots are read so many seconds after their timestamp, when the stores have flushed
//! newer versions. `--pairs` is the number of pairs of keys (300); the tables of many have several blocks.
//!
//! It prints one line for each torn snapshot, with the numbers of both keys, what a second look at the same
//! timestamp gives, and the time. The last line has the counts.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tikv_client::{CheckLevel, Config, Error, Timestamp, TransactionClient, TransactionOptions};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of every other value, so that stores flush their memory often.
const PADDING: usize = 2_000;
/// The pause before a write is tried again.
const PAUSE: Duration = Duration::from_millis(10);

struct Check {
    client: TransactionClient,
    prefix: String,
    options: TransactionOptions,
    /// The time between a timestamp and the reads at it.
    age: Duration,
    /// Pairs of keys.
    pairs: u64,
    commits: AtomicU64,
    snapshots: AtomicU64,
    torn: AtomicU64,
    failures: AtomicU64,
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut options: HashMap<&str, &str> = HashMap::new();
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return Err("each option has a value".into()) };
        options.insert(name.trim_start_matches("--"), value);
    }
    let option = |name: &str, default: &'static str| options.get(name).copied().unwrap_or(default).to_owned();
    let drivers: Vec<String> = option("pd", "127.0.0.1:2379").split(',').map(str::to_owned).collect();
    let client =
        TransactionClient::new_with_config(drivers, Config::default().with_timeout(REQUEST_TIMEOUT)).await?;
    let optimistic = TransactionOptions::new_optimistic().drop_check(CheckLevel::None);
    let check = Arc::new(Check {
        client,
        prefix: format!("torn/{}/", SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros()),
        options: match option("commit", "two-phase").as_str() {
            "one-phase" => optimistic.use_async_commit().try_one_pc(),
            _ => optimistic,
        },
        age: Duration::from_secs_f64(option("age", "0").parse()?),
        pairs: option("pairs", "300").parse()?,
        commits: AtomicU64::new(0),
        snapshots: AtomicU64::new(0),
        torn: AtomicU64::new(0),
        failures: AtomicU64::new(0),
    });
    let until = Instant::now() + Duration::from_secs_f64(option("seconds", "60").parse()?);
    let mut tasks = Vec::new();
    for writer in 0..option("writers", "2").parse()? {
        let check = Arc::clone(&check);
        tasks.push(tokio::spawn(async move {
            let mut step = 0;
            while Instant::now() < until {
                match check.write(writer, step).await {
                    Ok(()) => check.commits.fetch_add(1, Ordering::Relaxed),
                    Err(_) => {
                        tokio::time::sleep(PAUSE).await;
                        check.failures.fetch_add(1, Ordering::Relaxed)
                    }
                };
                step += 1;
            }
        }));
    }
    let reader = Arc::clone(&check);
    tasks.push(tokio::spawn(async move {
        while Instant::now() < until {
            match reader.read().await {
                Ok(()) => reader.snapshots.fetch_add(1, Ordering::Relaxed),
                Err(_) => reader.failures.fetch_add(1, Ordering::Relaxed),
            };
        }
    }));
    for task in tasks {
        task.await?;
    }
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    println!(
        "{} commits, {} snapshots, {} torn, {} failures",
        count(&check.commits),
        count(&check.snapshots),
        count(&check.torn),
        count(&check.failures)
    );
    Ok(())
}

impl Check {
    fn key(&self, half: char, number: u64) -> Vec<u8> {
        format!("{}{half}{number:08}", self.prefix).into_bytes()
    }

    async fn write(&self, writer: u64, step: u64) -> Result<(), Error> {
        let mut transaction = self.client.begin_with_options(self.options.clone()).await?;
        let pair = (step * 7 + writer * 131) % self.pairs;
        let number = format!("{writer}-{step:08}/").into_bytes();
        let padding = if u64::is_multiple_of(step, 2) { PADDING } else { 0 };
        transaction.put(self.key('a', pair), [&number[..], &vec![b'x'; padding][..]].concat()).await?;
        transaction.put(self.key('b', pair), number).await?;
        match transaction.commit().await {
            Ok(_) => Ok(()),
            Err(error) => {
                let _expires_otherwise = transaction.rollback().await;
                Err(error)
            }
        }
    }

    /// The numbers of the first keys and of the second ones, by pair.
    async fn look(&self, at: &Timestamp) -> Result<Vec<(String, String, String)>, Error> {
        let first = self.key('a', 0)..self.key('a', self.pairs);
        let mut snapshot = self.client.snapshot(at.clone(), self.options.clone());
        let scanned: Vec<(Vec<u8>, Vec<u8>)> =
            snapshot.scan(first, self.pairs as u32).await?.map(|pair| (Vec::from(pair.0), pair.1)).collect();
        let mut differing = Vec::new();
        for (key, value) in scanned {
            let mut second = key.clone();
            second[self.prefix.len()] = b'b';
            let mut snapshot = self.client.snapshot(at.clone(), self.options.clone());
            let found = snapshot.get(second).await?.unwrap_or_default();
            let number =
                |bytes: &[u8]| String::from_utf8_lossy(bytes).split('/').next().unwrap_or("").to_owned();
            if number(&value) != number(&found) {
                differing.push((
                    String::from_utf8_lossy(&key[self.prefix.len()..]).into_owned(),
                    number(&value),
                    number(&found),
                ));
            }
        }
        Ok(differing)
    }

    async fn read(&self) -> Result<(), Error> {
        let at = self.client.current_timestamp().await?;
        tokio::time::sleep(self.age).await;
        let differing = self.look(&at).await?;
        if !differing.is_empty() {
            self.torn.fetch_add(1, Ordering::Relaxed);
            let again = self.look(&at).await?;
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
            println!("{now}: {differing:?}; the same snapshot again: {again:?}");
        }
        Ok(())
    }
}
