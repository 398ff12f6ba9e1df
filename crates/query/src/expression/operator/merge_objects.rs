//! `$mergeObjects`: one document of all fields; of two with one name, the later value counts, in the
//! earlier's place.

use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError, check_computed_bytes};
use crate::merged_fields::MergedFields;
use crate::shell_text;

pub(super) static MERGE_OBJECTS: Definition = Definition { name: "$mergeObjects", arity: Arity::Any, run };

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let mut merged = MergedFields::default();
    let mut bytes = 0;
    for index in 0..call.len() {
        let value = call.argument(index, frame)?;
        if value.is_nullish() {
            continue;
        }
        let Some(document) = value.as_document() else {
            return Err(ExpressionFault::MergeNotObject.error(format!(
                "$mergeObjects requires object inputs, but input {} is of type {}",
                shell_text::value_text(value.raw_or_null()),
                value.type_name()
            )));
        };
        bytes += document.as_bytes().len();
        check_computed_bytes(bytes)?;
        for field in document.iter() {
            let (name, value) = field?;
            merged.insert(name, value);
        }
    }
    Ok(Evaluated::Document(merged.to_document()))
}
