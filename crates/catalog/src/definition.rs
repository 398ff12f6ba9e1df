//! The definition of an ordinary index, parsed from its specification.
//!
//! `commands` checks a request's specification and answers in MongoDB's words. This parser reads such a
//! checked specification, and the specifications in the catalog tree.

use pando_collation::TextOrder;
use pando_document::{Number, RawDocument, RawValue};
use pando_keyorder::Direction;

use crate::index_description::{
    EntryContents, FieldKind, IndexDescription, IndexField, Sparseness, Truncation, Uniqueness, Visibility,
    is_wildcard,
};
use crate::multikey::Multikey;

impl IndexDescription {
    /// The definition of a specification: `key`, `name`, and `unique`, `prepareUnique`, `sparse`, `hidden`,
    /// `clustering` where
    /// they are true. `Err` says what is wrong.
    pub fn from_specification(specification: &RawDocument) -> Result<IndexDescription, String> {
        definition_of(specification)
    }
}

pub(crate) fn definition_of(specification: &RawDocument) -> Result<IndexDescription, String> {
    let Ok(Some(RawValue::Document(pattern))) = specification.get("key") else {
        return Err("the index has no key pattern".to_owned());
    };
    let Ok(Some(RawValue::String(name))) = specification.get("name") else {
        return Err("the index has no name".to_owned());
    };
    let fields = fields_of_index(pattern)?;
    // MongoDB's specification of the index on `_id` does not say that it is unique.
    let is_unique = flag(specification, "unique") || (name == "_id_" && is_id(&fields));
    let unique = match (is_unique, flag(specification, "prepareUnique")) {
        (true, _) => Uniqueness::Unique,
        (false, true) => Uniqueness::Prepared,
        (false, false) => Uniqueness::NotUnique,
    };
    let sparse = if flag(specification, "sparse") { Sparseness::Sparse } else { Sparseness::Dense };
    let hidden = if flag(specification, "hidden") { Visibility::Hidden } else { Visibility::Visible };
    let contents = match flag(specification, "clustering") {
        true => EntryContents::Copy,
        false => EntryContents::Reference,
    };
    Ok(IndexDescription {
        name: name.to_owned(),
        multikey: vec![Multikey::NO; fields.len()],
        fields,
        unique,
        sparse,
        truncated: Truncation::Whole,
        hidden,
        contents,
        text_order: TextOrder::of_stored(specification)?,
        specification: specification.to_owned(),
    })
}

/// The fields of a key pattern by their values, at least one.
pub(crate) fn fields_of(pattern: &RawDocument) -> Result<Vec<IndexField>, String> {
    let fields = fields_of_index(pattern)?;
    match fields.iter().find(|field| field.kind != FieldKind::Value) {
        Some(field) => Err(format!("the key of {} is not its value", field.path)),
        None => Ok(fields),
    }
}

/// The fields of a key pattern, at least one.
fn fields_of_index(pattern: &RawDocument) -> Result<Vec<IndexField>, String> {
    let mut fields: Vec<IndexField> = Vec::new();
    for field in pattern.iter() {
        let (path, order) = field.map_err(|error| error.to_string())?;
        let is_behind_term = fields.last().is_some_and(|field| field.kind == FieldKind::TextTerm);
        let (direction, kind) = match order {
            RawValue::String("text") => (Direction::Ascending, FieldKind::TextTerm),
            _ if is_behind_term => (Direction::Ascending, FieldKind::TextScore),
            RawValue::String("hashed") => (Direction::Ascending, FieldKind::Hashed),
            RawValue::String("2dsphere") => (Direction::Ascending, FieldKind::Sphere),
            RawValue::String("2d") => (Direction::Ascending, FieldKind::Plane),
            order if is_wildcard(path) => (direction_of(path, order)?, FieldKind::Wildcard),
            order => (direction_of(path, order)?, FieldKind::Value),
        };
        fields.push(IndexField { path: path.to_owned(), direction, kind });
    }
    if fields.is_empty() {
        return Err("the key pattern is empty".to_owned());
    }
    Ok(fields)
}

fn is_id(fields: &[IndexField]) -> bool {
    matches!(fields, [field] if field.path == "_id" && field.direction == Direction::Ascending)
}

fn direction_of(path: &str, order: RawValue<'_>) -> Result<Direction, String> {
    let Some(number) = Number::from_value(order).map(Number::to_f64) else {
        return Err(format!("the order of {path} is {order:?}, which is not a number"));
    };
    if number > 0.0 {
        Ok(Direction::Ascending)
    } else if number < 0.0 {
        Ok(Direction::Descending)
    } else {
        Err(format!("the order of {path} is neither above nor below zero"))
    }
}

fn flag(specification: &RawDocument, name: &str) -> bool {
    matches!(specification.get(name), Ok(Some(value)) if value.to_bool())
}
