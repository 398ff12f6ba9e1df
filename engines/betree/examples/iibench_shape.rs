//! The evenness of inserts of documents with three secondary indexes, while the data grows to many times the
//! cache.
//!
//! `cargo run --release -p pando-betree --example iibench_shape -- FOLDER [DOCUMENTS] [CACHE_MB] [THREADS]
//! [BATCH] [NAME=VALUE …]`
//!
//! Documents of 300 bytes have ascending keys, their index entries random ones. A commit has BATCH documents.
//! NAME=VALUE are options of the engine. The output is a line a second: documents, the slowest commit, and
//! how each thread spent the second. At the end come the rate of each tenth, the slowest second against the
//! median, pauses, bytes and reads a document, and the time of the slowest commits by cause.
//!
//! The kernel tells how time was spent (`schedstat`): on a processor, waiting for one, or asleep. A machine
//! with other users shows in the waiting. The folder must not exist yet; it is removed.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pando_betree::{Betree, Options};
use pando_environment::{Environment, Random, SeededRandom};
use pando_storage::{Begin, Durability, Engine, StorageError, TreeId, TreeOptions};

const DOCUMENT_BYTES: usize = 300;
const SLOWEST_KEPT: usize = 10;
const PAUSE: Duration = Duration::from_millis(50);

/// Nanoseconds on a processor, and waiting for one.
#[derive(Clone, Copy, Default)]
struct Scheduled {
    ran: u64,
    waited: u64,
}

impl Scheduled {
    fn read(path: &str) -> Scheduled {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut numbers = text.split_whitespace().map(|number| number.parse().unwrap_or(0));
        Scheduled { ran: numbers.next().unwrap_or(0), waited: numbers.next().unwrap_or(0) }
    }

    fn own() -> Scheduled {
        Scheduled::read("/proc/thread-self/schedstat")
    }

    fn since(self, before: Scheduled) -> Scheduled {
        Scheduled {
            ran: self.ran.saturating_sub(before.ran),
            waited: self.waited.saturating_sub(before.waited),
        }
    }
}

/// A slow commit, and the parts of its time.
#[derive(Clone, Copy)]
struct Slow {
    took: Duration,
    at: Duration,
    scheduled: Scheduled,
    /// Nanoseconds that back-pressure made all commits sleep meanwhile.
    delayed: u64,
    /// Commits that stalled meanwhile.
    stalls: u64,
}

/// The state that the writing threads share.
struct Shared {
    engine: Arc<Betree>,
    documents_tree: TreeId,
    indexes: [TreeId; 3],
    documents: u64,
    batch: u64,
    began: Instant,
    next: AtomicU64,
    done: AtomicU64,
    slowest_nanos: AtomicU64,
    is_over: AtomicBool,
    slow: Mutex<Vec<Slow>>,
}

fn figure(engine: &Betree, wanted: &str) -> u64 {
    engine.statistics().iter().find(|(name, _)| *name == wanted).map_or(0, |(_, value)| value)
}

fn main() -> Result<(), StorageError> {
    let (entries, plain): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.contains('='));
    let mut plain = plain.into_iter();
    let folder = PathBuf::from(plain.next().expect("the first argument is a folder"));
    let mut number = |usual: u64| plain.next().map_or(usual, |text| text.parse().expect("a number"));
    let (documents, cache, threads, batch) = (number(3_000_000), number(48), number(1), number(100));
    let split =
        |entry: &String| entry.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    let entries: Vec<(String, String)> = entries.iter().filter_map(split).collect();
    let mut options = Options::default();
    options.cache_bytes = cache << 20;
    let options = options.with_entries(&entries).expect("the options are possible");
    let engine = Betree::open(&Environment::real(), &folder, options)?;
    let create = |name: &str| engine.create_tree(name, &TreeOptions::default());
    let shared = Shared {
        documents_tree: create("documents")?,
        indexes: [create("price")?, create("cash")?, create("date")?],
        engine: Arc::clone(&engine),
        documents,
        batch,
        began: Instant::now(),
        next: AtomicU64::new(0),
        done: AtomicU64::new(0),
        slowest_nanos: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
        slow: Mutex::default(),
    };
    let seconds = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&shared));
        let writers: Vec<_> = (0..threads)
            .map(|number| {
                scope.spawn({
                    let shared = &shared;
                    move || write(shared, number)
                })
            })
            .collect();
        let outcome =
            writers.into_iter().try_for_each(|writer| writer.join().expect("a writer does not panic"));
        shared.is_over.store(true, Ordering::SeqCst);
        outcome.map(|()| watcher.join().expect("the watcher does not panic"))
    })?;
    report(&shared, &seconds, cache << 20);
    if std::env::var_os("FIGURES").is_some() {
        engine.statistics().iter().for_each(|(name, value)| println!("  {name} {value}"));
    }
    engine.close()?;
    std::fs::remove_dir_all(&folder).expect("the folder can be removed");
    Ok(())
}

