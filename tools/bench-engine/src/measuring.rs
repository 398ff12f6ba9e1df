//! One measuring process: enters its memory group, opens the store, goes through the workloads of its phase,
//! and writes its outcome. A process of its own for each phase, so that memory, caches and counters are of
//! nothing else.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use pando_measuring::counters::{Memory, ProcessId};

use crate::bench::Bench;
use crate::counters::folder_bytes;
use crate::data::{DOCUMENT_BYTES, DOCUMENTS, INDEXES, RAW_BYTES, TREES};
use crate::error::{BenchError, on_file};
use crate::figures::{Figures, Outcome, write_json};
use crate::memory_group::MemoryGroup;
use crate::peer::{PeerKind, PeerSettings};
use crate::random::Draw;
use crate::setup::{Phase, Setup};
use crate::workloads::inserts::{self, InsertPlan};
use crate::workloads::point_reads::{self, PointPlan};
use crate::workloads::{ceiling, hot_updates, many_trees, recovery, scans};

/// Rows of the scans, with their names in figures.
const SCANS: [(usize, &str); 3] = [(10, "10"), (100, "100"), (100_000, "100k")];
/// Clients where the device is to be busy.
const MANY: u64 = 64;
/// Clients of the reads with a growing cache.
const SOME: u64 = 16;
/// Share of a cache that holds everything: twice the data, for what surrounds it.
const ALL_CACHED: u64 = 2;
/// Where betree keeps the segments of its log, in its folder.
const BETREE_LOG: &str = "wal";
/// Queries of one reader, where beginning one is not to be measured.
const QUERIES_A_SNAPSHOT: u32 = 1_000;

/// The task of a measuring process.
#[derive(Clone, Debug)]
pub struct Task {
    /// How.
    pub setup: Setup,
    pub peer: PeerKind,
    pub phase: Phase,
    /// Where the store is.
    pub folder: PathBuf,
    /// Where the outcome goes.
    pub outcome: PathBuf,
    pub group: Option<PathBuf>,
    /// Of [`Phase::Growing`]: the cache, in percent of the documents' bytes.
    pub percent: u64,
    /// Of [`Phase::Recovery`]: documents that were acknowledged, and megabytes of log.
    pub acknowledged: (u64, f64),
}

pub fn run(task: &Task) -> Result<(), BenchError> {
    if let Some(group) = &task.group {
        MemoryGroup::enter(group).map_err(on_file("enter the group", group))?;
    }
    // Whole huge pages for a few bytes each would count against the cap, with one allocator more than with
    // another.
    rustix::thread::disable_transparent_huge_pages(true)
        .map_err(|error| on_file("turn off huge pages for", "this process")(error.into()))?;
    let mut outcome = Outcome::new(task.peer, task.phase);
    match task.phase {
        Phase::Cached => cached(task, &mut outcome),
        Phase::Capped => capped(task, &mut outcome),
        Phase::Growing => growing(task, &mut outcome),
        Phase::Updates => updates(task, &mut outcome),
        Phase::Compacted => compacted(task, &mut outcome),
        Phase::Trees => trees(task, &mut outcome),
        Phase::TreesAgain => trees_again(task, &mut outcome),
        Phase::Crash => return crash(task, outcome),
        Phase::Recovery => recover(task, &mut outcome),
    }?;
    write_json(&task.outcome, &outcome)
}

impl Task {
    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.setup.seconds)
    }

    fn open(&self, cache_bytes: u64, trees: u32, documents: u64) -> Result<Bench, BenchError> {
        let log_bytes = if self.phase == Phase::Crash { self.setup.log_bytes } else { 0 };
        let layout = self.setup.layout.clone();
        let settings = PeerSettings { layout, cache_bytes, trees, log_bytes };
        Bench::open(self.peer, &self.folder, settings, self.setup.seed, documents)
    }

    fn points(&self, threads: u64) -> PointPlan {
        PointPlan { threads, time: self.time(), draw: Draw::Uniform, queries_a_reader: 1 }
    }
}

/// The end of every phase: memory, and what the library counted.
fn close(bench: &Bench, outcome: &mut Outcome) -> Result<(), BenchError> {
    let name = format!("{}.peak_mb", outcome.phase.name());
    outcome.figures.set(name, Memory::of(ProcessId::own())?.peak_bytes as f64 / 1e6);
    outcome.counters = bench.peer.counters();
    Ok(())
}

