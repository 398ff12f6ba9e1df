//! `$unwind`: one document for each element of an array.
//!
//! A value that is no array counts as an array of itself. Missing, null and empty arrays give no document,
//! or, with `preserveNullAndEmptyArrays`, the document as it is (without the field if the array was empty).

use std::sync::Arc;

use pando_catalog::Bytes;
use pando_document::{DocumentWriter, RawDocument, RawValue};

use super::{Definition, RunOptions, Source, Stage, document_in};
use crate::error::QueryError;
use crate::expression::FieldPath;
use crate::literal::Literal;
use crate::pipeline::PipelineFault;

/// The rule for documents without elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WithoutElements {
    Drop,
    Preserve,
}

#[derive(Clone, Debug)]
struct Unwind {
    path: FieldPath,
    index_path: Option<FieldPath>,
    without_elements: WithoutElements,
}

struct Run {
    definition: Unwind,
    current: Option<Unwinding>,
}

/// A document whose elements are given one by one.
struct Unwinding {
    bytes: Bytes,
    elements: Vec<Literal>,
    /// Elements that were given.
    given: usize,
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

impl Definition for Unwind {
    fn start(&self, _: &RunOptions) -> Box<dyn Stage> {
        Box::new(Run { definition: self.clone(), current: None })
    }
}

impl Stage for Run {
    fn next(&mut self, input: &mut dyn Source) -> Result<Option<Bytes>, QueryError> {
        loop {
            if let Some(current) = &mut self.current {
                if let Some(element) = current.elements.get(current.given) {
                    let index = i64::try_from(current.given).unwrap_or(i64::MAX);
                    current.given += 1;
                    let root = document_in(&current.bytes)?;
                    return self
                        .definition
                        .write(root, Some(element.raw()), RawValue::Int64(index))
                        .map(Some);
                }
                self.current = None;
            }
            let Some(bytes) = input.next()? else { return Ok(None) };
            let root = document_in(&bytes)?;
            let value = value_at(root, self.definition.path.names())?;
            match value {
                Some(RawValue::Array(array)) if !array.is_empty() => {
                    let mut elements = Vec::new();
                    for element in array.iter() {
                        elements.push(Literal::new(element?));
                    }
                    self.current = Some(Unwinding { bytes, elements, given: 0 });
                }
                None | Some(RawValue::Array(_) | RawValue::Null | RawValue::Undefined) => {
                    if self.definition.without_elements == WithoutElements::Preserve {
                        let kept = value.filter(|value| value.as_array().is_none());
                        // Where the path leads nowhere, what stands in its way stays as it is.
                        return match value {
                            None => self.definition.write_index(bytes.to_vec(), RawValue::Null).map(Some),
                            Some(_) => self.definition.write(root, kept, RawValue::Null).map(Some),
                        };
                    }
                }
                Some(single) => return self.definition.write(root, Some(single), RawValue::Null).map(Some),
            }
        }
    }
}

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
    fn write(
        &self,
        root: &RawDocument,
        value: Option<RawValue<'_>>,
        index: RawValue<'_>,
    ) -> Result<Bytes, QueryError> {
        self.write_index(put(root, self.path.names(), value)?, index)
    }

    /// The document with the index of its element, where that is asked for.
    fn write_index(&self, mut bytes: Vec<u8>, index: RawValue<'_>) -> Result<Bytes, QueryError> {
        if let Some(path) = &self.index_path {
            bytes = put(RawDocument::from_bytes(&bytes)?, path.names(), Some(index))?;
        }
        Ok(Bytes::from(bytes))
    }
}

/// A document with another value at a path, or with none; documents on the way are made.
fn put(root: &RawDocument, names: &[String], value: Option<RawValue<'_>>) -> Result<Vec<u8>, QueryError> {
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
    if !is_found && value.is_some() {
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
