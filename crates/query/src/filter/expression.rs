//! `$expr`: an expression over the whole document, taken as true or false.

use std::sync::Arc;

use pando_document::{RawDocument, RawValue};

use super::Node;
use crate::error::{ErrorCode, QueryError};
use crate::expression::{Conditions, Expression, ParseScope};

/// Parses `$expr`.
pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Node, QueryError> {
    let refusal = match scope.conditions() {
        Conditions::Any => None,
        Conditions::OfUpsert => Some("$expr is not allowed in the query predicate for an upsert"),
        Conditions::BesidePositional => Some("$expr is not allowed in this context"),
    };
    if let Some(refusal) = refusal {
        return Err(QueryError::new(ErrorCode::QueryFeatureNotAllowed, refusal));
    }
    let expression = Expression::parse(argument, scope)?
        .folded()
        .map_err(|error| error.prefixed("Failed to optimize expression :: caused by :: "))?;
    Ok(Node::Expression(Arc::new(expression)))
}

/// Whether an expression comes to a true value for a document.
pub(super) fn holds(expression: &Expression, document: &RawDocument) -> Result<bool, QueryError> {
    Ok(expression.evaluate(document)?.to_bool())
}
