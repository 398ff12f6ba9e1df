//! The parser of schemas.
//!
//! All keywords are read first, and each unknown one is refused. The rules are then made in the order in
//! which MongoDB tells of them: numbers and texts, arrays, documents, schemas within schemas, types.

use std::collections::HashMap;

use pando_collation::TextOrder;
use pando_document::{DocumentWriter, RawDocument, RawDocumentBuf, RawValue, Value, compare};

use super::super::number_argument::{self, NumberFault};
use super::super::parse::Context;
use super::super::{Comparison, Operator, TypeSet};
use super::limits::normal_form;
use super::{Additional, Dependency, Keyword, Rule, Schema};
use crate::QueryError;
use crate::literal::Literal;
use crate::regular_expression::RegularExpression;

const KEYWORDS: [&str; 31] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "bsonType",
    "dependencies",
    "description",
    "encrypt",
    "encryptMetadata",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "properties",
    "required",
    "title",
    "type",
    "uniqueItems",
];
/// Keywords of draft 4 that MongoDB knows and refuses.
const REFUSED: [&str; 6] = ["$ref", "$schema", "default", "definitions", "format", "id"];

/// Parses the argument of `$jsonSchema`.
pub(in crate::filter) fn parse(value: RawValue<'_>, context: Context<'_>) -> Result<Schema, QueryError> {
    match value {
        RawValue::Document(text) => schema(text, context),
        _ => Err(QueryError::type_mismatch("$jsonSchema must be an object")),
    }
}

fn schema(text: &RawDocument, context: Context<'_>) -> Result<Schema, QueryError> {
    let context = context.deeper()?;
    let mut keywords = HashMap::new();
    for field in text.iter() {
        let (name, value) = field?;
        if REFUSED.contains(&name) {
            return Err(QueryError::failed_to_parse(format!(
                "$jsonSchema keyword '{name}' is not currently supported"
            )));
        }
        if !KEYWORDS.contains(&name) {
            return Err(QueryError::failed_to_parse(format!("Unknown $jsonSchema keyword: {name}")));
        }
        if keywords.insert(name, value).is_some() {
            return Err(QueryError::failed_to_parse(format!("Duplicate $jsonSchema keyword: {name}")));
        }
    }
    if let Some(name) = ["encrypt", "encryptMetadata"].into_iter().find(|name| keywords.contains_key(name)) {
        return Err(QueryError::not_implemented(&format!("the $jsonSchema keyword '{name}'")));
    }
    let mut parser = Parser { keywords, context, rules: Vec::new(), only_type: None };
    let title = parser.text("title")?;
    let description = parser.text("description")?;
    parser.scalars()?;
    parser.arrays()?;
    parser.documents()?;
    parser.combinations()?;
    parser.types()?;
    parser.leave_out_other_types();
    Ok(Schema { title, description, rules: parser.rules, text: text.to_owned() })
}

struct Parser<'a, 's> {
    keywords: HashMap<&'a str, RawValue<'a>>,
    context: Context<'s>,
    rules: Vec<Rule>,
    /// The type that is allowed, where there is one name of it. `number` is one.
    only_type: Option<TypeSet>,
}

