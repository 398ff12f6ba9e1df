//! Estimate: the rough number of entries and bytes in a range of keys.
//!
//! Subtrees within the range count by their counters, and a leaf at an end of the range by its directory. At
//! most two directories are read, and no pages.
//!
//! Entries of nodes and leaves under a pending range delete count as deleted, as far as nodes in memory tell
//! their number. Newer entries under it count again once the range delete is applied.

use std::ops::Bound;
use std::sync::Arc;

use pando_storage::{BlockingMode, Estimate, KeyRange, SnapshotTimestamp};

use super::buffer::{Buffer, Chain, SharedBuffer, bounds_of};
use super::node::{Child, LeafChild};
use super::slice::Slice;
use super::view::{Frozen, TreeView};
use crate::base::KeySpan;
use crate::error::BetreeError;
use crate::range_deletes::{DeletedRanges, RangeFragment};
use crate::tree::leaf_growth::Growth;
use crate::tree::tree_blocks::Blocks;

/// Entries of a buffer that are counted one by one. A range with more is guessed from the buffer's size.
const COUNTED_MAX: usize = 256;

/// Estimates a range of a tree. Reads inner nodes and at most two directories.
pub(crate) fn estimate(
    view: &TreeView,
    blocks: &Blocks,
    range: &KeyRange,
    blocking: BlockingMode,
) -> Result<Estimate, BetreeError> {
    let mut sum = Estimate::default();
    if range.is_empty() {
        return Ok(sum);
    }
    if let Some(root) = &view.version.root {
        add_child(root, None, None, blocks, range, blocking, &mut sum)?;
        let gone =
            KeySpan::of(range).map_or_else(Estimate::default, |within| gone(view, root, Some(&within)));
        sum.entries = sum.entries.saturating_sub(gone.entries);
        sum.bytes = sum.bytes.saturating_sub(gone.bytes);
    }
    let mut frozen_before: Option<&Arc<Frozen>> = None;
    for (at, partition) in view.partitions.iter().enumerate() {
        let upper = view.upper_of(at);
        if position(Some(&partition.lower), upper, range) == Position::Outside {
            continue;
        }
        add_buffer(&partition.active, range, &view.ranges, &mut sum);
        // Partitions that came from one by a split share its frozen buffer.
        if let Some(frozen) = &partition.frozen
            && !frozen_before.is_some_and(|before| Arc::ptr_eq(before, frozen))
        {
            add_buffer(&frozen.buffer, range, &view.ranges, &mut sum);
            frozen_before = Some(frozen);
        }
    }
    Ok(sum)
}

/// Estimates a whole tree from its counters. Pending messages count only with the part by which recent ones
/// made leaves grow ([`Growth`]). Messages pending in nodes that are not in memory count in full.
pub(crate) fn estimate_all(view: &TreeView, growth: &Growth) -> Estimate {
    let (mut leaves, mut pending) = (Estimate::default(), Estimate::default());
    if let Some(root) = &view.version.root {
        (leaves.entries, leaves.bytes) = (root.entries(), root.content_bytes());
        add_pending(root, &mut pending);
        let gone = gone(view, root, None);
        leaves.entries = leaves.entries.saturating_sub(gone.entries);
        leaves.bytes = leaves.bytes.saturating_sub(gone.bytes);
    }
    leaves.entries = leaves.entries.saturating_sub(pending.entries);
    leaves.bytes = leaves.bytes.saturating_sub(pending.bytes);
    for buffer in view.buffers().filter(|buffer| !buffer.is_empty()) {
        let buffer = buffer.read();
        let (entries, all) = (buffer.len() - deleted_in(&buffer, &view.ranges), buffer.len().max(1));
        pending.entries += entries as u64;
        pending.bytes += (buffer.content_bytes() * entries / all) as u64;
    }
    Estimate {
        entries: leaves.entries.saturating_add_signed(growth.of(pending.entries)),
        bytes: leaves.bytes.saturating_add_signed(growth.of(pending.bytes)),
    }
}

