//! The copy of a command that lists of operations and logs show: without secrets, and cut to a size.
//!
//! 1. Documents to insert are left out, and the statements of updates and deletes if there are several.
//! 2. The value of a field with a secret becomes `xxx`, and so do the keys of users at any depth.
//! 3. A longer rest becomes `{$truncated: "..."}`, the beginning of its text, beside the comment.

use pando_document::{DocumentWriter, RawDocument, RawDocumentBuf, RawValue};
use pando_query::shell_text::value_text;

use super::stored_secrets::{HIDDEN, is_key, without_keys};

/// Bytes of a command that is shown whole.
const COMMAND_BYTES_MAX: usize = 1024;
/// Characters of a text that stands for a longer command.
const TEXT_CHARACTERS_MAX: usize = 1000;
/// Bytes of a value whose text is made. Of longer ones no text is shown.
const VALUE_BYTES_MAX: usize = 16 * 1024;
/// A field that is a secret in every command.
const PASSWORD: &str = "pwd";

/// Fields with secrets, by command.
const SECRETS: &[(&str, &[&str])] = &[
    ("authenticate", &["key", "nonce", "payload"]),
    ("createUser", &["digestPassword"]),
    ("hello", &["speculativeAuthenticate"]),
    ("isMaster", &["speculativeAuthenticate"]),
    ("ismaster", &["speculativeAuthenticate"]),
    ("saslContinue", &["payload"]),
    ("saslStart", &["payload"]),
    ("updateUser", &["digestPassword"]),
];

/// Fields that are left out, by command.
const BULK: &[(&str, &str)] = &[("delete", "deletes"), ("insert", "documents"), ("update", "updates")];

/// The copy of a command.
pub(crate) fn command_copy(body: &RawDocument) -> RawDocumentBuf {
    let name = body.iter().next().and_then(Result::ok).map_or("", |(name, _)| name);
    let secrets = SECRETS.iter().find(|(command, _)| *command == name).map_or(&[][..], |(_, fields)| fields);
    let bulk = BULK.iter().find(|(command, _)| *command == name).map_or("", |(_, field)| field);
    // A password also where the name of the command is a slip.
    let is_secret = |field: &str| field == PASSWORD || secrets.contains(&field);
    let is_plain = secrets.is_empty() && bulk.is_empty() && !matches!(body.get(PASSWORD), Ok(Some(_)));
    let is_within = |field: &str| name == "explain" && field == PASSWORD;
    if is_plain && body.as_bytes().len() <= COMMAND_BYTES_MAX {
        return without_keys(body, &is_within).unwrap_or_else(|| body.to_owned());
    }
    let shown = body.iter().map_while(Result::ok).filter(|(field, _)| *field != bulk);
    let shown = shown.map(|(field, value)| match is_secret(field) {
        true => (field, RawValue::String(HIDDEN)),
        false => (field, value),
    });
    cut(shown, body, &is_within)
}

/// The copy of a document that stands for a command, such as one statement of an update.
pub(crate) fn statement_copy(statement: &RawDocument) -> RawDocumentBuf {
    if statement.as_bytes().len() <= COMMAND_BYTES_MAX {
        return without_keys(statement, &|_| false).unwrap_or_else(|| statement.to_owned());
    }
    cut(statement.iter().map_while(Result::ok), statement, &|_| false)
}

/// The value of a field without the keys of users, in a document of its own; `None` if it has none.
fn hidden_keys(field: &str, value: RawValue<'_>, is_within: &dyn Fn(&str) -> bool) -> Option<RawDocumentBuf> {
    if !is_key(field) && !matches!(value, RawValue::Document(_) | RawValue::Array(_)) {
        return None;
    }
    let mut bytes = Vec::new();
    let mut alone = DocumentWriter::begin(&mut bytes);
    alone.append(field, value);
    alone.finish();
    without_keys(RawDocument::from_bytes(&bytes).ok()?, is_within)
}

