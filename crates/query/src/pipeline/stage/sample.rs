//! `$sample`: a random choice of documents, without repetition.
//!
//! Each document gets a random key. A choice of n documents is the n least keys. The sorter finds them in the
//! memory of n documents, and gives them in random order.

use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::{RawDocument, RawValue};
use pando_environment::{Random, SeededRandom};

use super::{Definition, Memory, Nesting, RunOptions, Source, Stage};
use crate::error::QueryError;
use crate::expression::ParseScope;
use crate::metadata::{Metadata, with_hidden};
use crate::pipeline::PipelineFault;
use crate::sort::Sorter;

#[derive(Clone, Debug)]
struct Sample {
    size: u64,
    /// Whether documents come with their random values.
    shows_keys: bool,
}

struct Run {
    random: SeededRandom,
    sorter: Sorter,
    shows_keys: bool,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Reading,
    Giving,
}

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Arc<dyn Definition>, QueryError> {
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
    Ok(Arc::new(Sample { size, shows_keys: scope.metadata().has(Metadata::RandomValue) }))
}

impl Definition for Sample {
    fn nesting(&self) -> Nesting {
        Nesting::Kept
    }

    fn memory(&self) -> Memory {
        Memory::Reserved
    }

    fn sample_size(&self) -> Option<u64> {
        Some(self.size)
    }

    fn start(&self, options: &RunOptions) -> Box<dyn Stage> {
        Box::new(Run {
            random: SeededRandom::new(options.seed),
            sorter: Sorter::new(Some(self.size), &options.memory),
            shows_keys: self.shows_keys,
            phase: Phase::Reading,
        })
    }
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        if self.phase == Phase::Reading {
            while let Some(bytes) = input.next()? {
                let key = self.random.next_u64().to_be_bytes();
                let kept: &[u8] = if self.shows_keys { &key } else { &[] };
                self.sorter.push(&key, kept, &bytes, &mut || input.check())?;
            }
            self.phase = Phase::Giving;
        }
        input.check()?;
        let next = self.sorter.next(&mut || input.check())?;
        let Some(sorted) = next else { return Ok(None) };
        if !self.shows_keys {
            return Ok(Some(Bytes::copy_from_slice(sorted.document)));
        }
        let key = sorted.primary_key.first_chunk().map_or(0, |key| u64::from_be_bytes(*key));
        // The greatest comes first, as in MongoDB. Of the 64 bits a double holds 53.
        let value = ((u64::MAX - key) >> 11) as f64 / (1_u64 << 53) as f64;
        let document = RawDocument::from_bytes(sorted.document)?;
        let shown = with_hidden(document, [(Metadata::RandomValue, RawValue::Double(value))])?;
        Ok(Some(Bytes::from(shown.into_vec())))
    }
}
