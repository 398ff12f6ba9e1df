//! The names with a `$` that an `_id` may have: those of a reference to a document (a DBRef), `$ref` and
//! `$id` side by side, and `$db` behind them.

use pando_document::{RawDocument, RawValue};

use crate::error::{ErrorCode, QueryError};

/// Checks the `_id` of a replacement, or of the document that an upsert makes. MongoDB looks at its own
/// fields only.
pub(super) fn check_id(id: &RawDocument) -> Result<(), QueryError> {
    let mut before = "";
    let mut fields = id.iter().peekable();
    while let Some(field) = fields.next() {
        let (name, value) = field?;
        match name {
            "$ref" => {
                refuse_unless_string(name, value)?;
                if !matches!(fields.peek(), Some(Ok(("$id", _)))) {
                    return Err(refused("The DBRef $ref field must be followed by a $id field".to_owned()));
                }
            }
            "$id" if before != "$ref" => return Err(misplaced(name, "$ref")),
            "$db" if before != "$id" => return Err(misplaced(name, "$id")),
            "$db" => refuse_unless_string(name, value)?,
            "$id" => {}
            name if name.starts_with('$') => return Err(dollar_prefixed(name, &format!("_id.{name}"))),
            _ => {}
        }
        before = name;
    }
    Ok(())
}

fn refuse_unless_string(name: &str, value: RawValue<'_>) -> Result<(), QueryError> {
    match value {
        RawValue::String(_) => Ok(()),
        other => {
            let found = other.element_type().alias();
            Err(refused(format!("The DBRef {name} field must be a String, not a {found}")))
        }
    }
}

fn misplaced(name: &str, wanted: &str) -> QueryError {
    refused(format!("Found {name} field without a {wanted} before it, which is invalid."))
}

fn refused(message: String) -> QueryError {
    QueryError::new(ErrorCode::InvalidDbRef, message)
}

pub(super) fn dollar_prefixed(name: &str, path: &str) -> QueryError {
    QueryError::new(
        ErrorCode::DollarPrefixedFieldName,
        format!(
            "The dollar ($) prefixed field '{name}' in '{path}' is not allowed in the context of an update's replacement \
             document. Consider using an aggregation pipeline with $replaceWith."
        ),
    )
}
