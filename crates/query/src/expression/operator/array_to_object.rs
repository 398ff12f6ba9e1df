//! `$arrayToObject`: a document from pairs `[key, value]` or objects `{k, v}`; of two with
//! one key, the later counts.

use pando_document::{RawArray, RawDocument, RawValue};

use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError};
use crate::merged_fields::MergedFields;
use crate::shell_text;

pub(super) static ARRAY_TO_OBJECT: Definition =
    Definition { name: "$arrayToObject", arity: Arity::Exactly(1), run };

/// The form that the first element has; the others must have it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Pairs,
    Objects,
}

fn run<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let value = call.argument(0, frame)?;
    if value.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let Some(array) = value.as_array() else {
        return Err(ExpressionFault::ToObjectNotArray
            .error(format!("$arrayToObject requires an array input, found: {}", value.type_name())));
    };
    let mut form = None;
    let mut document = MergedFields::default();
    for element in array.iter() {
        let element = element?;
        let (key, value) = match (element, form) {
            (RawValue::Array(pair), None | Some(Form::Pairs)) => {
                form = Some(Form::Pairs);
                from_pair(pair)?
            }
            (RawValue::Document(object), None | Some(Form::Objects)) => {
                form = Some(Form::Objects);
                from_object(object)?
            }
            (other, form) => return Err(bad_element(other, form)),
        };
        document.insert(key, value);
    }
    Ok(Evaluated::Document(document.to_document()))
}

fn bad_element(element: RawValue<'_>, form: Option<Form>) -> QueryError {
    let found = element.element_type().alias();
    const CONSISTENT: &str =
        "$arrayToObject requires a consistent input format. Elements mustall be arrays or all be objects.";
    match form {
        None => ExpressionFault::ToObjectBadFirstElement
            .error(format!("Unrecognised input type format for $arrayToObject: {found}")),
        Some(Form::Pairs) => ExpressionFault::ToObjectElementNotPair
            .error(format!("{CONSISTENT} Array was detected, now found: {found}")),
        Some(Form::Objects) => ExpressionFault::ToObjectElementNotObject
            .error(format!("{CONSISTENT} Object was detected, now found: {found}")),
    }
}

fn from_pair(pair: &RawArray) -> Result<(&str, RawValue<'_>), QueryError> {
    let mut parts = pair.iter();
    let (Some(key), Some(value), None) = (parts.next(), parts.next(), parts.next()) else {
        return Err(ExpressionFault::ToObjectPairLength.error(format!(
            "$arrayToObject requires an array of size 2 arrays,found array of size: {}",
            pair.iter().count()
        )));
    };
    let RawValue::String(key) = key? else {
        return Err(ExpressionFault::ToObjectPairKeyNotString.error(
            "$arrayToObject requires an array of key-value pairs, where the key must be of type string.",
        ));
    };
    if key.contains('\0') {
        return Err(
            ExpressionFault::ToObjectPairKeyWithNul.error("Key field cannot contain an embedded null byte")
        );
    }
    Ok((key, value?))
}

fn from_object(object: &RawDocument) -> Result<(&str, RawValue<'_>), QueryError> {
    let count = object.iter().count();
    if count != 2 {
        return Err(ExpressionFault::ToObjectFieldCount.error(format!(
            "$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:{count}"
        )));
    }
    let (Some(key), Some(value)) = (object.get("k")?, object.get("v")?) else {
        return Err(ExpressionFault::ToObjectWithoutKeyValue.error(format!(
            "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys from: {}",
            shell_text::document_text(object)
        )));
    };
    let RawValue::String(key) = key else {
        return Err(ExpressionFault::ToObjectKeyNotString.error(format!(
            "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of type string. \
             Found type: {}",
            key.element_type().alias()
        )));
    };
    if key.contains('\0') {
        return Err(
            ExpressionFault::ToObjectKeyWithNul.error("Key field cannot contain an embedded null byte")
        );
    }
    Ok((key, value))
}
