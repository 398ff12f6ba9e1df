//! `$bucket`: documents are counted, or accumulated, by the interval into which an expression's value falls.
//! It is a `$group` by the lower end of the interval, and a `$sort` by that.

use std::cmp::Ordering;
use std::sync::Arc;

use pando_collation::TextOrder;
use pando_document::{RawArray, RawDocument, RawValue, canonical_type, doc};

use super::{Definition, group, sort};
use crate::error::QueryError;
use crate::expression::{Expression, ParseScope, interval_of};
use crate::literal::Literal;
use crate::pipeline::PipelineFault;
use crate::pipeline::accumulator::AccumulatorCall;
use crate::shell_text;
use crate::sort::SortPattern;

#[derive(Default)]
struct Options {
    group_by: Option<Expression>,
    boundaries: Option<Vec<Literal>>,
    default: Option<Literal>,
    output: Option<Vec<(String, AccumulatorCall)>>,
}

pub(super) fn parse(
    argument: RawValue<'_>,
    scope: &ParseScope,
) -> Result<Vec<Arc<dyn Definition>>, QueryError> {
    let RawValue::Document(specification) = argument else {
        return Err(PipelineFault::BucketNotObject.error(format!(
            "Argument to $bucket stage must be an object, but found type: {}.",
            argument.element_type().alias()
        )));
    };
    let options = parse_options(specification, scope)?;
    let (Some(group_by), Some(boundaries)) = (options.group_by, options.boundaries) else {
        return Err(PipelineFault::BucketIncomplete
            .error("$bucket requires 'groupBy' and 'boundaries' to be specified."));
    };
    check_default(options.default.as_ref(), &boundaries, scope.text_order())?;
    let fields = options.output.unwrap_or_else(|| vec![("count".to_owned(), AccumulatorCall::counting())]);
    let group =
        group::by(interval_of(group_by, boundaries, options.default, scope.text_order()), fields, scope);
    let pattern = SortPattern::parse(&doc! { "_id": 1 }.to_raw())?.collated_by(scope.text_order());
    Ok(vec![Arc::new(group), Arc::new(sort::Sort::by(pattern))])
}

fn parse_options(specification: &RawDocument, scope: &ParseScope) -> Result<Options, QueryError> {
    let mut options = Options::default();
    for option in specification.iter() {
        match option? {
            ("groupBy", value) => {
                let is_expression = match value {
                    RawValue::String(text) => text.starts_with('$'),
                    RawValue::Document(_) => true,
                    _ => false,
                };
                if !is_expression {
                    return Err(PipelineFault::BucketGroupByNotExpression.error(format!(
                        "The $bucket 'groupBy' field must be defined as a $-prefixed path or an expression, but found: \
                         {}.",
                        shell_text::value_text(value)
                    )));
                }
                options.group_by = Some(Expression::of_pipeline(value, scope)?);
            }
            ("boundaries", RawValue::Array(boundaries)) => {
                options.boundaries = Some(parse_boundaries(boundaries, scope)?);
            }
            ("boundaries", other) => {
                return Err(PipelineFault::BucketBoundariesNotArray.error(format!(
                    "The $bucket 'boundaries' field must be an array, but found type: {}.",
                    other.element_type().alias()
                )));
            }
            ("default", value) => options.default = Some(constant(value, scope)?),
            ("output", RawValue::Document(output)) => options.output = Some(parse_output(output, scope)?),
            ("output", other) => {
                return Err(PipelineFault::BucketOutputNotObject.error(format!(
                    "The $bucket 'output' field must be an object, but found type: {}.",
                    other.element_type().alias()
                )));
            }
            (name, _) => {
                return Err(PipelineFault::BucketUnknownOption
                    .error(format!("Unrecognized option to $bucket: {name}.")));
            }
        }
    }
    Ok(options)
}

fn parse_output(
    output: &RawDocument,
    scope: &ParseScope,
) -> Result<Vec<(String, AccumulatorCall)>, QueryError> {
    let mut fields = Vec::new();
    for field in output.iter() {
        let (name, value) = field?;
        fields.push((name.to_owned(), group::parse_field(name, value, scope)?));
    }
    Ok(fields)
}

fn constant(value: RawValue<'_>, scope: &ParseScope) -> Result<Literal, QueryError> {
    let expression = Expression::of_pipeline(value, scope)?;
    let mut fields = Vec::new();
    expression.collect_fields(&mut fields);
    if !fields.is_empty() {
        return Err(PipelineFault::BucketBoundaryNotConstant.error(format!(
            "The $bucket 'boundaries' field must be an array of constant values, but found value: {}.",
            shell_text::value_text(value)
        )));
    }
    Ok(Literal::new(expression.evaluate(RawDocument::empty())?.raw_or_null()))
}

fn parse_boundaries(boundaries: &RawArray, scope: &ParseScope) -> Result<Vec<Literal>, QueryError> {
    let mut parsed = Vec::new();
    for boundary in boundaries.iter() {
        parsed.push(constant(boundary?, scope)?);
    }
    if parsed.len() < 2 {
        return Err(PipelineFault::BucketTooFewBoundaries.error(format!(
            "The $bucket 'boundaries' field must have at least 2 values, but found {} value(s).",
            parsed.len()
        )));
    }
    for (index, pair) in parsed.windows(2).enumerate() {
        let (lower, upper) = (pair[0].raw(), pair[1].raw());
        if canonical_type(lower.element_type()) != canonical_type(upper.element_type()) {
            return Err(PipelineFault::BucketMixedBoundaries.error(format!(
                "All values in the the 'boundaries' option to $bucket must have the same type. Found conflicting types {} \
                 and {}.",
                lower.element_type().alias(),
                upper.element_type().alias()
            )));
        }
        if scope.text_order().compare(lower, upper) != Ordering::Less {
            return Err(PipelineFault::BucketUnsortedBoundaries.error(format!(
                "The 'boundaries' option to $bucket must be sorted, but elements {index} and {} are not in ascending order \
                 ({} is not less than {}).",
                index + 1,
                shell_text::value_text(lower),
                shell_text::value_text(upper)
            )));
        }
    }
    Ok(parsed)
}

fn check_default(
    default: Option<&Literal>,
    boundaries: &[Literal],
    order: &TextOrder,
) -> Result<(), QueryError> {
    let (Some(default), [lowest, .., highest]) = (default, boundaries) else { return Ok(()) };
    let is_outside = order.compare(default.raw(), lowest.raw()) == Ordering::Less
        || order.compare(default.raw(), highest.raw()) != Ordering::Less;
    if is_outside {
        return Ok(());
    }
    Err(PipelineFault::BucketDefaultWithin.error(
        "The $bucket 'default' field must be less than the lowest boundary or greater than or equal to the highest boundary.",
    ))
}
