//! `$merge`: the documents of a pipeline are written into a collection one by one. The fields of `on` say
//! which document of the target belongs to one of the pipeline. There has to be a unique index on them.
//!
//! | whenMatched | as a statement |
//! |---|---|
//! | `replace` | update by the document |
//! | `merge` | update by `$set` of its fields |
//! | `keepExisting` | update by `$setOnInsert` of its fields, an upsert |
//! | `fail` | insert |
//! | a pipeline | update by the pipeline, whose variable `new` is the document |
//!
//! An update is an upsert where `whenNotMatched` is `insert`. That of a pipeline inserts the document of the
//! source. Statements go in batches. What was written before a failure stays, as in MongoDB.

mod writer;

use pando_catalog::{ID_INDEX, IndexDescription, Namespace, Uniqueness};
use pando_collation::TextOrder;
use pando_document::{Document, RawArray, RawDocument, RawDocumentBuf, RawValue, Value};
use pando_query::expression::{Expression, FieldPath, ParseScope};

pub(super) use self::writer::MergeWriter;
use super::write_stage::{not_string, target};
use crate::arguments::check_named_once;
use crate::context::Context;
use crate::{CommandError, ErrorCode};

/// A parsed `$merge`.
pub(super) struct Merge {
    target: Namespace,
    on: Vec<String>,
    matched: WhenMatched,
    not_matched: WhenNotMatched,
    /// Variables of a pipeline, beside `new`.
    variables: Vec<(String, Expression)>,
}

enum WhenMatched {
    Replace,
    KeepExisting,
    Merge,
    Fail,
    Pipeline(RawDocumentBuf),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WhenNotMatched {
    Insert,
    Discard,
    Fail,
}

fn fault(code: i32, sentence: impl Into<String>) -> CommandError {
    CommandError::failed(ErrorCode::Location(code), sentence)
}

impl Merge {
    /// Reads the fields of the stage.
    pub fn parse(database: &str, argument: RawValue<'_>, scope: &ParseScope) -> Result<Merge, CommandError> {
        let options = match argument {
            RawValue::String(collection) => {
                return Ok(Merge {
                    target: checked_target(database, collection)?,
                    on: vec!["_id".to_owned()],
                    matched: WhenMatched::Merge,
                    not_matched: WhenNotMatched::Insert,
                    variables: Vec::new(),
                });
            }
            RawValue::Document(options) => options,
            other => {
                return Err(CommandError::failed(
                    ErrorCode::TypeMismatch,
                    format!(
                        "$merge requires a string or object argument, but found {}",
                        other.element_type().alias()
                    ),
                ));
            }
        };
        let Fields { into, on, matched, not_matched, variables } = Fields::read(database, options)?;
        let target = into.ok_or_else(|| {
            CommandError::failed(
                ErrorCode::IdlFailedToParse,
                "BSON field '$merge.into' is missing but a required field",
            )
        })?;
        let matched = matched.unwrap_or(WhenMatched::Merge);
        let not_matched = not_matched.unwrap_or(WhenNotMatched::Insert);
        check_modes(&matched, not_matched)?;
        let variables = match (&matched, variables) {
            (_, None) => Vec::new(),
            (WhenMatched::Pipeline(_), Some(variables)) => parse_variables(variables, scope)?,
            (matched, Some(_)) => {
                let mode = matched.name();
                return Err(fault(
                    51199,
                    format!("Cannot use 'let' variables with 'whenMatched: {mode}' mode"),
                ));
            }
        };
        let on = on.unwrap_or_else(|| vec!["_id".to_owned()]);
        Ok(Merge { target, on, matched, not_matched, variables })
    }

    /// The collection that takes the documents.
    pub fn target(&self) -> &Namespace {
        &self.target
    }

    /// The stage as `explain` shows it.
    pub fn shown(&self) -> Document {
        let (mut into, mut merge, mut shown) = (Document::new(), Document::new(), Document::new());
        into.push("db", self.target.database());
        into.push("coll", self.target.collection());
        merge.push("into", into);
        match self.on.as_slice() {
            [only] => merge.push("on", only.as_str()),
            several => {
                let paths = several.iter().map(|path| Value::String(path.clone()));
                merge.push("on", Value::Array(paths.collect()));
            }
        }
        match &self.matched {
            WhenMatched::Pipeline(stages) => {
                merge.push("whenMatched", RawValue::Array(RawArray::from_document(stages)).to_owned());
            }
            other => merge.push("whenMatched", other.name()),
        }
        merge.push("whenNotMatched", self.not_matched.name());
        shown.push("$merge", merge);
        shown
    }

