//! `$jsonSchema`: rules for the shape of a document, after draft 4 of JSON Schema with MongoDB's types.
//!
//! # Terms
//! - *Schema*: rules, all of which a value has to keep. It may have a title and a description, which matter
//!   only to the details of a failed validation.
//! - *Rule*: a keyword with its argument. It speaks of values of one type and is kept by all others:
//!   `minimum` by all that is no number, `required` by all that is no document.
//!
//! # Cost
//! A value is looked at once for each rule about it. Schemas within one another are bounded by the nesting of
//! filters, so neither the parser nor the match can exhaust the stack.
//!
//! # Not here
//! The parser (`parse`), the details of a failed validation (`details`).

mod details;
mod limits;
mod parse;

use pando_document::{ElementType, RawArray, RawDocument, RawDocumentBuf, RawValue, Value, compare};

use self::limits::{is_multiple, normal_form};
pub(super) use self::parse::parse;
use super::{Comparison, TypeSet};
use crate::QueryError;
use crate::regular_expression::RegularExpression;

/// A parsed schema.
#[derive(Clone, Debug)]
pub struct Schema {
    title: Option<String>,
    description: Option<String>,
    /// In the order in which MongoDB tells of them.
    rules: Vec<Rule>,
    /// The schema as it was written.
    text: RawDocumentBuf,
}

/// A keyword and its argument.
#[derive(Clone, Debug)]
struct Rule {
    keyword: Keyword,
    /// The rule as it was written.
    text: RawDocumentBuf,
}

#[derive(Clone, Debug)]
enum Keyword {
    /// `type`, `bsonType`.
    Type(TypeSet),
    MultipleOf(Value),
    /// `minimum`, `maximum`, both possibly exclusive.
    Bound(Comparison),
    MinLength(i64),
    MaxLength(i64),
    Pattern(RegularExpression),
    MinItems(i64),
    MaxItems(i64),
    UniqueItems,
    /// `items` with one schema for all.
    Items(Box<Schema>),
    /// `items` with one schema for each of the first.
    ItemsInOrder(Vec<Schema>),
    /// `additionalItems`, for those from this one.
    AdditionalItems(usize, Additional),
    Properties(Vec<(String, Schema)>),
    PatternProperties(Vec<(RegularExpression, Schema)>),
    /// `additionalProperties`, with the names and patterns of the others.
    AdditionalProperties {
        names: Vec<String>,
        patterns: Vec<RegularExpression>,
        allowed: Additional,
    },
    Required(Vec<String>),
    MinProperties(i64),
    MaxProperties(i64),
    Dependencies(Vec<(String, Dependency)>),
    AllOf(Vec<Schema>),
    AnyOf(Vec<Schema>),
    OneOf(Vec<Schema>),
    Not(Box<Schema>),
    /// `enum`, in their normal forms.
    Enum(Vec<Value>),
}

impl Keyword {
    /// The types of the values that can break the rule; `None` for those of any type.
    fn kinds(&self) -> Option<&'static [ElementType]> {
        match self {
            Keyword::MultipleOf(_) | Keyword::Bound(_) => {
                Some(&[ElementType::Double, ElementType::Int32, ElementType::Int64, ElementType::Decimal128])
            }
            Keyword::MinLength(_) | Keyword::MaxLength(_) | Keyword::Pattern(_) => {
                Some(&[ElementType::String])
            }
            Keyword::MinItems(_)
            | Keyword::MaxItems(_)
            | Keyword::UniqueItems
            | Keyword::Items(_)
            | Keyword::ItemsInOrder(_)
            | Keyword::AdditionalItems(..) => Some(&[ElementType::Array]),
            Keyword::Properties(_)
            | Keyword::PatternProperties(_)
            | Keyword::AdditionalProperties { .. }
            | Keyword::Required(_)
            | Keyword::MinProperties(_)
            | Keyword::MaxProperties(_)
            | Keyword::Dependencies(_) => Some(&[ElementType::Document]),
            Keyword::Type(_)
            | Keyword::AllOf(_)
            | Keyword::AnyOf(_)
            | Keyword::OneOf(_)
            | Keyword::Not(_)
            | Keyword::Enum(_) => None,
        }
    }
}

/// The values that items or properties may have which no other keyword names.
#[derive(Clone, Debug)]
enum Additional {
    None,
    Of(Box<Schema>),
}

/// The need of a property for others beside it.
#[derive(Clone, Debug)]
enum Dependency {
    /// These properties.
    Properties(Vec<String>),
    /// That the whole document keeps a schema.
    Schema(Schema),
}

impl Schema {
    /// The schema as it was written.
    pub(crate) fn text(&self) -> &RawDocument {
        &self.text
    }

