//! `create`: an empty collection.
//!
//! Options of collections that Pando does not carry out are refused rather than ignored: a collection without
//! its validator is worse than none. Options that MongoDB refuses are refused in its words.

use pando_catalog::{Drops, Layout, Namespace};
use pando_collation::TextOrder;
use pando_document::{Document, DocumentWriter, RawDocument, RawDocumentBuf, RawValue, Value};
use pando_query::shell_text::document_text;
use pando_query::sort::SortFault;
use pando_query::time_series::BUCKETS_PREFIX;

use super::{
    capped_options, clustered_index, index_key_pattern, index_specification, partition_options,
    storage_engine_options, time_series_options, view_definition,
};
use crate::arguments::{Argument, Arguments, collection_name};
use crate::collation::parse as parse_collation;
use crate::context::Context;
use crate::short_options;
use crate::system_profile::{self, PROFILE_COLLECTION};
use crate::validation;
use crate::views::View;
use crate::{CommandError, ErrorCode, Request};

/// The longest life of a document, in seconds: 68 years.
const EXPIRY_SECONDS_MAX: i64 = i32::MAX as i64;

/// Creates the collection.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let name = collection_name(request.command()?.1)?;
    let mut options = Options { engine: context.catalog().engine().name(), ..Options::default() };
    for argument in Arguments::of_command("create", request.body) {
        options.take(&argument?)?;
    }
    if name == PROFILE_COLLECTION && options.are_of_capped_alone() {
        let kept = options.check(&format!("{}.{name}", context.database))?;
        return system_profile::create_of_size(context.shared, context.database, kept.to_raw());
    }
    let namespace = context.writable(name)?;
    partition_options::complete(&mut options.kept)?;
    let kept = options.check(&namespace.to_string())?;
    let kept = kept.to_raw();
    if let Some(on) = options.view_on {
        let order = options.collation.unwrap_or_default();
        let view = View { on, pipeline: options.pipeline.unwrap_or_default(), order };
        view_definition::create(context, &namespace, &view)?;
        return Ok(());
    }
    if let Some(series) = &options.series {
        if options.collation.is_some_and(|order| !order.is_simple()) {
            return Err(CommandError::failed(
                ErrorCode::CommandNotSupported,
                "a time series collection has no collation other than simple",
            ));
        }
        return time_series_options::create(context, &namespace, series, &Document::from_raw(&kept)?);
    }
    refuse_view_of_name(context, name, &namespace)?;
    if let Some(RawValue::Document(validator)) = kept.get("validator")?
        && context.collection(name)?.is_none()
    {
        validation::check_definition(context, &namespace.to_string(), validator)?;
    }
    let passed_over = storage_engine_options::note_of_passed_over(&kept, options.engine);
    context.create_collection(&namespace, kept)?;
    // One that a transaction creates gets its partitions after the commit.
    let now_ms = context.shared.now_ms();
    context.catalog().keep_partitions(&namespace, (now_ms, Drops::Held), context.operation)?;
    if options.kept.get("partitionBy").is_some() {
        context.shared.ttl.tell_new_schedule();
    }
    if options.own_id_index == Some(true) {
        reply.append_str(
            "note",
            "The autoIndexId option is deprecated and will be removed in a future release",
        );
    } else if let Some(note) = passed_over {
        reply.append_str("note", &note);
    }
    Ok(())
}

/// Refuses the name of a view, and that of a time series, which is one.
fn refuse_view_of_name(context: &Context<'_>, name: &str, namespace: &Namespace) -> Result<(), CommandError> {
    if context.catalog().collection(context.database, name).is_some() {
        return Ok(());
    }
    let Some(view) = context.view(name)? else { return Ok(()) };
    let kind = if view.on.starts_with(BUCKETS_PREFIX) { "timeseries collection" } else { "view" };
    Err(CommandError::failed(ErrorCode::NamespaceExists, format!("A {kind} already exists. NS: {namespace}")))
}

