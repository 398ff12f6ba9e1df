//! The engine's options: typed, each with a name. Unknown names are refused.

pub(crate) mod live_options;
pub(crate) mod tree_settings;

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pando_encryption::Encryption;

use crate::error::BetreeError;
use crate::log::LogCompression;
use crate::options::tree_settings::{TreeSettings, parse_size};

/// Whether the data file bypasses the kernel's page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectIo {
    /// If the file system supports it; buffered otherwise.
    Auto,
    /// Always; an error if the file system does not support it.
    On,
    /// Never.
    Off,
}

/// The options of a store. The defaults suit a dedicated server; the sizes should follow the machine's.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Memory for pages, leaf directories and write buffers together, in bytes; at least 1 MiB.
    pub cache_bytes: u64,
    /// Memory for write buffers, which is part of `cache_bytes`; 0 means a quarter of it.
    pub buffer_bytes: u64,
    /// Bytes of the log that replay may have to read after a crash; about 1 GB takes 15 s.
    pub log_budget_bytes: u64,
    /// The time between two checkpoints. One comes sooner if the log grows by an eighth of its budget.
    pub checkpoint_period: Duration,
    /// The smallest growth of the data file, in bytes; at least 64 KiB. As much stays free when the file is
    /// cut.
    pub growth_bytes: u64,
    /// Whether commits are compressed in the log.
    pub log_compression: LogCompression,
    /// See [`DirectIo`].
    pub direct_io: DirectIo,
    /// Threads that flush buffers into runs and leaves; 0 means half the processors, at least two.
    pub merge_threads: usize,
    /// Threads that prefetch and decode pages for long scans; 0 means the number of processors, at most four.
    pub scan_threads: usize,
    /// Bytes that one root partition buffers before it is flushed. 0 means 1/32 of `cache_bytes`, at least
    /// 1 MiB, and at most 2 MiB (16 MiB for trees without runs). A tree with many writes has many partitions.
    /// Their total size decides how often runs and leaves are rewritten; the size of one decides how long a
    /// flush takes.
    pub partition_bytes: usize,
    /// Memory for the writes of all transactions before they are committed, in bytes; part of `cache_bytes`.
    /// 0 means an eighth of it, at least 1 MiB and at most 256 MiB. Further writes spill to the device.
    pub transaction_memory_bytes: u64,
    /// Bytes of keys and values that one transaction may write; 0 means sixteen times `log_budget_bytes`, at
    /// least 1 GiB. The log holds all of it until a checkpoint.
    pub transaction_bytes: u64,
    /// A range with at least this many entries, by estimate, is deleted by one message. A smaller range is
    /// deleted key by key, which costs less than rewriting the pages at its ends.
    pub range_delete_entries: u64,
    /// Bytes a second that are read and written to bring old blocks under a new data key; 0 pauses that.
    pub key_rewrite_rate: u64,
    /// The keys of an encrypted store; `None` for a plain one. A store is one or the other from its creation.
    pub encryption: Option<Encryption>,
    pub(crate) tree: TreeSettings,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            cache_bytes: 256 << 20,
            buffer_bytes: 0,
            log_budget_bytes: 1 << 30,
            checkpoint_period: Duration::from_secs(60),
            growth_bytes: 4 << 20,
            log_compression: LogCompression::Lz4,
            direct_io: DirectIo::Auto,
            merge_threads: 0,
            scan_threads: 0,
            partition_bytes: 0,
            transaction_memory_bytes: 0,
            transaction_bytes: 0,
            range_delete_entries: 1_000,
            key_rewrite_rate: 16 << 20,
            encryption: None,
            tree: TreeSettings::default(),
        }
    }
}

const KNOWN: &str = "cache, bufferBudget, logBudget, checkpointPeriod (seconds), directIo (auto, on, off), growthSize, keyRewriteRate (bytes a second), mergeThreads, scanThreads, partitionSize, rangeDeleteEntries, transactionLimit, transactionMemory, logCompression, \
                     compression, runCompression, pageSize, leafSize, fanout, bufferPercent, runSize, filterBits, leafFilterBits, largeValueSize";