    /// Refuses a target without an index by which the fields of `on` are unique.
    fn check_unique(&self, context: &Context<'_>, order: &TextOrder) -> Result<(), CommandError> {
        let found = context.catalog().collection(self.target.database(), self.target.collection());
        if self.on == ["_id"] {
            return Ok(());
        }
        let is_unique = |index: &IndexDescription| {
            (index.unique == Uniqueness::Unique || index.name == ID_INDEX)
                && index.specification.get("partialFilterExpression").is_ok_and(|filter| filter.is_none())
                && index.text_order == *order
                && index.fields.len() == self.on.len()
                && index.fields.iter().all(|field| self.on.contains(&field.path))
        };
        if found.is_some_and(|target| target.describe_indexes().iter().any(is_unique)) {
            return Ok(());
        }
        Err(fault(51183, "Cannot find index to verify that join fields will be unique"))
    }
}

impl WhenMatched {
    fn name(&self) -> &'static str {
        match self {
            WhenMatched::Replace => "replace",
            WhenMatched::KeepExisting => "keepExisting",
            WhenMatched::Merge => "merge",
            WhenMatched::Fail => "fail",
            WhenMatched::Pipeline(_) => "pipeline",
        }
    }
}

impl WhenNotMatched {
    fn name(self) -> &'static str {
        match self {
            WhenNotMatched::Insert => "insert",
            WhenNotMatched::Discard => "discard",
            WhenNotMatched::Fail => "fail",
        }
    }
}

/// The fields as they are written.
#[derive(Default)]
struct Fields<'o> {
    into: Option<Namespace>,
    on: Option<Vec<String>>,
    matched: Option<WhenMatched>,
    not_matched: Option<WhenNotMatched>,
    variables: Option<&'o RawDocument>,
}

