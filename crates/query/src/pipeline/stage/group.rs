//! `$group`: documents with equal keys become one document of accumulated values.
//!
//! 1. Evaluate `_id` of each document. Missing is null. Of an object of several expressions a missing member
//!    is left out, which is the group of undefined and another one than null; of an object of one it is null
//!    (observed on MongoDB 6.0).
//! 2. The order-preserving key bytes of that value name the group, so 1, 1.0 and NumberLong(1) are one; the
//!    group shows the value that it was made with.
//! 3. Feed the accumulators. At the end of the input give the groups ([`table`]).
//!
//! A group that has taken in a `$sort` keeps the ends of that order ([`ends`]). One that has taken in an
//! `$unwind` feeds the elements of each document, and reads the fields beside them once.
//!
//! Invariants: without disk use, groups and their accumulators together hold at most 100 MB.

mod columns;
mod ends;
mod keys;
mod table;

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

use pando_catalog::Bytes;
use pando_collation::TextOrder;
use pando_document::{Document, RawDocument, RawDocumentBuf, RawValue, doc};
use pando_keyorder::{Direction, TypeBits};

use self::keys::Hashing;
use self::table::Table;
use super::unwind::Unwind;
use super::{
    Check, Definition, FilterInFront, Flow, Gathering, Memory, RunOptions, Sink, Source, Stage, same_stage,
};
use crate::error::QueryError;
use crate::expression::accumulator::Accumulator;
use crate::expression::{Evaluated, Expression, Frame, ParseScope, document_of};
use crate::needs::{Needs, first_name};
use crate::pipeline::PipelineFault;
use crate::pipeline::accumulator::{AccumulatorCall, Takes};
use crate::pipeline::measured::long;
use crate::pipeline::optimiser::{self, Nulls};
use crate::plan::GroupEnds;
use crate::sort::SortPattern;

/// A parsed `$group`.
#[derive(Clone, Debug)]
pub(super) struct Group {
    specification: Arc<Specification>,
    /// The stage that says the same, where it was written as another one.
    equivalent: Option<RawDocumentBuf>,
    /// The group as it was before it took in a sort.
    sorted: Option<Arc<Specification>>,
}

#[derive(Debug)]
struct Specification {
    id: GroupId,
    fields: Vec<GroupField>,
    /// The order of strings, which says which keys are equal.
    order: TextOrder,
    /// The order of a sort that was taken in.
    sort: Option<Arc<SortPattern>>,
    unwinding: Option<Unwinding>,
    hashing: Hashing,
}

/// An `$unwind` that was taken in.
#[derive(Debug)]
struct Unwinding {
    unwind: Unwind,
    field: String,
    id_reads: Reads,
}

/// Whether an expression reads the field that is unwound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    /// It may, or may fail: it is evaluated for each element.
    Element,
    /// It reads other fields only.
    Rest,
}

#[derive(Debug)]
struct GroupField {
    name: String,
    call: AccumulatorCall,
    takes: Takes,
    reads: Reads,
}

#[derive(Clone, Debug)]
enum GroupId {
    Expression(Expression),
    Members(Vec<(String, Expression)>),
}

struct Run {
    specification: Arc<Specification>,
    table: Table,
    /// Bytes of the documents that were given.
    given_bytes: u64,
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
    Ok(Arc::new(of(id, fields, scope.text_order())))
}

/// The group that counts the documents of each value of an expression, as `count`.
pub(super) fn counting(id: RawValue<'_>, scope: &ParseScope) -> Result<Group, QueryError> {
    let equivalent = doc! { "$group": { "_id": (id.to_owned()), "count": { "$sum": 1 } } }.to_raw();
    let id = GroupId::Expression(Expression::of_pipeline(id, scope)?);
    let group = of(id, vec![("count".to_owned(), AccumulatorCall::counting())], scope.text_order());
    Ok(Group { equivalent: Some(equivalent), ..group })
}

/// A group by an expression that is parsed already.
pub(super) fn by(id: Expression, fields: Vec<(String, AccumulatorCall)>, scope: &ParseScope) -> Group {
    of(GroupId::Expression(id), fields, scope.text_order())
}

fn of(id: GroupId, fields: Vec<(String, AccumulatorCall)>, order: &TextOrder) -> Group {
    let fields = fields.into_iter().map(|(name, call)| {
        let (takes, reads) = (Takes::All, Reads::Element);
        GroupField { name, call, takes, reads }
    });
    let (fields, order) = (fields.collect(), order.clone());
    let (sort, unwinding, hashing) = (None, None, Hashing::default());
    let specification = Specification { id, fields, order, sort, unwinding, hashing };
    Group { specification: Arc::new(specification), equivalent: None, sorted: None }
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
    /// The expression, or those of all members.
    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let (single, members) = match self {
            GroupId::Expression(expression) => (Some(expression), [].as_slice()),
            GroupId::Members(members) => (None, members.as_slice()),
        };
        single.into_iter().chain(members.iter().map(|(_, member)| member))
    }

    /// The only expression, where a missing value of it is null.
    fn single(&self) -> Option<&Expression> {
        match self {
            GroupId::Expression(expression) => Some(expression),
            // Of an object of several members a missing one is left out.
            GroupId::Members(members) => match members.as_slice() {
                [(_, only)] => Some(only),
                _ => None,
            },
        }
    }

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
    fn evaluate<'a>(
        &'a self,
        frame: &mut Frame<'a>,
        order: &TextOrder,
        key: &mut Vec<u8>,
    ) -> Result<Evaluated<'a>, QueryError> {
        let mut append =
            |value: RawValue<'_>| order.encode(value, Direction::Ascending, key, &mut TypeBits::discarded());
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

