//! `$bucketAuto`: documents in so many buckets of about equal size, by the value of an expression.
//!
//! 1. All documents go into a sorter by their values.
//! 2. A bucket takes its share, the number of documents divided by that of buckets, and then all that have
//!    the value of its last one. The last bucket takes all that are left.
//! 3. Its upper boundary is the value of the document behind it; that of the last bucket is its own last
//!    value.
//! 4. With a *granularity* boundaries are rounded to a series of preferred numbers, and a bucket takes all
//!    documents below its upper one. The lower boundary of a bucket is the upper one of the bucket before it.

mod granularity;

use std::cmp::Ordering;
use std::sync::Arc;

use pando_catalog::{Bytes, Reservation};
use pando_collation::TextOrder;
use pando_document::{DocumentWriter, Number, RawDocument, RawValue, compare_values};
use pando_keyorder::{Direction, TypeBits};

use self::granularity::{Granularity, Towards};
use super::{Definition, Flow, Memory, RunOptions, Source, Stage, group};
use crate::error::QueryError;
use crate::expression::accumulator::Accumulator;
use crate::expression::{Expression, Frame, ParseScope};
use crate::literal::Literal;
use crate::memory::hold_value;
use crate::needs::Needs;
use crate::pipeline::PipelineFault;
use crate::pipeline::accumulator::AccumulatorCall;
use crate::shell_text;
use crate::sort::{Check, Sorter};

#[derive(Clone, Debug)]
struct BucketAuto {
    specification: Arc<Specification>,
}

#[derive(Debug)]
struct Specification {
    group_by: Expression,
    buckets: u64,
    granularity: Option<Granularity>,
    fields: Vec<(String, AccumulatorCall)>,
    order: TextOrder,
}

struct Run {
    specification: Arc<Specification>,
    sorter: Sorter,
    reservation: Reservation,
    /// Documents that were read.
    count: u64,
    /// Buckets that were begun.
    begun: u64,
    /// The first document that no bucket has taken, with its value.
    next: Option<Valued>,
    /// The upper boundary of the bucket before.
    boundary: Option<Literal>,
    phase: Phase,
}

/// A document with its value.
struct Valued {
    value: Literal,
    document: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Reading,
    Giving,
}

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Arc<dyn Definition>, QueryError> {
    let RawValue::Document(options) = argument else {
        return Err(PipelineFault::BucketAutoNotObject.error(format!(
            "The argument to $bucketAuto must be an object, but found type: {}",
            argument.element_type().alias()
        )));
    };
    let (mut group_by, mut buckets, mut granularity, mut fields) = (None, None, None, Vec::new());
    for option in options.iter() {
        match option? {
            ("groupBy", value) => group_by = Some(parse_group_by(value, scope)?),
            ("buckets", value) => buckets = Some(parse_count(value)?),
            ("output", RawValue::Document(output)) => {
                for field in output.iter() {
                    let (name, value) = field?;
                    fields.push((name.to_owned(), group::parse_field(name, value, scope)?));
                }
            }
            ("output", other) => {
                return Err(PipelineFault::BucketAutoOutputNotObject.error(format!(
                    "The $bucketAuto 'output' field must be an object, but found type: {}",
                    other.element_type().alias()
                )));
            }
            ("granularity", value) => granularity = Some(parse_granularity(value)?),
            (name, _) => {
                return Err(PipelineFault::BucketAutoUnknownOption
                    .error(format!("Unrecognized option to $bucketAuto: {name}")));
            }
        }
    }
    let (Some(group_by), Some(buckets)) = (group_by, buckets) else {
        return Err(PipelineFault::BucketAutoIncomplete
            .error("$bucketAuto requires 'groupBy' and 'buckets' to be specified"));
    };
    if fields.is_empty() {
        fields.push(("count".to_owned(), AccumulatorCall::counting()));
    }
    let specification =
        Arc::new(Specification { group_by, buckets, granularity, fields, order: scope.text_order().clone() });
    Ok(Arc::new(BucketAuto { specification }))
}

fn parse_group_by(value: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    let is_expression = match value {
        RawValue::String(text) => text.starts_with('$'),
        RawValue::Document(operator) => match operator.iter().next() {
            Some(first) => first?.0.starts_with('$'),
            None => false,
        },
        _ => false,
    };
    if !is_expression {
        return Err(PipelineFault::BucketAutoGroupByNotExpression.error(format!(
            "The $bucketAuto 'groupBy' field must be defined as a $-prefixed path or an expression object, but found: {}",
            shell_text::value_text(value)
        )));
    }
    Expression::of_pipeline(value, scope)
}

