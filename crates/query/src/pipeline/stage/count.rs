//! `$count`: one document with the number of documents; none if there were none.

use std::any::Any;
use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::{DocumentWriter, RawValue};

use super::{Check, Definition, Gathering, Nesting, RunOptions, Source, Stage, same_stage};
use crate::error::QueryError;
use crate::expression::narrowed;
use crate::needs::Needs;
use crate::pipeline::PipelineFault;

#[derive(Clone, Debug)]
struct Count {
    name: String,
}

struct Run {
    name: String,
    counted: i64,
    is_given: Given,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    No,
    Yes,
}

pub(super) fn parse(argument: RawValue<'_>) -> Result<Arc<dyn Definition>, QueryError> {
    let RawValue::String(name) = argument else {
        return Err(PipelineFault::CountNotString.error("the count field must be a non-empty string"));
    };
    let refusal = if name.is_empty() {
        Some((PipelineFault::CountEmpty, "the count field must be a non-empty string"))
    } else if name.starts_with('$') {
        Some((PipelineFault::CountIsPath, "the count field cannot be a $-prefixed path"))
    } else if name.contains('\0') {
        Some((PipelineFault::CountWithNul, "the count field cannot contain a null byte"))
    } else if name.contains('.') {
        Some((PipelineFault::CountDotted, "the count field cannot contain '.'"))
    } else if name == "_id" {
        Some((PipelineFault::GroupTwoIds, "a group's _id may only be specified once"))
    } else {
        None
    };
    match refusal {
        Some((fault, message)) => Err(fault.error(message)),
        None => Ok(Arc::new(Count { name: name.to_owned() })),
    }
}

impl Definition for Count {
    fn gathers(&self) -> bool {
        true
    }

    fn nesting(&self) -> Nesting {
        Nesting::Kept
    }

    fn start(&self, _: &RunOptions) -> Box<dyn Stage> {
        Box::new(Run { name: self.name.clone(), counted: 0, is_given: Given::No })
    }

    fn sees_values_only(&self) -> bool {
        true
    }

    fn needs(&self, _behind: Needs) -> Needs {
        Needs::nothing()
    }
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        if self.is_given == Given::Yes {
            return Ok(None);
        }
        self.gather(input)?;
        self.is_given = Given::Yes;
        if self.counted == 0 {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let mut writer = DocumentWriter::begin(&mut bytes);
        writer.append(&self.name, narrowed(self.counted).to_raw());
        writer.finish();
        Ok(Some(Bytes::from(bytes)))
    }

    fn gathering(&mut self) -> Option<&mut dyn Gathering> {
        Some(self)
    }
}

impl Gathering for Run {
    fn gather(&mut self, input: &mut dyn Source) -> Result<(), QueryError> {
        input.for_each_run(&mut |_, times, _| {
            self.counted = self.counted.saturating_add_unsigned(times);
            Ok(())
        })
    }

    fn absorb(&mut self, later: &mut dyn Gathering, _: Check<'_>) -> Result<(), QueryError> {
        self.counted = self.counted.saturating_add(same_stage::<Run>(later).counted);
        Ok(())
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
