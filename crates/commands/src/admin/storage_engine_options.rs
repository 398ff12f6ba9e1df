//! The option `storageEngine` of collections and indexes: settings for one engine or another. They are
//! checked and kept. The settings for the engine of this server choose the form of the tree, and the engine
//! refuses unknown ones.

use pando_document::{Document, DocumentError, RawDocument, RawDocumentBuf, RawValue, Value};
use pando_query::shell_text::value_text;

use crate::{CommandError, ErrorCode};

/// The engine of MongoDB, for which drivers and restored collections bring settings.
const FOREIGN_ENGINE: &str = "wiredTiger";

/// `document` (the options of a collection, the specification of an index) with some settings of its
/// `storageEngine` changed, engine by engine and name by name. A setting that becomes `null` goes back to its
/// default.
pub(super) fn merged(document: &RawDocument, changes: &RawDocument) -> Result<RawDocumentBuf, DocumentError> {
    let mut whole = Document::from_raw(document)?;
    let mut engines = take_document(&mut whole, "storageEngine");
    for change in changes.iter() {
        let (engine, settings) = change?;
        let RawValue::Document(settings) = settings else { continue };
        let mut kept = take_document(&mut engines, engine);
        for setting in settings.iter() {
            let (name, value) = setting?;
            kept.remove(name);
            if !value.is_null() {
                kept.push(name, value.to_owned());
            }
        }
        if !kept.is_empty() {
            engines.push(engine, Value::Document(kept));
        }
    }
    if !engines.is_empty() {
        whole.push("storageEngine", Value::Document(engines));
    }
    Ok(whole.to_raw())
}

fn take_document(of: &mut Document, name: &str) -> Document {
    match of.remove(name) {
        Some(Value::Document(document)) => document,
        _ => Document::new(),
    }
}

/// Checks that there is a document of settings for each engine, and that the engine can be meant.
pub(super) fn check(options: &RawDocument, own_engine: &str) -> Result<(), (ErrorCode, String)> {
    for field in options.iter() {
        let (engine, settings) = field.map_err(|error| (ErrorCode::InvalidBson, error.to_string()))?;
        if !matches!(settings, RawValue::Document(_)) {
            let reason = format!("'storageEngine.{engine}' has to be an embedded document.");
            return Err((ErrorCode::BadValue, reason));
        }
        if engine != FOREIGN_ENGINE && !engine.eq_ignore_ascii_case(own_engine) {
            let reason = format!("{engine} is not a registered storage engine for this server");
            return Err((ErrorCode::InvalidOptions, reason));
        }
    }
    Ok(())
}

/// The note that a client gets of settings for MongoDB's engine that this server's engine passes over; `None`
/// where there are none. `options` are those of a collection, or the specification of an index.
pub(super) fn note_of_passed_over(options: &RawDocument, own_engine: &str) -> Option<String> {
    let Ok(Some(RawValue::Document(engines))) = options.get("storageEngine") else { return None };
    let Ok(Some(RawValue::Document(settings))) = engines.get(FOREIGN_ENGINE) else { return None };
    if settings.is_empty() || FOREIGN_ENGINE.eq_ignore_ascii_case(own_engine) {
        return None;
    }
    Some(format!(
        "storageEngine.{FOREIGN_ENGINE} is kept and has no effect: the engine of this server is {own_engine}"
    ))
}

/// The options of TokuMX that mean a setting of the engine.
const SHORT_OPTIONS: [&str; 4] = ["compression", "pageSize", "readPageSize", "fanout"];

/// The option of TokuMX that applies updates without a read. It has no effect: an update reads its document.
pub(super) const FAST_UPDATES: &str = "fastUpdates";

/// Whether an option means a setting of the engine in the words of TokuMX.
pub(super) fn is_short_option(name: &str) -> bool {
    SHORT_OPTIONS.contains(&without_default(name))
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
pub(super) fn log_fast_updates() {
    tracing::info!("the option {FAST_UPDATES} has no effect: an update reads the document that it changes");
}

/// The settings of `engine` that options in the words of TokuMX mean.
///
/// TokuMX's `pageSize` is the size of a node, here `leafSize`; its `readPageSize` the unit of reads, here
/// `pageSize`. Its compressions stand for those of about their speed.
pub(super) fn of_short_options(options: &RawDocument, engine: &str) -> Result<Document, CommandError> {
    let mut settings = Document::new();
    for option in options.iter() {
        let (name, value) = option?;
        let (setting, value) = short_option(name, value, engine)?;
        settings.push(setting, value);
    }
    Ok(settings)
}

/// Adds settings of `engine` to the options of a collection or to the specification of an index.
pub(super) fn add(
    document: &mut Document,
    settings: &Document,
    engine: &str,
) -> Result<Document, CommandError> {
    if settings.is_empty() {
        return Ok(document.clone());
    }
    let mut changes = Document::new();
    changes.push(engine, Value::Document(settings.clone()));
    Ok(Document::from_raw(&merged(&document.to_raw(), &changes.to_raw())?)?)
}

/// One setting of the engine. A log line tells what became of the option.
pub(super) fn short_option(
    name: &str,
    value: RawValue<'_>,
    engine: &str,
) -> Result<(&'static str, Value), CommandError> {
    let (setting, own) = setting_of(without_default(name), value, engine)?;
    let (said, becomes) = (value_text(value), own.as_scalar().map(value_text).unwrap_or_default());
    if setting != name || said != becomes {
        tracing::info!("the option {name}: {said} became storageEngine.{engine}.{setting}: {becomes}");
    }
    Ok((setting, own))
}

fn setting_of(name: &str, value: RawValue<'_>, engine: &str) -> Result<(&'static str, Value), CommandError> {
    let refused = |reason: String| Err(CommandError::failed(ErrorCode::BadValue, reason));
    if engine != "betree" {
        return Err(CommandError::failed(
            ErrorCode::CommandNotSupported,
            format!("the engine {engine} has no setting '{name}'"),
        ));
    }
    match (name, value) {
        ("compression", RawValue::String(word)) => {
            let own = match word {
                "quicklz" => "lz4",
                "zlib" => "zstd",
                "lzma" => "zstd-12",
                own => own,
            };
            Ok(("compression", Value::from(own)))
        }
        ("compression", _) => refused("compression has to be a string".to_owned()),
        ("pageSize" | "readPageSize" | "fanout", value) => {
            let setting = match name {
                "pageSize" => "leafSize",
                "readPageSize" => "pageSize",
                _ => "fanout",
            };
            match size_of(value) {
                Some(number) => Ok((setting, Value::Int64(number))),
                None => refused(format!("{name} has to be a number, or a size such as 64KB")),
            }
        }
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
