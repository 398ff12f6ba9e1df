//! Replacements of a whole document.

use std::borrow::Cow;
use std::time::Duration;

use bson::{Document, doc};

use super::update::run_statement;
use super::{in_session, options};
use crate::results::UpdateResult;
use crate::update_modifications::checked_replacement;
use crate::{Database, Error, Hint};

/// A replacement of the first document that matches; it keeps its `_id`.
#[must_use = "an action does nothing until it is run"]
pub struct ReplaceOne<'c> {
    database: Cow<'c, Database>,
    command: Document,
    statement: Document,
    /// The new document, or why it cannot become one.
    replacement: Result<Document, Error>,
}

impl<'c> ReplaceOne<'c> {
    pub(crate) fn new(
        database: &'c Database,
        collection: &str,
        filter: Document,
        replacement: Result<Document, Error>,
    ) -> ReplaceOne<'c> {
        let (command, statement) = (doc! { "update": collection }, doc! { "q": filter });
        ReplaceOne { database: Cow::Borrowed(database), command, statement, replacement }
    }

    in_session! { database }

    options! { statement:
        /// Whether the document is inserted where none matches.
        upsert(bool) => "upsert";
        /// The rules of a language by which strings compare: `doc! { "locale": "de", "strength": 2 }`.
        /// Needs the feature `collation`.
        collation(Document) => "collation";
        /// The index to use.
        hint(Hint) => "hint";
        /// The order that says which document is the first.
        sort(Document) => "sort";
    }

    options! { command:
        /// Variables for expressions of the filter.
        let_vars(Document) => "let";
        /// A text for the profiler and the log.
        comment(bson::Bson) => "comment";
        /// The time after which the replacement ends with an error, also while it waits for a transaction
        /// that has changed the same document. Zero is no limit.
        max_time(Duration) => "maxTimeMS";
    }

    /// Replaces.
    ///
    /// # Errors
    /// A replacement that begins with an operator, before anything is changed. Another `_id` than that of the
    /// old document. A filter or hint that is refused. A unique index that the new document violates. A
    /// closed store.
    pub fn run(mut self) -> Result<UpdateResult, Error> {
        self.statement.insert("u", checked_replacement(self.replacement?)?);
        run_statement(&self.database, self.command, self.statement)
    }
}
