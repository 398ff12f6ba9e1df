//! The result of a read, as a line of text that can be compared.

use pando_storage::{Batch, BatchLimits, BlockingMode, Direction, KeyRange, ScanEnd, Transaction, TreeId};

pub fn get(reader: &dyn Transaction, tree: TreeId, key: &[u8]) -> String {
    let found = reader.get(tree, key, BlockingMode::MayBlock).expect("a get succeeds");
    format!("{key:?} is {found:?}")
}

pub fn scan(
    reader: &dyn Transaction,
    tree: TreeId,
    range: &KeyRange,
    direction: Direction,
    batch: usize,
) -> String {
    let limits = BatchLimits { entries_max: batch, bytes_max: 4_000 };
    let (mut rest, mut entries) = (range.clone(), Batch::new());
    let mut line = format!("{range:?} {direction:?}");
    loop {
        let end = reader.scan(tree, &rest, direction, limits, BlockingMode::MayBlock, &mut entries);
        let end = end.expect("a scan succeeds");
        entries.iter().for_each(|(key, value)| line += &format!(" {key:?}={value:?}"));
        match (end, entries.last()) {
            (ScanEnd::More, Some((last, _))) => rest.advance_past(last, direction),
            _ => return line,
        }
    }
}

/// Everything in a tree.
pub fn content(reader: &dyn Transaction, tree: TreeId) -> String {
    scan(reader, tree, &KeyRange::all(), Direction::Forward, 100)
}
