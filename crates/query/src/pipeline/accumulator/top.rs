//! The arguments of `$top`, `$topN`, `$bottom` and `$bottomN`: `{n, output, sortBy}`.

use std::sync::Arc;

use pando_document::RawValue;

use super::{AccumulatorCall, Kind};
use crate::error::QueryError;
use crate::expression::accumulator::{End, Shape};
use crate::expression::{Expression, ExpressionFault, ParseScope};
use crate::pipeline::wanted_metadata::check_order;
use crate::shell_text;
use crate::sort::SortPattern;

/// Parses `{$name: argument}`.
pub(super) fn parse(
    name: &str,
    argument: RawValue<'_>,
    scope: &ParseScope,
) -> Result<AccumulatorCall, QueryError> {
    let end = if name.starts_with("$top") { End::Top } else { End::Bottom };
    let shape = if name.ends_with('N') { Shape::Array } else { Shape::Value };
    let RawValue::Document(options) = argument else {
        return Err(ExpressionFault::TopNotObject.error(format!(
            "specification must be an object; found {name}: {}",
            shell_text::value_text(argument)
        )));
    };
    let (mut n, mut output, mut order) = (None, None, None);
    for option in options.iter() {
        match option? {
            ("n", value) if shape == Shape::Array => n = Some(Expression::of_pipeline(value, scope)?),
            ("output", value) => output = Some(Expression::of_pipeline(value, scope)?),
            ("sortBy", value) => order = Some(parse_order(value, scope)?),
            (other, _) => {
                return Err(ExpressionFault::TopUnknownArgument
                    .error(format!("Unknown argument to {name} '{other}'")));
            }
        }
    }
    if shape == Shape::Array && n.is_none() {
        return Err(ExpressionFault::TopWithoutN.error("Missing value for 'n'"));
    }
    let output =
        output.ok_or_else(|| ExpressionFault::TopWithoutOutput.error("Missing value for 'output'"))?;
    let order = order.ok_or_else(|| ExpressionFault::TopWithoutSortBy.error("Missing value for 'sortBy'"))?;
    Ok(AccumulatorCall { n, order, ..AccumulatorCall::new(Kind::Top(end, shape), output) })
}

fn parse_order(value: RawValue<'_>, scope: &ParseScope) -> Result<Option<Arc<SortPattern>>, QueryError> {
    let RawValue::Document(pattern) = value else {
        return Err(ExpressionFault::ExpectedObject.error("invalid parameter: expected an object (sortBy)"));
    };
    if pattern.is_empty() {
        return Ok(None);
    }
    let pattern = SortPattern::parse(pattern)?.collated_by(scope.text_order());
    check_order(&pattern, scope)?;
    Ok(Some(Arc::new(pattern)))
}
