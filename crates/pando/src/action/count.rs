//! The number of documents that match.

use std::time::Duration;

use bson::{Document, doc};

use super::options;
use crate::{Database, Error, Hint};

/// A count of the documents that match.
#[must_use = "an action does nothing until it is run"]
pub struct CountDocuments<'c> {
    database: &'c Database,
    command: Document,
}

impl<'c> CountDocuments<'c> {
    pub(crate) fn new(database: &'c Database, collection: &str, filter: Document) -> CountDocuments<'c> {
        CountDocuments { database, command: doc! { "count": collection, "query": filter } }
    }

    options! { command:
        /// The number of documents that are passed over.
        skip(u64) => "skip";
        /// The most documents that are counted.
        limit(u64) => "limit";
        /// The index to use.
        hint(Hint) => "hint";
        /// The time after which the count ends with an error.
        max_time(Duration) => "maxTimeMS";
        /// A text for the profiler and the log.
        comment(bson::Bson) => "comment";
    }

    /// Counts.
    ///
    /// # Errors
    /// A filter or hint that is refused; a closed store.
    pub fn run(self) -> Result<u64, Error> {
        Ok(crate::reply::number(&self.database.command(self.command)?, "n"))
    }
}
