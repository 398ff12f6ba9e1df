//! Values as MongoDB's messages print them: `{ a: 1, b: [ "x", 2.0 ] }`.
//!
//! Drivers and object mappers read some of these messages, so the form is kept. It is not JSON, and never
//! parsed back. Long strings and binary are shown in part; nested values stop at a depth of 20, so a message
//! stays small.

use std::fmt::Write as _;

use pando_document::{RawArray, RawBinary, RawDocument, RawValue, Value};

const STRING_BYTES: Shown = Shown { whole: 160, part: 150 };
const CODE_BYTES: Shown = Shown { whole: 80, part: 70 };
const BINARY_BYTES: Shown = Shown { whole: 80, part: 70 };

/// From how many bytes on a value is shown in part, and how large that part is.
#[derive(Clone, Copy)]
struct Shown {
    whole: usize,
    part: usize,
}

/// Below this depth a message shows `...`.
const DEPTH_MAX: usize = 20;

/// A whole message part is cut here, in bytes.
const TEXT_BYTES_MAX: usize = 8 * 1024;

/// A value: `1`, `1.0`, `"text"`, `[ 1, 2 ]`, `{ a: 1 }`, `ObjectId('…')`.
pub fn value_text(value: RawValue<'_>) -> String {
    let mut out = String::new();
    write_value(&mut out, value, 0);
    out
}

/// The same for an owned value.
pub fn owned_value_text(value: &Value) -> String {
    let mut bytes = Vec::new();
    let mut writer = pando_document::DocumentWriter::begin(&mut bytes);
    writer.append_value("", value);
    writer.finish();
    let document = RawDocument::from_bytes(&bytes).expect("a document just written is well formed");
    match document.iter().next() {
        Some(Ok((_, value))) => value_text(value),
        _ => String::new(),
    }
}

/// A document: `{ a: 1, b: "x" }`.
pub fn document_text(document: &RawDocument) -> String {
    value_text(RawValue::Document(document))
}

fn write_value(out: &mut String, value: RawValue<'_>, depth: usize) {
    if depth > DEPTH_MAX || out.len() > TEXT_BYTES_MAX {
        out.push_str("...");
        return;
    }
    match value {
        RawValue::Document(document) => write_document(out, document, depth),
        RawValue::Array(array) => write_array(out, array, depth),
        scalar => write_scalar(out, scalar, depth),
    }
}

fn write_document(out: &mut String, document: &RawDocument, depth: usize) {
    if document.is_empty() {
        out.push_str("{}");
        return;
    }
    out.push_str("{ ");
    for (position, element) in document.iter().enumerate() {
        let Ok((name, value)) = element else { break };
        if position > 0 {
            out.push_str(", ");
        }
        out.push_str(name);
        out.push_str(": ");
        write_value(out, value, depth + 1);
        if out.len() > TEXT_BYTES_MAX {
            break;
        }
    }
    out.push_str(" }");
}

fn write_array(out: &mut String, array: &RawArray, depth: usize) {
    if array.as_document().is_empty() {
        out.push_str("[]");
        return;
    }
    out.push_str("[ ");
    for (position, element) in array.iter().enumerate() {
        let Ok(value) = element else { break };
        if position > 0 {
            out.push_str(", ");
        }
        write_value(out, value, depth + 1);
        if out.len() > TEXT_BYTES_MAX {
            break;
        }
    }
    out.push_str(" ]");
}

