//! Engine statistics: every counter and gauge of an open store.

use std::sync::Arc;

use pando_storage::Statistics;

use crate::memory::page_memory;
use crate::store::Store;
use crate::tree::tree_state::Tree;

/// Returns every counter and gauge. Times are in nanoseconds, sizes in bytes. Counters begin at the opening
/// of the store.
pub(crate) fn statistics(store: &Store) -> Statistics {
    let mut figures = Statistics::new();
    let counters = &store.counters;
    for (name, counter) in [
        ("commits.count", &counters.commits),
        ("commits.large", &counters.large_commits),
        ("commits.large_parts", &counters.large_parts),
        ("commits.writes", &counters.writes),
        ("commits.conflicts", &counters.conflicts),
        ("commits.delays", &counters.delays),
        ("commits.delay_nanos", &counters.delay_nanos),
        ("commits.stalls", &counters.stalls),
        ("commits.patches", &counters.patches),
        ("reads.gets", &counters.gets),
        ("reads.scans", &counters.scans),
        ("reads.scan_rows", &counters.scan_rows),
        ("flushes.count", &counters.flushes),
        ("buffers.swept_bytes", &counters.swept_bytes),
        ("flushes.failed", &counters.failed_flushes),
        ("flushes.partial", &counters.partial_flushes),
        ("flushes.idle", &counters.idle_flushes),
        ("flushes.aged", &counters.aged_flushes),
        ("range_deletes.count", &counters.range_deletes),
        ("range_deletes.steps", &counters.range_delete_steps),
        ("range_deletes.unread_leaves", &counters.unread_leaves),
        ("range_deletes.unread_slices", &counters.unread_slices),
        ("flushes.entries", &counters.flushed_entries),
        ("flushes.leaves", &counters.written_leaves),
        ("flushes.leaf_splits", &counters.leaf_splits),
        ("flushes.node_splits", &counters.node_splits),
        ("flushes.leaf_entries", &counters.leaf_entries),
        ("flushes.leaf_bytes", &counters.leaf_bytes),
        ("flushes.slices", &counters.slices),
        ("flushes.slice_entries", &counters.slice_entries),
        ("flushes.run_bytes", &counters.run_bytes),
        ("flushes.nanos", &counters.flush_nanos),
        ("flushes.large_values", &counters.large_values),
        ("flushes.large_value_bytes", &counters.large_bytes),
        ("loads.entries", &counters.loaded_entries),
        ("loads.leaves", &counters.loaded_leaves),
        ("loads.leaf_bytes", &counters.loaded_bytes),
        ("checkpoints.count", &counters.checkpoints),
        ("checkpoints.failed", &counters.failed_checkpoints),
        ("checkpoints.failed_drops", &counters.failed_drops),
        ("checkpoints.nanos", &counters.checkpoint_nanos),
        ("data.returned_bytes", &counters.returned_bytes),
        ("data.moved_bytes", &counters.moved_bytes),
        ("data.failed_returns", &counters.failed_returns),
        ("recovery.records", &counters.replayed_records),
        ("recovery.writes", &counters.replayed_writes),
    ] {
        figures.set(name, counter.get());
    }
    let (nanos, ended_millis) = counters.last_checkpoint.get();
    figures.set("checkpoints.last_nanos", nanos);
    figures.set("checkpoints.last_ended_millis", ended_millis);
    add_encryption(store, &mut figures);
    add_memory(store, &mut figures);
    add_devices(store, &mut figures);
    super::traffic_statistics::add_traffic(store, &mut figures);
    figures.set("snapshots.newest", store.visibility.publisher.newest().get());
    figures.set("snapshots.oldest", store.visibility.snapshots.oldest(&store.visibility.publisher).get());
    figures.set("transactions.live", store.visibility.snapshots.all().len() as u64);
    figures.set("trees.count", store.trees.all().len() as u64);
    let fragments = |tree: &Arc<Tree>| tree.view().ranges.fragments().len() as u64;
    figures.set("range_deletes.pending", store.trees.all().values().map(fragments).sum());
    figures
}

fn add_encryption(store: &Store, figures: &mut Statistics) {
    let Some(vault) = store.blocks.store().vault() else { return };
    figures.set("encryption.data_keys", vault.data_keys().len() as u64);
    figures.set("encryption.rewritten_bytes", store.counters.rewritten_bytes.get());
    figures.set("encryption.failed_rewrites", store.counters.failed_rewrites.get());
    for (name, figure) in store.key_rewriting.figures() {
        figures.set(name, figure);
    }
}

