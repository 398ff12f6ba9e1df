//! `setParameter`: changes settings while the server runs. `parameters.rs` has the table of them.

use std::collections::BTreeMap;

use pando_document::{DocumentWriter, Value};

use super::parameters::{
    Change, name_of_setting, own, query_memory, setting_shown, setting_text, text_of, wants_help, write_help,
};
use crate::arguments::is_generic;
use crate::context::Context;
use crate::short_options;
use crate::{CommandError, ErrorCode, Request};

/// Changes all named settings or none, as MongoDB does. The reply has the earlier value of the first by name.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    if wants_help(request)? {
        write_help("setParameter sets parameters of the running server", context, reply);
        return Ok(());
    }
    let mut wanted = BTreeMap::new();
    for field in request.body.iter().skip(1) {
        let (name, value) = field?;
        if !is_generic(name) {
            wanted.insert(name, value);
        }
    }
    let engine = context.catalog().engine();
    let settings = engine.settings();
    let setting_of =
        |name: &str| settings.iter().find(|(setting, _)| name_of_setting(engine.name(), setting) == name);
    let mut own_changes: Vec<Change> = Vec::new();
    let mut of_engine = Vec::new();
    let mut first_was: Option<Value> = None;
    for (name, value) in wanted {
        let was = match own(name) {
            Some(parameter) => {
                own_changes.push(parameter.change(context, value)?);
                parameter.value(context)
            }
            None if short_options::DEFAULTS.contains(&name) => {
                let (setting, value) = short_options::short_default(name, value, engine.name())?;
                let was = settings.iter().find(|(found, _)| *found == setting);
                of_engine.push((setting, value.as_scalar().and_then(text_of).unwrap_or_default()));
                was.map_or(Value::Null, |(_, was)| setting_shown(was))
            }
            None => {
                let (setting, was) = setting_of(name).ok_or_else(|| unrecognized(name))?;
                of_engine.push((*setting, setting_text(name, value)?));
                setting_shown(was)
            }
        };
        first_was.get_or_insert(was);
    }
    let was = first_was.ok_or_else(no_parameter)?;
    for (setting, value) in &of_engine {
        query_memory::check_cache(context, setting, value).map_err(|told| {
            let name = name_of_setting(engine.name(), setting);
            CommandError::failed(ErrorCode::BadValue, format!("{name}: {told}"))
        })?;
    }
    let of_engine: Vec<_> = of_engine.iter().map(|(setting, value)| (*setting, value.as_str())).collect();
    engine.change_settings(&of_engine).map_err(|error| {
        let names = of_engine.iter().map(|(setting, _)| name_of_setting(engine.name(), setting));
        named(&names.collect::<Vec<_>>().join(", "), error.into())
    })?;
    if !of_engine.is_empty() {
        query_memory::follow_cache(context);
    }
    own_changes.into_iter().for_each(|change| change(context));
    reply.append_value("was", &was);
    Ok(())
}

/// The error of an engine, which knows its own names of the settings only, behind those of the parameters.
fn named(parameters: &str, mut error: CommandError) -> CommandError {
    if let CommandError::Failed(failure) = &mut error {
        failure.message = format!("{parameters}: {}", failure.message);
    }
    error
}

fn unrecognized(name: &str) -> CommandError {
    let sentence = format!("attempted to set unrecognized parameter [{name}], use help:true to see options ");
    CommandError::failed(ErrorCode::Untold, sentence)
}

fn no_parameter() -> CommandError {
    CommandError::failed(ErrorCode::Untold, "no option found to set, use help:true to see options ")
}
