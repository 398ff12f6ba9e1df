//! An owned value that is read as a [`RawValue`] without work, such as the argument of an operator.
//!
//! Numbers, dates and the like are kept decoded; everything else is one field of a small document, borrowed
//! from at each use.

use pando_document::{DocumentWriter, RawDocumentBuf, RawValue};

/// An owned value that gives a [`RawValue`] without work.
#[derive(Clone, Debug)]
pub struct Literal {
    kept: Kept,
}

#[derive(Clone, Debug)]
enum Kept {
    /// A value that borrows nothing.
    Scalar(RawValue<'static>),
    /// A document with the value as its only field.
    Boxed(RawDocumentBuf),
}

impl Literal {
    /// A copy of a value.
    pub fn new(value: RawValue<'_>) -> Literal {
        let kept = match value {
            RawValue::Double(value) => Kept::Scalar(RawValue::Double(value)),
            RawValue::Undefined => Kept::Scalar(RawValue::Undefined),
            RawValue::ObjectId(value) => Kept::Scalar(RawValue::ObjectId(value)),
            RawValue::Boolean(value) => Kept::Scalar(RawValue::Boolean(value)),
            RawValue::DateTime(value) => Kept::Scalar(RawValue::DateTime(value)),
            RawValue::Null => Kept::Scalar(RawValue::Null),
            RawValue::Int32(value) => Kept::Scalar(RawValue::Int32(value)),
            RawValue::Timestamp(value) => Kept::Scalar(RawValue::Timestamp(value)),
            RawValue::Int64(value) => Kept::Scalar(RawValue::Int64(value)),
            RawValue::Decimal128(value) => Kept::Scalar(RawValue::Decimal128(value)),
            RawValue::MinKey => Kept::Scalar(RawValue::MinKey),
            RawValue::MaxKey => Kept::Scalar(RawValue::MaxKey),
            RawValue::String(_)
            | RawValue::Document(_)
            | RawValue::Array(_)
            | RawValue::Binary(_)
            | RawValue::Regex(_)
            | RawValue::DbPointer(_)
            | RawValue::JavaScript(_)
            | RawValue::Symbol(_)
            | RawValue::JavaScriptWithScope(_) => Kept::Boxed(one_field(value)),
        };
        Literal { kept }
    }

    /// The value.
    pub fn raw(&self) -> RawValue<'_> {
        match &self.kept {
            Kept::Scalar(value) => *value,
            Kept::Boxed(document) => match document.iter().next() {
                Some(Ok((_, value))) => value,
                Some(Err(_)) | None => unreachable!("the document was written with one whole field"),
            },
        }
    }
}

fn one_field(value: RawValue<'_>) -> RawDocumentBuf {
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    writer.append("", value);
    writer.finish();
    RawDocumentBuf::from_vec(bytes).expect("the writer writes whole documents")
}
