//! `$sortByCount`: how often each value of an expression occurs, most often first. It is
//! a `$group` and a `$sort`.

use std::sync::Arc;

use pando_document::{RawDocument, RawValue, doc};

use super::group::{self, Group};
use super::{Definition, sort};
use crate::error::QueryError;
use crate::expression::ParseScope;
use crate::pipeline::PipelineFault;
use crate::sort::SortPattern;

pub(super) fn parse(
    argument: RawValue<'_>,
    scope: &ParseScope,
) -> Result<Vec<Arc<dyn Definition>>, QueryError> {
    const WANTED: &str =
        "the sortByCount field must be defined as a $-prefixed path or an expression inside an object";
    match argument {
        RawValue::String(text) if text.starts_with('$') => {}
        RawValue::String(_) => return Err(PipelineFault::SortByCountNotPath.error(WANTED)),
        RawValue::Document(expression) if is_operator(expression)? => {}
        RawValue::Document(_) => return Err(PipelineFault::SortByCountNotExpression.error(WANTED)),
        _ => {
            return Err(PipelineFault::SortByCountWrongType
                .error("the sortByCount field must be specified as a string or as an object"));
        }
    }
    let group: Group = group::counting(argument, scope)?;
    let pattern = SortPattern::parse(&doc! { "count": -1 }.to_raw())?;
    Ok(vec![Arc::new(group), Arc::new(sort::Sort::by(pattern))])
}

fn is_operator(expression: &RawDocument) -> Result<bool, QueryError> {
    match expression.iter().next() {
        Some(first) => Ok(first?.0.starts_with('$')),
        None => Ok(false),
    }
}