/// Options in the words of the request, checked and as they are kept.
pub(super) fn checked_options(
    context: &Context<'_>,
    namespace: &Namespace,
    given: &RawDocument,
) -> Result<RawDocumentBuf, CommandError> {
    let mut options = Options { engine: context.catalog().engine().name(), ..Options::default() };
    for argument in Arguments::inside("create", given) {
        options.take(&argument?)?;
    }
    partition_options::complete(&mut options.kept)?;
    Ok(options.check(&namespace.to_string())?.to_raw())
}

/// The options of a collection that is loaded, as they are kept.
pub(super) fn options_of_load(
    context: &Context<'_>,
    namespace: &Namespace,
    given: Option<&RawDocument>,
) -> Result<Document, CommandError> {
    let mut options = Options { engine: context.catalog().engine().name(), ..Options::default() };
    if let Some(given) = given {
        for argument in Arguments::inside("beginLoad.options", given) {
            options.take(&argument?)?;
        }
    }
    partition_options::complete(&mut options.kept)?;
    let kept = options.check(&namespace.to_string())?;
    if kept.get("validator").is_some() {
        return Err(not_supported("validator"));
    }
    if options.series.is_some() {
        return Err(not_supported("timeseries"));
    }
    if options.capped {
        return Err(CommandError::failed(
            ErrorCode::Location(16_999),
            "a capped collection is filled by inserts, and not by a load",
        ));
    }
    let default_layout = context.shared.options.default_layout;
    Ok(Document::from_raw(&default_layout.complete(kept.to_raw()))?)
}

/// Options that do not go together with `timeseries`.
const NOT_BESIDE_SERIES: [&str; 13] = [
    "capped",
    "autoIndexId",
    "idIndex",
    "validator",
    "validationLevel",
    "validationAction",
    "viewOn",
    "clusteredIndex",
    "changeStreamPreAndPostImages",
    "layout",
    "primaryKey",
    "partitioned",
    "partitionBy",
];

/// The options of a new collection.
#[derive(Default)]
struct Options {
    engine: &'static str,
    capped: bool,
    /// Bytes of a capped collection.
    size: Option<i64>,
    /// Documents of a capped collection.
    max: Option<i64>,
    /// `autoIndexId`.
    own_id_index: Option<bool>,
    view_on: Option<String>,
    pipeline: Option<RawDocumentBuf>,
    expire_after_seconds: Option<i64>,
    /// `idIndex`.
    id_index: Option<RawDocumentBuf>,
    /// `timeseries`.
    series: Option<Document>,
    /// Options that do not go together with `timeseries`.
    beside_series: Vec<&'static str>,
    collation: Option<TextOrder>,
    /// An option that is not carried out yet.
    not_yet: Option<String>,
    kept: Document,
    /// Settings of the engine in the words of TokuMX.
    short: Document,
}

