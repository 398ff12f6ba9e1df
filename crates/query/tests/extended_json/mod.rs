//! A reader of documents that the corpus files hold as Extended JSON.
//!
//! Only wrapper objects that the canonical form has are taken for values; `{"$regex": …, "$options": …}`
//! stays a document, which is what a filter needs.

use pando_document::{
    Binary, Decimal128, DecimalParts, Document, JavaScriptWithScope, ObjectId, RawDocumentBuf, Regex,
    Timestamp, Value,
};
use serde_json::{Map, Value as Json};

/// The document that a text spells.
pub fn document(text: &str) -> RawDocumentBuf {
    let json: Json = serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    fields(json.as_object().unwrap_or_else(|| panic!("{text} is an object"))).to_raw()
}

fn fields(object: &Map<String, Json>) -> Document {
    let mut document = Document::new();
    for (name, json) in object {
        document.push(name, value(json));
    }
    document
}

fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(boolean) => Value::Boolean(*boolean),
        Json::String(text) => Value::String(text.clone()),
        Json::Array(elements) => Value::Array(elements.iter().map(value).collect()),
        Json::Number(number) => {
            let number = number.as_i64().expect("the corpus writes doubles as $numberDouble");
            i32::try_from(number).map_or(Value::Int64(number), Value::Int32)
        }
        Json::Object(object) => wrapped(object).unwrap_or_else(|| Value::Document(fields(object))),
    }
}

/// The value that a wrapper object stands for, if it is one.
fn wrapped(object: &Map<String, Json>) -> Option<Value> {
    let (name, inner) = object.iter().next()?;
    let text = || inner.as_str().expect("this wrapper holds a string");
    Some(match name.as_str() {
        "$numberInt" => Value::Int32(text().parse().expect("an int32")),
        "$numberLong" => Value::Int64(text().parse().expect("an int64")),
        "$numberDouble" => Value::Double(match text() {
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            "NaN" => f64::NAN,
            text => text.parse().expect("a double"),
        }),
        "$numberDecimal" => Value::Decimal128(decimal(text())),
        "$oid" => Value::ObjectId(object_id(text())),
        "$date" => {
            Value::DateTime(inner["$numberLong"].as_str().expect("milliseconds").parse().expect("an int64"))
        }
        "$timestamp" => {
            let part = |name: &str| u32::try_from(inner[name].as_u64().expect("a number")).expect("32 bits");
            Value::Timestamp(Timestamp { time: part("t"), increment: part("i") })
        }
        "$binary" => Value::Binary(Binary {
            subtype: u8::from_str_radix(inner["subType"].as_str().expect("hex"), 16).expect("a byte"),
            bytes: base64(inner["base64"].as_str().expect("text")),
        }),
        "$regularExpression" => Value::Regex(Regex {
            pattern: inner["pattern"].as_str().expect("text").to_owned(),
            options: inner["options"].as_str().expect("text").to_owned(),
        }),
        "$code" => match object.get("$scope") {
            Some(scope) => Value::JavaScriptWithScope(JavaScriptWithScope {
                code: text().to_owned(),
                scope: fields(scope.as_object().expect("an object")),
            }),
            None => Value::JavaScript(text().to_owned()),
        },
        "$symbol" => Value::Symbol(text().to_owned()),
        "$undefined" => Value::Undefined,
        "$minKey" => Value::MinKey,
        "$maxKey" => Value::MaxKey,
        _ => return None,
    })
}

fn decimal(text: &str) -> Decimal128 {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    Decimal128::from_parts(match digits {
        "NaN" => DecimalParts::NaN,
        "Infinity" => DecimalParts::Infinity { negative },
        digits => {
            let (digits, exponent) = digits.split_once('E').unwrap_or((digits, "0"));
            let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
            let coefficient = format!("{whole}{fraction}").parse().expect("digits");
            let exponent: i32 = exponent.trim_start_matches('+').parse().expect("an exponent");
            let cut = i32::try_from(fraction.len()).expect("few digits");
            DecimalParts::Finite { negative, coefficient, exponent: exponent - cut }
        }
    })
}

fn object_id(hex: &str) -> ObjectId {
    let bytes: Vec<u8> =
        (0..12).map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).expect("hexadecimal")).collect();
    ObjectId::from_bytes(bytes.try_into().expect("twelve bytes"))
}

fn base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits = 0u32;
    let mut count = 0;
    let mut out = Vec::new();
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        let six = ALPHABET.iter().position(|letter| *letter == byte).expect("base64");
        bits = bits << 6 | u32::try_from(six).expect("six bits");
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count & 0xFF) as u8);
        }
    }
    out
}
