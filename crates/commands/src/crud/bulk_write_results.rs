//! The results of a `bulkWrite`: the sums, and one document for each operation.

use pando_document::{DocumentWriter, RawValue};

use super::delete::DeleteOutcome;
use super::statement_batch::BatchOutcome;
use super::update_statement::UpdateOutcome;
use super::write_reply::{FailedWrite, Order, count, tried};
use crate::request_notes::RequestNotes;

/// Failures whose details of validation are told, so that the results of many operations stay small.
const FAILURES_WITH_DETAILS: u64 = 256;

/// The operations whose results the client wants to find in the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// All that were tried.
    All,
    /// Those that have failed.
    Failures,
}

/// See the module's head.
pub(super) struct Results {
    found: Found,
    /// The place of the first operation of the run under way.
    begin: usize,
    documents: Vec<(usize, Vec<u8>)>,
    failures: u64,
    inserted: u64,
    matched: u64,
    modified: u64,
    upserted: u64,
    deleted: u64,
}

impl Results {
    pub fn new(found: Found) -> Results {
        Results {
            found,
            begin: 0,
            documents: Vec::new(),
            failures: 0,
            inserted: 0,
            matched: 0,
            modified: 0,
            upserted: 0,
            deleted: 0,
        }
    }

    /// The next outcomes are of the run that begins at this operation.
    pub fn begin_run(&mut self, at: usize) {
        self.begin = at;
    }

    pub fn has_failures(&self) -> bool {
        self.failures > 0
    }

    /// Notes a failed operation of the run.
    pub fn fail(&mut self, failed: FailedWrite) {
        self.failures += 1;
        let at = self.begin + failed.index;
        let mut bytes = Vec::new();
        let mut out = DocumentWriter::begin(&mut bytes);
        out.append_f64("ok", 0.0);
        out.append("idx", place(at));
        out.append_i32("code", failed.failure.code.code());
        out.append_str("errmsg", &failed.failure.message);
        let has_details = self.failures <= FAILURES_WITH_DETAILS;
        let shown = failed.failure.details.iter().filter(|(name, _)| has_details || *name != "errInfo");
        for (name, value) in shown {
            out.append_value(name, value);
        }
        out.append_i32("n", 0);
        out.finish();
        self.documents.push((at, bytes));
    }

    fn succeed(&mut self, index: usize, number: u64, more: impl FnOnce(&mut DocumentWriter<'_>)) {
        if self.found == Found::Failures {
            return;
        }
        let at = self.begin + index;
        let mut bytes = Vec::new();
        let mut out = DocumentWriter::begin(&mut bytes);
        out.append_f64("ok", 1.0);
        out.append("idx", place(at));
        out.append("n", count(number));
        more(&mut out);
        out.finish();
        self.documents.push((at, bytes));
    }

    /// Adds a run of inserts.
    pub fn add_inserts(&mut self, operations: usize, failed: Vec<FailedWrite>, order: Order) {
        let tried = tried(operations, order, &failed);
        let mut failures = failed.iter().map(|one| one.index).peekable();
        for index in 0..tried {
            if failures.next_if_eq(&index).is_none() {
                self.inserted += 1;
                self.succeed(index, 1, |_| {});
            }
        }
        failed.into_iter().for_each(|failed| self.fail(failed));
    }

    /// Adds a run of updates.
    pub fn add_updates(&mut self, batch: BatchOutcome<UpdateOutcome>) {
        for statement in batch.outcomes {
            let outcome = statement.outcome;
            self.matched += outcome.matched;
            self.modified += outcome.modified;
            self.upserted += u64::from(outcome.upserted.is_some());
            if batch.failed.iter().any(|failed| failed.index == statement.index) {
                continue;
            }
            let number = outcome.matched + u64::from(outcome.upserted.is_some());
            self.succeed(statement.index, number, |out| {
                out.append("nModified", count(outcome.modified));
                if let Some(id) = &outcome.upserted {
                    let mut upserted = out.document("upserted");
                    upserted.append_value("_id", id);
                    upserted.finish();
                }
            });
        }
        batch.failed.into_iter().for_each(|failed| self.fail(failed));
    }

    /// Adds a run of deletions. Those of a collection that does not exist have no outcomes.
    pub fn add_deletes(&mut self, operations: usize, batch: BatchOutcome<DeleteOutcome>, order: Order) {
        let mut deleted = vec![0; tried(operations, order, &batch.failed)];
        for statement in batch.outcomes {
            self.deleted += statement.outcome.documents;
            if let Some(number) = deleted.get_mut(statement.index) {
                *number = statement.outcome.documents;
            }
        }
        for (index, number) in deleted.into_iter().enumerate() {
            if !batch.failed.iter().any(|failed| failed.index == index) {
                self.succeed(index, number, |_| {});
            }
        }
        batch.failed.into_iter().for_each(|failed| self.fail(failed));
    }

    /// Notes the effects for the profiler and the counters.
    pub fn note(&self, notes: &mut RequestNotes) {
        notes.inserted = Some(self.inserted);
        notes.matched = Some(self.matched);
        notes.modified = Some(self.modified);
        notes.upserted = Some(self.upserted);
        notes.deleted = Some(self.deleted);
    }

    /// The sums by their names, and the documents in the order of the operations.
    pub fn into_parts(mut self) -> ([(&'static str, u64); 6], Vec<Vec<u8>>) {
        self.documents.sort_by_key(|(at, _)| *at);
        let sums = [
            ("nErrors", self.failures),
            ("nInserted", self.inserted),
            ("nMatched", self.matched),
            ("nModified", self.modified),
            ("nUpserted", self.upserted),
            ("nDeleted", self.deleted),
        ];
        (sums, self.documents.into_iter().map(|(_, document)| document).collect())
    }
}

fn place(at: usize) -> RawValue<'static> {
    RawValue::Int32(i32::try_from(at).unwrap_or(i32::MAX))
}
