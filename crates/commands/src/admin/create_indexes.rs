//! `createIndexes`: builds indexes, and the collection where there is none.
//!
//! # Steps
//! 1. Specifications are checked and normalised. If one of them is refused, the command has created no index.
//! 2. Indexes that exist are left out. Indexes that conflict with an existing one are refused.
//! 3. The collection is created if there is none. The rest is built, all or none, while other clients read
//!    and write. One build of a collection waits for another, and then checks again which indexes are
//!    missing.

use pando_catalog::{CatalogError, IndexDescription, Namespace};
use pando_collation::TextOrder;
use pando_document::{DocumentWriter, RawDocument, RawDocumentBuf, RawValue, doc};
use pando_query::shell_text::document_text;

use super::clustered_index::without_clustered;
use super::commit_quorum::CommitQuorum;
use super::existing_indexes::{is_among, key_and_name};
use super::index_collation;
use super::index_key_pattern;
use super::index_specification::{UnknownOptions, normalise};
use super::series_indexes::SeriesIndexes;
use super::storage_engine_options::note_of_passed_over;
use crate::arguments::{Arguments, collection_name, missing};
use crate::context::Context;
use crate::error::{Failure, write_failure};
use crate::identity::uuid_text;
use crate::{CommandError, ErrorCode, Request};

/// Most indexes of a collection, `_id_` included.
const INDEXES_MAX: usize = 64;

/// Builds the indexes, all or none.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let name = collection_name(request.command()?.1)?;
    let Wanted { specifications: wanted, quorum } = read(context, request.body)?;
    let engine = context.catalog().engine().name();
    let namespace = context.writable(name)?;
    let found = context.collection(name)?;
    let wanted = without_clustered(wanted, found.as_deref())?;
    if let Some(series) = SeriesIndexes::of(context, &namespace)? {
        series.create(context, &wanted, reply)?;
        quorum.append_to(reply);
        return Ok(());
    }
    if found.is_none() {
        context.refuse_view(&namespace)?;
    }
    let order = found.as_ref().map_or(&TextOrder::SIMPLE, |collection| collection.text_order());
    let wanted = index_collation::taken_over(wanted, order)?;
    let have: Vec<RawDocumentBuf> = match &found {
        Some(collection) => {
            collection.describe_indexes().into_iter().map(|index| index.specification).collect()
        }
        None => vec![id_index()],
    };
    let new = not_there_yet(&have, &wanted)?;
    let build = Build {
        namespace: &namespace,
        collection: found.as_ref().map(|collection| uuid_text(collection.uuid())),
        number: uuid_text(context.shared.new_uuid()),
    };
    let descriptions = build.descriptions(context, have.len(), &new).map_err(|error| build.failed(error))?;
    let (before, after) = if context.open_transaction().is_some() {
        let before = have.len();
        (before, before + create_in_transaction(context, &namespace, found.is_some(), descriptions)?)
    } else {
        drop(context.lease_or_create(&namespace)?);
        match new.is_empty() {
            true => (have.len(), have.len()),
            false => build.run(context, &wanted)?,
        }
    };
    reply.append("numIndexesBefore", count(before));
    reply.append("numIndexesAfter", count(after));
    let nothing_new = after == before;
    if !nothing_new || found.is_none() {
        // As in MongoDB, one that the same transaction has created counts as well.
        let is_created = found.is_none() || context.open_transaction().is_some();
        reply.append("createdCollectionAutomatically", RawValue::Boolean(is_created));
    }
    if nothing_new {
        reply.append("note", RawValue::String("all indexes already exist"));
    } else if let Some(note) = wanted.iter().find_map(|wanted| note_of_passed_over(wanted, engine)) {
        reply.append("note", RawValue::String(&note));
    }
    if !nothing_new {
        quorum.append_to(reply);
    }
    Ok(())
}

