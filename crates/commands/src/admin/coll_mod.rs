//! `collMod`: changes an index, the rule for documents, the limits of a capped collection, a view, and the
//! `storageEngine` settings of a collection. The other changes that MongoDB knows are refused.

mod index_change;
mod unique_conversion;

use pando_catalog::Namespace;
use pando_document::{Document, DocumentWriter, RawDocument, RawValue, Value};

use self::index_change::{IndexChange, Run};
use super::{capped_options, storage_engine_options, view_definition};
use crate::arguments::{Argument, Arguments, collection_name};
use crate::context::Context;
use crate::validation;
use crate::views::View;
use crate::{CommandError, ErrorCode, Request};

/// A change of the rule for documents.
#[derive(Default)]
struct RuleChange<'a> {
    validator: Option<&'a RawDocument>,
    level: Option<&'a str>,
    action: Option<&'a str>,
}

impl RuleChange<'_> {
    fn is_wanted(&self) -> bool {
        self.validator.is_some() || self.level.is_some() || self.action.is_some()
    }

    /// Changes the options. As in MongoDB level and action are spelled out from then on.
    fn carry_out(&self, context: &Context<'_>, namespace: &Namespace) -> Result<(), CommandError> {
        if !self.is_wanted() {
            return Ok(());
        }
        if let Some(validator) = self.validator.filter(|validator| !validator.is_empty()) {
            validation::check_definition(context, &namespace.to_string(), validator).map_err(|error| {
                match error {
                    CommandError::Failed(mut failure) if failure.code != ErrorCode::InvalidOptions => {
                        failure.message = format!(
                            "Parsing of collection validator failed :: caused by :: {}",
                            failure.message
                        );
                        CommandError::Failed(failure)
                    }
                    other => other,
                }
            })?;
        }
        let collection = context.catalog().collection(namespace.database(), namespace.collection());
        let collection = collection
            .ok_or_else(|| CommandError::failed(ErrorCode::NamespaceNotFound, "ns does not exist"))?;
        let mut options = Document::from_raw(collection.options())?;
        let validator = match self.validator {
            Some(validator) if validator.is_empty() => None,
            Some(validator) => Some(Value::Document(Document::from_raw(validator)?)),
            None => options.get("validator").cloned(),
        };
        let text = |given: Option<&str>, name, default: &str| {
            let had = options.get(name).and_then(Value::as_str).unwrap_or(default);
            Value::from(given.unwrap_or(had))
        };
        let level = text(self.level, "validationLevel", "strict");
        let action = text(self.action, "validationAction", "error");
        for (name, value) in
            [("validator", validator), ("validationLevel", Some(level)), ("validationAction", Some(action))]
        {
            options.remove(name);
            if let Some(value) = value {
                options.push(name, value);
            }
        }
        Ok(context.catalog().set_options(namespace, options.to_raw(), context.operation)?)
    }
}

/// A change of the limits of a capped collection. The next insert removes what is too much.
#[derive(Default)]
struct LimitsChange {
    size: Option<i64>,
    max: Option<i64>,
}

impl LimitsChange {
    fn is_wanted(&self) -> bool {
        self.size.is_some() || self.max.is_some()
    }

    fn carry_out(&self, context: &Context<'_>, namespace: &Namespace) -> Result<(), CommandError> {
        let found = context.catalog().collection(namespace.database(), namespace.collection());
        let Some(collection) = found.filter(|_| self.is_wanted()) else { return Ok(()) };
        let mut options = Document::new();
        let had = |name| collection.options().get(name).ok().flatten().and_then(|had| had.as_i64_exact());
        let size = self.size.or(had("size")).unwrap_or(capped_options::BYTES_MAX);
        capped_options::push(&mut options, size, self.max.or(had("max")));
        for option in collection.options().iter() {
            let (name, value) = option?;
            if !matches!(name, "capped" | "size" | "max") {
                options.push(name, value.to_owned());
            }
        }
        Ok(context.catalog().set_options(namespace, options.to_raw(), context.operation)?)
    }
}

