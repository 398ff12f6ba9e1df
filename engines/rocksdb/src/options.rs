//! The options of a store: typed, each with a name. Unknown names are refused.

pub(crate) mod tree_settings;
mod values;

use pando_storage::StorageError;

use crate::failure::invalid;
pub(crate) use tree_settings::TreeSettings;
use values::{parse_choice, parse_size, parse_switch};

/// Which of RocksDB's block caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheKind {
    /// The least recently used block leaves first.
    Lru,
    /// HyperClockCache: as good, with less contention among many threads. An installed library may be too
    /// old for it (`build.rs`).
    HyperClock,
}

/// Options of a store in RocksDB. The defaults suit a small server; the sizes should follow the machine's.
#[derive(Clone, Debug, PartialEq)]
pub struct RocksdbOptions {
    /// Memory for the block cache and write buffers together, in bytes; at least 1 MiB.
    pub cache_bytes: u64,
    /// See [`CacheKind`].
    pub cache_kind: CacheKind,
    /// Memory for write buffers, which is part of `cache_bytes`; 0 means a quarter of it.
    pub buffer_bytes: u64,
    /// Bytes of the log that replay may have to read after a crash. When the log is longer, write buffers are
    /// flushed.
    pub log_bytes: u64,
    /// Whether the last level has Bloom filters. Only gets of keys that are not there need them, such as an
    /// insert's check of its `_id`; without them the block cache holds more blocks (RocksDB:
    /// `optimize_filters_for_hits`).
    pub last_level_filters: bool,
    /// Whether table files bypass the kernel's page cache.
    pub direct_io: bool,
    /// Threads for flushes and compactions; 0 means the number of processors, at least two.
    pub background_jobs: usize,
    /// Table files that stay open; 0 means all.
    pub open_files: usize,
    /// Whether RocksDB counts hits, reads and writes, which costs some percent.
    pub statistics: bool,
    /// Bytes of keys and values that one transaction may write. All of it is in memory, twice.
    pub transaction_bytes: u64,
    /// A range with at least this many entries is deleted by one message. Each message costs later reads near
    /// it.
    pub range_delete_entries: u64,
    pub(crate) tree: TreeSettings,
}

impl Default for RocksdbOptions {
    fn default() -> RocksdbOptions {
        RocksdbOptions {
            cache_bytes: 256 << 20,
            cache_kind: CacheKind::Lru,
            buffer_bytes: 0,
            log_bytes: 1 << 30,
            last_level_filters: true,
            direct_io: false,
            background_jobs: 0,
            open_files: 0,
            statistics: true,
            transaction_bytes: 1 << 30,
            range_delete_entries: 1_000,
            tree: TreeSettings::default(),
        }
    }
}

const KNOWN: &str = "cache, cacheType (lru, hyperClock), bufferBudget, logBudget, \
                     lastLevelFilters (on, off), directIo (on, off), backgroundJobs, openFiles, statistics (on, off), \
                     transactionLimit, rangeDeleteEntries";

impl RocksdbOptions {
    /// These options with some changed by name: sizes as `256MB`. The names of tree options set the defaults
    /// of new trees.
    ///
    /// # Errors
    /// A name that does not exist, or a value that the option cannot have.
    pub fn with_entries(mut self, entries: &[(String, String)]) -> Result<RocksdbOptions, StorageError> {
        let mut of_trees = Vec::new();
        for (name, value) in entries {
            match name.as_str() {
                "cache" => self.cache_bytes = parse_size("cache", value, 1 << 20..=1 << 50)?,
                "cacheType" => {
                    let kinds = [("lru", CacheKind::Lru), ("hyperClock", CacheKind::HyperClock)];
                    self.cache_kind = parse_choice("cacheType", value, &kinds)?;
                }
                "bufferBudget" => self.buffer_bytes = parse_size("bufferBudget", value, 1 << 20..=1 << 40)?,
                "logBudget" => self.log_bytes = parse_size("logBudget", value, 1 << 20..=1 << 40)?,
                "lastLevelFilters" => self.last_level_filters = parse_switch("lastLevelFilters", value)?,
                "directIo" => self.direct_io = parse_switch("directIo", value)?,
                "backgroundJobs" => {
                    self.background_jobs = parse_size("backgroundJobs", value, 0..=64)? as usize;
                }
                "openFiles" => self.open_files = parse_size("openFiles", value, 0..=1_000_000)? as usize,
                "statistics" => self.statistics = parse_switch("statistics", value)?,
                "transactionLimit" => {
                    self.transaction_bytes = parse_size("transactionLimit", value, 1 << 20..=2 << 30)?;
                }
                "rangeDeleteEntries" => {
                    self.range_delete_entries = parse_size("rangeDeleteEntries", value, 1..=1 << 40)?;
                }
                name if TreeSettings::NAMES.contains(&name) => {
                    of_trees.push((name.to_owned(), value.clone()))
                }
                _ => {
                    let message = format!(
                        "the engine `rocksdb` has no option `{name}`: there are {KNOWN}, and for trees {}",
                        tree_settings::KNOWN
                    );
                    return Err(invalid(message));
                }
            }
        }
        self.tree = self.tree.with_options(&of_trees)?;
        Ok(self)
    }