impl Options {
    fn take(&mut self, argument: &Argument<'_>) -> Result<(), CommandError> {
        self.note_beside_series(argument);
        match argument.name {
            "capped" => self.capped = argument.lenient_boolean()? == Some(true),
            "size" => self.size = capped_options::size(argument)?,
            "max" => self.max = capped_options::max(argument)?,
            "autoIndexId" => self.own_id_index = argument.lenient_boolean()?,
            "idIndex" => {
                if let Some(index) = argument.document()? {
                    self.id_index = Some(index.to_owned());
                    index_specification::check_id_index(index, self.engine)?;
                }
            }
            "storageEngine" => self.take_engine_settings(argument)?,
            short_options::FAST_UPDATES => {
                argument.lenient_boolean()?;
                short_options::log_fast_updates();
            }
            name if short_options::is_short_option(name) => {
                let short = short_options::short_option(name, argument.value, self.engine)?;
                self.short.push(short.0, short.1);
            }
            "layout" if argument.string()?.is_some() => {
                self.kept.push(argument.name, argument.value.to_owned());
            }
            "primaryKey" => self.take_primary_key(argument)?,
            "partitioned" => self.take_partitioned(argument)?,
            "indexOptionDefaults" => self.take_index_defaults(argument)?,
            "validator" => {
                if argument.document()?.is_some_and(|validator| !validator.is_empty()) {
                    self.kept.push(argument.name, argument.value.to_owned());
                }
            }
            "validationLevel" if argument.one_of(&["off", "strict", "moderate"])?.is_some() => {
                self.kept.push(argument.name, argument.value.to_owned());
            }
            "validationAction" if argument.one_of(&["error", "warn"])?.is_some() => {
                self.kept.push(argument.name, argument.value.to_owned());
            }
            "layout" | "validationLevel" | "validationAction" => {}
            "viewOn" => self.take_view(argument)?,
            "pipeline" => {
                argument.documents()?;
                if let RawValue::Array(stages) = argument.value {
                    self.pipeline = Some(stages.as_document().to_owned());
                }
            }
            "expireAfterSeconds" => self.expire_after_seconds = argument.integer()?,
            "collation" => self.take_collation(argument)?,
            "changeStreamPreAndPostImages" if !wants_images(argument)? => {}
            "recordPreImages" if argument.lenient_boolean()? != Some(true) => {}
            "flags" => {
                argument.integer()?;
            }
            "temp" => return Err(invalid("the 'temp' field is an invalid option")),
            "timeseries" => self.series = time_series_options::read(argument)?,
            "encryptedFields" if argument.document()?.is_none() => {}
            "clusteredIndex" => {
                if let Some(index) = clustered_index::normalise(argument)? {
                    self.kept.push(argument.name, Value::Document(index));
                }
            }
            "partitionBy" => self.take_partition_by(argument)?,
            "changeStreamPreAndPostImages" | "encryptedFields" | "recordPreImages" => {
                self.not_yet = Some(argument.name.to_owned())
            }
            _ => argument.refuse_unless_generic()?,
        }
        Ok(())
    }

    /// Whether they ask for a capped collection, and for nothing else of it.
    fn are_of_capped_alone(&self) -> bool {
        let has_others = !self.kept.is_empty() || !self.short.is_empty();
        let is_other_kind = self.view_on.is_some() || self.series.is_some() || self.collation.is_some();
        let is_refused = self.not_yet.is_some() || self.expire_after_seconds.is_some();
        self.capped && !has_others && !is_other_kind && !is_refused
    }

    /// Notes an option that does not go together with `timeseries`.
    fn note_beside_series(&mut self, argument: &Argument<'_>) {
        let beside = NOT_BESIDE_SERIES.iter().find(|name| **name == argument.name && !argument.is_absent());
        self.beside_series.extend(beside.filter(|_| !matches!(argument.value, RawValue::Boolean(false))));
    }

    fn take_partitioned(&mut self, argument: &Argument<'_>) -> Result<(), CommandError> {
        if argument.lenient_boolean()? == Some(true) {
            self.kept.push(argument.name, Value::Boolean(true));
        }
        Ok(())
    }

    fn take_partition_by(&mut self, argument: &Argument<'_>) -> Result<(), CommandError> {
        if let Some(by) = argument.document()? {
            self.kept.push(argument.name, Value::Document(Document::from_raw(by)?));
        }
        Ok(())
    }

    fn take_primary_key(&mut self, argument: &Argument<'_>) -> Result<(), CommandError> {
        let Some(pattern) = argument.document()? else { return Ok(()) };
        index_key_pattern::check(pattern).map_err(|(code, reason)| CommandError::failed(code, reason))?;
        if pattern.iter().count() > index_key_pattern::FIELDS_MAX {
            return Err(CommandError::failed(SortFault::TooWide.code(), "too many compound keys"));
        }
        self.kept.push(argument.name, argument.value.to_owned());
        Ok(())
    }

    fn take_engine_settings(&mut self, argument: &Argument<'_>) -> Result<(), CommandError> {
        let Some(settings) = argument.document()?.filter(|settings| !settings.is_empty()) else {
            return Ok(());
        };
        storage_engine_options::check(settings, self.engine)
            .map_err(|(code, reason)| CommandError::failed(code, reason))?;
        self.kept.push(argument.name, argument.value.to_owned());
        Ok(())
    }

