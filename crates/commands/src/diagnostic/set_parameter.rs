//! `setParameter`: changes settings while the server runs: `queryMemory`, `transactionLifetimeLimitSeconds`,
//! and those of the engine.
//!
//! The engine's settings appear under its name and theirs: `cache` of `betree` is `betreeCache`. They hold
//! until the server stops. Settings that hold from the start stand in the configuration.

use pando_catalog::QUERY_MEMORY_MIN;
use pando_document::{DocumentWriter, Number, RawValue};

use crate::arguments::{is_generic, whole};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// The parameter of the memory of queries.
pub(crate) const QUERY_MEMORY: &str = "queryMemory";

/// The parameter of the time after which an open transaction is ended.
pub(crate) const TRANSACTION_LIFETIME: &str = "transactionLifetimeLimitSeconds";

/// The name of a parameter for a setting of an engine.
pub(crate) fn parameter_name(engine: &str, setting: &str) -> String {
    let mut name = engine.to_owned();
    let mut letters = setting.chars();
    name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
    name.extend(letters);
    name
}

/// Changes all named settings or none, as MongoDB does. The reply has the earlier value of the first.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let engine = context.catalog().engine();
    let settings = engine.settings();
    let mut changes = Vec::new();
    let mut first_was = None;
    let (mut query_memory, mut lifetime) = (None, None);
    for field in request.body.iter().skip(1) {
        let (name, value) = field?;
        if is_generic(name) {
            continue;
        }
        if name == QUERY_MEMORY {
            let memory = context.catalog().query_memory();
            query_memory = Some(parse_query_memory(context, value)?);
            first_was.get_or_insert(memory.limit().to_string());
            continue;
        }
        if name == TRANSACTION_LIFETIME {
            lifetime = Some(parse_lifetime(value)?);
            first_was.get_or_insert(context.shared.sessions.lifetime().as_secs().to_string());
            continue;
        }
        let setting = settings.iter().find(|(setting, _)| parameter_name(engine.name(), setting) == name);
        let Some((setting, was)) = setting else {
            return Err(CommandError::failed(
                ErrorCode::InvalidOptions,
                format!("attempted to set unrecognized parameter [{name}], use help:true to see options "),
            ));
        };
        let Some(value) = text_of(value) else {
            return Err(CommandError::failed(
                ErrorCode::BadValue,
                format!("{name} must be a string or a whole number"),
            ));
        };
        first_was.get_or_insert(was.clone());
        changes.push((*setting, value));
    }
    let Some(was) = first_was else {
        return Err(CommandError::failed(
            ErrorCode::InvalidOptions,
            "no option found to set, use help:true to see options ",
        ));
    };
    let changes: Vec<_> = changes.iter().map(|(setting, value)| (*setting, value.as_str())).collect();
    engine.change_settings(&changes)?;
    if let Some(bytes) = query_memory {
        context.catalog().query_memory().set_limit(bytes);
    }
    if let Some(seconds) = lifetime {
        context.shared.sessions.set_lifetime_seconds(seconds);
    }
    match (was.parse(), lifetime) {
        (Ok(number), Some(_)) => reply.append_i32("was", number),
        _ => reply.append_str("was", &was),
    }
    Ok(())
}

/// A number of seconds.
fn parse_lifetime(value: RawValue<'_>) -> Result<u64, CommandError> {
    let refused = |reason: String| Err(CommandError::failed(ErrorCode::BadValue, reason));
    if !value.is_number() {
        return refused(format!(
            "Failed validating {TRANSACTION_LIFETIME}: Unable to coerce value to integral type"
        ));
    }
    match i32::try_from(whole(value)) {
        Ok(seconds @ 1..) => Ok(u64::from(seconds.unsigned_abs())),
        Ok(seconds) => refused(format!(
            "Invalid value for parameter {TRANSACTION_LIFETIME}: {seconds} is not greater than or equal to 1"
        )),
        Err(_) => refused(format!(
            "Failed validating {TRANSACTION_LIFETIME}: the value is out of the range of 32 bits"
        )),
    }
}

/// The memory of queries: a number of bytes, or text such as `64MB`.
fn parse_query_memory(context: &Context<'_>, value: RawValue<'_>) -> Result<usize, CommandError> {
    let most = context.shared.options.query_memory.limit_bytes_max;
    let bytes = text_of(value).and_then(|text| parse_bytes(&text));
    bytes.filter(|bytes| (QUERY_MEMORY_MIN..=most).contains(bytes)).ok_or_else(|| {
        CommandError::failed(
            ErrorCode::BadValue,
            format!(
                "{QUERY_MEMORY} must be a size such as 64MB, from {QUERY_MEMORY_MIN} bytes to {most} bytes (the cache)"
            ),
        )
    })
}

fn parse_bytes(text: &str) -> Option<usize> {
    const UNITS: [(&str, usize); 7] = [
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
        ("kb", 1_000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("b", 1),
    ];
    let text = text.trim().to_ascii_lowercase();
    let with_unit = UNITS.iter().find_map(|(name, bytes)| Some((text.strip_suffix(name)?, *bytes)));
    let (number, unit) = with_unit.unwrap_or((&text, 1));
    number.trim_end().parse::<usize>().ok()?.checked_mul(unit)
}

fn text_of(value: RawValue<'_>) -> Option<String> {
    match value {
        RawValue::String(text) => Some(text.to_owned()),
        RawValue::Double(double) => Some(Number::Double(double).to_i64_exact()?.to_string()),
        number => number.as_i64_exact().map(|number| number.to_string()),
    }
}