impl<'o> Fields<'o> {
    fn read(database: &str, options: &'o RawDocument) -> Result<Fields<'o>, CommandError> {
        check_named_once("$merge", options, &["into", "on", "whenMatched", "whenNotMatched", "let"])?;
        let mut fields = Fields::default();
        for option in options.iter() {
            match option? {
                ("into", value) => fields.into = Some(parse_into(database, value)?),
                ("on", value) => fields.on = Some(parse_on(value)?),
                ("whenMatched", RawValue::Null)
                | ("whenNotMatched", RawValue::Null)
                | ("let", RawValue::Null) => {}
                ("whenMatched", value) => fields.matched = Some(parse_matched(value)?),
                ("whenNotMatched", value) => fields.not_matched = Some(parse_not_matched(value)?),
                ("let", RawValue::Document(variables)) => fields.variables = Some(variables),
                ("let", other) => {
                    return Err(CommandError::failed(
                        ErrorCode::TypeMismatch,
                        format!(
                            "BSON field '$merge.let' is the wrong type '{}', expected type 'object'",
                            other.element_type().alias()
                        ),
                    ));
                }
                (name, _) => {
                    let sentence = format!("BSON field '$merge.{name}' is an unknown field.");
                    return Err(CommandError::failed(ErrorCode::IdlUnknownField, sentence));
                }
            }
        }
        Ok(fields)
    }
}

fn parse_into(database: &str, value: RawValue<'_>) -> Result<Namespace, CommandError> {
    let options = match value {
        RawValue::String("") => {
            return Err(fault(5_786_800, "$merge 'into' field cannot be an empty string"));
        }
        RawValue::String(collection) => return checked_target(database, collection),
        RawValue::Document(options) => options,
        other => {
            return Err(fault(
                51178,
                format!(
                    "$merge 'into' field  must be either a string or an object, but found {}",
                    other.element_type().alias()
                ),
            ));
        }
    };
    check_named_once("into", options, &["db", "coll"])?;
    let (mut own, mut collection) = (database, "");
    for option in options.iter() {
        match option? {
            ("db", RawValue::String("")) | ("coll", RawValue::Null) => {}
            ("db", RawValue::String(name)) => own = name,
            ("coll", RawValue::String(name)) => collection = name,
            (name @ ("db" | "coll"), other) => return Err(not_string(&format!("into.{name}"), other)),
            (name, _) => {
                let sentence = format!("BSON field 'into.{name}' is an unknown field.");
                return Err(CommandError::failed(ErrorCode::IdlUnknownField, sentence));
            }
        }
    }
    if collection.is_empty() {
        return Err(fault(
            5_786_801,
            "$merge 'into' field must specify a 'coll' that is not empty, null or undefined",
        ));
    }
    checked_target(own, collection)
}

fn checked_target(database: &str, collection: &str) -> Result<Namespace, CommandError> {
    if collection.is_empty() {
        return Err(CommandError::failed(
            ErrorCode::InvalidNamespace,
            format!("Invalid $merge target namespace: '{database}.'"),
        ));
    }
    if collection.starts_with("system.") {
        return Err(fault(31319, format!("Cannot $merge to special collection: {collection}")));
    }
    if matches!(database, "admin" | "config" | "local") {
        return Err(fault(31320, format!("Cannot $merge to internal database: {database}")));
    }
    target(database, collection)
}

fn parse_on(value: RawValue<'_>) -> Result<Vec<String>, CommandError> {
    let mut paths = Vec::new();
    match value {
        RawValue::String(path) => paths.push(path.to_owned()),
        RawValue::Array(array) => {
            for element in array.iter() {
                let element = element?;
                let Some(path) = element.as_str() else {
                    let found = element.element_type().alias();
                    return Err(fault(
                        51134,
                        format!("$merge 'on' array elements must be strings, but found {found}"),
                    ));
                };
                if paths.iter().any(|known| known == path) {
                    return Err(fault(31465, format!("Found a duplicate field '{path}'")));
                }
                paths.push(path.to_owned());
            }
        }
        other => {
            return Err(fault(
                51186,
                format!(
                    "$merge 'on' field  must be either a string or an array of strings, but found {}",
                    other.element_type().alias()
                ),
            ));
        }
    }
    if paths.is_empty() {
        return Err(fault(51187, "If explicitly specifying $merge 'on', must include at least one field"));
    }
    for path in &paths {
        FieldPath::parse(path)?;
    }
    Ok(paths)
}

fn parse_matched(value: RawValue<'_>) -> Result<WhenMatched, CommandError> {
    match value {
        RawValue::String("replace") => Ok(WhenMatched::Replace),
        RawValue::String("keepExisting") => Ok(WhenMatched::KeepExisting),
        RawValue::String("merge") => Ok(WhenMatched::Merge),
        RawValue::String("fail") => Ok(WhenMatched::Fail),
        RawValue::String(other) => Err(CommandError::failed(
            ErrorCode::BadValue,
            format!("Enumeration value '{other}' for field 'whenMatched' is not a valid value."),
        )),
        RawValue::Array(stages) => {
            for stage in stages.iter() {
                if !matches!(stage?, RawValue::Document(_)) {
                    return Err(CommandError::failed(
                        ErrorCode::TypeMismatch,
                        "Each element of the 'pipeline' array must be an object",
                    ));
                }
            }
            Ok(WhenMatched::Pipeline(stages.as_document().to_owned()))
        }
        other => Err(fault(
            51191,
            format!(
                "$merge 'whenMatched' field  must be either a string or an array, but found {}",
                other.element_type().alias()
            ),
        )),
    }
}

fn parse_not_matched(value: RawValue<'_>) -> Result<WhenNotMatched, CommandError> {
    match value {
        RawValue::String("insert") => Ok(WhenNotMatched::Insert),
        RawValue::String("discard") => Ok(WhenNotMatched::Discard),
        RawValue::String("fail") => Ok(WhenNotMatched::Fail),
        RawValue::String(other) => Err(CommandError::failed(
            ErrorCode::BadValue,
            format!("Enumeration value '{other}' for field '$merge.whenNotMatched' is not a valid value."),
        )),
        other => Err(not_string("$merge.whenNotMatched", other)),
    }
}

/// Refuses the modes that do not go together.
fn check_modes(matched: &WhenMatched, not_matched: WhenNotMatched) -> Result<(), CommandError> {
    let inserts_only = matches!(matched, WhenMatched::KeepExisting | WhenMatched::Fail);
    if !inserts_only || not_matched == WhenNotMatched::Insert {
        return Ok(());
    }
    let (matched, not_matched) = (matched.name(), not_matched.name());
    Err(fault(
        51181,
        format!(
            "Combination of $merge modes 'whenMatched: {matched}' and 'whenNotMatched: {not_matched}' is not supported"
        ),
    ))
}

fn parse_variables(
    variables: &RawDocument,
    scope: &ParseScope,
) -> Result<Vec<(String, Expression)>, CommandError> {
    // Their names are checked as those of every command's `let`.
    let mut parsed = Vec::new();
    for variable in variables.iter() {
        let (name, value) = variable?;
        if name == "new" {
            if value.as_str() != Some("$$ROOT") {
                return Err(fault(
                    51273,
                    "'let' may not define a value for the reserved 'new' variable other than '$$ROOT'",
                ));
            }
            continue;
        }
        ParseScope::check_user_name(name)?;
        parsed.push((name.to_owned(), Expression::parse(value, scope)?));
    }
    Ok(parsed)
}
