//! What an index specification may say, and the form in which it is kept.
//!
//! A specification is kept as `{v: 2, key, name, …}`, in that order, with the options that were given. Options and kinds of
//! index that Pando does not carry out yet are refused: an index that silently means something else is worse than none.

use pando_document::{Document, RawDocument, RawValue, Value};
use pando_query::shell_text::document_text;

use crate::{CommandError, ErrorCode};

/// Options that change nothing here.
const IGNORED: [&str; 4] = ["background", "ns", "dropDups", "commitQuorum"];
/// Options of MongoDB that are not carried out yet.
const NOT_YET: [&str; 14] = [
    "expireAfterSeconds",
    "partialFilterExpression",
    "collation",
    "weights",
    "default_language",
    "language_override",
    "textIndexVersion",
    "2dsphereIndexVersion",
    "bits",
    "min",
    "max",
    "wildcardProjection",
    "bucketSize",
    "prepareUnique",
];

/// Checks a specification and gives it the form in which it is kept.
pub(super) fn normalise(given: &RawDocument) -> Result<Document, CommandError> {
    check(given).map_err(|(code, reason)| {
        CommandError::failed(
            code,
            format!("Error in specification {} :: caused by :: {reason}", document_text(given)),
        )
    })
}

/// A code, and the part of the sentence that says why.
type Refusal = (ErrorCode, String);

fn check(given: &RawDocument) -> Result<Document, Refusal> {
    let mut key = None;
    let mut name = None;
    let mut options = Document::new();
    for field in given.iter() {
        match field.map_err(|error| (ErrorCode::InvalidBson, error.to_string()))? {
            ("key", RawValue::Document(pattern)) => key = Some(pattern),
            ("key", other) => return Err(wrong_type("key", "an object", other)),
            ("name", RawValue::String(text)) => name = Some(text),
            ("name", other) => return Err(wrong_type("name", "a string", other)),
            (option, value) => check_option(given, option, value, &mut options)?,
        }
    }
    let key = key.ok_or_else(|| missing("key"))?;
    let name = name.ok_or_else(|| missing("name"))?;
    check_key(key)?;
    if name.is_empty() {
        return Err((ErrorCode::CannotCreateIndex, "index name cannot be empty".to_owned()));
    }
    let mut kept = Document::new();
    kept.push("v", Value::Int32(2));
    kept.push("key", RawValue::Document(key).to_owned());
    kept.push("name", Value::from(name));
    for (option, value) in options.iter() {
        kept.push(option, value.clone());
    }
    Ok(kept)
}

/// Takes an option over, drops it where it changes nothing, or refuses it.
fn check_option(
    given: &RawDocument,
    option: &str,
    value: RawValue<'_>,
    options: &mut Document,
) -> Result<(), Refusal> {
    match option {
        "v" if matches!(value.as_i64_exact(), Some(1 | 2)) => Ok(()),
        "v" => Err((ErrorCode::CannotCreateIndex, "Invalid index version".to_owned())),
        "unique" | "sparse" | "hidden" if is_boolean_like(value) => {
            if value.to_bool() {
                options.push(option, Value::Boolean(true));
            }
            Ok(())
        }
        "unique" | "sparse" | "hidden" => Err((
            ErrorCode::TypeMismatch,
            format!(
                "The field '{option}' has value of type {}, which is not convertible to bool",
                value.element_type().alias()
            ),
        )),
        "storageEngine" if value.as_document().is_some() => {
            options.push("storageEngine", value.to_owned());
            Ok(())
        }
        _ if IGNORED.contains(&option) => Ok(()),
        _ if NOT_YET.contains(&option) => {
            Err((ErrorCode::CannotCreateIndex, format!("the index option '{option}' is not supported yet")))
        }
        _ => Err((
            ErrorCode::InvalidIndexSpecificationOption,
            format!(
                "The field '{option}' is not valid for an index specification. Specification: {}",
                document_text(given)
            ),
        )),
    }
}

fn wrong_type(field: &str, wanted: &str, value: RawValue<'_>) -> Refusal {
    let reason = format!("The field '{field}' must be {wanted}, but got {}", value.element_type().alias());
    (ErrorCode::TypeMismatch, reason)
}

fn missing(field: &str) -> Refusal {
    (
        ErrorCode::FailedToParse,
        format!("The '{field}' field is a required property of an index specification"),
    )
}

fn is_boolean_like(value: RawValue<'_>) -> bool {
    value.is_number() || value.as_bool().is_some()
}

/// Whether a key pattern names fields and orders.
fn check_key(key: &RawDocument) -> Result<(), Refusal> {
    let mut fields = 0;
    for field in key.iter() {
        let (path, order) = field.map_err(|error| (ErrorCode::InvalidBson, error.to_string()))?;
        fields += 1;
        check_path(path)?;
        match order {
            RawValue::String(kind) => {
                return Err((ErrorCode::CannotCreateIndex, format!("Unknown index plugin '{kind}'")));
            }
            value if value.is_number() => {
                let number = as_f64(value);
                if number == 0.0 {
                    return Err((
                        ErrorCode::CannotCreateIndex,
                        "Values in the index key pattern cannot be 0.".to_owned(),
                    ));
                }
                if number.is_nan() {
                    return Err((
                        ErrorCode::CannotCreateIndex,
                        "Values in the index key pattern cannot be NaN.".to_owned(),
                    ));
                }
            }
            other => {
                return Err((
                    ErrorCode::CannotCreateIndex,
                    format!(
                        "Values in v:2 index key pattern cannot be of type {}. Only numbers > 0, numbers < 0, and strings are allowed.",
                        other.element_type().alias()
                    ),
                ));
            }
        }
    }
    match fields {
        0 => Err((ErrorCode::CannotCreateIndex, "Index keys cannot be empty.".to_owned())),
        1..=32 => Ok(()),
        _ => Err((ErrorCode::Location(13103), "too many compound keys".to_owned())),
    }
}

fn check_path(path: &str) -> Result<(), Refusal> {
    if path.is_empty() {
        return Err((ErrorCode::CannotCreateIndex, "Index keys cannot be an empty field.".to_owned()));
    }
    if path.split('.').any(str::is_empty) {
        return Err((ErrorCode::CannotCreateIndex, "Index keys cannot contain an empty field.".to_owned()));
    }
    if path.split('.').any(|part| part.starts_with('$')) {
        if path.contains("$**") {
            return Err((ErrorCode::CannotCreateIndex, "wildcard indexes are not supported yet".to_owned()));
        }
        return Err((
            ErrorCode::CannotCreateIndex,
            "Index key contains an illegal field name: field name starts with '$'.".to_owned(),
        ));
    }
    Ok(())
}

fn as_f64(value: RawValue<'_>) -> f64 {
    match value {
        RawValue::Double(number) => number,
        value => value.as_i64_exact().map_or(1.0, |number| number as f64),
    }
}

/// Whether two key patterns name the same fields in the same orders, whatever the type of their numbers.
pub(super) fn same_key(a: &RawDocument, b: &RawDocument) -> bool {
    let mut left = a.iter();
    let mut right = b.iter();
    loop {
        match (left.next(), right.next()) {
            (None, None) => return true,
            (Some(Ok((name_a, value_a))), Some(Ok((name_b, value_b)))) => {
                let same_order = match (value_a, value_b) {
                    (RawValue::String(a), RawValue::String(b)) => a == b,
                    (a, b) => a.is_number() && b.is_number() && as_f64(a) == as_f64(b),
                };
                if name_a != name_b || !same_order {
                    return false;
                }
            }
            _ => return false,
        }
    }
}
