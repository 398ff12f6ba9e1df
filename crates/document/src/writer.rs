//! Writing documents into a buffer, field after field, with nothing in between: the hot path of replies.
//!
//! A writer puts a place-holder for the length, appends fields, and sets length and terminator when it is
//! finished or dropped. Nested writers borrow their parent, so fields cannot be mixed up.
//!
//! # Invariants
//! - Names have no NUL byte (asserted: a name from outside must have been checked where it came in).
//! - A document stays below 2 GiB (asserted); the 16 MiB limit of MongoDB is the caller's.

use crate::{Document, ElementType, ObjectId, RawDocument, RawValue, Value};

/// Appends one document to a buffer.
#[derive(Debug)]
pub struct DocumentWriter<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> DocumentWriter<'a> {
    /// Starts a document at the end of `out`.
    #[inline]
    pub fn begin(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        Self { out, start }
    }

    /// Makes room for so many more bytes, so that the buffer does not grow step by step.
    pub fn reserve(&mut self, bytes: usize) {
        self.out.reserve(bytes);
    }

    #[inline]
    fn header(&mut self, kind: ElementType, name: &str) {
        assert!(!name.as_bytes().contains(&0), "a field name has no NUL byte");
        self.out.push(kind.as_byte());
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(0);
    }

    /// Appends a field.
    #[inline]
    pub fn append(&mut self, name: &str, value: RawValue<'_>) {
        self.header(value.element_type(), name);
        append_payload(self.out, value);
    }

    /// Appends a field.
    pub fn append_value(&mut self, name: &str, value: &Value) {
        self.header(value.element_type(), name);
        append_value_payload(self.out, value);
    }

    /// Appends an Int32.
    #[inline]
    pub fn append_i32(&mut self, name: &str, value: i32) {
        self.append(name, RawValue::Int32(value));
    }

    /// Appends an Int64.
    #[inline]
    pub fn append_i64(&mut self, name: &str, value: i64) {
        self.append(name, RawValue::Int64(value));
    }

    /// Appends a double.
    #[inline]
    pub fn append_f64(&mut self, name: &str, value: f64) {
        self.append(name, RawValue::Double(value));
    }

    /// Appends a string.
    #[inline]
    pub fn append_str(&mut self, name: &str, value: &str) {
        self.append(name, RawValue::String(value));
    }

    /// Appends a boolean.
    #[inline]
    pub fn append_bool(&mut self, name: &str, value: bool) {
        self.append(name, RawValue::Boolean(value));
    }

    /// Appends an ObjectId.
    #[inline]
    pub fn append_object_id(&mut self, name: &str, value: ObjectId) {
        self.append(name, RawValue::ObjectId(value));
    }

    /// Appends a date in milliseconds since 1970.
    #[inline]
    pub fn append_date_time(&mut self, name: &str, milliseconds: i64) {
        self.append(name, RawValue::DateTime(milliseconds));
    }

    /// Appends a null.
    #[inline]
    pub fn append_null(&mut self, name: &str) {
        self.append(name, RawValue::Null);
    }

    /// Appends a nested document as it is.
    #[inline]
    pub fn append_raw_document(&mut self, name: &str, value: &RawDocument) {
        self.append(name, RawValue::Document(value));
    }

    /// Appends a nested document.
    pub fn append_document(&mut self, name: &str, value: &Document) {
        value.write_fields(&mut self.document(name));
    }

    /// Appends the bytes of whole fields, as they stand in another document (see
    /// [`RawIter::offset`](crate::RawIter::offset)). They must be sound fields.
    #[inline]
    pub fn append_raw_fields(&mut self, fields: &[u8]) {
        self.out.extend_from_slice(fields);
    }

    /// Starts a nested document, which is finished when the writer is dropped.
    #[inline]
    pub fn document(&mut self, name: &str) -> DocumentWriter<'_> {
        self.header(ElementType::Document, name);
        DocumentWriter::begin(self.out)
    }

    /// Starts an array, which is finished when the writer is dropped.
    #[inline]
    pub fn array(&mut self, name: &str) -> ArrayWriter<'_> {
        self.header(ElementType::Array, name);
        ArrayWriter::begin(self.out)
    }

    /// Bytes so far, the length prefix included and the terminator not.
    #[inline]
    pub fn bytes_so_far(&self) -> usize {
        self.out.len() - self.start
    }

    /// Sets the length and the terminator; gives the document's length in bytes.
    #[inline]
    pub fn finish(self) -> usize {
        self.bytes_so_far() + 1
    }
}

