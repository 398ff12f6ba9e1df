//! Schemas of strangers: parsing, matching and the details of a failure never panic, and agree.

use pando_document::doc;
use pando_query::expression::ParseScope;
use pando_query::filter::{Filter, failure_details};

use crate::requests::{SchemaDocument, Stored};

/// Chance makes as good decisions as any.
pub fn examples() -> Vec<Vec<u8>> {
    crate::targets::by_chance()
}

/// The grown input.
pub type Input = (SchemaDocument, Stored);

/// See the module.
pub fn run(input: Input) {
    let (schema, document) = &input;
    let Ok(schema) = pando_document::Document::from_raw(schema) else { return };
    let text = doc! { "$jsonSchema": (pando_document::Value::Document(schema)) }.to_raw();
    let scope = ParseScope::at(0);
    let Ok(filter) = Filter::parse(&text, &scope) else { return };
    crate::check::assert_sound(&filter.to_document().to_raw());
    let Ok(matched) = filter.matches(document) else { return };
    let Ok(details) = failure_details(&text, document, &scope) else { return };
    crate::check::assert_sound(&details.to_raw());
    let broken = details.get("schemaRulesNotSatisfied").and_then(|rules| rules.as_array());
    assert_eq!(matched, broken.is_some_and(|rules| rules.is_empty()), "{details:?}");
}
