//! A cursor: the documents of a search, fetched in batches as they are asked for.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;

use bson::{Document, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use serde::de::DeserializeOwned;

use crate::reply::into_type;
use crate::{Database, Error};

/// The documents of a search or an aggregation. It is an iterator; the search ends when it is dropped: as
/// long as it is there, the store keeps the state of its moment, and an index that is dropped meanwhile
/// serves it to its end. A collection that is dropped or renamed, and a dropped database, end it with an
/// error (code 175); so does any other error, save that of a document which does not fit `T`.
pub struct Cursor<T> {
    database: Database,
    collection: String,
    /// 0: there is no further batch.
    id: i64,
    /// The transaction that it was opened in.
    transaction: Option<i64>,
    /// The size of later batches, if the search said one.
    batch_size: Option<i64>,
    batch: VecDeque<RawDocumentBuf>,
    documents: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for Cursor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (collection, database) = (&self.collection, self.database.name());
        f.debug_tuple("Cursor").field(&format_args!("{database}.{collection}")).finish()
    }
}

impl<T> Cursor<T> {
    pub(crate) fn begin(database: &Database, collection: &str, command: Document) -> Result<Self, Error> {
        let options = command.get_document("cursor").unwrap_or(&command);
        let batch_size = options.get_i64("batchSize").ok().filter(|size| *size > 0);
        let transaction = database.transaction();
        let reply = database.open_cursor(command)?;
        let mut cursor = Cursor {
            database: database.clone(),
            collection: collection.to_owned(),
            id: 0,
            transaction,
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
        self.database.check_cursor(self.transaction)?;
        let mut command = doc! { "getMore": self.id, "collection": &self.collection };
        if let Some(size) = self.batch_size {
            command.insert("batchSize", size);
        }
        let reply = self.database.command_for_bytes(command)?;
        self.take_batch(&reply, "nextBatch")
    }

    /// Ends the search in the store.
    fn end(&mut self) {
        let id = std::mem::take(&mut self.id);
        if id != 0 {
            let command = doc! { "killCursors": &self.collection, "cursors": [id] };
            // It is no call of the session, whose transaction may have ended. An error has no effect: the
            // store is closed then, and its cursors with it.
            let _ = self.database.store().run(self.database.name(), command);
        }
    }
}

impl<T: DeserializeOwned> Iterator for Cursor<T> {
    type Item = Result<T, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.batch.is_empty() && self.id != 0 {
            if let Err(error) = self.fetch() {
                self.end();
                return Some(Err(error));
            }
        }
        let document = self.batch.pop_front()?;
        Some(into_type(&document, || format!("{}.{}", self.database.name(), self.collection)))
    }
}

impl<T> Drop for Cursor<T> {
    fn drop(&mut self) {
        self.end();
    }
}
