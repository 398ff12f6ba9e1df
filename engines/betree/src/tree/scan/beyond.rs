//! What a long scan asks others to bring while it is at its batch ([`crate::cache::ScanAhead`]): the pages of the leaf behind those
//! of the batch, and of the leaves behind that.
//!
//! How far it asks ahead it has to earn: little where it finds nothing that was asked for, and all where it does, for then it has gone on
//! as was expected. A scan of a few hundred rows leaves little behind that nobody wanted.

use std::ops::{Bound, Range};
use std::sync::Arc;

use pando_storage::{Direction, KeyRange, Patience};

use super::way::pages_within;
use crate::cache::{Asking, Blocks, Extension};
use crate::error::BetreeError;
use crate::format::directory::{Directory, PageEntry};
use crate::space::Pointer;
use crate::tree::path::{LeafPlace, Target, find_leaf};
use crate::tree::view::Version;

/// So many bytes, before compression, are asked for at least where nothing was, in whole leaves; less where little may be ahead.
const FIRST_BYTES: u64 = 256 << 10;
/// Bytes of a portion at most, before compression, but for one page that has more: a leaf of the usual size and a half.
const PORTION_BYTES: u64 = 768 << 10;

/// A scan at a leaf.
pub(super) struct Beyond<'s> {
    pub(super) version: &'s Version,
    pub(super) blocks: &'s Blocks,
    pub(super) rest: &'s KeyRange,
    pub(super) direction: Direction,
}

impl Beyond<'_> {
    /// Asks for the pages of the batch, which the scan will bring itself, and for what comes after them.
    pub(super) fn begin(&self, leaf: &LeafPlace<'_>, directory: &Directory, batch: &Range<usize>) {
        let within = pages_within(directory, self.rest, self.direction);
        let behind = match self.direction {
            Direction::Forward => batch.end..within.end.max(batch.end),
            Direction::Backward => within.start.min(batch.start)..batch.start,
        };
        let pages = directory.pages();
        let mut asking = Asking { portions: Vec::new(), frontier: self.end_of(leaf).map(Into::into) };
        self.add(&mut asking, &pages[batch.clone()]);
        let bytes = self.add(&mut asking, &pages[behind]);
        let wanted = FIRST_BYTES.min(self.blocks.ahead_bytes() as u64 / 4);
        self.add_leaves(&mut asking, wanted.saturating_sub(bytes));
        self.blocks.begin_ahead(asking);
    }

    /// Asks for more where the last asking ended.
    pub(super) fn extend(&self, extension: &Extension) {
        let mut asking = Asking { portions: Vec::new(), frontier: Some(extension.frontier.clone()) };
        self.add_leaves(&mut asking, extension.bytes);
        self.blocks.extend_ahead(extension, asking);
    }

    /// Adds leaves from the frontier on until there are so many bytes. Whatever cannot be read the scan comes upon itself, later.
    fn add_leaves(&self, asking: &mut Asking, wanted: u64) {
        let mut bytes = 0;
        while bytes < wanted
            && let Some(key) = asking.frontier.take()
        {
            let Ok(Some((leaf, directory))) = self.leaf_behind(&key) else { return };
            let pages = pages_within(&directory, self.rest, self.direction);
            bytes += self.add(asking, &directory.pages()[pages]);
            asking.frontier = self.end_of(&leaf).map(Into::into);
        }
    }

    /// Where a leaf ends in the direction of the scan, if the scan goes on there.
    fn end_of<'l>(&self, leaf: &LeafPlace<'l>) -> Option<&'l [u8]> {
        match self.direction {
            Direction::Forward => leaf.upper.filter(|end| match &self.rest.upper {
                Bound::Included(last) => *end <= last.as_slice(),
                Bound::Excluded(last) => *end < last.as_slice(),
                Bound::Unbounded => true,
            }),
            Direction::Backward => leaf.lower.filter(|end| match &self.rest.lower {
                Bound::Included(first) | Bound::Excluded(first) => *end > first.as_slice(),
                Bound::Unbounded => true,
            }),
        }
    }

    fn leaf_behind(&self, end: &[u8]) -> Result<Option<(LeafPlace<'_>, Arc<Directory>)>, BetreeError> {
        let target = match self.direction {
            Direction::Forward => Target::Covering(end),
            Direction::Backward => Target::Before(end),
        };
        let visit = |_: &_, _, _| Ok::<(), BetreeError>(());
        let leaf = find_leaf(self.version, self.blocks, target, Patience::MayBlock, visit)?;
        let Some(leaf) = leaf else { return Ok(None) };
        let directory = self.blocks.directory(&leaf.leaf.directory, Patience::MayBlock)?;
        Ok(Some((leaf, directory)))
    }

    /// Adds neighbouring pages, the nearest first; their bytes, those of large values among them.
    fn add(&self, asking: &mut Asking, pages: &[PageEntry]) -> u64 {
        match self.direction {
            Direction::Forward => add(asking, pages.iter()),
            Direction::Backward => add(asking, pages.iter().rev()),
        }
    }
}

fn add<'p>(asking: &mut Asking, pages: impl Iterator<Item = &'p PageEntry>) -> u64 {
    let (mut portion, mut bytes, mut all): (Vec<Pointer>, u64, u64) = (Vec::new(), 0, 0);
    for page in pages {
        let more = u64::from(page.pointer.raw_length());
        if bytes + more > PORTION_BYTES && bytes > 0 {
            asking.portions.push(std::mem::take(&mut portion));
            bytes = 0;
        }
        portion.push(page.pointer);
        bytes += more;
        all = all.saturating_add(more).saturating_add(page.large_bytes);
    }
    if !portion.is_empty() {
        asking.portions.push(portion);
    }
    all
}
