//! The short way of a find: one document by its primary key, projected straight into the reply.
//!
//! It owns all that it needs of its request, so that it can wait for a read of the device and go on without the request being
//! read again ([`Parked`](crate::parked::Parked)).

use std::sync::Arc;

use pando_catalog::{BlockingMode, Collection, PrimaryKey, Transaction};
use pando_document::{DocumentWriter, RawDocument};
use pando_query::projection::Projection;

use crate::CommandError;

/// See the module's head.
pub(crate) struct PointLookup {
    pub collection: Arc<Collection>,
    pub key: PrimaryKey,
    pub projection: Option<Projection>,
    /// The snapshot that it reads.
    pub transaction: Box<dyn Transaction>,
}

impl PointLookup {
    /// Writes the cursor with the document, or with none.
    ///
    /// # Errors
    /// Before a `WouldBlock` nothing was written.
    pub fn answer(&self, blocking: BlockingMode, reply: &mut DocumentWriter<'_>) -> Result<(), CommandError> {
        let found = self.collection.fetch(&*self.transaction, self.key.as_bytes(), blocking)?;
        let mut cursor = reply.document("cursor");
        let mut batch = cursor.array("firstBatch");
        if let Some(bytes) = &found {
            let document = RawDocument::from_bytes(bytes)?;
            match &self.projection {
                None => batch.push_document(document),
                Some(projection) => {
                    let mut projected = Vec::with_capacity(bytes.len());
                    // An equality of `_id` matches by no array element.
                    projection.apply(document, None, &mut projected)?;
                    batch.push_document_bytes(&projected);
                }
            }
        }
        batch.finish();
        cursor.append_i64("id", 0);
        cursor.append_str("ns", self.collection.full_name());
        cursor.finish();
        Ok(())
    }
}
