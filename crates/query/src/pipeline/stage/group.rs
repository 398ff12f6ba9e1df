//! `$group`: documents with equal keys become one document of accumulated values.
//!
//! 1. Evaluate `_id` of each document. Missing is null. Of an object of several expressions a missing member
//!    is left out, which is the group of undefined and another one than null; of an object of one it is null
//!    (observed on MongoDB 6.0).
//! 2. The order-preserving key bytes of that value name the group, so 1, 1.0 and NumberLong(1) are one; the
//!    group shows the value that it was made with.
//! 3. Feed the accumulators. At the end of the input give the groups in the order in which they were met.
//!
//! Invariants: groups and their accumulators together hold at most 100 MB, unless disk use is allowed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::{DocumentWriter, RawDocument, RawValue};
use pando_keyorder::{Direction, TypeBits, encode};

use super::{Definition, RunOptions, Source, Stage, document_in};
use crate::error::{ErrorCode, QueryError};
use crate::expression::accumulator::Accumulator;
use crate::expression::{Evaluated, Expression, Frame, ParseScope, document_of};
use crate::literal::Literal;
use crate::pipeline::PipelineFault;
use crate::pipeline::accumulator::AccumulatorCall;
use crate::sort::{DiskUse, MEMORY_BYTES_MAX};

/// A parsed `$group`.
#[derive(Clone, Debug)]
pub(super) struct Group {
    specification: Arc<Specification>,
}

#[derive(Debug)]
struct Specification {
    id: GroupId,
    fields: Vec<(String, AccumulatorCall)>,
}

#[derive(Debug)]
enum GroupId {
    Expression(Expression),
    Members(Vec<(String, Expression)>),
}

struct Run {
    specification: Arc<Specification>,
    disk_use: DiskUse,
    places: HashMap<Vec<u8>, usize>,
    groups: Vec<OneGroup>,
    bytes: usize,
    key: Vec<u8>,
    phase: Phase,
}

struct OneGroup {
    id: Literal,
    states: Vec<Box<dyn Accumulator>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Reading,
    /// The group to give next.
    Giving(usize),
}

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Arc<dyn Definition>, QueryError> {
    let RawValue::Document(specification) = argument else {
        return Err(PipelineFault::GroupNotObject.error("a group's fields must be specified in an object"));
    };
    let mut id = None;
    let mut fields = Vec::new();
    // Everything is parsed before anything is folded: that is the order of MongoDB's errors.
    let (folded, scope) = (scope, &scope.as_written());
    for element in specification.iter() {
        let (name, value) = element?;
        if name == "_id" {
            if id.replace(parse_id(value, scope)?).is_some() {
                return Err(PipelineFault::GroupTwoIds.error("a group's _id may only be specified once"));
            }
        } else {
            fields.push((name.to_owned(), parse_field(name, value, scope)?));
        }
    }
    let Some(id) = id else {
        return Err(PipelineFault::GroupWithoutId.error("a group specification must include an _id"));
    };
    let id = id.folded_in(folded)?;
    let fields = fields
        .into_iter()
        .map(|(name, call): (String, AccumulatorCall)| Ok((name, call.folded_in(folded)?)))
        .collect::<Result<_, QueryError>>()?;
    Ok(Arc::new(Group { specification: Arc::new(Specification { id, fields }) }))
}

/// The group that counts the documents of each value of an expression, as `count`.
pub(super) fn counting(id: RawValue<'_>, scope: &ParseScope) -> Result<Group, QueryError> {
    let id = GroupId::Expression(Expression::of_pipeline(id, scope)?);
    Ok(by_expression(id, vec![("count".to_owned(), AccumulatorCall::counting())]))
}

/// A group by an expression that is parsed already.
pub(super) fn by(id: Expression, fields: Vec<(String, AccumulatorCall)>) -> Group {
    by_expression(GroupId::Expression(id), fields)
}

fn by_expression(id: GroupId, fields: Vec<(String, AccumulatorCall)>) -> Group {
    Group { specification: Arc::new(Specification { id, fields }) }
}

fn parse_id(value: RawValue<'_>, scope: &ParseScope) -> Result<GroupId, QueryError> {
    let RawValue::Document(members) = value else {
        return Ok(GroupId::Expression(Expression::of_pipeline(value, scope)?));
    };
    let is_operator = match members.iter().next() {
        Some(first) => first?.0.starts_with('$'),
        None => true,
    };
    if is_operator {
        return Ok(GroupId::Expression(Expression::of_pipeline(value, scope)?));
    }
    let mut parsed = Vec::new();
    for member in members.iter() {
        let (name, value) = member?;
        if value.is_number() || matches!(value, RawValue::Boolean(_)) {
            return Err(
                PipelineFault::GroupIdInclusion.error("$group does not support inclusion-style expressions")
            );
        }
        crate::expression::check_member_name(name)?;
        parsed.push((name.to_owned(), Expression::of_pipeline(value, scope)?));
    }
    Ok(GroupId::Members(parsed))
}

