//! Values that own their parts: literals of parsed requests, results of expressions.
//!
//! `==` is identity: same type, same bits. `Int32(1) != Double(1.0)` here; MongoDB's equality is
//! [`compare`](crate::compare()) giving `Equal`.

use crate::raw_value::f64_to_i64_exact;
use crate::writer::ArrayWriter;
use crate::{
    Decimal128, Document, DocumentError, DocumentWriter, ElementType, NESTING_MAX, ObjectId, RawArray,
    RawBinary, RawDbPointer, RawRegex, RawValue, Timestamp,
};

/// Bytes with a subtype.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binary {
    /// The type of the bytes, e.g. 4 for a UUID.
    pub subtype: u8,
    /// The content.
    pub bytes: Vec<u8>,
}

/// A regular expression. Neither part may contain NUL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regex {
    /// In PCRE syntax.
    pub pattern: String,
    /// Letters.
    pub options: String,
}

/// The deprecated pointer into another collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DbPointer {
    /// `database.collection`.
    pub namespace: String,
    /// `_id` there.
    pub id: ObjectId,
}

/// The deprecated code with variables.
#[derive(Clone, Debug, PartialEq)]
pub struct JavaScriptWithScope {
    /// The code.
    pub code: String,
    /// Its variables.
    pub scope: Document,
}

/// A value that owns its parts. The variants are those of [`RawValue`].
#[derive(Clone, Debug)]
pub enum Value {
    /// 64-bit IEEE binary floating point.
    Double(f64),
    /// Text; may contain NUL.
    String(String),
    /// A nested document.
    Document(Document),
    /// An array.
    Array(Vec<Value>),
    /// Bytes with a subtype.
    Binary(Binary),
    /// Deprecated.
    Undefined,
    /// Twelve bytes that identify something.
    ObjectId(ObjectId),
    /// True or false.
    Boolean(bool),
    /// Milliseconds since 1970-01-01 UTC.
    DateTime(i64),
    /// Null.
    Null,
    /// A regular expression.
    Regex(Regex),
    /// Deprecated.
    DbPointer(DbPointer),
    /// Code.
    JavaScript(String),
    /// Deprecated; compares as a string.
    Symbol(String),
    /// Deprecated.
    JavaScriptWithScope(JavaScriptWithScope),
    /// 32-bit signed integer.
    Int32(i32),
    /// MongoDB's replication timestamp.
    Timestamp(Timestamp),
    /// 64-bit signed integer.
    Int64(i64),
    /// 128-bit IEEE decimal floating point.
    Decimal128(Decimal128),
    /// Less than everything.
    MinKey,
    /// Greater than everything.
    MaxKey,
}

