//! `$sample`: a random choice of documents, without repetition.
//!
//! All documents are read; of n wanted ones, n are held (*reservoir sampling*): the k-th document takes a
//! random place among k, and is held if that place is below n.

use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::RawValue;

use super::{Definition, RunOptions, Source, Stage};
use crate::error::{ErrorCode, QueryError};
use crate::pipeline::PipelineFault;
use crate::sort::{DiskUse, MEMORY_BYTES_MAX};

#[derive(Clone, Debug)]
struct Sample {
    size: usize,
}

struct Run {
    size: usize,
    state: u64,
    seen: u64,
    chosen: Vec<Bytes>,
    bytes: usize,
    disk_use: DiskUse,
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
    let Ok(size) = usize::try_from(size) else {
        return Err(PipelineFault::SampleSizeNegative.error("size argument to $sample must not be negative"));
    };
    Ok(Arc::new(Sample { size }))
}

impl Definition for Sample {
    fn start(&self, options: &RunOptions) -> Box<dyn Stage> {
        Box::new(Run {
            size: self.size,
            state: options.seed,
            seen: 0,
            chosen: Vec::new(),
            bytes: 0,
            disk_use: options.disk_use,
            phase: Phase::Reading,
        })
    }
}

impl Run {
    /// A random number below `bound`, by SplitMix64 (Steele, Lea and Flood, 2014).
    fn random_below(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        u64::try_from((u128::from(mixed) * u128::from(bound)) >> 64)
            .expect("the product's upper half is below the bound")
    }

    fn take(&mut self, bytes: Bytes) -> Result<(), QueryError> {
        self.seen += 1;
        if self.chosen.len() < self.size {
            self.bytes += bytes.len();
            self.chosen.push(bytes);
            return self.check_memory();
        }
        let place = self.random_below(self.seen);
        if let Some(slot) = usize::try_from(place).ok().and_then(|place| self.chosen.get_mut(place)) {
            self.bytes = self.bytes + bytes.len() - slot.len();
            *slot = bytes;
        }
        self.check_memory()
    }

    fn check_memory(&self) -> Result<(), QueryError> {
        if self.bytes <= MEMORY_BYTES_MAX || self.disk_use == DiskUse::Allowed {
            return Ok(());
        }
        Err(QueryError::new(
            ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
            format!("$sample holds more than {MEMORY_BYTES_MAX} bytes"),
        ))
    }

    /// The reservoir still has the order of reading where few were replaced.
    fn shuffle(&mut self) {
        for last in (1..self.chosen.len()).rev() {
            let other = self.random_below(last as u64 + 1);
            self.chosen.swap(last, usize::try_from(other).expect("below the number of documents held"));
        }
    }
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        if self.phase == Phase::Reading {
            while let Some(bytes) = input.next()? {
                self.take(bytes)?;
            }
            self.shuffle();
            self.phase = Phase::Giving;
        }
        Ok(self.chosen.pop())
    }
}
