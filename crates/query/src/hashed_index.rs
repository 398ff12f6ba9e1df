//! Hashed indexes: MongoDB's hash of a value, and the keys of a document by it.
//!
//! # The hash
//! The first eight bytes of MD5, as a little-endian number, over a seed of four zero bytes and the *parts* of
//! the value:
//! 1. The number of its canonical type, in four bytes.
//! 2. Of a number: the number cut to a whole one of 64 bits. So 1, 1.0 and 1.7 have one hash.
//! 3. Of a document or an array: for each field its type, its name with a zero byte, and its parts; then four
//!    zero bytes.
//! 4. Of any other value: its BSON bytes.
//!
//! # Invariants
//! - Equal values have equal hashes where a literal gives one. A decimal with a fraction is rounded, and a
//!   double is cut, so that equal ones may differ: the planner gets no hash of such a number.
//! - Under a collation a value with a string in it is hashed by its key bytes instead, so that strings that
//!   are equal under its rules have one hash.
//! - A document with an array at or on the way to an indexed field is refused, as in MongoDB.

use md5::{Digest, Md5};
use pando_catalog::index_keys::{GeneratedKeys, IndexKey};
use pando_catalog::index_kind::{KeyGenerator, KeysWithoutArrays};
use pando_catalog::{FieldKind, IndexDescription, Sparseness, WriteError};
use pando_collation::TextOrder;
use pando_document::{
    CanonicalType, DocumentError, DocumentWriter, Number, RawDocument, RawValue, canonical_type,
};
use pando_keyorder::{Direction, TypeBits};

/// The hash of a value.
///
/// # Errors
/// The value is a malformed document.
pub fn hash_of(value: RawValue<'_>) -> Result<i64, DocumentError> {
    let mut hasher = Md5::new();
    hasher.update([0; 4]);
    add(&mut hasher, value, None)?;
    Ok(first_of(&hasher.finalize()))
}

/// The hash of a value in an index with this order of strings.
///
/// # Errors
/// The value is a malformed document.
pub(crate) fn hash_in(value: RawValue<'_>, order: &TextOrder) -> Result<i64, DocumentError> {
    if order.agrees_on(&TextOrder::SIMPLE, value) {
        return hash_of(value);
    }
    let mut bytes = Vec::with_capacity(32);
    order.encode(value, Direction::Ascending, &mut bytes, &mut TypeBits::discarded());
    Ok(first_of(&Md5::digest(&bytes)))
}

fn first_of(digest: &[u8]) -> i64 {
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    i64::from_le_bytes(first)
}

fn add(hasher: &mut Md5, value: RawValue<'_>, name: Option<&str>) -> Result<(), DocumentError> {
    hasher.update(type_number(value).to_le_bytes());
    if let Some(name) = name {
        hasher.update(name.as_bytes());
        hasher.update([0]);
    }
    match value {
        RawValue::Document(document) => add_fields(hasher, document),
        RawValue::Array(array) => add_fields(hasher, array.as_document()),
        value if value.is_number() => {
            hasher.update(whole(value).to_le_bytes());
            Ok(())
        }
        value => {
            hasher.update(bytes_of(value));
            Ok(())
        }
    }
}

fn add_fields(hasher: &mut Md5, document: &RawDocument) -> Result<(), DocumentError> {
    for field in document {
        let (name, value) = field?;
        add(hasher, value, Some(name))?;
    }
    hasher.update([0; 4]);
    Ok(())
}

/// MongoDB's number of a canonical type.
fn type_number(value: RawValue<'_>) -> i32 {
    match canonical_type(value.element_type()) {
        CanonicalType::MinKey => -1,
        CanonicalType::Undefined => 0,
        CanonicalType::Null => 5,
        CanonicalType::Number => 10,
        CanonicalType::String => 15,
        CanonicalType::Document => 20,
        CanonicalType::Array => 25,
        CanonicalType::Binary => 30,
        CanonicalType::ObjectId => 35,
        CanonicalType::Boolean => 40,
        CanonicalType::DateTime => 45,
        CanonicalType::Timestamp => 47,
        CanonicalType::Regex => 50,
        CanonicalType::DbPointer => 55,
        CanonicalType::JavaScript => 60,
        CanonicalType::JavaScriptWithScope => 65,
        CanonicalType::MaxKey => 127,
    }
}

