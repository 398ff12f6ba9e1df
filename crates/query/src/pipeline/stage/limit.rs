//! `$limit`: only the first documents go on; then nothing more is drawn.

use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::RawValue;

use super::{Definition, Flow, Nesting, RunOptions, Sink, Source, Stage};
use crate::error::QueryError;
use crate::needs::Needs;
use crate::pipeline::PipelineFault;
use crate::shell_text;

#[derive(Clone, Debug)]
struct Limit {
    left: u64,
}

pub(super) fn parse(argument: RawValue<'_>) -> Result<Arc<dyn Definition>, QueryError> {
    match count("$limit", argument).map_err(|message| PipelineFault::LimitNotCount.error(message))? {
        0 => Err(PipelineFault::LimitZero.error("the limit must be positive")),
        left => Ok(Arc::new(Limit { left })),
    }
}

/// A number of documents, or what is wrong with it.
pub(super) fn count(stage: &str, argument: RawValue<'_>) -> Result<u64, String> {
    let shown = || format!("{stage}: {}", shell_text::value_text(argument));
    let complaint = match argument.as_i64_exact() {
        _ if !argument.is_number() => "Expected a number in",
        None => "Expected an integer",
        Some(count) => match u64::try_from(count) {
            Ok(count) => return Ok(count),
            Err(_) => "Expected a non-negative number in",
        },
    };
    Err(format!("invalid argument to {stage} stage: {complaint}: {}", shown()))
}

impl Definition for Limit {
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

impl Stage for Limit {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        if self.left == 0 {
            return Ok(None);
        }
        let next = input.next()?;
        self.left -= 1;
        Ok(next)
    }

    fn for_each(&mut self, input: &mut dyn Source, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        if self.left == 0 {
            return Ok(());
        }
        input.for_each(&mut |document, check| {
            self.left -= 1;
            let flow = sink(document, check)?;
            Ok(if self.left == 0 { Flow::Enough } else { flow })
        })
    }
}