impl Specification {
    /// The states of a new group.
    fn start(&self, id: RawValue<'_>) -> Result<Vec<Box<dyn Accumulator>>, QueryError> {
        self.fields.iter().map(|field| field.call.start(id)).collect()
    }
}

impl GroupId {
    /// The path in front of the stage that has the value at a path behind it: of the key, or a part of it.
    fn source_of(&self, path: &str) -> Option<String> {
        let below = path.strip_prefix("_id")?;
        let (expression, rest) = match self {
            GroupId::Expression(expression) => (expression, below),
            GroupId::Members(members) => {
                let below = below.strip_prefix('.')?;
                let name = first_name(below);
                (members.iter().find(|(member, _)| member == name).map(|(_, id)| id)?, &below[name.len()..])
            }
        };
        match expression.as_field_path()?.names() {
            [name] if rest.is_empty() || rest.starts_with('.') => Some(format!("{name}{rest}")),
            _ => None,
        }
    }
}

impl Definition for Group {
    /// The ends of an order are not taken in. Where arguments that may fail are spared, each run would
    /// evaluate those of its own first documents.
    fn gathers(&self) -> bool {
        let fields = &self.specification.fields;
        self.specification.sort.is_none() && !fields.iter().any(|field| field.call.spares_failures())
    }

    fn memory(&self) -> Memory {
        Memory::Reserved
    }

    fn lets_filters_pass(&self) -> bool {
        true
    }

    fn filter_in_front(
        &self,
        filter: &RawDocument,
        _: &BTreeSet<String>,
    ) -> Result<FilterInFront, QueryError> {
        let in_front = |path: &str| self.specification.id.source_of(path);
        let renamed = optimiser::renamed(filter, &in_front, Nulls::OfMissing)?;
        Ok(renamed.map_or(FilterInFront::None, FilterInFront::Other))
    }

    fn shown(&self, text: &RawDocument) -> Document {
        let mut shown = Document::from_raw(self.equivalent.as_deref().unwrap_or(text)).unwrap_or_default();
        if let Some(Unwinding { unwind, .. }) = &self.specification.unwinding {
            shown.push("unwinding", unwind.shown());
        }
        if let Some(pattern) = &self.specification.sort {
            shown.push("endsOfSort", RawValue::Document(&pattern.to_document()).to_owned());
        }
        shown
    }

    fn over_unsorted(&self, pattern: &Arc<SortPattern>) -> Option<Arc<dyn Definition>> {
        if self.specification.sort.is_some() || self.specification.unwinding.is_some() {
            return None;
        }
        let of_field = |field: &GroupField| {
            let (takes, call) = field.call.over_unsorted()?;
            Some(GroupField { name: field.name.clone(), call, takes, reads: Reads::Element })
        };
        let fields: Option<Vec<GroupField>> = self.specification.fields.iter().map(of_field).collect();
        let Specification { id, order, .. } = &*self.specification;
        let (id, order) = (id.clone(), order.clone());
        let (sort, unwinding, hashing) = (Some(Arc::clone(pattern)), None, Hashing::default());
        let specification = Specification { id, fields: fields?, order, sort, unwinding, hashing };
        Some(Arc::new(Group {
            specification: Arc::new(specification),
            equivalent: self.equivalent.clone(),
            sorted: Some(Arc::clone(&self.specification)),
        }))
    }

    fn over_elements(&self, unwind: &Unwind) -> Option<Arc<dyn Definition>> {
        let Specification { id, fields, order, sort: None, unwinding: None, .. } = &*self.specification
        else {
            return None;
        };
        let field = unwind.plain_field()?;
        let reads_paths_only = id.expressions().all(Expression::reads_paths_only)
            && fields.iter().all(|field| field.call.reads_paths_only());
        if !reads_paths_only {
            return None;
        }
        let reads = |is_independent| if is_independent { Reads::Rest } else { Reads::Element };
        let is_independent = |id: &Expression| id.never_fails() && !id.reads_field(field);
        let id_reads = reads(id.expressions().all(is_independent));
        let of_field = |of: &GroupField| GroupField {
            name: of.name.clone(),
            call: of.call.clone(),
            takes: of.takes,
            reads: reads(of.call.is_independent_of(field)),
        };
        let specification = Specification {
            id: id.clone(),
            fields: fields.iter().map(of_field).collect(),
            order: order.clone(),
            sort: None,
            unwinding: Some(Unwinding { unwind: unwind.clone(), field: field.to_owned(), id_reads }),
            hashing: Hashing::default(),
        };
        let equivalent = self.equivalent.clone();
        Some(Arc::new(Group { specification: Arc::new(specification), equivalent, sorted: None }))
    }

