//! `$median` and `$percentile` of an array: values at given ranks of its numbers, as doubles. An input that
//! is one number counts as an array of it; another one has no numbers.

use pando_document::{RawDocument, RawValue};

use super::{
    Arity, Call, Definition, ErrorCode, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError,
};
use crate::expression::accumulator::{Accumulator, PercentileShape, Percentiles};
use crate::shell_text;

/// Arguments: input, ranks.
static MEDIAN: Definition = Definition { name: "$median", arity: Arity::Any, run: run_median };
static PERCENTILE: Definition = Definition { name: "$percentile", arity: Arity::Any, run: run_percentile };

/// The parsed form of `{input, p, method}`, which accumulators share.
pub(crate) struct PercentileArguments<'v> {
    pub(crate) input: RawValue<'v>,
    /// From 0 to 1.
    pub(crate) ranks: Vec<f64>,
}

impl<'v> PercentileArguments<'v> {
    /// Reads the argument of an operator.
    pub(crate) fn parse(
        operator: &str,
        argument: RawValue<'v>,
        scope: &ParseScope,
    ) -> Result<PercentileArguments<'v>, QueryError> {
        let has_ranks = operator == "$percentile";
        let RawValue::Document(options) = argument else {
            let fault = if has_ranks {
                ExpressionFault::PercentileNotObject
            } else {
                ExpressionFault::MedianNotObject
            };
            return Err(fault.error(format!(
                "specification must be an object; found {operator}: {}",
                shell_text::value_text(argument)
            )));
        };
        let (mut input, mut ranks, mut method) = (None, None, None);
        for option in options.iter() {
            match option? {
                ("input", value) => input = Some(value),
                ("p", value) if has_ranks => ranks = Some(value),
                ("method", value) => method = Some(value),
                (other, _) => {
                    return Err(QueryError::new(
                        ErrorCode::IdlUnknownField,
                        format!("BSON field '{operator}.{other}' is an unknown field."),
                    ));
                }
            }
        }
        let missing = |name: &str| {
            QueryError::new(
                ErrorCode::IdlFailedToParse,
                format!("BSON field '{operator}.{name}' is missing but a required field"),
            )
        };
        let input = input.ok_or_else(|| missing("input"))?;
        let ranks = match has_ranks {
            true => Some(ranks.ok_or_else(|| missing("p"))?),
            false => None,
        };
        let method = method.ok_or_else(|| missing("method"))?;
        let RawValue::String(name) = method else {
            return Err(QueryError::type_mismatch(format!(
                "BSON field '{operator}.method' is the wrong type '{}', expected type 'string'",
                method.element_type().alias()
            )));
        };
        let ranks = ranks.map_or(Ok(Vec::new()), |ranks| parse_ranks(ranks, scope))?;
        if name != "approximate" {
            return Err(QueryError::bad_value(
                "Currently only 'approximate' can be used as a percentile 'method'.",
            ));
        }
        Ok(PercentileArguments { input, ranks })
    }
}

fn parse_ranks(value: RawValue<'_>, scope: &ParseScope) -> Result<Vec<f64>, QueryError> {
    let expression = Expression::parse(value, scope)?.folded()?;
    if !expression.is_constant() {
        return Err(ExpressionFault::PercentileRanksNotConstant.error(format!(
            "The $percentile 'p' field must be an array of constant values, but found value: {}.",
            shell_text::value_text(value)
        )));
    }
    let constant = expression.evaluate(RawDocument::empty())?;
    let text = |value: RawValue<'_>| {
        format!(
            "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: {}",
            shell_text::value_text(value)
        )
    };
    let ranks = match constant.as_array() {
        Some(array) if !array.is_empty() => array,
        _ => return Err(ExpressionFault::PercentileRanksNotArray.error(text(constant.raw_or_null()))),
    };
    let mut parsed = Vec::new();
    for rank in ranks.iter() {
        let rank = rank?;
        let Some(number) = pando_document::Number::from_value(rank) else {
            return Err(ExpressionFault::PercentileRankNotNumber.error(text(rank)));
        };
        let number = number.to_f64();
        if !(0.0..=1.0).contains(&number) {
            return Err(ExpressionFault::PercentileRankOutOfRange.error(text(rank)));
        }
        parsed.push(number);
    }
    Ok(parsed)
}

pub(super) fn parse_median(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    parse("$median", &MEDIAN, argument, scope)
}

pub(super) fn parse_percentile(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    parse("$percentile", &PERCENTILE, argument, scope)
}

fn parse(
    name: &str,
    definition: &'static Definition,
    argument: RawValue<'_>,
    scope: &ParseScope,
) -> Result<Expression, QueryError> {
    let arguments = PercentileArguments::parse(name, argument, scope)?;
    let input = Expression::parse(arguments.input, scope)?;
    let ranks = super::array_of(|writer| {
        arguments.ranks.iter().for_each(|rank| writer.push(RawValue::Double(*rank)));
        Ok(())
    })?;
    let ranks = Expression::constant(ranks.raw_or_null());
    Ok(Expression::from_call(Call::named(definition, vec![Some(input), Some(ranks)])))
}

fn run_median<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run(call, frame, PercentileShape::Median)
}

fn run_percentile<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run(call, frame, PercentileShape::Array)
}

fn run<'a>(
    call: &'a Call,
    frame: &mut Frame<'a>,
    shape: PercentileShape,
) -> Result<Evaluated<'a>, QueryError> {
    let (input, ranks) = (call.argument(0, frame)?, call.argument(1, frame)?);
    let mut wanted = Vec::new();
    for rank in ranks.as_array().into_iter().flat_map(|ranks| ranks.iter()) {
        wanted.extend(pando_document::Number::from_value(rank?).map(|rank| rank.to_f64()));
    }
    let mut state = Percentiles::new(&wanted.into(), shape);
    match input.as_array() {
        Some(array) => array.iter().try_for_each(|element| state.add(&Evaluated::Raw(element?)))?,
        None => state.add(&input)?,
    }
    state.finish()
}
