//! `$type`: a set of types, by number or by name; `"number"` is four of them.

use pando_document::{ElementType, RawValue};

use super::{Node, Test};
use crate::path::Path;
use crate::shell_text::value_text;
use crate::{ErrorCode, QueryError};

/// A set of types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TypeSet {
    /// Bit n is the type with byte n, for n up to 19; MaxKey and MinKey are bits 30 and 31.
    bits: u32,
}

impl TypeSet {
    /// Whether a type is in the set.
    pub fn contains(self, kind: ElementType) -> bool {
        self.bits & bit(kind) != 0
    }

    /// The types, in the order of their bytes.
    pub fn iter(self) -> impl Iterator<Item = ElementType> {
        ElementType::ALL.into_iter().filter(move |kind| self.contains(*kind))
    }

    /// Adds the types of a name.
    pub(super) fn add_alias(&mut self, alias: &str) -> Result<(), QueryError> {
        add(self, RawValue::String(alias))
    }

    fn add(&mut self, kind: ElementType) {
        self.bits |= bit(kind);
    }
}

fn bit(kind: ElementType) -> u32 {
    match kind {
        ElementType::MaxKey => 1 << 30,
        ElementType::MinKey => 1 << 31,
        kind => 1 << kind.as_byte(),
    }
}

/// Parses `$type`: a number, a name, or an array of those.
pub(super) fn parse(path: &Path, argument: RawValue<'_>) -> Result<Node, QueryError> {
    let mut types = TypeSet::default();
    match argument {
        RawValue::Array(array) if array.is_empty() => {
            return Err(QueryError::failed_to_parse(format!("{path} must match at least one type")));
        }
        RawValue::Array(array) => {
            for value in array {
                add(&mut types, value?)?;
            }
        }
        value => add(&mut types, value)?,
    }
    Ok(Node::field(path, Test::Type(types)))
}

fn add(types: &mut TypeSet, value: RawValue<'_>) -> Result<(), QueryError> {
    match value {
        RawValue::String("number") => {
            for kind in ElementType::ALL.into_iter().filter(|kind| kind.is_number()) {
                types.add(kind);
            }
            Ok(())
        }
        RawValue::String("missing") => Err(QueryError::bad_value(
            "'missing' is not a legal type name. To query for non-existence of a field, use {$exists:false}.",
        )),
        RawValue::String(alias) => {
            let kind = ElementType::from_alias(alias)
                .ok_or_else(|| QueryError::bad_value(format!("Unknown type name alias: {alias}")))?;
            types.add(kind);
            Ok(())
        }
        value if value.is_number() => {
            types.add(by_number(value)?);
            Ok(())
        }
        _ => {
            Err(QueryError::new(ErrorCode::TypeMismatch, "type must be represented as a number or a string"))
        }
    }
}

fn by_number(value: RawValue<'_>) -> Result<ElementType, QueryError> {
    let number = value.as_i64_exact();
    if number == Some(0) {
        return Err(QueryError::bad_value("Invalid numerical type code: 0. Instead use {$exists:false}."));
    }
    ElementType::ALL
        .into_iter()
        .find(|kind| number == Some(i64::from(kind.number())))
        .ok_or_else(|| QueryError::bad_value(format!("Invalid numerical type code: {}", value_text(value))))
}
