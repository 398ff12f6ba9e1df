//! `$setWindowFields`: each document gets fields that are computed over a window of documents around it.
//!
//! 1. All documents go through the external sorter, by partition and then by the order ([`reader`]). Without
//!    both they keep their order.
//! 2. The partitions come one after the other. Each output field has a [`function`] with bounds of its own
//!    ([`bounds`]). It gives the value of one document after the other ([`running`], [`windowed`],
//!    [`two_stacks`]).
//! 3. The values take the places of the output fields, as `$addFields` puts them.
//!
//! Invariants: the documents that no window looks at any more are let go. Those that are held, and the
//! states, are reserved; a window that does not fit into memory is an error.

mod bounds;
mod function;
mod reader;
mod running;
mod two_stacks;
mod windowed;

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

use pando_catalog::Bytes;
use pando_collation::TextOrder;
use pando_document::{RawDocument, RawValue};
use pando_keyorder::{Direction, TypeBits};

use self::bounds::SortField;
use self::function::Function;
use self::reader::Reader;
use self::running::Running;
use super::{
    Definition, FilterInFront, Flow, Gathering, Memory, RunOptions, Sink, Source, Stage, same_stage,
};
use crate::error::{ErrorCode, QueryError};
use crate::expression::{Evaluated, Expression, FieldPath, ParseScope};
use crate::needs::Needs;
use crate::pipeline::PipelineFault;
use crate::pipeline::optimiser::{self, Nulls, lie_apart};
use crate::pipeline::wanted_metadata::check_order;
use crate::projection::Projection;
use crate::sort::{Check, SortPattern};

/// A parsed `$setWindowFields`.
#[derive(Clone, Debug)]
struct SetWindowFields {
    specification: Arc<Specification>,
}

#[derive(Debug)]
struct Specification {
    partition: Option<Expression>,
    /// The order of strings, which says which partitions are equal.
    text_order: TextOrder,
    order: Option<SortPattern>,
    functions: Vec<Function>,
    /// The paths of the output fields.
    outputs: Vec<String>,
    /// Puts the values of the functions into a document.
    output: Projection,
}

struct Run {
    specification: Arc<Specification>,
    reader: Reader,
    phase: Phase,
    /// Buffers for all documents: one as it was read, its values, and as it is given.
    root: Vec<u8>,
    values: Vec<Evaluated<'static>>,
    given: Vec<u8>,
}

enum Phase {
    Reading,
    /// Between two partitions.
    Between,
    /// Within a partition: the functions, and the number of the next document.
    Within(Vec<Running>, usize),
    Ended,
}

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Arc<dyn Definition>, QueryError> {
    let RawValue::Document(specification) = argument else {
        return Err(QueryError::failed_to_parse(format!(
            "the $setWindowFields stage specification must be an object, found {}",
            argument.element_type().alias()
        )));
    };
    let (mut partition, mut order, mut output) = (None, None, None);
    for field in specification.iter() {
        match field? {
            ("partitionBy", value) => partition = Some(value),
            ("sortBy", value) => order = Some(wanted_document("sortBy", value)?),
            ("output", value) => output = Some(wanted_document("output", value)?),
            (other, _) => {
                return Err(QueryError::new(
                    ErrorCode::IdlUnknownField,
                    format!("BSON field '$setWindowFields.{other}' is an unknown field."),
                ));
            }
        }
    }
    let Some(output) = output else {
        return Err(QueryError::new(
            ErrorCode::IdlFailedToParse,
            "BSON field '$setWindowFields.output' is missing but a required field",
        ));
    };
    let partition = partition.map(|partition| parse_partition(partition, scope)).transpose()?;
    let Output { functions, order, outputs, output } = parse_output(output, order, scope)?;
    let text_order = scope.text_order().clone();
    Ok(Arc::new(SetWindowFields {
        specification: Arc::new(Specification { partition, text_order, order, functions, outputs, output }),
    }))
}

fn wanted_document<'v>(name: &str, value: RawValue<'v>) -> Result<&'v RawDocument, QueryError> {
    value.as_document().ok_or_else(|| {
        QueryError::type_mismatch(format!(
            "BSON field '$setWindowFields.{name}' is the wrong type '{}', expected type 'object'",
            value.element_type().alias()
        ))
    })
}

