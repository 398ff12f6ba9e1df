//! A typed collection.

use std::collections::VecDeque;
use std::marker::PhantomData;

use bson::{Bson, Document, doc};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Database, Error, WriteErrorDetail};

/// Documents of one command at most, as drivers batch them.
const BATCH_MAX: usize = 1_000;

/// A collection whose documents are `T`s.
pub struct Collection<T> {
    database: Database,
    name: String,
    documents: PhantomData<fn() -> T>,
}

/// The effect of an update.
#[derive(Clone, Debug, Default)]
pub struct UpdateResult {
    /// Documents that the filter matched.
    pub matched: u64,
    /// Documents that changed.
    pub modified: u64,
    /// The `_id` of the document that was inserted where none matched.
    pub upserted_id: Option<Bson>,
}

impl<T> Collection<T> {
    pub(crate) fn new(database: Database, name: String) -> Collection<T> {
        Collection { database, name, documents: PhantomData }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Updates the first document that matches. Operators as in MongoDB: `doc! { "$inc": { "n": 1 } }`.
    pub fn update_one(&self, filter: Document, update: Document) -> Result<UpdateResult, Error> {
        self.update(doc! { "q": filter, "u": update })
    }

    /// Updates every document that matches.
    pub fn update_many(&self, filter: Document, update: Document) -> Result<UpdateResult, Error> {
        self.update(doc! { "q": filter, "u": update, "multi": true })
    }

    /// Deletes the first document that matches; says how many that was.
    pub fn delete_one(&self, filter: Document) -> Result<u64, Error> {
        self.delete(doc! { "q": filter, "limit": 1 })
    }

    /// Deletes every document that matches; says how many.
    pub fn delete_many(&self, filter: Document) -> Result<u64, Error> {
        self.delete(doc! { "q": filter, "limit": 0 })
    }

    /// Counts the documents that match.
    pub fn count(&self, filter: Document) -> Result<u64, Error> {
        let reply = self.database.run_command(doc! { "count": &self.name, "query": filter })?;
        Ok(number(&reply, "n"))
    }

    /// Builds an index, by its keys: `doc! { "a": 1, "b": -1 }`. Says its name.
    pub fn create_index(&self, keys: Document) -> Result<String, Error> {
        self.create_index_with(keys, Document::new())
    }

    /// Builds an index with options, `doc! { "unique": true }` for one.
    pub fn create_index_with(&self, keys: Document, options: Document) -> Result<String, Error> {
        let parts: Vec<String> =
            keys.iter().map(|(path, order)| format!("{path}_{}", plain(order))).collect();
        let mut specification = doc! { "key": keys, "name": parts.join("_") };
        specification.extend(options);
        let name = specification.get_str("name").unwrap_or_default().to_owned();
        self.database.run_command(doc! { "createIndexes": &self.name, "indexes": [specification] })?;
        Ok(name)
    }

    /// Drops the collection.
    pub fn drop(&self) -> Result<(), Error> {
        self.database.run_command(doc! { "drop": &self.name }).map(|_| ())
    }

    fn update(&self, update: Document) -> Result<UpdateResult, Error> {
        let concern = self.database.store().write_concern();
        let command = doc! { "update": &self.name, "updates": [update], "writeConcern": concern };
        let reply = check_writes(self.database.run_command(command)?)?;
        let upserted_id = reply
            .get_array("upserted")
            .ok()
            .and_then(|upserted| upserted.first()?.as_document()?.get("_id").cloned());
        let matched = number(&reply, "n") - u64::from(upserted_id.is_some());
        Ok(UpdateResult { matched, modified: number(&reply, "nModified"), upserted_id })
    }

    fn delete(&self, delete: Document) -> Result<u64, Error> {
        let concern = self.database.store().write_concern();
        let command = doc! { "delete": &self.name, "deletes": [delete], "writeConcern": concern };
        Ok(number(&check_writes(self.database.run_command(command)?)?, "n"))
    }
}

impl<T: Serialize> Collection<T> {
    /// Inserts a document.
    pub fn insert_one(&self, document: &T) -> Result<(), Error> {
        self.insert_many(std::slice::from_ref(document))
    }

