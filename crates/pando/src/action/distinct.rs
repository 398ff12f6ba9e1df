//! The different values of a field.

use std::borrow::Cow;
use std::time::Duration;

use bson::{Bson, Document, doc};

use super::{in_session, options};
use crate::{Database, Error, Hint};

/// A search for the different values of a field.
#[must_use = "an action does nothing until it is run"]
pub struct Distinct<'c> {
    database: Cow<'c, Database>,
    command: Document,
}

impl<'c> Distinct<'c> {
    pub(crate) fn new(
        database: &'c Database,
        collection: &str,
        field: String,
        filter: Document,
    ) -> Distinct<'c> {
        Distinct {
            database: Cow::Borrowed(database),
            command: doc! { "distinct": collection, "key": field, "query": filter },
        }
    }

    in_session! { database }

    options! { command:
        /// The index to use.
        hint(Hint) => "hint";
        /// The rules of a language by which strings compare: `doc! { "locale": "de", "strength": 2 }`.
        /// Needs the feature `collation`.
        collation(Document) => "collation";
        /// The time after which the search ends with an error. Zero is no limit.
        max_time(Duration) => "maxTimeMS";
        /// A text for the profiler and the log.
        comment(Bson) => "comment";
    }

    /// Gives each value once. Of an array, each element is a value.
    ///
    /// # Errors
    /// A filter or hint that is refused; more than 16 MB of values; a closed store.
    pub fn run(self) -> Result<Vec<Bson>, Error> {
        let mut reply = self.database.command(self.command)?;
        match reply.remove("values") {
            Some(Bson::Array(values)) => Ok(values),
            _ => Ok(Vec::new()),
        }
    }
}
