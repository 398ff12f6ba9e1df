//! The events of a request, by its command: a table of the commands that MongoDB audits.

use pando_document::{Document, RawDocument, RawValue, Value, doc};

use super::AuditEvent;
use crate::accounts::store;
use crate::operations::without_keys;
use crate::{ErrorCode, Request};

/// How the parameters of an event are made of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// `{ns}` of the collection that the command names.
    Collection,
    /// `{ns}` of the database.
    Database,
    /// `{old, new}`.
    Rename,
    /// An event for each index.
    Indexes,
    /// `{ns, indexName}`.
    DroppedIndexes,
    /// The user or role that the command names, its database, and these fields of it.
    Named(&'static str, &'static [&'static str]),
    /// The database alone.
    OfDatabase,
    /// An event for each collection of users and roles that takes over documents of another one.
    TakenOver,
    /// The fields of the command.
    Fields,
    /// No parameters.
    None,
}

const USER_FIELDS: &[&str] = &["customData", "roles", "authenticationRestrictions"];
const ROLE_FIELDS: &[&str] = &["roles", "privileges", "authenticationRestrictions"];

/// Commands, their events, and the parameters.
const EVENTS: [(&str, &str, Shape); 32] = [
    ("create", "createCollection", Shape::Collection),
    ("createIndexes", "createIndex", Shape::Indexes),
    ("drop", "dropCollection", Shape::Collection),
    ("addPartition", "addPartition", Shape::Collection),
    ("convertToPartitioned", "convertToPartitioned", Shape::Collection),
    ("dropPartition", "dropPartition", Shape::Collection),
    ("dropDatabase", "dropDatabase", Shape::Database),
    ("dropIndexes", "dropIndex", Shape::DroppedIndexes),
    ("deleteIndexes", "dropIndex", Shape::DroppedIndexes),
    ("renameCollection", "renameCollection", Shape::Rename),
    ("createUser", "createUser", Shape::Named("user", USER_FIELDS)),
    ("updateUser", "updateUser", Shape::Named("user", USER_FIELDS)),
    ("dropUser", "dropUser", Shape::Named("user", &[])),
    ("dropAllUsersFromDatabase", "dropAllUsersFromDatabase", Shape::OfDatabase),
    ("grantRolesToUser", "grantRolesToUser", Shape::Named("user", &["roles"])),
    ("revokeRolesFromUser", "revokeRolesFromUser", Shape::Named("user", &["roles"])),
    ("createRole", "createRole", Shape::Named("role", ROLE_FIELDS)),
    ("updateRole", "updateRole", Shape::Named("role", ROLE_FIELDS)),
    ("dropRole", "dropRole", Shape::Named("role", &[])),
    ("dropAllRolesFromDatabase", "dropAllRolesFromDatabase", Shape::OfDatabase),
    ("grantRolesToRole", "grantRolesToRole", Shape::Named("role", &["roles"])),
    ("revokeRolesFromRole", "revokeRolesFromRole", Shape::Named("role", &["roles"])),
    ("grantPrivilegesToRole", "grantPrivilegesToRole", Shape::Named("role", &["privileges"])),
    ("revokePrivilegesFromRole", "revokePrivilegesFromRole", Shape::Named("role", &["privileges"])),
    ("_mergeAuthzCollections", "directAuthMutation", Shape::TakenOver),
    ("logout", "logout", Shape::None),
    ("shutdown", "shutdown", Shape::None),
    ("setParameter", "setParameter", Shape::Fields),
    ("rotateCertificates", "rotateCertificates", Shape::None),
    ("logRotate", "rotateLog", Shape::None),
    ("fsync", "fsync", Shape::Fields),
    ("pandoBackup", "backup", Shape::Fields),
];

/// Fields that no event has.
const SECRETS: [&str; 3] = ["pwd", "payload", "key"];
/// A refused request that is longer is kept without its arguments.
const ARGUMENTS_BYTES_MAX: usize = 4 * 1024;
/// Names of collections and the like that a request can have in an event.
const NAMES_MAX: usize = 64;

/// The events of a request with this result.
pub(super) fn of_request(request: &Request<'_>, result: i32) -> Vec<AuditEvent> {
    let Ok((name, value)) = request.command() else { return Vec::new() };
    let Some(&(_, kind, shape)) = EVENTS.iter().find(|(command, ..)| *command == name) else {
        return Vec::new();
    };
    let hidden = without_keys(request.body, &|name| name == "pwd");
    let body = hidden.as_deref().unwrap_or(request.body);
    let database = text(body, "$db");
    let named = value.as_str().unwrap_or_default();
    let params = match shape {
        Shape::Collection => vec![doc! { "ns": format!("{database}.{named}") }],
        Shape::Database => vec![doc! { "ns": database }],
        Shape::Rename => vec![doc! { "old": named, "new": text(body, "to") }],
        Shape::Indexes => indexes(body, &format!("{database}.{named}"), result),
        Shape::DroppedIndexes => dropped(body, &format!("{database}.{named}")),
        Shape::Named(field, kept) => {
            let mut param = Document::new();
            param.push(field, named);
            param.push("db", database);
            copy(body, kept, &mut param);
            vec![param]
        }
        Shape::OfDatabase => vec![doc! { "db": database }],
        Shape::TakenOver => taken_over(name, body),
        Shape::Fields => vec![fields(body)],
        Shape::None => vec![Document::new()],
    };
    params.into_iter().map(|param| AuditEvent { kind, param, result }).collect()
}

/// The collections that take documents over, by the fields that name the sources.
fn taken_over(command: &str, body: &RawDocument) -> Vec<Document> {
    let targets = [("tempUsersCollection", store::USERS), ("tempRolesCollection", store::ROLES)];
    let named = targets.into_iter().filter(|(field, _)| !text(body, field).is_empty());
    named
        .map(|(_, target)| doc! { "ns": format!("{}.{target}", store::DATABASE), "operation": command })
        .collect()
}

/// The event of a request that its client has no right to.
pub(super) fn of_refusal(request: &Request<'_>) -> AuditEvent {
    let (name, value) = request.command().unwrap_or(("", RawValue::Null));
    let database = text(request.body, "$db");
    let namespace = match value.as_str() {
        Some(collection) => format!("{database}.{collection}"),
        None => database.to_owned(),
    };
    let mut param = doc! { "command": name, "ns": namespace };
    if request.body.as_bytes().len() <= ARGUMENTS_BYTES_MAX {
        // Also the password of a command that is to be explained.
        let hidden = without_keys(request.body, &|name| name == "pwd");
        let mut arguments = fields(hidden.as_deref().unwrap_or(request.body));
        for secret in SECRETS {
            arguments.remove(secret);
        }
        param.push("args", arguments);
    }
    AuditEvent { kind: "authCheck", param, result: ErrorCode::Unauthorized.code() }
}

fn text<'b>(body: &'b RawDocument, name: &str) -> &'b str {
    body.get(name).ok().flatten().and_then(|value| value.as_str()).unwrap_or_default()
}

