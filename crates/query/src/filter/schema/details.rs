//! The details of a document that does not keep a schema, as the error of a validation shows them.

use pando_document::{Document, RawDocument, RawValue, Value};

use super::{Additional, Dependency, Keyword, Rule, Schema, first_wrong_item, limits, missing_names};
use crate::QueryError;

impl Schema {
    /// The rules that a document breaks, under the name of the operator.
    pub(crate) fn details(&self, document: &RawDocument) -> Result<Document, QueryError> {
        let value = RawValue::Document(document);
        let mut details = Document::new();
        details.push("operatorName", "$jsonSchema");
        self.push_words(&mut details);
        let never = self.rules.iter().any(
            |rule| matches!(rule.keyword, Keyword::Type(types) if !types.contains(value.element_type())),
        );
        if never {
            let mut text = Document::new();
            text.push("$jsonSchema", Document::from_raw(&self.text)?);
            details.push("specifiedAs", text);
            details.push("reason", "expression always evaluates to false");
            return Ok(details);
        }
        let mut rules = Vec::new();
        for rule in &self.rules {
            if rule.is_kept(value)? {
                continue;
            }
            if matches!(rule.keyword, Keyword::Enum(_)) {
                let mut shown = rule.shown()?;
                shown.push("reason", "expression always evaluates to false");
                rules.push(Value::Document(shown));
            } else {
                rules.push(Value::Document(rule.details(value)?));
            }
        }
        details.push("schemaRulesNotSatisfied", Value::Array(rules));
        Ok(details)
    }

    fn push_words(&self, details: &mut Document) {
        if let Some(title) = &self.title {
            details.push("title", title.as_str());
        }
        if let Some(description) = &self.description {
            details.push("description", description.as_str());
        }
    }

    /// The rules that a value does not keep.
    fn broken(&self, value: RawValue<'_>) -> Result<Value, QueryError> {
        let mut broken = Vec::new();
        for rule in &self.rules {
            if !rule.is_kept(value)? {
                broken.push(Value::Document(rule.details(value)?));
            }
        }
        Ok(Value::Array(broken))
    }

    /// Those of these schemas that a value does not keep.
    fn not_satisfied(schemas: &[Schema], value: RawValue<'_>) -> Result<Value, QueryError> {
        let mut found = Vec::new();
        for (at, schema) in schemas.iter().enumerate() {
            if !schema.is_kept(value)? {
                let mut one = Document::new();
                one.push("index", place(at));
                schema.push_words(&mut one);
                one.push("details", schema.broken(value)?);
                found.push(Value::Document(one));
            }
        }
        Ok(Value::Array(found))
    }
}

impl Rule {
    /// The name of the keyword.
    fn name(&self) -> &str {
        self.text.iter().next().and_then(Result::ok).map_or("", |(name, _)| name)
    }

    /// The name and the text.
    fn shown(&self) -> Result<Document, QueryError> {
        let mut shown = self.named();
        shown.push("specifiedAs", Document::from_raw(&self.text)?);
        Ok(shown)
    }

    fn named(&self) -> Document {
        let mut named = Document::new();
        named.push("operatorName", self.name());
        named
    }

