//! The paths of a filter, changed to those that the same values have in front of a stage.

use pando_document::{DocumentWriter, RawDocument, RawDocumentBuf, RawValue};

use crate::error::QueryError;

/// Whether a stage makes null of a missing field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pipeline) enum Nulls {
    /// A value is missing behind the stage where it is missing in front of it.
    Kept,
    /// It may be null behind the stage where it is missing in front of it: tests that tell the two apart
    /// stay.
    OfMissing,
}

/// The name of a path in front of a stage; `None` where the value is another one there.
pub(in crate::pipeline) type Renaming<'r> = &'r dyn Fn(&str) -> Option<String>;

/// The filter with other paths; `None` where it asks for something that cannot be renamed.
pub(in crate::pipeline) fn renamed(
    filter: &RawDocument,
    renaming: Renaming<'_>,
    nulls: Nulls,
) -> Result<Option<RawDocumentBuf>, QueryError> {
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    for field in filter {
        let (name, value) = field?;
        if let ("$and" | "$or" | "$nor", RawValue::Array(clauses)) = (name, value) {
            let mut list = writer.array(name);
            for clause in clauses.iter() {
                let Some(clause) = clause?.as_document() else { return Ok(None) };
                let Some(clause) = renamed(clause, renaming, nulls)? else { return Ok(None) };
                list.push_document(&clause);
            }
            list.finish();
            continue;
        }
        if name.starts_with('$') || (nulls == Nulls::OfMissing && !sees_values_only(value)?) {
            return Ok(None);
        }
        let Some(new) = renaming(name) else { return Ok(None) };
        writer.append(&new, value);
    }
    writer.finish();
    Ok(Some(RawDocumentBuf::from_vec(bytes)?))
}

/// Whether a condition holds for null where it holds for a missing value.
fn sees_values_only(condition: RawValue<'_>) -> Result<bool, QueryError> {
    let RawValue::Document(operators) = condition else { return Ok(true) };
    for operator in operators {
        match operator? {
            ("$exists" | "$type" | "$expr" | "$jsonSchema" | "$elemMatch" | "$all", _) => return Ok(false),
            ("$not", inner) if !sees_values_only(inner)? => return Ok(false),
            _ => {}
        }
    }
    Ok(true)
}

/// The filter in front of a stage that puts the document of a field in the place of the whole: it also lets
/// through the documents of which the stage complains.
pub(in crate::pipeline) fn with_root_check(
    filter: &RawDocument,
    root: &str,
) -> Result<RawDocumentBuf, QueryError> {
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    let mut clauses = writer.array("$or");
    clauses.push_document(filter);
    let is_array = super::single("$type", RawValue::String("array"))?;
    clauses.push_document(&super::single(root, RawValue::Document(&is_array))?);
    let is_document = super::single("$type", RawValue::String("object"))?;
    let is_other = super::single("$not", RawValue::Document(&is_document))?;
    clauses.push_document(&super::single(root, RawValue::Document(&is_other))?);
    clauses.finish();
    writer.finish();
    Ok(RawDocumentBuf::from_vec(bytes)?)
}
