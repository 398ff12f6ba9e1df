//! The keys of users within a command: no list, log or audit trail shows them.
//!
//! Commands may write `admin.system.users` as any other collection. So the keys are told by the names of
//! their fields, at any depth and also within a path such as `credentials.SCRAM-SHA-256.storedKey`.

use pando_document::{ArrayWriter, DocumentWriter, RawArray, RawDocument, RawDocumentBuf, RawValue};

/// The text in the place of a secret.
pub(crate) const HIDDEN: &str = "xxx";
/// Names of fields whose values are keys, or have keys within.
const KEYS: [&str; 4] = ["SCRAM-SHA-1", "SCRAM-SHA-256", "storedKey", "serverKey"];
/// Values that lie deeper are hidden, too.
const DEPTH_MAX: usize = 100;

/// Whether the value of a field of this name is a key of a user.
pub(crate) fn is_key(name: &str) -> bool {
    KEYS.iter().any(|key| name.split('.').any(|part| part == *key))
}

/// A document without the keys of users; `None` if it has none. `is_secret` names further fields.
pub(crate) fn without_keys(
    document: &RawDocument,
    is_secret: &dyn Fn(&str) -> bool,
) -> Option<RawDocumentBuf> {
    if !has_keys(RawValue::Document(document), is_secret, 0) {
        return None;
    }
    let mut bytes = Vec::with_capacity(document.as_bytes().len());
    let mut out = DocumentWriter::begin(&mut bytes);
    write_fields(document, is_secret, 0, &mut out);
    out.finish();
    Some(RawDocumentBuf::from_vec(bytes).unwrap_or_default())
}

fn has_keys(value: RawValue<'_>, is_secret: &dyn Fn(&str) -> bool, depth: usize) -> bool {
    match value {
        RawValue::Document(_) | RawValue::Array(_) if depth > DEPTH_MAX => true,
        RawValue::Document(document) => document.iter().map_while(Result::ok).any(|(name, value)| {
            is_key(name) || (depth > 0 && is_secret(name)) || has_keys(value, is_secret, depth + 1)
        }),
        RawValue::Array(array) => {
            array.iter().map_while(Result::ok).any(|value| has_keys(value, is_secret, depth + 1))
        }
        _ => false,
    }
}

fn write_fields(
    document: &RawDocument,
    is_secret: &dyn Fn(&str) -> bool,
    depth: usize,
    out: &mut DocumentWriter<'_>,
) {
    for (name, value) in document.iter().map_while(Result::ok) {
        match value {
            _ if is_key(name) || (depth > 0 && is_secret(name)) => out.append_str(name, HIDDEN),
            RawValue::Document(_) | RawValue::Array(_) if depth >= DEPTH_MAX => out.append_str(name, HIDDEN),
            RawValue::Document(inner) => write_fields(inner, is_secret, depth + 1, &mut out.document(name)),
            RawValue::Array(inner) => write_elements(inner, is_secret, depth + 1, &mut out.array(name)),
            value => out.append(name, value),
        }
    }
}

fn write_elements(
    array: &RawArray,
    is_secret: &dyn Fn(&str) -> bool,
    depth: usize,
    out: &mut ArrayWriter<'_>,
) {
    for value in array.iter().map_while(Result::ok) {
        match value {
            RawValue::Document(_) | RawValue::Array(_) if depth >= DEPTH_MAX => {
                out.push(RawValue::String(HIDDEN));
            }
            RawValue::Document(inner) => write_fields(inner, is_secret, depth + 1, &mut out.document()),
            RawValue::Array(inner) => write_elements(inner, is_secret, depth + 1, &mut out.array()),
            value => out.push(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use pando_document::{Document, Value, doc};

    use super::*;

    #[test]
    fn keys_are_hidden_wherever_they_stand() {
        let key = "bm90IGZvciB5b3U=";
        for command in [
            doc! { "q": { "user": "ada" }, "u": { "$set": { "credentials.SCRAM-SHA-256.storedKey": key } } },
            doc! { "u": { "credentials": { "SCRAM-SHA-1": { "salt": key, "iterationCount": 1 } } } },
            doc! { "pipeline": [{ "$documents": [{ "credentials": { "x": { "serverKey": key } } }] }, { "$merge": "c" }] },
            doc! { "a": [[{ "storedKey": key }]], "b": 1 },
        ] {
            let hidden = without_keys(&command.to_raw(), &|_| false).unwrap();
            let hidden = Document::from_raw(&hidden).unwrap();
            let text = format!("{hidden:?}");
            assert!(!text.contains(key) && text.contains(HIDDEN), "{text}");
            assert_eq!(hidden.iter().count(), command.iter().count());
        }
        let harmless = doc! { "saslStart": 1, "mechanism": "SCRAM-SHA-256", "a": { "key": key } };
        assert!(without_keys(&harmless.to_raw(), &|_| false).is_none());
    }

    #[test]
    fn further_names_are_secrets_below_the_first_fields() {
        let command = doc! { "explain": { "createUser": "ada", "pwd": "hush" }, "pwd": 1 };
        let hidden = without_keys(&command.to_raw(), &|name| name == "pwd").unwrap();
        let expected = doc! { "explain": { "createUser": "ada", "pwd": HIDDEN }, "pwd": 1 };
        assert_eq!(Document::from_raw(&hidden).unwrap(), expected);
    }

    #[test]
    fn a_very_deep_value_is_hidden() {
        let mut deep = Value::Int32(7);
        for _ in 0..DEPTH_MAX + 5 {
            deep = Value::Array(vec![deep]);
        }
        let hidden = without_keys(&doc! { "a": deep }.to_raw(), &|_| false).unwrap();
        let text = format!("{:?}", Document::from_raw(&hidden).unwrap());
        assert!(text.contains(HIDDEN) && !text.contains('7'), "{text}");
    }
}
