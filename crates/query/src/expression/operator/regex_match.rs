//! `$regexMatch`, `$regexFind`, `$regexFindAll`: whether, where and with which groups a
//! pattern matches a string.
//!
//! Positions count characters. `$regexFindAll` goes on behind each match, one character further after an
//! empty one.

use pando_document::{ArrayWriter, DocumentWriter, RawValue};

use super::named::Names;
use super::{
    Arity, Call, Definition, Evaluated, Expression, ExpressionFault, Frame, ParseScope, QueryError, array_of,
    check_computed_bytes, document_of,
};
use crate::regular_expression::{RegexFault, RegexMatch, RegularExpression};

/// Bytes of all matches of `$regexFindAll`, as in MongoDB.
const OUTPUT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Arguments: input, regex, options.
static REGEX_MATCH: Definition = Definition { name: "$regexMatch", arity: Arity::Any, run: run_match };
static REGEX_FIND: Definition = Definition { name: "$regexFind", arity: Arity::Any, run: run_find };
static REGEX_FIND_ALL: Definition =
    Definition { name: "$regexFindAll", arity: Arity::Any, run: run_find_all };

const fn names(operator: &'static str) -> Names {
    Names {
        operator,
        names: &["input", "regex", "options"],
        required: const {
            &[
                ("input", ExpressionFault::RegexWithoutInput.code()),
                ("regex", ExpressionFault::RegexWithoutRegex.code()),
            ]
        },
        not_object: ExpressionFault::RegexNotObject.code(),
        unknown: ExpressionFault::RegexUnknownArgument.code(),
    }
}

pub(super) fn parse_match(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    parse(&REGEX_MATCH, argument, scope)
}

pub(super) fn parse_find(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    parse(&REGEX_FIND, argument, scope)
}

pub(super) fn parse_find_all(argument: RawValue<'_>, scope: &ParseScope) -> Result<Expression, QueryError> {
    parse(&REGEX_FIND_ALL, argument, scope)
}

fn parse(
    definition: &'static Definition,
    argument: RawValue<'_>,
    scope: &ParseScope,
) -> Result<Expression, QueryError> {
    names(definition.name).call(definition, argument, scope)
}

/// Checks and compiles a constant pattern, once.
pub(in crate::expression) fn with_compiled_pattern(call: Call) -> Result<Call, QueryError> {
    let constants = (
        call.expression(1).and_then(Expression::as_constant),
        call.expression(2).map(Expression::as_constant),
    );
    let compiled = match constants {
        (Some(pattern), None) => compile(call.name(), pattern, RawValue::Null)?,
        (Some(pattern), Some(Some(options))) => compile(call.name(), pattern, options)?,
        _ => None,
    };
    Ok(call.with_pattern(compiled))
}

/// The pattern, or none where it is null.
fn compile(
    name: &str,
    pattern: RawValue<'_>,
    options: RawValue<'_>,
) -> Result<Option<RegularExpression>, QueryError> {
    let (pattern, own_options) = match pattern {
        RawValue::Null | RawValue::Undefined => return Ok(None),
        RawValue::String(pattern) => (pattern, ""),
        RawValue::Regex(regex) => (regex.pattern, regex.options),
        _ => {
            return Err(ExpressionFault::RegexNotRegex
                .error(format!("{name} needs 'regex' to be of type string or regex")));
        }
    };
    let options = match options {
        RawValue::Null | RawValue::Undefined => own_options,
        RawValue::String(_) if !own_options.is_empty() => {
            return Err(ExpressionFault::RegexOptionsTwice.error(format!(
                "{name}: found regex option(s) specified in both 'regex' and 'option' fields"
            )));
        }
        RawValue::String(options) => options,
        _ => {
            return Err(ExpressionFault::RegexOptionsNotString
                .error(format!("{name} needs 'options' to be of type string")));
        }
    };
    if pattern.contains('\0') {
        return Err(ExpressionFault::RegexWithNul
            .error(format!("{name}: regular expression cannot contain an embedded null byte")));
    }
    if options.contains('\0') {
        return Err(ExpressionFault::RegexOptionsWithNul
            .error(format!("{name}: regular expression options cannot contain an embedded null byte")));
    }
    if let Some(flag) = options.chars().find(|flag| !"imsxu".contains(*flag)) {
        return Err(RegexFault::UnknownFlag.error(format!("{name} invalid flag in regex options: {flag}")));
    }
    RegularExpression::new(pattern, options).map(Some).map_err(|error| {
        ExpressionFault::RegexDoesNotCompile.error(format!("Invalid Regex in {name}: {}", error.message()))
    })
}

/// Calls `use_it` with text and pattern; without it where one of them is null.
fn with_pattern<T>(
    call: &Call,
    input: &Evaluated<'_>,
    pattern: &Evaluated<'_>,
    options: &Evaluated<'_>,
    use_it: impl FnOnce(&RegularExpression, &str) -> Result<T, QueryError>,
) -> Result<Option<T>, QueryError> {
    let compiled;
    let test = match call.pattern() {
        Some(test) => Some(test),
        None => {
            compiled = compile(call.name(), pattern.raw_or_null(), options.raw_or_null())?;
            compiled.as_ref()
        }
    };
    if input.is_nullish() {
        return Ok(None);
    }
    let Some(text) = input.as_str() else {
        return Err(ExpressionFault::RegexInputNotString
            .error(format!("{} needs 'input' to be of type string", call.name())));
    };
    test.map(|test| use_it(test, text)).transpose()
}

