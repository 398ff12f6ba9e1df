//! The change of an index by `collMod`.
//!
//! # Steps
//! 1. The form is read, before the collection is looked up.
//! 2. The index is found, and told what it is: unique, *prepared* (writes add no further shared keys), or
//!    neither. Only a prepared one can become unique.
//! 3. Visibility, expiry and preparation change in one commit of the catalog. An index that becomes unique is
//!    built anew beside the old one, and takes its place in one commit (`unique_conversion`).

use std::sync::Arc;

use pando_catalog::{Collection, ID_INDEX, Index, Namespace, Uniqueness};
use pando_document::{Document, DocumentWriter, RawDocument, RawValue, Value};
use pando_query::shell_text::document_text;
use pando_query::time_series::{ORIGINAL_SPECIFICATION, Series};

use super::{invalid, settings_change, unique_conversion};
use crate::admin::existing_indexes::key_and_name;
use crate::admin::index_specification::{UnknownOptions, normalise};
use crate::admin::specification_text::shown;
use crate::admin::{index_key_pattern, storage_engine_options};
use crate::arguments::{Argument, Arguments, whole};
use crate::context::Context;
use crate::{CommandError, ErrorCode};

/// A change of an index.
pub(super) struct IndexChange<'a> {
    which: Which<'a>,
    hidden: Option<bool>,
    /// Seconds.
    expiry: Option<i32>,
    prepared: Option<bool>,
    unique: Option<bool>,
    settings: Option<&'a RawDocument>,
}

/// Whether a request makes its changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Run {
    /// It does.
    Real,
    /// It only asks whether an index can become unique.
    Dry,
    /// The same, but it has changes of the collection, too.
    DryBesideOthers,
}

