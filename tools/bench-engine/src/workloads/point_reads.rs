//! Point reads: documents by primary key, closed loop, each query a reader of its own unless said otherwise.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::bench::Bench;
use crate::data::{DOCUMENTS, primary_key};
use crate::error::BenchError;
use crate::figures::Figures;
use crate::random::{Draw, Random};

/// How points are read.
#[derive(Clone, Copy, Debug)]
pub struct PointPlan {
    /// Clients, each a thread.
    pub threads: u64,
    /// How long.
    pub time: Duration,
    pub draw: Draw,
    pub queries_a_reader: u32,
}

/// Queries between two looks at the clock.
const QUERIES_A_LOOK: u32 = 64;

/// Reads for a time; checks every answer.
pub fn run(bench: &Bench, plan: PointPlan) -> Result<Figures, BenchError> {
    let (ended, queries) = (AtomicBool::new(false), AtomicU64::new(0));
    let before = bench.sample()?;
    let began = Instant::now();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..plan.threads)
            .map(|client| {
                let (ended, queries) = (&ended, &queries);
                scope.spawn(move || {
                    let done = query_until(bench, plan, client, ended);
                    ended.fetch_or(done.is_err(), Ordering::Relaxed);
                    done.map(|done| queries.fetch_add(done, Ordering::Relaxed))
                })
            })
            .collect();
        while began.elapsed() < plan.time && !ended.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        ended.store(true, Ordering::Relaxed);
        clients.into_iter().try_for_each(|client| client.join().expect("clients do not panic").map(|_| ()))
    })?;
    let usage = bench.sample()?.since(&before);
    let count = queries.load(Ordering::Relaxed) as f64;
    Ok(Figures::from([
        ("rate", count / usage.seconds),
        ("us", plan.threads as f64 * usage.seconds * 1e6 / count),
        ("cpu_us", usage.cpu_seconds * 1e6 / count),
        ("reads", usage.reads / count),
        ("read_kb", usage.read_bytes / 1024.0 / count),
        ("bytes_a_read", usage.read_bytes / usage.reads),
        ("read_share", usage.share),
    ]))
}

/// One client; gives its queries.
fn query_until(bench: &Bench, plan: PointPlan, client: u64, ended: &AtomicBool) -> Result<u64, BenchError> {
    let mut random = Random::new(bench.seed ^ (client + 1) << 32 ^ clock_bits());
    let mut queries = 0;
    let mut reader = bench.peer.reader()?;
    loop {
        let mut right = true;
        for _ in 0..QUERIES_A_LOOK {
            if queries % u64::from(plan.queries_a_reader) == 0 {
                // One at a time: some libraries count what an open one pins.
                drop(reader);
                reader = bench.peer.reader()?;
            }
            let number = plan.draw.draw(&mut random, bench.documents);
            let mut see = |value: &[u8]| right &= bench.purchases.check(number, 0..=0, value);
            let found = reader.get(DOCUMENTS, &primary_key(number), &mut see)?;
            if !found || !right {
                let what = if found { "another document" } else { "nothing" };
                return Err(bench.wrong(format!("the get of document {number}"), what));
            }
            queries += 1;
            if plan.threads > 2 && ended.load(Ordering::Relaxed) {
                return Ok(queries);
            }
        }
        if ended.load(Ordering::Relaxed) {
            return Ok(queries);
        }
    }
}

/// Each measurement asks for other documents than the one before.
fn clock_bits() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    since.as_nanos() as u64
}
