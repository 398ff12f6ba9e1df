//! Deletes.

use std::borrow::Cow;
use std::time::Duration;

use bson::{Document, doc};

use super::{in_session, options};
use crate::reply::{check_writes, number};
use crate::results::DeleteResult;
use crate::{Database, Error, Hint};

/// A delete of the first document that matches, or of all.
#[must_use = "an action does nothing until it is run"]
pub struct Delete<'c> {
    database: Cow<'c, Database>,
    command: Document,
    statement: Document,
}

impl<'c> Delete<'c> {
    pub(crate) fn new(database: &'c Database, collection: &str, statement: Document) -> Delete<'c> {
        Delete { database: Cow::Borrowed(database), command: doc! { "delete": collection }, statement }
    }

    in_session! { database }

    options! { statement:
        /// The rules of a language by which strings compare: `doc! { "locale": "de", "strength": 2 }`.
        /// Needs the feature `collation`.
        collation(Document) => "collation";
        /// The index to use.
        hint(Hint) => "hint";
    }

    options! { command:
        /// Variables for expressions of the filter.
        let_vars(Document) => "let";
        /// A text for the profiler and the log.
        comment(bson::Bson) => "comment";
        /// The time after which the deletion ends with an error, also while it waits for a transaction
        /// that has changed the same document. Zero is no limit.
        max_time(Duration) => "maxTimeMS";
    }

    /// Deletes.
    ///
    /// # Errors
    /// A filter or hint that is refused; a closed store.
    pub fn run(mut self) -> Result<DeleteResult, Error> {
        self.command.insert("deletes", vec![bson::Bson::Document(self.statement)]);
        let reply = check_writes(self.database.write(self.command)?)?;
        Ok(DeleteResult { deleted_count: number(&reply, "n") })
    }
}