/// How a request names an index.
enum Which<'a> {
    ByName(&'a str),
    ByKey(&'a RawDocument),
}

impl<'a> IndexChange<'a> {
    /// Reads the form. A wrong form is told at once, and another fault when the collection is known.
    pub(super) fn read(
        argument: &Argument<'a>,
        engine: &str,
    ) -> Result<Option<Result<IndexChange<'a>, CommandError>>, CommandError> {
        let Some(change) = argument.document()? else { return Ok(None) };
        match IndexChange::parse(change, engine) {
            Err(CommandError::Failed(failure))
                if matches!(failure.code, ErrorCode::TypeMismatch | ErrorCode::IdlUnknownField) =>
            {
                Err(CommandError::Failed(failure))
            }
            parsed => Ok(Some(parsed)),
        }
    }

    fn parse(change: &'a RawDocument, engine: &str) -> Result<IndexChange<'a>, CommandError> {
        let (mut name, mut key, mut hidden, mut expiry) = (None, None, None, None);
        let (mut prepared, mut unique, mut settings) = (None, None, None);
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
                "unique" => unique = argument.lenient_boolean()?,
                "prepareUnique" => prepared = argument.lenient_boolean()?,
                _ => return Err(argument.unknown()),
            }
        }
        let which = match (name, key) {
            (Some(_), Some(_)) => return Err(invalid("Cannot specify both key pattern and name.")),
            (Some(name), None) => Which::ByName(name),
            (None, Some(key)) => Which::ByKey(key),
            (None, None) => return Err(invalid("Must specify either index name or key pattern.")),
        };
        Ok(IndexChange { which, hidden, expiry, prepared, unique, settings })
    }

    /// Refuses a change that an index of a time series cannot have.
    fn check_of_series(&self) -> Result<(), CommandError> {
        match (self.unique, self.prepared) {
            (Some(_), _) => Err(invalid(
                "Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first.",
            )),
            (None, Some(_)) => {
                Err(invalid("cannot set 'prepareUnique' for indexes of a time-series collection."))
            }
            (None, None) => Ok(()),
        }
    }

    /// Changes the index of the buckets of a time series.
    pub(super) fn carry_out_on_series(
        &self,
        context: &Context<'_>,
        series: &Series,
        buckets: &Collection,
        reply: &mut DocumentWriter<'_>,
    ) -> Result<(), CommandError> {
        let of_buckets;
        let which = match self.which {
            Which::ByKey(key) => {
                of_buckets = series.bucket_key_pattern(key);
                Which::ByKey(&of_buckets)
            }
            Which::ByName(name) => Which::ByName(name),
        };
        find(buckets, buckets.namespace(), &which)?;
        self.check_of_series()?;
        let IndexChange { hidden, expiry, prepared, unique, settings, .. } = *self;
        let change = IndexChange { which, hidden, expiry, prepared, unique, settings };
        change.carry_out(context, buckets, Run::Real, reply)
    }

    /// Whether visibility, expiry or settings change.
    fn has_others(&self) -> bool {
        self.hidden.is_some() || self.expiry.is_some() || self.settings.is_some()
    }

    /// Changes the index.
    pub(super) fn carry_out(
        &self,
        context: &Context<'_>,
        collection: &Collection,
        run: Run,
        reply: &mut DocumentWriter<'_>,
    ) -> Result<(), CommandError> {
        let namespace = collection.namespace();
        if run != Run::Real && self.unique != Some(true) {
            return Err(invalid("dry run mode requires an index modification with unique: true."));
        }
        if !self.has_others() && self.prepared.is_none() && self.unique.is_none() {
            return Err(invalid("no expireAfterSeconds, hidden, unique, or prepareUnique field"));
        }
        if self.unique == Some(false) {
            return Err(CommandError::failed(ErrorCode::BadValue, "Cannot make index non-unique"));
        }
        if self.has_others() {
            check_changeable(collection, self)?;
        } else if is_of_id(&self.which) || is_primary(collection, &self.which) {
            // The documents' own key is unique as it is.
            return Ok(());
        }
        let index = find(collection, namespace, &self.which)?;
        if run != Run::Real {
            return self.rehearse(context, collection, index, run);
        }
        let step = UniqueStep::of(self, index)?;
        if self.expiry.is_some() && has_several_fields(index) {
            return Err(invalid("TTL indexes are single-field indexes, compound indexes do not support TTL"));
        }
        if let Some(settings) = self.settings {
            let engine = context.catalog().engine().name();
            context.catalog().change_index_settings(namespace, index.name(), context.operation, |index| {
                let specification = storage_engine_options::merged(index.specification(), settings)?;
                Ok::<_, CommandError>(normalise(&specification, UnknownOptions::Refused, engine)?.to_raw())
            })?;
        }
        if self.hidden.is_none() && self.expiry.is_none() && step == UniqueStep::Stays {
            return Ok(());
        }
        let collection = context.catalog().collection(context.database, namespace.collection());
        let collection = collection
            .ok_or_else(|| CommandError::failed(ErrorCode::NamespaceNotFound, "ns does not exist"))?;
        let index = find(&collection, namespace, &self.which)?;
        self.change_specification(context, namespace, index, step, reply)
    }

    /// Tells whether the index can become unique.
    fn rehearse(
        &self,
        context: &Context<'_>,
        collection: &Collection,
        index: &Arc<Index>,
        run: Run,
    ) -> Result<(), CommandError> {
        check_prepared(index)?;
        if run == Run::DryBesideOthers || self.has_others() || self.prepared.is_some() {
            return Err(invalid(
                "unique: true cannot be combined with any other modification in dry run mode.",
            ));
        }
        match index.uniqueness() {
            Uniqueness::Unique => Ok(()),
            _ => unique_conversion::check(context, collection, index),
        }
    }

    /// The fields of the specification that change.
    fn changes_after(&self, before: &Before, step: UniqueStep) -> Document {
        let mut changes = Document::new();
        if let Some(hidden) = self.hidden.filter(|hidden| *hidden != before.was_hidden) {
            changes.push("hidden", Value::Boolean(hidden));
        }
        if let Some(seconds) = self.expiry.filter(|seconds| before.expiry != Some(i64::from(*seconds))) {
            changes.push("expireAfterSeconds", Value::Int32(seconds));
        }
        if let UniqueStep::Prepare(prepared) = step {
            changes.push("prepareUnique", Value::Boolean(prepared));
        }
        changes
    }

    /// Changes visibility, expiry and uniqueness in one step, and tells the values before and after.
    fn change_specification(
        &self,
        context: &Context<'_>,
        namespace: &Namespace,
        index: &Index,
        step: UniqueStep,
        reply: &mut DocumentWriter<'_>,
    ) -> Result<(), CommandError> {
        let before = if step == UniqueStep::Convert {
            let before = Before::of(index)?;
            let changes = self.changes_after(&before, step);
            unique_conversion::carry_out(context, namespace, index.name(), &changes)?;
            before
        } else {
            let mut before = Before::of(index)?;
            context.catalog().change_index_specification(
                namespace,
                index.name(),
                context.operation,
                |index| {
                    // Another request may have changed it since it was found.
                    before = Before::of(index)?;
                    let changes = self.changes_after(&before, UniqueStep::of(self, index)?);
                    match changes.is_empty() {
                        true => Ok::<_, CommandError>(index.specification().to_owned()),
                        false => Ok(changed(context, index.specification(), &changes)?.to_raw()),
                    }
                },
            )?;
            before
        };
        let Before { was_hidden, expiry: old_expiry } = before;
        let hidden = self.hidden.filter(|hidden| *hidden != was_hidden);
        if let Some(seconds) = self.expiry {
            if let Some(old) = old_expiry {
                reply.append_i64("expireAfterSeconds_old", old);
            }
            reply.append_i64("expireAfterSeconds_new", i64::from(seconds));
        }
        if let Some(hidden) = hidden {
            reply.append("hidden_old", RawValue::Boolean(was_hidden));
            reply.append("hidden_new", RawValue::Boolean(hidden));
        }
        match step {
            UniqueStep::Stays => {}
            UniqueStep::Prepare(prepared) => {
                reply.append("prepareUnique_old", RawValue::Boolean(!prepared));
                reply.append("prepareUnique_new", RawValue::Boolean(prepared));
            }
            UniqueStep::Convert => reply.append("unique_new", RawValue::Boolean(true)),
        }
        Ok(())
    }
}

