//! Lookup: a point read. It looks into the active buffer, the frozen buffer, the slices on the way down, and
//! a leaf.
//!
//! A lookup usually costs one device read. Nodes and filters are in memory once visited, and the cache
//! prefers leaf directories. One filter in a hundred lets a key through that its slice does not have. If
//! leaves have filters, a missing key costs no read. A key with merge operators on the way takes one page
//! more for each place that has some. The value that they apply to lies below. If a range delete lies over
//! the key, pages without newer versions are not read.

use bytes::Bytes;
use pando_storage::{BlockingMode, CommitTimestamp, PENDING_PATCHES_MAX, SnapshotTimestamp};

use super::buffer::{Chain, SharedBuffer};
use super::path::{LeafPlace, Target, find_leaf};
use super::slice::Slice;
use super::view::TreeView;
use crate::error::BetreeError;
use crate::format::content::{Content, LargeReference, merges_of};
use crate::format::filter::KeyHash;
use crate::format::page::Found;
use crate::tree::tree_blocks::Blocks;
use crate::tree::value_merge::MergeOperands;

/// The value of a key at a snapshot. An error of a leaf carries the range of keys that it concerns.
pub(crate) fn get(
    view: &TreeView,
    blocks: &Blocks,
    key: &[u8],
    snapshot: SnapshotTimestamp,
    blocking: BlockingMode,
) -> Result<Option<Bytes>, Damaged> {
    let mut operands = MergeOperands::default();
    let wanted = Wanted { key, snapshot, floor: view.ranges.floor(key, snapshot), blocking };
    let below = below_operators(view, blocks, wanted, &mut operands)?;
    Ok(if operands.is_empty() { below } else { operands.over(below) })
}

/// The patches of a key in the write buffers above its newest value there, or somewhat more than
/// [`PENDING_PATCHES_MAX`].
pub(crate) fn pending_patches(view: &TreeView, key: &[u8]) -> usize {
    let partition = &view.partitions[view.partition_of(key)];
    let frozen = partition.frozen.as_ref().map(|frozen| &frozen.buffer);
    let mut pending = 0;
    for buffer in [Some(&*partition.active), frozen.map(|buffer| &**buffer)].into_iter().flatten() {
        let buffer = buffer.read();
        let Some(chain) = buffer.get(key) else { continue };
        for version in chain.versions() {
            let Content::Merge(merges) = version.change.content() else { return pending };
            pending += merges_of(merges).patches();
            if pending >= PENDING_PATCHES_MAX {
                return pending;
            }
        }
    }
    pending
}

/// The key of a lookup, and the versions of it that count.
#[derive(Clone, Copy)]
struct Wanted<'k> {
    key: &'k [u8],
    snapshot: SnapshotTimestamp,
    /// Versions below it are deleted by a range delete.
    floor: CommitTimestamp,
    blocking: BlockingMode,
}

/// The value of a key below its merge operators, which are added to `operands`.
fn below_operators(
    view: &TreeView,
    blocks: &Blocks,
    wanted: Wanted<'_>,
    operands: &mut MergeOperands,
) -> Result<Option<Bytes>, Damaged> {
    let Wanted { key, blocking, .. } = wanted;
    let partition = &view.partitions[view.partition_of(key)];
    if let Some(value) = in_buffer(&partition.active, wanted, operands) {
        return Ok(value);
    }
    if let Some(frozen) = &partition.frozen
        && let Some(value) = in_buffer(&frozen.buffer, wanted, operands)
    {
        return Ok(value);
    }
    let mut hash = None;
    let target = Target::Covering(key);
    let place = find_leaf(&view.version, blocks, target, blocking, |node, at, (lower, upper)| {
        let slices = node.slices(at);
        if slices.is_empty() {
            return Ok(());
        }
        node.note_read(at);
        let hash = *hash.get_or_insert_with(|| KeyHash::of(key));
        for slice in slices {
            let found = in_slice(slice, blocks, wanted, hash);
            match found.map_err(|error| Stop::Failed(Damaged::new(error, lower, upper)))? {
                Found::Absent => {}
                Found::Deleted => return Err(Stop::Answer(None)),
                Found::Value(value) => return Err(Stop::Answer(Some(value))),
                Found::Large(reference) => return Err(Stop::Large(reference)),
                Found::Merged(versions) => {
                    match versions.into_iter().find_map(|content| operands.take(content)) {
                        None => {}
                        Some(Content::Value(value)) => return Err(Stop::Answer(Some(value))),
                        Some(Content::Large(reference)) => return Err(Stop::Large(reference)),
                        Some(Content::Deleted | Content::Merge(_)) => return Err(Stop::Answer(None)),
                    }
                }
            }
        }
        Ok(())
    });
    match place {
        Ok(Some(place)) => in_leaf(&place, blocks, wanted, hash),
        Ok(None) => Ok(None),
        Err(Stop::Answer(value)) => Ok(value),
        Err(Stop::Large(reference)) => large_value(blocks, key, &reference, blocking),
        Err(Stop::Failed(damaged)) => Err(damaged),
    }
}