fn write(shared: &Shared, number: u64) -> Result<(), StorageError> {
    let random = SeededRandom::new(number + 1);
    let mut document = [b'-'; DOCUMENT_BYTES];
    loop {
        let first = shared.next.fetch_add(shared.batch, Ordering::Relaxed);
        if first >= shared.documents {
            return Ok(());
        }
        let (began, before) = (Instant::now(), Scheduled::own());
        let pressure = |engine| (figure(engine, "commits.delay_nanos"), figure(engine, "commits.stalls"));
        let (delayed, stalls) = pressure(&shared.engine);
        let mut writer = shared.engine.begin(Begin::WRITE)?;
        for document_number in first..shared.documents.min(first + shared.batch) {
            random.fill(&mut document[40..140]);
            let primary = document_number.to_be_bytes();
            writer.put_blind(shared.documents_tree, &primary, &document)?;
            for (at, index) in shared.indexes.iter().enumerate() {
                let mut key = [0x2B; 30];
                random.fill(&mut key[1..9 + 4 * at]);
                key[22..].copy_from_slice(&primary);
                writer.put_blind(*index, &key, b"")?;
            }
        }
        writer.commit(Durability::Logged)?;
        shared.done.fetch_add(shared.documents.min(first + shared.batch) - first, Ordering::Relaxed);
        let took = began.elapsed();
        let nanos = took.as_nanos() as u64;
        shared.slowest_nanos.fetch_max(nanos, Ordering::Relaxed);
        if took > Duration::from_millis(5) {
            let (delayed_after, stalls_after) = pressure(&shared.engine);
            let scheduled = Scheduled::own().since(before);
            let (delayed, stalls) = (delayed_after - delayed, stalls_after - stalls);
            let slow = Slow { took, at: shared.began.elapsed(), scheduled, delayed, stalls };
            shared.slow.lock().expect("nobody panics").push(slow);
        }
    }
}

/// The figures of one second.
struct Second {
    documents: u64,
    took: Duration,
    written: u64,
    reads: u64,
    disk: u64,
}

/// Names of this process's threads, and the work of each.
fn threads() -> Vec<(String, Scheduled)> {
    let mut threads: Vec<(String, Scheduled)> = Vec::new();
    for entry in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let path = entry.path();
        let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default().trim().to_owned();
        threads.push((name, Scheduled::read(&path.join("schedstat").to_string_lossy())));
    }
    threads.sort_by(|left, right| left.0.cmp(&right.0));
    threads
}