    /// The reason why a value does not keep the rule.
    fn details(&self, value: RawValue<'_>) -> Result<Document, QueryError> {
        let of_value = |reason: &str| -> Result<Document, QueryError> {
            let mut details = self.shown()?;
            details.push("reason", reason);
            details.push("consideredValue", value.to_owned());
            Ok(details)
        };
        match &self.keyword {
            Keyword::Type(_) => {
                let mut details = of_value("type did not match")?;
                details.push("consideredType", value.element_type().alias());
                Ok(details)
            }
            Keyword::MultipleOf(_) => of_value("considered value is not a multiple of the specified value"),
            Keyword::Bound(_) => of_value("comparison failed"),
            Keyword::MinLength(_) | Keyword::MaxLength(_) => {
                of_value("specified string length was not satisfied")
            }
            Keyword::Pattern(_) => of_value("regular expression did not match"),
            Keyword::Enum(_) => of_value("value was not found in enum"),
            Keyword::AllOf(schemas) | Keyword::AnyOf(schemas) => {
                let mut details = self.named();
                details.push("schemasNotSatisfied", Schema::not_satisfied(schemas, value)?);
                Ok(details)
            }
            Keyword::OneOf(schemas) => self.of_one(schemas, value),
            Keyword::Not(_) => {
                let mut details = self.named();
                details.push("reason", "child expression matched");
                Ok(details)
            }
            keyword if keyword.is_about_items() => self.of_items(value),
            _ => match value {
                RawValue::Document(document) => self.of_document(document),
                _ => Ok(self.named()),
            },
        }
    }

    fn of_one(&self, schemas: &[Schema], value: RawValue<'_>) -> Result<Document, QueryError> {
        let mut details = self.named();
        let mut matching = Vec::new();
        for (at, schema) in schemas.iter().enumerate() {
            if schema.is_kept(value)? {
                matching.push(place(at));
            }
        }
        if matching.is_empty() {
            details.push("schemasNotSatisfied", Schema::not_satisfied(schemas, value)?);
        } else {
            details.push("reason", "more than one subschema matched");
            details.push("matchingSchemaIndexes", Value::Array(matching));
        }
        Ok(details)
    }

    fn of_items(&self, value: RawValue<'_>) -> Result<Document, QueryError> {
        let RawValue::Array(items) = value else { return Ok(self.named()) };
        let mut details = self.named();
        let wrong_item = |details: &mut Document, reason: &str, from, schema: &Schema| {
            details.push("reason", reason);
            if let Some((at, item)) = first_wrong_item(items, from, schema)? {
                details.push("itemIndex", place(at));
                details.push("details", schema.broken(item)?);
            }
            Ok::<(), QueryError>(())
        };
        match &self.keyword {
            Keyword::Items(schema) => {
                wrong_item(&mut details, "At least one item did not match the sub-schema", 0, schema)?;
            }
            Keyword::ItemsInOrder(schemas) => {
                let mut wrong = Vec::new();
                for (at, (item, schema)) in items.iter().zip(schemas).enumerate() {
                    let item = item?;
                    if !schema.is_kept(item)? {
                        let mut one = Document::new();
                        // Of a list of schemas MongoDB tells the place as a long.
                        one.push("itemIndex", Value::Int64(i64::try_from(at).unwrap_or(i64::MAX)));
                        schema.push_words(&mut one);
                        one.push("details", schema.broken(item)?);
                        wrong.push(Value::Document(one));
                    }
                }
                details.push("details", Value::Array(wrong));
            }
            Keyword::AdditionalItems(from, Additional::Of(schema)) => {
                let reason = "At least one additional item did not match the sub-schema";
                wrong_item(&mut details, reason, *from, schema)?;
            }
            Keyword::AdditionalItems(from, Additional::None) => {
                details = self.shown()?;
                details.push("reason", "found additional items");
                let mut further = Vec::new();
                for item in items.iter().skip(*from) {
                    further.push(item?.to_owned());
                }
                details.push("additionalItems", Value::Array(further));
            }
            Keyword::UniqueItems => {
                details = self.shown()?;
                details.push("reason", "found a duplicate item");
                details.push("consideredValue", value.to_owned());
                if let Some(item) = limits::first_duplicate(items)? {
                    details.push("duplicatedValue", item.to_owned());
                }
            }
            _ => {
                details = self.shown()?;
                details.push("reason", "array did not match specified length");
                details.push("consideredValue", value.to_owned());
                details.push("numberOfItems", number(super::count_items(items)));
            }
        }
        Ok(details)
    }