fn parse_partition(value: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    let partition = Expression::of_pipeline(value, scope)?;
    match partition.as_constant() {
        Some(RawValue::Array(_)) => Err(partition_is_array()),
        _ => Ok(partition),
    }
}

fn partition_is_array() -> QueryError {
    QueryError::type_mismatch("An expression used to partition cannot evaluate to value of type array")
}

/// The output fields, and the order of their windows.
struct Output {
    functions: Vec<Function>,
    order: Option<SortPattern>,
    outputs: Vec<String>,
    output: Projection,
}

fn parse_output(
    output: &RawDocument,
    sort_by: Option<&RawDocument>,
    scope: &ParseScope,
) -> Result<Output, QueryError> {
    let order = sort_by.filter(|order| !order.is_empty()).map(SortPattern::parse).transpose()?;
    let order = order.map(|order| order.collated_by(scope.text_order()));
    order.as_ref().map_or(Ok(()), |order| check_order(order, scope))?;
    let parts = order.as_ref().map_or(&[][..], SortPattern::parts);
    let single = match parts {
        [part] => Some(FieldPath::parse(part.path.as_str())?),
        _ => None,
    };
    let sort = SortField {
        single: single.as_ref(),
        is_given: sort_by.is_some(),
        is_ascending: parts.iter().all(|part| part.direction == Direction::Ascending),
    };
    let (mut functions, mut paths) = (Vec::new(), Vec::new());
    for field in output.iter() {
        let (path, rule) = field?;
        FieldPath::parse(path)?;
        functions.push(Function::parse(path, rule, sort, scope)?);
        paths.push(path);
    }
    let output = Projection::of_slots(&paths).map_err(|_| {
        PipelineFault::WindowOutputsConflict
            .error("$setWindowFields 'output' specification contains two conflicting paths")
    })?;
    let outputs = paths.into_iter().map(str::to_owned).collect();
    Ok(Output { functions, order, outputs, output })
}

/// The value of a sort field as expressions see it.
fn sort_value<'a>(path: &FieldPath, root: &'a RawDocument) -> Result<Evaluated<'a>, QueryError> {
    path.evaluate(root)
}

