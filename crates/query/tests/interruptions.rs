//! Stages end with their operation, also where they draw no document for long.

use std::cell::Cell;

use pando_catalog::Bytes;
use pando_document::{Document, RawArray, Value, doc};
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::memory::{DiskUse, StageMemory};
use pando_query::pipeline::{Flow, Pipeline, RunOptions, Source, Take};
use pando_query::{ErrorCode, QueryError};

/// Documents, and a number of checks after the last document from which on the operation has to end.
struct Ending {
    documents: std::vec::IntoIter<Bytes>,
    checks_left: Cell<u32>,
}

impl Ending {
    fn of(documents: impl Iterator<Item = Document>, checks_left: u32) -> Ending {
        let documents: Vec<Bytes> =
            documents.map(|document| Bytes::copy_from_slice(document.to_raw().as_bytes())).collect();
        Ending { documents: documents.into_iter(), checks_left: Cell::new(checks_left) }
    }
}

impl Source for Ending {
    fn next(&mut self) -> Result<Option<Bytes>, QueryError> {
        Ok(self.documents.next())
    }

    fn find_in(&mut self, _: &str, _: &Filter, _: Take<'_>) -> Result<(), QueryError> {
        Ok(())
    }

    fn check(&self) -> Result<(), QueryError> {
        if self.documents.as_slice().is_empty() {
            let left = self.checks_left.get().checked_sub(1);
            let left = left.ok_or_else(|| QueryError::new(ErrorCode::InvalidLength, "stop"))?;
            self.checks_left.set(left);
        }
        Ok(())
    }
}

/// The error of a pipeline that draws all its documents.
fn outcome(stages: &[Document], source: &mut Ending) -> Result<(), QueryError> {
    let stages: Vec<Value> = stages.iter().cloned().map(Value::from).collect();
    let holder = doc! { "stages": stages }.to_raw();
    let stages: &RawArray = holder.get("stages").unwrap().unwrap().as_array().unwrap();
    let pipeline = Pipeline::parse(stages, &ParseScope::default()).unwrap();
    let options = RunOptions::new(StageMemory::unlimited(DiskUse::Forbidden), 1);
    pipeline.start(&options).for_each(source, &mut |_, _| Ok(Flow::More))
}

#[test]
fn a_document_of_several_arrays_is_unwound_no_further_than_its_operation_lasts() {
    let numbers: Vec<Value> = (0..1_000).map(Value::Int32).collect();
    let document =
        doc! { "a": (numbers.clone()), "b": (numbers.clone()), "c": (numbers.clone()), "d": numbers };
    let unwinds = ["$a", "$b", "$c", "$d"].map(|path| doc! { "$unwind": path });
    for last in [
        doc! { "$count": "n" },
        doc! { "$match": { "d": (-1) } },
        doc! { "$group": { "_id": (Value::Null), "n": { "$sum": "$a" } } },
        doc! { "$sort": { "missing": 1 } },
    ] {
        let is_sort = last.iter().any(|(name, _)| name == "$sort");
        // A sort keeps what it is given, so it ends sooner.
        let mut source = Ending::of(std::iter::once(document.clone()), if is_sort { 100 } else { 10_000 });
        let stages: Vec<Document> = unwinds.iter().cloned().chain([last]).collect();
        assert!(outcome(&stages, &mut source).is_err());
    }
}

#[test]
fn stages_that_give_what_they_hold_end_with_their_operation() {
    let nothing = doc! { "$match": { "_id": "none" } };
    for first in [
        doc! { "$group": { "_id": "$n" } },
        doc! { "$sort": { "n": 1 } },
        doc! { "$sample": { "size": 3_000 } },
    ] {
        let numbers = || (0..3_000).map(|n| doc! { "n": n });
        // `$addFields` keeps the sort behind the source, and the match behind the sort.
        let stages =
            [doc! { "$addFields": { "x": 1 } }, first.clone(), doc! { "$limit": 2_900 }, nothing.clone()];
        assert!(outcome(&stages, &mut Ending::of(numbers(), 1_000)).is_err(), "{first:?}");
        assert!(outcome(&stages, &mut Ending::of(numbers(), 1_000_000)).is_ok(), "{first:?}");
    }
}
