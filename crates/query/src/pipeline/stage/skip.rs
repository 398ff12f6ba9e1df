//! `$skip`: the first documents do not go on.

use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::RawValue;

use super::limit::count;
use super::{Definition, Flow, Nesting, RunOptions, Sink, Source, Stage};
use crate::error::QueryError;
use crate::needs::Needs;
use crate::pipeline::PipelineFault;

#[derive(Clone, Debug)]
struct Skip {
    left: u64,
}

pub(super) fn parse(argument: RawValue<'_>) -> Result<Arc<dyn Definition>, QueryError> {
    let left = count("$skip", argument).map_err(|message| PipelineFault::SkipNotCount.error(message))?;
    Ok(Arc::new(Skip { left }))
}

impl Definition for Skip {
    fn nesting(&self) -> Nesting {
        Nesting::Kept
    }

    fn start(&self, _: &RunOptions) -> Box<dyn Stage> {
        Box::new(self.clone())
    }

    fn needs(&self, behind: Needs) -> Needs {
        behind
    }
}

impl Stage for Skip {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        while self.left > 0 {
            if input.next()?.is_none() {
                self.left = 0;
                return Ok(None);
            }
            self.left -= 1;
        }
        input.next()
    }

    fn for_each(&mut self, input: &mut dyn Source, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        input.for_each(&mut |document, check| match self.left {
            0 => sink(document, check),
            _ => {
                self.left -= 1;
                Ok(Flow::More)
            }
        })
    }
}
