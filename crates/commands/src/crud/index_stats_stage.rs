//! The stage `$indexStats`: one document about each index of a collection, with the searches that have read
//! it.
//!
//! Uses count from the start of the server. A search by `_id` counts for the index on `_id`, also where the
//! documents themselves are that index.

use pando_catalog::{Bytes, ID_INDEX};
use pando_document::{DocumentWriter, RawDocument, RawValue};
use pando_query::pipeline::PipelineFault;

use crate::CommandError;
use crate::context::Context;

pub(super) const NAME: &str = "$indexStats";

/// The documents of the stage; none of a collection that does not exist.
pub(super) fn documents(
    context: &Context<'_>,
    collection: &str,
    argument: RawValue<'_>,
) -> Result<Vec<Bytes>, CommandError> {
    if !argument.as_document().is_some_and(|argument| argument.is_empty()) {
        return Err(PipelineFault::IndexStatsNotEmpty
            .error("The $indexStats stage specification must be an empty object")
            .into());
    }
    // The indexes of a time series are those of its buckets, in the words of the series.
    let series = context.series(collection)?;
    let (collection, series) = match (context.collection(collection)?, series) {
        (Some(collection), _) => (collection, None),
        (None, Some((buckets, series))) => (buckets, Some(series)),
        (None, None) => return Ok(Vec::new()),
    };
    let mut documents = Vec::new();
    for index in collection.describe_indexes() {
        // As in MongoDB, the documents of a clustered collection are no index of it.
        if series.is_none() && collection.clustered_index_name() == Some(&index.name) {
            continue;
        }
        let of_series = match &series {
            Some(series) => match series.index_of_series(&index.specification)? {
                Some(specification) => Some(specification),
                // The key of the buckets is none of the user's.
                None => continue,
            },
            None => None,
        };
        let specification = of_series.as_ref().unwrap_or(&index.specification);
        let of_tree = collection.index(&index.name).map_or(0, |index| index.uses());
        let of_documents = match index.is_primary() || index.name == ID_INDEX {
            true => collection.activity().primary_uses(),
            false => 0,
        };
        let key = match specification.get("key")? {
            Some(RawValue::Document(key)) => key,
            _ => RawDocument::empty(),
        };
        let mut bytes = Vec::new();
        let mut writer = DocumentWriter::begin(&mut bytes);
        writer.append_str("name", &index.name);
        writer.append("key", RawValue::Document(key));
        writer.append_str("host", &context.shared.machine_name());
        let mut accesses = writer.document("accesses");
        accesses.append_i64("ops", i64::try_from(of_tree + of_documents).unwrap_or(i64::MAX));
        accesses.append_date_time("since", context.shared.started_ms);
        accesses.finish();
        writer.append("spec", RawValue::Document(specification));
        writer.finish();
        documents.push(Bytes::from(bytes));
    }
    Ok(documents)
}
