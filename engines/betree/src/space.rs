//! Block storage: the data file, checksummed pointers, extents, the space map and the superblock.
//!
//! # Terms
//! - *Block*: the unit of reading, a header and then a payload as its codec stored it. It takes whole
//!   *grains* of 32 bytes. Its checksum is in the *pointer* that its parent holds. So a lost or misdirected
//!   write is found as surely as a decayed block.
//! - *Extent*: a run of *units* of 4 KiB, the unit of allocation. Blocks written together are packed into an
//!   extent grain by grain. No list says which extents an owner has: they are the units that its blocks cover
//!   ([`extents_of`](crate::base::extents_of)).
//! - *Generation*: a count of checkpoints, and the state that one of them makes durable. A block remembers
//!   the generation in which it was born.
//! - *Superblock*: the root of a generation. It has two slots that checkpoints write in turn, each in two
//!   copies. It plays the part of RocksDB's MANIFEST and CURRENT.
//! - *Space map*: the units that one generation uses, exactly.
//!
//! # The life of an extent
//! 1. It is allocated, written, and attached to a tree. Allocation is best fit; the file grows in steps where
//!    no interval fits.
//! 2. A checkpoint makes a generation durable that reaches it. The space map of that generation contains it.
//! 3. A later version of the tree replaces it. It is detached and missing from the next generation's space
//!    map.
//! 4. Its last reader in memory ends: it is freed, but *pending*.
//! 5. Neither superblock slot reaches it any more: it is free. An extent that was born and freed within one
//!    generation was never reachable from a superblock, and is free at once.
//!
//! # A damaged block, step by step
//! 1. [`BlockStore`] compares the checksum of the bytes with the pointer, then the header with the pointer
//!    (`block_reader.rs`). A mismatch is a [`BlockProblem`]. It names the block that was found there instead,
//!    if any.
//! 2. Neither the payload nor a page decoded from it is cached or returned.
//! 3. `tree` adds the tree and the range of keys that depend on the block:
//!    [`BetreeError::Range`](crate::error::BetreeError).
//! 4. The caller gets `Corrupt`. Other keys stay readable. There is no repair and no quarantine: restore a
//!    backup.
//!
//! # Invariants
//! - Data is synced before the superblock that leads to it is written. That superblock is synced before any
//!   extent that it makes unreachable is reused.
//! - Blocks are never overwritten while a superblock, a pinned generation or a reader reaches them.
//! - The newest generation reaches exactly the units in its space map: [`BlockStore::audit`].
//! - An allocation that finds no room changes nothing. A part of the file is reserved for checkpoints, so
//!   that deletes can still clear a full disk.
//! - After a failed sync nothing is written any more: the store is *poisoned*.
//!
//! # Not here
//! The content of blocks (`format`), the records to replay on top of a generation (`log`), and the cache
//! (`cache`).

mod allocator;
mod audit;
mod block_header;
mod block_reader;
mod block_store;
mod checkpoint;
mod compression;
mod error;
mod extent_writer;
mod interval_set;
mod needed_features;
mod outdated_blocks;
mod pinned_generation;
mod shrink;
mod space_change;
mod space_map;
mod space_options;
mod store_keys;
mod stored_payload;
mod superblock;
mod superblock_slots;
mod traffic;

pub(crate) use block_reader::Sectors;
pub(crate) use block_store::{BlockStore, OpenedState};
pub(crate) use checkpoint::{Checkpoint, CheckpointContents};
pub(crate) use compression::Compression;
pub(crate) use error::encryption_kind;
pub use error::{BlockProblem, SpaceError};
pub(crate) use extent_writer::{BlockIndex, ExtentWriter};
pub(crate) use interval_set::IntervalSet;
pub(crate) use pinned_generation::PinnedGeneration;
pub(crate) use space_change::{SpaceChange, units_of};
pub(crate) use space_map::{read_list as read_intervals, write_list as write_intervals};
pub(crate) use space_options::SpaceOptions;
pub use store_keys::{DataKeys, rotate_keys};
pub(crate) use superblock::{SUPERBLOCK_BYTES, Shutdown, Superblock, SuperblockCopy};
pub(crate) use superblock_slots::{HEAD_UNITS, Slot, write_slot};

pub(crate) use traffic::{Cause, Flow};

#[cfg(feature = "fuzzing")]
pub(crate) use superblock::whole as whole_superblock;

/// Every decoder of this module, for the fuzzer.
#[cfg(feature = "fuzzing")]
pub(crate) fn decode_all(bytes: &[u8]) {
    use crate::base::{Codec, Columns, Pointer};

    let _copy = SuperblockCopy::read(&superblock::whole(bytes));
    let _root = space_map::decode_root(bytes);
    if let Ok(used) = space_map::decode_snapshot(bytes) {
        let again = space_map::decode_snapshot(&space_map::encode_snapshot(&used));
        assert_eq!(again.expect("what was encoded can be decoded"), used);
    }
    let _delta = space_map::decode_delta(bytes);
    let _header = block_header::BlockHeader::decode(bytes);
    if let Some(encoded) = bytes.first_chunk() {
        let _pointer = Pointer::decode(encoded);
    }
    if let Some((columns, _frame)) = Columns::decode(bytes, bytes.len()) {
        let mut block = bytes.to_vec();
        columns.unfold(&mut block);
        columns.fold(&mut block);
        assert_eq!(block, bytes);
    }
    for codec in (0..=u8::MAX).filter_map(Codec::from_number) {
        for raw_length in [0, 100, 4_096, 70_000] {
            let raw = codec.decompress(bytes, raw_length);
            assert!(raw.is_none_or(|raw| raw.len() == raw_length));
        }
    }
}

/// The payloads of all blocks in a store's data file, as they are stored.
#[cfg(feature = "fuzzing")]
pub(crate) fn payloads(
    environment: &pando_environment::Environment,
    folder: &std::path::Path,
) -> Vec<Vec<u8>> {
    use pando_environment::{Access, OpenMode};

    use crate::base::{BLOCK_HEADER_BYTES, FileId, GRAIN_BYTES};

    let path = folder.join(FileId::FIRST.name());
    let file = environment.files().open(&path, OpenMode::Existing, Access::Buffered);
    let file = file.expect("a new store has a data file");
    let mut bytes = vec![0; file.length().expect("the disk is in memory") as usize];
    file.read_exact_at(&mut bytes, 0).expect("the disk is in memory");
    let starts = (0..bytes.len()).step_by(GRAIN_BYTES as usize);
    let headers =
        starts.filter_map(|start| Some((start, block_header::BlockHeader::decode(&bytes[start..])?)));
    let payload = |(start, header): (usize, block_header::BlockHeader)| {
        let range = start + BLOCK_HEADER_BYTES..start + header.disk_length as usize;
        bytes.get(range).map(<[u8]>::to_vec)
    };
    headers.filter_map(payload).collect()
}

#[cfg(test)]
mod tests;