impl<'a> Parser<'a, '_> {
    fn get(&self, name: &str) -> Option<RawValue<'a>> {
        self.keywords.get(name).copied()
    }

    /// The argument of a keyword that takes an object.
    fn object(&self, name: &str) -> Result<Option<&'a RawDocument>, QueryError> {
        match self.get(name) {
            None => Ok(None),
            Some(RawValue::Document(object)) => Ok(Some(object)),
            Some(_) => Err(mismatch(name, "must be an object")),
        }
    }

    /// Adds a rule whose text are these keywords.
    fn push(&mut self, names: &[&str], keyword: Keyword) {
        let mut bytes = Vec::new();
        let mut out = DocumentWriter::begin(&mut bytes);
        for name in names {
            if let Some(value) = self.get(name) {
                out.append(name, value);
            }
        }
        out.finish();
        let text = RawDocumentBuf::from_vec(bytes).unwrap_or_default();
        self.rules.push(Rule { keyword, text });
    }

    fn text(&self, name: &str) -> Result<Option<String>, QueryError> {
        match self.get(name) {
            None => Ok(None),
            Some(RawValue::String(text)) => Ok(Some(text.to_owned())),
            Some(_) => Err(mismatch(name, "must be of type string")),
        }
    }

    fn schema(&self, value: &RawDocument) -> Result<Schema, QueryError> {
        schema(value, self.context)
    }

    fn scalars(&mut self) -> Result<(), QueryError> {
        if let Some(value) = self.get("multipleOf") {
            if !value.is_number() {
                return Err(mismatch("multipleOf", "must be a number"));
            }
            let number = pando_document::Number::from_value(value);
            if number.is_none_or(|number| number.is_nan() || number.is_zero() || number.to_f64() < 0.0) {
                return Err(fault("multipleOf", "must have a positive value"));
            }
            self.push(&["multipleOf"], Keyword::MultipleOf(value.to_owned()));
        }
        self.bound("maximum", "exclusiveMaximum", [Operator::LessOrEqual, Operator::Less])?;
        self.bound("minimum", "exclusiveMinimum", [Operator::GreaterOrEqual, Operator::Greater])?;
        match self.get("pattern") {
            None => {}
            Some(RawValue::String(pattern)) => {
                let pattern = RegularExpression::new(pattern, "")?;
                self.push(&["pattern"], Keyword::Pattern(pattern));
            }
            Some(_) => return Err(mismatch("pattern", "must be a string")),
        }
        self.count("maxLength", Keyword::MaxLength)?;
        self.count("minLength", Keyword::MinLength)
    }

    /// A bound that may be exclusive.
    fn bound(&mut self, name: &str, exclusive: &str, operators: [Operator; 2]) -> Result<(), QueryError> {
        let Some(value) = self.get(name) else {
            return match self.get(exclusive) {
                None => Ok(()),
                Some(_) => Err(fault(name, &format!("must be a present if {exclusive} is present"))),
            };
        };
        if !value.is_number() {
            return Err(mismatch(name, "must be a number"));
        }
        let is_exclusive = match self.get(exclusive) {
            None => false,
            Some(RawValue::Boolean(is_exclusive)) => is_exclusive,
            Some(_) => return Err(mismatch(exclusive, "must be a boolean")),
        };
        let operator = operators[usize::from(is_exclusive)];
        // It is a number, so any order is the same.
        let comparison = Comparison { operator, literal: Literal::new(value), order: TextOrder::SIMPLE };
        let names = [name, exclusive];
        self.push(&names[..1 + usize::from(is_exclusive)], Keyword::Bound(comparison));
        Ok(())
    }

    /// A number of things.
    fn count(&mut self, name: &str, keyword: impl FnOnce(i64) -> Keyword) -> Result<(), QueryError> {
        let Some(value) = self.get(name) else { return Ok(()) };
        let number = match number_argument::integer(value) {
            Ok(number) if number < 0 => Err(NumberFault::Negative),
            other => other,
        };
        let number = number.map_err(|fault| QueryError::failed_to_parse(fault.text(name, value)))?;
        self.push(&[name], keyword(number));
        Ok(())
    }

    fn arrays(&mut self) -> Result<(), QueryError> {
        self.count("minItems", Keyword::MinItems)?;
        self.count("maxItems", Keyword::MaxItems)?;
        match self.get("uniqueItems") {
            None | Some(RawValue::Boolean(false)) => {}
            Some(RawValue::Boolean(true)) => self.push(&["uniqueItems"], Keyword::UniqueItems),
            Some(_) => return Err(mismatch("uniqueItems", "must be a boolean")),
        }
        let mut ordered = None;
        match self.get("items") {
            None => {}
            Some(RawValue::Document(text)) => {
                let schema = Box::new(self.schema(text)?);
                self.push(&["items"], Keyword::Items(schema));
            }
            Some(RawValue::Array(texts)) => {
                let mut schemas = Vec::new();
                for text in texts.iter() {
                    match text? {
                        RawValue::Document(text) => schemas.push(self.schema(text)?),
                        other => {
                            let found = other.element_type().alias();
                            let reason = format!(
                                "requires that each element of the array is an object, but found a {found}"
                            );
                            return Err(mismatch("items", &reason));
                        }
                    }
                }
                ordered = Some(schemas.len());
                self.push(&["items"], Keyword::ItemsInOrder(schemas));
            }
            Some(other) => {
                let found = other.element_type().alias();
                return Err(mismatch("items", &format!("must be an array or an object, not {found}")));
            }
        }
        let allowed = match self.get("additionalItems") {
            None | Some(RawValue::Boolean(true)) => return Ok(()),
            Some(RawValue::Boolean(false)) => Additional::None,
            Some(RawValue::Document(text)) => Additional::Of(Box::new(self.schema(text)?)),
            Some(other) => {
                let found = other.element_type().alias();
                let reason = format!("must be either an object or a boolean, but got a {found}");
                return Err(mismatch("additionalItems", &reason));
            }
        };
        // They are beside those of a list. A schema for all leaves none.
        if let Some(from) = ordered {
            self.push(&["additionalItems"], Keyword::AdditionalItems(from, allowed));
        }
        Ok(())
    }

    fn documents(&mut self) -> Result<(), QueryError> {
        let properties = self.properties()?;
        let patterns = self.pattern_properties()?;
        let allowed = match self.get("additionalProperties") {
            None | Some(RawValue::Boolean(true)) => None,
            Some(RawValue::Boolean(false)) => Some(Additional::None),
            Some(RawValue::Document(text)) => Some(Additional::Of(Box::new(self.schema(text)?))),
            Some(_) => return Err(mismatch("additionalProperties", "must be an object or a boolean")),
        };
        let own = properties.iter().map(|(name, _)| name.clone()).collect();
        let own_patterns = patterns.iter().map(|(pattern, _)| pattern.clone()).collect();
        if !properties.is_empty() {
            self.push(&["properties"], Keyword::Properties(properties));
        }
        if let Some(allowed) = allowed {
            let keyword = Keyword::AdditionalProperties { names: own, patterns: own_patterns, allowed };
            self.push(&["additionalProperties"], keyword);
        }
        if !patterns.is_empty() {
            self.push(&["patternProperties"], Keyword::PatternProperties(patterns));
        }
        if let Some(value) = self.get("required") {
            let names = required(value)?;
            self.push(&["required"], Keyword::Required(names));
        }
        self.count("minProperties", Keyword::MinProperties)?;
        self.count("maxProperties", Keyword::MaxProperties)?;
        self.dependencies()
    }

    fn properties(&self) -> Result<Vec<(String, Schema)>, QueryError> {
        let mut properties = Vec::new();
        let Some(texts) = self.object("properties")? else { return Ok(properties) };
        for field in texts.iter() {
            match field? {
                (name, RawValue::Document(text)) => properties.push((name.to_owned(), self.schema(text)?)),
                (name, _) => {
                    return Err(QueryError::type_mismatch(format!(
                        "Nested schema for $jsonSchema property '{name}' must be an object"
                    )));
                }
            }
        }
        Ok(properties)
    }

    fn pattern_properties(&self) -> Result<Vec<(RegularExpression, Schema)>, QueryError> {
        let mut patterns = Vec::new();
        let Some(texts) = self.object("patternProperties")? else { return Ok(patterns) };
        for field in texts.iter() {
            let (pattern, text) = field?;
            let RawValue::Document(text) = text else {
                let reason = format!("has property '{pattern}' which is not an object");
                return Err(mismatch("patternProperties", &reason));
            };
            let schema = self.schema(text)?;
            let pattern = RegularExpression::new(pattern, "").map_err(|error| {
                let reason = error.message().rsplit(": ").next().unwrap_or_default().to_owned();
                QueryError::bad_value(format!("Invalid regular expression: {reason}"))
            })?;
            patterns.push((pattern, schema));
        }
        Ok(patterns)
    }

    fn dependencies(&mut self) -> Result<(), QueryError> {
        let Some(texts) = self.object("dependencies")? else { return Ok(()) };
        let mut dependencies = Vec::new();
        for field in texts.iter() {
            let (name, text) = field?;
            let dependency = match text {
                RawValue::Document(text) => Dependency::Schema(self.schema(text)?),
                RawValue::Array(names) => {
                    let mut found: Vec<String> = Vec::new();
                    for other in names.iter() {
                        let other = dependent_name(name, other?)?;
                        if found.contains(&other) {
                            return Err(QueryError::failed_to_parse(format!(
                                "array '{name}' in $jsonSchema keyword 'dependencies' contains duplicate element: {other}"
                            )));
                        }
                        found.push(other);
                    }
                    if found.is_empty() {
                        return Err(QueryError::failed_to_parse(format!(
                            "property '{name}' in $jsonSchema keyword 'dependencies' cannot be an empty array"
                        )));
                    }
                    Dependency::Properties(found)
                }
                _ => {
                    return Err(QueryError::type_mismatch(format!(
                        "property '{name}' in $jsonSchema keyword 'dependencies' must be either an object or an array"
                    )));
                }
            };
            dependencies.push((name.to_owned(), dependency));
        }
        self.push(&["dependencies"], Keyword::Dependencies(dependencies));
        Ok(())
    }

    fn combinations(&mut self) -> Result<(), QueryError> {
        let keywords: [(&str, fn(Vec<Schema>) -> Keyword); 3] =
            [("allOf", Keyword::AllOf), ("anyOf", Keyword::AnyOf), ("oneOf", Keyword::OneOf)];
        for (name, keyword) in keywords {
            let Some(value) = self.get(name) else { continue };
            let schemas = self.schemas(name, value)?;
            self.push(&[name], keyword(schemas));
        }
        match self.get("not") {
            None => {}
            Some(RawValue::Document(text)) => {
                let schema = Box::new(self.schema(text)?);
                self.push(&["not"], Keyword::Not(schema));
            }
            Some(other) => {
                let found = other.element_type().alias();
                let reason = format!("must be an object, but found an element of type {found}");
                return Err(mismatch("not", &reason));
            }
        }
        if let Some(value) = self.get("enum") {
            let values = enumerated(value)?;
            self.push(&["enum"], Keyword::Enum(values));
        }
        Ok(())
    }

    fn schemas(&self, name: &str, value: RawValue<'_>) -> Result<Vec<Schema>, QueryError> {
        let RawValue::Array(texts) = value else { return Err(mismatch(name, "must be an array")) };
        let mut schemas = Vec::new();
        for text in texts.iter() {
            match text? {
                RawValue::Document(text) => schemas.push(self.schema(text)?),
                other => {
                    let found = other.element_type().alias();
                    let reason = format!("must be an array of objects, but found an element of type {found}");
                    return Err(mismatch(name, &reason));
                }
            }
        }
        if schemas.is_empty() {
            let reason = format!("$jsonSchema keyword '{name}' must be a non-empty array");
            return Err(QueryError::bad_value(reason));
        }
        Ok(schemas)
    }

    fn types(&mut self) -> Result<(), QueryError> {
        let name = match (self.get("type"), self.get("bsonType")) {
            (None, None) => return Ok(()),
            (Some(_), Some(_)) => {
                return Err(QueryError::failed_to_parse(
                    "Cannot specify both $jsonSchema keywords 'type' and 'bsonType'",
                ));
            }
            (Some(_), None) => "type",
            (None, Some(_)) => "bsonType",
        };
        let mut aliases: Vec<&str> = Vec::new();
        let wrong = || mismatch(name, "must be either a string or an array of strings");
        match self.get(name) {
            Some(RawValue::String(alias)) => aliases.push(alias),
            Some(RawValue::Array(list)) => {
                for alias in list.iter() {
                    let RawValue::String(alias) = alias? else { return Err(wrong()) };
                    if aliases.contains(&alias) {
                        return Err(fault(name, &format!("has duplicate value: {alias}")));
                    }
                    aliases.push(alias);
                }
            }
            _ => return Err(wrong()),
        }
        if aliases.is_empty() {
            return Err(fault(name, "must name at least one type"));
        }
        let mut types = TypeSet::default();
        let is_one = aliases.len() == 1;
        for alias in aliases {
            types.add_alias(if name == "type" { bson_alias(alias)? } else { alias })?;
        }
        self.only_type = is_one.then_some(types);
        self.push(&[name], Keyword::Type(types));
        Ok(())
    }

    /// Leaves out the rules that no value of the one type can break. A value of another type breaks that of
    /// the type, and MongoDB tells of no other then.
    fn leave_out_other_types(&mut self) {
        let Some(types) = self.only_type else { return };
        self.rules.retain(|rule| {
            rule.keyword.kinds().is_none_or(|kinds| kinds.iter().any(|kind| types.contains(*kind)))
        });
    }
}