/// A number as a whole one: a double is cut, a decimal is rounded to the nearest even one.
fn whole(number: RawValue<'_>) -> i64 {
    match (number, number.as_i64_exact()) {
        (_, Some(exact)) => exact,
        // This double is one above the largest number, which MongoDB's conversion gets wrong.
        (RawValue::Double(9_223_372_036_854_775_808.0), None) => i64::MIN,
        // The conversion saturates, and NaN gives 0.
        (RawValue::Double(double), None) => double as i64,
        (other, None) => {
            Number::from_value(other).map_or(0, |number| number.to_f64().round_ties_even() as i64)
        }
    }
}

/// The bytes of a value in BSON.
fn bytes_of(value: RawValue<'_>) -> Vec<u8> {
    /// Length, type byte, and the zero byte of an empty name.
    const BEFORE: usize = 6;
    let mut document = Vec::with_capacity(32);
    let mut writer = DocumentWriter::begin(&mut document);
    writer.append("", value);
    writer.finish();
    document.pop();
    document.drain(..BEFORE);
    document
}

/// The hash that each value has which is equal to a literal in this order of strings; `None` where equal ones
/// may differ.
pub(crate) fn hash_of_literal(literal: RawValue<'_>, order: &TextOrder) -> Option<i64> {
    let is_by_key = !order.agrees_on(&TextOrder::SIMPLE, literal);
    if is_by_key || has_one_hash(literal) { hash_in(literal, order).ok() } else { None }
}

fn has_one_hash(literal: RawValue<'_>) -> bool {
    let fields = |document: &RawDocument| {
        document.iter().all(|field| field.is_ok_and(|(_, value)| has_one_hash(value)))
    };
    match literal {
        RawValue::String(_)
        | RawValue::Symbol(_)
        | RawValue::Binary(_)
        | RawValue::ObjectId(_)
        | RawValue::Boolean(_)
        | RawValue::DateTime(_)
        | RawValue::Timestamp(_)
        | RawValue::Null => true,
        RawValue::Document(document) => fields(document),
        RawValue::Array(array) => fields(array.as_document()),
        number => number.is_number() && number.as_i64_exact().is_some(),
    }
}

/// The generator of the keys of a hashed index.
#[derive(Debug)]
pub(crate) struct HashedKeys {
    fields: Vec<(String, FieldKind)>,
    directions: Vec<Direction>,
    sparseness: Sparseness,
    order: TextOrder,
}

impl HashedKeys {
    pub fn new(description: &IndexDescription) -> HashedKeys {
        let fields = &description.fields;
        HashedKeys {
            fields: fields.iter().map(|field| (field.path.clone(), field.kind)).collect(),
            directions: fields.iter().map(|field| field.direction).collect(),
            sparseness: description.sparse,
            order: description.text_order.clone(),
        }
    }
}

impl KeyGenerator for HashedKeys {
    fn keys(&self, document: &RawDocument) -> Result<GeneratedKeys, WriteError> {
        let (mut fields, mut type_bits) = (Vec::with_capacity(32), TypeBits::new());
        let mut is_missing = true;
        for ((path, kind), direction) in self.fields.iter().zip(&self.directions) {
            let value = value_at(document, path)?;
            is_missing &= value.is_none();
            let value = match (value.unwrap_or(RawValue::Null), kind) {
                (value, FieldKind::Hashed) => RawValue::Int64(hash_in(value, &self.order)?),
                (value, _) => value,
            };
            self.order.encode(value, *direction, &mut fields, &mut type_bits);
        }
        if is_missing && self.sparseness == Sparseness::Sparse {
            return Ok(GeneratedKeys::default());
        }
        let key = IndexKey { fields, type_bits: type_bits.as_bytes().to_vec() };
        Ok(GeneratedKeys { keys: vec![key], multikey: Vec::new() })
    }

    fn directions(&self) -> &[Direction] {
        &self.directions
    }

    fn without_arrays(&self) -> KeysWithoutArrays {
        match self.sparseness {
            Sparseness::Sparse => KeysWithoutArrays::Any,
            Sparseness::Dense => KeysWithoutArrays::One,
        }
    }
}

