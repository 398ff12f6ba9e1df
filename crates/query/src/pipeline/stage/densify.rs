//! `$densify`: documents for the values that a field lacks, on a grid of equal steps.
//!
//! 1. All documents go through the external sorter: by partition and field, or by the field alone where the
//!    bounds are those of the whole input.
//! 2. In front of each document come those of the grid values below its own. A document on the grid takes the
//!    place of its value. Documents without a value pass.
//! 3. At the end of a partition, or of the input, come the values up to the upper bound.
//!
//! The grid begins with the lower bound: a given one, or the least value of the partition or of all. A new
//! document has the fields of its partition and the field itself.
//!
//! Invariants: a stage makes at most 500,000 documents, as in MongoDB. A step that changes nothing (NaN, or
//! too small for a double) ends the grid.

mod arguments;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use pando_catalog::{Bytes, Reservation};
use pando_document::{Number, Overflow, RawDocument, RawValue, compare_values};
use pando_keyorder::{Direction, TypeBits};

use self::arguments::{Bounds, Densify};
use super::{Definition, Flow, Memory, Nesting, RunOptions, Source, Stage};
use crate::error::QueryError;
use crate::expression::{Evaluated, ParseScope};
use crate::memory::hold_value;
use crate::pipeline::PipelineFault;
use crate::sort::{Check, Sorter};

/// Most documents that a stage makes, as MongoDB's `internalQueryMaxAllowedDensifyDocs`.
const MADE_MAX: u64 = 500_000;

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Arc<dyn Definition>, QueryError> {
    Ok(Arc::new(Definite(Arc::new(Densify::parse(argument, scope)?))))
}

/// A parsed `$densify`.
#[derive(Clone, Debug)]
struct Definite(Arc<Densify>);

/// A value of the field: a number or a date.
type Place = RawValue<'static>;

struct Run {
    densify: Arc<Densify>,
    sorter: Sorter,
    reservation: Reservation,
    phase: Phase,
    /// The document that comes after the grid values below it.
    ahead: Option<Ahead>,
    /// The partitions under way: one, or all where the bounds are those of the whole input.
    partitions: Vec<Partition>,
    numbers: HashMap<Vec<u8>, usize>,
    held_bytes: usize,
    least: Option<Place>,
    greatest: Option<Place>,
    made: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Reading,
    Giving,
    /// The values of the partitions from this one on, up to the upper bound.
    Finishing(usize),
}

struct Ahead {
    key: Vec<u8>,
    document: Bytes,
    place: Option<Place>,
}

struct Partition {
    key: Vec<u8>,
    fields: Vec<Evaluated<'static>>,
    /// The next value of the grid; `None` while there is no lower bound, and at its end.
    next: Option<Place>,
}

impl Definition for Definite {
    fn nesting(&self) -> Nesting {
        Nesting::Kept
    }

    fn memory(&self) -> Memory {
        Memory::Reserved
    }

    fn start(&self, options: &RunOptions) -> Box<dyn Stage> {
        Box::new(Run {
            densify: Arc::clone(&self.0),
            sorter: Sorter::new(None, &options.memory),
            reservation: options.memory.account.reserve(),
            phase: Phase::Reading,
            ahead: None,
            partitions: Vec::new(),
            numbers: HashMap::new(),
            held_bytes: 0,
            least: None,
            greatest: None,
            made: 0,
        })
    }
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        if self.phase == Phase::Reading {
            let Run { densify, sorter, .. } = self;
            input.for_each(&mut |document, check| {
                let mut key = if densify.is_by_partition() { densify.key(document)? } else { Vec::new() };
                densify.order.append_key(document, &mut key)?;
                sorter.push(&key, &[], document.as_bytes(), check)?;
                Ok(Flow::More)
            })?;
            self.phase = Phase::Giving;
        }
        input.check()?;
        self.give(&mut || input.check())
    }
}

impl Densify {
    /// Whether one partition comes behind the other.
    fn is_by_partition(&self) -> bool {
        !matches!(self.bounds, Bounds::Full)
    }

    /// The order-preserving key of a document's partition.
    fn key(&self, document: &RawDocument) -> Result<Vec<u8>, QueryError> {
        let mut key = Vec::new();
        for path in &self.partition {
            let value = path.evaluate(document)?;
            // A missing value makes another partition than null does.
            let value = value.raw().unwrap_or(RawValue::Undefined);
            self.order.text_order().encode(value, Direction::Ascending, &mut key, &mut TypeBits::discarded());
        }
        Ok(key)
    }

