//! `$replaceOne` and `$replaceAll`: a string with the first or every occurrence of another replaced.

use pando_document::RawValue;

use super::named::Names;
use super::text::check_text_bytes;
use super::{
    Arity, Call, Definition, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError,
    check_computed_bytes,
};

static REPLACE_ONE: Definition = Definition { name: "$replaceOne", arity: Arity::Any, run: run_one };
static REPLACE_ALL: Definition = Definition { name: "$replaceAll", arity: Arity::Any, run: run_all };

const fn names(operator: &'static str) -> Names {
    Names {
        operator,
        names: &["input", "find", "replacement"],
        required: const {
            &[
                ("input", ExpressionFault::ReplaceWithoutInput.code()),
                ("find", ExpressionFault::ReplaceWithoutFind.code()),
                ("replacement", ExpressionFault::ReplaceWithoutReplacement.code()),
            ]
        },
        not_object: ExpressionFault::ReplaceNotObject.code(),
        unknown: ExpressionFault::ReplaceUnknownArgument.code(),
    }
}

pub(super) fn parse_one(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    names("$replaceOne").call(&REPLACE_ONE, argument, scope)
}

pub(super) fn parse_all(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    names("$replaceAll").call(&REPLACE_ALL, argument, scope)
}

fn run_one<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run(call, frame, |text, find, replacement| text.replacen(find, replacement, 1))
}

fn run_all<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run(call, frame, |text, find, replacement| text.replace(find, replacement))
}

fn run<'a>(
    call: &'a Call,
    frame: &mut Frame<'a>,
    replace: fn(&str, &str, &str) -> String,
) -> Result<Evaluated<'a>, QueryError> {
    let (input, find, replacement) =
        (call.argument(0, frame)?, call.argument(1, frame)?, call.argument(2, frame)?);
    let parts = [
        ("input", &input, ExpressionFault::ReplaceInputNotString),
        ("find", &find, ExpressionFault::ReplaceFindNotString),
        ("replacement", &replacement, ExpressionFault::ReplaceReplacementNotString),
    ];
    for (name, value, fault) in parts {
        if !value.is_nullish() && value.as_str().is_none() {
            return Err(fault.error(format!(
                "{} requires that '{name}' be a string, found: {}",
                call.name(),
                value.shell_text()
            )));
        }
    }
    match (input.as_str(), find.as_str(), replacement.as_str()) {
        (Some(input), Some(find), Some(replacement)) => {
            // At most one replacement for each place in the input.
            let occurrences = if replacement.is_empty() { 0 } else { input.matches(find).count() };
            check_computed_bytes(input.len().saturating_add(occurrences.saturating_mul(replacement.len())))?;
            let replaced = replace(input, find, replacement);
            check_text_bytes(replaced.len())?;
            Ok(Evaluated::Text(replaced))
        }
        _ => Ok(Evaluated::NULL),
    }
}
