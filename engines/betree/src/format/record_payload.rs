//! The payloads of the engine's log records. The LSN of a commit's record is its timestamp.
//!
//! # Layout
//! ```text
//! kind 1, commit:
//!   groups until the end: varint tree, varint writes, then per write
//!     varint  key length × 2 + (0 put | 1 other), the key
//!     varint  value length, the value (puts only)
//!     u8      what it is (others only): 0 delete | 1 merges
//!     varint  length of the merges, the merges (merges only)
//! kind 2, create tree:     varint number, name, varint options; per option: name, value
//!                          (texts with their length before them)
//! kind 3, drop tree:       varint number
//! kind 4, lay out tree:    varint number, varint options; per option: name, value: these from now on
//! kind 5, commit that deletes ranges: the ranges (see `range_deletes::encoding`), then groups as of a
//!                          commit; the ranges do not delete these writes
//!
//! A large commit (`commit::large_commit`) is identified by the LSN of its first part:
//! kind 16, part:           varint first part (0: it is this one), then groups as of a commit
//! kind 17, end:            varint first part, varint parts, varint timestamp,
//!                          varint 1 if the last part is merges, else 0; then the ranges that it deletes.
//!                          From this record on the commit counts
//! kind 18, applied:        varint first part, varint part: this part goes into the buffers
//! kind 19, whole:          varint first part: all parts are applied, but for the part of merges, which is
//!                          applied now; the LSN of this record is the timestamp
//! ```
//!
//! A commit of two writes, `put "k1" = "v"` and `delete "k2"` in tree 7:
//!
//! ```text
//!  07 02                        tree 7, 2 writes
//!  04 'k' '1'  01 'v'           2 × 2 + 0: put; value of 1 byte
//!  05 'k' '2'  00               2 × 2 + 1: other; 0: delete
//! ```

use pando_storage::{
    Change, CommitTimestamp, KEY_BYTES_MAX, Lsn, MERGES_BYTES_MAX, Merges, TreeId, VALUE_BYTES_MAX,
};

use crate::base::RecordKind;
use crate::base::{Fields, FormatError, write_bytes, write_varint};
use crate::range_deletes::encoding::{DeletedRange, read_ranges, write_ranges};

const BLOCK: &str = "log record";

/// The number of a write that is not a put.
const DELETE: u8 = 0;
const MERGES: u8 = 1;

/// The kind of a record: the number that the log keeps with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Commit = 1,
    CreateTree = 2,
    DropTree = 3,
    LayOutTree = 4,
    RangeCommit = 5,
    LargePart = 16,
    LargeEnd = 17,
    LargeApplied = 18,
    LargeWhole = 19,
}

impl Kind {
    /// The kind of this number, if there is one.
    pub(crate) fn from_number(number: u8) -> Option<Kind> {
        match number {
            1 => Some(Kind::Commit),
            2 => Some(Kind::CreateTree),
            3 => Some(Kind::DropTree),
            4 => Some(Kind::LayOutTree),
            5 => Some(Kind::RangeCommit),
            16 => Some(Kind::LargePart),
            17 => Some(Kind::LargeEnd),
            18 => Some(Kind::LargeApplied),
            19 => Some(Kind::LargeWhole),
            _ => None,
        }
    }
}

impl From<Kind> for RecordKind {
    fn from(kind: Kind) -> RecordKind {
        RecordKind::new(kind as u8)
    }
}

/// The error for a record of this kind.
pub(crate) fn unknown_kind(number: u8) -> FormatError {
    FormatError::Unknown { block: BLOCK, field: "kind", found: number.into() }
}

/// Writes the payload of a commit, group by group.
#[derive(Debug, Default)]
pub(crate) struct CommitWriter {
    payload: Vec<u8>,
}

impl CommitWriter {
    pub(crate) fn with_capacity(bytes: usize) -> CommitWriter {
        CommitWriter { payload: Vec::with_capacity(bytes) }
    }

    /// The payload of a commit that deletes ranges.
    pub(crate) fn of_ranges(ranges: &[DeletedRange], bytes: usize) -> CommitWriter {
        let mut writer = CommitWriter::with_capacity(bytes);
        write_ranges(&mut writer.payload, ranges);
        writer
    }

