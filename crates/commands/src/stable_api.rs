//! The stable API: the version of the API that a client names, and the refusals of a client that wants it
//! strictly.
//!
//! Version 1 is the only one. A request with `apiStrict: true` may use what belongs to it and nothing else:
//! its commands, and of these not the fields, stages and kinds of index that MongoDB 6.0.27 refuses then.
//!
//! # Not here
//! `apiDeprecationErrors`: version 1 has nothing that is deprecated.

use pando_document::{RawDocument, RawValue};
use pando_query::shell_text::document_text;

use crate::error::Failure;
use crate::{CommandError, ErrorCode};

/// The version.
pub(crate) const VERSION: &str = "1";

/// The commands of version 1.
const COMMANDS: [&str; 28] = [
    "abortTransaction",
    "aggregate",
    "authenticate",
    "collMod",
    "commitTransaction",
    "count",
    "create",
    "createIndexes",
    "delete",
    "drop",
    "dropDatabase",
    "dropIndexes",
    "endSessions",
    "explain",
    "find",
    "findAndModify",
    "getMore",
    "hello",
    "insert",
    "killCursors",
    "listCollections",
    "listDatabases",
    "listIndexes",
    "ping",
    "refreshSessions",
    "saslContinue",
    "saslStart",
    "update",
];

/// The fields of these commands that are outside of version 1, with the name that messages give the owner.
const FIELDS: [(&str, &str, &[&str]); 7] = [
    (
        "find",
        "FindCommandRequest",
        &[
            "max",
            "min",
            "returnKey",
            "showRecordId",
            "tailable",
            "oplogReplay",
            "noCursorTimeout",
            "awaitData",
            "ntoreturn",
            "readOnce",
        ],
    ),
    ("aggregate", "aggregate", &["explain", "isMapReduceCommand"]),
    (
        "create",
        "create",
        &[
            "autoIndexId",
            "size",
            "max",
            "storageEngine",
            "indexOptionDefaults",
            "changeStreamPreAndPostImages",
            "flags",
            "recordPreImages",
            "temp",
        ],
    ),
    ("createIndexes", "createIndexes", &["ignoreUnknownIndexOptions"]),
    ("collMod", "collMod", &["changeStreamPreAndPostImages", "recordPreImages", "dryRun"]),
    ("listCollections", "listCollections", &["includePendingDrops"]),
    ("listIndexes", "listIndexes", &["includeBuildUUIDs", "includeIndexBuildInfo"]),
];

/// The stages that are outside of version 1.
const STAGES: [&str; 10] = [
    "$currentOp",
    "$fill",
    "$indexStats",
    "$listCatalog",
    "$listClusterCatalog",
    "$listLocalSessions",
    "$listSessions",
    "$planCacheStats",
    "$querySettings",
    "$queryStats",
];

/// How deep pipelines in pipelines are looked into; deeper ones are refused when they are read.
const DEPTH_MAX: usize = 32;

/// The fields of a request that name the API.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ApiParameters {
    names_version: bool,
    names_others: bool,
    is_strict: bool,
}

/// Whether a command belongs to version 1.
pub(crate) fn has_command(name: &str) -> bool {
    COMMANDS.contains(&name)
}

impl ApiParameters {
    /// Takes `apiVersion`, `apiStrict` or `apiDeprecationErrors`.
    ///
    /// # Errors
    /// Another version, or a value of another type.
    pub fn take(&mut self, name: &str, value: RawValue<'_>) -> Result<(), CommandError> {
        let of_type = |wanted: &str| {
            let found = value.element_type().alias();
            CommandError::failed(
                ErrorCode::TypeMismatch,
                format!(
                    "BSON field 'APIParametersFromClient.{name}' is the wrong type '{found}', expected type '{wanted}'"
                ),
            )
        };
        match (name, value) {
            ("apiVersion", RawValue::String(VERSION)) => self.names_version = true,
            ("apiVersion", RawValue::String(version)) => {
                let message = format!("Cannot accept API version {version}");
                return Err(Failure::new(ErrorCode::ApiVersionError, message).into());
            }
            ("apiVersion", _) => return Err(of_type("string")),
            (_, RawValue::Boolean(value)) => {
                self.names_others = true;
                self.is_strict |= name == "apiStrict" && value;
            }
            _ => return Err(of_type("bool")),
        }
        Ok(())
    }

