//! The engine's options as RocksDB's own.
//!
//! The choices are those of RocksDB's tuning guide for a store of this size: levels sized from the last one
//! up, index and filter blocks in the block cache with those of level 0 pinned, level 1 as large as level 0
//! gets. Only functions are called that RocksDB's interface for C has had since 7.8, so that an installed
//! library can be linked in place of the one that the crate builds; HyperClockCache is the exception
//! (`build.rs`).

use pando_storage::StorageError;
use rocksdb::{
    BlockBasedOptions, Cache, DBCompactionStyle, DBCompressionType, DBRecoveryMode, LogLevel, Options,
};

#[cfg(lacks_hyper_clock_cache)]
use crate::failure::invalid;
use crate::merge_operator;
use crate::options::tree_settings::{Compaction, Compression};
use crate::options::{CacheKind, RocksdbOptions, TreeSettings};

/// Write buffers of a column family that there may be at once: one that is written to, others that are being
/// flushed.
const BUFFERS: u64 = 3;
/// Files in level 0 that begin a compaction: RocksDB's default.
const LEVEL_0_FILES: u64 = 4;
const MEBIBYTE: u64 = 1 << 20;
/// The write buffer of the column family with the engine's own records.
const RECORD_BUFFER_BYTES: usize = 1 << 20;
/// A run of this many merges of one key is replaced by its value when it is written. A counter that all
/// commits change is so read quickly, and each merge looks at no more.
const SUCCESSIVE_MERGES_MAX: usize = 64;
/// zlib's window, as RocksDB has it by default.
const WINDOW_BITS: i32 = -14;
/// RocksDB's word for the default level of an algorithm.
const DEFAULT_LEVEL: i32 = 32_767;

/// Makes RocksDB's options; the block cache is shared by all.
pub(crate) struct Tuning {
    options: RocksdbOptions,
    cache: Cache,
}

impl Tuning {
    pub(crate) fn new(options: &RocksdbOptions) -> Result<Tuning, StorageError> {
        let cache = match options.cache_kind {
            CacheKind::Lru => Cache::new_lru_cache(options.block_cache()),
            CacheKind::HyperClock => hyper_clock_cache(options.block_cache())?,
        };
        Ok(Tuning { options: options.clone(), cache })
    }

    /// The block cache.
    pub(crate) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Options of the whole database.
    pub(crate) fn database(&self) -> Options {
        let own = &self.options;
        let mut options = Options::default();
        options.create_missing_column_families(false);
        options.set_db_write_buffer_size(own.buffers() as usize);
        options.set_max_total_wal_size(own.log_bytes);
        options.set_max_background_jobs(own.jobs() as i32);
        options.set_max_open_files(if own.open_files == 0 { -1 } else { own.open_files as i32 });
        options.set_use_direct_reads(own.direct_io);
        options.set_use_direct_io_for_flush_and_compaction(own.direct_io);
        options.set_bytes_per_sync(MEBIBYTE);
        // The log of a machine that lost power ends anywhere. The file `synced` tells damage from that.
        options.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
        options.set_log_level(LogLevel::Warn);
        options.set_keep_log_file_num(3);
        options.set_max_log_file_size(MEBIBYTE as usize);
        options.set_stats_dump_period_sec(0);
        if own.statistics {
            options.enable_statistics();
        }
        options
    }

    /// Options of the column family with the engine's own records.
    pub(crate) fn records(&self) -> Options {
        let mut options = Options::default();
        options.set_write_buffer_size(RECORD_BUFFER_BYTES);
        options.set_compression_type(DBCompressionType::None);
        options.set_block_based_table_factory(&self.blocks(16 << 10, 0));
        options
    }

    /// Options of a column family for trees.
    pub(crate) fn family(&self, settings: &TreeSettings) -> Options {
        let mut options = Options::default();
        let buffer = (self.options.buffers() / BUFFERS).max(MEBIBYTE);
        options.set_write_buffer_size(buffer as usize);
        options.set_max_write_buffer_number(BUFFERS as i32);
        options.set_max_successive_merges(SUCCESSIVE_MERGES_MAX);
        options.set_block_based_table_factory(&self.blocks(settings.page_bytes, settings.filter_bits));
        options.set_optimize_filters_for_hits(!self.options.last_level_filters);
        options.set_target_file_size_base((buffer * LEVEL_0_FILES / 4).max(MEBIBYTE));
        match settings.compaction {
            Compaction::Leveled => {
                options.set_compaction_style(DBCompactionStyle::Level);
                options.set_level_compaction_dynamic_level_bytes(true);
                options.set_max_bytes_for_level_base(buffer * LEVEL_0_FILES);
            }
            Compaction::Universal => options.set_compaction_style(DBCompactionStyle::Universal),
        }
        let (kind, level) = algorithm(settings.compression);
        options.set_compression_type(kind);
        options.set_compression_options(WINDOW_BITS, level, 0, 0);
        let (kind, level) = algorithm(settings.bottom_compression);
        options.set_bottommost_compression_type(kind);
        options.set_bottommost_compression_options(WINDOW_BITS, level, 0, 0, true);
        merge_operator::install(&mut options);
        options
    }

    fn blocks(&self, block_bytes: u64, filter_bits: u64) -> BlockBasedOptions {
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&self.cache);
        blocks.set_block_size(block_bytes as usize);
        if filter_bits > 0 {
            blocks.set_bloom_filter(filter_bits as f64, false);
        }
        blocks.set_cache_index_and_filter_blocks(true);
        blocks.set_cache_index_and_filter_blocks_with_high_priority(true);
        blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
        blocks.set_format_version(5);
        blocks
    }
}

fn algorithm(compression: Compression) -> (DBCompressionType, i32) {
    match compression {
        Compression::None => (DBCompressionType::None, DEFAULT_LEVEL),
        Compression::Snappy => (DBCompressionType::Snappy, DEFAULT_LEVEL),
        Compression::Lz4 => (DBCompressionType::Lz4, DEFAULT_LEVEL),
        Compression::Zlib => (DBCompressionType::Zlib, DEFAULT_LEVEL),
        Compression::Zstd(level) => (DBCompressionType::Zstd, i32::from(level)),
    }
}

#[cfg(not(lacks_hyper_clock_cache))]
fn hyper_clock_cache(bytes: usize) -> Result<Cache, StorageError> {
    // No size of an entry is given: RocksDB then finds out, and lets the table grow.
    Ok(Cache::new_hyper_clock_cache(bytes, 0))
}

#[cfg(lacks_hyper_clock_cache)]
fn hyper_clock_cache(_: usize) -> Result<Cache, StorageError> {
    Err(invalid(
        "the RocksDB library of this build is too old for cacheType=hyperClock: choose lru, or build without \
         ROCKSDB_LIB_DIR",
    ))
}