/// One field of `$group`, or of the output of `$bucket`: `{$accumulator: argument}`.
pub(super) fn parse_field(
    name: &str,
    value: RawValue<'_>,
    scope: &ParseScope,
) -> Result<AccumulatorCall, QueryError> {
    let accumulator = match value {
        RawValue::Document(accumulator) if begins_with_operator(accumulator)? => accumulator,
        _ => {
            return Err(PipelineFault::GroupFieldNotObject
                .error(format!("The field '{name}' must be an accumulator object")));
        }
    };
    if name.contains('.') {
        return Err(
            PipelineFault::GroupFieldDotted.error(format!("The field name '{name}' cannot contain '.'"))
        );
    }
    if name.starts_with('$') {
        return Err(PipelineFault::GroupFieldIsOperator
            .error(format!("The field name '{name}' cannot be an operator name")));
    }
    let mut calls = accumulator.iter();
    let (Some(call), None) = (calls.next(), calls.next()) else {
        return Err(PipelineFault::GroupFieldTwoAccumulators
            .error(format!("The field '{name}' must specify one accumulator")));
    };
    let (operator, argument) = call?;
    AccumulatorCall::parse(operator, argument, scope)
}

fn begins_with_operator(accumulator: &RawDocument) -> Result<bool, QueryError> {
    match accumulator.iter().next() {
        Some(first) => Ok(first?.0.starts_with('$')),
        None => Ok(false),
    }
}

impl GroupId {
    fn folded_in(self, scope: &ParseScope) -> Result<GroupId, QueryError> {
        Ok(match self {
            GroupId::Expression(expression) => GroupId::Expression(expression.folded_in(scope)?),
            GroupId::Members(members) => GroupId::Members(
                members
                    .into_iter()
                    .map(|(name, member)| Ok((name, member.folded_in(scope)?)))
                    .collect::<Result<_, QueryError>>()?,
            ),
        })
    }

    /// The value on one document; appends the bytes that tell its group from others to `key`.
    fn evaluate<'a>(&'a self, frame: &mut Frame<'a>, key: &mut Vec<u8>) -> Result<Evaluated<'a>, QueryError> {
        let mut append = |value: RawValue<'_>| encode(value, Direction::Ascending, key, &mut TypeBits::new());
        match self {
            GroupId::Expression(expression) => {
                let value = expression.run(frame)?;
                append(value.raw_or_null());
                Ok(value)
            }
            GroupId::Members(members) => document_of(|writer| {
                for (name, member) in members {
                    let value = member.run(frame)?;
                    let shown = if members.len() == 1 { Some(value.raw_or_null()) } else { value.raw() };
                    append(shown.unwrap_or(RawValue::Undefined));
                    if let Some(shown) = shown {
                        writer.append(name, shown);
                    }
                }
                Ok(())
            }),
        }
    }
}

impl Definition for Group {
    fn start(&self, options: &RunOptions) -> Box<dyn Stage> {
        Box::new(Run {
            specification: Arc::clone(&self.specification),
            disk_use: options.disk_use,
            places: HashMap::new(),
            groups: Vec::new(),
            bytes: 0,
            key: Vec::new(),
            phase: Phase::Reading,
        })
    }
}

impl Run {
    fn take(&mut self, root: &RawDocument) -> Result<(), QueryError> {
        let specification = Arc::clone(&self.specification);
        self.key.clear();
        let mut frame = Frame::new(root);
        let id = specification.id.evaluate(&mut frame, &mut self.key)?;
        let id = id.raw_or_null();
        let place = match self.places.get(&self.key) {
            Some(place) => *place,
            None => self.new_group(id),
        };
        let group = &mut self.groups[place];
        for ((_, call), state) in specification.fields.iter().zip(&mut group.states) {
            let before = state.held_bytes();
            call.feed(state.as_mut(), &mut frame)?;
            self.bytes = self.bytes + state.held_bytes() - before;
        }
        self.check_memory()
    }

    fn new_group(&mut self, id: RawValue<'_>) -> usize {
        let place = self.groups.len();
        let states: Vec<_> = self.specification.fields.iter().map(|(_, call)| call.start()).collect();
        // The key stands for the size of the value as well.
        self.bytes += 2 * self.key.len() + size_of::<OneGroup>() + 64 * (states.len() + 1);
        self.groups.push(OneGroup { id: Literal::new(id), states });
        if let Entry::Vacant(vacant) = self.places.entry(self.key.clone()) {
            vacant.insert(place);
        }
        place
    }

    fn check_memory(&self) -> Result<(), QueryError> {
        if self.bytes <= MEMORY_BYTES_MAX || self.disk_use == DiskUse::Allowed {
            return Ok(());
        }
        Err(QueryError::new(
            ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed,
            "Exceeded memory limit for $group, but didn't allow external sort. Pass allowDiskUse:true to opt in.",
        ))
    }

    fn write(&mut self, place: usize) -> Result<Bytes, QueryError> {
        let group = &mut self.groups[place];
        let mut bytes = Vec::with_capacity(64);
        let mut writer = DocumentWriter::begin(&mut bytes);
        writer.append("_id", group.id.raw());
        for ((name, _), state) in self.specification.fields.iter().zip(&mut group.states) {
            writer.append(name, state.finish()?.raw_or_null());
        }
        writer.finish();
        Ok(Bytes::from(bytes))
    }
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        if self.phase == Phase::Reading {
            while let Some(bytes) = input.next()? {
                self.take(document_in(&bytes)?)?;
            }
            self.places = HashMap::new();
            self.phase = Phase::Giving(0);
        }
        let Phase::Giving(place) = self.phase else { return Ok(None) };
        if place == self.groups.len() {
            return Ok(None);
        }
        self.phase = Phase::Giving(place + 1);
        self.write(place).map(Some)
    }
}