    /// The value of the field; `None` of null and missing ones.
    fn place(&self, document: &RawDocument) -> Result<Option<Place>, QueryError> {
        let value = self.field.evaluate(document)?;
        if value.is_nullish() {
            return Ok(None);
        }
        match (value.raw(), self.unit) {
            (Some(RawValue::DateTime(millis)), Some(_)) => Ok(Some(RawValue::DateTime(millis))),
            (Some(RawValue::DateTime(_)), None) => Err(PipelineFault::DensifyOtherKind
                .error("Encountered date densify value in collection when step does not have a date unit.")),
            (_, unit) => {
                match (value.as_number(), unit) {
                    (Some(number), None) => Ok(Some(number.to_raw())),
                    (Some(_), Some(_)) => Err(PipelineFault::DensifyOtherKind
                        .error("Encountered numeric densify value in collection when step has a date unit.")),
                    (None, _) => Err(PipelineFault::DensifyNotNumeric
                        .error("Densify field type must be numeric or a date")),
                }
            }
        }
    }

    /// A value in the type that it has with the step added.
    fn widened(&self, place: Place) -> Place {
        let nothing = self.step.subtract(self.step, Overflow::Double);
        let sum = Number::from_value(place).zip(nothing);
        sum.and_then(|(place, nothing)| place.add(nothing, Overflow::Double)).map_or(place, Number::to_raw)
    }

    /// The value one step on; `None` where there is none.
    fn after(&self, place: Place) -> Option<Place> {
        let next = match (place, self.unit) {
            (RawValue::DateTime(millis), Some(unit)) => {
                RawValue::DateTime(unit.shifted(millis, self.step.to_i64_exact()?)?)
            }
            (place, _) => Number::from_value(place)?.add(self.step, Overflow::Double)?.to_raw(),
        };
        (compare_values(next, place) == Ordering::Greater).then_some(next)
    }
}

impl Run {
    fn give(&mut self, check: Check<'_>) -> Result<Option<Bytes>, QueryError> {
        loop {
            if let Phase::Finishing(number) = self.phase {
                match self.finish(number)? {
                    Finished::Made(made) => return Ok(Some(made)),
                    Finished::Partition => {
                        self.phase = Phase::Finishing(number + 1);
                        continue;
                    }
                    Finished::All if self.ahead.is_some() => {
                        self.forget_partitions();
                        self.phase = Phase::Giving;
                    }
                    Finished::All => return Ok(None),
                }
            }
            if self.ahead.is_none() {
                self.pull(check)?;
            }
            let Some(ahead) = &self.ahead else {
                // A given range is filled even where there are no documents.
                if self.partitions.is_empty() && self.made == 0 && self.greatest.is_none() {
                    self.begin(Vec::new(), Vec::new())?;
                }
                self.phase = Phase::Finishing(0);
                continue;
            };
            let is_other = self.densify.is_by_partition()
                && self.partitions.first().is_some_and(|partition| partition.key != ahead.key);
            if is_other {
                self.phase = Phase::Finishing(0);
                continue;
            }
            if let Some(given) = self.give_ahead()? {
                return Ok(Some(given));
            }
        }
    }

    /// The next document of the sorter as the one ahead.
    fn pull(&mut self, check: Check<'_>) -> Result<(), QueryError> {
        let Some(sorted) = self.sorter.next(check)? else { return Ok(()) };
        let document = RawDocument::from_bytes(sorted.document)?;
        let key = self.densify.key(document)?;
        let partition = self.numbers.get(&key).and_then(|number| self.partitions.get(*number));
        // Behind a given range a document may have any value.
        let is_behind = matches!(self.densify.bounds, Bounds::Given(..))
            && partition
                .is_some_and(|partition| partition.next.is_none_or(|next| self.densify.is_beyond(next)));
        let place = if is_behind { None } else { self.densify.place(document)? };
        if let Some(place) = place {
            self.least.get_or_insert(place);
            self.greatest = Some(place);
        }
        self.ahead = Some(Ahead { key, document: Bytes::copy_from_slice(sorted.document), place });
        Ok(())
    }

