//! The option `storageEngine` of collections and indexes: settings for one engine or another. They are
//! checked and kept. The settings for the engine of this server choose the form of the tree, and the engine
//! refuses unknown ones.

use pando_document::{Document, DocumentError, RawDocument, RawDocumentBuf, RawValue, Value};

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