/// The value at a path that meets no array.
fn value_at<'d>(document: &'d RawDocument, path: &str) -> Result<Option<RawValue<'d>>, WriteError> {
    let mut place = document;
    let mut end = 0;
    loop {
        let rest = &path[end..];
        let (name, is_last) = match rest.split_once('.') {
            Some((name, _)) => (name, false),
            None => (rest, true),
        };
        end += name.len();
        match place.get(name)? {
            Some(RawValue::Array(_)) => {
                return Err(WriteError::ArrayInHashedIndex { path: path[..end].to_owned() });
            }
            value if is_last => return Ok(value),
            Some(RawValue::Document(inner)) => place = inner,
            Some(_) | None => return Ok(None),
        }
        end += 1;
    }
}

#[cfg(test)]
mod tests {
    use pando_document::{Value, doc};

    use super::*;

    fn hash(value: impl Into<Value>) -> i64 {
        let document = doc! { "v": (value.into()) }.to_raw();
        hash_of(document.get("v").unwrap().unwrap()).unwrap()
    }

    /// The hashes of MongoDB 6.0, by its command `_hashBSONElement`.
    #[test]
    fn hashes_are_those_of_mongodb() {
        for number in [Value::Int32(1), Value::Int64(1), Value::Double(1.5)] {
            assert_eq!(hash(number), 5_902_408_780_260_971_510);
        }
        assert_eq!(hash(f64::NAN), 4_854_801_880_128_277_513);
        assert_eq!(hash(9_223_372_036_854_775_808.0), 4_532_067_210_535_695_462);
        assert_eq!(hash(1e300), 921_523_596_458_303_250);
        assert_eq!(hash("x"), -5_169_800_095_944_007_213);
        assert_eq!(hash(Value::Null), 2_338_878_944_348_059_895);
        assert_eq!(hash(true), 6_405_873_908_747_105_701);
        assert_eq!(hash(Value::Array(vec![])), 8_849_948_234_993_459_283);
        assert_eq!(
            hash(Value::Array(vec![Value::Double(1.0), Value::Double(2.5)])),
            8_312_708_174_902_235_769
        );
        assert_eq!(hash(doc! { "a": 1 }), -8_705_610_352_600_103_477);
        assert_eq!(hash(doc! { "a": { "b": 5_i64 } }), -6_935_731_080_909_083_731);
        assert_eq!(hash(Value::DateTime(1_577_836_800_000)), -8_439_725_397_068_880_569);
    }

    #[test]
    fn only_values_whose_equals_have_one_hash_are_looked_up() {
        assert!(
            hash_of_literal(RawValue::Double(2.0), &TextOrder::SIMPLE)
                == hash_of_literal(RawValue::Int32(2), &TextOrder::SIMPLE)
        );
        assert!(hash_of_literal(RawValue::Int32(2), &TextOrder::SIMPLE).is_some());
        assert_eq!(hash_of_literal(RawValue::Double(1.5), &TextOrder::SIMPLE), None);
        assert_eq!(hash_of_literal(RawValue::MinKey, &TextOrder::SIMPLE), None);
        let inner = doc! { "a": { "b": 1.5 } }.to_raw();
        assert_eq!(hash_of_literal(RawValue::Document(&inner), &TextOrder::SIMPLE), None);
    }

    #[test]
    fn arrays_are_refused_by_the_path_that_meets_them() {
        let array = Value::Array(vec![Value::Int32(1)]);
        let outer = doc! { "a": (array.clone()) }.to_raw();
        let inner = doc! { "a": { "b": (array) } }.to_raw();
        for (document, met) in [(&outer, "a"), (&inner, "a.b")] {
            match value_at(document, "a.b") {
                Err(WriteError::ArrayInHashedIndex { path }) => assert_eq!(path, met),
                other => panic!("not refused: {other:?}"),
            }
        }
        let plain = doc! { "a": { "b": 5 } }.to_raw();
        assert!(matches!(value_at(&plain, "a.b"), Ok(Some(RawValue::Int32(5)))));
        assert!(matches!(value_at(&plain, "a.b.c"), Ok(None)));
    }
}
