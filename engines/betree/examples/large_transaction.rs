//! The cost of one transaction that is larger than the cache: memory, write amplification, and waits of other
//! commits.
//!
//! `cargo run --release -p pando-betree --example large_transaction -- FOLDER [MB] [CACHE_MB]`, and again
//! with `replay` behind it. With `PANDO_STOP=1` the first run ends right after the commit, and the second
//! replays its log.
//!
//! Entries have random keys of 16 bytes and values of 240, of which half are random. Another thread makes
//! small commits meanwhile, at most one a millisecond.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pando_betree::{Betree, Options};
use pando_environment::{Environment, Random, SeededRandom};
use pando_storage::{Begin, Durability, Engine, ErrorKind, StorageError, TreeId, TreeOptions};

const ENTRY_BYTES: u64 = 256;

fn main() -> Result<(), StorageError> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("the first argument is a folder"));
    let number = |text: Option<String>, usual| text.map_or(usual, |text| text.parse().expect("a number"));
    let megabytes: u64 = number(arguments.next(), 256);
    let cache: u64 = number(arguments.next(), 64);
    let mut options = Options::default();
    options.cache_bytes = cache << 20;
    println!("before: {} MB at most", peak_memory());
    let began = Instant::now();
    let engine = Betree::open(&Environment::real(), &folder, options)?;
    if arguments.next().as_deref() == Some("replay") {
        println!("replay: {} MB at most, {:.1} s", peak_memory(), began.elapsed().as_secs_f64());
        print_figures(&engine, "after the replay", megabytes << 20);
        return engine.close();
    }
    let tree = engine.create_tree("large", &TreeOptions::default())?;
    let small = engine.create_tree("small", &TreeOptions::default())?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let others = scope.spawn(|| commit_small(&engine, small, &is_over));
        let outcome = write(&engine, tree, (megabytes << 20) / ENTRY_BYTES);
        is_over.store(true, Ordering::Relaxed);
        let (mut waits, refused) = others.join().expect("the other thread ends")?;
        waits.sort_unstable();
        let at = |share: usize| waits[(waits.len() - 1) * share / 1_000];
        println!(
            "{} small commits beside, {refused} refused: half in {:?}, 999 of 1,000 in {:?}, the longest {:?}",
            waits.len(),
            at(500),
            at(999),
            at(1_000)
        );
        outcome
    })?;
    print_figures(&engine, "committed", megabytes << 20);
    engine.checkpoint()?;
    print_figures(&engine, "checkpointed", megabytes << 20);
    if cfg!(debug_assertions) {
        println!("this is not a release build: its times say nothing");
    }
    Ok(())
}

fn write(engine: &Betree, tree: TreeId, entries: u64) -> Result<(), StorageError> {
    let chance = SeededRandom::new(1);
    let (mut key, mut value) = ([0; 16], [7; 240]);
    let began = Instant::now();
    let mut writer = engine.begin(Begin::WRITE)?;
    for _ in 0..entries {
        chance.fill(&mut key);
        chance.fill(&mut value[..120]);
        writer.put(tree, &key, &value)?;
    }
    println!("written: {} MB at most, {:.1} s", peak_memory(), began.elapsed().as_secs_f64());
    print_figures(engine, "written", entries * ENTRY_BYTES);
    let began = Instant::now();
    writer.commit(Durability::Logged)?;
    println!("committed: {} MB at most, {:.1} s", peak_memory(), began.elapsed().as_secs_f64());
    // The end of the process here is what the replay is measured after.
    if std::env::var_os("PANDO_STOP").is_some() {
        std::process::exit(0);
    }
    Ok(())
}

/// Commits until the large one is over. The result is how long each commit took until it was visible, and how
/// many were refused. Filters know the claims of the large one, and two keys in a hundred pass them by
/// mistake.
fn commit_small(
    engine: &Betree,
    tree: TreeId,
    is_over: &AtomicBool,
) -> Result<(Vec<Duration>, usize), StorageError> {
    let (mut waits, mut refused) = (Vec::new(), 0);
    for number in 0_u64.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let mut writer = engine.begin(Begin::WRITE)?;
        match writer.put(tree, &(number % 1_000).to_be_bytes(), &[7; 100]) {
            Err(error) if error.kind() == ErrorKind::Conflict => {
                refused += 1;
                continue;
            }
            outcome => outcome?,
        }
        let began = Instant::now();
        writer.commit(Durability::Logged)?;
        waits.push(began.elapsed());
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok((waits, refused))
}

fn print_figures(engine: &Betree, name: &str, bytes: u64) {
    let statistics = engine.statistics();
    let figure = |wanted: &str| {
        let found = statistics.iter().find(|(name, _)| *name == wanted);
        found.map_or(0, |(_, value)| value)
    };
    let share = |name: &str| figure(name) as f64 / bytes as f64;
    println!(
        "{name}: bytes written for each byte: spilled {:.2} (read {:.2}), log {:.2}, data {:.2}; memory: writes {} KB, buffers {} KB, claims {} KB; parts {}, delays {}, stalls {}, replayed {}",
        share("transactions.spill_write_bytes"),
        share("transactions.spill_read_bytes"),
        share("log.write_bytes"),
        share("data.write_bytes"),
        figure("transactions.memory_bytes") >> 10,
        figure("buffers.bytes") >> 10,
        figure("intents.bytes") >> 10,
        figure("commits.large_parts"),
        figure("commits.delays"),
        figure("commits.stalls"),
        figure("recovery.writes"),
    );
}

/// The most memory that the process has had resident, in MB, as the kernel says.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .and_then(|text| text.trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) >> 10
}
