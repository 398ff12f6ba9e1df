//! `$mergeObjects`: one document of all fields; of two with one name, the later value counts, in the
//! earlier's place.

use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError, check_computed_bytes};
use crate::merged_fields::MergedFields;

pub(super) static MERGE_OBJECTS: Definition = Definition { name: "$mergeObjects", arity: Arity::Any, run };

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let (mut merged, mut bytes) = (MergedFields::default(), 0);
    for index in 0..call.len() {
        let value = call.argument(index, frame)?;
        match value.as_array() {
            // Only an array that stands alone is looked into.
            Some(array) if call.len() == 1 => {
                for element in array.iter() {
                    merge(&Evaluated::Raw(element?), &mut merged, &mut bytes)?;
                }
            }
            _ => merge(&value, &mut merged, &mut bytes)?,
        }
    }
    Ok(Evaluated::Document(merged.to_document()))
}

fn merge(value: &Evaluated<'_>, merged: &mut MergedFields, bytes: &mut usize) -> Result<(), QueryError> {
    if value.is_nullish() {
        return Ok(());
    }
    let Some(document) = value.as_document() else {
        return Err(ExpressionFault::MergeNotObject.error(format!(
            "$mergeObjects requires object inputs, but input {} is of type {}",
            value.shell_text(),
            value.type_name()
        )));
    };
    *bytes += document.as_bytes().len();
    check_computed_bytes(*bytes)?;
    for field in document.iter() {
        let (name, value) = field?;
        merged.insert(name, value);
    }
    Ok(())
}
