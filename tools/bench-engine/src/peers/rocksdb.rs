//! RocksDB, leveled, as its tuning guide says ("Setup Options and Basic Tuning" and "RocksDB Tuning Guide"):
//! levels sized from the last one up, LZ4 above and Zstandard in the last level, blocks of 16 KB, Bloom
//! filters of 10 bits, index and filter blocks in the block cache with those of level 0 pinned, direct I/O,
//! level 1 as large as level 0 gets.
//!
//! All trees are prefixes of one key space, as MyRocks has them. A quarter of the cache's size is for write
//! buffers, the rest is the block cache.
//!
//! Only what RocksDB's interface for C has had for years is used, so that an installed library can be linked
//! (`ROCKSDB_LIB_DIR`) in place of the one that the crate builds.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, Options, ReadOptions, WriteBatch, WriteOptions,
};

use crate::batch::Batch;
use crate::data::Tree;
use crate::error::{BenchError, failed};
use crate::peer::{Peer, PeerSettings, Reader, SeeRow};

const NAME: &str = "RocksDB";
/// Share of the cache that write buffers may take together.
const WRITE_BUFFERS_SHARE: u64 = 4;
/// Write buffers that there may be at once: one that is written to, others that are being flushed.
const WRITE_BUFFERS: u64 = 3;
/// Files in level 0 that begin a compaction: RocksDB's default.
const LEVEL_0_FILES: u64 = 4;
const BLOCK_BYTES: usize = 16 * 1024;
const FILTER_BITS: f64 = 10.0;
const MEBIBYTE: u64 = 1 << 20;
const LOOK_AGAIN: Duration = Duration::from_millis(10);
const LOOKS_UNTIL_QUIET: u32 = 20;
/// Properties that are 0 when there is nothing to do in the background.
const BUSY: [&str; 4] = [
    "rocksdb.mem-table-flush-pending",
    "rocksdb.num-running-flushes",
    "rocksdb.compaction-pending",
    "rocksdb.num-running-compactions",
];
/// Of the library's many counters, those that explain the figures.
const TICKERS: [&str; 8] = [
    "rocksdb.block.cache.hit",
    "rocksdb.block.cache.miss",
    "rocksdb.bloom.filter.useful",
    "rocksdb.compact.read.bytes",
    "rocksdb.compact.write.bytes",
    "rocksdb.flush.write.bytes",
    "rocksdb.stall.micros",
    "rocksdb.wal.bytes",
];

struct RocksdbPeer {
    db: DB,
    options: Options,
    write_options: WriteOptions,
    read_options: ReadOptions,
}

pub fn open(folder: &Path, settings: PeerSettings) -> Result<Box<dyn Peer>, BenchError> {
    let options = options(settings.cache_bytes);
    let db = DB::open(&options, folder).map_err(failed(NAME, "opening the store"))?;
    let mut write_options = WriteOptions::default();
    write_options.set_sync(false);
    let peer = RocksdbPeer { db, options, write_options, read_options: ReadOptions::default() };
    Ok(Box::new(peer))
}

fn options(cache_bytes: u64) -> Options {
    let buffers = cache_bytes / WRITE_BUFFERS_SHARE;
    let buffer = (buffers / WRITE_BUFFERS).max(MEBIBYTE);
    let cache = Cache::new_lru_cache((cache_bytes - buffers) as usize);
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&cache);
    blocks.set_block_size(BLOCK_BYTES);
    blocks.set_bloom_filter(FILTER_BITS, false);
    blocks.set_cache_index_and_filter_blocks(true);
    blocks.set_cache_index_and_filter_blocks_with_high_priority(true);
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
    blocks.set_format_version(5);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&blocks);
    options.set_db_write_buffer_size(buffers as usize);
    options.set_write_buffer_size(buffer as usize);
    options.set_max_write_buffer_number(WRITE_BUFFERS as i32);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_max_bytes_for_level_base(buffer * LEVEL_0_FILES);
    options.set_target_file_size_base((buffer * LEVEL_0_FILES / 4).max(MEBIBYTE));
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_bottommost_compression_type(DBCompressionType::Zstd);
    options
        .set_max_background_jobs(std::thread::available_parallelism().map_or(2, |n| n.get() as i32).max(2));
    // Every get finds its key: the last level needs no filters, whose memory is then for blocks.
    options.set_optimize_filters_for_hits(true);
    options.set_use_direct_reads(true);
    options.set_use_direct_io_for_flush_and_compaction(true);
    options.set_bytes_per_sync(MEBIBYTE);
    options.set_max_open_files(-1);
    options.enable_statistics();
    options
}

fn full_key(tree: Tree, key: &[u8]) -> Vec<u8> {
    [&tree.place().to_be_bytes(), key].concat()
}

impl Peer for RocksdbPeer {
    fn write(&self, batch: &Batch) -> Result<(), BenchError> {
        let mut writes = WriteBatch::default();
        for (tree, key, value) in batch.iter() {
            writes.put(full_key(tree, key), value);
        }
        self.db.write_opt(writes, &self.write_options).map_err(failed(NAME, "writing a batch"))
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>, BenchError> {
        Ok(Box::new(RocksdbReader { peer: self }))
    }

    fn sync(&self) -> Result<(), BenchError> {
        self.db.flush_wal(true).map_err(failed(NAME, "syncing"))
    }

    fn drain(&self) -> Result<(), BenchError> {
        self.db.flush().map_err(failed(NAME, "draining"))?;
        // Compactions start one another: quiet is what stays quiet.
        let mut quiet = 0;
        while quiet < LOOKS_UNTIL_QUIET {
            quiet = if self.is_busy().map_err(failed(NAME, "draining"))? { 0 } else { quiet + 1 };
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(())
    }

    fn compact(&self) -> Result<(), BenchError> {
        self.db.compact_range::<&[u8], &[u8]>(None, None);
        self.drain()
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        let text = self.options.get_statistics().unwrap_or_default();
        let tickers = text.lines().filter_map(|line| {
            let (name, count) = line.split_once(" COUNT : ")?;
            let kept = TICKERS.contains(&name).then_some(name)?;
            Some((kept.to_owned(), count.trim().parse().ok()?))
        });
        tickers.collect()
    }
}

impl RocksdbPeer {
    fn is_busy(&self) -> Result<bool, rocksdb::Error> {
        for property in BUSY {
            if self.db.property_int_value(property)?.is_some_and(|count| count > 0) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

struct RocksdbReader<'p> {
    peer: &'p RocksdbPeer,
}

impl Reader for RocksdbReader<'_> {
    fn get(&self, tree: Tree, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, BenchError> {
        let peer = self.peer;
        let value = peer
            .db
            .get_pinned_opt(full_key(tree, key), &peer.read_options)
            .map_err(failed(NAME, "reading a key"))?;
        Ok(value.inspect(|value| see(value)).is_some())
    }

    fn scan(&self, tree: Tree, from: &[u8], rows: usize, see: SeeRow<'_>) -> Result<usize, BenchError> {
        let prefix = tree.place().to_be_bytes();
        let mut entries = self.peer.db.raw_iterator();
        entries.seek(full_key(tree, from));
        let mut seen = 0;
        while seen < rows {
            let Some((key, value)) = entries.item() else { break };
            let Some(key) = key.strip_prefix(&prefix) else { break };
            see(key, value);
            seen += 1;
            entries.next();
        }
        entries.status().map_err(failed(NAME, "scanning"))?;
        Ok(seen)
    }
}