/// Creates indexes with the commit of the session's transaction; gives their number. The transaction must
/// create their collection, too.
fn create_in_transaction(
    context: &mut Context<'_>,
    namespace: &Namespace,
    is_there: bool,
    descriptions: Vec<IndexDescription>,
) -> Result<usize, CommandError> {
    let number = descriptions.len();
    if is_there && number == 0 {
        return Ok(0);
    }
    if !is_there {
        context.create_collection(namespace, RawDocumentBuf::new())?;
        context.audit_creation(namespace);
    }
    let Some(open) = context.open_transaction() else { return Ok(0) };
    let mut held = open.lock()?;
    let Some(transaction) = &mut *held else { return Ok(0) };
    if transaction.create_indexes(context.catalog(), namespace, descriptions)? {
        return Ok(number);
    }
    Err(CommandError::failed(
        ErrorCode::OperationNotSupportedInTransaction,
        format!(
            "Cannot create new indexes on existing collection {namespace} in a multi-document transaction."
        ),
    ))
}

/// The indexes of a collection with this order of strings that is loaded, without the one on `_id`.
pub(super) fn descriptions_of_load(
    context: &Context<'_>,
    namespace: &Namespace,
    given: &[&RawDocument],
    order: &TextOrder,
) -> Result<Vec<IndexDescription>, CommandError> {
    let engine = context.catalog().engine().name();
    let wanted = given.iter().map(|given| Ok(normalise(given, UnknownOptions::Refused, engine)?.to_raw()));
    let wanted: Vec<RawDocumentBuf> = wanted.collect::<Result<_, CommandError>>()?;
    let wanted = index_collation::taken_over(without_clustered(wanted, None)?, order)?;
    let have = [id_index()];
    let new = not_there_yet(&have, &wanted)?;
    let build = Build { namespace, collection: None, number: String::new() };
    build.descriptions(context, have.len(), &new)
}

/// The specification of the index on `_id`.
fn id_index() -> RawDocumentBuf {
    doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" }.to_raw()
}

/// The fields of a request.
struct Wanted {
    /// Normalised.
    specifications: Vec<RawDocumentBuf>,
    quorum: CommitQuorum,
}

/// Reads the request's fields.
fn read(context: &Context<'_>, body: &RawDocument) -> Result<Wanted, CommandError> {
    let persona = context.shared.options.persona.persona;
    let mut given = None;
    let mut unknown = UnknownOptions::Refused;
    let mut quorum = CommitQuorum::of_none_given(persona);
    for argument in Arguments::of_command("createIndexes", body) {
        let argument = argument?;
        match argument.name {
            "indexes" => given = Some(argument.documents()?),
            "ignoreUnknownIndexOptions" if argument.lenient_boolean()? == Some(true) => {
                unknown = UnknownOptions::LeftOut;
            }
            "ignoreUnknownIndexOptions" => {}
            "commitQuorum" => quorum = CommitQuorum::of(&argument, persona)?,
            _ => argument.refuse_unless_generic()?,
        }
    }
    let given = given.ok_or_else(|| missing("createIndexes", "indexes"))?;
    if given.is_empty() {
        return Err(CommandError::failed(ErrorCode::BadValue, "Must specify at least one index to create"));
    }
    let engine = context.catalog().engine().name();
    let specifications = given.into_iter().map(|given| Ok(normalise(given, unknown, engine)?.to_raw()));
    Ok(Wanted { specifications: specifications.collect::<Result<_, CommandError>>()?, quorum })
}

/// The wanted indexes without those that are there; an error where one is in the way of another.
pub(super) fn not_there_yet(
    have: &[RawDocumentBuf],
    wanted: &[RawDocumentBuf],
) -> Result<Vec<RawDocumentBuf>, CommandError> {
    let mut new = Vec::new();
    for specification in wanted {
        if !is_among(have, specification)? {
            new.push(specification.clone());
        }
    }
    Ok(new)
}

