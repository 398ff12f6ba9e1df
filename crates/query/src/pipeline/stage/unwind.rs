//! `$unwind`: one document for each element of an array.
//!
//! A value that is no array counts as an array of itself. Missing, null and empty arrays give no document,
//! or, with `preserveNullAndEmptyArrays`, the document as it is (without the field if the array was empty).

use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::{Document, DocumentWriter, RawArray, RawDocument, RawValue};

use super::{Check, Definition, Flow, Nesting, RunOptions, Sink, Source, Stage, document_in, pulled};
use crate::error::QueryError;
use crate::expression::FieldPath;
use crate::needs::Needs;
use crate::pipeline::PipelineFault;
use crate::pipeline::optimiser::{leaves_alone, lie_apart};

/// The rule for documents without elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WithoutElements {
    Drop,
    Preserve,
}

#[derive(Clone, Debug)]
pub(in crate::pipeline) struct Unwind {
    path: FieldPath,
    index_path: Option<FieldPath>,
    without_elements: WithoutElements,
}

struct Run {
    definition: Unwind,
    /// The top-level fields that are looked at behind this stage; `None` for all.
    kept: Option<Vec<String>>,
    current: Option<Unwinding>,
    /// The document at hand; one buffer for all.
    written: Vec<u8>,
    /// Documents given since the last check.
    unchecked: u32,
}

/// Documents that are given between two checks whether the operation has to end. A document of several arrays
/// may become billions of documents.
const GIVEN_A_CHECK: u32 = 64;

/// A document of which some elements were given.
struct Unwinding {
    bytes: Bytes,
    given: Given,
}

