//! The activity on a collection since the store was opened: requests and their times by kind. `top` and
//! `latencyStats` show it.
//!
//! # Terms
//! - *Kind*: what a request did with the collection ([`ActivityKind`]).
//! - *Class*: reads, writes, or other commands ([`LatencyClass`]); each kind belongs to one.
//!
//! All counters are relaxed: a reader sees each of them whole, and not all of one moment. A collection that
//! no request has used takes no memory for them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The kind of use that a request makes of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivityKind {
    /// `find`.
    Query,
    /// `getMore`.
    GetMore,
    /// `insert`.
    Insert,
    /// `update`.
    Update,
    /// `delete`.
    Remove,
    /// Another command that reads documents.
    ReadCommand,
    /// Another command that writes documents.
    WriteCommand,
    /// A command that does neither.
    OtherCommand,
}

/// The classes by which latencies are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyClass {
    /// Requests that read documents.
    Reads,
    /// Requests that write documents.
    Writes,
    /// All others.
    Commands,
}

impl ActivityKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [ActivityKind; 8] = [
        ActivityKind::Query,
        ActivityKind::GetMore,
        ActivityKind::Insert,
        ActivityKind::Update,
        ActivityKind::Remove,
        ActivityKind::ReadCommand,
        ActivityKind::WriteCommand,
        ActivityKind::OtherCommand,
    ];

    /// Its class.
    pub fn class(self) -> LatencyClass {
        match self {
            ActivityKind::Query | ActivityKind::GetMore | ActivityKind::ReadCommand => LatencyClass::Reads,
            ActivityKind::Insert
            | ActivityKind::Update
            | ActivityKind::Remove
            | ActivityKind::WriteCommand => LatencyClass::Writes,
            ActivityKind::OtherCommand => LatencyClass::Commands,
        }
    }
}

impl LatencyClass {
    /// All of them, in the order of their numbers.
    pub const ALL: [LatencyClass; 3] = [LatencyClass::Reads, LatencyClass::Writes, LatencyClass::Commands];
}

/// Lower bounds of the buckets that are powers of two, from 2 microseconds; above them come half steps, too.
const POWERS: usize = 10;
/// Buckets: 0, the powers, and two for each power from 2,048 microseconds.
const BUCKETS: usize = 51;

/// Times by bucket, and their sum.
#[derive(Debug)]
pub struct LatencyHistogram {
    micros: AtomicU64,
    counts: [AtomicU64; BUCKETS],
}

/// The sum of several histograms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyFigures {
    /// The sum of all times, in microseconds.
    pub micros: u64,
    /// How many times there are.
    pub operations: u64,
    counts: [u64; BUCKETS],
}

impl Default for LatencyHistogram {
    fn default() -> LatencyHistogram {
        LatencyHistogram { micros: AtomicU64::new(0), counts: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

impl Default for LatencyFigures {
    fn default() -> LatencyFigures {
        LatencyFigures { micros: 0, operations: 0, counts: [0; BUCKETS] }
    }
}

fn micros_of(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}

/// The bucket of a time.
fn bucket_of(micros: u64) -> usize {
    if micros < 2 {
        return 0;
    }
    let power = micros.ilog2() as usize;
    if power <= POWERS {
        return power;
    }
    let upper_half = usize::from(micros >= 3 << (power - 1));
    (POWERS + 1 + 2 * (power - POWERS - 1) + upper_half).min(BUCKETS - 1)
}

/// The least time of a bucket, in microseconds.
fn lower_bound(bucket: usize) -> u64 {
    match bucket {
        0 => 0,
        power if power <= POWERS => 1 << power,
        above => {
            let (half_steps, power) = (above - POWERS - 1, POWERS + 1 + (above - POWERS - 1) / 2);
            if half_steps % 2 == 0 { 1 << power } else { 3 << (power - 1) }
        }
    }
}

impl LatencyHistogram {
    /// Counts a time.
    #[inline]
    pub fn add(&self, took: Duration) {
        let micros = micros_of(took);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        self.counts[bucket_of(micros)].fetch_add(1, Ordering::Relaxed);
    }

    /// Adds its figures to a sum.
    pub fn add_to(&self, sum: &mut LatencyFigures) {
        sum.micros += self.micros.load(Ordering::Relaxed);
        for (sum_of, count) in sum.counts.iter_mut().zip(&self.counts) {
            let count = count.load(Ordering::Relaxed);
            *sum_of += count;
            sum.operations += count;
        }
    }
}

impl LatencyFigures {
    /// The buckets that have times: the least time, and how many.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(bucket, count)| (lower_bound(bucket), *count))
    }
}

#[derive(Debug, Default)]
struct KindCounters {
    count: AtomicU64,
    micros: AtomicU64,
}

#[derive(Debug, Default)]
struct Counters {
    kinds: [KindCounters; ActivityKind::ALL.len()],
    scans: AtomicU64,
    primary_uses: AtomicU64,
    classes: [LatencyHistogram; LatencyClass::ALL.len()],
}

/// See the module's head.
#[derive(Debug, Default)]
pub struct CollectionActivity {
    counters: OnceLock<Box<Counters>>,
}

/// Requests of some kinds, and their times together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindFigures {
    /// How many requests.
    pub count: u64,
    /// The sum of their times, in microseconds.
    pub micros: u64,
}

impl CollectionActivity {
    /// Counts a request.
    pub fn add(&self, kind: ActivityKind, took: Duration) {
        let counters = self.counters.get_or_init(Box::default);
        let of_kind = &counters.kinds[kind as usize];
        of_kind.count.fetch_add(1, Ordering::Relaxed);
        of_kind.micros.fetch_add(micros_of(took), Ordering::Relaxed);
        counters.classes[kind.class() as usize].add(took);
    }

