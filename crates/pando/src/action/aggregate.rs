//! Aggregations: a pipeline over a collection.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::time::Duration;

use bson::{Bson, Document, doc};
use serde::de::DeserializeOwned;

use super::{in_session, options};
use crate::{Cursor, Database, Error, Hint};

/// The collection of a cursor over a database.
const COLLECTIONLESS: &str = "$cmd.aggregate";

/// A pipeline over a collection. Its results are [`Document`]s, or values of the type of
/// [`Aggregate::with_type`].
#[must_use = "an action does nothing until it is run"]
pub struct Aggregate<'c, T = Document> {
    database: Cow<'c, Database>,
    collection: &'c str,
    command: Document,
    results: PhantomData<fn() -> T>,
}

impl<'c> Aggregate<'c, Document> {
    pub(crate) fn new(
        database: &'c Database,
        collection: &'c str,
        pipeline: impl IntoIterator<Item = Document>,
    ) -> Self {
        Aggregate::over(database, collection, collection.into(), pipeline)
    }

    /// A pipeline whose first stage makes documents itself.
    pub(crate) fn of_database(database: &'c Database, pipeline: impl IntoIterator<Item = Document>) -> Self {
        Aggregate::over(database, COLLECTIONLESS, Bson::Int32(1), pipeline)
    }

    fn over(
        database: &'c Database,
        collection: &'c str,
        source: Bson,
        pipeline: impl IntoIterator<Item = Document>,
    ) -> Self {
        let stages: Vec<Bson> = pipeline.into_iter().map(Bson::Document).collect();
        let command = doc! { "aggregate": source, "pipeline": stages, "cursor": {} };
        Aggregate { database: Cow::Borrowed(database), collection, command, results: PhantomData }
    }
}

impl<'c, T> Aggregate<'c, T> {
    in_session! { database }

    options! { command:
        /// The index to use.
        hint(Hint) => "hint";
        /// Whether large stages may use scratch files.
        allow_disk_use(bool) => "allowDiskUse";
        /// The rules of a language by which strings compare: `doc! { "locale": "de", "strength": 2 }`.
        /// Needs the feature `collation`.
        collation(Document) => "collation";
        /// The time after which the aggregation ends with an error. Zero is no limit.
        max_time(Duration) => "maxTimeMS";
        /// Variables for the expressions of the pipeline.
        let_vars(Document) => "let";
        /// A text for the profiler and the log.
        comment(Bson) => "comment";
    }

    /// The number of results that are fetched at once.
    pub fn batch_size(mut self, results: u32) -> Self {
        self.command.insert("cursor", doc! { "batchSize": i64::from(results) });
        self
    }

    /// Gives the results as values of another type.
    pub fn with_type<U>(self) -> Aggregate<'c, U> {
        let Aggregate { database, collection, command, .. } = self;
        Aggregate { database, collection, command, results: PhantomData }
    }
}

impl<T: DeserializeOwned> Aggregate<'_, T> {
    /// Begins the aggregation.
    ///
    /// # Errors
    /// A pipeline that is refused; a closed store.
    pub fn run(self) -> Result<Cursor<T>, Error> {
        Cursor::begin(&self.database, self.collection, self.command)
    }
}
