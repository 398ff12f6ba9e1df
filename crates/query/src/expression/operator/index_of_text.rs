//! `$indexOfBytes` and `$indexOfCP`: where a string stands in another, counted in bytes or
//! characters; -1 if nowhere.

use pando_document::RawValue;

use super::{Arity, Call, Definition, Evaluated, ExpressionFault, Frame, QueryError};

pub(super) static INDEX_OF_BYTES: Definition =
    Definition { name: "$indexOfBytes", arity: Arity::Between(2, 4), run: run_bytes };
pub(super) static INDEX_OF_CP: Definition =
    Definition { name: "$indexOfCP", arity: Arity::Between(2, 4), run: run_characters };

fn run_bytes<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let faults = (ExpressionFault::IndexOfBytesNotString, ExpressionFault::IndexOfBytesSoughtNotString);
    run(call, frame, faults, |text, sought, start, end| {
        let end = end.min(text.len());
        let within = text.as_bytes().get(start..end)?;
        memchr::memmem::find(within, sought.as_bytes()).map(|at| at + start)
    })
}

fn run_characters<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
    let faults = (ExpressionFault::IndexOfCpNotString, ExpressionFault::IndexOfCpSoughtNotString);
    run(call, frame, faults, |text, sought, start, end| {
        let byte_of = |index: usize| text.char_indices().nth(index).map_or(text.len(), |(byte, _)| byte);
        let length = text.chars().count();
        // An empty range finds nothing, unless the text itself is empty.
        let is_outside = start >= end.min(length) && (start > 0 || length > 0);
        if is_outside {
            return None;
        }
        let (from, to) = (byte_of(start), byte_of(end.min(length)));
        let at = text.get(from..to)?.find(sought)?;
        Some(start + text[from..from + at].chars().count())
    })
}

fn run<'a>(
    call: &'a Call,
    frame: &mut Frame<'a>,
    (not_string, sought_not_string): (ExpressionFault, ExpressionFault),
    search: fn(&str, &str, usize, usize) -> Option<usize>,
) -> Result<Evaluated<'a>, QueryError> {
    let text = call.argument(0, frame)?;
    if text.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let name = call.name();
    if text.as_str().is_none() {
        return Err(not_string
            .error(format!("{name} requires a string as the first argument, found: {}", text.type_name())));
    }
    let sought = call.argument(1, frame)?;
    if sought.as_str().is_none() {
        return Err(sought_not_string.error(format!(
            "{name} requires a string as the second argument, found: {}",
            sought.type_name()
        )));
    }
    let (start, end) = search_bounds(call, frame)?;
    let found = match (text.as_str(), sought.as_str()) {
        (Some(text), Some(sought)) => search(text, sought, start, end),
        _ => unreachable!("both were checked to be strings"),
    };
    let found = found.and_then(|at| i32::try_from(at).ok()).unwrap_or(-1);
    Ok(Evaluated::Raw(RawValue::Int32(found)))
}

/// Start and end index, from the third and fourth argument.
pub(super) fn search_bounds<'a>(call: &'a Call, frame: &mut Frame<'a>) -> Result<(usize, usize), QueryError> {
    let start = if call.has(2) { index(call, &call.argument(2, frame)?, "starting")? } else { 0 };
    let end = if call.has(3) { index(call, &call.argument(3, frame)?, "ending")? } else { usize::MAX };
    Ok((start, end))
}

fn index(call: &Call, value: &Evaluated<'_>, which: &str) -> Result<usize, QueryError> {
    let name = call.name();
    let whole =
        value.as_number().and_then(|number| number.to_i64_exact()).and_then(|n| i32::try_from(n).ok());
    let Some(whole) = whole else {
        return Err(ExpressionFault::SearchIndexNotInteger.error(format!(
            "{name}requires an integral {which} index, found a value of type: {}, with value: {}",
            value.type_name(),
            value.shell_text()
        )));
    };
    usize::try_from(whole).map_err(|_| {
        ExpressionFault::SearchIndexNegative
            .error(format!("{name} requires a nonnegative {which} index, found: {whole}"))
    })
}
