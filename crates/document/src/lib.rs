//! BSON values, raw bytes and the order in which MongoDB compares them.
//!
//! # Terms
//! - *Raw*: a view over bytes, as they are on the wire and on disk. Most of the server works on these.
//! - *Owned*: [`Value`] and [`Document`], for literals of requests and results of expressions.
//! - *Bracket*: the [`CanonicalType`] within which values compare by content.
//!
//! # Where to start
//! [`RawDocument`] and [`validate()`] (bytes in), [`DocumentWriter`] (bytes out), [`compare_values`] (order),
//! [`Value`] and [`doc!`] (owned), [`patch`] (changes of a document as bytes).
//!
//! # Not here
//! Paths with dots, which walk into arrays (`query`); order-preserving key bytes (`keyorder`).
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod compare;
mod decimal128;
mod decimal_arithmetic;
mod decimal_text;
mod doc_macro;
mod document;
mod element_type;
mod error;
mod extended_json;
mod nesting;
mod number;
mod number_order;
mod number_sum;
mod object_id;
pub mod patch;
mod raw;
mod raw_element;
mod raw_value;
mod timestamp;
mod validate;
mod value;
mod writer;

pub use compare::{
    CanonicalType, ValueRef, canonical_type, compare, compare_arrays, compare_documents, compare_values,
};
pub use decimal_arithmetic::{DoubleDigits, Rounding};
pub use decimal_text::DecimalTextError;
pub use decimal128::{Decimal128, DecimalParts};
#[doc(hidden)]
pub use doc_macro::no_values;
pub use document::Document;
pub use element_type::ElementType;
pub use error::DocumentError;
pub use extended_json::{
    JsonError, JsonFault, JsonFormat, parse_json_line, parse_json_prefix, parse_json_value, to_json,
    write_date, write_json,
};
pub use nesting::is_nested_beyond;
pub use number::{Number, Overflow};
pub use number_sum::NumberSum;
pub use object_id::ObjectId;
pub use raw::{RawArray, RawArrayIter, RawDocument, RawDocumentBuf, RawIter};
pub use raw_value::{RawBinary, RawDbPointer, RawJavaScriptWithScope, RawRegex, RawValue};
pub use timestamp::Timestamp;
pub use validate::{DOCUMENT_BYTES_MAX, Limits, NESTING_MAX, validate};
pub use value::{Binary, DbPointer, JavaScriptWithScope, Regex, Value};
pub use writer::{ArrayWriter, DocumentWriter};
