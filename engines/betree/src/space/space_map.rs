//! The stored space map: the units that a generation uses.
//!
//! ```text
//!  root -> snapshot blocks (a whole map)  + delta (generation 5) + delta (6) + delta (7)
//!       -> the units that generation 7 removed
//! ```
//!
//! - The *snapshot* is a whole map, cut into blocks. Each later generation adds one *delta*: the units it
//!   added and removed. A new snapshot replaces the deltas when they have become many or long.
//! - The root repeats the units that its own generation removed. The generation before still reaches them, so
//!   they must not be reused at once after an open.
//! - The map's own blocks are in the map. Reserving them changes the map that they hold, so they are padded
//!   with zeros to the length that was reserved.
//!
//! Raw contents, all numbers varints. A list of intervals is their count, then for each the distance from the
//! end of the one before (from 0 for the first) and its length:
//! - root: version byte, snapshot blocks, delta blocks, the pointers (40 bytes each, snapshot first), removed
//!   intervals;
//! - snapshot: the used intervals, one list that runs on from block to block;
//! - delta: version byte, removed intervals, added intervals.

use std::ops::Range;

use super::interval_set::IntervalSet;
use crate::base::Pointer;
use crate::base::{FORMAT_VERSION, Fields, FormatError, write_varint};

const ROOT: &str = "space map root";
const SNAPSHOT: &str = "space map snapshot";
const DELTA: &str = "space map delta";

/// The most bytes of one snapshot block.
pub(super) const SNAPSHOT_BLOCK_BYTES: usize = 1024 * 1024;

/// The most deltas before a new snapshot.
const DELTAS_MAX: usize = 16;

/// The most bytes by which an encoded list grows when its set gets one interval. That counts the interval
/// twice, because it may cut another in two, and the count.
pub(super) const INTERVAL_BYTES_MAX: usize = 40;

/// The blocks of a map, as its root names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MapBlocks {
    pub(super) snapshot: Vec<Pointer>,
    pub(super) deltas: Vec<Pointer>,
}

impl MapBlocks {
    /// Whether the next generation should write a whole map.
    pub(super) fn wants_snapshot(&self, delta_bytes: usize) -> bool {
        let length = |pointers: &[Pointer]| {
            pointers.iter().map(|pointer| pointer.raw_length() as usize).sum::<usize>()
        };
        let deltas = length(&self.deltas) + delta_bytes;
        self.deltas.len() >= DELTAS_MAX || deltas > length(&self.snapshot) / 2 + 16 * 1024
    }

    pub(super) fn pointers(&self) -> impl Iterator<Item = &Pointer> {
        self.snapshot.iter().chain(&self.deltas)
    }
}

/// The most bytes of a root with this many blocks and these removed intervals.
pub(super) fn root_bytes_max(blocks: usize, removed: &IntervalSet) -> usize {
    32 + blocks * Pointer::ENCODED_BYTES + list_bytes(removed)
}

pub(super) fn encode_root(blocks: &MapBlocks, removed: &IntervalSet) -> Vec<u8> {
    let mut out = vec![FORMAT_VERSION];
    write_varint(&mut out, blocks.snapshot.len() as u64);
    write_varint(&mut out, blocks.deltas.len() as u64);
    for pointer in blocks.pointers() {
        out.extend_from_slice(&pointer.encode());
    }
    write_list(&mut out, removed);
    out
}

pub(super) fn decode_root(bytes: &[u8]) -> Result<(MapBlocks, IntervalSet), FormatError> {
    let mut fields = Fields::new(ROOT, bytes);
    fields.version()?;
    let limit = bytes.len() / Pointer::ENCODED_BYTES;
    let snapshot = fields.count("snapshot blocks", limit)?;
    let deltas = fields.count("delta blocks", limit)?;
    let mut pointers = |count: usize, first: usize| {
        (first..first + count)
            .map(|at| {
                Pointer::decode(fields.array("pointer")?).map_err(|reason| FormatError::Pointer {
                    block: ROOT,
                    at,
                    reason,
                })
            })
            .collect::<Result<Vec<_>, _>>()
    };
    let blocks = MapBlocks { snapshot: pointers(snapshot, 0)?, deltas: pointers(deltas, snapshot)? };
    let removed = read_list(ROOT, &mut fields)?;
    Ok((blocks, removed))
}

pub(super) fn encode_snapshot(used: &IntervalSet) -> Vec<u8> {
    let mut out = Vec::with_capacity(list_bytes(used));
    write_list(&mut out, used);
    out
}

/// Decodes the concatenated snapshot blocks.
pub(super) fn decode_snapshot(bytes: &[u8]) -> Result<IntervalSet, FormatError> {
    read_list(SNAPSHOT, &mut Fields::new(SNAPSHOT, bytes))
}

/// The most bytes of a delta with `more` additional intervals in its added set.
pub(super) fn delta_bytes_max(added: &IntervalSet, removed: &IntervalSet, more: usize) -> usize {
    1 + list_bytes(added) + list_bytes(removed) + more * INTERVAL_BYTES_MAX
}

pub(super) fn encode_delta(added: &IntervalSet, removed: &IntervalSet) -> Vec<u8> {
    let mut out = vec![FORMAT_VERSION];
    write_list(&mut out, removed);
    write_list(&mut out, added);
    out
}

