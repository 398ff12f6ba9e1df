//! The check of an open store: every tree is read from its first key to its last, and its size is counted.
//!
//! WiredTiger's own `verify` wants a table for itself, and would turn away readers and writers meanwhile.

use pando_storage::{CheckReport, CheckRequest, Engine, Estimate, StorageError, emulate};

use crate::engine::WiredTigerEngine;
use crate::store::Store;

/// See [`Engine::check`].
pub(crate) fn check(
    engine: &WiredTigerEngine,
    store: &Store,
    request: &CheckRequest<'_>,
) -> Result<CheckReport, StorageError> {
    let mut report = CheckReport::default();
    for tree in engine.list_trees()? {
        if !request.trees.is_empty() && !request.trees.contains(&tree.id) {
            continue;
        }
        // Dropped meanwhile.
        let Ok(table) = store.trees.read().table(tree.id) else { continue };
        let before = table.size();
        let found = emulate::check(engine, &CheckRequest { trees: &[tree.id], ..*request })?;
        if found.is_sound() && found.trees == 1 {
            table.correct(before, Estimate { entries: found.entries, bytes: found.bytes });
        }
        report.trees += found.trees;
        report.entries += found.entries;
        report.bytes += found.bytes;
        let room = CheckReport::PROBLEMS_MAX - report.problems.len();
        report.problems.extend(found.problems.into_iter().take(room));
    }
    Ok(report)
}
