//! Changed extents: those that a generation uses and an earlier backup does not have. An incremental backup
//! copies them.
//!
//! A block is in the earlier backup if it was born up to that backup's generation and lies in units that the
//! generation used. (An extent is allocated in the generation in which its block is born. It is never
//! allocated while a generation that is not durable yet can reach it. So the earlier backup has no other
//! block there.) Blocks never change, so all blocks below such a block are in the backup as well. The walk
//! turns back there: its cost follows the changes, not the size of the store.

use bytes::Bytes;

use super::manifest::Manifest;
use crate::base::FormatError;
use crate::base::{Extent, Pointer};
use crate::error::BetreeError;
use crate::format::catalog;
use crate::format::directory::Directory;
use crate::format::inner_node::StoredInnerNode;
use crate::format::page::Page;
use crate::format::slice_index::SliceIndex;
use crate::space::{IntervalSet, PinnedGeneration, units_of};
use crate::tree::owned_extents::values_of;

/// The extents of `pin` that are not in the backup.
pub(super) fn extents_since(pin: &PinnedGeneration, base: &Manifest) -> Result<IntervalSet, BetreeError> {
    let mut walk = Walk { pin, base, found: IntervalSet::new() };
    for extent in pin.map_extents() {
        // The extents of the space map are few, so all of them are copied.
        walk.add(*extent);
    }
    if let Some(catalog) = pin.superblock().catalog() {
        walk.catalog(&catalog)?;
    }
    Ok(walk.found)
}

struct Walk<'p> {
    pin: &'p PinnedGeneration,
    base: &'p Manifest,
    found: IntervalSet,
}

impl Walk<'_> {
    fn is_in_base(&self, pointer: &Pointer) -> bool {
        pointer.birth() <= self.base.superblock.generation()
            && self.base.used.contains(&units_of(pointer.extent()))
    }

    fn add(&mut self, extent: Extent) {
        for units in self.found.gaps(units_of(extent)) {
            self.found.insert(units).expect("a gap of the set is not in it");
        }
    }

    /// Adds a block and returns its content, unless the earlier backup has it.
    fn enter<T>(
        &mut self,
        pointer: &Pointer,
        decode: impl FnOnce(&[u8]) -> Result<T, FormatError>,
    ) -> Result<Option<T>, BetreeError> {
        if self.is_in_base(pointer) {
            return Ok(None);
        }
        self.add(pointer.extent());
        let raw = self.pin.store().read_block(pointer)?;
        let offset = pointer.address().byte_offset();
        decode(&raw).map(Some).map_err(|source| BetreeError::Format { offset, source })
    }

    fn catalog(&mut self, pointer: &Pointer) -> Result<(), BetreeError> {
        let Some(trees) = self.enter(pointer, catalog::decode)? else { return Ok(()) };
        trees.iter().filter_map(|tree| tree.root.as_ref()).try_for_each(|root| match root.height {
            0 => self.leaf(&root.pointer),
            _ => self.inner(&root.pointer, root.height),
        })
    }

    fn inner(&mut self, pointer: &Pointer, height: u8) -> Result<(), BetreeError> {
        let decode = |bytes: &[u8]| StoredInnerNode::decode(bytes)?.check_height(height);
        let Some(node) = self.enter(pointer, decode)? else { return Ok(()) };
        for child in &node.children {
            for slice in &child.slices {
                if let Some(index) = self.enter(&slice.index, SliceIndex::decode)? {
                    self.pages(&index.pages)?;
                }
            }
            match height {
                1 => self.leaf(&child.pointer)?,
                _ => self.inner(&child.pointer, height - 1)?,
            }
        }
        Ok(())
    }

    fn leaf(&mut self, pointer: &Pointer) -> Result<(), BetreeError> {
        if let Some(directory) = self.enter(pointer, Directory::decode)? {
            self.pages(&directory)?;
        }
        Ok(())
    }

    fn pages(&mut self, directory: &Directory) -> Result<(), BetreeError> {
        for page in directory.pages() {
            match page.large_bytes {
                0 if self.is_in_base(&page.pointer) => {}
                0 => self.add(page.pointer.extent()),
                _ => {
                    if let Some(page) =
                        self.enter(&page.pointer, |raw| Page::decode(Bytes::copy_from_slice(raw)))?
                    {
                        self.values(&page);
                    }
                }
            }
        }
        Ok(())
    }

    fn values(&mut self, page: &Page) {
        for piece in values_of(page).flatten() {
            if !self.is_in_base(&piece) {
                self.add(piece.extent());
            }
        }
    }
}