/// The alias of a type of JSON.
fn bson_alias(alias: &str) -> Result<&str, QueryError> {
    match alias {
        "array" | "object" | "string" | "number" | "null" => Ok(alias),
        "boolean" => Ok("bool"),
        "integer" => Err(QueryError::failed_to_parse(format!(
            "$jsonSchema type '{alias}' is not currently supported."
        ))),
        _ => Err(QueryError::bad_value(format!("Unknown type name alias: {alias}"))),
    }
}

fn required(value: RawValue<'_>) -> Result<Vec<String>, QueryError> {
    let RawValue::Array(names) = value else {
        let found = value.element_type().alias();
        let reason = format!("must be an array, but found an element of type {found}");
        return Err(mismatch("required", &reason));
    };
    let mut found: Vec<String> = Vec::new();
    for name in names.iter() {
        match name? {
            RawValue::String(name) if found.iter().any(|other| other == name) => {
                return Err(fault("required", "array cannot contain duplicate values"));
            }
            RawValue::String(name) => found.push(name.to_owned()),
            other => {
                let found = other.element_type().alias();
                let reason = format!("must be an array of strings, but found an element of type: {found}");
                return Err(mismatch("required", &reason));
            }
        }
    }
    if found.is_empty() { Err(fault("required", "cannot be an empty array")) } else { Ok(found) }
}

