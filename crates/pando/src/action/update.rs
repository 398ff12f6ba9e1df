//! Updates.

use std::borrow::Cow;
use std::time::Duration;

use bson::{Bson, Document, doc};

use super::{in_session, options};
use crate::reply::{check_writes, number};
use crate::results::UpdateResult;
use crate::{Database, Error, Hint, UpdateModifications};

/// An update of the first document that matches, or of all.
#[must_use = "an action does nothing until it is run"]
pub struct Update<'c> {
    database: Cow<'c, Database>,
    command: Document,
    statement: Document,
    modifications: UpdateModifications,
}

impl<'c> Update<'c> {
    pub(crate) fn new(
        database: &'c Database,
        collection: &str,
        statement: Document,
        modifications: UpdateModifications,
    ) -> Update<'c> {
        Update {
            database: Cow::Borrowed(database),
            command: doc! { "update": collection },
            statement,
            modifications,
        }
    }

    in_session! { database }

    options! { statement:
        /// Whether a document is inserted where none matches.
        upsert(bool) => "upsert";
        /// The filters of `$[name]` in the update.
        array_filters(Vec<Document>) => "arrayFilters";
        /// The rules of a language by which strings compare: `doc! { "locale": "de", "strength": 2 }`.
        /// Needs the feature `collation`.
        collation(Document) => "collation";
        /// The index to use.
        hint(Hint) => "hint";
        /// The order that says which document is the first; only for the update of one.
        sort(Document) => "sort";
    }

    options! { command:
        /// Variables for expressions of the filter and the update.
        let_vars(Document) => "let";
        /// A text for the profiler and the log.
        comment(Bson) => "comment";
        /// The time after which the update ends with an error, also while it waits for a transaction
        /// that has changed the same document. Zero is no limit.
        max_time(Duration) => "maxTimeMS";
    }

    /// Updates.
    ///
    /// # Errors
    /// An update document without operators, before anything is changed. An update, filter or hint that is
    /// refused. A unique index that the new form of a document violates. A closed store.
    pub fn run(mut self) -> Result<UpdateResult, Error> {
        self.statement.insert("u", self.modifications.checked()?);
        run_statement(&self.database, self.command, self.statement)
    }
}

/// Runs a command of one update statement.
pub(super) fn run_statement(
    database: &Database,
    mut command: Document,
    statement: Document,
) -> Result<UpdateResult, Error> {
    command.insert("updates", vec![Bson::Document(statement)]);
    let reply = check_writes(database.write(command)?)?;
    let upserted_id = reply
        .get_array("upserted")
        .ok()
        .and_then(|upserted| upserted.first()?.as_document()?.get("_id").cloned());
    let matched_count = number(&reply, "n") - u64::from(upserted_id.is_some());
    Ok(UpdateResult { matched_count, modified_count: number(&reply, "nModified"), upserted_id })
}
