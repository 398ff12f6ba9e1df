//! The figures of the store's work with its cluster, for `serverStatus`.
//!
//! | group | counts |
//! |---|---|
//! | `tikv` | the calls of the engine: what the operations of clients wait for, with all retries |
//! | `rpc` | the client's requests to storage nodes (`kv_…`) and placement drivers, by kind |
//!
//! An entry that ends in `_micros` is the time of the calls, or of the requests that were answered. Requests
//! are those of all stores of the process.
//!
//! # Not here
//! The number of regions, and the figures of one region: the client tells nobody which regions it knows.
//! `rpc.get_region` counts how often it has asked for one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pando_storage::Statistics;
use prometheus::proto::{Metric, MetricFamily};

/// The calls of one kind: how many, and how long they have taken, with all retries.
#[derive(Default)]
pub(crate) struct Calls {
    count: AtomicU64,
    micros: AtomicU64,
    micros_max: AtomicU64,
}

impl Calls {
    pub(crate) fn note(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
        self.micros_max.fetch_max(micros, Ordering::Relaxed);
    }

    fn write(&self, [count, micros, micros_max]: [&'static str; 3], statistics: &mut Statistics) {
        statistics.set(count, self.count.load(Ordering::Relaxed));
        statistics.set(micros, self.micros.load(Ordering::Relaxed));
        statistics.set(micros_max, self.micros_max.load(Ordering::Relaxed));
    }
}

/// Counts since the store was opened.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) gets: Calls,
    pub(crate) scans: Calls,
    pub(crate) timestamps: Calls,
    pub(crate) commits: Calls,
    pub(crate) conflicts: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) undetermined: AtomicU64,
    /// The timestamp below which this server has let the cluster remove old versions last; 0 before.
    pub(crate) safepoint: AtomicU64,
}

impl Figures {
    /// Writes them; `newest` is the newest timestamp that the store has seen.
    pub(crate) fn write(&self, newest: u64, statistics: &mut Statistics) {
        self.gets.write(["tikv.gets", "tikv.gets_micros", "tikv.gets_micros_max"], statistics);
        self.scans.write(["tikv.scans", "tikv.scans_micros", "tikv.scans_micros_max"], statistics);
        self.timestamps
            .write(["tikv.timestamps", "tikv.timestamps_micros", "tikv.timestamps_micros_max"], statistics);
        self.commits.write(["tikv.commits", "tikv.commits_micros", "tikv.commits_micros_max"], statistics);
        statistics.set("tikv.commits_undetermined", self.undetermined.load(Ordering::Relaxed));
        statistics.set("tikv.conflicts", self.conflicts.load(Ordering::Relaxed));
        statistics.set("tikv.retries", self.retries.load(Ordering::Relaxed));
        let safepoint = self.safepoint.load(Ordering::Relaxed);
        if safepoint > 0 {
            statistics.set("tikv.safepoint_age_ms", newest.saturating_sub(safepoint) >> 18);
        }
        write_requests(&prometheus::gather(), statistics);
    }
}

/// A kind of request by the client's word, with the names of its count and its time.
type Kind = (&'static str, &'static str, &'static str);

macro_rules! kinds {
    ($($kind:literal),* $(,)?) => {
        &[$(($kind, concat!("rpc.", $kind), concat!("rpc.", $kind, "_micros"))),*]
    };
}

/// The requests to storage nodes.
const NODE_KINDS: &[Kind] = kinds![
    "kv_batch_get",
    "kv_batch_rollback",
    "kv_check_txn_status",
    "kv_commit",
    "kv_get",
    "kv_prewrite",
    "kv_resolve_lock",
    "kv_scan",
    "kv_scan_lock",
    "unsafe_destroy_range",
];
/// The requests to placement drivers.
const DRIVER_KINDS: &[Kind] = kinds![
    "get_all_stores",
    "get_region",
    "get_region_by_id",
    "get_store",
    "get_timestamp",
    "update_gc_safepoint",
];

/// Writes the client's own counts of its requests.
fn write_requests(families: &[MetricFamily], statistics: &mut Statistics) {
    let mut failed = 0.0;
    for family in families {
        let (kinds, is_time) = match family.get_name() {
            "tikv_request_total" => (NODE_KINDS, false),
            "pd_request_total" => (DRIVER_KINDS, false),
            "tikv_request_duration_seconds" => (NODE_KINDS, true),
            "pd_request_duration_seconds" => (DRIVER_KINDS, true),
            "tikv_failed_request_total" | "pd_failed_request_total" => {
                failed += family.get_metric().iter().map(|one| one.get_counter().get_value()).sum::<f64>();
                continue;
            }
            _ => continue,
        };
        for metric in family.get_metric() {
            let Some((_, count, micros)) = kinds.iter().find(|(kind, ..)| is_of_kind(metric, kind)) else {
                continue;
            };
            match is_time {
                true => statistics.set(micros, (metric.get_histogram().get_sample_sum() * 1e6) as u64),
                false => statistics.set(count, metric.get_counter().get_value() as u64),
            }
        }
    }
    statistics.set("rpc.failed", failed as u64);
}

fn is_of_kind(metric: &Metric, kind: &str) -> bool {
    metric.get_label().iter().any(|label| label.get_name() == "type" && label.get_value() == kind)
}

#[cfg(test)]
mod tests {
    use prometheus::core::Collector;
    use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts};

    use super::*;

    #[test]
    fn calls_are_counted_with_their_time() {
        let figures = Figures::default();
        figures.gets.note(Duration::from_micros(30));
        figures.gets.note(Duration::from_micros(70));
        figures.safepoint.store(5 << 18, Ordering::Relaxed);
        let mut statistics = Statistics::new();
        figures.write(12 << 18, &mut statistics);
        let figure = |name| statistics.get(name);
        assert_eq!(figure("tikv.gets"), Some(2));
        assert_eq!(figure("tikv.gets_micros"), Some(100));
        assert_eq!(figure("tikv.gets_micros_max"), Some(70));
        assert_eq!(figure("tikv.safepoint_age_ms"), Some(7));
        assert_eq!(figure("rpc.failed"), Some(0));
    }

    #[test]
    fn the_counts_of_the_client_are_found_by_their_names() {
        let total = IntCounterVec::new(Opts::new("tikv_request_total", "requests"), &["type"]).unwrap();
        total.with_label_values(&["kv_get"]).inc_by(3);
        total.with_label_values(&["a_new_kind"]).inc();
        let failed = IntCounterVec::new(Opts::new("pd_failed_request_total", "failures"), &["type"]).unwrap();
        failed.with_label_values(&["get_region"]).inc_by(2);
        let time = HistogramOpts::new("tikv_request_duration_seconds", "time");
        let time = HistogramVec::new(time, &["type"]).unwrap();
        time.with_label_values(&["kv_get"]).observe(0.25);
        let families = [total.collect(), failed.collect(), time.collect()].concat();
        let mut statistics = Statistics::new();
        write_requests(&families, &mut statistics);
        let all: Vec<_> = statistics.iter().collect();
        assert_eq!(all, [("rpc.failed", 2), ("rpc.kv_get", 3), ("rpc.kv_get_micros", 250_000)]);
    }
}
