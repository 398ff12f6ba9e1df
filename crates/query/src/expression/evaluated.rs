//! The result of an expression: a value, borrowed where it can be, or nothing.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;

use pando_collation::TextOrder;
use pando_document::{
    ArrayWriter, DocumentWriter, ElementType, Number, RawArray, RawDocument, RawDocumentBuf, RawValue, Value,
};

use super::array_table::{ArrayTable, TableOnDemand};
use crate::error::{ErrorCode, QueryError};
use crate::literal::Literal;
use crate::{nesting, shell_text};

/// A value or nothing. Computed values are bytes already, so every variant can be seen as a [`RawValue`].
#[derive(Clone, Debug)]
pub enum Evaluated<'a> {
    /// No value: a path that leads nowhere, `$$REMOVE`.
    Missing,
    /// A value that stands in the root, in the expression, or that is small (a number, a date).
    Raw(RawValue<'a>),
    /// A computed string.
    Text(String),
    /// A computed document.
    Document(RawDocumentBuf),
    /// A computed array, as its own document.
    Array(RawDocumentBuf),
    /// A computed value of a rarer type.
    Held(Literal),
    /// A computed value that a variable holds.
    Shared(Arc<SharedValue>),
}

/// A computed value that any number of evaluations refer to.
#[derive(Debug)]
pub struct SharedValue {
    value: Evaluated<'static>,
    table: TableOnDemand,
}

impl SharedValue {
    /// The table of the array that this is, where it is asked for often.
    pub(super) fn array_table(&self) -> Result<Option<Arc<ArrayTable>>, QueryError> {
        self.value.as_array().map_or(Ok(None), |array| self.table.ask(array))
    }
}

impl<'a> Evaluated<'a> {
    pub(crate) const NULL: Evaluated<'static> = Evaluated::Raw(RawValue::Null);

