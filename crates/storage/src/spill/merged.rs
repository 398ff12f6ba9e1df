//! The writes of several sources in one order: memory and layers for a commit, layers alone for a layer that
//! replaces them.
//!
//! Each source stands at its next write. A heap knows which source has the first. It takes one page of memory
//! a layer.

use std::cmp::Ordering;
use std::sync::Arc;

use super::layer::{Layer, Place};
use super::page::{Numbered, Page};
use crate::access::BlockingMode;
use crate::error::StorageError;
use crate::identifiers::TreeId;
use crate::write_set::Write;

/// A sorted source of writes.
enum Source<'s> {
    Memory { writes: Vec<Numbered<'s>>, at: usize },
    Layer { layer: &'s Layer, place: Place, page: Option<Arc<Page>> },
}

impl<'s> Source<'s> {
    fn of_layer(layer: &'s Layer) -> Result<Source<'s>, StorageError> {
        let mut source = Source::Layer { layer, place: Place { page: 0, entry: 0 }, page: None };
        source.settle()?;
        Ok(source)
    }

    fn current(&self) -> Option<Numbered<'_>> {
        match self {
            Source::Memory { writes, at } => writes.get(*at).copied(),
            Source::Layer { place, page, .. } => page.as_ref().map(|page| page.entry(place.entry)),
        }
    }

    fn advance(&mut self) -> Result<(), StorageError> {
        match self {
            Source::Memory { at, .. } => {
                *at += 1;
                Ok(())
            }
            Source::Layer { layer, place, page } => {
                if let Some(page) = page {
                    *place = layer.after(*place, page);
                }
                self.settle()
            }
        }
    }

    /// Goes on to a write that counts, from where the source stands.
    fn settle(&mut self) -> Result<(), StorageError> {
        let Source::Layer { layer, place, page } = self else { return Ok(()) };
        while layer.has_page(place.page) {
            if place.entry == 0 || page.is_none() {
                *page = Some(layer.page(place.page, BlockingMode::MayBlock)?);
            }
            let at_hand = page.as_ref().expect("the page was just read");
            if at_hand.entry(place.entry).number < layer.limit {
                return Ok(());
            }
            *place = layer.after(*place, at_hand);
        }
        *page = None;
        Ok(())
    }
}

/// See the module's head.
pub struct MergedWrites<'s> {
    sources: Vec<Source<'s>>,
    /// The sources that have something, a heap: the first one's is the first of all.
    heap: Vec<usize>,
    /// The write that was given out last.
    last: Option<(TreeId, Vec<u8>)>,
    is_begun: bool,
}

impl<'s> MergedWrites<'s> {
    pub(super) fn new(memory: Vec<Numbered<'s>>, layers: &'s [Layer]) -> Result<Self, StorageError> {
        let mut sources = layers.iter().map(Source::of_layer).collect::<Result<Vec<_>, _>>()?;
        sources.push(Source::Memory { writes: memory, at: 0 });
        let heap: Vec<usize> = (0..sources.len()).filter(|at| sources[*at].current().is_some()).collect();
        let mut merged = MergedWrites { sources, heap, last: None, is_begun: false };
        (0..merged.heap.len() / 2).rev().for_each(|at| merged.sift_down(at));
        Ok(merged)
    }

    /// The next key's newest write, by tree and key.
    #[allow(clippy::should_implement_trait, reason = "what it gives lives until the next call only")]
    pub fn next(&mut self) -> Result<Option<Write<'_>>, StorageError> {
        loop {
            self.step()?;
            let Some(top) = self.top() else { return Ok(None) };
            let (tree, key) = (top.write.tree, top.write.key);
            if self.last.as_ref().is_none_or(|(last, last_key)| (*last, last_key.as_slice()) != (tree, key)) {
                break;
            }
        }
        let mut last = self.last.take().unwrap_or((TreeId::new(0), Vec::new()));
        if let Some(top) = self.top() {
            last.0 = top.write.tree;
            last.1.clear();
            last.1.extend_from_slice(top.write.key);
        }
        self.last = Some(last);
        Ok(self.top().map(|top| top.write))
    }

    /// The next write, one of several of a key too.
    pub(super) fn next_version(&mut self) -> Result<Option<Numbered<'_>>, StorageError> {
        self.step()?;
        Ok(self.top())
    }

    fn top(&self) -> Option<Numbered<'_>> {
        self.sources[*self.heap.first()?].current()
    }

    /// Leaves the write that was given out behind.
    fn step(&mut self) -> Result<(), StorageError> {
        if !std::mem::replace(&mut self.is_begun, true) {
            return Ok(());
        }
        let Some(first) = self.heap.first() else { return Ok(()) };
        let source = &mut self.sources[*first];
        source.advance()?;
        if source.current().is_none() {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
        Ok(())
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let smallest = [2 * at + 1, 2 * at + 2]
                .into_iter()
                .filter(|child| *child < self.heap.len())
                .fold(at, |smallest, child| if self.is_before(child, smallest) { child } else { smallest });
            if smallest == at {
                return;
            }
            self.heap.swap(at, smallest);
            at = smallest;
        }
    }

    fn is_before(&self, one: usize, other: usize) -> bool {
        let current = |at: usize| self.sources[self.heap[at]].current();
        match (current(one), current(other)) {
            (Some(one), Some(other)) => one.order(&other) == Ordering::Less,
            _ => false,
        }
    }
}