fn cut<'a>(
    fields: impl Iterator<Item = (&'a str, RawValue<'a>)>,
    body: &'a RawDocument,
    is_within: &dyn Fn(&str) -> bool,
) -> RawDocumentBuf {
    let mut bytes = Vec::with_capacity(COMMAND_BYTES_MAX.min(body.as_bytes().len()));
    let mut writer = DocumentWriter::begin(&mut bytes);
    let mut text = String::from("{ ");
    let mut is_whole = true;
    for (field, value) in fields {
        // Of longer values nothing is shown.
        let hidden =
            if bytes_of(value) <= VALUE_BYTES_MAX { hidden_keys(field, value, is_within) } else { None };
        let value = hidden.as_ref().and_then(|hidden| hidden.get(field).ok()?).unwrap_or(value);
        is_whole &= bytes_of(value) <= COMMAND_BYTES_MAX;
        if is_whole {
            writer.append(field, value);
            is_whole = writer.bytes_so_far() <= COMMAND_BYTES_MAX;
        }
        if text.len() < TEXT_CHARACTERS_MAX {
            let separator = if text.len() > 2 { ", " } else { "" };
            let shown = if bytes_of(value) <= VALUE_BYTES_MAX { value_text(value) } else { "...".to_owned() };
            text.push_str(&format!("{separator}{field}: {shown}"));
        }
    }
    writer.finish();
    if is_whole {
        return RawDocumentBuf::from_vec(bytes).unwrap_or_default();
    }
    text.push_str(" }");
    if text.chars().count() > TEXT_CHARACTERS_MAX {
        text = text.chars().take(TEXT_CHARACTERS_MAX - 3).chain("...".chars()).collect();
    }
    bytes.clear();
    let mut writer = DocumentWriter::begin(&mut bytes);
    writer.append_str("$truncated", &text);
    if let Ok(Some(comment)) = body.get("comment")
        && bytes_of(comment) <= COMMAND_BYTES_MAX
    {
        let hidden = hidden_keys("comment", comment, is_within);
        let shown = hidden.as_ref().and_then(|hidden| hidden.get("comment").ok()?);
        writer.append("comment", shown.unwrap_or(comment));
    }
    writer.finish();
    RawDocumentBuf::from_vec(bytes).unwrap_or_default()
}

/// The bytes of a value that may be long.
fn bytes_of(value: RawValue<'_>) -> usize {
    match value {
        RawValue::Document(document) => document.as_bytes().len(),
        RawValue::Array(array) => array.as_bytes().len(),
        RawValue::String(text) => text.len(),
        RawValue::Binary(binary) => binary.bytes.len(),
        _ => 16,
    }
}

#[cfg(test)]
mod tests {
    use pando_document::{Document, Value, doc};

    use super::*;

    fn copied(command: &Document) -> Document {
        Document::from_raw(&command_copy(&command.to_raw())).unwrap()
    }

    #[test]
    fn a_short_command_is_copied_whole() {
        let find = doc! { "find": "c", "filter": { "a": 1 }, "$db": "d" };
        assert_eq!(copied(&find), find);
    }

    #[test]
    fn secrets_and_documents_to_insert_are_not_shown() {
        let start = doc! { "saslStart": 1, "mechanism": "PLAIN", "payload": "secret", "$db": "admin" };
        assert_eq!(
            copied(&start),
            doc! { "saslStart": 1, "mechanism": "PLAIN", "payload": "xxx", "$db": "admin" }
        );
        let insert = doc! { "insert": "c", "documents": [{ "a": 1 }], "$db": "d" };
        assert_eq!(copied(&insert), doc! { "insert": "c", "$db": "d" });
        for name in ["createUser", "updateUser", "createuser"] {
            let mut command = Document::new();
            command.push(name, "ada");
            command.push("pwd", "secret");
            assert_eq!(copied(&command).get("pwd"), Some(&Value::String("xxx".to_owned())), "{name}");
        }
        // The same name is no secret in other commands.
        let distinct = doc! { "distinct": "c", "key": "a", "$db": "d" };
        assert_eq!(copied(&distinct), distinct);
    }

    #[test]
    fn a_long_command_is_cut_and_keeps_its_comment() {
        let long = doc! { "find": "c", "filter": { "a": "é".repeat(3000) }, "comment": "who", "$db": "d" };
        let cut = copied(&long);
        let Some(Value::String(text)) = cut.get("$truncated") else { panic!("{cut:?}") };
        assert!(text.starts_with("{ find: \"c\", filter: { a: \""), "{text}");
        assert!(text.chars().count() <= TEXT_CHARACTERS_MAX);
        assert_eq!(cut.get("comment"), Some(&Value::String("who".to_owned())));
        let huge = doc! { "find": "c", "filter": { "a": "x".repeat(1 << 20) }, "$db": "d" };
        assert_eq!(copied(&huge), doc! { "$truncated": "{ find: \"c\", filter: ..., $db: \"d\" }" });
        let many = doc! { "find": "c", "a": "x".repeat(600), "b": "x".repeat(600), "$db": "d" };
        assert!(copied(&many).contains("$truncated"));
    }
}