fn run_match<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let (input, pattern, options) = arguments(call, frame)?;
    let found = with_pattern(call, &input, &pattern, &options, |test, text| test.is_match(text))?;
    Ok(Evaluated::boolean(found.unwrap_or(false)))
}

fn run_find<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let (input, pattern, options) = arguments(call, frame)?;
    let found = with_pattern(call, &input, &pattern, &options, |test, text| {
        let Some(found) = test.find_from(text, 0)? else { return Ok(Evaluated::NULL) };
        document_of(|writer| {
            let index = text[..found.start].chars().count();
            write(&found, text, index, writer, usize::MAX)
        })
    })?;
    Ok(found.unwrap_or(Evaluated::NULL))
}

fn run_find_all<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let (input, pattern, options) = arguments(call, frame)?;
    array_of(|writer| {
        with_pattern(call, &input, &pattern, &options, |test, text| {
            find_all(test, text, writer, &mut || call.count_work(frame, text.len()))
        })
        .map(|_| ())
    })
}

/// Writes all matches; `work` is called for each search.
fn find_all(
    test: &RegularExpression,
    text: &str,
    writer: &mut ArrayWriter<'_>,
    work: &mut dyn FnMut() -> Result<(), QueryError>,
) -> Result<(), QueryError> {
    // The characters are counted on from match to match.
    let (mut at, mut counted, mut index) = (0, 0, 0);
    while at < text.len() || text.is_empty() {
        work()?;
        let Some(found) = test.find_from(text, at)? else { break };
        // Behind the match, or behind the next character after an empty one.
        at = match found.end > found.start {
            true => found.end,
            false => found.end + text[found.end..].chars().next().map_or(1, char::len_utf8),
        };
        if found.start == text.len() && !text.is_empty() {
            break;
        }
        index += text[counted..found.start].chars().count();
        counted = found.start;
        let room = OUTPUT_BYTES_MAX.saturating_sub(writer.bytes_so_far());
        let mut document = writer.document();
        write(&found, text, index, &mut document, room)?;
        document.finish();
        if text.is_empty() {
            break;
        }
    }
    Ok(())
}

fn arguments<'a>(
    call: &'a Call,
    frame: &mut Frame<'a>,
) -> Result<(Evaluated<'a>, Evaluated<'a>, Evaluated<'a>), QueryError> {
    Ok((call.argument(0, frame)?, call.argument(1, frame)?, call.argument(2, frame)?))
}

/// `{match, idx, captures}`; `index` is the place of the match in characters. Groups may lie within one
/// another and have many more bytes than the text: they are refused beyond `room`, or beyond the bytes of a
/// computed value.
fn write(
    found: &RegexMatch,
    text: &str,
    index: usize,
    writer: &mut DocumentWriter<'_>,
    room: usize,
) -> Result<(), QueryError> {
    let matched = &text[found.start..found.end];
    check_output(matched.len(), room)?;
    writer.append_str("match", matched);
    writer.append_i32("idx", i32::try_from(index).unwrap_or(i32::MAX));
    let outside = writer.bytes_so_far();
    let mut captures = writer.array("captures");
    for group in &found.groups {
        captures.push(group.map_or(RawValue::Null, |(start, end)| RawValue::String(&text[start..end])));
        check_output(outside + captures.bytes_so_far(), room)?;
    }
    captures.finish();
    Ok(())
}

fn check_output(bytes: usize, room: usize) -> Result<(), QueryError> {
    if bytes > room {
        return Err(ExpressionFault::RegexOutputTooLarge
            .error("$regexFindAll: the size of buffer to store output exceeded the 64MB limit"));
    }
    check_computed_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;
    use crate::error::ErrorCode;

    /// The code of the error of an operator over a text of 4 MB, where 20 groups take all of the text.
    fn code_of(operator: &str) -> Option<ErrorCode> {
        let pattern = format!("{}a*{}", "(".repeat(20), ")".repeat(20));
        let holder = doc! { "e": { operator: { "input": "$t", "regex": pattern } } }.to_raw();
        let scope = ParseScope::at(0);
        let parsed = Expression::parse(holder.get("e").unwrap().unwrap(), &scope).unwrap();
        let root = doc! { "t": ("a".repeat(4 << 20)) }.to_raw();
        parsed.evaluate(&root).unwrap_err().code()
    }

    #[test]
    fn matches_that_take_more_bytes_than_a_computed_value_are_refused() {
        assert_eq!(code_of("$regexFindAll"), Some(ExpressionFault::RegexOutputTooLarge.code()));
        assert_eq!(code_of("$regexFind"), Some(ErrorCode::ExceededMemoryLimit));
    }
}
