//! The rows of the tables: for each its figure, its format, and the target of betree.

use pando_measuring::number::thousands;

use crate::figures::Results;
use crate::peer::PeerKind;

/// How a figure is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Count,
    /// With three digits or so.
    Number,
    Percent,
}

/// The target of betree in a row.
#[derive(Clone, Copy, Debug)]
pub enum Wanted {
    /// At least so much.
    AtLeast(f64),
    /// At most so much.
    AtMost(f64),
    /// At least so many times a peer's.
    TimesAtLeast(f64, PeerKind),
    /// At most so many times a peer's.
    TimesAtMost(f64, PeerKind),
    /// At most every peer's.
    Lowest,
    /// Of every peer that has the figure, betree or not, at least so much.
    EachAtLeast(f64),
}

#[derive(Clone, Copy, Debug)]
pub struct Measure {
    pub label: &'static str,
    pub figure: &'static str,
    /// How it is written.
    pub format: Format,
    pub wanted: &'static [Wanted],
}

#[derive(Clone, Copy, Debug)]
pub struct Section {
    pub title: &'static str,
    pub measures: &'static [Measure],
}

use Format::{Count, Number, Percent};
use PeerKind::{Lmdb, Rocksdb};
use Wanted::{AtLeast, AtMost, EachAtLeast, Lowest, TimesAtLeast, TimesAtMost};

const fn row(
    label: &'static str,
    figure: &'static str,
    format: Format,
    wanted: &'static [Wanted],
) -> Measure {
    Measure { label, figure, format, wanted }
}

/// The figures of which the contract has to keep so much of the bare library's.
const CONTRACT: &[Wanted] = &[EachAtLeast(0.9)];
const SCAN: &[Wanted] = &[TimesAtLeast(0.8, Lmdb), TimesAtLeast(1.5, Rocksdb)];