/// Changes the index.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let name = collection_name(request.command()?.1)?;
    let (mut change, mut settings) = (None, None);
    let engine = context.catalog().engine().name();
    let (mut foreign, mut not_yet, mut is_dry) = (None, None, false);
    let mut rule = RuleChange::default();
    let mut limits = LimitsChange::default();
    for argument in Arguments::of_command("collMod", request.body) {
        let argument = argument?;
        match argument.name {
            "index" => change = IndexChange::read(&argument, engine)?,
            "storageEngine" => settings = settings_change(&argument, engine)?,
            "validator" => rule.validator = argument.document()?,
            "validationLevel" => rule.level = argument.one_of(&["off", "strict", "moderate"])?,
            "validationAction" => rule.action = argument.one_of(&["error", "warn"])?,
            "dryRun" => is_dry = argument.lenient_boolean()? == Some(true),
            "changeStreamPreAndPostImages" if argument.document()?.is_some() => not_yet = Some(argument.name),
            "changeStreamPreAndPostImages" => {}
            "cappedSize" => limits.size = capped_options::size(&argument)?,
            "cappedMax" => limits.max = capped_options::max(&argument)?,
            "viewOn" | "pipeline" | "expireAfterSeconds" | "timeseries" => foreign = Some(argument),
            _ => argument.refuse_unless_generic()?,
        }
    }
    let namespace = context.namespace(name)?;
    let Some(collection) = context.catalog().collection(context.database, name) else {
        return match context.view(name)? {
            Some(view) => change_view(context, request, &namespace, view),
            None => Err(CommandError::failed(ErrorCode::NamespaceNotFound, "ns does not exist")),
        };
    };
    if let Some(argument) = foreign {
        return Err(not_for_this_collection(&argument));
    }
    if limits.is_wanted() && collection.capped_limits().is_none() {
        return Err(invalid("Collection must be capped."));
    }
    if let Some(option) = not_yet {
        return Err(CommandError::failed(
            ErrorCode::CommandNotSupported,
            format!("the option '{option}' of collMod is not supported yet"),
        ));
    }
    let change = change.transpose()?;
    if is_dry {
        let change = change.ok_or_else(|| invalid("dry run mode requires an valid index modification."))?;
        let is_alone = settings.is_none() && !rule.is_wanted() && !limits.is_wanted();
        let run = if is_alone { Run::Dry } else { Run::DryBesideOthers };
        return change.carry_out(context, &collection, run, reply);
    }
    if let Some(settings) = settings {
        let options = storage_engine_options::merged(collection.options(), settings)?;
        context.catalog().change_settings(&namespace, options, context.operation)?;
    }
    rule.carry_out(context, &namespace)?;
    limits.carry_out(context, &namespace)?;
    match change {
        Some(change) => change.carry_out(context, &collection, Run::Real, reply),
        None => Ok(()),
    }
}

/// Changes the definition of a view.
fn change_view(
    context: &mut Context<'_>,
    request: &Request<'_>,
    namespace: &Namespace,
    mut view: View,
) -> Result<(), CommandError> {
    for argument in Arguments::of_command("collMod", request.body) {
        let argument = argument?;
        match argument.name {
            "index" if argument.document()?.is_some_and(makes_unique) => {
                return Err(CommandError::failed(
                    ErrorCode::CommandNotSupportedOnView,
                    format!("Namespace {namespace} is a view, not a collection"),
                ));
            }
            "viewOn" => match argument.string()? {
                Some("") => {
                    return Err(CommandError::failed(ErrorCode::BadValue, "'viewOn' cannot be empty"));
                }
                Some(name) => view.on = name.to_owned(),
                None => {}
            },
            "pipeline" => {
                argument.documents()?;
                if let RawValue::Array(stages) = argument.value {
                    view.pipeline = stages.as_document().to_owned();
                }
            }
            name @ ("index"
            | "validator"
            | "validationLevel"
            | "validationAction"
            | "expireAfterSeconds"
            | "timeseries"
            | "cappedSize"
            | "cappedMax"
            | "changeStreamPreAndPostImages") => {
                return Err(invalid(&format!("option not supported on a view: {name}")));
            }
            _ => argument.refuse_unless_generic()?,
        }
    }
    view_definition::replace(context, namespace, &view)
}

/// Whether a change of an index makes it unique.
fn makes_unique(change: &RawDocument) -> bool {
    matches!(change.get("unique"), Ok(Some(value)) if value.to_bool())
}

/// MongoDB's refusal of options for kinds of collections that this server does not have.
fn not_for_this_collection(argument: &Argument<'_>) -> CommandError {
    let reason = match argument.name {
        "expireAfterSeconds" => {
            "'expireAfterSeconds' option is only supported on collections clustered by _id".to_owned()
        }
        "timeseries" => "option only supported on a time-series collection: isTimeseriesNamespace".to_owned(),
        name => format!("option only supported on a view: {name}"),
    };
    CommandError::failed(ErrorCode::InvalidOptions, reason)
}

/// The settings of `storageEngine`, if they can be meant for this server.
fn settings_change<'a>(
    argument: &Argument<'a>,
    engine: &str,
) -> Result<Option<&'a RawDocument>, CommandError> {
    let settings = argument.document()?;
    if let Some(settings) = settings {
        storage_engine_options::check(settings, engine)
            .map_err(|(code, reason)| CommandError::failed(code, reason))?;
    }
    Ok(settings)
}

fn invalid(reason: &str) -> CommandError {
    CommandError::failed(ErrorCode::InvalidOptions, reason)
}
