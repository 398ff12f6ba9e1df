//! Own writes of a range, from memory and layers, key by key in either direction: the upper side of an
//! overlaid scan.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use super::layer::{Layer, Place};
use super::page::Page;
use crate::access::BlockingMode;
use crate::error::StorageError;
use crate::identifiers::TreeId;
use crate::key_range::{Direction, KeyRange};
use crate::write_set::Write;
use crate::write_set::overlay::{MemoryOwn, OwnWrites, in_scan_order};

/// Where a cursor over a layer stands: at the newest write of a key that counts.
struct Current {
    page: Arc<Page>,
    entry: usize,
}

/// The newest writes of a layer, key by key.
struct LayerOwn<'s> {
    layer: &'s Layer,
    tree: TreeId,
    range: &'s KeyRange,
    direction: Direction,
    blocking: BlockingMode,
    current: Option<Current>,
    /// Where to look next; `None` at the end.
    next: Option<Place>,
}

impl<'s> LayerOwn<'s> {
    fn new(
        layer: &'s Layer,
        tree: TreeId,
        range: &'s KeyRange,
        direction: Direction,
        blocking: BlockingMode,
    ) -> Result<LayerOwn<'s>, StorageError> {
        let mut own = LayerOwn { layer, tree, range, direction, blocking, current: None, next: None };
        own.next = own.first()?;
        own.step()?;
        Ok(own)
    }

    /// The place where the range begins, in the direction of the scan; writes before it are passed over.
    fn first(&self) -> Result<Option<Place>, StorageError> {
        match self.direction {
            Direction::Forward => {
                let key = match &self.range.lower {
                    Bound::Included(key) | Bound::Excluded(key) => key.as_slice(),
                    Bound::Unbounded => &[],
                };
                Ok(Some(self.layer.lower_bound(self.tree, key, self.blocking)?))
            }
            Direction::Backward => {
                let behind = match &self.range.upper {
                    Bound::Excluded(key) => self.layer.lower_bound(self.tree, key, self.blocking)?,
                    Bound::Included(key) => {
                        let next_key = [key.as_slice(), &[0]].concat();
                        self.layer.lower_bound(self.tree, &next_key, self.blocking)?
                    }
                    Bound::Unbounded => match self.tree.get().checked_add(1) {
                        Some(next) => self.layer.lower_bound(TreeId::new(next), &[], self.blocking)?,
                        None => self.layer.end(),
                    },
                };
                self.layer.before(behind, self.blocking)
            }
        }
    }

    fn write(&self) -> Option<Write<'_>> {
        self.current.as_ref().map(|current| current.page.entry(current.entry).write)
    }

    /// Goes on to the next key that has a write which counts.
    fn step(&mut self) -> Result<(), StorageError> {
        let before = self.current.take();
        let last = before.as_ref().map(|current| current.page.entry(current.entry).write.key);
        while let Some(place) = self.next.filter(|place| self.layer.has_page(place.page)) {
            let page = self.layer.page(place.page, self.blocking)?;
            let entry = page.entry(place.entry);
            if entry.write.tree != self.tree || !is_within(self.range, entry.write.key, self.direction) {
                self.next = None;
                break;
            }
            let key = entry.write.key;
            if self.current.as_ref().is_some_and(|at| at.page.entry(at.entry).write.key != key) {
                // Backwards the newest write of a key comes last: now the one at hand is it.
                return Ok(());
            }
            let counts = last != Some(key) && entry.number < self.layer.limit && self.range.contains(key);
            self.next = match self.direction {
                Direction::Forward => Some(self.layer.after(place, &page)),
                Direction::Backward => self.layer.before(place, self.blocking)?,
            };
            if counts {
                self.current = Some(Current { page, entry: place.entry });
                if self.direction == Direction::Forward {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Whether a key lies before the far end of a range.
fn is_within(range: &KeyRange, key: &[u8], direction: Direction) -> bool {
    match direction {
        Direction::Forward => range.is_below_upper(key),
        Direction::Backward => range.is_above_lower(key),
    }
}

/// The newest writes of memory and all layers, key by key.
pub(super) struct SpilledOwn<'s> {
    memory: MemoryOwn<'s>,
    /// Newest first.
    layers: Vec<LayerOwn<'s>>,
    direction: Direction,
}

impl<'s> SpilledOwn<'s> {
    pub(super) fn new(
        memory: MemoryOwn<'s>,
        layers: &'s [Layer],
        tree: TreeId,
        range: &'s KeyRange,
        direction: Direction,
        blocking: BlockingMode,
    ) -> Result<SpilledOwn<'s>, StorageError> {
        let layers = layers.iter().rev().map(|layer| LayerOwn::new(layer, tree, range, direction, blocking));
        Ok(SpilledOwn { memory, layers: layers.collect::<Result<_, _>>()?, direction })
    }
}

impl OwnWrites for SpilledOwn<'_> {
    fn peek(&self) -> Option<Write<'_>> {
        // On equal keys the first one stays, which is the newest.
        self.layers.iter().filter_map(LayerOwn::write).fold(self.memory.peek(), |best, write| match best {
            Some(best) if in_scan_order(best.key, write.key, self.direction) != Ordering::Greater => {
                Some(best)
            }
            _ => Some(write),
        })
    }

    fn step(&mut self) -> Result<(), StorageError> {
        let Some(key) = self.peek().map(|write| write.key.to_vec()) else { return Ok(()) };
        if self.memory.peek().is_some_and(|write| write.key == key) {
            self.memory.step()?;
        }
        for layer in &mut self.layers {
            if layer.write().is_some_and(|write| write.key == key) {
                layer.step()?;
            }
        }
        Ok(())
    }
}
