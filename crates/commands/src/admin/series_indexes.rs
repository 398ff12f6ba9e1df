//! Indexes of a time series, which are indexes of its buckets (`time_series/bucket_index` of crate `query`):
//! the request is translated on its way in, and the specifications on their way out.

use std::sync::Arc;

use pando_catalog::{Collection, ID_INDEX, Namespace};
use pando_document::{DocumentWriter, RawDocument, RawDocumentBuf, RawValue};
use pando_query::time_series::Series;

use super::create_indexes::{Build, not_there_yet};
use super::index_collation;
use crate::context::Context;
use crate::identity::uuid_text;
use crate::{CommandError, ErrorCode};

/// A time series, and the collection of its buckets.
pub(super) struct SeriesIndexes {
    pub series: Series,
    pub buckets: Arc<Collection>,
}

impl SeriesIndexes {
    /// The time series of a namespace; `None` where it is none.
    pub fn of(context: &Context<'_>, namespace: &Namespace) -> Result<Option<SeriesIndexes>, CommandError> {
        let name = namespace.collection();
        if context.catalog().collection(namespace.database(), name).is_some() {
            return Ok(None);
        }
        let found = context.series(name)?;
        Ok(found.map(|(buckets, series)| SeriesIndexes { series, buckets }))
    }

    /// The specifications of the indexes as the user sees them.
    pub fn specifications(&self) -> Result<Vec<Vec<u8>>, CommandError> {
        let mut shown = Vec::new();
        for index in self.buckets.describe_indexes() {
            shown.extend(self.series.index_of_series(&index.specification)?.map(RawDocumentBuf::into_vec));
        }
        Ok(shown)
    }

    /// How many there are: the key of the buckets is none of the user's.
    pub fn count(&self) -> usize {
        self.buckets.describe_indexes().iter().filter(|index| index.name != ID_INDEX).count()
    }

    /// Builds indexes, all or none, and answers.
    pub fn create(
        &self,
        context: &Context<'_>,
        wanted: &[RawDocumentBuf],
        reply: &mut DocumentWriter<'_>,
    ) -> Result<(), CommandError> {
        let namespace = self.buckets.namespace();
        if context.open_transaction().is_some() {
            return Err(CommandError::failed(
                ErrorCode::OperationNotSupportedInTransaction,
                format!(
                    "Cannot create new indexes on existing collection {namespace} in a multi-document transaction."
                ),
            ));
        }
        let mut of_buckets = Vec::with_capacity(wanted.len());
        for specification in wanted {
            refuse_id(specification)?;
            of_buckets.push(self.series.bucket_index(specification)?);
        }
        let of_buckets = index_collation::taken_over(of_buckets, self.buckets.text_order())?;
        let build = Build {
            namespace,
            collection: Some(uuid_text(self.buckets.uuid())),
            number: uuid_text(context.shared.new_uuid()),
        };
        let have: Vec<RawDocumentBuf> =
            self.buckets.describe_indexes().into_iter().map(|index| index.specification).collect();
        let new = not_there_yet(&have, &of_buckets)?;
        build.descriptions(context, have.len(), &new).map_err(|error| build.failed(error))?;
        let before = self.count();
        let built = match new.is_empty() {
            true => 0,
            false => {
                let (before, after) = build.run(context, &of_buckets)?;
                after - before
            }
        };
        reply.append("numIndexesBefore", super::create_indexes::count(before));
        reply.append("numIndexesAfter", super::create_indexes::count(before + built));
        match built {
            0 => reply.append("note", RawValue::String("all indexes already exist")),
            _ => reply.append("createdCollectionAutomatically", RawValue::Boolean(false)),
        }
        Ok(())
    }
}

/// Refuses the index on `_id`: measurements have none.
fn refuse_id(specification: &RawDocument) -> Result<(), CommandError> {
    if specification.get("name")?.and_then(|name| name.as_str()) != Some(ID_INDEX) {
        return Ok(());
    }
    Err(CommandError::failed(
        ErrorCode::BadValue,
        "The index name '_id_' is reserved for the _id index, which must have key pattern {_id: 1}, found key: { control.min._id: 1, control.max._id: 1 }",
    ))
}
