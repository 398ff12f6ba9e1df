//! A part of a large commit: some of its writes, in order of tree and key.

use std::ops::Range;

use pando_storage::{Change, Lsn, MergedWrites, StorageError, TreeId, Write};

use crate::commit::large_commit::SMALL_BYTES_MAX;
use crate::format::content::merges_of;
use crate::format::record_payload::CommitWriter;

/// See the module's head. Its memory is used again.
#[derive(Debug, Default)]
pub(crate) struct Part {
    bytes: Vec<u8>,
    writes: Vec<PartWrite>,
}

#[derive(Debug)]
struct PartWrite {
    tree: TreeId,
    key: Range<usize>,
    kind: WriteKind,
    /// The end of the value or merges, which begin where the key ends.
    end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteKind {
    Put,
    Delete,
    Merge,
}

impl Part {
    /// Takes the next writes, until it has `bytes_max`; false if there were none. Merges go to a part of
    /// their own.
    pub(crate) fn fill(
        &mut self,
        merged: &mut MergedWrites<'_>,
        bytes_max: usize,
        merges: &mut Part,
    ) -> Result<bool, StorageError> {
        self.bytes.clear();
        self.writes.clear();
        while self.bytes.len() < bytes_max
            && merges.bytes.len() <= SMALL_BYTES_MAX
            && let Some(write) = merged.next()?
        {
            match write.change {
                Change::Put(_) => self.push(&write, WriteKind::Put),
                Change::Delete => self.push(&write, WriteKind::Delete),
                Change::Merge(_) => merges.push(&write, WriteKind::Merge),
            }
        }
        Ok(!self.is_empty())
    }

    fn push(&mut self, write: &Write<'_>, kind: WriteKind) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(write.key);
        let key = start..self.bytes.len();
        self.bytes.extend_from_slice(write.change.bytes());
        self.writes.push(PartWrite { tree: write.tree, key, kind, end: self.bytes.len() });
    }

    /// Whether it has no writes.
    pub(crate) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Bytes of keys and values.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Writes in it.
    pub(crate) fn len(&self) -> usize {
        self.writes.len()
    }

    /// The trees of the writes.
    pub(crate) fn trees(&self) -> impl Iterator<Item = TreeId> + '_ {
        self.groups().map(|group| group[0].tree)
    }

    /// The payload of its record.
    pub(crate) fn payload(&self, first: Option<Lsn>) -> Vec<u8> {
        let mut writer = CommitWriter::of_part(first, self.bytes.len() + self.writes.len() * 8);
        for group in self.groups() {
            writer.group(group[0].tree, group.len());
            for write in group {
                let value = &self.bytes[write.key.end..write.end];
                let change = match write.kind {
                    WriteKind::Put => Change::Put(value),
                    WriteKind::Delete => Change::Delete,
                    WriteKind::Merge => Change::Merge(merges_of(value)),
                };
                writer.write(&self.bytes[write.key.clone()], change);
            }
        }
        writer.finish()
    }

    fn groups(&self) -> impl Iterator<Item = &[PartWrite]> {
        self.writes.chunk_by(|one, other| one.tree == other.tree)
    }
}