fn watch(shared: &Shared) -> Vec<Second> {
    let engine = &shared.engine;
    let mut seconds = Vec::new();
    let mut before_threads = threads();
    let (mut done, mut began) = (0, Instant::now());
    let (mut written, mut reads, mut delayed) = (0, 0, 0);
    while !shared.is_over.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_secs(1));
        let (now_done, took) = (shared.done.load(Ordering::Relaxed), began.elapsed());
        began = Instant::now();
        let now = (
            figure(engine, "data.write_bytes"),
            figure(engine, "data.reads"),
            figure(engine, "commits.delay_nanos"),
        );
        let disk = figure(engine, "data.file_bytes") - figure(engine, "data.free_bytes");
        let slowest = Duration::from_nanos(shared.slowest_nanos.swap(0, Ordering::Relaxed));
        let after_threads = threads();
        let mut lines = Vec::new();
        for (name, after) in &after_threads {
            let before = before_threads
                .iter()
                .find(|(other, _)| other == name)
                .map_or(Scheduled::default(), |(_, before)| *before);
            let did = after.since(before);
            if did.ran > 5_000_000 {
                lines.push(format!("{name} {}+{}", did.ran / 1_000_000, did.waited / 1_000_000));
            }
        }
        before_threads = after_threads;
        println!(
            "{:3.0} s {:7} docs, slowest {:5.1} ms, {:4} MB, {:5.1} MB written, {:5} reads, {:4} ms delayed, {:4} KB buffered; ms on+waiting for a processor: {}",
            shared.began.elapsed().as_secs_f64(),
            now_done - done,
            slowest.as_secs_f64() * 1e3,
            disk >> 20,
            (now.0 - written) as f64 / 1e6,
            now.1 - reads,
            (now.2 - delayed) / 1_000_000,
            figure(engine, "buffers.bytes") >> 10,
            lines.join(", "),
        );
        seconds.push(Second {
            documents: now_done - done,
            took,
            written: now.0 - written,
            reads: now.1 - reads,
            disk,
        });
        done = now_done;
        (written, reads, delayed) = now;
    }
    // The last one is cut short.
    seconds.pop();
    seconds
}

fn rate(seconds: &[&Second]) -> f64 {
    let documents: u64 = seconds.iter().map(|second| second.documents).sum();
    let time: f64 = seconds.iter().map(|second| second.took.as_secs_f64()).sum();
    documents as f64 / time
}

fn report(shared: &Shared, seconds: &[Second], cache: u64) {
    let of = |from: u64, to: u64| -> Vec<&Second> {
        seconds.iter().filter(|second| second.disk >= from && second.disk < to).collect()
    };
    let (small, large) = (of(0, cache), of(cache * 8, u64::MAX));
    println!(
        "all in cache: {:.0} documents/s; from 8 times the cache on: {:.0}, {:.2} of it",
        rate(&small),
        rate(&large),
        rate(&large) / rate(&small)
    );
    let mut rates: Vec<f64> =
        seconds.iter().map(|second| second.documents as f64 / second.took.as_secs_f64()).collect();
    rates.sort_by(f64::total_cmp);
    if let (Some(least), Some(median)) = (rates.first(), rates.get(rates.len() / 2)) {
        let tenth = rates[rates.len() / 10];
        println!(
            "seconds: median {median:.0}, slowest {least:.0} ({:.2} of it), tenth slowest of a hundred {:.2}",
            least / median,
            tenth / median
        );
    }
    let sum = |of: fn(&Second) -> u64| large.iter().map(|second| of(second)).sum::<u64>() as f64;
    let documents = sum(|second| second.documents);
    println!(
        "from 8 times the cache on: {:.0} B written a document besides the log, {:.4} reads",
        sum(|second| second.written) / documents,
        sum(|second| second.reads) / documents,
    );
    println!(
        "log: {:.0} B a document",
        figure(&shared.engine, "log.write_bytes") as f64 / shared.documents as f64
    );
    let mut slow = shared.slow.lock().expect("nobody panics").clone();
    let pauses = slow.iter().filter(|slow| slow.took > PAUSE).count();
    // Time in which a commit waited for a processor that another program had is no pause of the engine's.
    let own = slow
        .iter()
        .filter(|slow| slow.took.saturating_sub(Duration::from_nanos(slow.scheduled.waited)) > PAUSE)
        .count();
    println!(
        "commits over 50 ms: {pauses}; {own} without the wait for a processor; over 5 ms: {}",
        slow.len()
    );
    slow.sort_by_key(|slow| std::cmp::Reverse(slow.took));
    for slow in slow.iter().take(SLOWEST_KEPT) {
        let ms = |nanos: u64| nanos as f64 / 1e6;
        let took = slow.took.as_nanos() as u64;
        println!(
            "  {:6.1} ms at {:5.1} s: {:5.1} on a processor, {:5.1} waiting for one, {:5.1} asleep; {:5.1} of delays, {} stalls",
            ms(took),
            slow.at.as_secs_f64(),
            ms(slow.scheduled.ran),
            ms(slow.scheduled.waited),
            ms(took.saturating_sub(slow.scheduled.ran + slow.scheduled.waited)),
            ms(slow.delayed),
            slow.stalls,
        );
    }
}
