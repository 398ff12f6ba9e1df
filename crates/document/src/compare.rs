//! MongoDB's total order over values of all types.
//!
//! 1. Types stand in brackets: MinKey, undefined (and "missing"), null, numbers, strings and symbols,
//!    documents, arrays, binaries, ObjectIds, booleans, dates, timestamps, regular expressions, DbPointers,
//!    code, code with scope, MaxKey.
//! 2. Numbers compare by exact value whatever their types (see `number_order`).
//! 3. Strings compare by bytes, and arrays value by value. Documents compare field by field: bracket of the
//!    values, then names, then values; the shorter is less. Binaries compare by length, then subtype, then
//!    bytes. Timestamps are unsigned and dates signed.
//!
//! [`ValueRef`] lets raw and owned values be compared with one another without copies.
//!
//! Compared value by value with a 6.0 server (`tests/acceptance/sort_order.py`). Known to differ: DbPointers
//! whose namespaces have one length. Here they go by namespace, then id, as in the server's indexes. The
//! server's comparisons go by id, then namespace. Both read a namespace up to its first NUL only.
//!
//! Bytes must have been validated. Where they are not sound, the walk of the document at fault ends there
//! without a panic, as if it had no more fields. A value that cannot be read is less than one that can.
//!
//! Not here: the order of index keys, in which an array stands for its values (`keyorder` encodes, `catalog`
//! unwinds); collations.

use std::cmp::Ordering;

use crate::number_order::compare_numbers;
use crate::raw_element::{Elements, RawElement};
use crate::raw_value::RawJavaScriptWithScope;
use crate::{Document, ElementType, RawArray, RawDbPointer, RawDocument, RawValue, Value};

/// The bracket of types within which values compare by content.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CanonicalType {
    /// MinKey.
    MinKey,
    /// Undefined; a missing field compares like it in expressions.
    Undefined,
    /// Null.
    Null,
    /// All four number types.
    Number,
    /// Strings and symbols.
    String,
    /// Documents.
    Document,
    /// Arrays.
    Array,
    /// Bytes.
    Binary,
    /// ObjectIds.
    ObjectId,
    /// Booleans.
    Boolean,
    /// Dates.
    DateTime,
    /// Timestamps.
    Timestamp,
    /// Regular expressions.
    Regex,
    /// DbPointers.
    DbPointer,
    /// Code.
    JavaScript,
    /// Code with scope.
    JavaScriptWithScope,
    /// MaxKey.
    MaxKey,
}

/// The bracket of a type.
#[inline]
pub fn canonical_type(kind: ElementType) -> CanonicalType {
    match kind {
        ElementType::MinKey => CanonicalType::MinKey,
        ElementType::Undefined => CanonicalType::Undefined,
        ElementType::Null => CanonicalType::Null,
        ElementType::Double | ElementType::Int32 | ElementType::Int64 | ElementType::Decimal128 => {
            CanonicalType::Number
        }
        ElementType::String | ElementType::Symbol => CanonicalType::String,
        ElementType::Document => CanonicalType::Document,
        ElementType::Array => CanonicalType::Array,
        ElementType::Binary => CanonicalType::Binary,
        ElementType::ObjectId => CanonicalType::ObjectId,
        ElementType::Boolean => CanonicalType::Boolean,
        ElementType::DateTime => CanonicalType::DateTime,
        ElementType::Timestamp => CanonicalType::Timestamp,
        ElementType::Regex => CanonicalType::Regex,
        ElementType::DbPointer => CanonicalType::DbPointer,
        ElementType::JavaScript => CanonicalType::JavaScript,
        ElementType::JavaScriptWithScope => CanonicalType::JavaScriptWithScope,
        ElementType::MaxKey => CanonicalType::MaxKey,
    }
}

/// A value, raw or owned, where only its content matters.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    /// A value without parts, or one whose parts are raw bytes.
    Raw(RawValue<'a>),
    /// An owned document.
    Document(&'a Document),
    /// An owned array.
    Array(&'a [Value]),
    /// Owned code with scope.
    JavaScriptWithScope {
        /// The code.
        code: &'a str,
        /// Its variables.
        scope: &'a Document,
    },
}

impl<'a> From<RawValue<'a>> for ValueRef<'a> {
    #[inline]
    fn from(value: RawValue<'a>) -> Self {
        Self::Raw(value)
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    #[inline]
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Document(document) => Self::Document(document),
            Value::Array(values) => Self::Array(values),
            Value::JavaScriptWithScope(code) => {
                Self::JavaScriptWithScope { code: &code.code, scope: &code.scope }
            }
            _ => Self::Raw(value.as_scalar().expect("the three types without a scalar stand above")),
        }
    }
}

impl<'a> From<&'a RawDocument> for ValueRef<'a> {
    #[inline]
    fn from(document: &'a RawDocument) -> Self {
        Self::Raw(RawValue::Document(document))
    }
}

