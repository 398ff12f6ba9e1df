//! The last write of a connection, as `getLastError` tells it.
//!
//! Clients from before write commands send a write without a reply, and ask `getLastError` on the same
//! connection about it. The answer concerns the operation right before: after any other one in between there
//! is no error and no document to tell of.

use pando_document::{RawDocument, RawValue, Value};

/// The kind of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteKind {
    Insert,
    Update,
    Delete,
    FindAndModify,
}

/// The outcome of a write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LastWrite {
    pub kind: WriteKind,
    /// The documents that were changed or removed. Those that were inserted are not counted.
    pub documents: i64,
    /// The `_id` of the document that an update has inserted.
    pub upserted: Option<Value>,
    pub failure: Option<WriteFailure>,
}

/// The error of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WriteFailure {
    pub code: i32,
    pub message: String,
}

impl LastWrite {
    /// A write that failed as a whole.
    pub fn failed(kind: WriteKind, failure: WriteFailure) -> LastWrite {
        LastWrite { kind, documents: 0, upserted: None, failure: Some(failure) }
    }

    /// The write that a write command has answered so.
    pub fn of_reply(kind: WriteKind, reply: &RawDocument) -> LastWrite {
        if let Some(failure) = command_failure(reply) {
            return LastWrite::failed(kind, failure);
        }
        let (documents, upserted) = match kind {
            WriteKind::Insert => (0, None),
            WriteKind::Delete => (number(reply, "n"), None),
            WriteKind::Update => (number(reply, "n"), upserted_id(reply)),
            WriteKind::FindAndModify => match get(reply, "lastErrorObject") {
                Some(RawValue::Document(effect)) => {
                    (number(effect, "n"), get(effect, "upserted").map(|id| id.to_owned()))
                }
                _ => (0, None),
            },
        };
        LastWrite { kind, documents, upserted, failure: write_failure(reply) }
    }

    /// Whether it has changed a document that was there before, where it is an update.
    pub fn updated_existing(&self) -> Option<bool> {
        match self.kind {
            WriteKind::Update | WriteKind::FindAndModify => {
                Some(self.documents > 0 && self.upserted.is_none() && self.failure.is_none())
            }
            WriteKind::Insert | WriteKind::Delete => None,
        }
    }
}

/// The failure that a command has answered, if it has failed as a whole.
pub(crate) fn command_failure(reply: &RawDocument) -> Option<WriteFailure> {
    match get(reply, "ok") {
        Some(ok) if ok.to_bool() => None,
        _ => Some(failure_of(reply)),
    }
}

/// The last failure among the statements of a write command.
fn write_failure(reply: &RawDocument) -> Option<WriteFailure> {
    let errors = get(reply, "writeErrors")?.as_array()?;
    let last = errors.iter().filter_map(Result::ok).last()?;
    last.as_document().map(failure_of)
}

/// Whether a command asks about the write before it.
pub(crate) fn asks_last_write(command: &str) -> bool {
    command.eq_ignore_ascii_case("getLastError")
}

fn failure_of(error: &RawDocument) -> WriteFailure {
    let message = get(error, "errmsg").and_then(|text| text.as_str()).unwrap_or_default().to_owned();
    let code = get(error, "code").and_then(|code| code.as_i64_exact()).unwrap_or_default();
    WriteFailure { code: i32::try_from(code).unwrap_or_default(), message }
}

/// The `_id` in the list `upserted`: `[{index, _id}]`.
fn upserted_id(reply: &RawDocument) -> Option<Value> {
    let last = get(reply, "upserted")?.as_array()?.iter().filter_map(Result::ok).last()?;
    get(last.as_document()?, "_id").map(|id| id.to_owned())
}

fn number(document: &RawDocument, name: &str) -> i64 {
    get(document, name).and_then(|number| number.as_i64_exact()).unwrap_or_default()
}

/// A field of a reply that this server has written itself.
fn get<'a>(document: &'a RawDocument, name: &str) -> Option<RawValue<'a>> {
    document.get(name).ok().flatten()
}

#[cfg(test)]
mod tests {
    use pando_document::{Document, doc};

    use super::*;

    fn of(kind: WriteKind, reply: Document) -> LastWrite {
        LastWrite::of_reply(kind, &reply.to_raw())
    }

    #[test]
    fn each_kind_counts_as_servers_of_its_time_did() {
        let inserted = of(WriteKind::Insert, doc! { "n": 3, "ok": 1.0 });
        assert_eq!((inserted.documents, inserted.updated_existing()), (0, None));
        let deleted = of(WriteKind::Delete, doc! { "n": 3, "ok": 1.0 });
        assert_eq!((deleted.documents, deleted.updated_existing()), (3, None));
        let updated = of(WriteKind::Update, doc! { "n": 2, "nModified": 1, "ok": 1.0 });
        assert_eq!((updated.documents, updated.updated_existing()), (2, Some(true)));
        let missed = of(WriteKind::Update, doc! { "n": 0, "nModified": 0, "ok": 1.0 });
        assert_eq!((missed.documents, missed.updated_existing()), (0, Some(false)));
    }

    #[test]
    fn an_upsert_tells_its_id() {
        let reply = doc! { "n": 1, "upserted": [{ "index": 0, "_id": "x" }], "nModified": 0, "ok": 1.0 };
        let upserted = of(WriteKind::Update, reply);
        assert_eq!((upserted.documents, upserted.updated_existing()), (1, Some(false)));
        assert_eq!(upserted.upserted, Some(Value::from("x")));
        let effect =
            doc! { "lastErrorObject": { "n": 1, "updatedExisting": false, "upserted": 7 }, "ok": 1.0 };
        assert_eq!(of(WriteKind::FindAndModify, effect).upserted, Some(Value::from(7)));
    }

    #[test]
    fn the_last_failure_counts() {
        let reply = doc! {
            "n": 1,
            "writeErrors": [{ "index": 0, "code": 2, "errmsg": "a" }, { "index": 2, "code": 11000, "errmsg": "b" }],
            "ok": 1.0
        };
        let failure = of(WriteKind::Insert, reply).failure.unwrap();
        assert_eq!((failure.code, failure.message.as_str()), (11_000, "b"));
        let refused = of(WriteKind::Delete, doc! { "ok": 0.0, "errmsg": "no", "code": 73 });
        assert_eq!(refused.failure, Some(WriteFailure { code: 73, message: "no".to_owned() }));
    }
}
