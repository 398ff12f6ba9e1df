//! Settings of the engine in the words of TokuMX: as options of a collection or an index, and as parameters
//! of their defaults. A log line tells what each became.

use pando_document::{Document, RawDocument, RawValue, Value};
use pando_query::shell_text::value_text;

use crate::{CommandError, ErrorCode};

/// The options of TokuMX that mean a setting of the engine.
const SHORT_OPTIONS: [&str; 4] = ["compression", "pageSize", "readPageSize", "fanout"];

/// The option of TokuMX that applies updates without a read. It has no effect: an update reads its document.
pub(crate) const FAST_UPDATES: &str = "fastUpdates";

/// Whether an option means a setting of the engine in the words of TokuMX.
pub(crate) fn is_short_option(name: &str) -> bool {
    SHORT_OPTIONS.contains(&without_default(name))
}

/// TokuMX's parameters of the defaults, by name.
pub(crate) const DEFAULTS: [&str; 4] =
    ["defaultCompression", "defaultFanout", "defaultPageSize", "defaultReadPageSize"];

/// The setting of the engine behind a parameter of [`DEFAULTS`].
pub(crate) fn setting_of_default(parameter: &str) -> &'static str {
    setting_name(without_default(parameter))
}

/// The setting of the engine that an option means.
fn setting_name(option: &str) -> &'static str {
    match option {
        "pageSize" => "leafSize",
        "readPageSize" => "pageSize",
        "compression" => "compression",
        _ => "fanout",
    }
}

/// The option whose default TokuMX names so: `compression` for `defaultCompression`.
fn without_default(name: &str) -> &str {
    match name {
        "defaultCompression" => "compression",
        "defaultPageSize" => "pageSize",
        "defaultReadPageSize" => "readPageSize",
        "defaultFanout" => "fanout",
        other => other,
    }
}

/// Logs that [`FAST_UPDATES`] is passed over.
pub(crate) fn log_fast_updates() {
    tracing::info!("the option {FAST_UPDATES} has no effect: an update reads the document that it changes");
}

/// The settings of `engine` that options in the words of TokuMX mean.
///
/// TokuMX's `pageSize` is the size of a node, here `leafSize`; its `readPageSize` the unit of reads, here
/// `pageSize`. Its compressions stand for those of about their speed.
pub(crate) fn of_short_options(options: &RawDocument, engine: &str) -> Result<Document, CommandError> {
    let mut settings = Document::new();
    for option in options.iter() {
        let (name, value) = option?;
        let (setting, value) = short_option(name, value, engine)?;
        settings.push(setting, value);
    }
    Ok(settings)
}

/// One setting of the engine. A log line tells what became of the option.
pub(crate) fn short_option(
    name: &str,
    value: RawValue<'_>,
    engine: &str,
) -> Result<(&'static str, Value), CommandError> {
    let (setting, own) = setting_of(name, value, engine)?;
    log_change("option", (name, value), &format!("storageEngine.{engine}.{setting}"), &own);
    Ok((setting, own))
}

/// The setting of the engine behind a parameter of [`DEFAULTS`], and its value. A log line tells what became
/// of the parameter.
pub(crate) fn short_default(
    parameter: &str,
    value: RawValue<'_>,
    engine: &str,
) -> Result<(&'static str, Value), CommandError> {
    let (setting, own) = setting_of(parameter, value, engine)?;
    log_change("parameter", (parameter, value), &format!("the setting {setting} of new trees"), &own);
    Ok((setting, own))
}

fn log_change(kind: &str, (name, value): (&str, RawValue<'_>), setting: &str, own: &Value) {
    let (said, becomes) = (value_text(value), own.as_scalar().map(value_text).unwrap_or_default());
    if setting != name || said != becomes {
        tracing::info!("the {kind} {name}: {said} became {setting}: {becomes}");
    }
}

/// `name` is the client's, which errors repeat.
fn setting_of(name: &str, value: RawValue<'_>, engine: &str) -> Result<(&'static str, Value), CommandError> {
    let refused = |reason: String| Err(CommandError::failed(ErrorCode::BadValue, reason));
    if engine != "betree" {
        return Err(CommandError::failed(
            ErrorCode::CommandNotSupported,
            format!("the engine {engine} has no setting '{name}'"),
        ));
    }
    let option = without_default(name);
    match (option, value) {
        ("compression", RawValue::String(word)) => {
            let own = match word {
                "quicklz" => "lz4",
                "zlib" => "zstd",
                "lzma" => "zstd-12",
                own => own,
            };
            Ok(("compression", Value::from(own)))
        }
        ("compression", _) => refused(format!("{name} has to be a string")),
        ("pageSize" | "readPageSize" | "fanout", value) => match size_of(value) {
            Some(number) => Ok((setting_name(option), Value::Int64(number))),
            None => refused(format!("{name} has to be a number, or a size such as 64KB")),
        },
        _ => refused(format!(
            "'{name}' is no option of a collection or an index: there are {}",
            SHORT_OPTIONS.join(", ")
        )),
    }
}

/// A number, or one with the unit K, M or G, which are powers of 1024.
fn size_of(value: RawValue<'_>) -> Option<i64> {
    let RawValue::String(text) = value else { return value.as_i64_exact().filter(|number| *number > 0) };
    let text = text.trim().to_ascii_lowercase();
    let text = text.strip_suffix('b').unwrap_or(&text);
    let units = [('k', 10), ('m', 20), ('g', 30)];
    let with_unit = units.iter().find_map(|(unit, bits)| Some((text.strip_suffix(*unit)?, *bits)));
    let (number, bits) = with_unit.unwrap_or((text, 0));
    let number = number.trim_end().parse::<i64>().ok()?.checked_mul(1 << bits)?;
    Some(number).filter(|number| *number > 0)
}