/// Entries and bytes of nodes and leaves under range deletes, within a span if one is given.
fn gone(view: &TreeView, root: &Child, within: Option<&KeySpan>) -> Estimate {
    let mut sum = Estimate::default();
    for fragment in view.ranges.fragments() {
        let span = within.map_or_else(|| Some(fragment.span.clone()), |within| fragment.span.meet(within));
        if let Some(span) = span {
            add_gone(root, &[], None, &span, &mut sum);
        }
    }
    sum
}

/// Keys of a buffer of which a range delete covers all versions.
fn deleted_in(buffer: &Buffer, ranges: &DeletedRanges) -> usize {
    let deleted_under = |fragment: &RangeFragment| {
        let upper = fragment.span.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let is_older = |chain: &Chain| chain.versions().all(|version| version.timestamp < fragment.times[0]);
        let within = buffer.range(Bound::Included(&*fragment.span.start), upper);
        within.filter(|(_, chain)| is_older(chain)).count()
    };
    ranges.fragments().iter().map(deleted_under).sum()
}

/// Adds the entries and bytes of a subtree within a span. A child that lies across an end of the span counts
/// half, unless a node in memory says more.
fn add_gone(child: &Child, lower: &[u8], upper: Option<&[u8]>, span: &KeySpan, sum: &mut Estimate) {
    if !span.overlaps(lower, upper) {
        return;
    }
    let part = if span.covers(lower, upper) { 1 } else { 2 };
    if let (2, Child::Inner(slot)) = (part, child)
        && let Some(node) = slot.loaded()
    {
        for (at, child) in node.children().iter().enumerate() {
            let begins = if at == 0 { lower } else { node.pivots().get(at) };
            let ends = if at + 1 < node.pivots().len() { Some(node.pivots().get(at + 1)) } else { upper };
            add_gone(child, begins, ends, span, sum);
            if span.overlaps(begins, ends) {
                let part = if span.covers(begins, ends) { 1 } else { 2 };
                let (entries, bytes) = pending(node.slices(at));
                (sum.entries, sum.bytes) = (sum.entries + entries / part, sum.bytes + bytes / part);
            }
        }
        return;
    }
    (sum.entries, sum.bytes) =
        (sum.entries + child.entries() / part, sum.bytes + child.content_bytes() / part);
}

/// Adds the messages pending in those nodes of a subtree that are in memory.
fn add_pending(child: &Child, sum: &mut Estimate) {
    let Child::Inner(slot) = child else { return };
    let Some(node) = slot.loaded() else { return };
    let (entries, bytes) = pending(node.all_slices());
    (sum.entries, sum.bytes) = (sum.entries + entries, sum.bytes + bytes);
    if node.height() > 1 {
        node.children().iter().for_each(|child| add_pending(child, sum));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Within,
    Across,
    Outside,
}

/// The position of the keys `[lower, upper)` relative to a range.
fn position(lower: Option<&[u8]>, upper: Option<&[u8]>, range: &KeyRange) -> Position {
    let ends_before = match (upper, &range.lower) {
        (Some(upper), Bound::Included(from)) => upper <= from.as_slice(),
        (Some(upper), Bound::Excluded(from)) => upper <= from.as_slice(),
        _ => false,
    };
    let begins_after = lower.is_some_and(|lower| !range.is_below_upper(lower));
    if ends_before || begins_after {
        return Position::Outside;
    }
    let begins_within = match (lower, &range.lower) {
        (_, Bound::Unbounded) => true,
        (None, _) => false,
        (Some(lower), _) => range.is_above_lower(lower),
    };
    let ends_within = match (upper, &range.upper) {
        (_, Bound::Unbounded) => true,
        (None, _) => false,
        (Some(upper), Bound::Included(to) | Bound::Excluded(to)) => upper <= to.as_slice(),
    };
    if begins_within && ends_within { Position::Within } else { Position::Across }
}

fn add_child(
    child: &Child,
    lower: Option<&[u8]>,
    upper: Option<&[u8]>,
    blocks: &Blocks,
    range: &KeyRange,
    blocking: BlockingMode,
    sum: &mut Estimate,
) -> Result<(), BetreeError> {
    match position(lower, upper, range) {
        Position::Outside => return Ok(()),
        Position::Within => {
            sum.entries += child.entries();
            sum.bytes += child.content_bytes();
            return Ok(());
        }
        Position::Across => {}
    }
    match child {
        Child::Leaf(leaf) => add_leaf(leaf, lower, upper, blocks, range, blocking, sum),
        Child::Inner(slot) => {
            let node = blocks.node(slot, blocking)?;
            for (at, child) in node.children().iter().enumerate() {
                let begins = if at == 0 { lower } else { Some(node.pivots().get(at)) };
                let ends = if at + 1 < node.pivots().len() { Some(node.pivots().get(at + 1)) } else { upper };
                add_child(child, begins, ends, blocks, range, blocking, sum)?;
                let (entries, bytes) = pending(node.slices(at));
                // Messages pending for a child that lies across an end of the range count half.
                let part = match position(begins, ends, range) {
                    Position::Outside => continue,
                    Position::Within => 1,
                    Position::Across => 2,
                };
                sum.entries += entries.div_ceil(part);
                sum.bytes += bytes.div_ceil(part);
            }
            Ok(())
        }
    }
}

/// Entries, and bytes of keys and values, in slices.
fn pending<'s>(slices: impl IntoIterator<Item = &'s Arc<Slice>>) -> (u64, u64) {
    slices.into_iter().fold((0, 0), |sum, slice| (sum.0 + slice.entries(), sum.1 + slice.content_bytes()))
}

