//! A place in the output document that takes exactly one value: a field of a document, or the next element of
//! an array.

use pando_document::{ArrayWriter, DocumentWriter, RawArray, RawValue, Value};

/// Where the next value goes.
pub(super) enum Slot<'s, 'w> {
    Field(&'s mut DocumentWriter<'w>, &'s str),
    Element(&'s mut ArrayWriter<'w>),
}

impl<'s> Slot<'s, '_> {
    /// Writes a value that exists as BSON: its bytes are copied.
    pub(super) fn put(self, value: RawValue<'_>) {
        match self {
            Slot::Field(writer, name) => writer.append(name, value),
            Slot::Element(writer) => writer.push(value),
        }
    }

    /// Writes an owned value.
    pub(super) fn put_value(self, value: &Value) {
        match self {
            Slot::Field(writer, name) => writer.append_value(name, value),
            Slot::Element(writer) => writer.push_value(value),
        }
    }

    /// Writes a whole array.
    pub(super) fn put_array(self, array: &RawArray) {
        self.put(RawValue::Array(array));
    }

    /// Writes nothing; an array element cannot go away without moving its neighbours, so it becomes null.
    pub(super) fn clear(self) {
        if let Slot::Element(writer) = self {
            writer.push(RawValue::Null);
        }
    }

    /// Opens a nested document here.
    pub(super) fn document(self) -> DocumentWriter<'s> {
        match self {
            Slot::Field(writer, name) => writer.document(name),
            Slot::Element(writer) => writer.document(),
        }
    }

    /// Opens a nested array here.
    pub(super) fn array(self) -> ArrayWriter<'s> {
        match self {
            Slot::Field(writer, name) => writer.array(name),
            Slot::Element(writer) => writer.array(),
        }
    }
}
