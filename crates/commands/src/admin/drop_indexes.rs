//! `dropIndexes`: one index by name or key, several by names, or all but `_id_` for `'*'`.

use pando_catalog::{Collection, ID_INDEX};
use pando_document::{DocumentWriter, RawDocument, RawValue};
use pando_query::shell_text::document_text;

use super::index_key_pattern;
use super::series_indexes::SeriesIndexes;
use super::specification_text::shown;
use crate::arguments::{Argument, Arguments, collection_name, missing};
use crate::context::Context;
use crate::{CommandError, ErrorCode, Request};

/// Drops the indexes.
pub(crate) fn run(
    context: &mut Context<'_>,
    request: &Request<'_>,
    reply: &mut DocumentWriter<'_>,
) -> Result<(), CommandError> {
    context.require_may_block()?;
    let name = collection_name(request.command()?.1)?;
    let mut wanted = None;
    for argument in Arguments::of_command("dropIndexes", request.body) {
        let argument = argument?;
        match argument.name {
            "index" => wanted = Some(Wanted::read(&argument)?),
            _ => argument.refuse_unless_generic()?,
        }
    }
    let wanted = wanted.ok_or_else(|| missing("dropIndexes", "index"))?;
    let namespace = context.namespace(name)?;
    let before = match SeriesIndexes::of(context, &namespace)? {
        Some(series) => {
            let before = series.count();
            drop_all(context, &series.buckets, &wanted.names_of_series(&series)?, &wanted)?;
            before
        }
        None => {
            let Some(collection) = context.no_view(&namespace)? else {
                let reason = format!("ns not found {namespace}");
                return Err(CommandError::failed(ErrorCode::NamespaceNotFound, reason));
            };
            drop_all(context, &collection, &wanted.names(&collection)?, &wanted)?;
            collection.describe_indexes().len()
        }
    };
    reply.append("nIndexesWas", RawValue::Int32(i32::try_from(before).unwrap_or(i32::MAX)));
    if matches!(wanted, Wanted::All) {
        reply.append("msg", RawValue::String("non-_id indexes dropped for collection"));
    }
    Ok(())
}

fn drop_all(
    context: &Context<'_>,
    collection: &Collection,
    names: &[String],
    wanted: &Wanted<'_>,
) -> Result<(), CommandError> {
    let namespace = collection.namespace();
    if matches!(wanted, Wanted::All) {
        context.catalog().end_index_builds(namespace, context.operation)?;
    }
    for name in names {
        context.catalog().drop_index(namespace, name, context.operation)?;
    }
    Ok(())
}

/// The indexes that a request names.
enum Wanted<'a> {
    All,
    Names(Vec<&'a str>),
    Key(&'a RawDocument),
}

impl<'a> Wanted<'a> {
    fn read(argument: &Argument<'a>) -> Result<Wanted<'a>, CommandError> {
        let names = match argument.value {
            RawValue::Document(key) => return Ok(Wanted::Key(key)),
            RawValue::String(name) => vec![name],
            RawValue::Array(array) => {
                let mut names = Vec::new();
                for name in array.iter() {
                    let RawValue::String(name) = name? else {
                        return Err(argument.wrong_type("types '[string']"));
                    };
                    names.push(name);
                }
                names
            }
            _ => return Err(argument.wrong_type("types '[string, object']")),
        };
        Ok(if names.contains(&"*") { Wanted::All } else { Wanted::Names(names) })
    }

    /// The same of a time series: the names of the indexes of its buckets.
    fn names_of_series(&self, series: &SeriesIndexes) -> Result<Vec<String>, CommandError> {
        match self {
            Wanted::Key(key) => Wanted::Key(&series.series.bucket_key_pattern(key)).names(&series.buckets),
            Wanted::Names(names) if names.contains(&ID_INDEX) => Err(CommandError::failed(
                ErrorCode::Location(5_979_800),
                "It is illegal to drop the clusteredIndex",
            )),
            other => other.names(&series.buckets),
        }
    }

    /// The names of these indexes.
    fn names(&self, collection: &Collection) -> Result<Vec<String>, CommandError> {
        match self {
            Wanted::All => {
                let names = collection.indexes().iter().map(|index| index.name());
                Ok(names.filter(|name| *name != ID_INDEX).map(str::to_owned).collect())
            }
            Wanted::Names(names) => names.iter().map(|name| by_name(collection, name)).collect(),
            Wanted::Key(key) => Ok(vec![by_key(collection, key)?]),
        }
    }
}

fn by_name(collection: &Collection, name: &str) -> Result<String, CommandError> {
    if collection.primary_index_name() == Some(name) && collection.clustered_index_name().is_some() {
        let reason = "the clusteredIndex cannot be dropped without its collection";
        return Err(CommandError::failed(ErrorCode::Location(5_979_800), reason));
    }
    if name == ID_INDEX && collection.index(name).is_none() && collection.clustered_index_name().is_some() {
        let reason = format!("index not found with name [{name}]");
        return Err(CommandError::failed(ErrorCode::IndexNotFound, reason));
    }
    if name == ID_INDEX {
        return Err(CommandError::failed(ErrorCode::InvalidOptions, "cannot drop _id index"));
    }
    if collection.primary_index_name() == Some(name) {
        return Err(CommandError::failed(ErrorCode::InvalidOptions, "cannot drop the primary key"));
    }
    if collection.index(name).is_some() || collection.names_being_built().any(|built| built == name) {
        return Ok(name.to_owned());
    }
    Err(CommandError::failed(ErrorCode::IndexNotFound, format!("index not found with name [{name}]")))
}

fn by_key(collection: &Collection, key: &RawDocument) -> Result<String, CommandError> {
    let found: Vec<_> = collection
        .describe_indexes()
        .into_iter()
        .filter(|index| {
            matches!(index.specification.get("key"), Ok(Some(RawValue::Document(have))) if index_key_pattern::same(have, key))
        })
        .collect();
    match found.as_slice() {
        [index] => by_name(collection, &index.name),
        [] => Err(CommandError::failed(
            ErrorCode::IndexNotFound,
            format!("can't find index with key: {}", document_text(key)),
        )),
        several => {
            let shown: Vec<_> = several.iter().map(|index| shown(&index.specification)).collect();
            let (count, key) = (several.len(), document_text(key));
            Err(CommandError::failed(
                ErrorCode::AmbiguousIndexKeyPattern,
                format!(
                    "{count} indexes found for key: {key}, identify by name instead. Conflicting indexes: {}",
                    shown.join(", ")
                ),
            ))
        }
    }
}
