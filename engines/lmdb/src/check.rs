//! The check of a store: walks over the pages of a snapshot, and compares each tree with its record.
//!
//! The record of a tree has the number and the bytes of its entries. The LMDB transaction that changes the
//! entries writes it, so that both agree at every snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pando_storage::{CheckReport, CheckRequest, Estimate, StorageError, TreeId};

use crate::layout::{PREFIX_BYTES, read_tree_record, tree_of_record_key};
use crate::page_walk::{PageWalk, TableState};
use crate::store::Store;

/// The number of the engine's own tree, which has the records.
const RECORDS: u32 = 0;

/// See the module's head.
pub(crate) fn check(store: &Store, request: &CheckRequest<'_>) -> Result<CheckReport, StorageError> {
    let (begun, state) = store.begin_with_state()?;
    let number = begun.number;
    let outcome = check_state(store, state, request);
    // Until here the snapshot has kept its pages from being written over.
    drop(begun);
    store.end(number);
    outcome
}

/// The entries that a walk has seen.
#[derive(Default)]
struct Seen {
    sizes: BTreeMap<u32, Estimate>,
    records: BTreeMap<u32, Option<(Estimate, String)>>,
}

impl Seen {
    fn entry(&mut self, key: &[u8], value_bytes: u64, value: Option<&[u8]>) {
        let tree = key.first_chunk().map_or(RECORDS, |number| u32::from_be_bytes(*number));
        if tree == RECORDS {
            if let Some(id) = tree_of_record_key(key) {
                self.records.insert(id.get(), value.and_then(read_tree_record));
            }
            return;
        }
        let size = self.sizes.entry(tree).or_default();
        size.entries += 1;
        size.bytes += key.len().saturating_sub(PREFIX_BYTES) as u64 + value_bytes;
    }
}

fn check_state(
    store: &Store,
    state: TableState,
    request: &CheckRequest<'_>,
) -> Result<CheckReport, StorageError> {
    let wanted: BTreeSet<u32> = request.trees.iter().map(|tree| tree.get()).collect();
    let wants = |first: u32, last: u32| {
        wanted.is_empty() || first == RECORDS || first <= last && wanted.range(first..=last).next().is_some()
    };
    let mut seen = Seen::default();
    let file = Arc::clone(store.map.enter()?.metas.file());
    let mut walk = PageWalk {
        file: &*file,
        state,
        wants: &wants,
        operation: request.operation,
        see: &mut |key, value_bytes, value| seen.entry(key, value_bytes, value),
    };
    let walked = walk.run()?;
    let name_of = |tree: u32| match seen.records.get(&tree) {
        Some(Some((_, name))) => name.clone(),
        _ if tree == RECORDS => "the engine's records".to_owned(),
        _ => TreeId::new(tree).to_string(),
    };
    let mut problems: Vec<String> =
        walked.problems.iter().map(|(tree, problem)| format!("{}, {problem}", name_of(*tree))).collect();
    let mut report = CheckReport::default();
    for (tree, record) in &seen.records {
        if !wanted.is_empty() && !wanted.contains(tree) {
            continue;
        }
        let found = seen.sizes.get(tree).copied().unwrap_or_default();
        report.trees += 1;
        report.entries += found.entries;
        report.bytes += found.bytes;
        // Entries of pages that were not read are missing: the problem of those pages says so.
        if walked.problems.is_empty() {
            problems.extend(difference(found, record).map(|said| format!("{}: {said}", name_of(*tree))));
        }
    }
    problems.truncate(CheckReport::PROBLEMS_MAX);
    report.problems = problems;
    Ok(report)
}

/// The problem of a tree of this size.
fn difference(found: Estimate, record: &Option<(Estimate, String)>) -> Option<String> {
    let Some((recorded, _)) = record else { return Some("its record makes no sense".to_owned()) };
    (found != *recorded).then(|| {
        format!(
            "it has {} entries with {} bytes, and its record says {} with {}",
            found.entries, found.bytes, recorded.entries, recorded.bytes
        )
    })
}