/// Whether a path is a field or lies within it.
fn path_within(path: &str, field: &str) -> bool {
    path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl Specification {
    /// The top-level fields whose values tell partitions from each other.
    fn partition_fields(&self) -> Vec<&str> {
        // A regular expression tells texts apart that a collation holds equal.
        match &self.partition {
            Some(partition) if self.text_order.is_simple() => partition.top_level_fields(),
            _ => Vec::new(),
        }
    }

    /// The fields of a document that is sorted already: its partition and its place follow from the sort key.
    fn needs_of_sorted(&self, mut behind: Needs) -> Needs {
        self.functions.iter().for_each(|function| function.add_needs(&mut behind));
        behind
    }

    /// Appends the order-preserving key of a document's partition.
    fn append_partition_key(&self, document: &RawDocument, key: &mut Vec<u8>) -> Result<(), QueryError> {
        let Some(partition) = &self.partition else { return Ok(()) };
        let value = partition.evaluate(document)?;
        if value.as_array().is_some() {
            return Err(partition_is_array());
        }
        self.text_order.encode(value.raw_or_null(), Direction::Ascending, key, &mut TypeBits::discarded());
        Ok(())
    }
}

impl Definition for SetWindowFields {
    fn memory(&self) -> Memory {
        Memory::Reserved
    }

    /// Its sort takes in the sort of another part of the documents.
    fn gathers(&self) -> bool {
        true
    }

    fn lets_filters_pass(&self) -> bool {
        self.specification.partition.is_some()
    }

    /// A filter of the partition's field alone leaves out whole partitions.
    fn filter_in_front(
        &self,
        filter: &RawDocument,
        paths: &BTreeSet<String>,
    ) -> Result<FilterInFront, QueryError> {
        let fields = self.specification.partition_fields();
        let is_of_partition = !paths.is_empty()
            && paths.iter().all(|path| {
                let within = |field: &&str| path_within(path, field);
                fields.iter().any(within) && self.specification.outputs.iter().all(|out| lie_apart(out, path))
            });
        // A missing field is in one partition with null, and so are values of which only the type differs.
        let same = |path: &str| Some(path.to_owned());
        match is_of_partition && optimiser::renamed(filter, &same, Nulls::OfMissing)?.is_some() {
            true => Ok(FilterInFront::Same),
            false => Ok(FilterInFront::None),
        }
    }

    fn needs(&self, behind: Needs) -> Needs {
        let specification = &self.specification;
        let mut needs = specification.needs_of_sorted(behind);
        if let Some(partition) = &specification.partition {
            partition.add_needs(&mut needs);
        }
        let order = specification.order.as_ref().map_or(&[][..], SortPattern::parts);
        order.iter().for_each(|part| needs.add(part.path.as_str()));
        needs
    }

    fn start(&self, options: &RunOptions) -> Box<dyn Stage> {
        self.start_for(options, &Needs::Everything)
    }

    fn start_for(&self, options: &RunOptions, behind: &Needs) -> Box<dyn Stage> {
        let needs = self.specification.needs_of_sorted(behind.clone());
        Box::new(Run {
            specification: Arc::clone(&self.specification),
            reader: Reader::new(&self.specification, &options.memory, needs.fields()),
            phase: Phase::Reading,
            root: Vec::new(),
            values: Vec::new(),
            given: Vec::new(),
        })
    }
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        self.read(input)?;
        let is_given = self.give(&mut || input.check())?;
        Ok(is_given.then(|| Bytes::copy_from_slice(&self.given)))
    }

    fn for_each(&mut self, input: &mut dyn Source, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        self.read(input)?;
        while self.give(&mut || input.check())? {
            if sink(RawDocument::from_bytes(&self.given)?, &mut || input.check())? == Flow::Enough {
                break;
            }
        }
        Ok(())
    }

    fn gathering(&mut self) -> Option<&mut dyn Gathering> {
        Some(self)
    }
}

impl Gathering for Run {
    fn gather(&mut self, input: &mut dyn Source) -> Result<(), QueryError> {
        input.for_each(&mut |document, check| {
            self.reader.take(document, check)?;
            Ok(Flow::More)
        })?;
        self.reader.settle();
        Ok(())
    }

    /// Documents of equal keys stay in the order of the input: those of the later run come behind.
    fn absorb(&mut self, later: &mut dyn Gathering, check: Check<'_>) -> Result<(), QueryError> {
        self.reader.absorb(&mut same_stage::<Run>(later).reader, check)
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

impl Run {
    /// Reads the whole input.
    fn read(&mut self, input: &mut dyn Source) -> Result<(), QueryError> {
        if matches!(self.phase, Phase::Reading) {
            self.gather(input)?;
            self.phase = Phase::Between;
        }
        Ok(())
    }

    /// Makes the next document with its fields; false behind the last.
    fn give(&mut self, check: Check<'_>) -> Result<bool, QueryError> {
        check()?;
        let Run { specification, reader, phase, root, values, given } = self;
        loop {
            match phase {
                Phase::Reading | Phase::Ended => return Ok(false),
                Phase::Between => {
                    *phase = match reader.begin_partition(check)? {
                        true => Phase::Within(specification.functions.iter().map(Running::new).collect(), 0),
                        false => Phase::Ended,
                    };
                }
                Phase::Within(functions, next) => {
                    let at = *next;
                    let Some(document) = reader.document(at, check)? else {
                        *phase = Phase::Between;
                        continue;
                    };
                    root.clear();
                    root.extend_from_slice(document.as_bytes());
                    *next += 1;
                    let root = RawDocument::from_bytes(root)?;
                    values.clear();
                    for function in &mut *functions {
                        values.push(function.value(at, root, reader, check)?);
                    }
                    let needed = functions.iter().map(Running::first_needed).min();
                    reader.release_before(needed.unwrap_or(usize::MAX).min(at + 1));
                    reader.reserve_with(functions.iter().map(Running::held_bytes).sum())?;
                    given.clear();
                    specification.output.fill_slots(root, values, given)?;
                    return Ok(true);
                }
            }
        }
    }
}
