//! Lookup: a point read. It looks into the active buffer, the frozen buffer, the slices on the way down, and
//! a leaf.
//!
//! A lookup costs one device read as a rule: nodes and filters are in memory once visited, leaf directories
//! stay in the cache before all else, and one filter in a hundred lets a key through that its slice has not.
//! Where leaves have filters, a missing key costs no read. A key with merge operators on the way costs a page
//! more for each place that has some: the value that they apply to lies below. Where a range delete lies over
//! the key, pages without newer versions are not read.

use bytes::Bytes;
use pando_storage::{BlockingMode, CommitTimestamp, SnapshotTimestamp};

use super::buffer::{Chain, SharedBuffer};
use super::path::{LeafPlace, Target, find_leaf};
use super::slice::Slice;
use super::view::TreeView;
use crate::error::BetreeError;
use crate::format::content::{Content, LargeReference};
use crate::format::filter::KeyHash;
use crate::format::page::Found;
use crate::tree::blocks::Blocks;
use crate::tree::value_merge::MergeOperands;

/// The value of a key at a snapshot. An error of a leaf carries the range of keys that it concerns.
pub(crate) fn get(
    view: &TreeView,
    blocks: &Blocks,
    key: &[u8],
    snapshot: SnapshotTimestamp,
    blocking: BlockingMode,
) -> Result<Option<Bytes>, Damaged> {
    let mut gathered = MergeOperands::default();
    let below = below_merges(view, blocks, key, snapshot, blocking, &mut gathered)?;
    Ok(if gathered.is_empty() { below } else { gathered.over(below) })
}

/// The value of a key at a snapshot below its merges, which are gathered; the value itself where it has none.
fn below_merges(
    view: &TreeView,
    blocks: &Blocks,
    key: &[u8],
    snapshot: SnapshotTimestamp,
    blocking: BlockingMode,
    gathered: &mut MergeOperands,
) -> Result<Option<Bytes>, Damaged> {
    let floor = view.ranges.floor(key, snapshot);
    let partition = &view.partitions[view.partition_of(key)];
    if let Some(value) = in_buffer(&partition.active, key, (snapshot, floor), gathered) {
        return Ok(value);
    }
    if let Some(frozen) = &partition.frozen
        && let Some(value) = in_buffer(&frozen.buffer, key, (snapshot, floor), gathered)
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
            let found = in_slice(slice, blocks, (key, hash), (snapshot, floor), blocking);
            match found.map_err(|error| Stop::Failed(Damaged::new(error, lower, upper)))? {
                Found::Absent => {}
                Found::Deleted => return Err(Stop::Answer(None)),
                Found::Value(value) => return Err(Stop::Answer(Some(value))),
                Found::Large(reference) => return Err(Stop::Large(reference)),
                Found::Merged(versions) => {
                    match versions.into_iter().find_map(|content| gathered.take(content)) {
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
        Ok(Some(place)) => in_leaf(&place, blocks, (key, hash), (snapshot, floor), blocking),
        Ok(None) => Ok(None),
        Err(Stop::Answer(value)) => Ok(value),
        Err(Stop::Large(reference)) => large_value(blocks, key, &reference, blocking),
        Err(Stop::Failed(damaged)) => Err(damaged),
    }
}

/// What a leaf knows of a key.
fn in_leaf(
    place: &LeafPlace<'_>,
    blocks: &Blocks,
    (key, hash): (&[u8], Option<KeyHash>),
    (snapshot, floor): (SnapshotTimestamp, CommitTimestamp),
    blocking: BlockingMode,
) -> Result<Option<Bytes>, Damaged> {
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
        Found::Merged(_) => unreachable!("a leaf's page with merges is refused when it is read"),
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

/// An error of a large value: it concerns one key.
pub(super) fn damaged_value(error: BetreeError, key: &[u8]) -> Damaged {
    let next = [key, &[0]].concat();
    Damaged::new(error, Some(key), Some(&next))
}

/// What a slice knows of a key: one probe of its filter, and at most one page.
fn in_slice(
    slice: &Slice,
    blocks: &Blocks,
    (key, hash): (&[u8], KeyHash),
    (snapshot, floor): (SnapshotTimestamp, CommitTimestamp),
    blocking: BlockingMode,
) -> Result<Found, BetreeError> {
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

/// What a buffer knows of a key: nothing, or a value, or that it is deleted. Merges over that are gathered.
fn in_buffer(
    buffer: &SharedBuffer,
    key: &[u8],
    seen: (SnapshotTimestamp, CommitTimestamp),
    gathered: &mut MergeOperands,
) -> Option<Option<Bytes>> {
    if buffer.is_empty() {
        return None;
    }
    buffer.note_read();
    in_chain(buffer.read().get(key)?, seen, gathered)
}

/// What the versions of a key say, as [`in_buffer`].
fn in_chain(
    chain: &Chain,
    (snapshot, floor): (SnapshotTimestamp, CommitTimestamp),
    gathered: &mut MergeOperands,
) -> Option<Option<Bytes>> {
    let found = chain.visible(snapshot).find_map(|version| gathered.take(version.content_above(floor)))?;
    match found {
        Content::Value(value) => Some(Some(value)),
        Content::Deleted | Content::Merge(_) | Content::Large(_) => Some(None),
    }
}

/// An error and the keys that cannot be read because of it.
#[derive(Debug)]
pub(crate) struct Damaged {
    pub(crate) error: BetreeError,
    /// Smallest key concerned, and the key before which it ends; `None` where that is not known or the tree
    /// ends.
    pub(crate) range: Option<Box<(Option<Vec<u8>>, Option<Vec<u8>>)>>,
}

impl From<BetreeError> for Damaged {
    fn from(error: BetreeError) -> Damaged {
        Damaged::anywhere(error)
    }
}

impl Damaged {
    pub(crate) fn new(error: BetreeError, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Damaged {
        // To wait for the device is no damage, and on the way of every uncached read.
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
