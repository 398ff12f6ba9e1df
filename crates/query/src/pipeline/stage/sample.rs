//! `$sample`: a random choice of documents, without repetition.
//!
//! Each document gets a random key. A choice of n documents is the n least keys. The sorter finds them in the
//! memory of n documents, and gives them in random order.

use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::RawValue;
use pando_environment::{Random, SeededRandom};

use super::{Definition, Memory, Nesting, RunOptions, Source, Stage};
use crate::error::QueryError;
use crate::pipeline::PipelineFault;
use crate::sort::Sorter;

#[derive(Clone, Debug)]
struct Sample {
    size: u64,
}

struct Run {
    random: SeededRandom,
    sorter: Sorter,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Reading,
    Giving,
}

pub(super) fn parse(argument: RawValue<'_>) -> Result<Arc<dyn Definition>, QueryError> {
    let RawValue::Document(options) = argument else {
        return Err(PipelineFault::SampleNotObject.error("the $sample stage specification must be an object"));
    };
    let mut size = None;
    for option in options.iter() {
        match option? {
            ("size", value) if value.is_number() => {
                let number = pando_document::Number::from_value(value);
                size = number.and_then(crate::expression::truncated);
            }
            ("size", _) => {
                return Err(
                    PipelineFault::SampleSizeNotNumeric.error("size argument to $sample must be a number")
                );
            }
            (name, _) => {
                return Err(PipelineFault::SampleUnknownOption
                    .error(format!("unrecognized option to $sample: {name}")));
            }
        }
    }
    let Some(size) = size else {
        return Err(PipelineFault::SampleWithoutSize.error("$sample stage must specify a size"));
    };
    let Ok(size) = u64::try_from(size) else {
        return Err(PipelineFault::SampleSizeNegative.error("size argument to $sample must not be negative"));
    };
    Ok(Arc::new(Sample { size }))
}

impl Definition for Sample {
    fn nesting(&self) -> Nesting {
        Nesting::Kept
    }

    fn memory(&self) -> Memory {
        Memory::Reserved
    }

    fn start(&self, options: &RunOptions) -> Box<dyn Stage> {
        Box::new(Run {
            random: SeededRandom::new(options.seed),
            sorter: Sorter::new(Some(self.size), &options.memory),
            phase: Phase::Reading,
        })
    }
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        if self.phase == Phase::Reading {
            while let Some(bytes) = input.next()? {
                let key = self.random.next_u64().to_be_bytes();
                self.sorter.push(&key, &[], &bytes, &mut || input.check())?;
            }
            self.phase = Phase::Giving;
        }
        input.check()?;
        let next = self.sorter.next(&mut || input.check())?;
        Ok(next.map(|sorted| Bytes::copy_from_slice(sorted.document)))
    }
}