    fn with_sort_apart(&self) -> Option<(&Arc<SortPattern>, Arc<dyn Definition>)> {
        let pattern = self.specification.sort.as_ref()?;
        let specification = Arc::clone(self.sorted.as_ref()?);
        let apart = Group { specification, equivalent: self.equivalent.clone(), sorted: None };
        Some((pattern, Arc::new(apart)))
    }

    fn group_ends(&self, sort: Option<&SortPattern>) -> Option<GroupEnds> {
        let Specification { id, fields, order, sort: None, unwinding: None, .. } = &*self.specification
        else {
            return None;
        };
        let id = id.single()?;
        let key = match id.as_constant() {
            Some(_) => None,
            None => Some(id.as_field_path()?.text()),
        };
        let mut ends = Vec::with_capacity(fields.len());
        for field in fields {
            ends.push(field.call.group_end(sort)?);
        }
        // Of equal keys that are not the same, such as 1 and 1.0, the first in the order of a sort is given.
        if ends.is_empty() && (key.is_none() || sort.is_some()) {
            return None;
        }
        // `$first` takes the first document that comes, and `$last` the last one.
        ends.sort_by_key(|(turn, _)| *turn);
        let ends = ends.into_iter().map(|(_, end)| end).collect();
        let sees_values_only = self.sees_values_only();
        let sorts_itself = fields.iter().all(|field| field.call.over_unsorted().is_some());
        Some(GroupEnds { key, order: order.clone(), ends, sees_values_only, sorts_itself })
    }

    fn sees_values_only(&self) -> bool {
        let id = self.specification.id.single();
        id.is_some_and(Expression::is_plain)
            && self.specification.sort.is_none()
            && self.specification.unwinding.is_none()
            && self.specification.fields.iter().all(|field| field.call.sees_values_only())
    }

    fn needs(&self, _behind: Needs) -> Needs {
        let mut needs = Needs::nothing();
        self.specification.id.expressions().for_each(|id| id.add_needs(&mut needs));
        if let Some(Unwinding { field, .. }) = &self.specification.unwinding {
            needs.add(field);
        }
        self.specification.fields.iter().for_each(|field| field.call.add_needs(&mut needs));
        if let Some(pattern) = &self.specification.sort {
            pattern.parts().iter().for_each(|part| needs.add(part.path.as_str()));
        }
        needs
    }

    fn start(&self, options: &RunOptions) -> Box<dyn Stage> {
        let specification = Arc::clone(&self.specification);
        let table = Table::new(&specification, &options.memory);
        Box::new(Run { specification, table, given_bytes: 0 })
    }
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        self.read(input)?;
        let mut document = Vec::with_capacity(64);
        let is_there = self.table.write_next(&mut document, &mut || input.check())?;
        self.given_bytes += document.len() as u64;
        Ok(is_there.then(|| Bytes::from(document)))
    }

    fn for_each(&mut self, input: &mut dyn Source, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        // One buffer for all groups.
        let mut document = Vec::with_capacity(64);
        loop {
            self.read(input)?;
            document.clear();
            if !self.table.write_next(&mut document, &mut || input.check())? {
                return Ok(());
            }
            self.given_bytes += document.len() as u64;
            if sink(RawDocument::from_bytes(&document)?, &mut || input.check())? == Flow::Enough {
                return Ok(());
            }
        }
    }

    fn gathering(&mut self) -> Option<&mut dyn Gathering> {
        Some(self)
    }

    fn explain(&self, shown: &mut Document) {
        shown.push("totalOutputDataSizeBytes", long(self.given_bytes));
    }
}

impl Run {
    /// Reads the input, where that is not done, and checks whether the operation has to end.
    fn read(&mut self, input: &mut dyn Source) -> Result<(), QueryError> {
        if !self.table.is_giving() {
            self.gather(input)?;
            self.table.finish(&mut || input.check())?;
        }
        input.check()
    }
}

impl Gathering for Run {
    fn gather(&mut self, input: &mut dyn Source) -> Result<(), QueryError> {
        let Run { table, specification, .. } = self;
        match &specification.unwinding {
            None => input.for_each_run(&mut |document, times, check| table.take(document, times, check)),
            Some(unwinding) => input.for_each(&mut |document, check| {
                table.take_elements(document, unwinding, check)?;
                Ok(Flow::More)
            }),
        }
    }

    fn absorb(&mut self, later: &mut dyn Gathering, check: Check<'_>) -> Result<(), QueryError> {
        self.table.absorb(&mut same_stage::<Run>(later).table, check)
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
