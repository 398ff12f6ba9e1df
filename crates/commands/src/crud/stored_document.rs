//! What a document must be like to be stored: valid BSON of at most 16 MiB, an `_id` of an allowed type in front.

use pando_document::{DocumentWriter, Limits, RawDocument, RawValue, validate};

use crate::commands::Shared;
use crate::error::Failure;
use crate::{CommandError, ErrorCode};

/// Checks a document from a client and puts its bytes, with `_id` in front, into `out` (emptied first).
pub(super) fn prepare(
    shared: &Shared,
    document: &RawDocument,
    out: &mut Vec<u8>,
) -> Result<(), CommandError> {
    check_size(document.as_bytes().len())?;
    validate(document.as_bytes(), &Limits::STORED)?;
    out.clear();
    match place_of_id(document)? {
        IdPlace::First(id) => {
            check_id(id)?;
            out.extend_from_slice(document.as_bytes());
        }
        IdPlace::Later(id) => {
            check_id(id)?;
            rewrite(document, id, out)?;
        }
        IdPlace::Missing => {
            rewrite(document, RawValue::ObjectId(shared.new_object_id()), out)?;
            check_size(out.len())?;
        }
    }
    Ok(())
}

/// Where the `_id` of a document stands.
enum IdPlace<'d> {
    First(RawValue<'d>),
    Later(RawValue<'d>),
    Missing,
}

fn place_of_id(document: &RawDocument) -> Result<IdPlace<'_>, CommandError> {
    for (at, field) in document.iter().enumerate() {
        if let ("_id", id) = field? {
            return Ok(if at == 0 { IdPlace::First(id) } else { IdPlace::Later(id) });
        }
    }
    Ok(IdPlace::Missing)
}

fn rewrite(document: &RawDocument, id: RawValue<'_>, out: &mut Vec<u8>) -> Result<(), CommandError> {
    let mut writer = DocumentWriter::begin(out);
    writer.append("_id", id);
    for field in document.iter() {
        let (name, value) = field?;
        if name != "_id" {
            writer.append(name, value);
        }
    }
    writer.finish();
    Ok(())
}

/// Refuses a document that is too large.
pub(super) fn check_size(bytes: usize) -> Result<(), CommandError> {
    let max = Limits::STORED.bytes_max;
    if bytes <= max {
        return Ok(());
    }
    Err(Failure::new(
        ErrorCode::BsonObjectTooLarge,
        format!("object to insert too large. size in bytes: {bytes}, max size: {max}"),
    )
    .into())
}

/// Refuses an `_id` of a type that cannot be one.
pub(super) fn check_id(id: RawValue<'_>) -> Result<(), CommandError> {
    let refused = |kind: &str| {
        Err(Failure::new(ErrorCode::InvalidIdField, format!("The '_id' value cannot be of type {kind}"))
            .into())
    };
    match id {
        RawValue::Array(_) => refused("array"),
        RawValue::Regex(_) => refused("regex"),
        RawValue::Undefined => refused("undefined"),
        RawValue::Document(inner) => {
            for field in inner.iter() {
                let (name, _) = field?;
                if name.starts_with('$') {
                    return Err(Failure::new(
                        ErrorCode::DollarPrefixedFieldName,
                        format!(
                            "_id fields may not contain '$'-prefixed fields: {name} is not valid for storage."
                        ),
                    )
                    .into());
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