fn write_scalar(out: &mut String, value: RawValue<'_>, depth: usize) {
    // Writing into a String cannot fail.
    let _ = match value {
        RawValue::Double(number) => {
            out.push_str(&double_text(number));
            Ok(())
        }
        RawValue::String(text) | RawValue::Symbol(text) => {
            write_string(out, text);
            Ok(())
        }
        RawValue::Binary(binary) => {
            write_binary(out, binary);
            Ok(())
        }
        RawValue::Undefined => write!(out, "undefined"),
        RawValue::ObjectId(id) => write!(out, "ObjectId('{id}')"),
        RawValue::Boolean(flag) => write!(out, "{flag}"),
        RawValue::DateTime(millis) => write!(out, "new Date({millis})"),
        RawValue::Null => write!(out, "null"),
        RawValue::Regex(regex) => write!(out, "/{}/{}", regex.pattern, regex.options),
        RawValue::DbPointer(pointer) => write!(out, "DBRef('{}',{})", pointer.namespace, pointer.id),
        RawValue::JavaScript(code) => {
            let shown = shortened(code, CODE_BYTES);
            write!(out, "{shown}{}", if shown.len() < code.len() { "..." } else { "" })
        }
        RawValue::JavaScriptWithScope(code) => {
            let _ = write!(out, "CodeWScope( {}, ", code.code);
            write_document(out, code.scope, depth + 1);
            write!(out, ")")
        }
        RawValue::Int32(number) => write!(out, "{number}"),
        RawValue::Int64(number) => write!(out, "{number}"),
        RawValue::Timestamp(stamp) => write!(out, "Timestamp({}, {})", stamp.time, stamp.increment),
        RawValue::Decimal128(number) => write!(out, "{number}"),
        RawValue::MinKey => write!(out, "MinKey"),
        RawValue::MaxKey => write!(out, "MaxKey"),
        RawValue::Document(_) | RawValue::Array(_) => {
            unreachable!("nested values are written by write_value")
        }
    };
}

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let shown = shortened(text, STRING_BYTES);
    out.push_str(shown);
    if shown.len() < text.len() {
        out.push_str("...");
    }
    out.push('"');
}

/// The part of a text that is shown: all of fewer than `whole` bytes, otherwise about the first `part`.
fn shortened(text: &str, Shown { whole, part }: Shown) -> &str {
    if text.len() < whole {
        return text;
    }
    let mut end = part;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Binary of subtype 4 is a UUID, that of subtype 2 has a length of its own in front of its bytes.
fn write_binary(out: &mut String, binary: RawBinary<'_>) {
    // Writing into a String cannot fail.
    let bytes = match (binary.subtype, binary.bytes) {
        (4, bytes) if bytes.len() == 16 => {
            out.push_str("UUID(\"");
            for (at, byte) in bytes.iter().enumerate() {
                if matches!(at, 4 | 6 | 8 | 10) {
                    out.push('-');
                }
                let _ = write!(out, "{byte:02x}");
            }
            out.push_str("\")");
            return;
        }
        (2, bytes) => bytes.get(4..).unwrap_or(bytes),
        (_, bytes) => bytes,
    };
    let _ = write!(out, "BinData({}, ", binary.subtype);
    let shown = if bytes.len() > BINARY_BYTES.whole { &bytes[..BINARY_BYTES.part] } else { bytes };
    for byte in shown {
        let _ = write!(out, "{byte:02X}");
    }
    out.push_str(if shown.len() < bytes.len() { "...)" } else { ")" });
}

/// A double always shows a point, as in `1.0`, `1e+300.0` and `inf.0`.
fn double_text(number: f64) -> String {
    let text = general_text(number);
    if text.contains('.') { text } else { format!("{text}.0") }
}

/// A double with up to 16 significant digits, in the shape of C's `%.16g`.
pub(crate) fn general_text(number: f64) -> String {
    significant_text(number, 16)
}

/// A double with up to 6 significant digits, in the shape of C's `%g`.
pub(crate) fn short_double_text(number: f64) -> String {
    significant_text(number, 6)
}

fn significant_text(number: f64, digits: u8) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let decimals = usize::from(digits - 1);
    let scientific = format!("{number:.decimals$e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("scientific notation has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent of a double is a small integer");
    if (-4..i32::from(digits)).contains(&exponent) {
        let decimals = usize::try_from(i32::from(digits) - 1 - exponent).unwrap_or(0);
        return trim_zeroes(&format!("{number:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim_zeroes(mantissa), exponent.abs())
}

fn trim_zeroes(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_always_show_a_point() {
        for (number, text) in [
            (1.0, "1.0"),
            (1.5, "1.5"),
            (1e300, "1e+300.0"),
            (1e-7, "1e-07.0"),
            (123_456_789.123, "123456789.123"),
            (f64::INFINITY, "inf.0"),
            (f64::NAN, "nan.0"),
        ] {
            assert_eq!(double_text(number), text);
        }
    }

    #[test]
    fn short_texts_are_those_of_printf() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (0.1, "0.1"),
            (123_456.0, "123456"),
            (100_000.0, "100000"),
            (1_234_567.0, "1.23457e+06"),
            (999_999.5, "1e+06"),
            (0.000_123_45, "0.00012345"),
            (0.000_012_345, "1.2345e-05"),
            (5e-324, "4.94066e-324"),
            (9_223_372_036_854_775_808.0, "9.22337e+18"),
            (-2.5, "-2.5"),
        ] {
            assert_eq!(short_double_text(number), text);
        }
    }
}
