//! The check of slices: each slice by itself, and that it is newer than all versions below it.

use std::collections::BTreeMap;
use std::ops::Bound;

use pando_storage::{CommitTimestamp, TreeId};

use super::large_value_check::LargeFound;
use super::{Range, TreeReport, Walk};
use crate::base::extents_of;
use crate::format::filter::KeyHash;
use crate::format::inner_node::StoredSlice;
use crate::format::page::Page;
use crate::format::slice_index::SliceIndex;

/// The timestamp of the oldest version of each key that was met on the way down. Versions below must be
/// older.
pub(super) type Above = BTreeMap<Vec<u8>, CommitTimestamp>;

/// The part of `above` that concerns the keys of a child.
pub(super) fn above_child(above: &Above, range: Range<'_>) -> Above {
    let lower = range.lower.map_or(Bound::Unbounded, Bound::Included);
    let upper = range.upper.map_or(Bound::Unbounded, Bound::Excluded);
    if let (Some(lower), Some(upper)) = (range.lower, range.upper)
        && lower >= upper
    {
        return Above::new();
    }
    above.range::<[u8], _>((lower, upper)).map(|(key, time)| (key.clone(), *time)).collect()
}

/// The totals of a slice.
struct Found {
    entries: u64,
    content_bytes: u64,
    in_page_bytes: u64,
    large: LargeFound,
    oldest: CommitTimestamp,
    newest: CommitTimestamp,
}

impl Walk<'_> {
    /// Checks the slices of a child, newest first. Their versions are added to `above`.
    pub(super) fn slices(
        &mut self,
        tree: TreeId,
        slices: &[StoredSlice],
        range: Range<'_>,
        above: &mut Above,
        report: &mut TreeReport,
    ) {
        for slice in slices {
            self.slice(tree, slice, range, above, report);
        }
    }

    fn slice(
        &mut self,
        tree: TreeId,
        slice: &StoredSlice,
        range: Range<'_>,
        above: &mut Above,
        report: &mut TreeReport,
    ) {
        report.slices += 1;
        report.pending_entries += slice.entries;
        report.stored_bytes += u64::from(slice.index.disk_length());
        let index = match self.read(&slice.index, |bytes| SliceIndex::decode(&bytes)) {
            Ok(index) => index,
            Err(error) => {
                self.reached.extend(extents_of([&slice.index]));
                self.damage(tree, range, error);
                return;
            }
        };
        let blocks = index.pages.pages().iter().map(|page| &page.pointer).chain([&slice.index]);
        self.reached.extend(extents_of(blocks));
        let damage = self.report.damage.len();
        let mut found = Found {
            entries: 0,
            content_bytes: 0,
            in_page_bytes: 0,
            large: LargeFound::default(),
            oldest: CommitTimestamp::new(u64::MAX),
            newest: CommitTimestamp::ZERO,
        };
        for at in 0..index.pages.pages().len() {
            let lower = if at == 0 { range.lower } else { Some(index.pages.separator(at)) };
            let last = at + 1 == index.pages.pages().len();
            let upper = if last { range.upper } else { Some(index.pages.separator(at + 1)) };
            if at > 0 && !range.contains(index.pages.separator(at)) {
                self.damage(tree, range, "a separator lies outside its slice's range");
            }
            self.slice_page(tree, &index, at, Range { lower, upper }, above, &mut found, report);
        }
        let said = (slice.entries, slice.content_bytes, slice.in_page_bytes, slice.reach);
        let said = (said, slice.oldest, slice.newest);
        let counts = (found.entries, found.content_bytes, found.in_page_bytes, found.large.reach);
        let found = (counts, found.oldest, found.newest);
        if self.report.damage.len() == damage && found != said {
            self.damage(
                tree,
                range,
                format!("a slice has {found:?} (entries, bytes, bytes in pages, reach; times), not {said:?}"),
            );
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the state of the walk, the page, and the totals")]
    fn slice_page(
        &mut self,
        tree: TreeId,
        index: &SliceIndex,
        at: usize,
        range: Range<'_>,
        above: &mut Above,
        found: &mut Found,
        report: &mut TreeReport,
    ) {
        let said = &index.pages.pages()[at];
        report.stored_bytes += u64::from(said.pointer.disk_length());
        let page = match self.read(&said.pointer, Page::decode) {
            Ok(page) => page,
            Err(error) => return self.damage(tree, range, error),
        };
        if let Err(error) = page.check_order() {
            self.damage(tree, range, error);
        }
        if page.len() != said.entries as usize {
            let problem = format!("{} entries of a slice's page counted, {} found", said.entries, page.len());
            self.damage(tree, range, problem);
        }
        let (mut key, large_before) = (Vec::new(), found.large.bytes);
        for at in 0..page.len() {
            page.key_into(at, &mut key);
            let entry = page.entry(at);
            let time = entry.timestamp();
            found.entries += 1;
            let content = page.content(&entry);
            self.keep(report, time, &key, &content);
            found.content_bytes += key.len() as u64 + content.value_bytes();
            found.in_page_bytes += (key.len() + content.in_page().len()) as u64;
            self.large_value(tree, &key, content, &mut found.large, report);
            found.oldest = found.oldest.min(time);
            found.newest = found.newest.max(time);
            if !range.contains(&key) {
                self.damage(tree, range, format!("entry {at} of a slice lies outside its page's range"));
            }
            if time == CommitTimestamp::ZERO {
                self.damage(tree, range, format!("entry {at} of a slice has no time"));
            }
            if !index.filter.may_contain(KeyHash::of(&key)) {
                self.damage(tree, range, format!("the filter of a slice misses entry {at} of a page"));
            }
            if above.get(&key).is_some_and(|oldest| *oldest <= time) {
                self.damage(tree, range, format!("entry {at} of a slice is not older than one above it"));
            }
            above.insert(key.clone(), time);
        }
        let large = found.large.bytes - large_before;
        if large != said.large_bytes {
            let problem = format!("{} bytes of large values counted, {large} found", said.large_bytes);
            self.damage(tree, range, problem);
        }
    }
}
