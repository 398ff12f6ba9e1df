//! Inserts.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bson::{Bson, Document, doc};

use super::{in_session, options};
use crate::documents_with_ids::DocumentsWithIds;
use crate::reply::refused_writes;
use crate::results::{InsertManyResult, InsertOneResult};
use crate::{Database, Error, WriteErrorDetail};

/// An insert of one document.
#[must_use = "an action does nothing until it is run"]
pub struct InsertOne<'c> {
    database: Cow<'c, Database>,
    command: Document,
    document: Result<DocumentsWithIds, Error>,
}

impl<'c> InsertOne<'c> {
    pub(crate) fn new(
        database: &'c Database,
        collection: &'c str,
        document: Result<DocumentsWithIds, Error>,
    ) -> InsertOne<'c> {
        InsertOne { database: Cow::Borrowed(database), command: doc! { "insert": collection }, document }
    }

    in_session! { database }

    options! { command:
        /// The time after which the insert ends with an error, also while it waits for a transaction that has
        /// taken the same key of a unique index. Zero is no limit.
        max_time(Duration) => "maxTimeMS";
    }

    /// Inserts, and gives the document's `_id`. A document without one gets an [`bson::oid::ObjectId`].
    ///
    /// # Errors
    /// A value that cannot become BSON; an `_id` or a key of a unique index that is taken
    /// ([`Error::is_duplicate_key`]); a closed store.
    pub fn run(self) -> Result<InsertOneResult, Error> {
        let mut documents = self.document?;
        self.database.insert(self.command, documents.bytes()).and_then(crate::reply::check_writes)?;
        Ok(InsertOneResult { inserted_id: documents.take_ids().pop().unwrap_or(Bson::Null) })
    }
}

/// An insert of several documents.
#[must_use = "an action does nothing until it is run"]
pub struct InsertMany<'c> {
    database: Cow<'c, Database>,
    command: Document,
    documents: Result<DocumentsWithIds, Error>,
    ordered: bool,
}

impl<'c> InsertMany<'c> {
    pub(crate) fn new(
        database: &'c Database,
        collection: &'c str,
        documents: Result<DocumentsWithIds, Error>,
    ) -> InsertMany<'c> {
        let command = doc! { "insert": collection };
        InsertMany { database: Cow::Borrowed(database), command, documents, ordered: true }
    }

    in_session! { database }

    options! { command:
        /// The time after which the insert ends with an error, also while it waits for a transaction that has
        /// taken the same key of a unique index. Many documents go in several parts, each of which may take
        /// as long. Zero is no limit.
        max_time(Duration) => "maxTimeMS";
    }

    /// Whether the first failure ends the insert, which is so unless `false` is said here.
    pub fn ordered(mut self, ordered: bool) -> Self {
        self.ordered = ordered;
        self
    }

    /// Inserts, and gives the `_id` of each document by its place in the list.
    ///
    /// # Errors
    /// [`Error::InsertMany`] with the documents that were refused, and the `_id` of those that are in the
    /// collection: all before the first failure, and with `ordered(false)` those behind it, too. A refusal of
    /// the first part comes as itself, unless later parts were tried; some documents of that part may be in
    /// the collection.
    pub fn run(mut self) -> Result<InsertManyResult, Error> {
        let mut documents = self.documents?;
        if documents.is_empty() {
            return Err(Error::InvalidArgument("insert_many needs at least one document".to_owned()));
        }
        // A failure ends a transaction, so that nothing of it is in the collection.
        let is_in_transaction = self.database.has_transaction();
        let ends_at_first = self.ordered || is_in_transaction;
        let mut errors: Vec<WriteErrorDetail> = Vec::new();
        self.command.insert("ordered", self.ordered);
        let batches = documents.batches();
        for batch in &batches {
            let failed = match self.database.insert(self.command.clone(), documents.bytes_of(batch)) {
                Ok(reply) => crate::reply::write_errors(&reply, |place| batch.first + place),
                Err(error @ Error::Closed) if batch.first == 0 => return Err(error),
                Err(error) if batch.first == 0 && (ends_at_first || batches.len() == 1) => return Err(error),
                Err(error) if ends_at_first => refused_writes(error, batch.first..batch.first + 1)?,
                Err(error) => refused_writes(error, batch.first..batch.end)?,
            };
            errors.extend(failed);
            if ends_at_first && !errors.is_empty() {
                break;
            }
        }
        let mut inserted_ids: BTreeMap<usize, Bson> = documents.take_ids().into_iter().enumerate().collect();
        let Some(first) = errors.first().map(|error| error.index) else {
            return Ok(InsertManyResult { inserted_ids });
        };
        let refused: BTreeSet<usize> = errors.iter().map(|error| error.index).collect();
        let is_in = |place: &usize| !refused.contains(place) && (!self.ordered || *place < first);
        inserted_ids.retain(|place, _| !is_in_transaction && is_in(place));
        Err(Error::InsertMany { errors, inserted_ids })
    }
}