    /// Counts a scan of the whole collection.
    pub fn add_scan(&self) {
        self.counters.get_or_init(Box::default).scans.fetch_add(1, Ordering::Relaxed);
    }

    /// Scans of the whole collection.
    pub fn scans(&self) -> u64 {
        self.counters.get().map_or(0, |counters| counters.scans.load(Ordering::Relaxed))
    }

    /// Counts a search by the primary key, where the documents themselves are the index.
    pub fn add_primary_use(&self) {
        self.counters.get_or_init(Box::default).primary_uses.fetch_add(1, Ordering::Relaxed);
    }

    /// Searches by the primary key.
    pub fn primary_uses(&self) -> u64 {
        self.counters.get().map_or(0, |counters| counters.primary_uses.load(Ordering::Relaxed))
    }

    /// Requests of the wanted kinds; `None` while no request has used the collection.
    pub fn kinds(&self, is_wanted: impl Fn(ActivityKind) -> bool) -> Option<KindFigures> {
        let counters = self.counters.get()?;
        let mut sum = KindFigures::default();
        for kind in ActivityKind::ALL.into_iter().filter(|kind| is_wanted(*kind)) {
            let of_kind = &counters.kinds[kind as usize];
            sum.count += of_kind.count.load(Ordering::Relaxed);
            sum.micros += of_kind.micros.load(Ordering::Relaxed);
        }
        Some(sum)
    }

    /// The times of a class.
    pub fn latencies(&self, class: LatencyClass) -> LatencyFigures {
        let mut sum = LatencyFigures::default();
        if let Some(counters) = self.counters.get() {
            counters.classes[class as usize].add_to(&mut sum);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_bucket_whose_bounds_enclose_it() {
        assert_eq!([0, 1, 10, 11, 12, 13].map(lower_bound), [0, 2, 1_024, 2_048, 3_072, 4_096]);
        for bucket in 0..BUCKETS {
            assert_eq!(bucket_of(lower_bound(bucket)), bucket);
            if bucket + 1 < BUCKETS {
                assert_eq!(bucket_of(lower_bound(bucket + 1) - 1), bucket);
            }
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn requests_are_counted_by_kind_and_by_class() {
        let activity = CollectionActivity::default();
        assert_eq!(activity.kinds(|_| true), None);
        activity.add(ActivityKind::Query, Duration::from_micros(5));
        activity.add(ActivityKind::ReadCommand, Duration::from_micros(5_000));
        activity.add(ActivityKind::Insert, Duration::from_micros(1));
        assert_eq!(activity.kinds(|_| true), Some(KindFigures { count: 3, micros: 5_006 }));
        let inserts = activity.kinds(|kind| kind == ActivityKind::Insert);
        assert_eq!(inserts, Some(KindFigures { count: 1, micros: 1 }));
        let reads = activity.latencies(LatencyClass::Reads);
        assert_eq!((reads.operations, reads.micros), (2, 5_005));
        assert_eq!(reads.buckets().collect::<Vec<_>>(), [(4, 1), (4_096, 1)]);
        assert_eq!(activity.latencies(LatencyClass::Commands), LatencyFigures::default());
    }
}