/// Copies fields that are there. A password is none of them.
fn copy(body: &RawDocument, names: &[&str], into: &mut Document) {
    for name in names {
        if let Ok(Some(value)) = body.get(name)
            && let Ok(value) = Value::from_raw(value)
        {
            into.push(*name, value);
        }
    }
}

/// The fields of a command that are not those of every command.
fn fields(body: &RawDocument) -> Document {
    let mut fields = Document::new();
    for (name, value) in body.iter().flatten().skip(1) {
        if !crate::arguments::is_generic(name)
            && let Ok(value) = Value::from_raw(value)
        {
            fields.push(name, value);
        }
    }
    fields
}

fn indexes(body: &RawDocument, namespace: &str, result: i32) -> Vec<Document> {
    let state = if result == 0 { "IndexBuildSucceeded" } else { "IndexBuildFailed" };
    let Ok(Some(RawValue::Array(given))) = body.get("indexes") else { return Vec::new() };
    let given = given.iter().flatten().filter_map(|index| index.as_document()).take(NAMES_MAX);
    let param = |index: &RawDocument| {
        let specification = Document::from_raw(index).unwrap_or_default();
        doc! {
            "ns": namespace,
            "indexName": text(index, "name"),
            "indexSpec": specification,
            "indexBuildState": state,
        }
    };
    given.map(param).collect()
}

fn dropped(body: &RawDocument, namespace: &str) -> Vec<Document> {
    let of = |name: Value| doc! { "ns": namespace, "indexName": name };
    match body.get("index") {
        Ok(Some(RawValue::Array(names))) => {
            let names = names.iter().flatten().take(NAMES_MAX);
            names.filter_map(|name| Value::from_raw(name).ok()).map(of).collect()
        }
        Ok(Some(name)) => Value::from_raw(name).map(of).into_iter().collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(body: Document, result: i32) -> Vec<AuditEvent> {
        of_request(&Request { body: &body.to_raw(), sequences: &[] }, result)
    }

    #[test]
    fn a_password_is_in_no_event() {
        let request = doc! { "createUser": "ada", "pwd": "secret", "roles": ["read"], "$db": "shop" };
        let refused = of_refusal(&Request { body: &request.to_raw(), sequences: &[] });
        assert_eq!(refused.param.get("args"), Some(&Value::Document(doc! { "roles": ["read"] })));
        assert_eq!((refused.kind, refused.result), ("authCheck", 13));
        let found = events(request, 0);
        assert_eq!(found[0].kind, "createUser");
        assert_eq!(found[0].param, doc! { "user": "ada", "db": "shop", "roles": ["read"] });
    }

    #[test]
    fn each_index_has_its_event_and_a_read_has_none() {
        let one = doc! { "key": doc! { "a": 1 }, "name": "a_1" };
        let two = doc! { "key": doc! { "b": 1 }, "name": "b_1" };
        let found = events(doc! { "createIndexes": "c", "indexes": [one, two], "$db": "d" }, 85);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].param.get("ns").and_then(Value::as_str), Some("d.c"));
        assert_eq!((found[1].kind, found[1].result), ("createIndex", 85));
        assert!(events(doc! { "find": "c", "$db": "d" }, 0).is_empty());
    }
}
