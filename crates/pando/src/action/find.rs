//! Searches: the documents that match a filter.

use std::borrow::Cow;
use std::time::Duration;

use bson::{Document, doc};
use serde::de::DeserializeOwned;

use super::{in_session, options};
use crate::{Collection, Cursor, Error, Hint};

/// A search for all documents that match.
#[must_use = "an action does nothing until it is run"]
pub struct Find<'c, T> {
    collection: Cow<'c, Collection<T>>,
    command: Document,
}

impl<'c, T> Find<'c, T> {
    pub(crate) fn new(collection: &'c Collection<T>, filter: Document) -> Find<'c, T> {
        Find {
            collection: Cow::Borrowed(collection),
            command: doc! { "find": collection.name(), "filter": filter },
        }
    }

    in_session! { collection }

    options! { command:
        /// The order: `doc! { "people": -1 }` has the largest first.
        sort(Document) => "sort";
        /// The fields that are given: `doc! { "name": 1 }`.
        projection(Document) => "projection";
        /// The number of documents that are passed over.
        skip(u64) => "skip";
        /// The index to use.
        hint(Hint) => "hint";
        /// The number of documents that are fetched at once.
        batch_size(u32) => "batchSize";
        /// Whether a large sort may use scratch files.
        allow_disk_use(bool) => "allowDiskUse";
        /// The rules of a language by which strings compare: `doc! { "locale": "de", "strength": 2 }`.
        /// Needs the feature `collation`.
        collation(Document) => "collation";
        /// The time after which the search ends with an error. Zero is no limit.
        max_time(Duration) => "maxTimeMS";
        /// The keys of the index where the search begins; needs a hint.
        min(Document) => "min";
        /// The keys of the index before which the search ends; needs a hint.
        max(Document) => "max";
        /// Variables for expressions of the filter.
        let_vars(Document) => "let";
        /// A text for the profiler and the log.
        comment(bson::Bson) => "comment";
    }

    /// The most documents; 0 is no limit. A negative number gives as many in one batch, without a cursor.
    pub fn limit(mut self, most: i64) -> Self {
        self.command.insert("limit", i64::try_from(most.unsigned_abs()).unwrap_or(i64::MAX));
        if most < 0 {
            self.command.insert("singleBatch", true);
        }
        self
    }
}

impl<T: DeserializeOwned> Find<'_, T> {
    /// Begins the search. The cursor gives the documents as of this moment.
    ///
    /// # Errors
    /// A filter, sort, projection or hint that is refused; a closed store.
    pub fn run(self) -> Result<Cursor<T>, Error> {
        Cursor::begin(self.collection.database(), self.collection.name(), self.command)
    }
}

/// A search for the first document that matches.
#[must_use = "an action does nothing until it is run"]
pub struct FindOne<'c, T> {
    collection: Cow<'c, Collection<T>>,
    command: Document,
}

impl<'c, T> FindOne<'c, T> {
    pub(crate) fn new(collection: &'c Collection<T>, filter: Document) -> FindOne<'c, T> {
        let command = doc! { "find": collection.name(), "filter": filter, "limit": 1, "singleBatch": true };
        FindOne { collection: Cow::Borrowed(collection), command }
    }

    in_session! { collection }

    options! { command:
        /// The order that says which document is the first.
        sort(Document) => "sort";
        /// The fields that are given: `doc! { "name": 1 }`.
        projection(Document) => "projection";
        /// The number of documents that are passed over.
        skip(u64) => "skip";
        /// The index to use.
        hint(Hint) => "hint";
        /// Whether a large sort may use scratch files.
        allow_disk_use(bool) => "allowDiskUse";
        /// The rules of a language by which strings compare: `doc! { "locale": "de", "strength": 2 }`.
        /// Needs the feature `collation`.
        collation(Document) => "collation";
        /// The time after which the search ends with an error. Zero is no limit.
        max_time(Duration) => "maxTimeMS";
        /// Variables for expressions of the filter.
        let_vars(Document) => "let";
        /// A text for the profiler and the log.
        comment(bson::Bson) => "comment";
    }
}

impl<T: DeserializeOwned> FindOne<'_, T> {
    /// Searches. Gives `None` where no document matches.
    ///
    /// # Errors
    /// A filter, sort, projection or hint that is refused; a document that does not fit `T`; a closed store.
    pub fn run(self) -> Result<Option<T>, Error> {
        Cursor::begin(self.collection.database(), self.collection.name(), self.command)?.next().transpose()
    }
}