fn load(task: &Task, bench: &Bench, prefix: &str, outcome: &mut Outcome) -> Result<bool, BenchError> {
    let setup = &task.setup;
    let at_least = if task.phase == Phase::Capped { setup.insert_seconds } else { 0.0 };
    let plan = InsertPlan {
        batch: setup.batch,
        at_least: Duration::from_secs_f64(at_least),
        at_most: Duration::from_secs_f64(setup.limit_seconds.max(at_least)),
        counters: setup.counters,
    };
    let inserted = inserts::run(bench, plan)?;
    outcome.figures.add(&format!("{prefix}.inserts"), &inserted.figures);
    outcome.timeline = inserted.timeline;
    let whole = inserted.documents >= bench.documents;
    if !whole {
        outcome.notes.push(format!(
            "{} inserted {} of {} documents in {} s with all index entries ({:.1} times the cache); the others came without \
             entries",
            task.peer.title(),
            inserted.documents,
            bench.documents,
            setup.limit_seconds,
            inserts::multiple_of(setup.cache_bytes, inserted.documents),
        ));
        inserts::complete(bench, inserted.documents, setup.batch)?;
    }
    Ok(whole)
}

fn drain(bench: &Bench, whole: bool, prefix: &str, outcome: &mut Outcome) -> Result<(), BenchError> {
    let began = Instant::now();
    bench.peer.drain()?;
    outcome.figures.set(format!("{prefix}.drain_s"), began.elapsed().as_secs_f64());
    if whole {
        let mb = folder_bytes(bench.folder()) as f64 / 1e6;
        outcome.figures.set(format!("{prefix}.disk_mb"), mb);
        let segments = bench.folder().join(BETREE_LOG);
        if segments.is_dir() {
            outcome.figures.set(format!("{prefix}.log_mb"), folder_bytes(&segments) as f64 / 1e6);
        }
    }
    Ok(())
}

fn cached(task: &Task, outcome: &mut Outcome) -> Result<(), BenchError> {
    let documents = task.setup.documents();
    let bench =
        task.open(documents * RAW_BYTES * ALL_CACHED + task.setup.headroom_bytes, TREES, documents)?;
    let whole = load(task, &bench, "cached", outcome)?;
    let figures = &mut outcome.figures;
    // Once through everything, so that nothing has to be read later.
    scans::count_all(&bench, DOCUMENTS, documents)?;
    point_reads::run(&bench, task.points(1))?;
    figures.add("cached.full", &point_reads::run(&bench, task.points(1))?);
    drain(&bench, whole, "cached", outcome)?;
    scans::count_all(&bench, DOCUMENTS, documents)?;
    let figures = &mut outcome.figures;
    point_reads::run(&bench, task.points(1))?;
    figures.add("cached.drained", &point_reads::run(&bench, task.points(1))?);
    let snapshot = PointPlan { queries_a_reader: QUERIES_A_SNAPSHOT, ..task.points(1) };
    figures.add("cached.snapshot", &point_reads::run(&bench, snapshot)?);
    figures.add("cached.two", &point_reads::run(&bench, task.points(2))?);
    if whole {
        INDEXES.into_iter().try_for_each(|index| scans::count_all(&bench, index, documents))?;
    }
    all_scans(task, &bench, whole, "cached", figures)?;
    close(&bench, outcome)
}

fn all_scans(
    task: &Task,
    bench: &Bench,
    with_index: bool,
    prefix: &str,
    figures: &mut Figures,
) -> Result<(), BenchError> {
    for (rows, name) in SCANS {
        let scanned = scans::run(bench, DOCUMENTS, rows, task.time())?;
        figures.add(&format!("{prefix}.scan{name}"), &scanned);
        if with_index {
            let scanned = scans::run(bench, scans::INDEX, rows, task.time())?;
            figures.add(&format!("{prefix}.index{name}"), &scanned);
        }
    }
    Ok(())
}

fn capped(task: &Task, outcome: &mut Outcome) -> Result<(), BenchError> {
    let documents = task.setup.documents();
    let bench = task.open(task.setup.cache_bytes, TREES, documents)?;
    let before = bench.sample()?;
    let whole = load(task, &bench, "capped", outcome)?;
    drain(&bench, whole, "capped", outcome)?;
    if whole {
        let usage = bench.sample()?.since(&before);
        let loaded = outcome.figures.get("capped.inserts.documents").unwrap_or(documents as f64);
        inserts::costs(&usage, loaded, "capped.drained", &mut outcome.figures);
    }
    outcome.figures.set("capped.loaded_mb", Memory::of(ProcessId::own())?.peak_bytes as f64 / 1e6);
    outcome.counters = bench.peer.counters();
    // The next step may meet the cap: the figures so far are kept.
    write_json(&task.outcome, outcome)?;
    let figures = &mut outcome.figures;
    cold_points(task, &bench, figures)?;
    all_scans(task, &bench, whole, "cold", figures)?;
    close(&bench, outcome)
}

