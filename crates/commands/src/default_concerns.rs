//! The read and write concern of requests that name none, as `setDefaultRWConcern` has set them.
//!
//! They lie in `config.settings`, in the document and with the fields of MongoDB. A store that was never told
//! has `w: 1` and `local`. All levels of read concern that may be a default read the newest commit on one
//! node, so that the one for reads is only kept and shown.

use pando_catalog::{
    Begin, BlockingMode, Caller, Catalog, CatalogError, CommitReceipt, Durability, Namespace, Operation,
};
use pando_document::{Document, RawDocument, RawDocumentBuf, RawValue, Timestamp, Value, doc};

use crate::CommandError;
use crate::error::write_failure;
use crate::generic_arguments::{ClusterTimes, WriteConcern};

const DATABASE: &str = "config";
const COLLECTION: &str = "settings";
const ID: &str = "ReadWriteConcernDefaults";

/// See the module's head.
#[derive(Clone, Debug)]
pub(crate) struct DefaultConcerns {
    /// The level of reads, if it was set.
    pub read_level: Option<String>,
    /// The concern of writes as it was set.
    pub write: Option<Document>,
    /// The concern of writes.
    pub concern: WriteConcern,
    /// The last change.
    pub changed: Option<ConcernChange>,
    /// When this server has read them, in milliseconds since 1970.
    pub read_ms: i64,
}

/// The moment of a change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConcernChange {
    pub time: Timestamp,
    /// Milliseconds since 1970.
    pub ms: i64,
}

impl DefaultConcerns {
    /// Those of a store that was never told.
    pub fn implicit(read_ms: i64) -> DefaultConcerns {
        let (read_level, write, changed) = (None, None, None);
        DefaultConcerns { read_level, write, concern: WriteConcern::DEFAULT, changed, read_ms }
    }

    /// The defaults of a store. Blocks.
    pub fn stored(catalog: &Catalog, read_ms: i64) -> Result<DefaultConcerns, CommandError> {
        let mut defaults = DefaultConcerns::implicit(read_ms);
        let Some(collection) = catalog.collection(DATABASE, COLLECTION) else { return Ok(defaults) };
        let reader = catalog.begin(Begin::READ)?;
        let key = collection.id_key(RawValue::String(ID));
        let found = collection.fetch_by_id(&*reader, &key, BlockingMode::MayBlock)?;
        reader.rollback();
        let Some(found) = found else { return Ok(defaults) };
        let found = RawDocument::from_bytes(&found)?;
        if let Some(RawValue::Document(read)) = found.get("defaultReadConcern")? {
            defaults.read_level = read.get("level")?.and_then(|level| level.as_str()).map(str::to_owned);
        }
        if let Some(value @ RawValue::Document(write)) = found.get("defaultWriteConcern")? {
            defaults.concern = WriteConcern::read(value, ClusterTimes::Known)?;
            defaults.write = Some(Document::from_raw(write)?);
        }
        if let (Some(RawValue::Timestamp(time)), Some(RawValue::DateTime(ms))) =
            (found.get("updateOpTime")?, found.get("updateWallClockTime")?)
        {
            defaults.changed = Some(ConcernChange { time, ms });
        }
        Ok(defaults)
    }

    /// The fields of the defaults and of their last change.
    pub fn fields(&self) -> Document {
        let mut fields = Document::new();
        if let Some(level) = &self.read_level {
            fields.push("defaultReadConcern", doc! { "level": level.as_str() });
        }
        if let Some(write) = &self.write {
            fields.push("defaultWriteConcern", write.clone());
        }
        if let Some(ConcernChange { time, ms }) = self.changed {
            fields.push("updateOpTime", Value::Timestamp(time));
            fields.push("updateWallClockTime", Value::DateTime(ms));
        }
        fields
    }

    /// Stores them, so that they hold after a restart. Blocks.
    pub fn store(
        &self,
        catalog: &Catalog,
        uuid: [u8; 16],
        operation: &Operation,
        durability: Durability,
    ) -> Result<CommitReceipt, CommandError> {
        let namespace = Namespace::new(DATABASE, COLLECTION)?;
        match catalog.create_collection_of_server(&namespace, doc! {}.to_raw(), uuid) {
            Ok(_) | Err(CatalogError::CollectionExists { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let lease = catalog.lease(DATABASE, COLLECTION, Caller::may_block(operation))?;
        let lease = lease.ok_or(CatalogError::CollectionNotFound { namespace: namespace.to_string() })?;
        let mut transaction = catalog.begin_write()?;
        let key = lease.id_key(RawValue::String(ID));
        let key = lease.locate(&*transaction, &key, BlockingMode::MayBlock)?.unwrap_or_default();
        let before = lease.fetch(&*transaction, &key, BlockingMode::MayBlock)?;
        let document = self.document();
        let written = match before {
            Some(before) => {
                let before = RawDocument::from_bytes(&before)?;
                lease.replace(&mut transaction, &key, before, &document, BlockingMode::MayBlock)
            }
            None => lease.insert(&mut transaction, &document, BlockingMode::MayBlock),
        };
        written.map_err(|error| write_failure(error, lease.full_name()))?;
        Ok(transaction.commit(durability)?)
    }

    fn document(&self) -> RawDocumentBuf {
        let mut document = doc! { "_id": ID };
        for (name, value) in self.fields().iter() {
            document.push(name, value.clone());
        }
        document.to_raw()
    }
}