/// Decodes a delta into its added and its removed units.
pub(super) fn decode_delta(bytes: &[u8]) -> Result<(IntervalSet, IntervalSet), FormatError> {
    let mut fields = Fields::new(DELTA, bytes);
    fields.version()?;
    let removed = read_list(DELTA, &mut fields)?;
    let added = read_list(DELTA, &mut fields)?;
    Ok((added, removed))
}

/// Applies the added and removed units of a generation. On a contradiction it returns the broken rule and the
/// units, and the set is unchanged.
pub(super) fn apply(
    used: &mut IntervalSet,
    added: &IntervalSet,
    removed: &IntervalSet,
) -> Result<(), (&'static str, Range<u64>)> {
    if let Some(units) = removed.iter().find(|units| !used.contains(units)) {
        return Err(("only what is in use is detached", units));
    }
    if let Some(units) = added.iter().find_map(|units| used.overlap(&units)) {
        return Err(("only what is not in use is attached", units));
    }
    for units in removed.iter() {
        used.remove(&units).expect("each removed interval was found in use, and they do not overlap");
    }
    for units in added.iter() {
        used.insert(units).expect("no added interval was found in use, and they do not overlap");
    }
    Ok(())
}

fn list_bytes(set: &IntervalSet) -> usize {
    let mut out = Vec::new();
    // Whole maps are the only long lists, and are encoded once in many generations. Counting by encoding is
    // easier to trust than a second implementation of the same walk.
    write_list(&mut out, set);
    out.len()
}

/// Appends a list of intervals, in the form of `docs/data-file.md`.
pub(crate) fn write_list(out: &mut Vec<u8>, set: &IntervalSet) {
    write_varint(out, set.len() as u64);
    let mut end = 0;
    for units in set.iter() {
        write_varint(out, units.start - end);
        write_varint(out, units.end - units.start);
        end = units.end;
    }
}

/// Reads a list of intervals.
pub(crate) fn read_list(block: &'static str, fields: &mut Fields<'_>) -> Result<IntervalSet, FormatError> {
    // Each interval takes at least two bytes, so a greater count is invalid.
    let count = fields.count("intervals", fields.remaining() / 2)?;
    let mut set = IntervalSet::new();
    let mut end = 0u64;
    for at in 0..count {
        let disorder = || FormatError::Disorder { block, field: "interval", at };
        let start = end.checked_add(fields.varint("distance")?).ok_or_else(disorder)?;
        end = start.checked_add(fields.varint("length")?).ok_or_else(disorder)?;
        // 2^45 units are 128 PiB. Addresses do not reach beyond.
        if start == end || end > 1 << 45 {
            return Err(disorder());
        }
        set.insert(start..end).map_err(|_overlap| disorder())?;
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use pando_environment::{Random, SeededRandom};

    use super::*;

    fn set(ranges: &[(u64, u64)]) -> IntervalSet {
        let mut set = IntervalSet::new();
        for (start, end) in ranges {
            set.insert(*start..*end).unwrap();
        }
        set
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn maps_have_the_bytes_that_the_format_says_and_come_back() {
        let used = set(&[(32, 40), (300, 301), (5_000, 25_000)]);
        assert_eq!(hex(&encode_snapshot(&used)), "03200884020 1db24a09c01".replace(' ', ""));
        assert_eq!(decode_snapshot(&encode_snapshot(&used)), Ok(used.clone()));
        let removed = set(&[(32, 33)]);
        assert_eq!(hex(&encode_delta(&used, &removed)), "010120010320088402 01db24a09c01".replace(' ', ""));
        assert_eq!(decode_delta(&encode_delta(&used, &removed)), Ok((used, removed.clone())));
        assert_eq!(hex(&encode_root(&MapBlocks::default(), &removed)), "010000012001");
    }

    #[test]
    fn padding_behind_a_map_is_ignored() {
        let used = set(&[(1, 2), (4, 9)]);
        let mut bytes = encode_snapshot(&used);
        bytes.extend_from_slice(&[0; 100]);
        assert_eq!(decode_snapshot(&bytes), Ok(used));
    }

    #[test]
    fn a_change_that_does_not_fit_changes_nothing() {
        let mut used = set(&[(10, 20)]);
        let before = used.clone();
        assert!(apply(&mut used, &set(&[(30, 31)]), &set(&[(18, 21)])).is_err());
        assert!(apply(&mut used, &set(&[(15, 16)]), &set(&[(10, 11)])).is_err());
        assert_eq!(used, before);
        apply(&mut used, &set(&[(20, 25)]), &set(&[(10, 12)])).unwrap();
        assert_eq!(used, set(&[(12, 25)]));
    }

    #[test]
    fn random_bytes_are_refused_without_panic_or_large_allocation() {
        let random = SeededRandom::new(0x6d61_7073);
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..random.below(64)).map(|_| random.next_u64() as u8).collect();
            for set in decode_snapshot(&bytes).into_iter().chain(decode_delta(&bytes).map(|(added, _)| added))
            {
                assert!(set.len() <= bytes.len());
            }
            drop(decode_root(&bytes));
        }
    }
}
