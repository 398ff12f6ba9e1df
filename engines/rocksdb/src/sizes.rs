//! Estimates of trees and ranges, which RocksDB does not keep.
//!
//! # Algorithm
//! A tree is the sum of two parts.
//! 1. *Files*: RocksDB knows about how many bytes of its table files a range has. The tree's share of the
//!    files of its column family is taken for its share of their entries.
//! 2. *Write buffers*: RocksDB knows how many entries they hold, and not whose. The writes to the tree since
//!    the store was opened are taken for its part, as far as the buffers hold so many.
//!
//! A tree of a few entries is counted.

use pando_storage::{Begin, BlockingMode, Estimate, KeyRange, StorageError, TreeId};
use rocksdb::{Range, ReadOptions, properties};

use crate::failure::rocksdb_failed;
use crate::layout::{FamilyRange, PREFIX_BYTES, family_range, whole_tree};
use crate::library::{Database, Family};
use crate::store::Store;
use crate::trees::Tree;

/// Up to so many entries are counted.
const COUNTED_ENTRIES_MAX: u64 = 1_024;
/// Removed entries that counting passes before it gives up.
const SKIPPED_ENTRIES_MAX: u64 = 100_000;
/// Bytes that RocksDB adds to each key in a table file.
const KEY_SUFFIX_BYTES: u64 = 8;

/// The contents of a column family, all trees together.
struct FamilySize {
    file_bytes: u64,
    file_entries: u64,
    buffered_entries: u64,
    /// Of keys as trees know them, and values.
    entry_bytes: u64,
}

/// The outcome of counting a tree.
enum Count {
    Exact(Estimate),
    /// More than are counted.
    Many,
    Unknown,
}

impl Store {
    /// Entries and bytes of a tree, about. Without leave to wait nothing is counted that is not cached.
    pub(crate) fn tree_size(&self, id: TreeId, blocking: BlockingMode) -> Result<Estimate, StorageError> {
        let tree = self.trees.read().get(id)?.clone();
        let least = match self.count_few(id, &tree.family, blocking)? {
            Count::Exact(counted) => return Ok(counted),
            Count::Many => COUNTED_ENTRIES_MAX,
            Count::Unknown => 0,
        };
        let whole = family_size(&self.database, &tree.family)?;
        let of_files =
            share(whole.file_entries, self.file_bytes(&tree.family, whole_tree(id)), whole.file_bytes);
        let (buffered, buffered_bytes) = buffered(&tree, whole.buffered_entries);
        Ok(Estimate {
            entries: (of_files + buffered).max(least),
            bytes: of_files * whole.entry_bytes + buffered_bytes,
        })
    }

    /// The size of a range of which more than `counted` was seen.
    pub(crate) fn range_size(
        &self,
        family: &Family,
        (tree, range): (TreeId, &KeyRange),
        whole: Estimate,
        counted: Estimate,
    ) -> Estimate {
        let of_tree = self.file_bytes(family, whole_tree(tree));
        let of_range = family_range(tree, range).map_or(0, |range| self.file_bytes(family, range));
        let guess = if of_tree == 0 {
            // Nothing is known of where write buffers have their entries: a third, as System R guesses.
            Estimate { entries: whole.entries / 3, bytes: whole.bytes / 3 }
        } else {
            Estimate {
                entries: share(whole.entries, of_range, of_tree),
                bytes: share(whole.bytes, of_range, of_tree),
            }
        };
        Estimate { entries: guess.entries.max(counted.entries), bytes: guess.bytes.max(counted.bytes) }
    }

    /// Bytes of table files that a tree takes, about.
    pub(crate) fn tree_file_bytes(&self, id: TreeId) -> Result<u64, StorageError> {
        let tree = self.trees.read().get(id)?.clone();
        Ok(self.file_bytes(&tree.family, whole_tree(id)))
    }

    fn file_bytes(&self, family: &Family, range: FamilyRange) -> u64 {
        let ranges = [Range::new(&range.lower, &range.upper)];
        self.database.get_approximate_sizes_cf(family.handle(), &ranges).into_iter().sum()
    }

