//! `$graphLookup`: each document gets an array of the documents of another collection that can be reached
//! from it, by steps from a value to the documents whose field equals it.
//!
//! # Steps for one document
//! 1. The *frontier* begins with the value of `startWith`, or its elements.
//! 2. One search finds the documents whose `connectToField` equals a value of the frontier and that
//!    `restrictSearchWithMatch` accepts. The planner can use an index.
//! 3. A document with a new `_id` is kept, with the number of its step. The values of its `connectFromField`
//!    that were not searched yet make the next frontier.
//! 4. It ends with an empty frontier, or behind `maxDepth` steps.
//!
//! The documents stand in the array in the order in which they were found. MongoDB's order is any.

use std::collections::HashSet;
use std::sync::Arc;

use pando_catalog::{Bytes, Reservation};
use pando_collation::TextOrder;
use pando_document::{
    ArrayWriter, Document, DocumentWriter, RawArray, RawDocument, RawDocumentBuf, RawValue,
};
use pando_keyorder::{Direction, TypeBits};

use super::lookup::{KEPT_BYTES, with_array};
use super::unwind::put;
use super::values_at_path::for_each_value;
use super::{Definition, Memory, RunOptions, Searches, Source, Stage, document_in};
use crate::error::QueryError;
use crate::expression::{Evaluated, Expression, FieldPath, ParseScope, truncated};
use crate::filter::Filter;
use crate::memory::{MEMORY_BYTES_MAX, hold_value};
use crate::needs::Needs;
use crate::pipeline::PipelineFault;
use crate::pipeline::optimiser::leaves_alone;
use crate::pipeline::searches_shown::show;
use crate::shell_text;

/// Bytes that a value of the frontier takes beside its own.
const VALUE_OVERHEAD: usize = 64;

#[derive(Clone, Debug)]
struct GraphLookup {
    specification: Arc<Specification>,
}

#[derive(Debug)]
struct Specification {
    from: String,
    target: String,
    start_with: Expression,
    connect_from: FieldPath,
    connect_to: String,
    depth_field: Option<FieldPath>,
    /// Steps behind the first.
    depth_max: Option<u64>,
    restriction: Option<RawDocumentBuf>,
    scope: ParseScope,
}

struct Run {
    specification: Arc<Specification>,
    reservation: Reservation,
    /// Drawn, and not answered yet: the other collection may have said `WouldBlock`.
    pending: Option<Bytes>,
    /// The work in the other collection, where the run is measured.
    searches: Option<Searches>,
}

/// The fields of the stage as they are read.
#[derive(Default)]
struct Options<'o> {
    from: Option<&'o str>,
    target: Option<&'o str>,
    start_with: Option<Expression>,
    connect_from: Option<&'o str>,
    connect_to: Option<&'o str>,
    depth_field: Option<&'o str>,
    depth_max: Option<u64>,
    restriction: Option<&'o RawDocument>,
}

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Arc<dyn Definition>, QueryError> {
    let RawValue::Document(text) = argument else {
        return Err(QueryError::failed_to_parse(format!(
            "the $graphLookup stage specification must be an object, but found {}",
            argument.element_type().alias()
        )));
    };
    check_from(text)?;
    let options = Options::read(text, scope)?;
    let (Some(from), Some(target), Some(start_with), Some(connect_from), Some(connect_to)) = (
        options.from,
        options.target.filter(|path| !path.is_empty()),
        options.start_with,
        options.connect_from.filter(|path| !path.is_empty()),
        options.connect_to.filter(|path| !path.is_empty()),
    ) else {
        return Err(PipelineFault::GraphLookupIncomplete.error(
            "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField' to be specified.",
        ));
    };
    FieldPath::parse(target)?;
    FieldPath::parse(connect_to)?;
    let depth_field = options.depth_field.map(FieldPath::parse).transpose()?;
    Ok(Arc::new(GraphLookup {
        specification: Arc::new(Specification {
            from: from.to_owned(),
            target: target.to_owned(),
            start_with,
            connect_from: FieldPath::parse(connect_from)?,
            connect_to: connect_to.to_owned(),
            depth_field,
            depth_max: options.depth_max,
            restriction: options.restriction.map(RawDocument::to_owned),
            scope: scope.clone(),
        }),
    }))
}

/// The collection is looked at before all other fields.
fn check_from(text: &RawDocument) -> Result<(), QueryError> {
    match text.get("from")? {
        Some(RawValue::String(_)) => Ok(()),
        Some(other) => Err(QueryError::failed_to_parse(format!(
            "$graphLookup 'from' field must be a string, but found {}",
            other.element_type().alias()
        ))),
        None => Err(QueryError::failed_to_parse(format!(
            "missing 'from' option to $graphLookup stage specification: {}",
            shell_text::value_text(RawValue::Document(text))
        ))),
    }
}

