//! The order of strings: by bytes, or by a collator. Comparisons and key bytes of whole values follow it.

use std::cmp::Ordering;
use std::sync::Arc;

use pando_document::{
    CanonicalType, RawArray, RawDocument, RawDocumentBuf, RawValue, Value, ValueRef, canonical_type,
    compare_values,
};
use pando_keyorder::{DecodeError, Direction, TypeBits};

use crate::{Collator, Specification, SpecificationFault};

/// See the module's head. The default is the simple collation.
#[derive(Clone, Debug, Default)]
pub struct TextOrder {
    collator: Option<Arc<Collator>>,
}

impl PartialEq for TextOrder {
    fn eq(&self, other: &TextOrder) -> bool {
        match (&self.collator, &other.collator) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a.document() == b.document(),
            _ => false,
        }
    }
}

impl Eq for TextOrder {}

impl TextOrder {
    /// By bytes.
    pub const SIMPLE: TextOrder = TextOrder { collator: None };

    /// The order of a specification; `path` is the field's name in messages.
    ///
    /// # Errors
    /// A specification that is no sound one, or whose rules are not there.
    pub fn parse(specification: &RawDocument, path: &str) -> Result<TextOrder, SpecificationFault> {
        let collator = match Specification::parse(specification, path)? {
            Some(specification) => Some(Arc::new(Collator::new(&specification)?)),
            None => None,
        };
        Ok(TextOrder { collator })
    }

    /// The order that `collation` in stored options or in the specification of an index names.
    ///
    /// # Errors
    /// A version of the rules that is not that of this program, or no sound specification.
    pub fn of_stored(options: &RawDocument) -> Result<TextOrder, String> {
        match options.get("collation") {
            Ok(None) => Ok(TextOrder::SIMPLE),
            Ok(Some(RawValue::Document(specification))) => {
                let version =
                    specification.get("version").ok().flatten().and_then(|version| version.as_str());
                if let Some(version) = version.filter(|version| *version != crate::VERSION) {
                    return Err(format!(
                        "its sort keys are of the collation rules {version}, and this program has the rules {}; \
                         open the store with the program that wrote it, copy the collection, and restore it here",
                        crate::VERSION
                    ));
                }
                TextOrder::parse(specification, "collation").map_err(|fault| fault.to_string())
            }
            Ok(Some(other)) => Err(format!("its collation is no document but {other:?}")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Whether strings compare by bytes.
    #[inline]
    pub fn is_simple(&self) -> bool {
        self.collator.is_none()
    }

    /// All options, as `explain` shows them; `None` of the simple collation.
    pub fn document(&self) -> Option<&RawDocumentBuf> {
        self.collator.as_deref().map(Collator::document)
    }

    /// Whether a value compares with every other in the same way under both orders: it has no string in it.
    pub fn agrees_on(&self, other: &TextOrder, value: RawValue<'_>) -> bool {
        let has_text = matches!(
            canonical_type(value.element_type()),
            CanonicalType::String | CanonicalType::Document | CanonicalType::Array
        );
        !has_text || self == other
    }

    /// Orders two values.
    #[inline]
    pub fn compare(&self, a: RawValue<'_>, b: RawValue<'_>) -> Ordering {
        match &self.collator {
            None => compare_values(a, b),
            Some(collator) => compare_by(collator, a, b),
        }
    }

    /// Whether two values are equal.
    #[inline]
    pub fn is_equal(&self, a: RawValue<'_>, b: RawValue<'_>) -> bool {
        self.compare(a, b).is_eq()
    }

    /// Orders two strings.
    #[inline]
    pub fn compare_texts(&self, a: &str, b: &str) -> Ordering {
        match &self.collator {
            None => a.as_bytes().cmp(b.as_bytes()),
            Some(collator) => collator.compare(a, b),
        }
    }

    /// The values of a key. Under a collator, hexadecimal digits of sort keys stand for strings.
    ///
    /// # Errors
    /// As for `pando_keyorder::decode`.
    pub fn decode(
        &self,
        key: &[u8],
        type_bits: &[u8],
        directions: &[Direction],
    ) -> Result<Vec<Value>, DecodeError> {
        match self.is_simple() {
            true => pando_keyorder::decode(key, type_bits, directions),
            false => pando_keyorder::decode_sort_keys(key, type_bits, directions),
        }
    }

    /// Appends the key bytes of a value, in which strings are sort keys where there is a collator.
    #[inline]
    pub fn encode<'a>(
        &self,
        value: impl Into<ValueRef<'a>>,
        direction: Direction,
        out: &mut Vec<u8>,
        type_bits: &mut TypeBits,
    ) {
        match &self.collator {
            None => pando_keyorder::encode(value, direction, out, type_bits),
            Some(collator) => {
                pando_keyorder::encode_by(&**collator, value, direction, out, type_bits);
            }
        }
    }
}

/// As `pando_document::compare_values`, but for strings.
fn compare_by(collator: &Collator, a: RawValue<'_>, b: RawValue<'_>) -> Ordering {
    use RawValue as V;
    match (a, b) {
        (V::String(a) | V::Symbol(a), V::String(b) | V::Symbol(b)) => collator.compare(a, b),
        (V::Document(a), V::Document(b)) => compare_documents(collator, a, b),
        (V::Array(a), V::Array(b)) => compare_arrays(collator, a, b),
        _ => compare_values(a, b),
    }
}

fn bracket(value: RawValue<'_>) -> CanonicalType {
    canonical_type(value.element_type())
}

fn compare_documents(collator: &Collator, a: &RawDocument, b: &RawDocument) -> Ordering {
    if a.as_bytes() == b.as_bytes() {
        return Ordering::Equal;
    }
    let (mut a, mut b) = (a.iter().map_while(Result::ok), b.iter().map_while(Result::ok));
    loop {
        let ((a_name, a), (b_name, b)) = match (a.next(), b.next()) {
            (Some(a), Some(b)) => (a, b),
            (a, b) => return a.is_some().cmp(&b.is_some()),
        };
        let order = bracket(a)
            .cmp(&bracket(b))
            .then_with(|| a_name.as_bytes().cmp(b_name.as_bytes()))
            .then_with(|| compare_by(collator, a, b));
        if order.is_ne() {
            return order;
        }
    }
}

fn compare_arrays(collator: &Collator, a: &RawArray, b: &RawArray) -> Ordering {
    let (mut a, mut b) = (a.iter().map_while(Result::ok), b.iter().map_while(Result::ok));
    loop {
        let (a, b) = match (a.next(), b.next()) {
            (Some(a), Some(b)) => (a, b),
            (a, b) => return a.is_some().cmp(&b.is_some()),
        };
        let order = bracket(a).cmp(&bracket(b)).then_with(|| compare_by(collator, a, b));
        if order.is_ne() {
            return order;
        }
    }
}

#[cfg(test)]
mod tests;
