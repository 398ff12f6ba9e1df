//! A field path of an expression: `a.b.c`.
//!
//! Unlike the paths of filters, it does not index arrays. Through an array it gives an array: if `a` is `[{b:
//! 1}, {b: 2}, 3]`, `a.b` is `[1, 2]`. Elements that lack the field, or are no documents, are left out.

use pando_document::{ArrayWriter, RawArray, RawDocument, RawValue};

use super::evaluated::{Evaluated, array_of};
use super::fault::ExpressionFault;
use crate::error::QueryError;
use crate::field_tables::{Direct, FieldSource};
use crate::path::is_reference_name;

/// A path of at least one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath {
    names: Vec<String>,
}

/// The longest path, in names.
const NAMES_MAX: usize = 200;

impl FieldPath {
    /// Cuts a path at its dots; `text` has no leading `$`.
    pub fn parse(text: &str) -> Result<FieldPath, QueryError> {
        if text.is_empty() {
            return Err(ExpressionFault::EmptyPath.error("FieldPath cannot be constructed with empty string"));
        }
        if text.ends_with('.') {
            return Err(ExpressionFault::PathEndsWithDot.error("FieldPath must not end with a '.'."));
        }
        let mut names = Vec::with_capacity(2);
        for name in text.split('.') {
            if name.is_empty() {
                return Err(
                    ExpressionFault::EmptyPathPart.error("FieldPath field names may not be empty strings.")
                );
            }
            if name.starts_with('$') && !is_reference_name(name) {
                return Err(ExpressionFault::DollarInPath.error(
                    "FieldPath field names may not start with '$'. Consider using $getField or $setField.",
                ));
            }
            if name.contains('\0') {
                return Err(ExpressionFault::NulInPath.error("FieldPath field names may not contain '\0'."));
            }
            names.push(name.to_owned());
        }
        if names.len() > NAMES_MAX {
            return Err(QueryError::new(
                crate::error::ErrorCode::Overflow,
                "FieldPath is too long".to_owned(),
            ));
        }
        Ok(FieldPath { names })
    }

    /// The path of a field of the server's own, whose name a user could not write.
    pub(crate) fn of_name(name: &str) -> FieldPath {
        FieldPath { names: vec![name.to_owned()] }
    }

    /// The first name.
    pub fn first(&self) -> &str {
        &self.names[0]
    }

    /// The names in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The path with its dots.
    pub fn text(&self) -> String {
        self.names.join(".")
    }

    /// The value in a document.
    pub fn evaluate<'a>(&self, root: &'a RawDocument) -> Result<Evaluated<'a>, QueryError> {
        self.evaluate_in(root, Direct)
    }

    /// The value in a document whose fields come from `fields`.
    pub(super) fn evaluate_in<'a>(
        &self,
        root: &'a RawDocument,
        fields: impl FieldSource<'a>,
    ) -> Result<Evaluated<'a>, QueryError> {
        descend(root, &self.names, fields)
    }

    /// The value where that of the first name is known.
    pub(super) fn evaluate_from<'a>(
        &self,
        first: RawValue<'a>,
        fields: impl FieldSource<'a>,
    ) -> Result<Evaluated<'a>, QueryError> {
        match (first, &self.names[1..]) {
            (value, []) => Ok(Evaluated::Raw(value)),
            (RawValue::Document(document), below) => descend(document, below, fields),
            (RawValue::Array(array), below) => array_of(|writer| gather(array, below, fields, writer)),
            _ => Ok(Evaluated::Missing),
        }
    }

    /// The value below any other value.
    pub(super) fn evaluate_below<'a>(
        &self,
        value: RawValue<'a>,
        fields: impl FieldSource<'a>,
    ) -> Result<Evaluated<'a>, QueryError> {
        match value {
            RawValue::Document(document) => descend(document, &self.names, fields),
            RawValue::Array(array) => array_of(|writer| gather(array, &self.names, fields, writer)),
            _ => Ok(Evaluated::Missing),
        }
    }
}

fn descend<'a>(
    root: &'a RawDocument,
    names: &[String],
    fields: impl FieldSource<'a>,
) -> Result<Evaluated<'a>, QueryError> {
    let mut document = root;
    let mut rest = names;
    while let [name, below @ ..] = rest {
        let Some(value) = fields.field(document, name)? else { return Ok(Evaluated::Missing) };
        match value {
            value if below.is_empty() => return Ok(Evaluated::Raw(value)),
            RawValue::Document(nested) => document = nested,
            RawValue::Array(array) => return array_of(|writer| gather(array, below, fields, writer)),
            _ => return Ok(Evaluated::Missing),
        }
        rest = below;
    }
    Ok(Evaluated::Missing)
}

fn gather<'a>(
    array: &'a RawArray,
    names: &[String],
    fields: impl FieldSource<'a>,
    writer: &mut ArrayWriter<'_>,
) -> Result<(), QueryError> {
    for element in array.iter() {
        // Arrays within the array are not entered.
        if let RawValue::Document(document) = element?
            && let Some(value) = descend(document, names, fields)?.raw()
        {
            writer.push(value);
        }
    }
    Ok(())
}
