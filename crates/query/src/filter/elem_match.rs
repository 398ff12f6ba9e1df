//! `$elemMatch`: one element of an array meets everything at once.
//!
//! Two forms, told apart by the first field: operators (`{ $gt: 1, $lt: 5 }`) are asked of each element
//! itself, a filter (`{ a: 1, b: 2 }`) of each element that is a document, or an array taken as one.

use pando_document::RawValue;

use super::parse::{self, Context};
use super::subject::{Subject, TestCount};
use super::{Node, Test};
use crate::QueryError;
use crate::path::Path;

/// The argument of `$elemMatch`.
#[derive(Clone, Debug)]
pub enum ElementTest {
    /// Operators on the element. The field tests carry the path of the array.
    Value(Box<Node>),
    /// A filter on elements that are documents.
    Document(Box<Node>),
}

/// Parses `$elemMatch`.
pub(super) fn parse(path: &Path, argument: RawValue<'_>, context: Context<'_>) -> Result<Node, QueryError> {
    let RawValue::Document(document) = argument else {
        return Err(QueryError::bad_value("$elemMatch needs an Object"));
    };
    let context = context.into_element()?;
    let by_value = match document.iter().next() {
        Some(first) => is_value_operator(first?.0),
        None => false,
    };
    let test = if by_value {
        ElementTest::Value(Box::new(Node::all_of(parse::operators(path, document, context)?)))
    } else {
        ElementTest::Document(Box::new(parse::tree(document, context)?))
    };
    Ok(Node::field(path, Test::Element(test)))
}

/// Whether a first field says that the form is that of operators. The logical ones begin a
/// filter; so do references.
fn is_value_operator(name: &str) -> bool {
    const FILTER_OPERATORS: [&str; 11] = [
        "$and",
        "$or",
        "$nor",
        "$where",
        "$expr",
        "$text",
        "$jsonSchema",
        "$sampleRate",
        "$ref",
        "$id",
        "$db",
    ];
    name.starts_with('$') && !FILTER_OPERATORS.contains(&name)
}

impl ElementTest {
    /// Whether a leaf is an array with such an element; `found` receives its index.
    pub(crate) fn holds(
        &self,
        value: Option<RawValue<'_>>,
        found: &mut Option<usize>,
    ) -> Result<bool, QueryError> {
        let Some(RawValue::Array(array)) = value else { return Ok(false) };
        let (ElementTest::Value(node) | ElementTest::Document(node)) = self;
        let tests = TestCount::of(node);
        for (place, element) in array.iter().enumerate() {
            let element = element?;
            let holds = match (self, element) {
                (ElementTest::Value(node), element) => node.matches_value(element)?,
                (ElementTest::Document(node), RawValue::Document(document)) => {
                    node.matches(&Subject::new(document, tests), &mut None)?
                }
                (ElementTest::Document(node), RawValue::Array(inner)) => {
                    node.matches(&Subject::new(inner.as_document(), tests), &mut None)?
                }
                (ElementTest::Document(_), _) => false,
            };
            if holds {
                *found = Some(place);
                return Ok(true);
            }
        }
        Ok(false)
    }
}
