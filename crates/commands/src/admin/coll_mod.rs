//! `collMod`: changes the visibility of an index and the time that its documents live, and the
//! `storageEngine` settings of a collection or an index. The other changes that MongoDB knows are refused.

use std::sync::Arc;

use pando_catalog::{Collection, ID_INDEX, Index, IndexDescription, Namespace};
use pando_document::{Document, DocumentWriter, RawDocument, RawValue, Value};
use pando_query::shell_text::document_text;

use super::existing_indexes::key_and_name;
use super::index_specification::{UnknownOptions, normalise, shown};
use super::{capped_options, index_key_pattern, storage_engine_options, view_definition};
use crate::arguments::{Argument, Arguments, collection_name, whole};
use crate::context::Context;
use crate::validation;
use crate::views::View;
use crate::{CommandError, ErrorCode, Request};

/// A change of an index.
struct IndexChange<'a> {
    which: Which<'a>,
    hidden: Option<bool>,
    /// Seconds.
    expiry: Option<i32>,
    settings: Option<&'a RawDocument>,
}

/// A change of the rule for documents.
#[derive(Default)]
struct RuleChange<'a> {
    validator: Option<&'a RawDocument>,
    level: Option<&'a str>,
    action: Option<&'a str>,
}

impl RuleChange<'_> {
    /// Changes the options. As in MongoDB level and action are spelled out from then on.
    fn carry_out(&self, context: &Context<'_>, namespace: &Namespace) -> Result<(), CommandError> {
        if self.validator.is_none() && self.level.is_none() && self.action.is_none() {
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

/// How a request names an index.
enum Which<'a> {
    ByName(&'a str),
    ByKey(&'a RawDocument),
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
    let (mut foreign, mut not_yet) = (None, None);
    let mut rule = RuleChange::default();
    let mut limits = LimitsChange::default();
    for argument in Arguments::of_command("collMod", request.body) {
        let argument = argument?;
        match argument.name {
            "index" => change = argument.document()?,
            "storageEngine" => settings = settings_change(&argument, engine)?,
            "validator" => rule.validator = argument.document()?,
            "validationLevel" => rule.level = argument.one_of(&["off", "strict", "moderate"])?,
            "validationAction" => rule.action = argument.one_of(&["error", "warn"])?,
            "dryRun" if argument.lenient_boolean()? == Some(true) => not_yet = Some(argument.name),
            "changeStreamPreAndPostImages" if argument.document()?.is_some() => not_yet = Some(argument.name),
            "dryRun" | "changeStreamPreAndPostImages" => {}
            "cappedSize" => limits.size = capped_options::size(&argument)?,
            "cappedMax" => limits.max = capped_options::max(&argument)?,
            "viewOn" | "pipeline" | "expireAfterSeconds" | "timeseries" => foreign = Some(argument),
            _ => argument.refuse_unless_generic()?,
        }
    }
    let change = change.map(|change| parse(change, engine)).transpose();
    if let Err(CommandError::Failed(failure)) = &change
        && matches!(failure.code, ErrorCode::TypeMismatch | ErrorCode::IdlUnknownField)
    {
        // The form of a request is checked before its collection is looked up.
        return Err(CommandError::Failed(failure.clone()));
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
    let change = change?;
    if let Some(settings) = settings {
        let options = storage_engine_options::merged(collection.options(), settings)?;
        context.catalog().change_settings(&namespace, options, context.operation)?;
    }
    rule.carry_out(context, &namespace)?;
    limits.carry_out(context, &namespace)?;
    match change {
        Some(change) => change_index(context, &collection, &namespace, &change, reply),
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

fn parse<'a>(change: &'a RawDocument, engine: &str) -> Result<IndexChange<'a>, CommandError> {
    let (mut name, mut key, mut hidden, mut expiry) = (None, None, None, None);
    let (mut not_yet, mut settings) = (None, None);
    for argument in Arguments::inside("collMod.index", change) {
        let argument = argument?;
        match argument.name {
            "name" => name = argument.string()?,
            "keyPattern" => key = argument.document()?,
            "hidden" => hidden = argument.lenient_boolean()?,
            "storageEngine" => settings = settings_change(&argument, engine)?,
            "expireAfterSeconds" => match argument.integer()? {
                Some(seconds) if seconds < 0 => {
                    return Err(invalid("TTL index 'expireAfterSeconds' option cannot be less than 0"));
                }
                seconds => expiry = seconds.map(|seconds| i32::try_from(seconds).unwrap_or(i32::MAX)),
            },
            "unique" if argument.lenient_boolean()? == Some(true) => not_yet = Some("unique"),
            "prepareUnique" if argument.lenient_boolean()?.is_some() => not_yet = Some("prepareUnique"),
            "unique" | "prepareUnique" => {}
            _ => return Err(argument.unknown()),
        }
    }
    let which = match (name, key) {
        (Some(_), Some(_)) => return Err(invalid("Cannot specify both key pattern and name.")),
        (Some(name), None) => Which::ByName(name),
        (None, Some(key)) => Which::ByKey(key),
        (None, None) => return Err(invalid("Must specify either index name or key pattern.")),
    };
    if let Some(option) = not_yet {
        return Err(CommandError::failed(
            ErrorCode::CommandNotSupported,
            format!("changing '{option}' of an index is not supported yet"),
        ));
    }
    match (hidden, expiry, settings) {
        (Some(_), _, _) | (_, Some(_), _) | (_, _, Some(_)) => {
            Ok(IndexChange { which, hidden, expiry, settings })
        }
        (None, None, None) => Err(invalid("no expireAfterSeconds, hidden, unique, or prepareUnique field")),
    }
}

fn invalid(reason: &str) -> CommandError {
    CommandError::failed(ErrorCode::InvalidOptions, reason)
}

fn change_index(
    context: &Context<'_>,
    collection: &Collection,
    namespace: &Namespace,
    change: &IndexChange<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    check_changeable(collection, change)?;
    let index = find(collection, namespace, &change.which)?;
    if change.expiry.is_some() && has_several_fields(index) {
        return Err(invalid("TTL indexes are single-field indexes, compound indexes do not support TTL"));
    }
    if let Some(settings) = change.settings {
        let specification = storage_engine_options::merged(index.specification(), settings)?;
        let engine = context.catalog().engine().name();
        let specification = normalise(&specification, UnknownOptions::Refused, engine)?;
        context.catalog().change_index_settings(
            namespace,
            index.name(),
            specification.to_raw(),
            context.operation,
        )?;
    }
    if change.hidden.is_none() && change.expiry.is_none() {
        return Ok(());
    }
    let collection = context.catalog().collection(context.database, namespace.collection());
    let collection =
        collection.ok_or_else(|| CommandError::failed(ErrorCode::NamespaceNotFound, "ns does not exist"))?;
    let index = find(&collection, namespace, &change.which)?;
    change_specification(context, namespace, index, change, reply)
}

/// Refuses changes of the indexes that cannot have them.
fn check_changeable(collection: &Collection, change: &IndexChange<'_>) -> Result<(), CommandError> {
    let is_of_id = match change.which {
        Which::ByName(name) => name == ID_INDEX,
        Which::ByKey(key) => index_key_pattern::is_of_id(key),
    };
    let is_primary = |index: IndexDescription| {
        let (key, name) = key_and_name(&index.specification);
        index.is_primary()
            && match change.which {
                Which::ByName(wanted) => name == wanted,
                Which::ByKey(wanted) => index_key_pattern::same(key, wanted),
            }
    };
    let refused = |reason: &str| Err(CommandError::failed(ErrorCode::BadValue, reason));
    if is_of_id && change.expiry.is_some() {
        return Err(invalid("the _id field does not support TTL indexes"));
    }
    if !is_of_id && collection.describe_indexes().into_iter().any(is_primary) {
        return refused("can't change the primary key");
    }
    if is_of_id && change.hidden.is_none() {
        return refused(
            "the index on _id has the settings of its collection: change the collection's own storageEngine",
        );
    }
    if is_of_id {
        return refused("can't hide _id index");
    }
    Ok(())
}

fn has_several_fields(index: &Index) -> bool {
    key_and_name(index.specification()).0.iter().count() > 1
}

/// Changes visibility and expiry in one step, and tells the values before and after.
fn change_specification(
    context: &Context<'_>,
    namespace: &Namespace,
    index: &Index,
    change: &IndexChange<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    let was_hidden = matches!(index.specification().get("hidden")?, Some(value) if value.to_bool());
    let old_expiry = index.specification().get("expireAfterSeconds")?.map(whole);
    let hidden = change.hidden.filter(|hidden| *hidden != was_hidden);
    let expiry = change.expiry.filter(|seconds| old_expiry != Some(i64::from(*seconds)));
    if hidden.is_some() || expiry.is_some() {
        let mut specification = Document::from_raw(index.specification())?;
        if let Some(hidden) = hidden {
            specification.remove("hidden");
            specification.push("hidden", Value::Boolean(hidden));
        }
        if let Some(seconds) = expiry {
            specification.remove("expireAfterSeconds");
            specification.push("expireAfterSeconds", Value::Int32(seconds));
        }
        let engine = context.catalog().engine().name();
        let specification = normalise(&specification.to_raw(), UnknownOptions::Refused, engine)?;
        context.catalog().set_index_specification(
            namespace,
            index.name(),
            specification.to_raw(),
            context.operation,
        )?;
    }
    if let Some(seconds) = change.expiry {
        if let Some(old) = old_expiry {
            reply.append_i64("expireAfterSeconds_old", old);
        }
        reply.append_i64("expireAfterSeconds_new", i64::from(seconds));
    }
    if let Some(hidden) = hidden {
        reply.append("hidden_old", RawValue::Boolean(was_hidden));
        reply.append("hidden_new", RawValue::Boolean(hidden));
    }
    Ok(())
}

fn find<'c>(
    collection: &'c Collection,
    namespace: &Namespace,
    which: &Which<'_>,
) -> Result<&'c Arc<Index>, CommandError> {
    let fits = |index: &&Arc<Index>| match which {
        Which::ByName(name) => index.name() == *name,
        Which::ByKey(wanted) => {
            matches!(index.specification().get("key"), Ok(Some(RawValue::Document(key))) if index_key_pattern::same(key, wanted))
        }
    };
    let mut fitting = collection.indexes().iter().filter(fits);
    let (found, further) = (fitting.next(), fitting.count());
    if let (Which::ByKey(key), 1..) = (which, further) {
        let all: Vec<String> =
            collection.indexes().iter().filter(fits).map(|index| shown(index.specification())).collect();
        let (key, number, all) = (document_text(key), further + 1, all.join(", "));
        return Err(CommandError::failed(
            ErrorCode::AmbiguousIndexKeyPattern,
            format!(
                "index keyPattern {key} matches {number} indexes, must use index name. Conflicting indexes:{all}"
            ),
        ));
    }
    found.ok_or_else(|| {
        let wanted = match which {
            Which::ByName(name) => (*name).to_owned(),
            Which::ByKey(key) => document_text(key),
        };
        CommandError::failed(
            ErrorCode::IndexNotFound,
            format!("cannot find index {wanted} for ns {namespace}"),
        )
    })
}
