//! A part of a large commit: some of its writes, in order of tree and key.

use std::ops::Range;

use pando_storage::{Change, Lsn, MergedWrites, StorageError, TreeId};

use crate::format::record::CommitWriter;

/// See the module's head. Its memory is used again.
#[derive(Debug, Default)]
pub(super) struct Part {
    bytes: Vec<u8>,
    writes: Vec<PartWrite>,
}

#[derive(Debug)]
struct PartWrite {
    tree: TreeId,
    key: Range<usize>,
    /// The value begins where the key ends; `None` for a deletion.
    value_end: Option<usize>,
}

impl Part {
    /// Takes the next writes, until it has so many bytes; false if there were none.
    pub(super) fn fill(
        &mut self,
        merged: &mut MergedWrites<'_>,
        bytes_max: usize,
    ) -> Result<bool, StorageError> {
        self.bytes.clear();
        self.writes.clear();
        while self.bytes.len() < bytes_max
            && let Some(write) = merged.next()?
        {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(write.key);
            let key = start..self.bytes.len();
            self.bytes.extend_from_slice(write.change.bytes());
            let value_end = (write.change != Change::Delete).then_some(self.bytes.len());
            self.writes.push(PartWrite { tree: write.tree, key, value_end });
        }
        Ok(!self.writes.is_empty())
    }

    /// Writes in it.
    pub(super) fn len(&self) -> usize {
        self.writes.len()
    }

    /// The trees of the writes.
    pub(super) fn trees(&self) -> impl Iterator<Item = TreeId> + '_ {
        self.groups().map(|group| group[0].tree)
    }

    /// The payload of its record.
    pub(super) fn payload(&self, first: Option<Lsn>) -> Vec<u8> {
        let mut writer = CommitWriter::of_part(first, self.bytes.len() + self.writes.len() * 8);
        for group in self.groups() {
            writer.group(group[0].tree, group.len());
            for write in group {
                let value = write.value_end.map(|end| &self.bytes[write.key.end..end]);
                writer.write(&self.bytes[write.key.clone()], value);
            }
        }
        writer.finish()
    }

    fn groups(&self) -> impl Iterator<Item = &[PartWrite]> {
        self.writes.chunk_by(|one, other| one.tree == other.tree)
    }
}