fn parse_count(value: RawValue<'_>) -> Result<u64, QueryError> {
    if !value.is_number() {
        return Err(PipelineFault::BucketAutoCountNotNumber.error(format!(
            "The $bucketAuto 'buckets' field must be a numeric value, but found type: {}",
            value.element_type().alias()
        )));
    }
    let Some(count) = value.as_i64_exact().and_then(|count| i32::try_from(count).ok()) else {
        return Err(PipelineFault::BucketAutoCountNotInt32.error(format!(
            "The $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found {}",
            shell_text::value_text(value)
        )));
    };
    u64::try_from(count).ok().filter(|count| *count > 0).ok_or_else(|| {
        PipelineFault::BucketAutoCountNotPositive
            .error(format!("The $bucketAuto 'buckets' field must be greater than 0, but found: {count}"))
    })
}

fn parse_granularity(value: RawValue<'_>) -> Result<Granularity, QueryError> {
    let RawValue::String(name) = value else {
        return Err(PipelineFault::GranularityNotString.error(format!(
            "The $bucketAuto 'granularity' field must be a string, but found type: {}",
            value.element_type().alias()
        )));
    };
    Granularity::of(name).ok_or_else(|| {
        PipelineFault::GranularityUnknown.error(format!("Unknown rounding granularity '{name}'"))
    })
}

impl Definition for BucketAuto {
    fn memory(&self) -> Memory {
        Memory::Reserved
    }

    fn needs(&self, _behind: Needs) -> Needs {
        let mut needs = Needs::nothing();
        self.specification.group_by.add_needs(&mut needs);
        self.specification.fields.iter().for_each(|(_, call)| call.add_needs(&mut needs));
        needs
    }

    fn start(&self, options: &RunOptions) -> Box<dyn Stage> {
        Box::new(Run {
            specification: Arc::clone(&self.specification),
            sorter: Sorter::new(None, &options.memory),
            reservation: options.memory.account.reserve(),
            count: 0,
            begun: 0,
            next: None,
            boundary: None,
            phase: Phase::Reading,
        })
    }
}

impl Specification {
    /// Puts a document into the sorter, with its value beside it: an expression may not give the same twice.
    fn push(&self, document: &RawDocument, sorter: &mut Sorter, check: Check<'_>) -> Result<(), QueryError> {
        let mut frame = Frame::new(document);
        let value = self.group_by.run(&mut frame)?;
        if self.granularity.is_some() {
            let number = value.as_number().ok_or_else(|| {
                PipelineFault::GranularityOfOther.error(format!(
                    "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a value with type: {}",
                    value.type_name()
                ))
            })?;
            check_number(number)?;
        }
        let (mut key, mut pair) = (Vec::new(), Vec::with_capacity(document.as_bytes().len() + 32));
        self.order.encode(value.raw_or_null(), Direction::Ascending, &mut key, &mut TypeBits::discarded());
        let mut writer = DocumentWriter::begin(&mut pair);
        writer.append("v", value.raw_or_null());
        writer.append("d", RawValue::Document(document));
        writer.finish();
        sorter.push(&key, &[], &pair, check)
    }
}

/// Refuses numbers that no granularity rounds.
fn check_number(number: Number) -> Result<(), QueryError> {
    if number.is_nan() {
        return Err(PipelineFault::GranularityOfNan
            .error("$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a NaN"));
    }
    let zero = RawValue::Int32(0);
    if compare_values(number.to_raw(), zero) == Ordering::Less {
        return Err(PipelineFault::GranularityOfNegative.error(
            "$bucketAuto can specify a 'granularity' with non-negative numbers only, but found a negative number",
        ));
    }
    Ok(())
}

/// A bucket under way.
struct Bucket {
    states: Vec<Box<dyn Accumulator>>,
    bytes: usize,
    first: Literal,
    last: Literal,
}

impl Run {
    fn pull(&mut self, check: Check<'_>) -> Result<(), QueryError> {
        self.next = match self.sorter.next(check)? {
            None => None,
            Some(sorted) => {
                let pair = RawDocument::from_bytes(sorted.document)?;
                let document = match pair.get("d")? {
                    Some(RawValue::Document(document)) => document,
                    _ => RawDocument::empty(),
                };
                Some(Valued {
                    value: Literal::new(pair.get("v")?.unwrap_or(RawValue::Null)),
                    document: Bytes::copy_from_slice(document.as_bytes()),
                })
            }
        };
        Ok(())
    }

    /// Moves the next document into a bucket.
    fn take(&mut self, bucket: &mut Bucket, check: Check<'_>) -> Result<(), QueryError> {
        let Some(Valued { value, document }) = self.next.take() else { return Ok(()) };
        let mut frame = Frame::new(RawDocument::from_bytes(&document)?);
        for ((_, call), state) in self.specification.fields.iter().zip(&mut bucket.states) {
            let before = state.held_bytes();
            call.feed(&mut **state, &mut frame, 1)?;
            bucket.bytes = bucket.bytes + state.held_bytes() - before;
        }
        hold_value(&mut self.reservation, bucket.bytes, "$bucketAuto")?;
        bucket.last = value;
        check()?;
        self.pull(check)
    }

