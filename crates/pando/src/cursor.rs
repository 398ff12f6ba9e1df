//! A cursor: the documents of a search, fetched in batches as they are asked for.

use std::collections::VecDeque;
use std::marker::PhantomData;

use bson::{Document, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use serde::de::DeserializeOwned;

use crate::reply::into_type;
use crate::{Database, Error};

/// The documents of a search or an aggregation. It is an iterator; the search ends when it is dropped, and
/// not before: as long as it is there, the store keeps the state of its moment.
pub struct Cursor<T> {
    database: Database,
    collection: String,
    /// 0: there is no further batch.
    id: i64,
    /// The size of later batches, if the search said one.
    batch_size: Option<i64>,
    batch: VecDeque<RawDocumentBuf>,
    documents: PhantomData<fn() -> T>,
}

impl<T> Cursor<T> {
    pub(crate) fn begin(database: &Database, collection: &str, command: Document) -> Result<Self, Error> {
        let options = command.get_document("cursor").unwrap_or(&command);
        let batch_size = options.get_i64("batchSize").ok().filter(|size| *size > 0);
        let reply = database.command_for_bytes(command)?;
        let mut cursor = Cursor {
            database: database.clone(),
            collection: collection.to_owned(),
            id: 0,
            batch_size,
            batch: VecDeque::new(),
            documents: PhantomData,
        };
        cursor.take_batch(&reply, "firstBatch")?;
        Ok(cursor)
    }

    fn take_batch(&mut self, reply: &[u8], name: &str) -> Result<(), Error> {
        let Some(RawBsonRef::Document(cursor)) = RawDocument::from_bytes(reply)?.get("cursor")? else {
            return Ok(());
        };
        self.id = cursor.get("id")?.and_then(|id| id.as_i64()).unwrap_or(0);
        if let Some(RawBsonRef::Array(batch)) = cursor.get(name)? {
            for document in batch {
                if let RawBsonRef::Document(document) = document? {
                    self.batch.push_back(document.to_owned());
                }
            }
        }
        Ok(())
    }

    fn fetch(&mut self) -> Result<(), Error> {
        let mut command = doc! { "getMore": self.id, "collection": &self.collection };
        if let Some(size) = self.batch_size {
            command.insert("batchSize", size);
        }
        let reply = self.database.command_for_bytes(command)?;
        self.take_batch(&reply, "nextBatch")
    }
}

impl<T: DeserializeOwned> Iterator for Cursor<T> {
    type Item = Result<T, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.batch.is_empty() && self.id != 0 {
            if let Err(error) = self.fetch() {
                self.id = 0;
                return Some(Err(error));
            }
        }
        let document = self.batch.pop_front()?;
        Some(into_type(&document, || format!("{}.{}", self.database.name(), self.collection)))
    }
}

impl<T> Drop for Cursor<T> {
    fn drop(&mut self) {
        if self.id != 0 {
            // An unused cursor times out by itself, so that an error here has no effect.
            let command = doc! { "killCursors": &self.collection, "cursors": [self.id] };
            let _ = self.database.command(command);
        }
    }
}