    fn take_index_defaults(&mut self, argument: &Argument<'_>) -> Result<(), CommandError> {
        let Some(defaults) = argument.document()?.filter(|defaults| !defaults.is_empty()) else {
            return Ok(());
        };
        for option in Arguments::inside("create.indexOptionDefaults", defaults) {
            let option = option?;
            match option.name {
                "storageEngine" => {
                    if let Some(settings) = option.document()? {
                        storage_engine_options::check(settings, self.engine)
                            .map_err(|(code, reason)| CommandError::failed(code, reason))?;
                    }
                }
                _ => return Err(option.unknown()),
            }
        }
        self.kept.push(argument.name, argument.value.to_owned());
        Ok(())
    }

    fn take_view(&mut self, argument: &Argument<'_>) -> Result<(), CommandError> {
        match argument.string()? {
            Some("") => Err(CommandError::failed(ErrorCode::BadValue, "'viewOn' cannot be empty")),
            Some(name) => {
                self.view_on = Some(name.to_owned());
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn take_collation(&mut self, argument: &Argument<'_>) -> Result<(), CommandError> {
        let Some(collation) = argument.document()? else { return Ok(()) };
        let order = parse_collation(&with_defaults(collation)?, "create.collation")?;
        if let Some(completed) = order.document() {
            self.kept.push(argument.name, RawValue::Document(completed).to_owned());
        }
        self.collation = Some(order);
        Ok(())
    }

    /// Checks the options against one another; gives those that are kept.
    fn check(&self, namespace: &str) -> Result<Document, CommandError> {
        if self.capped && self.size.is_none() {
            return Err(invalid("the 'size' field is required when 'capped' is true"));
        }
        if !self.capped && (self.size.is_some() || self.max.is_some()) {
            return Err(invalid(
                "the 'capped' field needs to be true when either the 'size' or 'max' fields are present",
            ));
        }
        if self.own_id_index == Some(false) {
            return Err(CommandError::failed(
                ErrorCode::Location(50_001),
                format!(
                    "autoIndexId:false is not allowed for collection {namespace} because it can be replicated"
                ),
            ));
        }
        if let Some(series) = &self.series {
            if let Some(option) = self.beside_series.first() {
                return Err(time_series_options::not_allowed(namespace, option));
            }
            time_series_options::check(namespace, series)?;
        }
        if self.view_on.is_some() {
            return self.check_of_view();
        }
        if self.pipeline.is_some() {
            return Err(invalid("'pipeline' requires 'viewOn' to also be specified"));
        }
        if let Some(option) = self.not_yet.as_deref() {
            return Err(not_supported(option));
        }
        self.check_collation_of_ids()?;
        let is_clustered = self.kept.get("clusteredIndex").is_some();
        if is_clustered && self.capped {
            return Err(CommandError::failed(
                ErrorCode::Location(6_127_800),
                "Clustered capped collection only available with 'enableTestCommands' server parameter",
            ));
        }
        if is_clustered && self.id_index.is_some() {
            return Err(invalid("The 'clusteredIndex' option is not supported with the 'idIndex' option"));
        }
        if is_clustered && (self.kept.get("layout").is_some() || self.kept.get("primaryKey").is_some()) {
            return Err(invalid("the 'clusteredIndex' option is not possible with 'layout' or 'primaryKey'"));
        }
        self.check_partitioned(is_clustered)?;
        self.check_expiry()?;
        let mut kept = Document::new();
        if let (true, Some(size)) = (self.capped, self.size) {
            capped_options::push(&mut kept, size, self.max);
        }
        if self.own_id_index == Some(true) {
            kept.push("autoIndexId", Value::Boolean(true));
        }
        for (name, value) in self.kept.iter() {
            kept.push(name, value.clone());
        }
        if let Some(seconds) = self.expire_after_seconds {
            kept.push("expireAfterSeconds", Value::Int64(seconds));
        }
        let raw = kept.to_raw();
        Layout::of_options(&raw).map_err(|reason| invalid(&reason))?;
        partition_options::check(&raw)?;
        storage_engine_options::add(&mut kept, &self.short, self.engine)
    }

    /// Refuses options that do not go together with partitions.
    fn check_partitioned(&self, is_clustered: bool) -> Result<(), CommandError> {
        if self.kept.get("partitioned").is_none() {
            return Ok(());
        }
        if self.capped {
            let sentence = "a collection cannot be both partitioned and capped";
            return Err(CommandError::failed(ErrorCode::Location(17_266), sentence));
        }
        if is_clustered {
            return Err(invalid("the 'clusteredIndex' option is not possible with 'partitioned'"));
        }
        Ok(())
    }

    /// The index on `_id` has the collation of its collection.
    fn check_collation_of_ids(&self) -> Result<(), CommandError> {
        let Some(RawValue::Document(given)) =
            self.id_index.as_deref().map(|index| index.get("collation")).transpose()?.flatten()
        else {
            return Ok(());
        };
        if parse_collation(given, "collation")? == self.collation.clone().unwrap_or_default() {
            return Ok(());
        }
        Err(CommandError::failed(
            ErrorCode::BadValue,
            "'idIndex' must have the same collation as the collection.",
        ))
    }

    /// The other options of a view mean nothing, and some are refused.
    fn check_of_view(&self) -> Result<Document, CommandError> {
        if let Some(index) = &self.id_index {
            return Err(invalid(&format!(
                "'idIndex' is not allowed with 'viewOn': {}",
                document_text(index)
            )));
        }
        if self.kept.get("partitioned").is_some() {
            return Err(invalid("the 'partitioned' option is not possible with 'viewOn'"));
        }
        if self.kept.get("clusteredIndex").is_some() {
            return Err(CommandError::failed(
                ErrorCode::Location(6_026_500),
                "The 'clusteredIndex' option is not supported with views",
            ));
        }
        self.check_expiry()?;
        Ok(Document::new())
    }

    fn check_expiry(&self) -> Result<(), CommandError> {
        let Some(seconds) = self.expire_after_seconds else { return Ok(()) };
        let reason = match seconds {
            _ if self.kept.get("clusteredIndex").is_none() && self.series.is_none() => {
                "'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' option is specified"
            }
            ..0 => "TTL index 'expireAfterSeconds' option cannot be less than 0",
            0..=EXPIRY_SECONDS_MAX => return Ok(()),
            _ => {
                "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a lower number"
            }
        };
        Err(invalid(reason))
    }
}

/// A collation with the defaults that `create` has, whatever the habits of the locale. As in MongoDB,
/// `backwards` is left to the locale.
fn with_defaults(collation: &RawDocument) -> Result<RawDocumentBuf, CommandError> {
    let mut completed = Document::from_raw(collation)?;
    let defaults = [
        ("caseFirst", Value::from("off")),
        ("alternate", Value::from("non-ignorable")),
        ("normalization", Value::Boolean(false)),
    ];
    for (name, default) in defaults {
        if matches!(collation.get(name)?, None | Some(RawValue::Null | RawValue::Undefined)) {
            completed.insert(name, default);
        }
    }
    Ok(completed.to_raw())
}

/// Whether documents are to be kept as they were before and after each change.
pub(super) fn wants_images(argument: &Argument<'_>) -> Result<bool, CommandError> {
    match argument.document()? {
        Some(images) => Ok(matches!(images.get("enabled")?, Some(value) if value.to_bool())),
        None => Ok(false),
    }
}

fn not_supported(option: &str) -> CommandError {
    CommandError::failed(
        ErrorCode::CommandNotSupported,
        format!("the option '{option}' of create is not supported yet"),
    )
}

fn invalid(reason: &str) -> CommandError {
    CommandError::failed(ErrorCode::InvalidOptions, reason)
}