/// Values of an index before a change.
struct Before {
    was_hidden: bool,
    /// Seconds.
    expiry: Option<i64>,
}

impl Before {
    fn of(index: &Index) -> Result<Before, CommandError> {
        let specification = index.specification();
        Ok(Before {
            was_hidden: matches!(specification.get("hidden")?, Some(value) if value.to_bool()),
            expiry: specification.get("expireAfterSeconds")?.map(whole),
        })
    }
}

/// The change of an index's uniqueness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UniqueStep {
    /// It stays as it is.
    Stays,
    /// Writes are checked from now on, or are not any more.
    Prepare(bool),
    /// It becomes unique.
    Convert,
}

impl UniqueStep {
    /// The step that a change means for an index; an error if there is no such.
    fn of(change: &IndexChange<'_>, index: &Index) -> Result<UniqueStep, CommandError> {
        let uniqueness = index.uniqueness();
        if uniqueness == Uniqueness::Unique {
            return Ok(UniqueStep::Stays);
        }
        let is_prepared = uniqueness == Uniqueness::Prepared;
        let is_converted = change.unique == Some(true);
        if is_converted {
            check_prepared(index)?;
        }
        match change.prepared.filter(|wanted| *wanted != is_prepared) {
            Some(_) if is_converted || change.has_others() => {
                Err(invalid("prepareUnique cannot be combined with any other modification."))
            }
            Some(wanted) => Ok(UniqueStep::Prepare(wanted)),
            None if is_converted => Ok(UniqueStep::Convert),
            None => Ok(UniqueStep::Stays),
        }
    }
}

/// Refuses the conversion of an index that is not prepared.
fn check_prepared(index: &Index) -> Result<(), CommandError> {
    match index.uniqueness() {
        Uniqueness::Unique | Uniqueness::Prepared => Ok(()),
        Uniqueness::NotUnique => {
            Err(invalid("Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first."))
        }
    }
}

/// A specification with some fields changed, in its kept form.
pub(super) fn changed(
    context: &Context<'_>,
    specification: &RawDocument,
    changes: &Document,
) -> Result<Document, CommandError> {
    let mut specification = Document::from_raw(specification)?;
    for (name, value) in changes.iter() {
        specification.remove(name);
        specification.push(name, value.clone());
    }
    // The user's own specification of an index of a time series is none of the options.
    let original = specification.remove(ORIGINAL_SPECIFICATION);
    let engine = context.catalog().engine().name();
    let mut normalised = normalise(&specification.to_raw(), UnknownOptions::Refused, engine)?;
    if let Some(original) = original {
        normalised.push(ORIGINAL_SPECIFICATION, original);
    }
    Ok(normalised)
}

/// Whether the index on `_id` is meant.
fn is_of_id(which: &Which<'_>) -> bool {
    match which {
        Which::ByName(name) => *name == ID_INDEX,
        Which::ByKey(key) => index_key_pattern::is_of_id(key),
    }
}

/// Whether the index is meant that the documents are.
fn is_primary(collection: &Collection, which: &Which<'_>) -> bool {
    collection.describe_indexes().into_iter().any(|index| {
        let (key, name) = key_and_name(&index.specification);
        index.is_primary()
            && match which {
                Which::ByName(wanted) => name == *wanted,
                Which::ByKey(wanted) => index_key_pattern::same(key, wanted),
            }
    })
}

/// Refuses changes of the indexes that cannot have them.
fn check_changeable(collection: &Collection, change: &IndexChange<'_>) -> Result<(), CommandError> {
    let is_of_id = is_of_id(&change.which);
    let refused = |reason: &str| Err(CommandError::failed(ErrorCode::BadValue, reason));
    if is_of_id && change.expiry.is_some() {
        return Err(invalid("the _id field does not support TTL indexes"));
    }
    if !is_of_id && is_primary(collection, &change.which) {
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
    found.ok_or_else(|| not_found(which, namespace))
}

fn not_found(which: &Which<'_>, namespace: &Namespace) -> CommandError {
    let wanted = match which {
        Which::ByName(name) => (*name).to_owned(),
        Which::ByKey(key) => document_text(key),
    };
    CommandError::failed(ErrorCode::IndexNotFound, format!("cannot find index {wanted} for ns {namespace}"))
}
