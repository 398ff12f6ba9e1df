//! Pipelines of strangers: parsing and running over a few documents never panics, and every document that
//! comes out is sound.

use std::collections::VecDeque;

use crate::check::assert_sound;
use crate::requests::{Stages, Stored};
use pando_catalog::Bytes;
use pando_document::RawDocument;
use pando_query::QueryError;
use pando_query::expression::ParseScope;
use pando_query::filter::Filter;
use pando_query::memory::{DiskUse, StageMemory};
use pando_query::pipeline::{Pipeline, RunOptions, Source, Take};

/// Documents that are drawn at most: `$unwind` of `$unwind` of … makes many.
const DRAWN_MAX: usize = 200;

/// Chance makes as good decisions as any.
pub fn examples() -> Vec<Vec<u8>> {
    crate::targets::by_chance()
}

/// The grown input.
pub type Input = (Stages, [Stored; 4]);

/// See the module.
pub fn run(input: Input) {
    let (stages, documents) = &input;
    let Ok(pipeline) = Pipeline::parse(stages.array(), &ParseScope::at(0)) else { return };
    let all: Vec<Bytes> =
        documents.iter().map(|document| Bytes::copy_from_slice(document.as_bytes())).collect();
    let mut source = Collection { waiting: all.iter().cloned().collect(), all };
    let mut run = pipeline.start(&RunOptions::new(StageMemory::unlimited(DiskUse::Forbidden), 7));
    for _ in 0..DRAWN_MAX {
        let Ok(Some(bytes)) = run.next(&mut source) else { break };
        assert_sound(RawDocument::from_bytes(&bytes).expect("a document comes out"));
    }
    let pushdown = pipeline.split_pushdown();
    assert_sound(&pushdown.filter);
}

/// Every collection has these documents.
struct Collection {
    waiting: VecDeque<Bytes>,
    all: Vec<Bytes>,
}

impl Source for Collection {
    fn next(&mut self) -> Result<Option<Bytes>, QueryError> {
        Ok(self.waiting.pop_front())
    }

    fn find_in(&mut self, _collection: &str, filter: &Filter, take: Take<'_>) -> Result<(), QueryError> {
        for document in &self.all {
            let document = RawDocument::from_bytes(document)?;
            if filter.matches(document)? {
                take(document)?;
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), QueryError> {
        Ok(())
    }
}