    /// The document ahead, or the next one of the grid in front of it.
    fn give_ahead(&mut self) -> Result<Option<Bytes>, QueryError> {
        let Some(ahead) = &self.ahead else { return Ok(None) };
        let number = match self.numbers.get(&ahead.key) {
            Some(number) => *number,
            // A partition begins with its first value. One without a value gets none.
            None if ahead.place.is_none() => {
                return Ok(self.ahead.take().map(|ahead| ahead.document));
            }
            None => {
                let document = RawDocument::from_bytes(&ahead.document)?;
                let mut fields = Vec::with_capacity(self.densify.partition.len());
                for path in &self.densify.partition {
                    let value = path.evaluate(document)?;
                    fields.push(value.raw().map_or(Evaluated::Missing, Evaluated::owned));
                }
                let key = ahead.key.clone();
                self.begin(key, fields)?
            }
        };
        if let (Some(ahead), Some(partition)) = (&self.ahead, self.partitions.get_mut(number))
            && let Some(place) = ahead.place
        {
            let next = match (partition.next, self.densify.bounds) {
                (None, Bounds::Partition) => *partition.next.insert(place),
                (Some(next), _) => next,
                (None, _) => place,
            };
            match compare_values(next, place) {
                Ordering::Less if !self.densify.is_beyond(next) => return self.make(number).map(Some),
                Ordering::Equal => {
                    if let Some(partition) = self.partitions.get_mut(number)
                        && partition.next.is_some()
                    {
                        // The grid goes on from the document, and with the type of its value.
                        partition.next = self.densify.after(place);
                    }
                }
                Ordering::Less | Ordering::Greater => {}
            }
        }
        Ok(self.ahead.take().map(|ahead| ahead.document))
    }

    /// Begins a partition; its number.
    fn begin(&mut self, key: Vec<u8>, fields: Vec<Evaluated<'static>>) -> Result<usize, QueryError> {
        const PARTITION_BYTES: usize = 256;
        let fields_bytes: usize = fields.len() * size_of::<Evaluated<'static>>() + key.len();
        self.held_bytes += PARTITION_BYTES + 2 * key.len() + fields_bytes;
        hold_value(&mut self.reservation, self.held_bytes, "$densify")?;
        let next = match self.densify.bounds {
            Bounds::Given(lower, _) => Some(lower),
            Bounds::Full => self.least.map(|least| self.densify.widened(least)),
            Bounds::Partition => None,
        };
        let number = self.partitions.len();
        self.numbers.insert(key.clone(), number);
        self.partitions.push(Partition { key, fields, next });
        Ok(number)
    }

    fn forget_partitions(&mut self) {
        self.partitions.clear();
        self.numbers.clear();
        self.held_bytes = 0;
        self.reservation.shrink_to(0);
    }

    /// The next document of a partition's grid.
    fn make(&mut self, number: usize) -> Result<Bytes, QueryError> {
        self.made += 1;
        if self.made > MADE_MAX {
            return Err(PipelineFault::DensifyTooMany.error(format!(
                "Generated {} documents in $densify, which is over the limit of {MADE_MAX}. Increase the \
                 'internalQueryMaxAllowedDensifyDocs' parameter to allow more generated documents",
                self.made
            )));
        }
        let partition = &mut self.partitions[number];
        let Some(place) = partition.next.take() else { return Ok(Bytes::new()) };
        partition.next = self.densify.after(place);
        if partition.fields.is_empty() {
            let alone = self.densify.alone.filled_slots(RawDocument::empty(), vec![Evaluated::Raw(place)])?;
            return Ok(Bytes::from(alone));
        }
        let Some(template) = &self.densify.template else {
            return Err(PipelineFault::DensifyPartitionField
                .error("DocGenerator cannot include field that is being densified"));
        };
        let mut values = partition.fields.clone();
        values.push(Evaluated::Raw(place));
        Ok(Bytes::from(template.filled_slots(RawDocument::empty(), values)?))
    }

    /// The next document behind the last of a partition.
    fn finish(&mut self, number: usize) -> Result<Finished, QueryError> {
        let Some(partition) = self.partitions.get(number) else { return Ok(Finished::All) };
        let is_wanted = match (partition.next, self.densify.bounds) {
            // Without a document the lower bound is filled in even where the range is empty.
            (Some(next), Bounds::Given(..)) => {
                !self.densify.is_beyond(next) || (self.made == 0 && self.greatest.is_none())
            }
            (Some(next), Bounds::Full) => {
                let is_beyond = |end| compare_values(next, end) == Ordering::Greater;
                !self.greatest.is_none_or(is_beyond)
            }
            _ => false,
        };
        if is_wanted { self.make(number).map(Finished::Made) } else { Ok(Finished::Partition) }
    }
}

enum Finished {
    Made(Bytes),
    Partition,
    All,
}

impl Densify {
    /// Whether a value of the grid lies behind a given range.
    fn is_beyond(&self, place: Place) -> bool {
        match self.bounds {
            Bounds::Given(_, upper) => compare_values(place, upper) != Ordering::Less,
            Bounds::Full | Bounds::Partition => false,
        }
    }
}