fn add_memory(store: &Store, figures: &mut Statistics) {
    let cache = store.blocks.cache();
    let (decoded, compressed) = cache.pages();
    let (decoded_bytes, compressed_bytes) = (cache.decoded_bytes(), cache.compressed_bytes());
    let (decoded_hits, compressed_hits) = (cache.decoded_hits.get(), cache.compressed_hits.get());
    figures.set("cache.page_bytes", decoded_bytes + compressed_bytes);
    figures.set("cache.decoded_page_bytes", decoded_bytes);
    figures.set("cache.compressed_page_bytes", compressed_bytes);
    figures.set("cache.run_page_bytes", cache.run_bytes());
    figures.set("cache.gap_bytes", page_memory::bytes().0 as u64);
    figures.set("cache.pages", decoded + compressed);
    figures.set("cache.decoded_pages", decoded);
    figures.set("cache.compressed_pages", compressed);
    figures.set("cache.directory_bytes", cache.directory_bytes());
    figures.set("cache.hits", decoded_hits + compressed_hits);
    figures.set("cache.decoded_hits", decoded_hits);
    figures.set("cache.compressed_hits", compressed_hits);
    figures.set("cache.misses", cache.misses.get());
    figures.set("cache.flush_reads", cache.flush_reads.get());
    figures.set("reads.scan_device_reads", cache.scan_reads.get());
    figures.set("reads.scan_device_bytes", cache.scan_read_bytes.get());
    let prefetch = &store.blocks.scan_prefetch;
    figures.set("cache.scan_ahead_bytes", prefetch.memory_bytes() as u64);
    figures.set("scans.portions_brought", prefetch.chunks_read.get());
    figures.set("scans.portions_helped", prefetch.chunks_read_by_workers.get());
    figures.set("scans.streams_abandoned", prefetch.streams_abandoned.get());
    figures.set("filters.leaf_negatives", cache.leaf_negatives.get());
    figures.set("filters.spared_reads", cache.spared_reads.get());
    figures.set("cache.limit_bytes", store.options.cache_bytes);
    let pages = decoded_bytes + compressed_bytes + cache.directory_bytes();
    figures.set("cache.counted_bytes", pages + store.memory.bytes_beside_pages() as u64);
    let accounts = &store.blocks.accounts;
    figures.set("cache.working_bytes", accounts.working_bytes() as u64);
    figures.set("cache.batch_bytes", accounts.batches.bytes() as u64);
    figures.set("cache.lent_bytes", accounts.lent_bytes() as u64);
    figures.set("buffers.bytes", store.buffers.bytes() as u64);
    figures.set("buffers.budget_bytes", store.buffers.budget() as u64);
    figures.set("flushes.bytes_per_second", store.monitor.pace.flush_rate());
    figures.set("nodes.bytes", store.memory.resident.node_bytes() as u64);
    figures.set("nodes.released_bytes", store.memory.resident.released_bytes() as u64);
    figures.set("runs.probes", store.blocks.probes.get());
    figures.set("runs.false_positives", store.blocks.false_positives.get());
    figures.set("runs.skipped_probes", store.blocks.skipped_probes.get());
    figures.set("runs.index_bytes", store.blocks.index_memory.bytes() as u64);
    figures.set("intents.count", store.visibility.intents.len() as u64);
    figures.set("read_claims.transactions", store.visibility.read_claims.readers() as u64);
    figures.set("read_claims.ranges", store.visibility.read_claims.ranges() as u64);
    figures.set("intents.bytes", store.visibility.intents.memory() as u64);
    let spill = store.spill.figures();
    figures.set("transactions.memory_bytes", spill.memory_bytes);
    figures.set("transactions.layer_memory_bytes", spill.layer_memory_bytes);
    figures.set("transactions.memory_budget_bytes", store.spill.budget() as u64);
    figures.set("transactions.spilled_bytes", spill.spilled_bytes);
    figures.set("transactions.spilled_layers", spill.layers);
    figures.set("transactions.spill_write_bytes", spill.written_bytes);
    figures.set("transactions.spill_read_bytes", spill.read_bytes);
    figures.set("flushes.longest_nanos", store.monitor.longest_nanos());
    figures.set("debt.permille", store.back_pressure.debt().permille());
    let over = store.buffers.bytes().saturating_sub(store.buffers.flush_from());
    figures.set("debt.buffer_bytes", over as u64);
    let overdue: usize = store.trees.all().values().map(|tree| tree.flush_debt.lock().bytes()).sum();
    figures.set("debt.node_bytes", overdue as u64);
}

fn add_devices(store: &Store, figures: &mut Statistics) {
    let space = store.blocks.store().statistics();
    figures.set("data.file_bytes", space.file_bytes);
    figures.set("data.free_bytes", space.free_bytes);
    figures.set("data.pending_bytes", space.pending_bytes);
    figures.set("data.reads", space.reads);
    figures.set("data.read_bytes", space.read_bytes);
    figures.set("data.writes", space.writes);
    figures.set("data.write_bytes", space.write_bytes);
    figures.set("data.hole_bytes", space.hole_bytes);
    figures.set("backup.pinned_generations", space.pins);
    let log = store.gate.log().statistics();
    figures.set("log.writes", log.writes);
    figures.set("log.write_bytes", log.write_bytes);
    figures.set("log.payload_bytes", store.counters.payload_bytes.get());
    figures.set("log.syncs", log.syncs);
    figures.set("log.sync_nanos", log.sync_nanos);
    figures.set("log.live_bytes", log.live_bytes);
    figures.set("log.file_bytes", log.file_bytes);
    figures.set("log.appended_bytes", store.gate.log().appended_bytes());
}
