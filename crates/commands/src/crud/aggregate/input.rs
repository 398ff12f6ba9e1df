//! The documents that a pipeline begins with: those that its plan finds, in one of several ways.

use std::sync::Arc;

use pando_catalog::{Bytes, Collection};
use pando_query::execute::{ExecutionFigures, Executor};
use pando_query::memory::StageMemory;
use pando_query::pipeline::Pipeline;
use pando_query::plan::Plan;

use super::super::ranged_filter::RangedFilter;
use super::super::row_metadata::RowMetadata;
use super::random_documents::RandomDocuments;
use super::ranged_scan::SortedRanges;
use crate::CommandError;

/// The input of the first stage.
pub(in crate::crud) enum Input {
    /// The documents that the plan finds.
    Collection(Box<Executor>),
    /// The same, found by several threads where few pass the filter of the plan.
    Filtered(Box<Executor>, Box<RangedFilter>),
    /// The same with metadata.
    WithMetadata(Box<Executor>, Box<RowMetadata>),
    /// Some of the documents that the plan would find.
    Random(Box<RandomDocuments>),
    /// The documents that the sort of the plan has gathered.
    Sorted(Box<SortedRanges>),
    /// These documents.
    Given(std::vec::IntoIter<Bytes>),
}

impl Input {
    /// The documents that a plan finds for the stages behind it.
    pub fn of(
        collection: Arc<Collection>,
        plan: Plan,
        rest: &Pipeline,
        memory: &StageMemory,
    ) -> Result<Input, CommandError> {
        let executor = Executor::new(collection, plan, memory)?;
        let is_free = rest.sees_values_only();
        Ok(Input::Collection(Box::new(if is_free { executor.in_any_order() } else { executor })))
    }

    /// The same documents with metadata.
    pub fn with(self, metadata: Option<RowMetadata>) -> Input {
        match (self, metadata) {
            (Input::Collection(executor), Some(metadata)) => {
                Input::WithMetadata(executor, Box::new(metadata))
            }
            (input, _) => input,
        }
    }

    /// The same documents, found by several threads where that helps.
    pub fn filtered_by(self, filter: Option<RangedFilter>) -> Input {
        match (self, filter) {
            (Input::Collection(executor), Some(filter)) => Input::Filtered(executor, Box::new(filter)),
            (input, _) => input,
        }
    }

    /// Random ones of them, where those are enough.
    pub fn or_random(self, random: Option<RandomDocuments>) -> Input {
        match (self, random) {
            (Input::Collection(_), Some(random)) => Input::Random(Box::new(random)),
            (input, _) => input,
        }
    }

    /// What was read; `None` where that is no collection.
    pub fn figures(&self) -> Option<ExecutionFigures> {
        match self {
            Input::Random(random) => Some(random.figures()),
            Input::Filtered(executor, filter) => Some(filter.figures(executor.figures())),
            Input::Sorted(sorted) => Some(sorted.figures()),
            Input::Collection(executor) | Input::WithMetadata(executor, _) => Some(executor.figures()),
            Input::Given(_) => None,
        }
    }
}
