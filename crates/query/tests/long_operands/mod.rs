//! Operations with operands of any length, by what they belong to.

pub mod expressions;
pub mod filters;
pub mod pipelines;
pub mod plans;
pub mod projections;
pub mod updates;

use pando_document::{Document, RawDocumentBuf, RawValue, Value};

/// An operation, ready to be run with operands of some length.
pub struct Operation {
    pub name: &'static str,
    /// Makes the operands of so many elements; the closure it gives is what takes the time.
    pub prepare: Box<dyn Fn(usize) -> Box<dyn FnMut()>>,
}

impl Operation {
    pub fn new<R: FnMut() + 'static>(
        name: &'static str,
        prepare: impl Fn(usize) -> R + 'static,
    ) -> Operation {
        Operation { name, prepare: Box::new(move |size| Box::new(prepare(size))) }
    }
}

/// The numbers from `start` on.
pub fn numbers(start: usize, count: usize) -> Value {
    (start..start + count).map(number).collect()
}

pub fn number(number: usize) -> Value {
    Value::Int32(i32::try_from(number).unwrap())
}

/// A document of one field.
pub fn single(name: impl Into<String>, value: impl Into<Value>) -> Document {
    let mut document = Document::new();
    document.push(name, value);
    document
}

/// `{f0: …, f1: …}`, each value made of its number.
pub fn wide<V: Into<Value>>(count: usize, value: impl Fn(usize) -> V) -> Document {
    let mut document = Document::new();
    for at in 0..count {
        document.push(format!("f{at}"), value(at));
    }
    document
}

/// A value as one field of a document, since raw values are borrowed.
pub struct Held(RawDocumentBuf);

impl Held {
    pub fn new(value: impl Into<Value>) -> Held {
        Held(single("value", value).to_raw())
    }

    pub fn value(&self) -> RawValue<'_> {
        self.0.get("value").unwrap().unwrap()
    }
}
