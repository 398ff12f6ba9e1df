//! The configuration file: TOML, one key per option, no others.

use std::path::Path;

use toml::{Table, Value};

use super::all_options;
use super::error::ConfigurationError;
use super::options::Shape;

/// Reads a file into `(option, text)`.
pub(super) fn read(path: &Path) -> Result<Vec<(&'static str, String)>, ConfigurationError> {
    let content = std::fs::read_to_string(path)
        .map_err(|source| ConfigurationError::ReadFile { file: path.to_owned(), source })?;
    let table: Table = content.parse().map_err(|source| match is_of_mongod(&content) {
        true => ConfigurationError::FileOfMongod { file: path.to_owned() },
        false => ConfigurationError::Syntax { file: path.to_owned(), source: Box::new(source) },
    })?;
    let mut found = Vec::new();
    for (key, value) in table {
        let Some(entry) = all_options().find(|entry| entry.name == key) else {
            if value.is_table() {
                return Err(ConfigurationError::Section { file: path.to_owned(), key });
            }
            let nearest = nearest_name(&key, LIKENESS_MIN);
            return Err(ConfigurationError::UnknownKey { file: path.to_owned(), key, nearest });
        };
        if value.is_array() && !matches!(entry.shape, Shape::List(_)) {
            return Err(ConfigurationError::ListForValue { file: path.to_owned(), key });
        }
        let text =
            text_of(&value).ok_or_else(|| ConfigurationError::ValueKind { file: path.to_owned(), key })?;
        found.push((entry.name, text));
    }
    Ok(found)
}

/// The sections of a configuration file of mongod.
const SECTIONS_OF_MONGOD: [&str; 10] = [
    "auditLog",
    "cloud",
    "net",
    "operationProfiling",
    "processManagement",
    "replication",
    "security",
    "setParameter",
    "storage",
    "systemLog",
];

/// Whether text that is no TOML is a configuration of mongod: one of its sections begins a line, and a colon
/// follows.
fn is_of_mongod(content: &str) -> bool {
    content.lines().filter_map(|line| line.split_once(':')).any(|(name, _)| {
        let section = name.split_once('.').map_or(name, |(section, _)| section);
        SECTIONS_OF_MONGOD.contains(&section.trim_end())
    })
}

/// A value as it would be written after a flag.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(truth) => Some(truth.to_string()),
        Value::Array(items) => {
            let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            texts.map(|texts| texts.join(","))
        }
        Value::Datetime(_) | Value::Table(_) => None,
    }
}

/// Names that are less alike than this are no help.
const LIKENESS_MIN: f64 = 0.7;

/// The option that a mistyped name most likely meant, if one is as like it as this (1 is equal).
pub(super) fn nearest_name(key: &str, likeness_min: f64) -> Option<&'static str> {
    let likeness = |name: &str| strsim::jaro_winkler(name, &key.replace('_', "-").to_lowercase());
    let best = all_options().max_by(|a, b| likeness(a.name).total_cmp(&likeness(b.name)))?;
    (likeness(best.name) >= likeness_min).then_some(best.name)
}
