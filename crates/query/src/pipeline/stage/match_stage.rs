//! `$match`: only documents that a filter accepts go on.

use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::RawValue;

use super::{Definition, Flow, Nesting, RunOptions, Sink, Source, Stage, document_in};
use crate::error::QueryError;
use crate::expression::ParseScope;
use crate::filter::Filter;
use crate::needs::Needs;
use crate::pipeline::PipelineFault;

#[derive(Clone, Debug)]
struct Match {
    filter: Arc<Filter>,
}

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Arc<dyn Definition>, QueryError> {
    let RawValue::Document(filter) = argument else {
        return Err(
            PipelineFault::MatchNotObject.error("the match filter must be an expression in an object")
        );
    };
    Ok(Arc::new(Match { filter: Arc::new(Filter::parse(filter, &scope.refusing_metadata())?) }))
}

impl Definition for Match {
    fn looks_at_each_alone(&self) -> bool {
        true
    }

    fn nesting(&self) -> Nesting {
        Nesting::Kept
    }

    fn start(&self, _: &RunOptions) -> Box<dyn Stage> {
        Box::new(self.clone())
    }

    fn needs(&self, mut behind: Needs) -> Needs {
        self.filter.add_needs(&mut behind);
        behind
    }
}

impl Stage for Match {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        while let Some(bytes) = input.next()? {
            if self.filter.matches(document_in(&bytes)?)? {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    fn for_each(&mut self, input: &mut dyn Source, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        input.for_each(&mut |document, check| match self.filter.matches(document)? {
            true => sink(document, check),
            false => Ok(Flow::More),
        })
    }
}