/// The values of the field that is unwound, one for each document.
#[derive(Clone, Copy, Debug)]
pub(in crate::pipeline) enum UnwoundValues<'d> {
    /// No document.
    None,
    /// One document, with this value or without the field.
    One(Option<RawValue<'d>>),
    /// One for each element.
    Elements(&'d RawArray),
}

/// How far the elements of an array were given.
#[derive(Clone, Copy, Debug, Default)]
struct Given {
    elements: i64,
    /// Where the next element begins in the array's bytes; zero for the first.
    offset: usize,
}

/// The outcome of giving a document's elements to a sink.
enum Outcome {
    /// All were given.
    All(Flow),
    /// The sink had enough before the last.
    Some(Given),
}

pub(super) fn parse(argument: RawValue<'_>) -> Result<Arc<dyn Definition>, QueryError> {
    let mut path = None;
    let mut unwind_index = None;
    let mut without_elements = WithoutElements::Drop;
    match argument {
        RawValue::String(text) => path = Some(text),
        RawValue::Document(options) => {
            for option in options.iter() {
                match option? {
                    ("path", RawValue::String(text)) => path = Some(text),
                    ("path", other) => {
                        return Err(PipelineFault::UnwindPathNotString.error(format!(
                            "expected a string as the path for $unwind stage, got {}",
                            other.element_type().alias()
                        )));
                    }
                    ("preserveNullAndEmptyArrays", RawValue::Boolean(true)) => {
                        without_elements = WithoutElements::Preserve;
                    }
                    ("preserveNullAndEmptyArrays", RawValue::Boolean(false)) => {}
                    ("preserveNullAndEmptyArrays", other) => {
                        return Err(PipelineFault::UnwindPreserveNotBoolean.error(format!(
                            "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage, got {}",
                            other.element_type().alias()
                        )));
                    }
                    ("includeArrayIndex", value) => unwind_index = Some(parse_index_path(value)?),
                    (name, _) => {
                        return Err(PipelineFault::UnwindUnknownOption
                            .error(format!("unrecognized option to $unwind stage: {name}")));
                    }
                }
            }
        }
        other => {
            return Err(PipelineFault::UnwindNotObject.error(format!(
                "expected either a string or an object as specification for $unwind stage, got {}",
                other.element_type().alias()
            )));
        }
    }
    let Some(path) = path.filter(|path| !path.is_empty()) else {
        return Err(PipelineFault::UnwindWithoutPath.error("no path specified to $unwind stage"));
    };
    let Some(path) = path.strip_prefix('$') else {
        return Err(PipelineFault::UnwindNotPath
            .error(format!("path option to $unwind stage should be prefixed with a '$': {path}")));
    };
    let path = FieldPath::parse(path)?;
    Ok(Arc::new(Unwind { path, index_path: unwind_index, without_elements }))
}

fn parse_index_path(value: RawValue<'_>) -> Result<FieldPath, QueryError> {
    let text = match value {
        RawValue::String(text) if !text.is_empty() => text,
        other => {
            return Err(PipelineFault::UnwindIndexNotString.error(format!(
                "expected a non-empty string for the includeArrayIndex  option to $unwind stage, got {}",
                other.element_type().alias()
            )));
        }
    };
    if text.starts_with('$') {
        return Err(PipelineFault::UnwindIndexIsPath.error(format!(
            "includeArrayIndex option to $unwind stage should not be prefixed with a '$': {text}"
        )));
    }
    FieldPath::parse(text)
}

impl Unwind {
    /// The path of the array.
    pub fn path(&self) -> String {
        self.path.text().to_string()
    }

    /// The path of the elements' numbers.
    pub fn index_path(&self) -> Option<String> {
        self.index_path.as_ref().map(|path| path.text().to_string())
    }

    /// The field of the array, where it is one at the top and no numbers of elements are wanted.
    pub fn plain_field(&self) -> Option<&str> {
        match (self.path.names(), &self.index_path) {
            ([name], None) => Some(name),
            _ => None,
        }
    }

    /// The values of the [plain field](Unwind::plain_field) in the documents that become of one.
    pub fn elements<'d>(&self, root: &'d RawDocument, field: &str) -> Result<UnwoundValues<'d>, QueryError> {
        Ok(match root.get(field)? {
            Some(RawValue::Array(array)) if !array.is_empty() => UnwoundValues::Elements(array),
            None | Some(RawValue::Array(_) | RawValue::Null | RawValue::Undefined) if !self.preserves() => {
                UnwoundValues::None
            }
            None | Some(RawValue::Array(_)) => UnwoundValues::One(None),
            Some(single) => UnwoundValues::One(Some(single)),
        })
    }

    /// The options, for `explain`.
    pub fn shown(&self) -> Document {
        let mut shown = Document::new();
        shown.push("path", format!("${}", self.path.text()));
        shown.push("preserveNullAndEmptyArrays", self.preserves());
        shown
    }

    /// Whether a document without elements goes on.
    pub fn preserves(&self) -> bool {
        self.without_elements == WithoutElements::Preserve
    }
}

impl Definition for Unwind {
    fn looks_at_each_alone(&self) -> bool {
        true
    }

    fn nesting(&self) -> Nesting {
        Nesting::Kept
    }

    fn as_unwind(&self) -> Option<&Unwind> {
        Some(self)
    }

    fn start(&self, options: &RunOptions) -> Box<dyn Stage> {
        self.start_for(options, &Needs::Everything)
    }

    fn start_for(&self, _: &RunOptions, behind: &Needs) -> Box<dyn Stage> {
        let kept = behind.fields().map(|fields| fields.into_iter().map(str::to_owned).collect());
        Box::new(Run { definition: self.clone(), kept, current: None, written: Vec::new(), unchecked: 0 })
    }

    fn is_transparent(&self) -> bool {
        true
    }

    fn passes(&self, path: &str) -> bool {
        lie_apart(&self.path.text(), path)
            && self.index_path.as_ref().is_none_or(|index| leaves_alone(&index.text(), path))
    }