impl<'a> From<&'a Document> for ValueRef<'a> {
    #[inline]
    fn from(document: &'a Document) -> Self {
        Self::Document(document)
    }
}

impl ValueRef<'_> {
    /// The value's type.
    #[inline]
    pub fn element_type(self) -> ElementType {
        match self {
            Self::Raw(value) => value.element_type(),
            Self::Document(_) => ElementType::Document,
            Self::Array(_) => ElementType::Array,
            Self::JavaScriptWithScope { .. } => ElementType::JavaScriptWithScope,
        }
    }

    /// A copy that owns its parts.
    pub fn to_value(self) -> Value {
        match self {
            Self::Raw(value) => Value::from(value),
            Self::Document(document) => Value::Document(document.clone()),
            Self::Array(values) => Value::Array(values.to_vec()),
            Self::JavaScriptWithScope { code, scope } => {
                Value::JavaScriptWithScope(crate::JavaScriptWithScope {
                    code: code.to_owned(),
                    scope: scope.clone(),
                })
            }
        }
    }
}

/// Orders two values of documents' bytes.
#[inline]
pub fn compare_values(a: RawValue<'_>, b: RawValue<'_>) -> Ordering {
    match (a, b) {
        (RawValue::Int32(a), RawValue::Int32(b)) => a.cmp(&b),
        (RawValue::String(a), RawValue::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (RawValue::ObjectId(a), RawValue::ObjectId(b)) => a.cmp(&b),
        _ => compare_any_raw(a, b),
    }
}

fn compare_any_raw(a: RawValue<'_>, b: RawValue<'_>) -> Ordering {
    use RawValue as V;
    let bracket = canonical_type(a.element_type()).cmp(&canonical_type(b.element_type()));
    if bracket.is_ne() {
        return bracket;
    }
    if let Some(order) = compare_numbers(a, b) {
        return order;
    }
    match (a, b) {
        (V::String(a) | V::Symbol(a), V::String(b) | V::Symbol(b)) => a.as_bytes().cmp(b.as_bytes()),
        (V::JavaScript(a), V::JavaScript(b)) => a.as_bytes().cmp(b.as_bytes()),
        (V::Document(a), V::Document(b)) => compare_documents(a, b),
        (V::Array(a), V::Array(b)) => compare_arrays(a, b),
        (V::Binary(a), V::Binary(b)) => {
            let a = (a.bytes.len(), a.subtype, a.bytes);
            a.cmp(&(b.bytes.len(), b.subtype, b.bytes))
        }
        (V::ObjectId(a), V::ObjectId(b)) => a.cmp(&b),
        (V::Boolean(a), V::Boolean(b)) => a.cmp(&b),
        (V::DateTime(a), V::DateTime(b)) => a.cmp(&b),
        (V::Timestamp(a), V::Timestamp(b)) => a.cmp(&b),
        (V::Regex(a), V::Regex(b)) => a
            .pattern
            .as_bytes()
            .cmp(b.pattern.as_bytes())
            .then_with(|| a.options.as_bytes().cmp(b.options.as_bytes())),
        (V::DbPointer(a), V::DbPointer(b)) => compare_db_pointers(a, b),
        (V::JavaScriptWithScope(a), V::JavaScriptWithScope(b)) => compare_code_with_scope(a, b),
        // MinKey, undefined, null, MaxKey: the bracket has one value.
        _ => Ordering::Equal,
    }
}

fn compare_db_pointers(a: RawDbPointer<'_>, b: RawDbPointer<'_>) -> Ordering {
    let a = (a.namespace.len(), a.namespace.as_bytes(), a.id);
    a.cmp(&(b.namespace.len(), b.namespace.as_bytes(), b.id))
}

fn compare_code_with_scope(a: RawJavaScriptWithScope<'_>, b: RawJavaScriptWithScope<'_>) -> Ordering {
    a.code.as_bytes().cmp(b.code.as_bytes()).then_with(|| compare_documents(a.scope, b.scope))
}

/// Orders two documents by the first field that differs: by the bracket of its value, else by its name, else
/// by its value. If one document ends first, it is less.
pub fn compare_documents(a: &RawDocument, b: &RawDocument) -> Ordering {
    // Equal bytes are common, and equal values; the converse does not hold.
    if a.as_bytes() == b.as_bytes() {
        return Ordering::Equal;
    }
    compare_elements(Elements::new(a), Elements::new(b), |a, b| a.name.cmp(b.name))
}

/// Orders two arrays value by value; if one ends first, that one is less.
pub fn compare_arrays(a: &RawArray, b: &RawArray) -> Ordering {
    let (a, b) = (a.as_document(), b.as_document());
    compare_elements(Elements::new(a), Elements::new(b), |_, _| Ordering::Equal)
}

/// Names and strings are compared as bytes, without decoding them.
#[inline]
fn compare_elements(
    mut a: Elements<'_>,
    mut b: Elements<'_>,
    names: impl Fn(&RawElement<'_>, &RawElement<'_>) -> Ordering,
) -> Ordering {
    loop {
        let (a, b) = match (a.next_element(), b.next_element()) {
            (Some(Ok(a)), Some(Ok(b))) => (a, b),
            (a, b) => return matches!(a, Some(Ok(_))).cmp(&matches!(b, Some(Ok(_)))),
        };
        let order = canonical_type(a.kind)
            .cmp(&canonical_type(b.kind))
            .then_with(|| names(&a, &b))
            .then_with(|| compare_element_values(&a, &b));
        if order.is_ne() {
            return order;
        }
    }
}

/// Of elements in the same bracket.
#[inline]
fn compare_element_values(a: &RawElement<'_>, b: &RawElement<'_>) -> Ordering {
    if let (ElementType::String, ElementType::String) = (a.kind, b.kind) {
        // The length before the text and the zero byte behind it do not change the order of texts that are
        // equal up to there, since the zero byte is least.
        return a.value[4..].cmp(&b.value[4..]);
    }
    match (a.decode(), b.decode()) {
        (Ok(a), Ok(b)) => compare_values(a, b),
        (a, b) => a.is_ok().cmp(&b.is_ok()),
    }
}

/// Orders two values, each raw or owned.
#[inline]
pub fn compare<'a, 'b>(a: impl Into<ValueRef<'a>>, b: impl Into<ValueRef<'b>>) -> Ordering {
    compare_refs(a.into(), b.into())
}

fn compare_refs(a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
    if let (ValueRef::Raw(a), ValueRef::Raw(b)) = (a, b) {
        return compare_values(a, b);
    }
    let kind = a.element_type();
    let bracket = canonical_type(kind).cmp(&canonical_type(b.element_type()));
    if bracket.is_ne() {
        return bracket;
    }
    match kind {
        ElementType::Document => compare_fields(fields(a), fields(b)),
        ElementType::Array => compare_fields(values(a), values(b)),
        _ => code(a).cmp(code(b)).then_with(|| compare_fields(scope(a), scope(b))),
    }
}

fn fields(value: ValueRef<'_>) -> Fields<'_> {
    match value {
        ValueRef::Raw(RawValue::Document(document)) => Box::new(raw_fields(document)),
        ValueRef::Document(document) => Box::new(owned_fields(document)),
        _ => Box::new(std::iter::empty()),
    }
}

/// The values of an array, as fields without names: the bracket is the first thing that both kinds of walk
/// compare.
fn values(value: ValueRef<'_>) -> Fields<'_> {
    match value {
        ValueRef::Raw(RawValue::Array(array)) => {
            Box::new(array.iter().map_while(Result::ok).map(|value| ("", ValueRef::Raw(value))))
        }
        ValueRef::Array(values) => Box::new(values.iter().map(|value| ("", ValueRef::from(value)))),
        _ => Box::new(std::iter::empty()),
    }
}

type Fields<'a> = Box<dyn Iterator<Item = (&'a str, ValueRef<'a>)> + 'a>;

fn raw_fields(document: &RawDocument) -> impl Iterator<Item = (&str, ValueRef<'_>)> {
    document.iter().map_while(Result::ok).map(|(name, value)| (name, ValueRef::Raw(value)))
}

fn owned_fields(document: &Document) -> impl Iterator<Item = (&str, ValueRef<'_>)> {
    document.iter().map(|(name, value)| (name, ValueRef::from(value)))
}

fn code(value: ValueRef<'_>) -> &[u8] {
    match value {
        ValueRef::Raw(RawValue::JavaScriptWithScope(code)) => code.code.as_bytes(),
        ValueRef::JavaScriptWithScope { code, .. } => code.as_bytes(),
        _ => &[],
    }
}

fn scope(value: ValueRef<'_>) -> Fields<'_> {
    match value {
        ValueRef::Raw(RawValue::JavaScriptWithScope(code)) => Box::new(raw_fields(code.scope)),
        ValueRef::JavaScriptWithScope { scope, .. } => Box::new(owned_fields(scope)),
        _ => Box::new(std::iter::empty()),
    }
}

fn compare_fields(mut a: Fields<'_>, mut b: Fields<'_>) -> Ordering {
    loop {
        let ((a_name, a), (b_name, b)) = match (a.next(), b.next()) {
            (Some(a), Some(b)) => (a, b),
            (a, b) => return a.is_some().cmp(&b.is_some()),
        };
        let order = canonical_type(a.element_type())
            .cmp(&canonical_type(b.element_type()))
            .then_with(|| a_name.as_bytes().cmp(b_name.as_bytes()))
            .then_with(|| compare_refs(a, b));
        if order.is_ne() {
            return order;
        }
    }
}