impl Drop for DocumentWriter<'_> {
    #[inline]
    fn drop(&mut self) {
        self.out.push(0);
        let length = i32::try_from(self.out.len() - self.start).expect("a document stays below 2 GiB");
        self.out[self.start..self.start + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// Appends one array to a buffer: a document whose names are counted.
#[derive(Debug)]
pub struct ArrayWriter<'a> {
    document: DocumentWriter<'a>,
    index: IndexName,
}

impl<'a> ArrayWriter<'a> {
    /// Starts an array at the end of `out`.
    #[inline]
    pub fn begin(out: &'a mut Vec<u8>) -> Self {
        Self { document: DocumentWriter::begin(out), index: IndexName::zero() }
    }

    #[inline]
    fn header(&mut self, kind: ElementType) {
        self.document.out.push(kind.as_byte());
        self.document.out.extend_from_slice(self.index.as_bytes());
        self.document.out.push(0);
        self.index.increment();
    }

    /// Appends a value.
    #[inline]
    pub fn push(&mut self, value: RawValue<'_>) {
        self.header(value.element_type());
        append_payload(self.document.out, value);
    }

    /// Appends a value.
    pub fn push_value(&mut self, value: &Value) {
        self.header(value.element_type());
        append_value_payload(self.document.out, value);
    }

    /// Appends a document as it is.
    #[inline]
    pub fn push_document(&mut self, document: &RawDocument) {
        self.push(RawValue::Document(document));
    }

    /// Appends the bytes of a whole document, which must be one.
    #[inline]
    pub fn push_document_bytes(&mut self, bytes: &[u8]) {
        self.header(ElementType::Document);
        self.document.out.extend_from_slice(bytes);
    }

    /// Starts a document, which is finished when the writer is dropped.
    #[inline]
    pub fn document(&mut self) -> DocumentWriter<'_> {
        self.header(ElementType::Document);
        DocumentWriter::begin(self.document.out)
    }

    /// Starts an array within this one, which is finished when the writer is dropped.
    #[inline]
    pub fn array(&mut self) -> ArrayWriter<'_> {
        self.header(ElementType::Array);
        ArrayWriter::begin(self.document.out)
    }

    /// Bytes so far, the length prefix included and the terminator not.
    #[inline]
    pub fn bytes_so_far(&self) -> usize {
        self.document.bytes_so_far()
    }

    /// Sets the length and the terminator; gives the array's length in bytes.
    #[inline]
    pub fn finish(self) -> usize {
        self.document.finish()
    }
}

/// The name of an array's next value, counted up in decimal digits: no division, no formatting.
#[derive(Debug)]
struct IndexName {
    digits: [u8; IndexName::DIGITS],
    first: usize,
}

impl IndexName {
    /// More values than 2 GiB can hold need more.
    const DIGITS: usize = 10;

    fn zero() -> Self {
        Self { digits: [b'0'; Self::DIGITS], first: Self::DIGITS - 1 }
    }

    #[inline]
    fn as_bytes(&self) -> &[u8] {
        &self.digits[self.first..]
    }

    #[inline]
    fn increment(&mut self) {
        let mut place = Self::DIGITS - 1;
        while self.digits[place] == b'9' {
            self.digits[place] = b'0';
            place -= 1;
        }
        self.digits[place] += 1;
        self.first = self.first.min(place);
    }
}