    fn needs(&self, mut behind: Needs) -> Needs {
        behind.add(&self.path.text());
        behind
    }
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        pulled(self, input)
    }

    fn for_each(&mut self, input: &mut dyn Source, sink: &mut Sink<'_>) -> Result<(), QueryError> {
        let Run { definition, kept, current, written, unchecked } = self;
        if let Some(begun) = current {
            let root = document_in(&begun.bytes)?;
            match definition.unwind(root, kept.as_deref(), begun.given, written, &mut |document| {
                check_sometimes(unchecked, &mut || input.check())?;
                sink(document, &mut || input.check())
            })? {
                Outcome::Some(given) => {
                    begun.given = given;
                    return Ok(());
                }
                Outcome::All(flow) => {
                    *current = None;
                    if flow == Flow::Enough {
                        return Ok(());
                    }
                }
            }
        }
        input.for_each(&mut |root, check| {
            let mut give = |document: &RawDocument| {
                check_sometimes(unchecked, &mut *check)?;
                sink(document, &mut *check)
            };
            match definition.unwind(root, kept.as_deref(), Given::default(), written, &mut give)? {
                Outcome::All(flow) => Ok(flow),
                Outcome::Some(given) => {
                    // The rest is wanted later, when the input has moved on.
                    *current = Some(Unwinding { bytes: Bytes::copy_from_slice(root.as_bytes()), given });
                    Ok(Flow::Enough)
                }
            }
        })
    }
}

/// Checks before each [`GIVEN_A_CHECK`]th document.
fn check_sometimes(unchecked: &mut u32, check: Check<'_>) -> Result<(), QueryError> {
    *unchecked += 1;
    if *unchecked < GIVEN_A_CHECK {
        return Ok(());
    }
    *unchecked = 0;
    check()
}

/// Gives a document on.
type Give<'g> = dyn FnMut(&RawDocument) -> Result<Flow, QueryError> + 'g;

/// The value at a path through documents only.
fn value_at<'d>(root: &'d RawDocument, names: &[String]) -> Result<Option<RawValue<'d>>, QueryError> {
    let mut document = root;
    for (depth, name) in names.iter().enumerate() {
        match document.get(name)? {
            Some(value) if depth + 1 == names.len() => return Ok(Some(value)),
            Some(RawValue::Document(nested)) => document = nested,
            _ => return Ok(None),
        }
    }
    Ok(None)
}

impl Unwind {
    /// Gives the documents of one document, from some element on, to a sink. `written` is a buffer.
    fn unwind(
        &self,
        root: &RawDocument,
        kept: Option<&[String]>,
        from: Given,
        written: &mut Vec<u8>,
        sink: &mut Give<'_>,
    ) -> Result<Outcome, QueryError> {
        let value = value_at(root, self.path.names())?;
        let alone =
            |bytes: Vec<u8>, sink: &mut Give<'_>| sink(RawDocument::from_bytes(&bytes)?).map(Outcome::All);
        match value {
            Some(RawValue::Array(array)) if !array.is_empty() => {
                self.unwind_array(root, array, kept, from, written, sink)
            }
            None | Some(RawValue::Array(_) | RawValue::Null | RawValue::Undefined) => {
                if self.without_elements == WithoutElements::Drop {
                    return Ok(Outcome::All(Flow::More));
                }
                let kept = value.filter(|value| value.as_array().is_none());
                match value {
                    // Where the path leads nowhere, what stands in its way stays as it is.
                    None => alone(self.with_index(root.as_bytes().to_vec(), RawValue::Null)?, sink),
                    Some(_) => alone(self.with_value(root, kept, RawValue::Null)?, sink),
                }
            }
            Some(single) => alone(self.with_value(root, Some(single), RawValue::Null)?, sink),
        }
    }

    /// Gives a document for each element. Where the array is a top-level field and no index is wanted, the
    /// fields before and behind it are put together once, and each element between them.
    fn unwind_array(
        &self,
        root: &RawDocument,
        array: &RawArray,
        kept: Option<&[String]>,
        from: Given,
        written: &mut Vec<u8>,
        sink: &mut Give<'_>,
    ) -> Result<Outcome, QueryError> {
        let frame = match (self.path.names(), &self.index_path) {
            ([name], None) => Some((name, Frame::around(root, name, kept)?)),
            _ => None,
        };
        let mut elements = match from.offset {
            0 => array.as_document().iter(),
            offset => array.as_document().iter_from(offset),
        };
        let mut given = from;
        while let Some(element) = elements.next() {
            let (_, element) = element?;
            match &frame {
                Some((name, frame)) => frame.write(name, element, written),
                None => *written = self.with_value(root, Some(element), RawValue::Int64(given.elements))?,
            }
            given = Given { elements: given.elements + 1, offset: elements.offset() };
            if sink(RawDocument::from_bytes(written)?)? == Flow::Enough {
                // The last element may have been the last of all; then the next call finds that out.
                return Ok(Outcome::Some(given));
            }
        }
        Ok(Outcome::All(Flow::More))
    }

