//! The collections and views that the stages of a pipeline name beside its own.
//!
//! # Not here
//! What a view refers to that a stage names: `admin/view_definition.rs` follows it.

use pando_document::{RawArray, RawValue};

use crate::CommandError;

/// Adds the names, those of inner pipelines too. The nesting of pipelines is bounded by that of documents.
///
/// # Errors
/// The pipeline is no BSON.
pub(crate) fn add_references(stages: &RawArray, found: &mut Vec<String>) -> Result<(), CommandError> {
    for stage in stages.iter() {
        let Some(field) = stage?.as_document().and_then(|stage| stage.iter().next()) else { continue };
        match field? {
            ("$unionWith", RawValue::String(name)) => found.push(name.to_owned()),
            ("$lookup" | "$graphLookup" | "$unionWith", RawValue::Document(argument)) => {
                // Also of a field that stands twice: the stage goes by the last one.
                for option in argument.iter() {
                    match option? {
                        ("from" | "coll", RawValue::String(name)) => found.push(name.to_owned()),
                        ("pipeline", RawValue::Array(inner)) => add_references(inner, found)?,
                        _ => {}
                    }
                }
            }
            ("$facet", RawValue::Document(parts)) => {
                for part in parts.iter() {
                    if let (_, RawValue::Array(inner)) = part? {
                        add_references(inner, found)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}
