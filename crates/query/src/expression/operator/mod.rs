//! The operators of expressions, a file for each or for a close family, and the table that finds them by name.

mod add;
mod interval;

use pando_document::RawValue;

use super::Expression;
use super::call::{Call, Definition};
use super::scope::ParseScope;
use crate::error::{QueryError, QueryErrorKind};

pub(crate) use self::interval::interval_of;

/// How an operator's argument is read.
enum Syntax {
    /// A list of expressions, or one alone.
    Listed(&'static Definition),
    /// By a function of its own.
    Special(fn(RawValue<'_>, &ParseScope) -> Result<Expression, QueryError>),
}

/// Parses `{name: argument}`.
pub(super) fn parse(
    name: &str,
    argument: RawValue<'_>,
    scope: &ParseScope,
) -> Result<Expression, QueryError> {
    match find(name) {
        Some(Syntax::Listed(definition)) => {
            Ok(Expression::from_call(Call::listed(definition, argument, scope)?))
        }
        Some(Syntax::Special(parse)) => parse(argument, scope),
        None => Err(QueryError::new(
            QueryErrorKind::InvalidPipelineOperator,
            format!("Unrecognized expression '{name}'"),
        )),
    }
}

/// Whether there is an expression of this name.
pub(crate) fn is_known(name: &str) -> bool {
    find(name).is_some()
}

fn find(name: &str) -> Option<Syntax> {
    Some(match name {
        "$literal" | "$const" => Syntax::Special(|argument, _| Ok(Expression::constant(argument))),
        "$add" => Syntax::Listed(&add::ADD),
        _ => return None,
    })
}