impl Options {
    /// These options with some changed by name: sizes as `256MB`, times in seconds.
    ///
    /// # Errors
    /// A name that does not exist, or a value that the option cannot have.
    pub fn with_entries(mut self, entries: &[(String, String)]) -> Result<Options, BetreeError> {
        let mut of_trees = Vec::new();
        for (name, value) in entries {
            match name.as_str() {
                "cache" => {
                    let size = parse_size("cache", value, 1 << 20..=1 << 50, "a size from 1MB to 1024TB")?;
                    self.cache_bytes = size as u64;
                }
                "bufferBudget" => {
                    let expected = "auto, or a size from 256KB to 1024GB";
                    let size = match value.as_str() {
                        "auto" => 0,
                        size => parse_size("bufferBudget", size, 256 << 10..=1 << 40, expected)?,
                    };
                    self.buffer_bytes = size as u64;
                }
                "logBudget" => {
                    let size =
                        parse_size("logBudget", value, 1 << 20..=1 << 40, "a size from 1MB to 1024GB")?;
                    self.log_budget_bytes = size as u64;
                }
                "checkpointPeriod" => {
                    let seconds =
                        parse_size("checkpointPeriod", value, 1..=86_400, "seconds, from 1 to 86400")?;
                    self.checkpoint_period = Duration::from_secs(seconds as u64);
                }
                "directIo" => self.direct_io = parse_direct_io(value)?,
                "logCompression" => self.log_compression = parse_log_compression(value)?,
                "transactionLimit" => {
                    let expected = "auto, or a size from 1MB to 1024GB";
                    let size = match value.as_str() {
                        "auto" => 0,
                        size => parse_size("transactionLimit", size, 1 << 20..=1 << 40, expected)?,
                    };
                    self.transaction_bytes = size as u64;
                }
                "transactionMemory" => {
                    let expected = "auto, or a size from 256B to 64GB";
                    let size = match value.as_str() {
                        "auto" => 0,
                        size => parse_size("transactionMemory", size, 256..=64 << 30, expected)?,
                    };
                    self.transaction_memory_bytes = size as u64;
                }
                "growthSize" => {
                    let range = 64 << 10..=1 << 30;
                    let size = parse_size("growthSize", value, range, "a size from 64KB to 1GB")?;
                    self.growth_bytes = size as u64;
                }
                "keyRewriteRate" => self.key_rewrite_rate = parse_rate(value)?,
                "mergeThreads" => self.merge_threads = parse_threads("mergeThreads", value)?,
                "scanThreads" => self.scan_threads = parse_threads("scanThreads", value)?,
                "partitionSize" => {
                    let range = 256..=64 << 20;
                    self.partition_bytes =
                        parse_size("partitionSize", value, range, "a size from 256B to 64MB")?;
                }
                "rangeDeleteEntries" => self.range_delete_entries = parse_entries(value)?,
                "compression" | "runCompression" | "pageSize" | "leafSize" | "fanout" | "bufferPercent"
                | "runSize" | "filterBits" | "leafFilterBits" | "largeValueSize" => {
                    of_trees.push((name.clone(), value.clone()));
                }
                _ => return Err(BetreeError::UnknownOption { name: name.clone(), known: KNOWN }),
            }
        }
        self.tree = self.tree.with_options(&of_trees)?;
        Ok(self)
    }

    /// Bytes that all write buffers together may take.
    pub(crate) fn buffer_budget(&self) -> usize {
        match self.buffer_bytes {
            0 => (self.cache_bytes / 4) as usize,
            // More than half of the memory would leave too little to read with.
            bytes => bytes.min(self.cache_bytes / 2) as usize,
        }
    }

    /// Bytes from which on a root partition is full.
    pub(crate) fn partition_bytes(&self, tree: &TreeSettings) -> usize {
        // A buffer that is flushed straight into leaves should have many messages for each of them.
        let most = if tree.buffer_percent == 0 { 16 << 20 } else { 2 << 20 };
        match self.partition_bytes {
            0 => ((self.cache_bytes / 32) as usize).clamp(1 << 20, most),
            bytes => bytes,
        }
    }