/// Adds a leaf at an end of the range. Pages within the range count in full; a page across an end counts
/// exactly if it is in memory, else half.
fn add_leaf(
    leaf: &LeafChild,
    lower: Option<&[u8]>,
    upper: Option<&[u8]>,
    blocks: &Blocks,
    range: &KeyRange,
    blocking: BlockingMode,
    sum: &mut Estimate,
) -> Result<(), BetreeError> {
    let directory = blocks.directory(&leaf.directory, blocking)?;
    let mut entries = 0;
    for (at, page) in directory.pages().iter().enumerate() {
        let begins = if at == 0 { lower } else { Some(directory.separator(at)) };
        let ends = if at + 1 < directory.pages().len() { Some(directory.separator(at + 1)) } else { upper };
        let all = u64::from(page.entries);
        entries += match position(begins, ends, range) {
            Position::Outside => 0,
            Position::Within => all,
            Position::Across => match blocks.page(&page.pointer, BlockingMode::CachedOnly) {
                Ok(page) => entries_within(&page, range),
                Err(_) => all.div_ceil(2),
            },
        };
    }
    let all = leaf.entries.max(1);
    sum.entries += entries;
    sum.bytes += (u128::from(leaf.content_bytes) * u128::from(entries) / u128::from(all)) as u64;
    Ok(())
}

fn entries_within(page: &crate::format::page::Page, range: &KeyRange) -> u64 {
    let from = match &range.lower {
        Bound::Included(key) => page.lower_bound(key),
        Bound::Excluded(key) => page.upper_bound(key),
        Bound::Unbounded => 0,
    };
    let to = match &range.upper {
        Bound::Included(key) => page.upper_bound(key),
        Bound::Excluded(key) => page.lower_bound(key),
        Bound::Unbounded => page.len(),
    };
    to.saturating_sub(from) as u64
}

fn add_buffer(buffer: &SharedBuffer, range: &KeyRange, deleted: &DeletedRanges, sum: &mut Estimate) {
    if buffer.is_empty() {
        return;
    }
    let buffer = buffer.read();
    let (lower, upper) = bounds_of(range);
    let is_there = |(key, chain): &(&[u8], &Chain)| {
        let floor = deleted.floor(key, SnapshotTimestamp::MAX);
        chain.versions().next().is_some_and(|newest| newest.timestamp >= floor)
    };
    let looked_at = buffer.range(lower, upper).take(COUNTED_MAX);
    let (found, counted) = looked_at
        .fold((0, 0), |(found, counted), entry| (found + 1, counted + usize::from(is_there(&entry))));
    let entries = if found < COUNTED_MAX { counted } else { buffer.len().div_ceil(2).max(counted) };
    sum.entries += entries as u64;
    sum.bytes += (buffer.content_bytes() * entries / buffer.len().max(1)) as u64;
}
