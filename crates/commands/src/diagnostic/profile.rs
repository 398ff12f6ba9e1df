//! `profile`: which requests of a database are recorded in its `system.profile`, and which are logged.
//!
//! A level of 0, 1 or 2 is set; any other one only asks. `slowms` and `sampleRate` are those of the whole
//! store. The reply has the settings from before.

use std::sync::Arc;

use pando_document::{DocumentWriter, RawValue};

use crate::arguments::{Argument, Arguments, missing, whole};
use crate::context::Context;
use crate::profiler::FilterSettings;
use crate::{CommandError, ErrorCode, Request, system_profile};

const NOTE: &str = "When a filter expression is set, slowms and sampleRate are not used for profiling and slow-query log lines.";

/// A change of the filter.
enum FilterChange {
    None,
    Unset,
    Set(Arc<FilterSettings>),
}

/// Changes the settings and answers the earlier ones.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let level = Argument::of_value("profile", "profile", request.command()?.1).integer()?;
    let level = level.ok_or_else(|| missing("profile", "profile"))?;
    let (mut slow_ms, mut sample_rate, mut filter) = (None, None, FilterChange::None);
    for argument in Arguments::of_command("profile", request.body) {
        let argument = argument?;
        match argument.name {
            "slowms" => slow_ms = argument.integer()?,
            "sampleRate" => sample_rate = sample_rate_of(&argument)?,
            "filter" => filter = filter_of(context, argument.value)?,
            // Unknown fields are passed over here, as MongoDB does.
            _ => {}
        }
    }
    let settings = &context.shared.profiler.settings;
    let level = i32::try_from(level).ok().filter(|level| (0..=2).contains(level));
    if level.is_some_and(|level| level > 0) {
        context.require_may_block()?;
        system_profile::create_collection(context.shared, context.database)?;
    }
    let (slow_ms_was, sample_rate_was) = (settings.slow_ms(), settings.sample_rate());
    let was = settings.change(context.database, |database| {
        if let Some(level) = level {
            database.level = level;
        }
        match filter {
            FilterChange::None => {}
            FilterChange::Unset => database.filter = None,
            FilterChange::Set(filter) => database.filter = Some(filter),
        }
    });
    if let Some(slow_ms) = slow_ms {
        settings.set_slow_ms(slow_ms);
    }
    if let Some(rate) = sample_rate {
        settings.set_sample_rate(rate);
    }
    reply.append_i32("was", was.level);
    reply.append_i32("slowms", i32::try_from(slow_ms_was).unwrap_or(i32::MAX));
    reply.append_f64("sampleRate", sample_rate_was);
    if let Some(filter) = &was.filter {
        reply.append_raw_document("filter", &filter.document);
    }
    if settings.of(context.database).filter.is_some() || was.filter.is_some() {
        reply.append_str("note", NOTE);
    }
    Ok(())
}

fn sample_rate_of(argument: &Argument<'_>) -> Result<Option<f64>, CommandError> {
    if argument.integer()?.is_none() {
        return Ok(None);
    }
    let rate = match argument.value {
        RawValue::Double(rate) => rate,
        number => whole(number) as f64,
    };
    if (0.0..=1.0).contains(&rate) {
        return Ok(Some(rate));
    }
    Err(CommandError::failed(ErrorCode::BadValue, "'sampleRate' must be between 0.0 and 1.0 inclusive"))
}

fn filter_of(context: &Context<'_>, value: RawValue<'_>) -> Result<FilterChange, CommandError> {
    match value {
        RawValue::String("unset") => Ok(FilterChange::Unset),
        RawValue::Document(filter) => {
            Ok(FilterChange::Set(Arc::new(FilterSettings::parse(filter, context.shared.now_ms())?)))
        }
        _ => Err(CommandError::failed(ErrorCode::BadValue, "Expected an object, or the string 'unset'.")),
    }
}
