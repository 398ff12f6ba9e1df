//! `$text`: a search for words. It speaks of the whole document, and a text index answers it.
//!
//! A parsed filter knows the arguments alone. The planner puts the search in the index in their place
//! ([`TextTest::in_index`]), and then a document can be asked.

use std::sync::Arc;

use pando_document::{Document, RawDocument, RawValue};

use super::Node;
use crate::text_index::{Language, SearchArguments, Sensitivity, TextSearch, check_built};
use crate::{ErrorCode, QueryError};

/// The test of a document.
#[derive(Clone, Debug)]
pub struct TextTest {
    arguments: SearchArguments,
    search: Option<Arc<TextSearch>>,
}

impl TextTest {
    /// The arguments of the search.
    pub(crate) fn arguments(&self) -> &SearchArguments {
        &self.arguments
    }

    /// The same test, answered by a search in an index.
    pub(crate) fn in_index(&self, search: &Arc<TextSearch>) -> TextTest {
        TextTest { arguments: self.arguments.clone(), search: Some(Arc::clone(search)) }
    }

    /// Whether a document passes.
    ///
    /// # Errors
    /// [`IndexNotFound`](ErrorCode::IndexNotFound): no index has been found for the test.
    pub(crate) fn matches(&self, document: &RawDocument) -> Result<bool, QueryError> {
        match &self.search {
            Some(search) => search.matches(document),
            None => Err(index_required()),
        }
    }

    /// The test as `explain` shows it.
    pub(super) fn shown(&self) -> Document {
        let arguments = &self.arguments;
        let mut inner = Document::new();
        inner.push("$search", arguments.search.as_str());
        let language = arguments.written_language.as_deref().unwrap_or("english");
        inner.push("$language", language);
        inner.push("$caseSensitive", arguments.sensitivity.case);
        inner.push("$diacriticSensitive", arguments.sensitivity.diacritics);
        let mut shown = Document::new();
        shown.push("$text", inner);
        shown
    }
}

/// The error of a search without an index.
pub(crate) fn index_required() -> QueryError {
    QueryError::new(ErrorCode::IndexNotFound, "text index required for $text query")
}

/// Parses the argument.
pub(super) fn parse(argument: RawValue<'_>) -> Result<Node, QueryError> {
    let RawValue::Document(given) = argument else {
        return Err(QueryError::bad_value("$text expects an object"));
    };
    let search = match given.get("$search")? {
        Some(RawValue::String(search)) => search.to_owned(),
        None => {
            return Err(QueryError::new(ErrorCode::NoSuchKey, "Missing expected field \"$search\""));
        }
        Some(other) => return Err(wrong_type("$search", "string", other)),
    };
    check_built().map_err(|reason| QueryError::new(ErrorCode::CommandNotSupported, reason))?;
    let (mut language, mut written_language) = (None, None);
    let mut sensitivity = Sensitivity::default();
    for field in given {
        match field? {
            ("$search", _) => {}
            ("$language", RawValue::String(name)) => {
                language = Some(Language::of(name).ok_or_else(|| {
                    QueryError::bad_value(format!(
                        "unsupported language: \"{name}\" for text index version 3"
                    ))
                })?);
                written_language = Some(name.to_owned());
            }
            ("$language", other) => return Err(wrong_type("$language", "string", other)),
            ("$caseSensitive", RawValue::Boolean(value)) => sensitivity.case = value,
            ("$diacriticSensitive", RawValue::Boolean(value)) => sensitivity.diacritics = value,
            (name @ ("$caseSensitive" | "$diacriticSensitive"), other) => {
                return Err(wrong_type(name, "bool", other));
            }
            _ => return Err(QueryError::bad_value("extra fields in $text")),
        }
    }
    let arguments = SearchArguments { search, language, written_language, sensitivity };
    Ok(Node::Text(Arc::new(TextTest { arguments, search: None })))
}

fn wrong_type(name: &str, wanted: &str, found: RawValue<'_>) -> QueryError {
    let found = found.element_type().alias();
    QueryError::type_mismatch(format!("\"{name}\" had the wrong type. Expected {wanted}, found {found}"))
}

/// Refuses a filter with several searches, or with one that is negated.
pub(super) fn check(root: &Node) -> Result<(), QueryError> {
    match searches(root)? {
        0 | 1 => Ok(()),
        _ => Err(QueryError::bad_value("Too many text expressions")),
    }
}

fn searches(node: &Node) -> Result<usize, QueryError> {
    match node {
        Node::Text(_) => Ok(1),
        Node::And(nodes) | Node::Or(nodes) => nodes.iter().map(searches).sum(),
        Node::Nor(nodes) => match nodes.iter().map(searches).sum::<Result<usize, _>>()? {
            0 => Ok(0),
            _ => Err(QueryError::bad_value("text expression not allowed in nor")),
        },
        _ => Ok(0),
    }
}

/// Whether a filter that is not parsed yet has a search.
pub(crate) fn is_in(filter: &RawDocument) -> bool {
    // A filter that nests deeper is refused by the parser.
    is_in_at(filter, 0)
}

fn is_in_at(filter: &RawDocument, depth: usize) -> bool {
    const DEPTH_MAX: usize = 100;
    filter.iter().filter_map(Result::ok).any(|(name, value)| match (name, value) {
        ("$text", _) => true,
        ("$and" | "$or" | "$nor", RawValue::Array(parts)) if depth < DEPTH_MAX => {
            let mut parts = parts.iter().filter_map(Result::ok);
            parts.any(|part| part.as_document().is_some_and(|part| is_in_at(part, depth + 1)))
        }
        _ => false,
    })
}
