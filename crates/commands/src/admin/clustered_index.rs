//! The option `clusteredIndex` of `create`: MongoDB's word for documents that lie by `_id`, as they do here
//! without it. It is checked, kept and listed, and so is `expireAfterSeconds` beside it, by which documents
//! expire.

use pando_catalog::ID_INDEX;
use pando_document::{Document, RawDocument, RawValue, doc};

use super::index_key_pattern;
use crate::arguments::{Argument, Arguments, missing, whole};
use crate::{CommandError, ErrorCode};

/// The option in the form in which it is kept; `None` where it asks for nothing.
pub(super) fn normalise(argument: &Argument<'_>) -> Result<Option<Document>, CommandError> {
    let given = match argument.value {
        RawValue::Boolean(false) => return Ok(None),
        RawValue::Document(given) => given,
        _ if argument.is_absent() => return Ok(None),
        value if value.is_number() || value.as_bool().is_some() => {
            return Err(CommandError::failed(
                ErrorCode::Location(5_979_703),
                "The 'clusteredIndex' legacy format {clusteredIndex: <bool>} is only supported for specific internal collections and vice versa",
            ));
        }
        _ => return Err(argument.wrong_type("types '[bool, object]'")),
    };
    of_document(given).map(Some)
}

fn of_document(given: &RawDocument) -> Result<Document, CommandError> {
    let (mut key, mut unique, mut name, mut version) = (None, None, ID_INDEX, 2);
    for argument in Arguments::inside("create", given) {
        let argument = argument?;
        match argument.name {
            "key" => key = argument.document()?,
            "unique" => unique = argument.lenient_boolean()?,
            "name" => name = argument.string()?.unwrap_or(name),
            "v" => version = if argument.is_absent() { version } else { whole(argument.value) },
            _ => return Err(argument.unknown()),
        }
    }
    let key = key.ok_or_else(|| missing("create", "key"))?;
    let unique = unique.ok_or_else(|| missing("create", "unique"))?;
    if !unique {
        return Err(CommandError::failed(
            ErrorCode::Location(5_979_700),
            "The clusteredIndex option requires unique: true to be specified",
        ));
    }
    let ascending = doc! { "_id": 1 };
    if !index_key_pattern::same(key, &ascending.to_raw()) {
        return Err(CommandError::failed(
            ErrorCode::InvalidIndexSpecificationOption,
            "The clusteredIndex option is only supported for key: {_id: 1}",
        ));
    }
    if version != 2 {
        return Err(CommandError::failed(
            ErrorCode::Location(5_979_704),
            format!("Invalid clusteredIndex specification; cannot create a clusteredIndex with v={version}"),
        ));
    }
    if name.contains('\0') {
        let reason = "the name of a clusteredIndex cannot contain NUL";
        return Err(CommandError::failed(ErrorCode::BadValue, reason));
    }
    Ok(doc! { "v": 2, "key": ascending, "name": name, "unique": true })
}
