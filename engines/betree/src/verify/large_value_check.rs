//! The check of large values: every piece can be read and has its checksum.

use pando_storage::TreeId;

use super::{Range, TreeReport, Walk};
use crate::base::{Pointer, extents_of};
use crate::format::content::Content;

/// The totals of the large values of a page or slice.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LargeFound {
    pub(super) bytes: u64,
    pub(super) reach: u64,
}

impl Walk<'_> {
    /// Reads the large value of an entry, if it has one.
    pub(super) fn large_value(
        &mut self,
        tree: TreeId,
        key: &[u8],
        content: Content<&[u8]>,
        found: &mut LargeFound,
        report: &mut TreeReport,
    ) {
        let Content::Large(reference) = content else { return };
        let pieces: Vec<Pointer> = reference.pieces().collect();
        self.reached.extend(extents_of(&pieces));
        report.large_values += 1;
        report.large_bytes += reference.length();
        found.bytes += reference.length();
        found.reach = found.reach.max(reference.reach());
        for piece in &pieces {
            report.stored_bytes += u64::from(piece.disk_length());
            if let Err(error) = self.read(piece, Ok) {
                let next = [key, &[0]].concat();
                self.damage(tree, Range { lower: Some(key), upper: Some(&next) }, error);
            }
        }
    }
}
