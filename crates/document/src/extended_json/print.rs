//! From values to characters.

use std::fmt::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::extended_json::date_text::write_date;
use crate::{Document, RawBinary, RawDocument, RawValue, Value, ValueRef};

/// The two forms of Extended JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonFormat {
    /// Every type can be told.
    Canonical,
    /// For people: numbers as numbers, dates as text.
    Relaxed,
}

/// The value as Extended JSON on one line. Of raw documents that are not sound, the part behind the fault is
/// left out.
pub fn to_json<'a>(value: impl Into<ValueRef<'a>>, format: JsonFormat) -> String {
    let mut out = String::new();
    write_json(&mut out, value, format);
    out
}

/// Appends the value as Extended JSON; see [`to_json`].
pub fn write_json<'a>(out: &mut String, value: impl Into<ValueRef<'a>>, format: JsonFormat) {
    let mut printer = Printer { out, format };
    printer.value(value.into()).expect("writing to a string does not fail");
}

struct Printer<'o> {
    out: &'o mut String,
    format: JsonFormat,
}

impl Printer<'_> {
    fn value(&mut self, value: ValueRef<'_>) -> fmt::Result {
        match value {
            ValueRef::Raw(value) => self.raw(value),
            ValueRef::Document(document) => self.owned_document(document),
            ValueRef::Array(values) => self.list(values.iter().map(ValueRef::from)),
            ValueRef::JavaScriptWithScope { code, scope } => {
                self.code_start(code)?;
                self.owned_document(scope)?;
                self.out.write_char('}')
            }
        }
    }

    fn raw(&mut self, value: RawValue<'_>) -> fmt::Result {
        match value {
            RawValue::Double(number) => self.double(number),
            RawValue::Int32(number) => self.number("$numberInt", number),
            RawValue::Int64(number) => self.number("$numberLong", number),
            RawValue::Decimal128(number) => write!(self.out, r#"{{"$numberDecimal":"{number}"}}"#),
            RawValue::String(text) => self.string(text),
            RawValue::Document(document) => self.raw_document(document),
            RawValue::Array(array) => self.list(array.iter().map_while(Result::ok).map(ValueRef::Raw)),
            RawValue::Binary(binary) => self.binary(binary),
            RawValue::Undefined => self.out.write_str(r#"{"$undefined":true}"#),
            RawValue::ObjectId(id) => write!(self.out, r#"{{"$oid":"{id}"}}"#),
            RawValue::Boolean(boolean) => write!(self.out, "{boolean}"),
            RawValue::DateTime(milliseconds) => self.date(milliseconds),
            RawValue::Null => self.out.write_str("null"),
            RawValue::Regex(regex) => {
                self.out.write_str(r#"{"$regularExpression":{"pattern":"#)?;
                self.string(regex.pattern)?;
                self.out.write_str(r#","options":"#)?;
                self.string(regex.options)?;
                self.out.write_str("}}")
            }
            RawValue::DbPointer(pointer) => {
                self.out.write_str(r#"{"$dbPointer":{"$ref":"#)?;
                self.string(pointer.namespace)?;
                write!(self.out, r#","$id":{{"$oid":"{}"}}}}}}"#, pointer.id)
            }
            RawValue::JavaScript(code) => self.wrapped_string("$code", code),
            RawValue::Symbol(text) => self.wrapped_string("$symbol", text),
            RawValue::JavaScriptWithScope(code) => {
                self.code_start(code.code)?;
                self.raw_document(code.scope)?;
                self.out.write_char('}')
            }
            RawValue::Timestamp(timestamp) => {
                write!(self.out, r#"{{"$timestamp":{{"t":{},"i":{}}}}}"#, timestamp.time, timestamp.increment)
            }
            RawValue::MinKey => self.out.write_str(r#"{"$minKey":1}"#),
            RawValue::MaxKey => self.out.write_str(r#"{"$maxKey":1}"#),
        }
    }

    fn wrapped_string(&mut self, name: &str, text: &str) -> fmt::Result {
        write!(self.out, r#"{{"{name}":"#)?;
        self.string(text)?;
        self.out.write_char('}')
    }

    fn code_start(&mut self, code: &str) -> fmt::Result {
        self.out.write_str(r#"{"$code":"#)?;
        self.string(code)?;
        self.out.write_str(r#","$scope":"#)
    }

    fn number(&mut self, name: &str, number: impl fmt::Display) -> fmt::Result {
        match self.format {
            JsonFormat::Canonical => write!(self.out, r#"{{"{name}":"{number}"}}"#),
            JsonFormat::Relaxed => write!(self.out, "{number}"),
        }
    }

    fn double(&mut self, number: f64) -> fmt::Result {
        if number.is_nan() {
            return self.out.write_str(r#"{"$numberDouble":"NaN"}"#);
        }
        if number.is_infinite() {
            let sign = if number < 0.0 { "-" } else { "" };
            return write!(self.out, r#"{{"$numberDouble":"{sign}Infinity"}}"#);
        }
        // Debug's form is the shortest that reads back as this double, and always has a point or an exponent.
        self.number("$numberDouble", format_args!("{number:?}"))
    }

    fn date(&mut self, milliseconds: i64) -> fmt::Result {
        let start = self.out.len();
        if self.format == JsonFormat::Relaxed {
            self.out.write_str(r#"{"$date":""#)?;
            if write_date(self.out, milliseconds) {
                return self.out.write_str(r#""}"#);
            }
            self.out.truncate(start);
        }
        write!(self.out, r#"{{"$date":{{"$numberLong":"{milliseconds}"}}}}"#)
    }

    fn binary(&mut self, binary: RawBinary<'_>) -> fmt::Result {
        self.out.write_str(r#"{"$binary":{"base64":""#)?;
        STANDARD.encode_string(binary.bytes, self.out);
        write!(self.out, r#"","subType":"{:02x}"}}}}"#, binary.subtype)
    }

    fn string(&mut self, text: &str) -> fmt::Result {
        self.out.write_char('"')?;
        let mut plain_start = 0;
        for (place, byte) in text.bytes().enumerate() {
            if byte >= b' ' && byte != b'"' && byte != b'\\' {
                continue;
            }
            self.out.write_str(&text[plain_start..place])?;
            plain_start = place + 1;
            match byte {
                b'"' => self.out.write_str("\\\"")?,
                b'\\' => self.out.write_str("\\\\")?,
                b'\n' => self.out.write_str("\\n")?,
                b'\r' => self.out.write_str("\\r")?,
                b'\t' => self.out.write_str("\\t")?,
                _ => write!(self.out, "\\u{byte:04x}")?,
            }
        }
        self.out.write_str(&text[plain_start..])?;
        self.out.write_char('"')
    }

    fn raw_document(&mut self, document: &RawDocument) -> fmt::Result {
        let fields = document.iter().map_while(Result::ok);
        self.fields(fields.map(|(name, value)| (name, ValueRef::Raw(value))))
    }

    fn owned_document(&mut self, document: &Document) -> fmt::Result {
        self.fields(document.iter().map(|(name, value)| (name, ValueRef::from(value))))
    }

    fn fields<'v>(&mut self, fields: impl Iterator<Item = (&'v str, ValueRef<'v>)>) -> fmt::Result {
        self.out.write_char('{')?;
        for (index, (name, value)) in fields.enumerate() {
            if index > 0 {
                self.out.write_char(',')?;
            }
            self.string(name)?;
            self.out.write_char(':')?;
            self.value(value)?;
        }
        self.out.write_char('}')
    }

    fn list<'v>(&mut self, values: impl Iterator<Item = ValueRef<'v>>) -> fmt::Result {
        self.out.write_char('[')?;
        for (index, value) in values.enumerate() {
            if index > 0 {
                self.out.write_char(',')?;
            }
            self.value(value)?;
        }
        self.out.write_char(']')
    }
}

/// Relaxed Extended JSON.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_json(self, JsonFormat::Relaxed))
    }
}

/// Relaxed Extended JSON.
impl fmt::Display for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_json(self, JsonFormat::Relaxed))
    }
}

/// Relaxed Extended JSON.
impl fmt::Display for RawDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&to_json(self, JsonFormat::Relaxed))
    }
}
