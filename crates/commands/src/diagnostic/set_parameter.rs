//! `setParameter`: changes settings of the engine while the server runs.
//!
//! The engine's settings appear under its name and theirs: `cache` of `betree` is `betreeCache`. They hold
//! until the server stops. Settings that hold from the start stand in the configuration.

use pando_document::{DocumentWriter, Number, RawValue};

use crate::arguments::is_generic;
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

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
    for field in request.body.iter().skip(1) {
        let (name, value) = field?;
        if is_generic(name) {
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
        first_was.get_or_insert(was);
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
    reply.append_str("was", was);
    Ok(())
}

fn text_of(value: RawValue<'_>) -> Option<String> {
    match value {
        RawValue::String(text) => Some(text.to_owned()),
        RawValue::Double(double) => Some(Number::Double(double).to_i64_exact()?.to_string()),
        number => number.as_i64_exact().map(|number| number.to_string()),
    }
}
