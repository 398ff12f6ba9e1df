//! The check of an open store for every engine: it reads each tree from its first key to its last.

use std::fmt::Write as _;

use crate::access::BlockingMode;
use crate::check::{CheckReport, CheckRequest};
use crate::engine::{Begin, Engine, TreeDescription};
use crate::error::{ErrorKind, StorageError};
use crate::key_range::{Direction, KeyRange};
use crate::operation::Operation;
use crate::transaction::{Cursor, Transaction};

/// Bytes of a key that are told.
const KEY_BYTES_SHOWN: usize = 12;

/// [`Engine::check`] by a snapshot of everything. Does not keep to a pace.
pub fn check<E: Engine + ?Sized>(
    engine: &E,
    request: &CheckRequest<'_>,
) -> Result<CheckReport, StorageError> {
    let snapshot = engine.begin(Begin::READ)?;
    let mut report = CheckReport::default();
    for tree in engine.list_trees()? {
        if request.trees.is_empty() || request.trees.contains(&tree.id) {
            check_tree(snapshot.as_ref(), &tree, request.operation, &mut report)?;
        }
    }
    Ok(report)
}

fn check_tree(
    snapshot: &dyn Transaction,
    tree: &TreeDescription,
    operation: Option<&Operation>,
    report: &mut CheckReport,
) -> Result<(), StorageError> {
    report.trees += 1;
    let mut cursor = Cursor::new(tree.id, KeyRange::all(), Direction::Forward);
    let mut last: Option<Vec<u8>> = None;
    loop {
        if let Some(operation) = operation {
            operation.check()?;
        }
        match cursor.next(snapshot, BlockingMode::MayBlock) {
            Ok(Some((key, value))) => {
                report.entries += 1;
                report.bytes += (key.len() + value.len()) as u64;
                last.get_or_insert_default().clear();
                last.get_or_insert_default().extend_from_slice(key);
            }
            Ok(None) => return Ok(()),
            // Dropped, or made after the snapshot.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                if report.problems.len() < CheckReport::PROBLEMS_MAX {
                    report.problems.push(format!("{}, after the key {}: {error}", tree.name, shown(&last)));
                }
                return Ok(());
            }
            Err(error) => return Err(error),
        }
    }
}

fn shown(key: &Option<Vec<u8>>) -> String {
    let Some(key) = key else { return "(none)".to_owned() };
    let mut text = String::from("0x");
    for byte in key.iter().take(KEY_BYTES_SHOWN) {
        write!(text, "{byte:02x}").expect("writing to a string does not fail");
    }
    text
}
