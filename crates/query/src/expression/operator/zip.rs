//! `$zip`: arrays side by side: the i-th element of the result is the array of all i-th elements.

use pando_document::RawValue;

use super::{
    Arity, Call, Definition, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError, array_of,
    check_computed_bytes,
};
use crate::expression::parse_each;

/// Arguments: the defaults (as many as inputs, or left out), then the inputs.
static ZIP_SHORTEST: Definition = Definition { name: "$zip", arity: Arity::Any, run: run_shortest };
static ZIP_LONGEST: Definition = Definition { name: "$zip", arity: Arity::Any, run: run_longest };

#[derive(Default)]
struct Options {
    inputs: Vec<Expression>,
    defaults: Option<Vec<Expression>>,
    use_longest: bool,
}

pub(super) fn parse(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    let Options { inputs, defaults, use_longest } = parse_options(argument, scope)?;
    if inputs.is_empty() {
        return Err(ExpressionFault::ZipWithoutInputs.error("$zip requires at least one input array"));
    }
    let count = inputs.len();
    let mut arguments: Vec<Option<Expression>> = match defaults {
        Some(_) if !use_longest => {
            return Err(ExpressionFault::ZipDefaultsWithoutLongest
                .error("cannot specify defaults unless useLongestLength is true"));
        }
        Some(defaults) if defaults.len() != count => {
            return Err(
                ExpressionFault::ZipDefaultsCount.error("defaults and inputs must have the same length")
            );
        }
        Some(defaults) => defaults.into_iter().map(Some).collect(),
        None => (0..count).map(|_| None).collect(),
    };
    arguments.extend(inputs.into_iter().map(Some));
    let definition = if use_longest { &ZIP_LONGEST } else { &ZIP_SHORTEST };
    Ok(Expression::from_call(Call::named(definition, arguments)))
}

fn parse_options(argument: RawValue<'_>, scope: &ParseScope) -> Result<Options, QueryError> {
    let RawValue::Document(given) = argument else {
        return Err(ExpressionFault::ZipNotObject.error(format!(
            "$zip only supports an object as an argument, found {}",
            argument.element_type().alias()
        )));
    };
    let mut options = Options::default();
    for element in given.iter() {
        match element? {
            ("inputs", RawValue::Array(inputs)) => options.inputs = parse_each(inputs, scope)?,
            ("inputs", other) => {
                return Err(ExpressionFault::ZipInputsNotArray.error(format!(
                    "inputs must be an array of expressions, found {}",
                    other.element_type().alias()
                )));
            }
            ("defaults", RawValue::Array(defaults)) => options.defaults = Some(parse_each(defaults, scope)?),
            ("defaults", other) => {
                return Err(ExpressionFault::ZipDefaultsNotArray.error(format!(
                    "defaults must be an array of expressions, found {}",
                    other.element_type().alias()
                )));
            }
            ("useLongestLength", RawValue::Boolean(flag)) => options.use_longest = flag,
            ("useLongestLength", other) => {
                return Err(ExpressionFault::ZipLongestNotBoolean.error(format!(
                    "useLongestLength must be a bool, found {}",
                    other.element_type().alias()
                )));
            }
            (name, _) => {
                return Err(ExpressionFault::ZipUnknownArgument
                    .error(format!("$zip found an unknown argument: {name}")));
            }
        }
    }
    Ok(options)
}

fn run_shortest<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run(call, frame, |lengths| lengths.iter().copied().min().unwrap_or(0))
}

fn run_longest<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run(call, frame, |lengths| lengths.iter().copied().max().unwrap_or(0))
}

fn run<'a>(
    call: &'a Call,
    frame: &mut Frame<'a>,
    choose: fn(&[usize]) -> usize,
) -> Result<Evaluated<'a>, QueryError> {
    let count = call.len() / 2;
    let mut arrays = Vec::new();
    let mut bytes = 0;
    for index in count..call.len() {
        let value = call.argument(index, frame)?;
        if value.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let type_name = value.type_name();
        bytes += value.as_array().map_or(0, |array| array.as_bytes().len());
        check_computed_bytes(bytes)?;
        match value.elements()? {
            Some(elements) => {
                frame.hold(size_of_val(elements.as_slice()))?;
                arrays.push(elements);
            }
            None => {
                return Err(ExpressionFault::ZipInputNotArray
                    .error(format!("$zip found a non-array expression in input: {type_name}")));
            }
        }
    }
    let mut defaults = Vec::with_capacity(count);
    for index in 0..count {
        defaults.push(call.argument(index, frame)?);
    }
    let lengths: Vec<usize> = arrays.iter().map(Vec::len).collect();
    array_of(|writer| {
        for row in 0..choose(&lengths) {
            let mut together = writer.array();
            for (array, default) in arrays.iter().zip(&defaults) {
                together.push(array.get(row).unwrap_or(default).raw_or_null());
            }
            together.finish();
            check_computed_bytes(writer.bytes_so_far())?;
        }
        Ok(())
    })
}
