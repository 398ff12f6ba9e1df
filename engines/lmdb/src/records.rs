//! The engine's own records as they are when a store is opened, and the entries of trees that have none.
//!
//! They are read by a [`PageWalk`], so that a damaged file is refused instead of ending the process.

use std::collections::BTreeSet;

use pando_environment::File;
use pando_storage::{ErrorKind, StorageError, TreeId};

use crate::failure::corrupt;
use crate::layout::{self, FORMAT, FORMAT_KEY, TREE_KEY_PREFIX};
use crate::page_walk::{PageWalk, TableState};
use crate::trees::Trees;

/// The number of the engine's own tree.
const RECORDS: u32 = 0;

/// See the module's head.
pub(crate) struct Records {
    /// Whether the store is new: it has no record yet.
    pub(crate) is_new: bool,
    pub(crate) trees: Trees,
    /// Trees that were being dropped when the process ended: they have entries and no record.
    pub(crate) leftovers: BTreeSet<u32>,
}

/// Reads the records of the newest state in LMDB's file, whose meta pages were copied.
pub(crate) fn read(file: &dyn File, metas: &[u8]) -> Result<Records, StorageError> {
    let damaged = |what: &str| {
        let path = file.path().display();
        corrupt(format!("LMDB's file {path} is damaged: {what}; restore the store from a backup"))
    };
    let state = TableState::of_metas(metas, None).ok_or_else(|| damaged("it has no meta page"))?;
    let mut entries: Vec<(Vec<u8>, Option<Vec<u8>>)> = Vec::new();
    let mut walk = PageWalk {
        file,
        state,
        wants: &|first, _| first == RECORDS,
        operation: None,
        see: &mut |key, _, value| entries.push((key.to_vec(), value.map(<[u8]>::to_vec))),
    };
    if let Some((_, problem)) = walk.run()?.problems.first() {
        return Err(damaged(problem));
    }
    let mut records = Records { is_new: true, trees: Trees::default(), leftovers: BTreeSet::new() };
    let mut known = BTreeSet::new();
    for (key, value) in &entries {
        let value = value.as_deref().ok_or_else(|| damaged("a record is too long"))?;
        if key == FORMAT_KEY {
            check_format(value, damaged)?;
            records.is_new = false;
        } else if key.starts_with(TREE_KEY_PREFIX) {
            let tree = layout::tree_of_record_key(key).zip(layout::read_tree_record(value));
            let (id, (size, name)) = tree.ok_or_else(|| damaged("a tree record makes no sense"))?;
            records.trees.insert(id, name, size);
            known.insert(id.get());
        }
    }
    if records.is_new && !entries.is_empty() {
        return Err(damaged("the record of the format is missing"));
    }
    records.leftovers = leftovers(file, state, &known)?;
    Ok(records)
}

fn check_format(value: &[u8], damaged: impl Fn(&str) -> StorageError) -> Result<(), StorageError> {
    match layout::read_u32(value) {
        Some(FORMAT) => Ok(()),
        Some(format) => {
            let message = format!(
                "the store has the format {format} of the engine `lmdb`, this program reads {FORMAT}: open it with the \
                 program that wrote it"
            );
            Err(StorageError::new(ErrorKind::InvalidInput, message))
        }
        None => Err(damaged("the record of the format makes no sense")),
    }
}

/// Trees with entries that are not known. A damaged page among theirs is left to a check.
fn leftovers(
    file: &dyn File,
    state: TableState,
    known: &BTreeSet<u32>,
) -> Result<BTreeSet<u32>, StorageError> {
    let mut found = BTreeSet::new();
    let has_unknown = |first: u32, last: u32| {
        let first = first.max(RECORDS + 1);
        first <= last && known.range(first..=last).count() as u64 <= u64::from(last - first)
    };
    let mut walk = PageWalk {
        file,
        state,
        wants: &has_unknown,
        operation: None,
        see: &mut |key, _, _| {
            found.extend(key.first_chunk().map(|number| u32::from_be_bytes(*number)));
        },
    };
    walk.run()?;
    Ok(found)
}

/// The range of the entries of a tree that is to be removed.
pub(crate) fn range_of(tree: u32) -> (std::ops::Bound<Vec<u8>>, std::ops::Bound<Vec<u8>>) {
    layout::table_range(TreeId::new(tree), &pando_storage::KeyRange::all())
}
