//! `$expr`: an expression over the whole document, taken as true or false.

use std::sync::Arc;

use pando_document::{DocumentWriter, RawDocument, RawDocumentBuf, RawValue};

use super::{Comparison, Node, Operator};
use crate::error::{ErrorCode, QueryError};
use crate::expression::{ComparedField, Comparing, Conditions, Expression, ParseScope};
use crate::literal::Literal;
use crate::path::Path;

/// A comparison of a field with a value that holds wherever an expression is true. Unlike that of a filter it
/// is one of the whole value, an array included, and in the order of all types.
#[derive(Debug)]
pub struct ImpliedComparison {
    /// The field.
    pub path: Path,
    /// The comparison. Its value is no array and not `undefined`; null only where it is an equality.
    pub comparison: Comparison,
}

/// An expression, how it was written, and what it implies.
#[derive(Debug)]
pub struct ExpressionTest {
    expression: Expression,
    implied: Vec<ImpliedComparison>,
    /// `{$expr: …}`.
    written: RawDocumentBuf,
}

impl ExpressionTest {
    /// The test of an expression that is written so.
    pub(super) fn node(written: RawValue<'_>, expression: Expression) -> Result<Node, QueryError> {
        let mut bytes = Vec::new();
        let mut writer = DocumentWriter::begin(&mut bytes);
        writer.append("$expr", written);
        writer.finish();
        let written = RawDocumentBuf::from_vec(bytes)?;
        let implied = implied_by(&expression);
        Ok(Node::Expression(Arc::new(ExpressionTest { expression, implied, written })))
    }

    /// The expression.
    pub fn expression(&self) -> &Expression {
        &self.expression
    }

    /// The comparisons that hold wherever the expression is true, so that indexes can narrow the search.
    pub fn implied(&self) -> &[ImpliedComparison] {
        &self.implied
    }

    /// `{$expr: …}`, as it was written.
    pub fn written(&self) -> &RawDocument {
        &self.written
    }

    /// Whether the expression comes to a true value for a document.
    pub(super) fn holds(&self, document: &RawDocument) -> Result<bool, QueryError> {
        Ok(self.expression.evaluate(document)?.to_bool())
    }
}

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
    ExpressionTest::node(argument, expression)
}

/// The comparisons that an expression implies.
fn implied_by(expression: &Expression) -> Vec<ImpliedComparison> {
    let mut implied = Vec::new();
    expression.for_each_compared(&mut |ComparedField { path, operator, value, order }| {
        let operator = match operator {
            Comparing::Equal => Operator::Equal,
            Comparing::Greater => Operator::Greater,
            Comparing::GreaterOrEqual => Operator::GreaterOrEqual,
            Comparing::Less => Operator::Less,
            Comparing::LessOrEqual => Operator::LessOrEqual,
        };
        let is_plain = match value {
            RawValue::Array(_) | RawValue::Undefined => false,
            RawValue::Null => operator == Operator::Equal,
            _ => true,
        };
        if is_plain {
            let comparison = Comparison { operator, literal: Literal::new(value), order: order.clone() };
            implied.push(ImpliedComparison { path: Path::new(&path.text()), comparison });
        }
    });
    implied
}