fn dependent_name(property: &str, name: RawValue<'_>) -> Result<String, QueryError> {
    match name {
        RawValue::String(name) => Ok(name.to_owned()),
        other => Err(QueryError::type_mismatch(format!(
            "array '{property}' in $jsonSchema keyword 'dependencies' can only contain strings, but found element of type: {}",
            other.element_type().alias()
        ))),
    }
}

fn enumerated(value: RawValue<'_>) -> Result<Vec<Value>, QueryError> {
    let RawValue::Array(values) = value else {
        let found = value.element_type().alias();
        let reason = format!("must be an array, but found an element of type {found}");
        return Err(mismatch("enum", &reason));
    };
    let mut allowed = Vec::new();
    for value in values.iter() {
        allowed.push(normal_form(value?));
    }
    if allowed.is_empty() {
        return Err(fault("enum", "cannot be an empty array"));
    }
    allowed.sort_by(|a, b| compare(a, b));
    if allowed.windows(2).any(|pair| compare(&pair[0], &pair[1]).is_eq()) {
        return Err(fault("enum", "array cannot contain duplicate values."));
    }
    Ok(allowed)
}

fn fault(keyword: &str, reason: &str) -> QueryError {
    QueryError::failed_to_parse(format!("$jsonSchema keyword '{keyword}' {reason}"))
}

fn mismatch(keyword: &str, reason: &str) -> QueryError {
    QueryError::type_mismatch(format!("$jsonSchema keyword '{keyword}' {reason}"))
}
