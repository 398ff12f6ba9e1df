//! The check of a store that is not open: WiredTiger's own, which reads every block of every table, then a
//! count.
//!
//! A table that is damaged is told and left alone; the others are checked all the same. The store is opened
//! for it, which replays the journal.

use std::path::Path;

use pando_environment::Environment;
use pando_storage::{CheckReport, CheckRequest, Engine, StorageError};

use crate::engine::WiredTigerEngine;
use crate::library::LibraryFault;
use crate::options::WiredTigerOptions;

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct Verified {
    /// The tables, the entries, and the problems.
    pub check: CheckReport,
    /// Bytes of all files of the store.
    pub file_bytes: u64,
}

/// Checks the store in a folder. Nobody may have it open.
///
/// # Errors
/// The store cannot be opened. Damage of a table is no error: the report tells it.
pub fn verify(environment: &Environment, folder: &Path) -> Result<Verified, StorageError> {
    let engine = WiredTigerEngine::open(environment, folder, WiredTigerOptions::default())?;
    let mut report = CheckReport::default();
    let mut sound = Vec::new();
    for tree in engine.list_trees()? {
        let table = engine.store().trees.read().table(tree.id)?;
        let outcome = engine.store().with_session("verifying", |session| {
            Ok(match session.verify(&table.uri) {
                Err(error) if error.fault() == LibraryFault::Panic => return Err(error),
                outcome => outcome.err().map(|error| error.to_string()),
            })
        })?;
        match outcome {
            None => sound.push(tree.id),
            Some(problem) => {
                report.trees += 1;
                if report.problems.len() < CheckReport::PROBLEMS_MAX {
                    report.problems.push(format!(
                        "{} ({}): {problem}",
                        tree.name,
                        table.uri.to_string_lossy()
                    ));
                }
            }
        }
    }
    for tree in sound {
        let counted = engine.check(&CheckRequest { trees: &[tree], ..CheckRequest::default() })?;
        report.trees += counted.trees;
        report.entries += counted.entries;
        report.bytes += counted.bytes;
        report.problems.extend(counted.problems);
    }
    let file_bytes = engine.bytes_on_disk(None)?;
    // A damaged table cannot be written, so that a close may fail: the report says more.
    let _closed = engine.close();
    Ok(Verified { check: report, file_bytes })
}
