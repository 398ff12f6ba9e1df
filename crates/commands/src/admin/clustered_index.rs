//! The option `clusteredIndex` of `create`: MongoDB's word for documents that lie by `_id`, as they do here
//! without it. It is checked, kept and listed, and so is `expireAfterSeconds` beside it, by which documents
//! expire.

use pando_catalog::{Collection, ID_INDEX};
use pando_document::{Document, RawDocument, RawDocumentBuf, RawValue, doc};
use pando_query::shell_text::document_text;

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

/// The option of an index that says that the documents are it.
pub(super) const CLUSTERED: &str = "clustered";

/// Checks the specification of a clustered index in `createIndexes`, where it may stand only if the
/// collection has one: it is there already.
pub(super) fn check_specification(given: &RawDocument) -> Result<(), (ErrorCode, String)> {
    let field = |name| given.get(name).map_err(|error| (ErrorCode::InvalidBson, error.to_string()));
    match field(CLUSTERED)? {
        Some(RawValue::Boolean(true)) => {}
        Some(value) if value.is_number() && value.to_bool() => {}
        Some(RawValue::Boolean(_)) => {
            let reason = "Value 'false' for field 'clustered' is invalid".to_owned();
            return Err((ErrorCode::Location(6_492_800), reason));
        }
        _ => return Err((ErrorCode::TypeMismatch, "The field 'clustered' must be a bool".to_owned())),
    }
    if field("unique")?.is_some_and(|unique| unique.to_bool()) {
        return Ok(());
    }
    let reason = "The 'unique' field is required when 'clustered' is specified".to_owned();
    Err((ErrorCode::CannotCreateIndex, reason))
}

/// The other specifications: a clustered index is that of the collection, or refused.
pub(super) fn without_clustered(
    wanted: Vec<RawDocumentBuf>,
    collection: Option<&Collection>,
) -> Result<Vec<RawDocumentBuf>, CommandError> {
    let mut others = Vec::with_capacity(wanted.len());
    let ascending = doc! { "_id": 1 }.to_raw();
    for one in wanted {
        if one.get(CLUSTERED)?.is_none() {
            others.push(one);
            continue;
        }
        let Some(collection) = collection else {
            return Err(CommandError::failed(
                ErrorCode::Location(6_100_900),
                "Cannot implicitly create a new collection with createIndex 'clustered' option",
            ));
        };
        let is_its_own = matches!(one.get("key")?, Some(RawValue::Document(key)) if index_key_pattern::same(key, &ascending));
        if !is_its_own || collection.clustered_index_name().is_none() {
            let shown = document_text(&one);
            return Err(CommandError::failed(
                ErrorCode::Location(6_243_700),
                format!(
                    "Error in specification {shown} :: caused by :: Cannot create index with option 'clustered' that does not \
                     match an existing clustered index"
                ),
            ));
        }
    }
    Ok(others)
}