impl<'o> Options<'o> {
    fn read(text: &'o RawDocument, scope: &ParseScope) -> Result<Options<'o>, QueryError> {
        let mut read = Options::default();
        for option in text.iter() {
            let (name, value) = option?;
            match (name, value) {
                ("startWith", value) => read.start_with = Some(Expression::of_pipeline(value, scope)?),
                ("maxDepth", value) => read.depth_max = Some(depth_of(value)?),
                ("restrictSearchWithMatch", RawValue::Document(filter)) => {
                    Filter::parse(filter, scope).map_err(|error| {
                        error.prefixed("Failed to parse 'restrictSearchWithMatch' option to $graphLookup :: caused by :: ")
                    })?;
                    read.restriction = Some(filter);
                }
                ("restrictSearchWithMatch", other) => {
                    return Err(PipelineFault::GraphLookupMatchNotObject.error(format!(
                        "restrictSearchWithMatch must be an object, found {}",
                        other.element_type().alias()
                    )));
                }
                ("from", RawValue::String(name)) => read.from = Some(name),
                ("as", RawValue::String(path)) => read.target = Some(path),
                ("connectFromField", RawValue::String(path)) => read.connect_from = Some(path),
                ("connectToField", RawValue::String(path)) => read.connect_to = Some(path),
                ("depthField", RawValue::String(path)) => read.depth_field = Some(path),
                ("from" | "as" | "connectFromField" | "connectToField" | "depthField", other) => {
                    return Err(PipelineFault::GraphLookupNotString.error(format!(
                        "expected string as argument for {name}, found: {}",
                        other.element_type().alias()
                    )));
                }
                (name, _) => {
                    return Err(PipelineFault::GraphLookupUnknownOption
                        .error(format!("Unknown argument to $graphLookup: {name}")));
                }
            }
        }
        Ok(read)
    }
}

fn depth_of(value: RawValue<'_>) -> Result<u64, QueryError> {
    let Some(number) = Evaluated::Raw(value).as_number() else {
        return Err(PipelineFault::GraphLookupDepthNotNumeric
            .error(format!("maxDepth must be numeric, found type: {}", value.element_type().alias())));
    };
    let truncated = truncated(number).unwrap_or(i64::MAX);
    if truncated < 0 {
        return Err(PipelineFault::GraphLookupDepthNegative
            .error(format!("maxDepth requires a nonnegative argument, found: {truncated}")));
    }
    match value.as_i64_exact().and_then(|depth| u64::try_from(depth).ok()) {
        Some(depth) => Ok(depth),
        None => Err(PipelineFault::GraphLookupDepthNotInteger
            .error(format!("maxDepth could not be represented as a long long: {truncated}"))),
    }
}

/// The search from one document.
struct Walk<'w> {
    specification: &'w Specification,
    reservation: &'w mut Reservation,
    /// Key bytes of the `_id`s that were found, and of the values that were searched.
    found: HashSet<Box<[u8]>>,
    searched: HashSet<Box<[u8]>>,
    frontier: Vec<RawDocumentBuf>,
    held_bytes: usize,
}

fn key_of(value: RawValue<'_>, order: &TextOrder) -> Box<[u8]> {
    let mut key = Vec::new();
    order.encode(value, Direction::Ascending, &mut key, &mut TypeBits::discarded());
    key.into_boxed_slice()
}