impl Value {
    /// The value as a [`RawValue`], unless it contains a document or an array, which have no bytes.
    #[inline]
    pub fn as_scalar(&self) -> Option<RawValue<'_>> {
        Some(match self {
            Self::Document(_) | Self::Array(_) | Self::JavaScriptWithScope(_) => return None,
            Self::Double(number) => RawValue::Double(*number),
            Self::String(text) => RawValue::String(text),
            Self::Binary(binary) => {
                RawValue::Binary(RawBinary { subtype: binary.subtype, bytes: &binary.bytes })
            }
            Self::Undefined => RawValue::Undefined,
            Self::ObjectId(id) => RawValue::ObjectId(*id),
            Self::Boolean(boolean) => RawValue::Boolean(*boolean),
            Self::DateTime(milliseconds) => RawValue::DateTime(*milliseconds),
            Self::Null => RawValue::Null,
            Self::Regex(regex) => {
                RawValue::Regex(RawRegex { pattern: &regex.pattern, options: &regex.options })
            }
            Self::DbPointer(pointer) => {
                RawValue::DbPointer(RawDbPointer { namespace: &pointer.namespace, id: pointer.id })
            }
            Self::JavaScript(code) => RawValue::JavaScript(code),
            Self::Symbol(text) => RawValue::Symbol(text),
            Self::Int32(number) => RawValue::Int32(*number),
            Self::Timestamp(timestamp) => RawValue::Timestamp(*timestamp),
            Self::Int64(number) => RawValue::Int64(*number),
            Self::Decimal128(number) => RawValue::Decimal128(*number),
            Self::MinKey => RawValue::MinKey,
            Self::MaxKey => RawValue::MaxKey,
        })
    }

    /// The value's type.
    pub fn element_type(&self) -> ElementType {
        match self {
            Self::Document(_) => ElementType::Document,
            Self::Array(_) => ElementType::Array,
            Self::JavaScriptWithScope(_) => ElementType::JavaScriptWithScope,
            _ => self.as_scalar().expect("the three types without a scalar stand above").element_type(),
        }
    }

    /// An owned copy, as [`RawValue::to_owned`], but malformed nested bytes are an error.
    pub fn from_raw(raw: RawValue<'_>) -> Result<Value, DocumentError> {
        Copier { on_fault: OnFault::Report }.value(raw, 0)
    }

    /// The text of a string; not of a symbol.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// The nested document.
    pub fn as_document(&self) -> Option<&Document> {
        if let Self::Document(document) = self { Some(document) } else { None }
    }

    /// The nested document, to be changed.
    pub fn as_document_mut(&mut self) -> Option<&mut Document> {
        if let Self::Document(document) = self { Some(document) } else { None }
    }

    /// The array's values.
    pub fn as_array(&self) -> Option<&[Value]> {
        if let Self::Array(values) = self { Some(values) } else { None }
    }

    /// The array's values, to be changed.
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        if let Self::Array(values) = self { Some(values) } else { None }
    }

    /// The boolean; other types are not coerced.
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Boolean(boolean) = self { Some(*boolean) } else { None }
    }

    /// The number, of any of the four types, if it is an integer within `i64`.
    pub fn as_i64_exact(&self) -> Option<i64> {
        match self {
            Self::Double(number) => f64_to_i64_exact(*number),
            _ => self.as_scalar()?.as_i64_exact(),
        }
    }

    /// Whether it is of one of the four number types.
    pub fn is_number(&self) -> bool {
        self.element_type().is_number()
    }

    /// Null or undefined.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null | Self::Undefined)
    }

    /// The value where a boolean is wanted; see [`RawValue::to_bool`].
    pub fn to_bool(&self) -> bool {
        self.as_scalar().is_none_or(|scalar| scalar.to_bool())
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Double(a), Self::Double(b)) => a.to_bits() == b.to_bits(),
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Document(a), Self::Document(b)) => a == b,
            (Self::Array(a), Self::Array(b)) => a == b,
            (Self::Binary(a), Self::Binary(b)) => a == b,
            (Self::ObjectId(a), Self::ObjectId(b)) => a == b,
            (Self::Boolean(a), Self::Boolean(b)) => a == b,
            (Self::DateTime(a), Self::DateTime(b)) => a == b,
            (Self::Regex(a), Self::Regex(b)) => a == b,
            (Self::DbPointer(a), Self::DbPointer(b)) => a == b,
            (Self::JavaScript(a), Self::JavaScript(b)) => a == b,
            (Self::Symbol(a), Self::Symbol(b)) => a == b,
            (Self::JavaScriptWithScope(a), Self::JavaScriptWithScope(b)) => a == b,
            (Self::Int32(a), Self::Int32(b)) => a == b,
            (Self::Timestamp(a), Self::Timestamp(b)) => a == b,
            (Self::Int64(a), Self::Int64(b)) => a == b,
            (Self::Decimal128(a), Self::Decimal128(b)) => a == b,
            (Self::Undefined, Self::Undefined)
            | (Self::Null, Self::Null)
            | (Self::MinKey, Self::MinKey)
            | (Self::MaxKey, Self::MaxKey) => true,
            _ => false,
        }
    }
}

/// The result of a copy at malformed nested bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnFault {
    /// Gives the error.
    Report,
    /// Leaves out the rest of the document at fault.
    LeaveOut,
}

/// Copies raw values into owned ones. Recursion is bounded by [`NESTING_MAX`].
pub(crate) struct Copier {
    pub on_fault: OnFault,
}

impl Copier {
    pub fn document(&self, raw: &crate::RawDocument, depth: usize) -> Result<Document, DocumentError> {
        let mut document = Document::new();
        for field in self.checked_depth(depth)?.then(|| raw.iter()).into_iter().flatten() {
            match field.and_then(|(name, value)| Ok((name, self.value(value, depth + 1)?))) {
                Ok((name, value)) => document.push(name, value),
                Err(_) if self.on_fault == OnFault::LeaveOut => break,
                Err(error) => return Err(error),
            }
        }
        Ok(document)
    }