    /// The payload of a part of a large commit, for its first part `None`.
    pub(crate) fn of_part(first: Option<Lsn>, bytes: usize) -> CommitWriter {
        let mut writer = CommitWriter::with_capacity(bytes);
        write_varint(&mut writer.payload, first.map_or(0, Lsn::get));
        writer
    }

    /// Begins the writes of a tree; exactly `writes` of them must follow.
    pub(crate) fn group(&mut self, tree: TreeId, writes: usize) {
        write_varint(&mut self.payload, u64::from(tree.get()));
        write_varint(&mut self.payload, writes as u64);
    }

    pub(crate) fn write(&mut self, key: &[u8], change: Change<'_>) {
        let other = u64::from(!matches!(change, Change::Put(_)));
        write_varint(&mut self.payload, (key.len() as u64) << 1 | other);
        self.payload.extend_from_slice(key);
        match change {
            Change::Put(value) => write_bytes(&mut self.payload, value),
            Change::Delete => self.payload.push(DELETE),
            Change::Merge(merges) => {
                self.payload.push(MERGES);
                write_bytes(&mut self.payload, merges.as_bytes());
            }
        }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.payload
    }
}

/// Calls back for each write of a commit's payload, in the order in which they were written.
pub(crate) fn read_commit<'a, E: From<FormatError>>(
    payload: &'a [u8],
    mut visit: impl FnMut(TreeId, &'a [u8], Change<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let mut fields = Fields::new(BLOCK, payload);
    while fields.remaining() > 0 {
        let tree = tree_number(&mut fields)?;
        let writes = fields.count("write count", fields.remaining())?;
        for _ in 0..writes {
            let first = fields.count("key length", KEY_BYTES_MAX * 2 + 1)?;
            let key = fields.bytes(first >> 1, "key")?;
            let change = match first & 1 {
                0 => Change::Put(fields.sized_bytes("value", VALUE_BYTES_MAX)?),
                _ => read_other(&mut fields)?,
            };
            visit(tree, key, change)?;
        }
    }
    Ok(())
}

/// A write that is not a put.
fn read_other<'a>(fields: &mut Fields<'a>) -> Result<Change<'a>, FormatError> {
    match fields.u8("write")? {
        DELETE => Ok(Change::Delete),
        MERGES => {
            let merges = Merges::decode(fields.sized_bytes("merges", MERGES_BYTES_MAX)?);
            merges.map(Change::Merge).ok_or(FormatError::Truncated { block: BLOCK, field: "merges" })
        }
        found => Err(FormatError::Unknown { block: BLOCK, field: "write", found: found.into() }),
    }
}

/// Splits the payload of a large commit's part into the first part of the commit (`None`: it is this one) and
/// the payload of a commit.
pub(crate) fn read_part(payload: &[u8]) -> Result<(Option<Lsn>, &[u8]), FormatError> {
    let mut fields = Fields::new(BLOCK, payload);
    let first = fields.varint("first part")?;
    let rest = &payload[payload.len() - fields.remaining()..];
    Ok(((first > 0).then_some(Lsn::new(first)), rest))
}

/// Splits the payload of a commit that deletes ranges into these and the payload of a commit.
pub(crate) fn read_range_commit(payload: &[u8]) -> Result<(Vec<DeletedRange>, &[u8]), FormatError> {
    let mut fields = Fields::new(BLOCK, payload);
    let ranges = read_ranges(&mut fields, BLOCK)?;
    let rest = &payload[payload.len() - fields.remaining()..];
    Ok((ranges, rest))
}

/// The end record of a large commit: from this record on the commit counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LargeEnd {
    pub(crate) first: Lsn,
    pub(crate) parts: u64,
    pub(crate) timestamp: CommitTimestamp,
    /// Whether the last part is of merges.
    pub(crate) has_merges: bool,
    pub(crate) ranges: Vec<DeletedRange>,
}

/// Writes the payload of a large commit's end.
pub(crate) fn write_end(end: &LargeEnd) -> Vec<u8> {
    let mut payload =
        write_numbers(&[end.first.get(), end.parts, end.timestamp.get(), u64::from(end.has_merges)]);
    write_ranges(&mut payload, &end.ranges);
    payload
}