    /// Checks that the command belongs to the version.
    #[inline]
    pub fn check_command(self, command: &str) -> Result<(), CommandError> {
        if self.is_strict && self.names_version && !has_command(command) {
            return Err(refused(format!(
                "Provided apiStrict:true, but the command {command} is not in API Version 1"
            )));
        }
        Ok(())
    }

    /// Checks a request of such a command.
    ///
    /// # Errors
    /// There is no version beside the other fields, or the request uses what the version does not have.
    #[inline]
    pub fn check_fields(self, command: &str, body: &RawDocument) -> Result<(), CommandError> {
        if self.names_others && !self.names_version {
            return Err(CommandError::failed(
                ErrorCode::Location(4_886_600),
                "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion",
            ));
        }
        if self.is_strict { check_strictly(command, body) } else { Ok(()) }
    }
}

#[cold]
fn check_strictly(command: &str, body: &RawDocument) -> Result<(), CommandError> {
    if let Some((_, owner, outside)) = FIELDS.iter().find(|(name, ..)| *name == command) {
        for field in body.iter() {
            let (name, _) = field?;
            if outside.contains(&name) {
                return Err(refused(format!(
                    "BSON field '{owner}.{name}' is not allowed with apiStrict:true."
                )));
            }
        }
    }
    match command {
        "aggregate" => check_pipeline(body.get("pipeline")?, DEPTH_MAX),
        "createIndexes" => check_indexes(body),
        _ => Ok(()),
    }
}

fn check_pipeline(pipeline: Option<RawValue<'_>>, depth: usize) -> Result<(), CommandError> {
    let Some(RawValue::Array(stages)) = pipeline else { return Ok(()) };
    let Some(depth) = depth.checked_sub(1) else { return Ok(()) };
    for stage in stages.iter() {
        let RawValue::Document(stage) = stage? else { continue };
        for field in stage.iter() {
            match field? {
                (name, _) if STAGES.contains(&name) => {
                    return Err(refused(format!(
                        "{name} is not allowed with 'apiStrict: true' in API Version 1"
                    )));
                }
                ("$collStats", RawValue::Document(wanted)) => check_figures(wanted)?,
                ("$lookup" | "$unionWith", RawValue::Document(inner)) => {
                    check_pipeline(inner.get("pipeline")?, depth)?;
                }
                ("$facet", RawValue::Document(inner)) => {
                    for pipeline in inner.iter() {
                        check_pipeline(Some(pipeline?.1), depth)?;
                    }
                }
                ("$setWindowFields", RawValue::Document(inner)) => check_windows(inner)?,
                _ => {}
            }
        }
    }
    Ok(())
}

fn check_figures(wanted: &RawDocument) -> Result<(), CommandError> {
    for field in wanted.iter() {
        if field?.0 != "count" {
            return Err(refused(
                "only the 'count' option to $collStats is supported in API Version 1".into(),
            ));
        }
    }
    Ok(())
}

fn check_windows(stage: &RawDocument) -> Result<(), CommandError> {
    let Some(RawValue::Document(output)) = stage.get("output")? else { return Ok(()) };
    for field in output.iter() {
        if let (_, RawValue::Document(function)) = field?
            && function.get("$linearFill")?.is_some()
        {
            return Err(refused("$linearFill is not allowed with 'apiStrict: true' in API Version 1".into()));
        }
    }
    Ok(())
}

fn check_indexes(body: &RawDocument) -> Result<(), CommandError> {
    let Some(RawValue::Array(specifications)) = body.get("indexes")? else { return Ok(()) };
    for specification in specifications.iter() {
        let RawValue::Document(specification) = specification? else { continue };
        let Some(RawValue::Document(key)) = specification.get("key")? else { continue };
        for field in key.iter() {
            if let (_, RawValue::String("text")) = field? {
                return Err(refused(format!(
                    "Error in specification {} :: caused by :: text indexes cannot be created with apiStrict: true",
                    document_text(specification)
                )));
            }
        }
    }
    Ok(())
}

fn refused(message: String) -> CommandError {
    CommandError::failed(ErrorCode::ApiStrictError, message)
}