    /// Moves documents into a bucket while their values are wanted.
    fn take_while(
        &mut self,
        bucket: &mut Bucket,
        check: Check<'_>,
        is_wanted: impl Fn(RawValue<'_>) -> bool,
    ) -> Result<(), QueryError> {
        while self.next.as_ref().is_some_and(|next| is_wanted(next.value.raw())) {
            self.take(bucket, check)?;
        }
        Ok(())
    }

    fn begin(&self) -> Result<Option<Bucket>, QueryError> {
        let Some(next) = &self.next else { return Ok(None) };
        let fields = &self.specification.fields;
        let states: Vec<Box<dyn Accumulator>> =
            fields.iter().map(|(_, call)| call.start(RawValue::Null)).collect::<Result<_, _>>()?;
        Ok(Some(Bucket { states, bytes: 0, first: next.value.clone(), last: next.value.clone() }))
    }

    fn bucket(&mut self, check: Check<'_>) -> Result<Option<Bytes>, QueryError> {
        let Some(mut bucket) = self.begin()? else { return Ok(None) };
        self.begun += 1;
        let is_last = self.begun == self.specification.buckets;
        let share = if is_last { u64::MAX } else { self.share() };
        let mut taken = 0;
        while taken < share && self.next.is_some() {
            self.take(&mut bucket, check)?;
            taken += 1;
        }
        let specification = Arc::clone(&self.specification);
        let (min, max) = match &specification.granularity {
            Some(granularity) => self.rounded(granularity, &mut bucket, check)?,
            None => {
                let last = bucket.last.clone();
                self.take_while(&mut bucket, check, |value| specification.order.is_equal(value, last.raw()))?;
                let max = self.next.as_ref().map_or(&bucket.last, |next| &next.value).clone();
                (bucket.first.clone(), max)
            }
        };
        self.boundary = Some(max.clone());
        self.reservation.shrink_to(0);
        self.write(bucket, &min, &max).map(Some)
    }

    /// The documents of a bucket beside those that are left over: half of one counts as one.
    fn share(&self) -> u64 {
        let buckets = self.specification.buckets;
        let rounded = self.count / buckets + u64::from(self.count % buckets >= buckets.div_ceil(2));
        rounded.max(1)
    }

    /// The rounded boundaries of a bucket. It takes all documents below the upper one.
    fn rounded(
        &mut self,
        granularity: &Granularity,
        bucket: &mut Bucket,
        check: Check<'_>,
    ) -> Result<(Literal, Literal), QueryError> {
        let is_zero = |value: RawValue<'_>| Number::from_value(value).is_some_and(|number| number.is_zero());
        let mut max = granularity.rounded(bucket.last.raw(), Towards::Greater);
        if is_zero(max.raw()) {
            // Zero is not rounded: the bucket ends right before the first number that is greater.
            self.take_while(bucket, check, is_zero)?;
            if let Some(next) = &self.next {
                max = granularity.rounded(next.value.raw(), Towards::Less);
            }
        }
        self.take_while(bucket, check, |value| compare_values(value, max.raw()) == Ordering::Less)?;
        let min = match self.boundary.take() {
            Some(boundary) => boundary,
            None => granularity.rounded(bucket.first.raw(), Towards::Less),
        };
        Ok((min, max))
    }

    fn write(&self, bucket: Bucket, min: &Literal, max: &Literal) -> Result<Bytes, QueryError> {
        let mut bytes = Vec::with_capacity(64 + bucket.bytes);
        let mut writer = DocumentWriter::begin(&mut bytes);
        let mut id = writer.document("_id");
        id.append("min", min.raw());
        id.append("max", max.raw());
        id.finish();
        // A field of the output may be named `_id` again, as in MongoDB.
        for ((name, _), state) in self.specification.fields.iter().zip(&bucket.states) {
            writer.append(name, state.finish()?.raw_or_null());
        }
        writer.finish();
        Ok(Bytes::from(bytes))
    }
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        if self.phase == Phase::Reading {
            let (sorter, count) = (&mut self.sorter, &mut self.count);
            let specification = &self.specification;
            input.for_each(&mut |document, check| {
                specification.push(document, sorter, check)?;
                *count += 1;
                Ok(Flow::More)
            })?;
            self.phase = Phase::Giving;
            self.pull(&mut || input.check())?;
        }
        input.check()?;
        self.bucket(&mut || input.check())
    }
}