/// Reads the payload of a large commit's end.
pub(crate) fn read_end(payload: &[u8]) -> Result<LargeEnd, FormatError> {
    let mut fields = Fields::new(BLOCK, payload);
    let first = Lsn::new(fields.varint("first part")?);
    let parts = fields.varint("part count")?;
    let timestamp = CommitTimestamp::new(fields.varint("timestamp")?);
    let has_merges = fields.count("part of merges", 1)? == 1;
    let ranges = read_ranges(&mut fields, BLOCK)?;
    fields.finish()?;
    Ok(LargeEnd { first, parts, timestamp, has_merges, ranges })
}

/// Writes the payload of a record of a large commit that consists of numbers.
pub(crate) fn write_numbers(numbers: &[u64]) -> Vec<u8> {
    let mut payload = Vec::new();
    numbers.iter().for_each(|number| write_varint(&mut payload, *number));
    payload
}

/// Reads the payload of a record of a large commit that consists of numbers.
pub(crate) fn read_numbers<const COUNT: usize>(payload: &[u8]) -> Result<[u64; COUNT], FormatError> {
    let mut fields = Fields::new(BLOCK, payload);
    let mut numbers = [0; COUNT];
    for number in &mut numbers {
        *number = fields.varint("number")?;
    }
    fields.finish()?;
    Ok(numbers)
}

/// Writes the payload of a tree's creation.
pub(crate) fn write_create_tree(tree: TreeId, name: &str, options: &[(String, String)]) -> Vec<u8> {
    let mut payload = Vec::new();
    write_varint(&mut payload, u64::from(tree.get()));
    write_bytes(&mut payload, name.as_bytes());
    write_options(&mut payload, options);
    payload
}

fn write_options(payload: &mut Vec<u8>, options: &[(String, String)]) {
    write_varint(payload, options.len() as u64);
    for (name, value) in options {
        write_bytes(payload, name.as_bytes());
        write_bytes(payload, value.as_bytes());
    }
}

fn read_options(fields: &mut Fields<'_>) -> Result<Vec<(String, String)>, FormatError> {
    let mut options = Vec::new();
    for _ in 0..fields.count("option count", fields.remaining())? {
        options.push((text(fields, "option name")?, text(fields, "option value")?));
    }
    Ok(options)
}

/// Writes the payload of another layout of a tree.
pub(crate) fn write_lay_out_tree(tree: TreeId, options: &[(String, String)]) -> Vec<u8> {
    let mut payload = Vec::new();
    write_varint(&mut payload, u64::from(tree.get()));
    write_options(&mut payload, options);
    payload
}

/// Reads the payload of another layout of a tree: its number and options.
pub(crate) fn read_lay_out_tree(payload: &[u8]) -> Result<(TreeId, Vec<(String, String)>), FormatError> {
    let mut fields = Fields::new(BLOCK, payload);
    let tree = tree_number(&mut fields)?;
    let options = read_options(&mut fields)?;
    fields.finish()?;
    Ok((tree, options))
}

/// Reads the payload of a tree's creation: its number, name and options.
pub(crate) fn read_create_tree(
    payload: &[u8],
) -> Result<(TreeId, String, Vec<(String, String)>), FormatError> {
    let mut fields = Fields::new(BLOCK, payload);
    let tree = tree_number(&mut fields)?;
    let name = text(&mut fields, "tree name")?;
    let options = read_options(&mut fields)?;
    fields.finish()?;
    Ok((tree, name, options))
}

/// Writes the payload of a tree's end.
pub(crate) fn write_drop_tree(tree: TreeId) -> Vec<u8> {
    let mut payload = Vec::new();
    write_varint(&mut payload, u64::from(tree.get()));
    payload
}

/// Reads the payload of a tree's end.
pub(crate) fn read_drop_tree(payload: &[u8]) -> Result<TreeId, FormatError> {
    let mut fields = Fields::new(BLOCK, payload);
    let tree = tree_number(&mut fields)?;
    fields.finish()?;
    Ok(tree)
}

fn tree_number(fields: &mut Fields<'_>) -> Result<TreeId, FormatError> {
    Ok(TreeId::new(fields.count("tree number", u32::MAX as usize)? as u32))
}

fn text(fields: &mut Fields<'_>, field: &'static str) -> Result<String, FormatError> {
    let bytes = fields.sized_bytes(field, fields.remaining())?;
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(FormatError::Disorder { block: BLOCK, field, at: 0 }),
    }
}

#[cfg(test)]
mod tests;