    /// The exact size of a tree with few entries.
    fn count_few(&self, id: TreeId, family: &Family, blocking: BlockingMode) -> Result<Count, StorageError> {
        let begun = self.begin(Begin::READ.at)?;
        let options = begun.snapshot.scan_options(blocking, whole_tree(id));
        let counted = self.count_in(options, family);
        self.end(begun.entered.number);
        counted
    }

    fn count_in(&self, mut options: ReadOptions, family: &Family) -> Result<Count, StorageError> {
        options.set_max_skippable_internal_keys(SKIPPED_ENTRIES_MAX);
        let mut entries = self.database.raw_iterator_cf_opt(family.handle(), options);
        entries.seek_to_first();
        let mut counted = Estimate::default();
        while let Some((key, value)) = entries.item() {
            if counted.entries == COUNTED_ENTRIES_MAX {
                return Ok(Count::Many);
            }
            counted.entries += 1;
            counted.bytes += (key.len() - PREFIX_BYTES + value.len()) as u64;
            entries.next();
        }
        match entries.status().map_err(|error| rocksdb_failed("counting", error)) {
            Ok(()) => Ok(Count::Exact(counted)),
            // It has passed too many removed entries, or met one that is not cached.
            Err(error) if error.is_would_block() => Ok(Count::Unknown),
            Err(error) => Err(error),
        }
    }
}

/// The part of `whole` that `part` is of `all`.
fn share(whole: u64, part: u64, all: u64) -> u64 {
    match all {
        0 => 0,
        _ => (u128::from(whole) * u128::from(part.min(all)) / u128::from(all)) as u64,
    }
}

/// Entries and bytes of a tree in write buffers, which hold so many entries.
fn buffered(tree: &Tree, buffered_entries: u64) -> (u64, u64) {
    let entries = tree.writes.entries().min(buffered_entries);
    (entries, share(tree.writes.bytes(), entries, tree.writes.entries()))
}

fn family_size(database: &Database, family: &Family) -> Result<FamilySize, StorageError> {
    let number = |name| {
        let value = database.property_int_value_cf(family.handle(), name);
        value.map(Option::unwrap_or_default).map_err(|error| rocksdb_failed("reading a property", error))
    };
    let buffered_entries =
        number(properties::NUM_ENTRIES_ACTIVE_MEM_TABLE)? + number(properties::NUM_ENTRIES_IMM_MEM_TABLES)?;
    let tables = database.property_value_cf(family.handle(), properties::AGGREGATED_TABLE_PROPERTIES);
    let tables = tables.map_err(|error| rocksdb_failed("reading a property", error))?.unwrap_or_default();
    Ok(FamilySize {
        file_bytes: number(properties::LIVE_SST_FILES_SIZE)?,
        file_entries: number(properties::ESTIMATE_NUM_KEYS)?.saturating_sub(buffered_entries),
        buffered_entries,
        entry_bytes: entry_bytes(&tables),
    })
}

/// The average bytes of key and value, from the text of RocksDB's properties.
fn entry_bytes(tables: &str) -> u64 {
    let figure = |name: &str| -> u64 {
        let value = tables.split(';').find_map(|part| part.trim().strip_prefix(name));
        value.and_then(|value| value.trim_start_matches('=').trim().parse().ok()).unwrap_or(0)
    };
    let bytes = figure("raw key size") + figure("raw value size");
    let average = bytes.checked_div(figure("# entries")).unwrap_or(0);
    average.saturating_sub(PREFIX_BYTES as u64 + KEY_SUFFIX_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_entry_is_read_out_of_rocksdbs_text() {
        let text = "# data blocks=2; # entries=10; # deletions=0; # merge operands=0; raw key size=180; raw average \
                    key size=18.000000; raw value size=1000; raw average value size=100.000000; ";
        assert_eq!(entry_bytes(text), 106);
        assert_eq!(entry_bytes(""), 0);
        assert_eq!(entry_bytes("# entries=many; raw key size"), 0);
    }

    #[test]
    fn a_share_is_never_more_than_the_whole() {
        assert_eq!((share(1_000, 1, 4), share(1_000, 5, 4), share(1_000, 5, 0)), (250, 1_000, 0));
        assert_eq!(share(u64::MAX, 7, 7), u64::MAX);
    }
}