impl Walk<'_> {
    /// Adds a value to the frontier, unless it was searched.
    fn add(&mut self, value: RawValue<'_>) -> Result<(), QueryError> {
        let key = key_of(value, self.specification.scope.text_order());
        if self.searched.contains(&key) {
            return Ok(());
        }
        let one = crate::array_build::build_array([value]);
        self.hold(key.len() + one.as_bytes().len() + VALUE_OVERHEAD)?;
        self.searched.insert(key);
        self.frontier.push(one);
        Ok(())
    }

    /// Adds the value of a field, or its elements.
    fn add_elements(&mut self, value: RawValue<'_>) -> Result<(), QueryError> {
        self.add_at(value, &[])
    }

    /// Adds the values at a path, through arrays.
    fn add_at(&mut self, value: RawValue<'_>, names: &[String]) -> Result<(), QueryError> {
        for_each_value(value, names, &mut |value| self.add(value))
    }

    fn hold(&mut self, more: usize) -> Result<(), QueryError> {
        self.held_bytes += more;
        if self.held_bytes > MEMORY_BYTES_MAX {
            return Err(
                PipelineFault::GraphLookupTooLarge.error("$graphLookup reached maximum memory consumption")
            );
        }
        hold_value(self.reservation, self.held_bytes, "$graphLookup")
    }

    /// The filter of the next step.
    fn filter(&mut self) -> Result<Filter, QueryError> {
        let frontier = std::mem::take(&mut self.frontier);
        let mut has_null = false;
        let mut bytes = Vec::new();
        let mut writer = DocumentWriter::begin(&mut bytes);
        let mut clauses = writer.array("$and");
        if let Some(restriction) = &self.specification.restriction {
            clauses.push(RawValue::Document(restriction));
        }
        let mut clause = clauses.document();
        let mut condition = clause.document(&self.specification.connect_to);
        let mut wanted = condition.array("$in");
        for one in &frontier {
            for value in RawArray::from_document(one).iter() {
                let value = value?;
                has_null |= matches!(value, RawValue::Null);
                wanted.push(value);
            }
        }
        wanted.finish();
        if has_null {
            // Neither a missing field nor `undefined` is null here, as in MongoDB.
            condition.append("$exists", RawValue::Boolean(true));
            let mut excluded = condition.document("$not");
            excluded.append("$type", RawValue::String("undefined"));
            excluded.finish();
        }
        condition.finish();
        clause.finish();
        clauses.finish();
        writer.finish();
        Filter::parse(&RawDocumentBuf::from_vec(bytes)?, &self.specification.scope)
    }

    /// Appends all documents that are reached.
    fn run(&mut self, array: &mut ArrayWriter<'_>, input: &mut dyn Source) -> Result<(), QueryError> {
        let specification = self.specification;
        let order = specification.scope.text_order();
        let mut depth: u64 = 0;
        while !self.frontier.is_empty() && specification.depth_max.is_none_or(|most| depth <= most) {
            input.check()?;
            let filter = self.filter()?;
            let shown_depth = RawValue::Int64(i64::try_from(depth).unwrap_or(i64::MAX));
            input.find_in(&specification.from, &filter, &mut |document| {
                let key = key_of(document.get("_id")?.unwrap_or(RawValue::Null), order);
                if self.found.contains(&key) {
                    return Ok(());
                }
                self.hold(key.len() + document.as_bytes().len() + VALUE_OVERHEAD)?;
                self.found.insert(key);
                self.add_at(RawValue::Document(document), specification.connect_from.names())?;
                match &specification.depth_field {
                    Some(path) => array.push_document_bytes(&put(document, path.names(), Some(shown_depth))?),
                    None => array.push_document_bytes(document.as_bytes()),
                }
                Ok(())
            })?;
            depth += 1;
        }
        Ok(())
    }
}

impl Definition for GraphLookup {
    fn memory(&self) -> Memory {
        Memory::Reserved
    }

    fn is_transparent(&self) -> bool {
        true
    }

    fn passes(&self, path: &str) -> bool {
        leaves_alone(&self.specification.target, path)
    }

    fn is_one_to_one(&self) -> bool {
        true
    }

    fn needs(&self, mut behind: Needs) -> Needs {
        self.specification.start_with.add_needs(&mut behind);
        behind
    }

    fn start(&self, options: &RunOptions) -> Box<dyn Stage> {
        Box::new(Run {
            specification: Arc::clone(&self.specification),
            reservation: options.memory.account.reserve(),
            pending: None,
            searches: options.clock.as_ref().map(|_| Searches::default()),
        })
    }
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        if self.pending.is_none() {
            self.pending = input.next()?;
        }
        let Some(bytes) = self.pending.clone() else { return Ok(None) };
        let root = document_in(&bytes)?;
        let mut walk = Walk {
            specification: &self.specification,
            reservation: &mut self.reservation,
            found: HashSet::new(),
            searched: HashSet::new(),
            frontier: Vec::new(),
            held_bytes: 0,
        };
        if let Some(value) = self.specification.start_with.evaluate(root)?.raw() {
            walk.add_elements(value)?;
        }
        let mut array = Vec::with_capacity(64);
        let mut writer = ArrayWriter::begin(&mut array);
        walk.run(&mut writer, input)?;
        writer.finish();
        if let Some(searches) = &mut self.searches {
            searches.add(input.take_searches());
        }
        self.pending = None;
        let answer = with_array(root, &self.specification.target, array);
        self.reservation.shrink_to(KEPT_BYTES);
        answer.map(Some)
    }

    fn explain(&self, shown: &mut Document) {
        show(self.searches.as_ref(), shown);
    }
}