/// All tables, in their order.
pub const SECTIONS: &[Section] = &[
    Section {
        title: "Random inserts: document and 3 index entries, second half of the load",
        measures: &[
            row("documents/s, all in cache", "cached.inserts.late.rate", Count, &[]),
            row(
                "documents/s, larger than the cache",
                "capped.inserts.late.rate",
                Count,
                &[TimesAtLeast(1.5, Rocksdb)],
            ),
            row("the second of the first", "derived.capped_of_cached", Number, &[AtLeast(0.9)]),
            row("documents inserted before the time was over", "capped.inserts.raw_multiple", Percent, &[]),
            row("KB written a document", "capped.inserts.late.written_kb", Number, &[]),
            row(
                "KB written a document, whole load, drained",
                "capped.drained.written_kb",
                Number,
                &[TimesAtMost(0.8, Rocksdb)],
            ),
            row("KB read a document", "capped.inserts.late.read_kb", Number, &[]),
            row("disk reads a document", "capped.inserts.late.reads", Number, &[AtMost(0.02)]),
            row("CPU µs a document", "capped.inserts.late.cpu_us", Number, &[]),
            row(
                "slowest second of the median one",
                "capped.inserts.late.min_of_median",
                Number,
                &[AtLeast(0.8)],
            ),
            row("longest batch, ms", "capped.inserts.late.longest_ms", Number, &[AtMost(50.0)]),
            row("seconds to drain", "capped.drain_s", Number, &[]),
            row("memory at most while loading, MB", "capped.loaded_mb", Count, &[]),
            row("memory at most, 64 threads reading, MB", "capped.peak_mb", Count, &[]),
            row("on disk after the load, drained, MB", "derived.disk_mb", Count, &[Lowest]),
            row("of it betree's log segments, MB", "capped.log_mb", Count, &[]),
            row("on disk after the updates, compacted, MB", "compacted.disk_mb", Count, &[Lowest]),
            row("seconds to compact", "compacted.seconds", Number, &[]),
            row("MB written to compact", "compacted.written_mb", Count, &[]),
        ],
    },
    Section {
        title: "Point reads, larger than the cache, uniform",
        measures: &[
            row("disk reads a query, 64 threads", "cold.points64.reads", Number, &[AtMost(0.9), Lowest]),
            row("KB read a query", "cold.points64.read_kb", Number, &[]),
            row("queries/s, 1 thread", "cold.points1.rate", Count, &[]),
            row("queries/s, 64 threads", "cold.points64.rate", Count, &[]),
            row("of the device's rate, 1 thread", "cold.points1.of_ceiling", Number, &[]),
            row("of the device's rate, 64 threads", "cold.points64.of_ceiling", Number, &[AtLeast(0.8)]),
            row("CPU µs a query, 64 threads", "cold.points64.cpu_us", Number, &[]),
        ],
    },
    Section {
        title: "Point reads, all cached",
        measures: &[
            row(
                "µs a query, after the load, not drained",
                "cached.full.us",
                Number,
                &[TimesAtMost(2.0, Lmdb)],
            ),
            row("µs a query, drained", "cached.drained.us", Number, &[TimesAtMost(1.3, Lmdb)]),
            row("µs a query, 1,000 in one reader", "cached.snapshot.us", Number, &[TimesAtMost(1.3, Lmdb)]),
            row("queries/s, 2 threads", "cached.two.rate", Count, &[]),
        ],
    },
    Section {
        title: "Range scans, rows/s, all cached",
        measures: &[
            row("10 documents", "cached.scan10.rows", Count, SCAN),
            row("100 documents", "cached.scan100.rows", Count, SCAN),
            row("100,000 documents", "cached.scan100k.rows", Count, SCAN),
            row("10 index entries", "cached.index10.rows", Count, SCAN),
            row("100 index entries", "cached.index100.rows", Count, SCAN),
            row("100,000 index entries", "cached.index100k.rows", Count, SCAN),
        ],
    },
    Section {
        title: "The rate behind the contract by that of the bare library, all cached",
        measures: &[
            row("put: inserted documents with 3 index entries", "contract.put", Number, CONTRACT),
            row("get: point reads, one a reader", "contract.get", Number, CONTRACT),
            row("get: point reads, 1,000 in one reader", "contract.snapshot_get", Number, CONTRACT),
            row("scan: 10 documents", "contract.scan10", Number, CONTRACT),
            row("scan: 100 documents", "contract.scan100", Number, CONTRACT),
            row("scan: 100,000 documents", "contract.scan100k", Number, CONTRACT),
        ],
    },
    Section {
        title: "Range scans, rows/s, larger than the cache",
        measures: &[
            row("10 documents", "cold.scan10.rows", Count, SCAN),
            row("100 documents", "cold.scan100.rows", Count, SCAN),
            row("100,000 documents", "cold.scan100k.rows", Count, SCAN),
            row("disk reads of 10 documents", "cold.scan10.reads", Number, &[]),
            row("10 index entries", "cold.index10.rows", Count, SCAN),
            row("100 index entries", "cold.index100.rows", Count, SCAN),
            row("100,000 index entries", "cold.index100k.rows", Count, SCAN),
            row("disk reads of 10 index entries", "cold.index10.reads", Number, &[]),
        ],
    },
    Section {
        title: "Updates of a hot 1 %",
        measures: &[
            row("updates/s", "updates.rate", Count, &[TimesAtLeast(2.0, Rocksdb)]),
            row("bytes written an update (of 321)", "updates.written_bytes", Count, &[]),
            row("bytes written an update, drained", "updates.written_bytes_drained", Count, &[]),
            row("CPU µs an update", "updates.cpu_us", Number, &[]),
        ],
    },
    Section {
        title: "A growing cache: point reads, 80 % of them in the latest 20 %, 16 threads",
        measures: &[
            row("queries/s, 1 % of the documents", "growing1.rate", Count, &[]),
            row("queries/s, 2 %", "growing2.rate", Count, &[]),
            row("queries/s, 4 %", "growing4.rate", Count, &[]),
            row("queries/s, 8 %", "growing8.rate", Count, &[]),
            row("queries/s, 16 %", "growing16.rate", Count, &[]),
            row("least gain of a step", "derived.growing_step", Number, &[AtLeast(1.0)]),
            row("KB read a query, 1 %", "growing1.read_kb", Number, &[]),
            row("KB read a query, 16 %", "growing16.read_kb", Number, &[]),
        ],
    },
    Section {
        title: "Many trees of 100 keys",
        measures: &[
            row("seconds to make them", "trees.create_s", Number, &[]),
            row("seconds to write them", "trees.write_s", Number, &[]),
            row("seconds to open them again", "trees.open_s", Number, &[AtMost(2.0)]),
            row("memory when opened, MB", "trees.opened_mb", Count, &[]),
            row("memory at most, all read and written, MB", "trees.used_mb", Count, &[AtMost(200.0)]),
            row("seconds of a checkpoint with all changed", "trees.checkpoint_s", Number, &[AtMost(1.0)]),
            row("on disk, MB", "trees.disk_mb", Count, &[]),
        ],
    },
    Section {
        title: "Recovery after the process was killed",
        measures: &[
            row("log, MB", "crash.log_mb", Count, &[]),
            row("seconds", "recovery.open_s", Number, &[]),
            row("seconds a GB", "recovery.s_a_gb", Number, &[AtMost(10.0)]),
        ],
    },
];