/// Looks a key up in a leaf; `hash` is the key's, if it is known.
fn in_leaf(
    place: &LeafPlace<'_>,
    blocks: &Blocks,
    wanted: Wanted<'_>,
    hash: Option<KeyHash>,
) -> Result<Option<Bytes>, Damaged> {
    let Wanted { key, snapshot, floor, blocking } = wanted;
    let within = |error| Damaged::new(error, place.lower, place.upper);
    let directory = blocks.directory(&place.leaf.directory, blocking).map_err(within)?;
    let at = directory.page_of(key);
    if directory.pages()[at].newest < floor {
        return Ok(None);
    }
    if !directory.filter().is_empty() {
        let hash = hash.unwrap_or_else(|| KeyHash::of(key));
        if !directory.filter().may_contain(hash) {
            blocks.cache().note_spared(&directory.pages()[at].pointer);
            return Ok(None);
        }
    }
    let page = blocks.page(&directory.pages()[at].pointer, blocking).map_err(|error| {
        let lower = if at == 0 { place.lower } else { Some(directory.separator(at)) };
        let upper =
            if at + 1 < directory.pages().len() { Some(directory.separator(at + 1)) } else { place.upper };
        Damaged::new(error, lower, upper)
    })?;
    match page.find(key, snapshot, floor) {
        Found::Value(value) => Ok(Some(value)),
        Found::Large(reference) => large_value(blocks, key, &reference, blocking),
        Found::Absent | Found::Deleted => Ok(None),
        Found::Merged(_) => unreachable!("a page of a leaf with merge operators is refused when it is read"),
    }
}

/// Why a descent ended before it came to a leaf.
enum Stop {
    Answer(Option<Bytes>),
    Large(LargeReference<Bytes>),
    Failed(Damaged),
}

impl From<BetreeError> for Stop {
    fn from(error: BetreeError) -> Stop {
        Stop::Failed(Damaged::anywhere(error))
    }
}

fn large_value(
    blocks: &Blocks,
    key: &[u8],
    reference: &LargeReference<Bytes>,
    blocking: BlockingMode,
) -> Result<Option<Bytes>, Damaged> {
    let value = blocks.large_value(reference, blocking);
    value.map(Some).map_err(|error| damaged_value(error, key))
}

/// An error of a large value, which concerns one key.
pub(super) fn damaged_value(error: BetreeError, key: &[u8]) -> Damaged {
    let next = [key, &[0]].concat();
    Damaged::new(error, Some(key), Some(&next))
}

/// Looks a key up in a slice: probes its filter, and reads at most one page.
fn in_slice(slice: &Slice, blocks: &Blocks, wanted: Wanted<'_>, hash: KeyHash) -> Result<Found, BetreeError> {
    let Wanted { key, snapshot, floor, blocking } = wanted;
    let index = blocks.slice_index(slice, blocking)?;
    if !index.filter.may_contain(hash) {
        blocks.skipped_probes.add(1);
        return Ok(Found::Absent);
    }
    let entry = &index.pages.pages()[index.pages.page_of(key)];
    if entry.newest < floor {
        return Ok(Found::Absent);
    }
    let found = blocks.page(&entry.pointer, blocking)?.find(key, snapshot, floor);
    blocks.probes.add(1);
    if found == Found::Absent {
        blocks.false_positives.add(1);
    }
    Ok(found)
}

/// Looks a key up in a buffer: `None` if its value lies farther down, `Some(None)` if it is deleted. Merge
/// operators above the value are added to `operands`.
fn in_buffer(
    buffer: &SharedBuffer,
    wanted: Wanted<'_>,
    operands: &mut MergeOperands,
) -> Option<Option<Bytes>> {
    if buffer.is_empty() {
        return None;
    }
    buffer.note_read();
    in_chain(buffer.read().get(wanted.key)?, wanted, operands)
}

/// Looks through the versions of a key in a buffer. The result is that of [`in_buffer`].
fn in_chain(chain: &Chain, wanted: Wanted<'_>, operands: &mut MergeOperands) -> Option<Option<Bytes>> {
    let mut visible = chain.visible(wanted.snapshot);
    let found = visible.find_map(|version| operands.take(version.content_above(wanted.floor)))?;
    match found {
        Content::Value(value) => Some(Some(value)),
        Content::Deleted | Content::Merge(_) | Content::Large(_) => Some(None),
    }
}

/// An error and the keys that cannot be read because of it.
#[derive(Debug)]
pub(crate) struct Damaged {
    pub(crate) error: BetreeError,
    /// The smallest key concerned, and the key before which the damage ends; `None` where it is not known or
    /// the tree ends.
    pub(crate) range: Option<Box<(Option<Vec<u8>>, Option<Vec<u8>>)>>,
}

impl From<BetreeError> for Damaged {
    fn from(error: BetreeError) -> Damaged {
        Damaged::anywhere(error)
    }
}

impl Damaged {
    pub(crate) fn new(error: BetreeError, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Damaged {
        // `WouldBlock` is no damage: it happens with every uncached read, which should not copy keys.
        let range = match &error {
            BetreeError::WouldBlock(_) => None,
            _ => Some(Box::new((lower.map(<[u8]>::to_vec), upper.map(<[u8]>::to_vec)))),
        };
        Damaged { error, range }
    }

    pub(crate) fn anywhere(error: BetreeError) -> Damaged {
        Damaged::new(error, None, None)
    }
}