    /// Bytes of keys and values that one transaction may write.
    pub(crate) fn transaction_bytes_max(&self) -> usize {
        match self.transaction_bytes {
            0 => (16 * self.log_budget_bytes).max(1 << 30) as usize,
            bytes => bytes as usize,
        }
    }

    /// Memory for the writes of all transactions before they are committed.
    pub(crate) fn transaction_memory(&self) -> usize {
        match self.transaction_memory_bytes {
            0 => (self.cache_bytes / 8).clamp(1 << 20, 256 << 20) as usize,
            bytes => bytes as usize,
        }
    }

    /// Bytes of a part of a large commit, which is applied to the buffers at once.
    pub(crate) fn part_bytes(&self) -> usize {
        const PART_BYTES: usize = 256 << 10;
        (self.transaction_memory() / 4).min(PART_BYTES)
    }

    /// Flush threads.
    pub(crate) fn merge_threads(&self) -> usize {
        match self.merge_threads {
            0 => (processors() / 2).max(MERGE_THREADS_MIN),
            some => some,
        }
    }

    /// Threads that prefetch for long scans.
    pub(crate) fn scan_threads(&self) -> usize {
        match self.scan_threads {
            0 => processors().min(SCAN_THREADS_MAX),
            some => some,
        }
    }
}

/// The default limit of threads that prefetch for long scans.
const SCAN_THREADS_MAX: usize = 4;

/// The default minimum of flush threads, on any number of processors. A single one waits for the device a
/// third of its time, and commits wait for it. With two instead of one, on two processors, a store of ten
/// times its cache took 1.4 times as many documents a second.
const MERGE_THREADS_MIN: usize = 2;

/// The processors that this process may use. The system is asked only once, since it reads files to answer,
/// and every commit calls this.
fn processors() -> usize {
    static PROCESSORS: AtomicUsize = AtomicUsize::new(0);
    match PROCESSORS.load(Ordering::Relaxed) {
        0 => {
            let count = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
            PROCESSORS.store(count, Ordering::Relaxed);
            count
        }
        known => known,
    }
}

fn parse_entries(value: &str) -> Result<u64, BetreeError> {
    let entries = parse_size("rangeDeleteEntries", value, 0..=usize::MAX, "a number of entries")?;
    Ok(entries as u64)
}

fn parse_rate(value: &str) -> Result<u64, BetreeError> {
    Ok(parse_size("keyRewriteRate", value, 0..=1 << 30, "a size from 0 to 1GB")? as u64)
}

fn parse_threads(name: &'static str, value: &str) -> Result<usize, BetreeError> {
    parse_size(name, value, 0..=64, "a number from 0 to 64")
}

fn parse_direct_io(value: &str) -> Result<DirectIo, BetreeError> {
    match value {
        "auto" => Ok(DirectIo::Auto),
        "on" => Ok(DirectIo::On),
        "off" => Ok(DirectIo::Off),
        other => {
            let expected = "auto, on or off";
            Err(BetreeError::BadOption { name: "directIo", value: other.to_owned(), expected })
        }
    }
}

fn parse_log_compression(value: &str) -> Result<LogCompression, BetreeError> {
    match value {
        "lz4" => Ok(LogCompression::Lz4),
        "none" => Ok(LogCompression::None),
        other => {
            let expected = "lz4 or none";
            Err(BetreeError::BadOption { name: "logCompression", value: other.to_owned(), expected })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_set_by_name_and_unknown_ones_refused() {
        let entry = |name: &str, value: &str| [(name.to_owned(), value.to_owned())];
        let options = Options::default().with_entries(&entry("cache", "1GB")).unwrap();
        assert_eq!(options.cache_bytes, 1 << 30);
        let error = Options::default().with_entries(&entry("cash", "1GB")).unwrap_err();
        assert!(error.to_string().contains("logBudget"), "{error}");
        assert!(Options::default().with_entries(&entry("directIo", "perhaps")).is_err());
        assert!(Options::default().with_entries(&entry("leafSize", "8KB")).is_err(), "smaller than a page");
    }
}