pub fn figure(results: &Results, peer: PeerKind, name: &str) -> Option<f64> {
    let get = |name: &str| results.figure(peer, name);
    let by_bare_library = |name: &str| Some(get(name)? / results.figure(peer.bare_library()?, name)?);
    match name {
        "contract.put" => by_bare_library("cached.inserts.late.rate"),
        "contract.get" => by_bare_library("cached.drained.rate"),
        "contract.snapshot_get" => by_bare_library("cached.snapshot.rate"),
        "contract.scan10" => by_bare_library("cached.scan10.rows"),
        "contract.scan100" => by_bare_library("cached.scan100.rows"),
        "contract.scan100k" => by_bare_library("cached.scan100k.rows"),
        "derived.capped_of_cached" => {
            Some(get("capped.inserts.late.rate")? / get("cached.inserts.late.rate")?)
        }
        // Of a load that was cut short there is none; the same documents were loaded with a larger cache,
        // too.
        "derived.disk_mb" => get("capped.disk_mb").or_else(|| get("cached.disk_mb")),
        "derived.growing_step" => {
            let names =
                ["growing1.rate", "growing2.rate", "growing4.rate", "growing8.rate", "growing16.rate"];
            let rates: Vec<f64> = names.into_iter().map(get).collect::<Option<_>>()?;
            rates.windows(2).map(|pair| pair[1] / pair[0]).min_by(f64::total_cmp)
        }
        _ => get(name),
    }
}

/// Whether what is wanted was reached, in words; nothing where it cannot be told.
pub fn verdict(results: &Results, measure: &Measure, wanted: Wanted) -> Option<(String, bool)> {
    let of = |peer| figure(results, peer, measure.figure);
    if let EachAtLeast(limit) = wanted {
        let least = results.peers().into_iter().filter_map(of).min_by(f64::total_cmp)?;
        return Some((format!("each at least {limit}"), least >= limit));
    }
    let own = of(PeerKind::Betree)?;
    let found = match wanted {
        AtLeast(limit) => (format!("at least {limit}"), own >= limit),
        AtMost(limit) => (format!("at most {limit}"), own <= limit),
        TimesAtLeast(times, peer) => {
            let ratio = own / of(peer)?;
            (format!("at least {times} × {}: {}", peer.title(), number(ratio)), ratio >= times)
        }
        TimesAtMost(times, peer) => {
            let ratio = own / of(peer)?;
            (format!("at most {times} × {}: {}", peer.title(), number(ratio)), ratio <= times)
        }
        Lowest => {
            let is_other = |peer: &PeerKind| !matches!(peer, PeerKind::Betree | PeerKind::Btree);
            let others = results.peers().into_iter().filter(is_other);
            let least = others.filter_map(of).min_by(f64::total_cmp)?;
            ("the lowest".to_owned(), own <= least)
        }
        EachAtLeast(_) => return None,
    };
    Some(found)
}

/// A figure as it is written.
pub fn written(value: f64, format: Format) -> String {
    match format {
        Count => thousands(value),
        Number => number(value),
        Percent => format!("{:.0} %", value * 100.0),
    }
}

fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 1_000.0 => thousands(value),
        middle if middle >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        small if small >= 0.1 => format!("{value:.2}"),
        0.0 => "0".to_owned(),
        least if least >= 0.00005 => format!("{value:.4}"),
        _ => "0.0000".to_owned(),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::figures::{Figures, Outcome};
    use crate::setup::{Phase, Setup};

    /// Results of two peers with one figure each.
    pub fn results(figure: &str, betree: f64, rocksdb: f64) -> Results {
        let outcome = |peer, value| {
            let mut outcome = Outcome::new(peer, Phase::Capped);
            let mut figures = Figures::default();
            figures.set(figure, value);
            outcome.figures = figures;
            outcome
        };
        let setup = Setup {
            cache_bytes: 1 << 20,
            headroom_bytes: 1 << 20,
            scale: 1.0,
            seconds: 1.0,
            limit_seconds: 1.0,
            insert_seconds: 0.0,
            batch: 10,
            update_batch: 10,
            trees: 10,
            log_bytes: 1 << 20,
            seed: 1,
            layout: Vec::new(),
            counters: false,
        };
        let outcomes = vec![outcome(PeerKind::Betree, betree), outcome(Rocksdb, rocksdb)];
        let machine = std::collections::BTreeMap::new();
        Results {
            setup,
            machine,
            seconds: 1.0,
            outcomes,
            failures: Vec::new(),
            versions: std::collections::BTreeMap::new(),
        }
    }

    #[test]
    fn a_ratio_to_a_peer_decides_where_one_is_wanted() {
        let measure = row("inserts", "rate", Count, &[]);
        let results = results("rate", 300.0, 200.0);
        let verdict = |wanted| verdict(&results, &measure, wanted);
        assert_eq!(
            verdict(TimesAtLeast(1.5, Rocksdb)),
            Some(("at least 1.5 × RocksDB: 1.50".to_owned(), true))
        );
        assert_eq!(verdict(Lowest), Some(("the lowest".to_owned(), false)));
        assert_eq!(verdict(TimesAtLeast(1.0, Lmdb)), None, "there is no figure of LMDB");
    }

    #[test]
    fn the_contract_is_judged_by_the_bare_library_of_each_engine() {
        let mut all = results("cached.drained.rate", 1.0, 200.0);
        let mut engine = all.outcomes[1].clone();
        engine.peer = PeerKind::RocksdbEngine;
        engine.figures.set("cached.drained.rate", 190.0);
        all.outcomes.push(engine);
        assert_eq!(figure(&all, PeerKind::RocksdbEngine, "contract.get"), Some(0.95));
        assert_eq!(figure(&all, Rocksdb, "contract.get"), None, "it is the bare library");
        let measure = row("get", "contract.get", Number, CONTRACT);
        let judged = |all: &Results| verdict(all, &measure, EachAtLeast(0.9));
        assert_eq!(judged(&all), Some(("each at least 0.9".to_owned(), true)));
        all.outcomes[2].figures.set("cached.drained.rate", 170.0);
        assert_eq!(judged(&all), Some(("each at least 0.9".to_owned(), false)));
    }

    #[test]
    fn a_growing_cache_is_judged_by_its_worst_step() {
        let mut all = results("growing1.rate", 100.0, 1.0);
        for (name, value) in [
            ("growing2.rate", 110.0),
            ("growing4.rate", 99.0),
            ("growing8.rate", 120.0),
            ("growing16.rate", 130.0),
        ] {
            all.outcomes[0].figures.set(name, value);
        }
        assert_eq!(figure(&all, PeerKind::Betree, "derived.growing_step"), Some(0.9));
        assert_eq!(figure(&all, Rocksdb, "derived.growing_step"), None);
    }

    #[test]
    fn figures_are_written_as_one_reads_them() {
        assert_eq!(written(1_234_567.4, Count), "1,234,567");
        assert_eq!(written(999.0, Count), "999");
        assert_eq!(
            [0.0, 0.0061, 0.617, 12.34, 250.0, 12_345.0].map(number),
            ["0", "0.0061", "0.62", "12.3", "250", "12,345"]
        );
        assert_eq!(written(0.345, Percent), "34 %");
    }
}