/// Point reads against the device's own rate at the same size, turn by turn, since both change with what else
/// runs.
fn cold_points(task: &Task, bench: &Bench, figures: &mut Figures) -> Result<(), BenchError> {
    point_reads::run(bench, task.points(MANY))?;
    for (threads, name) in [(MANY, "64"), (1, "1")] {
        let first = point_reads::run(bench, task.points(threads))?;
        figures.add(&format!("cold.points{name}"), &first);
        let bytes = first.get("bytes_a_read").unwrap_or(4096.0);
        let ceiling = ceiling::run(bench.folder(), threads, bytes, task.time())?;
        let second = point_reads::run(bench, task.points(threads))?;
        if let (Some(ceiling), Some(a), Some(b)) =
            (ceiling.get("rate"), first.get("rate"), second.get("rate"))
        {
            figures.set(format!("cold.points{name}.rate"), (a + b) / 2.0);
            figures.set(format!("cold.points{name}.of_ceiling"), (a + b) / 2.0 / ceiling);
        }
        figures.add(&format!("cold.ceiling{name}"), &ceiling);
    }
    Ok(())
}

fn growing(task: &Task, outcome: &mut Outcome) -> Result<(), BenchError> {
    let documents = task.setup.documents();
    let cache_bytes = (documents * DOCUMENT_BYTES * task.percent / 100).max(1 << 20);
    let bench = task.open(cache_bytes, TREES, documents)?;
    let plan = PointPlan { draw: Draw::Latest, ..task.points(SOME) };
    point_reads::run(&bench, plan)?;
    let figures = point_reads::run(&bench, plan)?;
    outcome.figures.add(&format!("growing{}", task.percent), &figures);
    Ok(())
}

fn updates(task: &Task, outcome: &mut Outcome) -> Result<(), BenchError> {
    let bench = task.open(task.setup.cache_bytes, TREES, task.setup.documents())?;
    let time = task.time() * 3;
    let figures = hot_updates::run(&bench, task.setup.update_batch, time)?;
    outcome.figures.add("updates", &figures);
    close(&bench, outcome)
}

fn compacted(task: &Task, outcome: &mut Outcome) -> Result<(), BenchError> {
    let bench = task.open(task.setup.cache_bytes, TREES, task.setup.documents())?;
    let (before, began) = (bench.sample()?, Instant::now());
    bench.peer.compact()?;
    let figures = &mut outcome.figures;
    figures.set("compacted.seconds", began.elapsed().as_secs_f64());
    figures.set("compacted.disk_mb", folder_bytes(bench.folder()) as f64 / 1e6);
    figures.set("compacted.written_mb", bench.sample()?.since(&before).written_bytes / 1e6);
    close(&bench, outcome)
}

fn trees(task: &Task, outcome: &mut Outcome) -> Result<(), BenchError> {
    let began = Instant::now();
    let bench = task.open(task.setup.cache_bytes, task.setup.trees, 0)?;
    outcome.figures.add("trees", &many_trees::make(&bench, task.setup.trees, began)?);
    outcome.figures.set("trees.disk_mb", folder_bytes(bench.folder()) as f64 / 1e6);
    close(&bench, outcome)
}

fn trees_again(task: &Task, outcome: &mut Outcome) -> Result<(), BenchError> {
    let began = Instant::now();
    let bench = task.open(task.setup.cache_bytes, task.setup.trees, 0)?;
    outcome.figures.add("trees", &many_trees::again(&bench, task.setup.trees, began)?);
    close(&bench, outcome)
}

/// Ends this process with the store open: nothing is closed, dropped or drained.
fn crash(task: &Task, mut outcome: Outcome) -> Result<(), BenchError> {
    let bench = task.open(task.setup.cache_bytes, TREES, 0)?;
    let figures = recovery::fill_log(&bench, task.setup.batch, task.setup.log_bytes)?;
    outcome.figures.add("crash", &figures);
    outcome.counters = bench.peer.counters();
    write_json(&task.outcome, &outcome)?;
    std::process::exit(0);
}

fn recover(task: &Task, outcome: &mut Outcome) -> Result<(), BenchError> {
    let began = Instant::now();
    let (documents, log_mb) = task.acknowledged;
    let bench = task.open(task.setup.cache_bytes, TREES, documents)?;
    outcome.figures.add("recovery", &recovery::check(&bench, began, log_mb)?);
    close(&bench, outcome)
}