    /// Inserts documents in order, up to the first that fails.
    pub fn insert_many(&self, documents: &[T]) -> Result<(), Error> {
        for batch in documents.chunks(BATCH_MAX) {
            let mut array = Vec::with_capacity(batch.len());
            for document in batch {
                array.push(Bson::Document(bson::serialize_to_document(document)?));
            }
            let concern = self.database.store().write_concern();
            let command = doc! { "insert": &self.name, "documents": array, "writeConcern": concern };
            check_writes(self.database.run_command(command)?)?;
        }
        Ok(())
    }
}

impl<T: DeserializeOwned> Collection<T> {
    /// The first document that matches.
    pub fn find_one(&self, filter: Document) -> Result<Option<T>, Error> {
        let command = doc! { "find": &self.name, "filter": filter, "limit": 1, "singleBatch": true };
        let mut found = Find::<T>::begin(self.database.clone(), self.name.clone(), command)?;
        found.next().transpose()
    }

    /// The documents that match, as of one moment.
    pub fn find(&self, filter: Document) -> Result<Find<T>, Error> {
        self.find_with(filter, Document::new())
    }

    /// The same with further fields of the `find` command: `sort`, `limit`, `skip`, `projection`, `hint`.
    pub fn find_with(&self, filter: Document, options: Document) -> Result<Find<T>, Error> {
        let mut command = doc! { "find": &self.name, "filter": filter };
        command.extend(options);
        Find::begin(self.database.clone(), self.name.clone(), command)
    }

    /// Runs a pipeline over the collection.
    pub fn aggregate(&self, pipeline: Vec<Document>) -> Result<Find<T>, Error> {
        let stages: Vec<Bson> = pipeline.into_iter().map(Bson::Document).collect();
        let command = doc! { "aggregate": &self.name, "pipeline": stages, "cursor": {} };
        Find::begin(self.database.clone(), self.name.clone(), command)
    }
}

/// Documents of a query, fetched in batches as they are asked for.
pub struct Find<T> {
    database: Database,
    collection: String,
    /// 0: there is no further batch.
    cursor: i64,
    batch: VecDeque<Bson>,
    documents: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> Find<T> {
    fn begin(database: Database, collection: String, command: Document) -> Result<Find<T>, Error> {
        let reply = database.run_command(command)?;
        let mut find =
            Find { database, collection, cursor: 0, batch: VecDeque::new(), documents: PhantomData };
        find.take_batch(reply, "firstBatch");
        Ok(find)
    }

    fn take_batch(&mut self, mut reply: Document, name: &str) {
        if let Ok(cursor) = reply.get_document_mut("cursor") {
            self.cursor = cursor.get_i64("id").unwrap_or(0);
            if let Some(Bson::Array(batch)) = cursor.remove(name) {
                self.batch = batch.into();
            }
        }
    }
}

impl<T: DeserializeOwned> Iterator for Find<T> {
    type Item = Result<T, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.batch.is_empty() && self.cursor != 0 {
            let command = doc! { "getMore": self.cursor, "collection": &self.collection };
            match self.database.run_command(command) {
                Ok(reply) => self.take_batch(reply, "nextBatch"),
                Err(error) => {
                    self.cursor = 0;
                    return Some(Err(error));
                }
            }
        }
        let document = self.batch.pop_front()?;
        Some(bson::deserialize_from_bson(document).map_err(Error::from))
    }
}

impl<T> Drop for Find<T> {
    fn drop(&mut self) {
        if self.cursor != 0 {
            // An unused cursor times out by itself, so that an error here has no effect.
            let _ =
                self.database.run_command(doc! { "killCursors": &self.collection, "cursors": [self.cursor] });
        }
    }
}

/// The writes of a batch that failed, as an error.
fn check_writes(reply: Document) -> Result<Document, Error> {
    let Ok(errors) = reply.get_array("writeErrors") else { return Ok(reply) };
    let details = errors
        .iter()
        .filter_map(Bson::as_document)
        .map(|error| WriteErrorDetail {
            index: error.get_i32("index").unwrap_or(0),
            code: error.get_i32("code").unwrap_or(0),
            message: error.get_str("errmsg").unwrap_or_default().to_owned(),
        })
        .collect();
    Err(Error::Write(details))
}

fn number(reply: &Document, name: &str) -> u64 {
    match reply.get(name) {
        Some(Bson::Int32(number)) => u64::try_from(*number).unwrap_or(0),
        Some(Bson::Int64(number)) => u64::try_from(*number).unwrap_or(0),
        _ => 0,
    }
}

/// A number of a key pattern as index names show it.
fn plain(order: &Bson) -> String {
    match order {
        Bson::Int32(number) => number.to_string(),
        Bson::Int64(number) => number.to_string(),
        Bson::Double(number) => number.to_string(),
        Bson::String(kind) => kind.clone(),
        other => other.to_string(),
    }
}