    fn with_value(
        &self,
        root: &RawDocument,
        value: Option<RawValue<'_>>,
        index: RawValue<'_>,
    ) -> Result<Vec<u8>, QueryError> {
        self.with_index(put(root, self.path.names(), value)?, index)
    }

    /// The document with the index of its element, where that is asked for.
    fn with_index(&self, bytes: Vec<u8>, index: RawValue<'_>) -> Result<Vec<u8>, QueryError> {
        match &self.index_path {
            Some(path) => put(RawDocument::from_bytes(&bytes)?, path.names(), Some(index)),
            None => Ok(bytes),
        }
    }
}

/// The fields of a document around the one that is unwound, as far as they are looked at.
#[derive(Default)]
struct Frame {
    before: Vec<u8>,
    behind: Vec<u8>,
}

impl Frame {
    fn around(root: &RawDocument, name: &str, kept: Option<&[String]>) -> Result<Frame, QueryError> {
        let (mut frame, mut is_behind) = (Frame::default(), false);
        if kept.is_some_and(|kept| kept.iter().all(|kept| kept == name)) {
            return Ok(frame);
        }
        let bytes = root.as_bytes();
        let mut fields = root.iter();
        loop {
            let start = fields.offset();
            let Some(field) = fields.next() else { return Ok(frame) };
            let (known, _) = field?;
            if known == name && !is_behind {
                is_behind = true;
            } else if kept.is_none_or(|kept| kept.iter().any(|kept| kept == known)) {
                let side = if is_behind { &mut frame.behind } else { &mut frame.before };
                side.extend_from_slice(&bytes[start..fields.offset()]);
            }
        }
    }

    fn write(&self, name: &str, element: RawValue<'_>, out: &mut Vec<u8>) {
        out.clear();
        let mut writer = DocumentWriter::begin(out);
        writer.append_raw_fields(&self.before);
        writer.append(name, element);
        writer.append_raw_fields(&self.behind);
        writer.finish();
    }
}

/// A document with another value at a path, or with none. Documents on the way are made, also in the places
/// of arrays and of other values.
pub(super) fn put(
    root: &RawDocument,
    names: &[String],
    value: Option<RawValue<'_>>,
) -> Result<Vec<u8>, QueryError> {
    let mut bytes = Vec::with_capacity(root.as_bytes().len() + 16);
    let mut writer = DocumentWriter::begin(&mut bytes);
    put_into(root, names, value, &mut writer)?;
    writer.finish();
    Ok(bytes)
}

fn put_into(
    document: &RawDocument,
    names: &[String],
    value: Option<RawValue<'_>>,
    writer: &mut DocumentWriter<'_>,
) -> Result<(), QueryError> {
    let [name, below @ ..] = names else { unreachable!("a path has at least one name") };
    let mut is_found = false;
    for element in document.iter() {
        let (known, old) = element?;
        if known != name || is_found {
            writer.append(known, old);
            continue;
        }
        is_found = true;
        put_field(name, old.as_document().unwrap_or(RawDocument::empty()), below, value, writer)?;
    }
    if !is_found && (value.is_some() || !below.is_empty()) {
        put_field(name, RawDocument::empty(), below, value, writer)?;
    }
    Ok(())
}

fn put_field(
    name: &str,
    old: &RawDocument,
    below: &[String],
    value: Option<RawValue<'_>>,
    writer: &mut DocumentWriter<'_>,
) -> Result<(), QueryError> {
    if !below.is_empty() {
        let mut nested = writer.document(name);
        put_into(old, below, value, &mut nested)?;
        nested.finish();
    } else if let Some(value) = value {
        writer.append(name, value);
    }
    Ok(())
}
