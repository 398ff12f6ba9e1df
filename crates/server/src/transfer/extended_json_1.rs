//! Extended JSON of version 1, as mongoexport wrote it up to MongoDB 4.0, in that of version 2.
//!
//! Two of its forms are no forms of version 2: dates with an offset without a colon
//! (`{"$date": "2019-08-11T17:54:14.692+0000"}`), and binary values with their bytes at the top
//! (`{"$binary": "AQ==", "$type": "00"}`). mongoimport reads both.
//!
//! Not here: regular expressions of version 1 (`{"$regex": "^a", "$options": "i"}`), which are documents in
//! version 2, such as a stored query.

use serde_json::{Map, Value, json};

/// Whether one of both forms is in these fields, at any depth.
pub(super) fn is_version_1(fields: &Map<String, Value>) -> bool {
    upgraded_form(fields).is_some() || fields.values().any(is_version_1_inside)
}

fn is_version_1_inside(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(is_version_1_inside),
        Value::Object(fields) => is_version_1(fields),
        _ => false,
    }
}

/// The same fields with both forms replaced, at any depth.
pub(super) fn upgraded(fields: Map<String, Value>) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name, upgraded_value(value))).collect()
}

fn upgraded_value(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(upgraded_value).collect(),
        Value::Object(fields) => match upgraded_form(&fields) {
            Some(form) => form,
            None => Value::Object(upgraded(fields)),
        },
        other => other,
    }
}

/// The form of version 2 of an object that has one of both forms.
fn upgraded_form(fields: &Map<String, Value>) -> Option<Value> {
    match fields.len() {
        1 => date_with_colon(fields.get("$date")?),
        2 => binary(fields),
        _ => None,
    }
}

/// A date whose offset gets its colon: `+0000` is `+00:00`.
fn date_with_colon(date: &Value) -> Option<Value> {
    let text = date.as_str()?;
    let (moment, minutes) = text.split_at_checked(text.len().checked_sub(2)?)?;
    let sign = moment.len().checked_sub(3).and_then(|at| moment.as_bytes().get(at))?;
    let is_offset = matches!(sign, b'+' | b'-') && minutes.bytes().all(|byte| byte.is_ascii_digit());
    is_offset.then(|| json!({ "$date": format!("{moment}:{minutes}") }))
}

fn binary(fields: &Map<String, Value>) -> Option<Value> {
    let (bytes, kind) = (fields.get("$binary")?.as_str()?, fields.get("$type")?.as_str()?);
    Some(json!({ "$binary": { "base64": bytes, "subType": format!("{kind:0>2}") } }))
}

#[cfg(test)]
mod tests {
    use super::super::record::document_of;
    use super::*;

    #[test]
    fn forms_of_version_1_are_read() {
        for (first, second) in [
            (
                json!({ "$date": "2019-08-11T17:54:14.692+0000" }),
                json!({ "$date": "2019-08-11T17:54:14.692Z" }),
            ),
            (json!({ "$date": "2019-08-11T17:54:14-0130" }), json!({ "$date": "2019-08-11T19:24:14Z" })),
            (
                json!({ "$binary": "AQ==", "$type": "00" }),
                json!({ "$binary": { "base64": "AQ==", "subType": "00" } }),
            ),
            (
                json!([{ "a": { "$binary": "AQ==", "$type": "5" } }]),
                json!([{ "a": { "$binary": { "base64": "AQ==", "subType": "05" } } }]),
            ),
        ] {
            let read = |value| document_of(json!({ "x": value })).expect("it is a document");
            assert_eq!(read(first), read(second));
        }
    }

    #[test]
    fn other_values_stay_as_they_are_and_faults_are_refused() {
        for value in
            [json!({ "$type": "00", "a": 1 }), json!({ "b": "2019-08-11T17:54:14.692+0000" }), json!("+0000")]
        {
            assert_eq!(upgraded_value(value.clone()), value);
        }
        for value in [
            json!({ "$date": "soon+0000" }),
            json!({ "$date": "é00" }),
            json!({ "$binary": "§", "$type": "00" }),
        ] {
            assert!(document_of(json!({ "x": value })).is_err());
        }
    }
}
