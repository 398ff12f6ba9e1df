//! A request as the table of operations lists it: its kind, its namespace and the copy of its command.

use pando_document::{RawDocument, RawDocumentBuf, RawValue};
use pando_environment::Monotonic;
use pando_query::explain::PlanSummary;

use super::{RunningRequest, command_copy};
use crate::session_id::{SessionId, SessionOwner};

/// The kind that lists show, by command; `command` for all others.
const KINDS: &[(&str, &str)] = &[
    ("delete", "remove"),
    ("find", "query"),
    ("getMore", "getmore"),
    ("insert", "insert"),
    ("update", "update"),
];

/// Commands that end when their collection is dropped.
const READERS_OF_COLLECTIONS: &[&str] = &[
    "aggregate",
    "count",
    "delete",
    "distinct",
    "explain",
    "find",
    "findAndModify",
    "findandmodify",
    "getMore",
    "update",
    "validate",
];

/// Commands whose value is a whole namespace.
const WITH_WHOLE_NAMESPACE: &[&str] = &["dataSize", "datasize", "renameCollection"];

/// The facts of a request beside its command document.
#[derive(Clone, Copy)]
pub(crate) struct RequestFacts<'a> {
    pub database: &'a str,
    pub session: Option<SessionId>,
    pub began: Monotonic,
    /// Whether the client waits for the answer.
    pub wants_answer: bool,
}

impl RunningRequest {
    /// The request of a command document.
    pub fn of(body: &RawDocument, facts: RequestFacts<'_>) -> RunningRequest {
        let name = command_name(body);
        RunningRequest {
            number: 0,
            began: facts.began,
            kind: kind_of(name),
            namespace: namespace_of(facts.database, body),
            session: facts.session,
            command: command_copy(body),
            plan: PlanSummary::None,
            transaction: None,
            cursor: None,
            ends_with_client: facts.wants_answer,
            ends_with_collection: READERS_OF_COLLECTIONS.contains(&name),
            drop_text: None,
        }
    }
}

impl RunningRequest {
    /// A request that was answered from the cache, and whose reply waits.
    pub fn of_waiting(body: &RawDocument, owner: SessionOwner, began: Monotonic) -> RunningRequest {
        let database = body.get("$db").ok().flatten().and_then(|database| database.as_str());
        let session = body.get("lsid").ok().flatten().and_then(|lsid| lsid.as_document());
        let session = session.and_then(|session| SessionId::of(session, owner));
        let facts = RequestFacts { database: database.unwrap_or(""), session, began, wants_answer: true };
        RunningRequest::of(body, facts)
    }

    /// The request with a statement in the place of its command, if there is one.
    pub fn of_statement(self, statement: Option<RawDocumentBuf>) -> RunningRequest {
        match statement {
            Some(command) => RunningRequest { command, ..self },
            None => self,
        }
    }
}

/// The kind of a command that lists show.
pub(crate) fn kind_of(command: &str) -> &'static str {
    KINDS.iter().find(|(name, _)| *name == command).map_or("command", |(_, kind)| kind)
}

fn command_name(body: &RawDocument) -> &str {
    body.iter().next().and_then(Result::ok).map_or("", |(name, _)| name)
}

/// The namespace that a command works on, as lists show it: `shop.orders`, `shop.$cmd`.
pub(crate) fn namespace_of(database: &str, body: &RawDocument) -> String {
    let Some(Ok((name, value))) = body.iter().next() else { return format!("{database}.$cmd") };
    match (name, value) {
        (name, RawValue::String(whole)) if WITH_WHOLE_NAMESPACE.contains(&name) => whole.to_owned(),
        ("currentOp", _) => format!("{database}.$cmd.aggregate"),
        (_, RawValue::String(collection)) => format!("{database}.{collection}"),
        ("getMore", _) => match body.get("collection") {
            Ok(Some(RawValue::String(collection))) => format!("{database}.{collection}"),
            _ => format!("{database}.$cmd"),
        },
        ("explain", RawValue::Document(inner)) => namespace_of(database, inner),
        ("dbStats" | "dbstats" | "dropDatabase", _) => database.to_owned(),
        ("aggregate", _) => format!("{database}.$cmd.aggregate"),
        _ => format!("{database}.$cmd"),
    }
}

/// A document of a few fields, for statements that stand for their command.
pub(crate) fn statement_of(fields: &[(&str, RawValue<'_>)]) -> RawDocumentBuf {
    let mut bytes = Vec::new();
    let mut writer = pando_document::DocumentWriter::begin(&mut bytes);
    for (name, value) in fields {
        writer.append(name, *value);
    }
    writer.finish();
    RawDocumentBuf::from_vec(bytes).map(|whole| super::statement_copy(&whole)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use pando_document::{Document, doc};

    use super::*;

    #[test]
    fn a_command_is_listed_under_its_collection() {
        let namespace = |command: Document| namespace_of("shop", &command.to_raw());
        assert_eq!(namespace(doc! { "find": "c" }), "shop.c");
        assert_eq!(namespace(doc! { "getMore": 7_i64, "collection": "c" }), "shop.c");
        assert_eq!(namespace(doc! { "explain": { "count": "c" } }), "shop.c");
        assert_eq!(namespace(doc! { "aggregate": 1 }), "shop.$cmd.aggregate");
        assert_eq!(namespace(doc! { "renameCollection": "a.b" }), "a.b");
        assert_eq!(namespace(doc! { "ping": 1 }), "shop.$cmd");
        assert_eq!((kind_of("delete"), kind_of("count")), ("remove", "command"));
    }
}