    /// Whether a value keeps all rules.
    pub(crate) fn is_kept(&self, value: RawValue<'_>) -> Result<bool, QueryError> {
        for rule in &self.rules {
            if !rule.is_kept(value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn count_kept(schemas: &[Schema], value: RawValue<'_>) -> Result<usize, QueryError> {
        let mut kept = 0;
        for schema in schemas {
            kept += usize::from(schema.is_kept(value)?);
        }
        Ok(kept)
    }
}

impl Rule {
    fn is_kept(&self, value: RawValue<'_>) -> Result<bool, QueryError> {
        match (&self.keyword, value) {
            (Keyword::Type(types), value) => Ok(types.contains(value.element_type())),
            (Keyword::AllOf(schemas), value) => Ok(Schema::count_kept(schemas, value)? == schemas.len()),
            (Keyword::AnyOf(schemas), value) => {
                for schema in schemas {
                    if schema.is_kept(value)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            (Keyword::OneOf(schemas), value) => Ok(Schema::count_kept(schemas, value)? == 1),
            (Keyword::Not(schema), value) => Ok(!schema.is_kept(value)?),
            (Keyword::Enum(values), value) => {
                let value = normal_form(value);
                Ok(values.iter().any(|allowed| compare(allowed, &value).is_eq()))
            }
            (Keyword::MultipleOf(divisor), value) if value.is_number() => Ok(is_multiple(value, divisor)),
            (Keyword::Bound(comparison), value) if value.is_number() => Ok(comparison.holds(Some(value))),
            (keyword, RawValue::String(text)) => keyword.is_kept_by_text(text),
            (keyword, RawValue::Array(items)) => keyword.is_kept_by_items(items),
            (keyword, RawValue::Document(document)) => keyword.is_kept_by_document(document),
            _ => Ok(true),
        }
    }
}

impl Keyword {
    fn is_kept_by_text(&self, text: &str) -> Result<bool, QueryError> {
        let length = || i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        match self {
            Keyword::MinLength(least) => Ok(length() >= *least),
            Keyword::MaxLength(most) => Ok(length() <= *most),
            Keyword::Pattern(pattern) => pattern.is_match(text),
            _ => Ok(true),
        }
    }

    fn is_kept_by_items(&self, items: &RawArray) -> Result<bool, QueryError> {
        match self {
            Keyword::MinItems(least) => Ok(count_items(items) >= *least),
            Keyword::MaxItems(most) => Ok(count_items(items) <= *most),
            Keyword::UniqueItems => Ok(limits::first_duplicate(items)?.is_none()),
            Keyword::Items(schema) => Ok(first_wrong_item(items, 0, schema)?.is_none()),
            Keyword::ItemsInOrder(schemas) => {
                for (item, schema) in items.iter().zip(schemas) {
                    if !schema.is_kept(item?)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Keyword::AdditionalItems(from, Additional::None) => {
                Ok(items.iter().nth(*from).transpose()?.is_none())
            }
            Keyword::AdditionalItems(from, Additional::Of(schema)) => {
                Ok(first_wrong_item(items, *from, schema)?.is_none())
            }
            _ => Ok(true),
        }
    }

    fn is_kept_by_document(&self, document: &RawDocument) -> Result<bool, QueryError> {
        match self {
            Keyword::Properties(properties) => {
                for (name, schema) in properties {
                    if let Some(value) = document.get(name)?
                        && !schema.is_kept(value)?
                    {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Keyword::PatternProperties(patterns) => {
                for field in document.iter() {
                    let (name, value) = field?;
                    for (pattern, schema) in patterns {
                        if pattern.is_match(name)? && !schema.is_kept(value)? {
                            return Ok(false);
                        }
                    }
                }
                Ok(true)
            }
            Keyword::AdditionalProperties { allowed, .. } => {
                for field in self.additional_properties(document) {
                    let (_, value) = field?;
                    match allowed {
                        Additional::Of(schema) if schema.is_kept(value)? => {}
                        _ => return Ok(false),
                    }
                }
                Ok(true)
            }
            Keyword::Required(names) => Ok(missing_names(document, names)?.is_empty()),
            Keyword::MinProperties(least) => Ok(count_fields(document) >= *least),
            Keyword::MaxProperties(most) => Ok(count_fields(document) <= *most),
            Keyword::Dependencies(dependencies) => {
                for (name, dependency) in dependencies {
                    if document.get(name)?.is_some() && !dependency.is_kept(document)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => Ok(true),
        }
    }

    /// The fields that `additionalProperties` speaks of.
    fn additional_properties<'d>(
        &'d self,
        document: &'d RawDocument,
    ) -> impl Iterator<Item = Result<(&'d str, RawValue<'d>), QueryError>> {
        let (own, patterns) = match self {
            Keyword::AdditionalProperties { names, patterns, .. } => (names.as_slice(), patterns.as_slice()),
            _ => (&[][..], &[][..]),
        };
        document.iter().filter_map(move |field| {
            let (name, value) = match field {
                Ok(field) => field,
                Err(error) => return Some(Err(error.into())),
            };
            if own.iter().any(|own| own == name) {
                return None;
            }
            for pattern in patterns {
                match pattern.is_match(name) {
                    Ok(true) => return None,
                    Ok(false) => {}
                    Err(error) => return Some(Err(error)),
                }
            }
            Some(Ok((name, value)))
        })
    }
}

impl Dependency {
    fn is_kept(&self, document: &RawDocument) -> Result<bool, QueryError> {
        match self {
            Dependency::Properties(names) => Ok(missing_names(document, names)?.is_empty()),
            Dependency::Schema(schema) => schema.is_kept(RawValue::Document(document)),
        }
    }
}

fn count_items(items: &RawArray) -> i64 {
    i64::try_from(items.iter().count()).unwrap_or(i64::MAX)
}

fn count_fields(document: &RawDocument) -> i64 {
    i64::try_from(document.iter().count()).unwrap_or(i64::MAX)
}

/// The first item, from this one on, that does not keep a schema.
fn first_wrong_item<'d>(
    items: &'d RawArray,
    from: usize,
    schema: &Schema,
) -> Result<Option<(usize, RawValue<'d>)>, QueryError> {
    for (at, item) in items.iter().enumerate().skip(from) {
        let item = item?;
        if !schema.is_kept(item)? {
            return Ok(Some((at, item)));
        }
    }
    Ok(None)
}

/// The names that a document does not have.
fn missing_names<'n>(document: &RawDocument, names: &'n [String]) -> Result<Vec<&'n str>, QueryError> {
    let mut missing = Vec::new();
    for name in names {
        if document.get(name)?.is_none() {
            missing.push(name.as_str());
        }
    }
    Ok(missing)
}

#[cfg(test)]
mod tests;
