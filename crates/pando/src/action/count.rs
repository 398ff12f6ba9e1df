//! The number of documents that match.

use std::borrow::Cow;
use std::time::Duration;

use bson::{Document, doc};

use super::{in_session, options};
use crate::{Database, Error, Hint};

/// A count of the documents that match.
#[must_use = "an action does nothing until it is run"]
pub struct CountDocuments<'c> {
    database: Cow<'c, Database>,
    command: Document,
}

impl<'c> CountDocuments<'c> {
    pub(crate) fn new(database: &'c Database, collection: &str, filter: Document) -> CountDocuments<'c> {
        CountDocuments {
            database: Cow::Borrowed(database),
            command: doc! { "count": collection, "query": filter },
        }
    }

    in_session! { database }

    options! { command:
        /// The number of documents that are passed over.
        skip(u64) => "skip";
        /// The most documents that are counted.
        limit(u64) => "limit";
        /// The index to use.
        hint(Hint) => "hint";
        /// The rules of a language by which strings compare: `doc! { "locale": "de", "strength": 2 }`.
        /// Needs the feature `collation`.
        collation(Document) => "collation";
        /// The time after which the count ends with an error. Zero is no limit.
        max_time(Duration) => "maxTimeMS";
        /// A text for the profiler and the log.
        comment(bson::Bson) => "comment";
    }

    /// Counts.
    ///
    /// # Errors
    /// A filter or hint that is refused; a closed store.
    pub fn run(self) -> Result<u64, Error> {
        if self.database.has_transaction() {
            return self.run_in_transaction();
        }
        Ok(crate::reply::number(&self.database.command(self.command)?, "n"))
    }

    /// As a pipeline, since a transaction has no command `count`.
    fn run_in_transaction(mut self) -> Result<u64, Error> {
        let mut stages = vec![doc! { "$match": self.command.remove("query").unwrap_or_default() }];
        for (field, stage) in [("skip", "$skip"), ("limit", "$limit")] {
            let number = self.command.remove(field).and_then(|number| number.as_i64());
            stages.extend(number.filter(|number| *number > 0).map(|number| doc! { stage: number }));
        }
        stages.push(doc! { "$group": { "_id": 1, "n": { "$sum": 1 } } });
        let collection = self.command.remove("count").unwrap_or_default();
        let mut command = doc! { "aggregate": collection, "pipeline": stages, "cursor": {} };
        command.extend(self.command);
        let reply = self.database.command(command)?;
        let batch = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
        let group = batch.ok().and_then(|batch| batch.first()?.as_document());
        Ok(group.map_or(0, |group| crate::reply::number(group, "n")))
    }
}
