//! The arguments of `$median` and `$percentile`: `{input, p, method}`.

use std::sync::Arc;

use pando_document::RawValue;

use super::{AccumulatorCall, Kind};
use crate::error::QueryError;
use crate::expression::accumulator::PercentileShape;
use crate::expression::{Expression, ParseScope, PercentileArguments};

/// Parses `{$name: argument}`.
pub(super) fn parse(
    name: &str,
    argument: RawValue<'_>,
    scope: &ParseScope,
) -> Result<AccumulatorCall, QueryError> {
    let arguments = PercentileArguments::parse(name, argument, scope)?;
    let shape = if name == "$median" { PercentileShape::Median } else { PercentileShape::Array };
    let input = Expression::of_pipeline(arguments.input, scope)?;
    let ranks: Arc<[f64]> = arguments.ranks.into();
    Ok(AccumulatorCall { ranks, ..AccumulatorCall::new(Kind::Percentiles(shape), input) })
}
