//! A database: a named group of collections.

use bson::Document;

use crate::{Collection, Error, Pando};

/// A database of a store.
#[derive(Clone)]
pub struct Database {
    store: Pando,
    name: String,
}

impl Database {
    pub(crate) fn new(store: Pando, name: String) -> Database {
        Database { store, name }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A collection whose documents are `T`s: any serde type, or [`bson::Document`]. It comes into being with
    /// its first document.
    pub fn collection<T>(&self, name: &str) -> Collection<T> {
        Collection::new(self.clone(), name.to_owned())
    }

    /// The names of its collections.
    pub fn list_collection_names(&self) -> Result<Vec<String>, Error> {
        let reply = self.run_command(bson::doc! { "listCollections": 1, "nameOnly": true })?;
        let batch = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
        let batch = batch.map(Vec::as_slice).unwrap_or_default();
        Ok(batch
            .iter()
            .filter_map(|one| one.as_document()?.get_str("name").ok().map(str::to_owned))
            .collect())
    }

    /// Drops it with all its collections.
    pub fn drop(&self) -> Result<(), Error> {
        self.run_command(bson::doc! { "dropDatabase": 1 }).map(|_| ())
    }

    /// Runs any command that a MongoDB client may send, and gives the reply document.
    pub fn run_command(&self, command: Document) -> Result<Document, Error> {
        self.store.run(&self.name, command)
    }

    pub(crate) fn store(&self) -> &Pando {
        &self.store
    }
}