    /// The value, or nothing.
    pub fn raw(&self) -> Option<RawValue<'_>> {
        match self {
            Evaluated::Missing => None,
            Evaluated::Raw(value) => Some(*value),
            Evaluated::Text(text) => Some(RawValue::String(text)),
            Evaluated::Document(document) => Some(RawValue::Document(document)),
            Evaluated::Array(array) => Some(RawValue::Array(RawArray::from_document(array))),
            Evaluated::Held(literal) => Some(literal.raw()),
            Evaluated::Shared(shared) => shared.value.raw(),
        }
    }

    /// The value, with null for nothing.
    pub fn raw_or_null(&self) -> RawValue<'_> {
        self.raw().unwrap_or(RawValue::Null)
    }

    /// The value as the texts of errors show it.
    pub(crate) fn shell_text(&self) -> String {
        self.raw().map_or_else(|| "MISSING".to_owned(), shell_text::value_text)
    }

    /// The value as one that owns its parts.
    pub fn to_value(&self) -> Option<Value> {
        self.raw().map(|value| value.to_owned())
    }

    /// A value that lives as long as it is wanted.
    pub fn owned(value: RawValue<'_>) -> Evaluated<'static> {
        match value {
            RawValue::String(text) => Evaluated::Text(text.to_owned()),
            RawValue::Document(document) => Evaluated::Document(document.to_owned()),
            RawValue::Array(array) => Evaluated::Array(array.as_document().to_owned()),
            other => Evaluated::Held(Literal::new(other)),
        }
    }

    /// The same value; a computed one is copied no more from now on.
    pub(super) fn shared(self) -> Evaluated<'a> {
        let value = match self {
            Evaluated::Text(text) => Evaluated::Text(text),
            Evaluated::Document(document) => Evaluated::Document(document),
            Evaluated::Array(array) => Evaluated::Array(array),
            Evaluated::Held(literal) => Evaluated::Held(literal),
            Evaluated::Missing | Evaluated::Raw(_) | Evaluated::Shared(_) => return self,
        };
        Evaluated::Shared(Arc::new(SharedValue { value, table: TableOnDemand::default() }))
    }

    /// A number.
    pub fn number(number: Number) -> Evaluated<'a> {
        Evaluated::Raw(number.to_raw())
    }

    /// A boolean.
    pub fn boolean(flag: bool) -> Evaluated<'a> {
        Evaluated::Raw(RawValue::Boolean(flag))
    }

    /// Missing, null or undefined.
    pub fn is_nullish(&self) -> bool {
        match self {
            Evaluated::Missing => true,
            Evaluated::Raw(value) => value.is_null(),
            Evaluated::Held(literal) => literal.raw().is_null(),
            Evaluated::Shared(shared) => shared.value.is_nullish(),
            _ => false,
        }
    }

    /// As a condition: missing counts as false.
    pub fn to_bool(&self) -> bool {
        self.raw().is_some_and(|value| value.to_bool())
    }

    /// The name of the type, "missing" for nothing.
    pub fn type_name(&self) -> &'static str {
        self.raw().map_or("missing", |value| value.element_type().alias())
    }

    /// The type, if there is a value.
    pub fn element_type(&self) -> Option<ElementType> {
        self.raw().map(|value| value.element_type())
    }

    /// As a number, if it is one.
    pub fn as_number(&self) -> Option<Number> {
        self.raw().and_then(Number::from_value)
    }

    /// As an array, if it is one.
    pub fn as_array(&self) -> Option<&RawArray> {
        match self.raw() {
            Some(RawValue::Array(array)) => Some(array),
            _ => None,
        }
    }

    /// As a document, if it is one.
    pub fn as_document(&self) -> Option<&RawDocument> {
        match self.raw() {
            Some(RawValue::Document(document)) => Some(document),
            _ => None,
        }
    }

    /// As a string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self.raw() {
            Some(RawValue::String(text)) => Some(text),
            _ => None,
        }
    }

    /// MongoDB's order of all values; missing is below everything but itself and undefined keys.
    pub fn compare(&self, other: &Evaluated<'_>, order: &TextOrder) -> Ordering {
        match (self.raw(), other.raw()) {
            (Some(a), Some(b)) => order.compare(a, b),
            (None, None | Some(RawValue::Undefined)) | (Some(RawValue::Undefined), None) => Ordering::Equal,
            // MinKey alone is below what is missing.
            (None, Some(RawValue::MinKey)) => Ordering::Greater,
            (Some(RawValue::MinKey), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
        }
    }

    /// The bytes of memory that the value takes: none where it stands elsewhere.
    #[inline]
    pub(super) fn computed_bytes(&self) -> usize {
        match self {
            Evaluated::Missing | Evaluated::Raw(_) | Evaluated::Shared(_) => 0,
            Evaluated::Text(text) => text.len(),
            Evaluated::Document(document) | Evaluated::Array(document) => document.as_bytes().len(),
            Evaluated::Held(literal) => match literal.raw() {
                RawValue::Binary(binary) => binary.bytes.len(),
                _ => 0,
            },
        }
    }

    /// Calls `each` for the elements of an array one by one, borrowed where the array is, until it breaks. A
    /// list of them all could take many times the memory of the array. A value that is no array has none.
    pub(super) fn for_each_element(
        &self,
        mut each: impl FnMut(Evaluated<'a>) -> Result<ControlFlow<()>, QueryError>,
    ) -> Result<(), QueryError> {
        if let Evaluated::Raw(RawValue::Array(array)) = self {
            for element in array.iter() {
                if each(Evaluated::Raw(element?))?.is_break() {
                    break;
                }
            }
            return Ok(());
        }
        for element in self.as_array().into_iter().flat_map(RawArray::iter) {
            if each(Evaluated::owned(element?))?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The elements of an array, borrowed where the array is.
    pub(crate) fn elements(self) -> Result<Option<Vec<Evaluated<'a>>>, QueryError> {
        match self {
            Evaluated::Raw(RawValue::Array(array)) => {
                let mut elements = Vec::new();
                for element in array.iter() {
                    elements.push(Evaluated::Raw(element?));
                }
                Ok(Some(elements))
            }
            computed => {
                let Some(array) = computed.as_array() else { return Ok(None) };
                let mut elements = Vec::new();
                for element in array.iter() {
                    elements.push(Evaluated::owned(element?));
                }
                Ok(Some(elements))
            }
        }
    }
}

/// Most bytes of one computed value, as MongoDB's buffers have it.
const COMPUTED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Refuses a computed value before it takes more memory than any document could use.
///
/// Operators whose result can be much larger than their arguments ask while they go on.
pub(crate) fn check_computed_bytes(bytes: usize) -> Result<(), QueryError> {
    if bytes <= COMPUTED_BYTES_MAX {
        return Ok(());
    }
    Err(QueryError::new(
        ErrorCode::ExceededMemoryLimit,
        format!("a computed value would have more than {COMPUTED_BYTES_MAX} bytes"),
    ))
}

/// The array that `fill` writes.
pub(crate) fn array_of(
    fill: impl FnOnce(&mut ArrayWriter<'_>) -> Result<(), QueryError>,
) -> Result<Evaluated<'static>, QueryError> {
    let mut bytes = Vec::with_capacity(64);
    let mut writer = ArrayWriter::begin(&mut bytes);
    fill(&mut writer)?;
    writer.finish();
    let array = RawDocumentBuf::from_vec(bytes)?;
    nesting::check(&array)?;
    Ok(Evaluated::Array(array))
}

/// The document that `fill` writes.
pub(crate) fn document_of(
    fill: impl FnOnce(&mut DocumentWriter<'_>) -> Result<(), QueryError>,
) -> Result<Evaluated<'static>, QueryError> {
    let mut bytes = Vec::with_capacity(64);
    let mut writer = DocumentWriter::begin(&mut bytes);
    fill(&mut writer)?;
    writer.finish();
    let document = RawDocumentBuf::from_vec(bytes)?;
    nesting::check(&document)?;
    Ok(Evaluated::Document(document))
}
