//! The relocation of large values: moves those that a page refers to, and makes the page anew with the new
//! references.
//!
//! The page keeps its length: a reference has as many pieces before and after. Where there is no room before
//! the ceiling a value stays where it is, to be tried again. A value that is chosen by its birth must move.

use bytes::Bytes;

use crate::background::relocation::{Chosen, Mover, decoded};
use crate::base::{BlockKind, Pointer, extents_of};
use crate::error::BetreeError;
use crate::format::content::{Content, LargeReference};
use crate::format::page::Page;
use crate::format::page_builder::PageBuilder;

/// A page of which some large values have moved.
pub(crate) struct MovedPage {
    /// The page as it is now.
    pub(crate) raw: Vec<u8>,
    pub(crate) reach: u64,
    /// How many values have moved.
    pub(crate) moved: usize,
}

impl Mover<'_> {
    /// Moves those of a page's large values that are chosen; by place as far as this step goes.
    pub(crate) fn page_with_values(
        &mut self,
        pointer: &Pointer,
        raw: Bytes,
    ) -> Result<MovedPage, BetreeError> {
        let page = decoded(pointer, Page::decode(raw))?;
        let (mut builder, mut key, mut moved) = (PageBuilder::new(), Vec::new(), 0);
        for at in 0..page.len() {
            page.key_into(at, &mut key);
            let entry = page.entry(at);
            let mut content = page.content(&entry);
            let reference;
            if let Content::Large(old) = &content
                && self.is_value_chosen(old)
                && let Some(new) = self.value(old)?
            {
                reference = new;
                content = Content::Large(reference.as_ref());
                moved += 1;
            }
            builder.push(&key, entry.timestamp(), content);
        }
        let reach = builder.reach();
        Ok(MovedPage { raw: builder.finish(), reach, moved })
    }

    fn is_value_chosen(&self, value: &LargeReference<&[u8]>) -> bool {
        match self.limits.chosen {
            Chosen::Beyond(_) => self.reaches_out(value.reach()),
            Chosen::BornBy(_) => value.pieces().any(|piece| self.is_chosen(&piece)),
        }
    }

    /// Writes a value in another place; `None` where there is no room before the ceiling.
    fn value(&mut self, old: &LargeReference<&[u8]>) -> Result<Option<LargeReference<Bytes>>, BetreeError> {
        let store = self.blocks.store();
        let before: Vec<Pointer> = old.pieces().collect();
        let mut after = Vec::with_capacity(before.len());
        let first_written = self.written.len();
        // Piece by piece, as it was written, so a long value needs no long stretch.
        for piece in &before {
            let mut writer = self.writer();
            let raw = store.read_block(piece)?;
            writer.append(BlockKind::LargeValue, self.tree.settings().compression, &raw)?;
            let placed = match writer.place() {
                Err(error) if self.may_stay(&error) => {
                    self.abandon_from(first_written);
                    self.outcome.read +=
                        before.iter().map(|piece| u64::from(piece.disk_length())).sum::<u64>();
                    return Ok(None);
                }
                placed => placed?,
            };
            let pointers = placed.finish()?;
            self.written.extend(extents_of(&pointers));
            after.extend(pointers);
        }
        self.outcome.moved += after.iter().map(|piece| u64::from(piece.disk_length())).sum::<u64>();
        self.replaced.push(before);
        Ok(Some(LargeReference::of_pieces(&after)))
    }
}
