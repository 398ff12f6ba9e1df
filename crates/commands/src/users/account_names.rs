//! The names of users and roles in requests.

use pando_access::{RoleName, built_in_roles};
use pando_catalog::Catalog;
use pando_document::{Document, RawArray, RawDocument, RawValue, Value, doc};

use crate::accounts::store;
use crate::arguments::{Argument, check_name_once, missing};
use crate::{CommandError, ErrorCode, Request};

/// The name that is the value of a command itself.
pub(super) fn own_name<'r>(command: &'static str, request: &Request<'r>) -> Result<&'r str, CommandError> {
    let argument = Argument::of_value(command, command, request.command()?.1);
    let name = argument.string()?.ok_or_else(|| missing(command, command))?;
    if name.contains('\0') {
        return Err(CommandError::failed(
            ErrorCode::InvalidNamespace,
            "namespaces cannot have embedded null characters",
        ));
    }
    Ok(name)
}

/// The field `roles`: names of the database of the request, or documents. Each name once.
pub(super) fn role_names(argument: &Argument<'_>, database: &str) -> Result<Vec<RoleName>, CommandError> {
    let other = "Role name must be either a document or string";
    read_list(argument.array()?, database, other)
}

/// The same list where it is the value of a command.
pub(super) fn read_list(list: &RawArray, database: &str, other: &str) -> Result<Vec<RoleName>, CommandError> {
    let mut names = Vec::new();
    for element in list.iter() {
        let name = read_one(element?, database, other)?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// One name. `other` is the sentence for what is neither a string nor a document.
pub(super) fn read_one(value: RawValue<'_>, database: &str, other: &str) -> Result<RoleName, CommandError> {
    match value {
        RawValue::String(name) => Ok(RoleName::new(name, database)),
        RawValue::Document(document) => {
            let name = part(document, "RoleName", "role")?;
            Ok(RoleName::new(name, part(document, "RoleName", "db")?))
        }
        _ => Err(CommandError::failed(ErrorCode::BadValue, other)),
    }
}

/// A part of a name that is a document; `owner` is what MongoDB's messages call it.
pub(super) fn part<'d>(document: &'d RawDocument, owner: &str, field: &str) -> Result<&'d str, CommandError> {
    check_name_once(owner, document, &[field])?;
    let sentence = match document.get(field)? {
        Some(RawValue::String(text)) => return Ok(text),
        None => format!("{owner} must contain a field named: {field}"),
        Some(other) => {
            let found = other.element_type().alias();
            format!("{owner} must contain a string field named: {field}. But, has type {found}")
        }
    };
    Err(CommandError::failed(ErrorCode::BadValue, sentence))
}

/// The error of roles that there are not; `None` if all are there. Blocks.
pub(super) fn unknown_roles(catalog: &Catalog, names: &[RoleName]) -> Result<Option<String>, CommandError> {
    let mut unknown = Vec::new();
    for name in names {
        if !built_in_roles::is_built_in(name) && store::role(catalog, name)?.is_none() {
            unknown.push(name.to_string());
        }
    }
    Ok(match unknown.as_slice() {
        [] => None,
        [one] => Some(format!("Could not find role: {one}")),
        several => Some(format!("Could not find roles: {}", several.join(", "))),
    })
}

/// Refuses roles that there are not. Blocks.
pub(super) fn check_roles(catalog: &Catalog, names: &[RoleName]) -> Result<(), CommandError> {
    match unknown_roles(catalog, names)? {
        None => Ok(()),
        Some(sentence) => Err(CommandError::failed(ErrorCode::RoleNotFound, sentence)),
    }
}

/// The value of `roles` in a document.
pub(super) fn roles_value(names: &[RoleName]) -> Value {
    let document = |name: &RoleName| -> Document {
        doc! { "role": name.name.as_str(), "db": name.database.as_str() }
    };
    Value::Array(names.iter().map(|name| Value::Document(document(name))).collect())
}