    fn of_document(&self, document: &RawDocument) -> Result<Document, QueryError> {
        let mut details = self.named();
        match &self.keyword {
            Keyword::Properties(properties) => {
                let mut wrong = Vec::new();
                for (name, schema) in properties {
                    if let Some(value) = document.get(name)?
                        && !schema.is_kept(value)?
                    {
                        let mut one = Document::new();
                        one.push("propertyName", name.as_str());
                        schema.push_words(&mut one);
                        one.push("details", schema.broken(value)?);
                        wrong.push(Value::Document(one));
                    }
                }
                details.push("propertiesNotSatisfied", Value::Array(wrong));
            }
            Keyword::PatternProperties(patterns) => {
                let mut wrong = Vec::new();
                for (pattern, schema) in patterns {
                    for field in document.iter() {
                        let (name, value) = field?;
                        if pattern.is_match(name)? && !schema.is_kept(value)? {
                            let mut one = Document::new();
                            one.push("propertyName", name);
                            schema.push_words(&mut one);
                            one.push("regexMatched", pattern.pattern());
                            one.push("details", schema.broken(value)?);
                            wrong.push(Value::Document(one));
                        }
                    }
                }
                details.push("details", Value::Array(wrong));
            }
            Keyword::AdditionalProperties { allowed, .. } => {
                return self.of_additional_properties(document, allowed);
            }
            Keyword::Required(names) => {
                details = self.shown()?;
                details.push("missingProperties", texts(&missing_names(document, names)?));
            }
            Keyword::Dependencies(dependencies) => {
                details.push("failingDependencies", failing_dependencies(dependencies, document)?);
            }
            _ => {
                details = self.shown()?;
                details.push("reason", "specified number of properties was not satisfied");
                details.push("numberOfProperties", number(super::count_fields(document)));
            }
        }
        Ok(details)
    }

    fn of_additional_properties(
        &self,
        document: &RawDocument,
        allowed: &Additional,
    ) -> Result<Document, QueryError> {
        let mut names = Vec::new();
        for field in self.keyword.additional_properties(document) {
            let (name, value) = field?;
            match allowed {
                Additional::None => names.push(name),
                Additional::Of(schema) if !schema.is_kept(value)? => {
                    let mut details = self.named();
                    details.push("reason", "at least one additional property did not match the subschema");
                    details.push("failingProperty", name);
                    details.push("details", schema.broken(value)?);
                    return Ok(details);
                }
                Additional::Of(_) => {}
            }
        }
        let mut details = self.shown()?;
        details.push("additionalProperties", texts(&names));
        Ok(details)
    }
}

impl Keyword {
    fn is_about_items(&self) -> bool {
        matches!(
            self,
            Keyword::MinItems(_)
                | Keyword::MaxItems(_)
                | Keyword::UniqueItems
                | Keyword::Items(_)
                | Keyword::ItemsInOrder(_)
                | Keyword::AdditionalItems(..)
        )
    }
}

fn failing_dependencies(
    dependencies: &[(String, Dependency)],
    document: &RawDocument,
) -> Result<Value, QueryError> {
    let mut failing = Vec::new();
    for (name, dependency) in dependencies {
        if document.get(name)?.is_none() || dependency.is_kept(document)? {
            continue;
        }
        let mut one = Document::new();
        one.push("conditionalProperty", name.as_str());
        match dependency {
            Dependency::Properties(names) => {
                one.push("missingProperties", texts(&missing_names(document, names)?));
            }
            Dependency::Schema(schema) => {
                one.push("details", schema.broken(RawValue::Document(document))?);
            }
        }
        failing.push(Value::Document(one));
    }
    Ok(Value::Array(failing))
}

fn texts(names: &[&str]) -> Value {
    Value::Array(names.iter().map(|name| Value::from(*name)).collect())
}

fn place(at: usize) -> Value {
    number(i64::try_from(at).unwrap_or(i64::MAX))
}

fn number(count: i64) -> Value {
    i32::try_from(count).map_or(Value::Int64(count), Value::Int32)
}