#[inline]
fn append_text(out: &mut Vec<u8>, text: &str) {
    let length = i32::try_from(text.len() + 1).expect("a text stays below 2 GiB");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

fn append_name(out: &mut Vec<u8>, text: &str) {
    assert!(!text.as_bytes().contains(&0), "parts of a regular expression have no NUL byte");
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// The value's bytes, without type and name.
#[inline]
fn append_payload(out: &mut Vec<u8>, value: RawValue<'_>) {
    match value {
        RawValue::Double(number) => out.extend_from_slice(&number.to_le_bytes()),
        RawValue::String(text) | RawValue::JavaScript(text) | RawValue::Symbol(text) => {
            append_text(out, text)
        }
        RawValue::Document(document) => out.extend_from_slice(document.as_bytes()),
        RawValue::Array(array) => out.extend_from_slice(array.as_bytes()),
        RawValue::Binary(binary) => {
            let length = i32::try_from(binary.bytes.len()).expect("a binary stays below 2 GiB");
            out.extend_from_slice(&length.to_le_bytes());
            out.push(binary.subtype);
            out.extend_from_slice(binary.bytes);
        }
        RawValue::ObjectId(id) => out.extend_from_slice(id.bytes()),
        RawValue::Boolean(boolean) => out.push(u8::from(boolean)),
        RawValue::DateTime(number) | RawValue::Int64(number) => out.extend_from_slice(&number.to_le_bytes()),
        RawValue::Regex(regex) => {
            append_name(out, regex.pattern);
            append_name(out, regex.options);
        }
        RawValue::DbPointer(pointer) => {
            append_text(out, pointer.namespace);
            out.extend_from_slice(pointer.id.bytes());
        }
        RawValue::JavaScriptWithScope(code) => append_code_with_scope(out, code.code, |out| {
            out.extend_from_slice(code.scope.as_bytes());
        }),
        RawValue::Int32(number) => out.extend_from_slice(&number.to_le_bytes()),
        RawValue::Timestamp(timestamp) => out.extend_from_slice(&timestamp.to_u64().to_le_bytes()),
        RawValue::Decimal128(number) => out.extend_from_slice(&number.to_le_bytes()),
        RawValue::Undefined | RawValue::Null | RawValue::MinKey | RawValue::MaxKey => {}
    }
}

fn append_value_payload(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Document(document) => document.write_fields(&mut DocumentWriter::begin(out)),
        Value::Array(values) => crate::value::write_values(values, &mut ArrayWriter::begin(out)),
        Value::JavaScriptWithScope(code) => append_code_with_scope(out, &code.code, |out| {
            code.scope.write_to(out);
        }),
        _ => append_payload(out, value.as_scalar().expect("the three types without a scalar stand above")),
    }
}

fn append_code_with_scope(out: &mut Vec<u8>, code: &str, append_scope: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    append_text(out, code);
    append_scope(out);
    let length = i32::try_from(out.len() - start).expect("code with scope stays below 2 GiB");
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc;

    #[test]
    fn nested_writers_give_the_bytes_of_the_document() {
        let mut out = vec![7];
        let mut writer = DocumentWriter::begin(&mut out);
        writer.append_i32("a", 1);
        writer.document("b").append_str("c", "x");
        let mut array = writer.array("d");
        array.push(RawValue::Boolean(true));
        array.document().append_null("e");
        array.array().push(RawValue::Double(0.5));
        drop(array);
        let length = writer.finish();
        let expected = doc! { "a": 1, "b": { "c": "x" }, "d": [true, { "e": null }, [0.5]] };
        assert_eq!(out[1..], *expected.to_raw().as_bytes());
        assert_eq!(length, out.len() - 1);
    }

    #[test]
    fn array_names_count_in_decimal() {
        let mut index = IndexName::zero();
        for number in 0..12_345 {
            assert_eq!(index.as_bytes(), number.to_string().as_bytes());
            index.increment();
        }
    }

    #[test]
    #[should_panic(expected = "no NUL byte")]
    fn a_name_with_a_nul_byte_is_not_written() {
        DocumentWriter::begin(&mut Vec::new()).append_i32("a\0b", 1);
    }
}