/// One build of several indexes, as its errors name it.
pub(super) struct Build<'b> {
    pub namespace: &'b Namespace,
    /// The collection's number if it was there before.
    pub collection: Option<String>,
    pub number: String,
}

impl Build<'_> {
    /// Builds the missing indexes once it is the turn of this build. Gives the number of indexes before and
    /// after.
    pub fn run(
        &self,
        context: &Context<'_>,
        wanted: &[RawDocumentBuf],
    ) -> Result<(usize, usize), CommandError> {
        let turn = context.catalog().index_build_turn(self.namespace, context.operation)?;
        // Another build may have built the same while this one waited.
        let (database, name) = (self.namespace.database(), self.namespace.collection());
        let have: Vec<RawDocumentBuf> = match context.catalog().collection(database, name) {
            Some(collection) => {
                collection.describe_indexes().into_iter().map(|index| index.specification).collect()
            }
            None => {
                return Err(CatalogError::CollectionNotFound { namespace: self.namespace.to_string() }.into());
            }
        };
        let new = not_there_yet(&have, wanted)?;
        let descriptions =
            self.descriptions(context, have.len(), &new).map_err(|error| self.failed(error))?;
        if !descriptions.is_empty() {
            turn.create(descriptions).map_err(|error| {
                self.failed(match error {
                    CatalogError::Write(error) => write_failure(error, &self.namespace.to_string()),
                    other => other.into(),
                })
            })?;
        }
        Ok((have.len(), have.len() + new.len()))
    }

    /// The indexes to build, checked against one another and the limits.
    pub fn descriptions(
        &self,
        context: &Context<'_>,
        have: usize,
        new: &[RawDocumentBuf],
    ) -> Result<Vec<IndexDescription>, CommandError> {
        let mut descriptions = Vec::with_capacity(new.len());
        for (at, specification) in new.iter().enumerate() {
            let (key, name) = key_and_name(specification);
            if is_among(&new[..at], specification)? {
                return Err(self.twice(name));
            }
            if key.iter().count() > index_key_pattern::FIELDS_MAX {
                return Err(CommandError::failed(
                    pando_query::sort::SortFault::TooWide.code(),
                    "too many compound keys",
                ));
            }
            if have + at >= INDEXES_MAX {
                let (namespace, key) = (self.namespace, document_text(key));
                return Err(CommandError::failed(
                    ErrorCode::CannotCreateIndex,
                    format!("add index fails, too many indexes for {namespace} key:{key}"),
                ));
            }
            descriptions.push(context.catalog().describe_index(specification).map_err(
                |error| match error {
                    CatalogError::IndexSpecification { reason, .. } => {
                        CommandError::failed(ErrorCode::CannotCreateIndex, reason)
                    }
                    other => other.into(),
                },
            )?);
        }
        Ok(descriptions)
    }

    /// The same index stands twice in the request.
    fn twice(&self, name: &str) -> CommandError {
        match self.collection {
            None => CommandError::failed(
                ErrorCode::IndexAlreadyExists,
                format!("Identical index already exists: {name}"),
            ),
            Some(_) => CommandError::failed(
                ErrorCode::OperationFailed,
                "Cannot build two identical indexes. Try again without duplicate indexes.",
            ),
        }
    }

    /// An error of the build, as MongoDB words it for a collection that was there.
    pub fn failed(&self, error: CommandError) -> CommandError {
        let (CommandError::Failed(failure), Some(collection)) = (&error, &self.collection) else {
            return error;
        };
        let (number, namespace) = (&self.number, self.namespace);
        let message = format!(
            "Index build failed: {number}: Collection {namespace} ( {collection} ) :: caused by :: {}",
            failure.message
        );
        Failure { message, ..Failure::clone(failure) }.into()
    }
}

pub(super) fn count(number: usize) -> RawValue<'static> {
    RawValue::Int32(i32::try_from(number).unwrap_or(i32::MAX))
}