    fn array(&self, raw: &RawArray, depth: usize) -> Result<Vec<Value>, DocumentError> {
        let mut values = Vec::new();
        for value in self.checked_depth(depth)?.then(|| raw.iter()).into_iter().flatten() {
            match value.and_then(|value| self.value(value, depth + 1)) {
                Ok(value) => values.push(value),
                Err(_) if self.on_fault == OnFault::LeaveOut => break,
                Err(error) => return Err(error),
            }
        }
        Ok(values)
    }

    /// Whether to go on to this depth.
    fn checked_depth(&self, depth: usize) -> Result<bool, DocumentError> {
        match self.on_fault {
            OnFault::Report if depth > NESTING_MAX => {
                Err(DocumentError::TooDeep { nesting_max: NESTING_MAX })
            }
            _ => Ok(depth <= NESTING_MAX),
        }
    }

    pub fn value(&self, raw: RawValue<'_>, depth: usize) -> Result<Value, DocumentError> {
        Ok(match raw {
            RawValue::Double(number) => Value::Double(number),
            RawValue::String(text) => Value::String(text.to_owned()),
            RawValue::Document(document) => Value::Document(self.document(document, depth)?),
            RawValue::Array(array) => Value::Array(self.array(array, depth)?),
            RawValue::Binary(RawBinary { subtype, bytes }) => {
                Value::Binary(Binary { subtype, bytes: bytes.to_vec() })
            }
            RawValue::Undefined => Value::Undefined,
            RawValue::ObjectId(id) => Value::ObjectId(id),
            RawValue::Boolean(boolean) => Value::Boolean(boolean),
            RawValue::DateTime(milliseconds) => Value::DateTime(milliseconds),
            RawValue::Null => Value::Null,
            RawValue::Regex(RawRegex { pattern, options }) => {
                Value::Regex(Regex { pattern: pattern.to_owned(), options: options.to_owned() })
            }
            RawValue::DbPointer(RawDbPointer { namespace, id }) => {
                Value::DbPointer(DbPointer { namespace: namespace.to_owned(), id })
            }
            RawValue::JavaScript(code) => Value::JavaScript(code.to_owned()),
            RawValue::Symbol(text) => Value::Symbol(text.to_owned()),
            RawValue::JavaScriptWithScope(code) => Value::JavaScriptWithScope(JavaScriptWithScope {
                code: code.code.to_owned(),
                scope: self.document(code.scope, depth)?,
            }),
            RawValue::Int32(number) => Value::Int32(number),
            RawValue::Timestamp(timestamp) => Value::Timestamp(timestamp),
            RawValue::Int64(number) => Value::Int64(number),
            RawValue::Decimal128(number) => Value::Decimal128(number),
            RawValue::MinKey => Value::MinKey,
            RawValue::MaxKey => Value::MaxKey,
        })
    }
}

impl From<RawValue<'_>> for Value {
    fn from(raw: RawValue<'_>) -> Self {
        Copier { on_fault: OnFault::LeaveOut }
            .value(raw, 0)
            .expect("a copy that leaves out faults reports none")
    }
}

macro_rules! from_part {
    ($($part:ty => $variant:ident),* $(,)?) => {
        $(impl From<$part> for Value {
            fn from(part: $part) -> Self {
                Value::$variant(part.into())
            }
        })*
    };
}

from_part! {
    f64 => Double, &str => String, String => String, &String => String, Document => Document, &Document => Document,
    Vec<Value> => Array, Binary => Binary, ObjectId => ObjectId, bool => Boolean, Regex => Regex,
    DbPointer => DbPointer, JavaScriptWithScope => JavaScriptWithScope, i32 => Int32, Timestamp => Timestamp,
    i64 => Int64, u32 => Int64, Decimal128 => Decimal128,
}

impl From<&Document> for Document {
    fn from(document: &Document) -> Self {
        document.clone()
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

impl From<&crate::RawDocument> for Value {
    fn from(document: &crate::RawDocument) -> Self {
        RawValue::Document(document).to_owned()
    }
}

impl From<&Value> for Value {
    fn from(value: &Value) -> Self {
        value.clone()
    }
}

impl<T: Into<Value>> FromIterator<T> for Value {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Value::Array(values.into_iter().map(Into::into).collect())
    }
}

impl Document {
    /// Appends all fields to a writer.
    pub(crate) fn write_fields(&self, writer: &mut DocumentWriter<'_>) {
        for (name, value) in self.iter() {
            writer.append_value(name, value);
        }
    }
}

/// Appends all values to a writer.
pub(crate) fn write_values(values: &[Value], writer: &mut ArrayWriter<'_>) {
    for value in values {
        writer.push_value(value);
    }
}
