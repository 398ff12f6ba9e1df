//! A find of one document by its `_id`: no plan and no cursor, one fetch by the `_id`, projected
//! straight into the reply.
//!
//! A lookup owns its key, projection and snapshot. So it can wait for a read of the device and go on without
//! a second look at its request ([`SuspendedFind`](crate::suspended_find::SuspendedFind)).

use std::sync::Arc;

use pando_catalog::{Bytes, Caller, Collection, IdKey};
use pando_document::{DocumentWriter, RawDocument};
use pando_query::QueryError;
use pando_query::projection::Projection;

use crate::CommandError;
use crate::error::Execution;
use crate::reader::Reader;

/// A lookup by `_id`, ready to run.
pub(crate) struct PointLookup {
    pub collection: Arc<Collection>,
    pub key: IdKey,
    pub projection: Option<Projection>,
    /// The snapshot that the lookup reads.
    pub reader: Reader,
}

impl PointLookup {
    fn fetch(&self, caller: Caller<'_>) -> Result<Option<Bytes>, CommandError> {
        let held = self.reader.hold()?;
        Ok(self.collection.fetch_by_id(held.transaction(), &self.key, caller.blocking)?)
    }

    /// Writes the cursor with the document, or with none. Gives the number of documents.
    ///
    /// # Errors
    /// Before a `WouldBlock` nothing was written. An interruption is seen before the lookup.
    pub fn answer(&self, caller: Caller<'_>, reply: &mut DocumentWriter<'_>) -> Result<u64, CommandError> {
        caller.operation.check().map_err(|end| Execution::Find.fault(QueryError::from(end)))?;
        let found = self.fetch(caller)?;
        let mut cursor = reply.document("cursor");
        let mut batch = cursor.array("firstBatch");
        if let Some(bytes) = &found {
            let document = RawDocument::from_bytes(bytes)?;
            match &self.projection {
                None => batch.push_document(document),
                Some(projection) => {
                    let mut projected = Vec::with_capacity(bytes.len());
                    // An equality of `_id` matches by no array element.
                    let applied = projection.apply(document, None, &mut projected);
                    applied.map_err(|error| Execution::Find.fault(error))?;
                    batch.push_document_bytes(&projected);
                }
            }
        }
        batch.finish();
        cursor.append_i64("id", 0);
        cursor.append_str("ns", self.collection.full_name());
        cursor.finish();
        let examined = u64::from(found.is_some());
        caller.operation.usage().add_examined(examined, examined);
        Ok(examined)
    }
}
