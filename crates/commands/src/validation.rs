//! The rule of a collection for its documents: the options `validator`, `validationLevel` and
//! `validationAction`.
//!
//! | level | documents that have to keep the rule |
//! |---|---|
//! | `strict` | every one that is inserted or changed |
//! | `moderate` | every one that is inserted, and those that are changed and kept it before |
//! | `off` | none |
//!
//! With the action `error` the write of another document fails with the details of what is wrong; with `warn`
//! it goes into the log. A request may bypass the rule.
//!
//! # Not here
//! The details (`pando_query::filter`), the options' check when they are set (`admin`).

use pando_catalog::Collection;
use pando_document::{Document, RawDocument, RawDocumentBuf, RawValue, Value};
use pando_query::expression::ParseScope;
use pando_query::filter::{Filter, failure_details};

use crate::context::{Context, Validation};
use crate::error::Failure;
use crate::{CommandError, ErrorCode};

/// Bytes of details that the client is told at most, so that the failures of a batch fit a reply.
const DETAILS_BYTES_MAX: usize = 16 * 1024;

/// The rule of one collection, ready to be asked.
pub(crate) struct Validator {
    filter: Filter,
    text: RawDocumentBuf,
    scope: ParseScope,
    level: Level,
    action: Action,
    namespace: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Strict,
    Moderate,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Error,
    Warn,
}

impl Validator {
    /// The rule that the writes of a request have to keep, if there is one.
    pub fn of(context: &Context<'_>, collection: &Collection) -> Result<Option<Validator>, CommandError> {
        match context.validation {
            Validation::Checked => Validator::of_collection(context, collection),
            Validation::Bypassed => Ok(None),
        }
    }

    /// The rule of a collection, unless it is off.
    pub fn of_collection(
        context: &Context<'_>,
        collection: &Collection,
    ) -> Result<Option<Validator>, CommandError> {
        let options = collection.options();
        let Some(RawValue::Document(text)) = options.get("validator")? else { return Ok(None) };
        if is_off(options)? {
            return Ok(None);
        }
        let is = |name, wanted| -> Result<bool, CommandError> {
            Ok(options.get(name)?.and_then(|value| value.as_str()) == Some(wanted))
        };
        let scope = context.restartable_scope().collated_by(collection.text_order());
        Ok(Some(Validator {
            filter: Filter::parse(text, &scope)?,
            text: text.to_owned(),
            scope,
            level: if is("validationLevel", "moderate")? { Level::Moderate } else { Level::Strict },
            action: if is("validationAction", "warn")? { Action::Warn } else { Action::Error },
            namespace: collection.full_name().to_owned(),
        }))
    }

    /// Whether a document keeps the rule.
    pub fn is_kept(&self, document: &RawDocument) -> Result<bool, CommandError> {
        Ok(self.filter.matches(document)?)
    }

    /// Refuses a new document that does not keep the rule.
    pub fn check_insert(&self, document: &RawDocument) -> Result<(), CommandError> {
        if self.is_kept(document)? {
            return Ok(());
        }
        let id = document.get("_id")?.map_or(Value::Null, |id| id.to_owned());
        if self.action == Action::Warn {
            tracing::warn!(
                namespace = self.namespace,
                ?id,
                "a document does not keep the rule of its collection"
            );
            return Ok(());
        }
        Err(self.failure(id, document).into())
    }

    /// Refuses a change that makes a document which does not keep the rule.
    pub fn check_update(&self, old: &RawDocument, new: &RawDocument) -> Result<(), CommandError> {
        match self.check_insert(new) {
            Err(CommandError::Failed(_)) if self.level == Level::Moderate && !self.is_kept(old)? => Ok(()),
            other => other,
        }
    }

    fn failure(&self, id: Value, document: &RawDocument) -> Failure {
        let mut info = Document::new();
        info.push("failingDocumentId", id);
        if let Ok(details) = failure_details(&self.text, document, &self.scope) {
            if details.to_raw().as_bytes().len() <= DETAILS_BYTES_MAX {
                info.push("details", details);
            } else {
                let mut short = Document::new();
                short.push("reason", "the details are too large to be shown");
                info.push("details", short);
            }
        }
        let mut failure = Failure::new(ErrorCode::DocumentValidationFailure, "Document failed validation");
        failure.details.push("errInfo", info);
        failure
    }
}

fn is_off(options: &RawDocument) -> Result<bool, CommandError> {
    Ok(options.get("validationLevel")?.and_then(|level| level.as_str()) == Some("off"))
}

/// Checks a rule that is to be set.
pub(crate) fn check_definition(
    context: &Context<'_>,
    full_name: &str,
    text: &RawDocument,
) -> Result<(), CommandError> {
    if matches!(context.database, "admin" | "local" | "config") {
        let database = context.database;
        return Err(CommandError::failed(
            ErrorCode::InvalidOptions,
            format!(
                "Document validators are not allowed on collection {full_name} in the {database} internal database"
            ),
        ));
    }
    if full_name[context.database.len() + 1..].starts_with("system.") {
        return Err(CommandError::failed(
            ErrorCode::InvalidOptions,
            format!("Document validators not allowed on system collection {full_name}"),
        ));
    }
    refuse_unstable(text, Place::Top)?;
    Filter::parse(text, &context.parse_scope())?;
    Ok(())
}

/// Where operators stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At the top of the rule, where the parser refuses those of fields.
    Top,
    Within,
}

/// Refuses operators whose answer depends on more than the document. The nesting of documents is bounded.
fn refuse_unstable(document: &RawDocument, place: Place) -> Result<(), CommandError> {
    for field in document.iter() {
        let (name, value) = field?;
        let refused = |code, reason: String| Err(CommandError::failed(code, reason));
        match name {
            "$text" | "$where" => {
                return refused(ErrorCode::BadValue, format!("{name} is not allowed in this context"));
            }
            "$near" | "$nearSphere" | "$geoNear" if place == Place::Within => {
                let reason = "$geoNear, $near, and $nearSphere are not allowed in this context";
                return refused(ErrorCode::Location(5_626_500), reason.to_owned());
            }
            "$function" => {
                let reason = "$function cannot be used inside a validator.";
                return refused(ErrorCode::Location(4_660_800), reason.to_owned());
            }
            "$rand" | "$sampleRate" => {
                let reason = "$rand not allowed inside collection validators";
                return refused(ErrorCode::Location(3_040_500), reason.to_owned());
            }
            "$jsonSchema" | "$literal" => continue,
            _ => {}
        }
        match value {
            RawValue::Document(inner) => refuse_unstable(inner, Place::Within)?,
            RawValue::Array(inner) => refuse_unstable(inner.as_document(), Place::Within)?,
            _ => {}
        }
    }
    Ok(())
}
