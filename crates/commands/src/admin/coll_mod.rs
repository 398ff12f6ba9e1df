//! `collMod`: changes an index, the rule for documents, the limits of a capped collection, the time that
//! documents live, a time series, a view, and the `storageEngine` settings of a collection.

mod index_change;
mod life_change;
mod unique_conversion;

use pando_catalog::{Collection, Namespace};
use pando_document::{Document, DocumentWriter, RawDocument, RawDocumentBuf, RawValue, Value};
use pando_query::time_series::{BUCKETS_PREFIX, Series};

use self::index_change::{IndexChange, Run};
use self::life_change::LifeChange;
use super::create::wants_images;
use super::{capped_options, partition_options, storage_engine_options, view_definition};
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
        context
            .catalog()
            .change_options(namespace, context.operation, |collection| self.options_of(collection))
    }

    fn options_of(&self, collection: &Collection) -> Result<RawDocumentBuf, CommandError> {
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
        Ok(options.to_raw())
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
        if !self.is_wanted() {
            return Ok(());
        }
        context
            .catalog()
            .change_options(namespace, context.operation, |collection| self.options_of(collection))
    }

    fn options_of(&self, collection: &Collection) -> Result<RawDocumentBuf, CommandError> {
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
        Ok(options.to_raw())
    }
}

/// The changes that a request asks for.
#[derive(Default)]
struct Changes<'a> {
    index: Option<Result<IndexChange<'a>, CommandError>>,
    settings: Option<&'a RawDocument>,
    rule: RuleChange<'a>,
    limits: LimitsChange,
    life: LifeChange<'a>,
    partition_by: Option<&'a RawDocument>,
    /// An option of views.
    of_view: Option<&'a str>,
    /// An option that is not carried out yet.
    not_yet: Option<&'a str>,
    is_dry: bool,
}

impl<'a> Changes<'a> {
    fn read(body: &'a RawDocument, engine: &str) -> Result<Changes<'a>, CommandError> {
        let mut changes = Changes::default();
        for argument in Arguments::of_command("collMod", body) {
            let argument = argument?;
            let (rule, limits) = (&mut changes.rule, &mut changes.limits);
            match argument.name {
                "index" => changes.index = IndexChange::read(&argument, engine)?,
                "storageEngine" => changes.settings = settings_change(&argument, engine)?,
                "validator" => rule.validator = argument.document()?,
                "validationLevel" => rule.level = argument.one_of(&["off", "strict", "moderate"])?,
                "validationAction" => rule.action = argument.one_of(&["error", "warn"])?,
                "dryRun" => changes.is_dry = argument.lenient_boolean()? == Some(true),
                // There are none, so that they can be switched off.
                "changeStreamPreAndPostImages" if !wants_images(&argument)? => {}
                "recordPreImages" if argument.lenient_boolean()? != Some(true) => {}
                "changeStreamPreAndPostImages" | "recordPreImages" => changes.not_yet = Some(argument.name),
                "cappedSize" => limits.size = capped_options::size(&argument)?,
                "cappedMax" => limits.max = capped_options::max(&argument)?,
                "expireAfterSeconds" | "timeseries" => changes.life.take(&argument)?,
                "partitionBy" => changes.partition_by = argument.document()?,
                "viewOn" | "pipeline" => changes.of_view = Some(argument.name),
                _ => argument.refuse_unless_generic()?,
            }
        }
        if changes.is_dry && changes.index.is_none() {
            return Err(invalid("dry run mode requires an valid index modification."));
        }
        Ok(changes)
    }

    /// Changes a collection.
    fn carry_out(
        self,
        context: &mut Context<'_>,
        collection: &Collection,
        reply: &mut DocumentWriter<'_>,
    ) -> Result<(), CommandError> {
        let namespace = collection.namespace();
        if let Some(option) = self.of_view {
            return Err(invalid(&format!("option only supported on a view: {option}")));
        }
        if self.limits.is_wanted() && collection.capped_limits().is_none() {
            return Err(invalid("Collection must be capped."));
        }
        if let Some(option) = self.not_yet {
            return Err(CommandError::failed(
                ErrorCode::CommandNotSupported,
                format!("the option '{option}' of collMod is not supported yet"),
            ));
        }
        let expiry = self.life.of_collection(context, collection)?;
        let index = self.index.transpose()?;
        if let Some(index) = index.as_ref().filter(|_| self.is_dry) {
            let is_alone = self.settings.is_none() && !self.rule.is_wanted() && !self.limits.is_wanted();
            let run = if is_alone && expiry.is_none() { Run::Dry } else { Run::DryBesideOthers };
            return index.carry_out(context, collection, run, reply);
        }
        if let Some(settings) = self.settings {
            context.catalog().change_settings(namespace, context.operation, |collection| {
                let merged = storage_engine_options::merged(collection.options(), settings);
                merged.map_err(CommandError::from)
            })?;
        }
        self.rule.carry_out(context, namespace)?;
        self.limits.carry_out(context, namespace)?;
        if let Some(change) = self.partition_by {
            partition_options::change(context, namespace, change)?;
            context.shared.ttl.tell_new_schedule();
        }
        if let Some(expiry) = expiry {
            expiry.set_on(context, namespace)?;
        }
        match index {
            Some(index) => index.carry_out(context, collection, Run::Real, reply),
            None => Ok(()),
        }
    }

    /// Changes a time series.
    fn carry_out_on_series(
        self,
        context: &mut Context<'_>,
        (namespace, series): (&Namespace, &Series),
        buckets: &Collection,
        reply: &mut DocumentWriter<'_>,
    ) -> Result<(), CommandError> {
        let RuleChange { validator, level, action } = &self.rule;
        for (name, is_given) in [
            ("validator", validator.is_some()),
            ("validationLevel", level.is_some()),
            ("validationAction", action.is_some()),
            ("storageEngine", self.settings.is_some()),
            ("partitionBy", self.partition_by.is_some()),
            ("changeStreamPreAndPostImages", self.not_yet.is_some()),
        ] {
            if is_given {
                return Err(invalid(&format!("option not supported on a time-series collection: {name}")));
            }
        }
        if let Some(option) = self.of_view {
            return Err(invalid(&format!("option only supported on a view: {option}")));
        }
        let index = self.index.transpose()?;
        self.life.carry_out_on_series(context, namespace, buckets)?;
        match index {
            Some(index) => index.carry_out_on_series(context, series, buckets, reply),
            None => Ok(()),
        }
    }
}

/// Changes the collection, the time series or the view.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let name = collection_name(request.command()?.1)?;
    let changes = Changes::read(request.body, context.catalog().engine().name())?;
    let namespace = context.namespace(name)?;
    let collection = context.catalog().collection(context.database, name);
    let series = name.strip_prefix(BUCKETS_PREFIX).or(collection.is_none().then_some(name));
    if let Some(series) = series
        && let Some((buckets, of_series)) = context.series(series)?
    {
        let namespace = context.namespace(series)?;
        return changes.carry_out_on_series(context, (&namespace, &of_series), &buckets, reply);
    }
    match collection {
        Some(collection) => changes.carry_out(context, &collection, reply),
        None => match context.view(name)? {
            Some(view) => change_view(context, request, &namespace, view),
            None => Err(CommandError::failed(ErrorCode::NamespaceNotFound, "ns does not exist")),
        },
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
            "timeseries" if argument.document()?.is_none() => {}
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
