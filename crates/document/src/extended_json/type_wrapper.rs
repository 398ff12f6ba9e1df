//! `{"$…": …}` documents that stand for values of other types.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::extended_json::date_text::parse_date;
use crate::{
    Binary, DbPointer, Decimal128, Document, JavaScriptWithScope, ObjectId, Regex, Timestamp, Value,
};

/// The value of a wrapper; `None` if its content does not fit the type.
type Content = Option<Value>;

/// The wrappers: the name that decides, and the function that makes the value. A wrapper may have no other
/// fields than its own.
const WRAPPERS: [(&str, fn(&Document) -> Content); 18] = [
    ("$oid", object_id),
    ("$symbol", |document| Some(Value::Symbol(only_string(document)?.to_owned()))),
    ("$numberInt", |document| integer(only_string(document)?).map(Value::Int32)),
    ("$numberLong", |document| integer(only_string(document)?).map(Value::Int64)),
    ("$numberDouble", double),
    ("$numberDecimal", |document| only_string(document)?.parse::<Decimal128>().ok().map(Value::Decimal128)),
    ("$binary", binary),
    ("$uuid", uuid),
    ("$code", code),
    ("$timestamp", timestamp),
    ("$regularExpression", regular_expression),
    ("$dbPointer", db_pointer),
    ("$date", date),
    ("$minKey", |document| (only(document)?.as_i64_exact()? == 1).then_some(Value::MinKey)),
    ("$maxKey", |document| (only(document)?.as_i64_exact()? == 1).then_some(Value::MaxKey)),
    ("$undefined", |document| (only(document)?.as_bool()?).then_some(Value::Undefined)),
    // The same two wrappers with their fields in the other order.
    ("$scope", code),
    ("$type", binary),
];

/// The value that a document with a `$…` name stands for; the document itself if its name is no type.
///
/// # Errors
/// The name of the type whose content it does not have.
pub(super) fn unwrap_type(document: Document) -> Result<Value, &'static str> {
    let first = document.names().next().unwrap_or_default();
    let Some((name, make)) = WRAPPERS.iter().find(|(name, _)| *name == first) else {
        return Ok(Value::Document(document));
    };
    // `$type` and `$scope` alone are no types: the first is an operator of filters.
    let partner = match *name {
        "$type" => document.contains("$binary"),
        "$scope" => document.contains("$code"),
        _ => true,
    };
    if !partner {
        return Ok(Value::Document(document));
    }
    make(&document).ok_or(*name)
}

fn only(document: &Document) -> Option<&Value> {
    document.iter().next().filter(|_| document.len() == 1).map(|(_, value)| value)
}

fn only_string(document: &Document) -> Option<&str> {
    only(document)?.as_str()
}

fn two<'d>(document: &'d Document, first: &str, second: &str) -> Option<(&'d Value, &'d Value)> {
    (document.len() == 2).then_some((document.get(first)?, document.get(second)?))
}

/// An integer as canonical JSON writes it: no plus sign.
fn integer<T: std::str::FromStr>(text: &str) -> Option<T> {
    if text.starts_with('+') { None } else { text.parse().ok() }
}

fn object_id(document: &Document) -> Content {
    ObjectId::from_hex(only_string(document)?).map(Value::ObjectId)
}

fn double(document: &Document) -> Content {
    // Plain numbers are accepted too, as most drivers do.
    let number = match only(document)? {
        Value::String(text) => match text.as_str() {
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            "NaN" => f64::NAN,
            text => {
                let starts_as_number =
                    text.trim_start_matches(['-', '+']).starts_with(|first: char| first.is_ascii_digit());
                text.parse().ok().filter(|number: &f64| starts_as_number && number.is_finite())?
            }
        },
        Value::Double(number) => *number,
        Value::Int32(number) => f64::from(*number),
        _ => return None,
    };
    Some(Value::Double(number))
}

fn binary(document: &Document) -> Content {
    let (base64, subtype) = match document.get("$binary")? {
        Value::Document(inner) if document.len() == 1 => two(inner, "base64", "subType")?,
        text => (text, two(document, "$binary", "$type")?.1),
    };
    let subtype = subtype.as_str().filter(|text| matches!(text.len(), 1..=2) && !text.starts_with('+'))?;
    let subtype = u8::from_str_radix(subtype, 16).ok()?;
    let bytes = STANDARD.decode(base64.as_str()?).ok()?;
    Some(Value::Binary(Binary { subtype, bytes }))
}

fn uuid(document: &Document) -> Content {
    let text = only_string(document)?;
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    if lengths != [8, 4, 4, 4, 12] || !groups.concat().bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let number = u128::from_str_radix(&groups.concat(), 16).ok()?;
    Some(Value::Binary(Binary { subtype: 4, bytes: number.to_be_bytes().to_vec() }))
}

fn code(document: &Document) -> Content {
    if let Some(Value::String(code)) = only(document) {
        return Some(Value::JavaScript(code.clone()));
    }
    let (code, scope) = two(document, "$code", "$scope")?;
    let (code, scope) = (code.as_str()?.to_owned(), scope.as_document()?.clone());
    Some(Value::JavaScriptWithScope(JavaScriptWithScope { code, scope }))
}

fn timestamp(document: &Document) -> Content {
    let (time, increment) = two(only(document)?.as_document()?, "t", "i")?;
    let part = |value: &Value| u32::try_from(value.as_i64_exact()?).ok();
    Some(Value::Timestamp(Timestamp { time: part(time)?, increment: part(increment)? }))
}

fn regular_expression(document: &Document) -> Content {
    let (pattern, options) = two(only(document)?.as_document()?, "pattern", "options")?;
    let text = |value: &Value| value.as_str().filter(|text| !text.contains('\0')).map(str::to_owned);
    Some(Value::Regex(Regex { pattern: text(pattern)?, options: text(options)? }))
}

fn db_pointer(document: &Document) -> Content {
    match two(only(document)?.as_document()?, "$ref", "$id")? {
        (Value::String(namespace), Value::ObjectId(id)) => {
            Some(Value::DbPointer(DbPointer { namespace: namespace.clone(), id: *id }))
        }
        _ => None,
    }
}

fn date(document: &Document) -> Content {
    let milliseconds = match only(document)? {
        Value::String(text) => parse_date(text)?,
        Value::Int64(milliseconds) => *milliseconds,
        Value::Int32(milliseconds) => i64::from(*milliseconds),
        _ => return None,
    };
    Some(Value::DateTime(milliseconds))
}
