//! The option `storageEngine` of collections and indexes: settings for one engine or another. They are checked and kept; none
//! of them means anything to an engine of Pando.

use pando_document::{RawDocument, RawValue};

use crate::ErrorCode;

/// The engine of MongoDB, for which drivers and restored collections bring settings.
const FOREIGN_ENGINE: &str = "wiredTiger";

/// Checks that there is a document of settings for each engine, and that the engine can be meant.
pub(super) fn check(options: &RawDocument, own_engine: &str) -> Result<(), (ErrorCode, String)> {
    for field in options.iter() {
        let (engine, settings) = field.map_err(|error| (ErrorCode::InvalidBson, error.to_string()))?;
        if !matches!(settings, RawValue::Document(_)) {
            let reason = format!("'storageEngine.{engine}' has to be an embedded document.");
            return Err((ErrorCode::BadValue, reason));
        }
        if engine != FOREIGN_ENGINE && engine != own_engine {
            let reason = format!("{engine} is not a registered storage engine for this server");
            return Err((ErrorCode::InvalidOptions, reason));
        }
    }
    Ok(())
}