    /// Bytes that all write buffers together may take.
    pub(crate) fn buffers(&self) -> u64 {
        match self.buffer_bytes {
            0 => self.cache_bytes / 4,
            // More than half of the memory would leave too little to read with.
            bytes => bytes.min(self.cache_bytes / 2),
        }
    }

    /// Bytes of the block cache.
    pub(crate) fn block_cache(&self) -> usize {
        (self.cache_bytes - self.buffers()) as usize
    }

    /// Threads for flushes and compactions.
    pub(crate) fn jobs(&self) -> usize {
        match self.background_jobs {
            0 => std::thread::available_parallelism().map_or(2, std::num::NonZeroUsize::get).max(2),
            some => some,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(entries: &[(&str, &str)]) -> Result<RocksdbOptions, String> {
        let entries: Vec<_> =
            entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        RocksdbOptions::default().with_entries(&entries).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_set_by_name() {
        let options = with(&[
            ("cache", "1GB"),
            ("cacheType", "hyperClock"),
            ("bufferBudget", "100MB"),
            ("logBudget", "2GB"),
            ("lastLevelFilters", "off"),
            ("directIo", "on"),
            ("backgroundJobs", "3"),
            ("openFiles", "500"),
            ("statistics", "off"),
            ("transactionLimit", "16MB"),
            ("rangeDeleteEntries", "50"),
            ("compaction", "universal"),
        ]);
        let expected = RocksdbOptions {
            cache_bytes: 1 << 30,
            cache_kind: CacheKind::HyperClock,
            buffer_bytes: 100 << 20,
            log_bytes: 2 << 30,
            last_level_filters: false,
            direct_io: true,
            background_jobs: 3,
            open_files: 500,
            statistics: false,
            transaction_bytes: 16 << 20,
            range_delete_entries: 50,
            tree: TreeSettings {
                compaction: tree_settings::Compaction::Universal,
                ..TreeSettings::default()
            },
        };
        assert_eq!(options, Ok(expected));
    }

    #[test]
    fn the_cache_is_shared_out() {
        let options = with(&[("cache", "64MB")]).expect("a good size");
        assert_eq!((options.buffers(), options.block_cache()), (16 << 20, 48 << 20));
        let options = with(&[("cache", "64MB"), ("bufferBudget", "1GB")]).expect("good sizes");
        assert_eq!((options.buffers(), options.block_cache()), (32 << 20, 32 << 20));
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones_and_so_are_impossible_values() {
        let refused = with(&[("cash", "1GB")]).expect_err("no such option");
        assert!(["`cash`", "cacheType", "pageSize"].iter().all(|word| refused.contains(word)), "{refused}");
        for (name, value) in [
            ("cache", "1"),
            ("cache", "much"),
            ("cacheType", "clock"),
            ("lastLevelFilters", "2"),
            ("directIo", "perhaps"),
            ("backgroundJobs", "65"),
            ("transactionLimit", "3GB"),
            ("rangeDeleteEntries", "0"),
            ("compaction", "fifo"),
        ] {
            let refused = with(&[(name, value)]).expect_err("an impossible value");
            assert!(refused.contains(name) && refused.contains(value), "{refused}");
        }
    }
}
