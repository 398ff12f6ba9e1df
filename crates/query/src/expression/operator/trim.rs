//! `$trim`, `$ltrim`, `$rtrim`: a string without certain characters at its ends; without `chars`, white space
//! and NUL.

use pando_document::RawValue;

use super::named::Names;
use super::{Arity, Call, Definition, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError};

static TRIM: Definition = Definition { name: "$trim", arity: Arity::Any, run: run_both };
static LTRIM: Definition = Definition { name: "$ltrim", arity: Arity::Any, run: run_left };
static RTRIM: Definition = Definition { name: "$rtrim", arity: Arity::Any, run: run_right };

/// The characters that go without `chars`, as MongoDB lists them, in ascending order.
const WHITE_SPACE: [char; 20] = [
    '\0', '\t', '\n', '\u{b}', '\u{c}', '\r', ' ', '\u{a0}', '\u{1680}', '\u{2000}', '\u{2001}', '\u{2002}',
    '\u{2003}', '\u{2004}', '\u{2005}', '\u{2006}', '\u{2007}', '\u{2008}', '\u{2009}', '\u{200a}',
];

const fn names(operator: &'static str) -> Names {
    Names {
        operator,
        names: &["input", "chars"],
        required: const { &[("input", ExpressionFault::TrimWithoutInput.code())] },
        not_object: ExpressionFault::TrimNotObject.code(),
        unknown: ExpressionFault::TrimUnknownArgument.code(),
    }
}

pub(super) fn parse_both(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    parse(&TRIM, argument, scope)
}

pub(super) fn parse_left(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    parse(&LTRIM, argument, scope)
}

pub(super) fn parse_right(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    parse(&RTRIM, argument, scope)
}

fn parse(
    definition: &'static Definition,
    argument: RawValue<'_>,
    scope: &ParseScope,
) -> Result<Expression, QueryError> {
    names(definition.name).call(definition, argument, scope)
}

fn run_both<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run(call, frame, |text, set| text.trim_matches(|character| has(set, character)))
}

fn run_left<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run(call, frame, |text, set| text.trim_start_matches(|character| has(set, character)))
}

fn run_right<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    run(call, frame, |text, set| text.trim_end_matches(|character| has(set, character)))
}

/// Whether an ascending list has a character.
fn has(set: &[char], character: char) -> bool {
    set.binary_search(&character).is_ok()
}

fn run<'a>(
    call: &'a Call,
    frame: &mut Frame<'a>,
    cut: for<'t, 's> fn(&'t str, &'s [char]) -> &'t str,
) -> Result<Evaluated<'a>, QueryError> {
    let (input, characters) = (call.argument(0, frame)?, call.argument(1, frame)?);
    if input.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let Some(text) = input.as_str() else {
        return Err(refusal(call, "its input", &input, ExpressionFault::TrimInputNotString));
    };
    if !call.has(1) {
        return Ok(Evaluated::Text(cut(text, &WHITE_SPACE).to_owned()));
    }
    if characters.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    match characters.as_str() {
        Some(set) => {
            let mut set: Vec<char> = set.chars().collect();
            set.sort_unstable();
            set.dedup();
            Ok(Evaluated::Text(cut(text, &set).to_owned()))
        }
        None => Err(refusal(call, "'chars'", &characters, ExpressionFault::TrimCharsNotString)),
    }
}

fn refusal(call: &Call, what: &str, value: &Evaluated<'_>, fault: ExpressionFault) -> QueryError {
    fault.error(format!(
        "{} requires {what} to be a string, got {} (of type {}) instead.",
        call.name(),
        value.shell_text(),
        value.type_name()
    ))
}
