//! Changes of one document that give the document itself, as it was before or as it is after.

use std::borrow::Cow;
use std::time::Duration;

use bson::{Bson, Document, doc};
use serde::de::DeserializeOwned;

use super::{in_session, options};
use crate::reply::value_of;
use crate::update_modifications::checked_replacement;
use crate::{Collection, Error, Hint, ReturnDocument, UpdateModifications};

/// Options that all three have.
macro_rules! shared_options {
    () => {
        options! { command:
            /// The order that says which document is the first.
            sort(Document) => "sort";
            /// The fields that are given: `doc! { "name": 1 }`.
            projection(Document) => "fields";
            /// The index to use.
            hint(Hint) => "hint";
            /// The rules of a language by which strings compare: `doc! { "locale": "de", "strength": 2 }`.
            /// Needs the feature `collation`.
            collation(Document) => "collation";
            /// The time after which the call ends with an error. Zero is no limit.
            max_time(Duration) => "maxTimeMS";
            /// Variables for expressions of the filter and the update.
            let_vars(Document) => "let";
            /// A text for the profiler and the log.
            comment(Bson) => "comment";
        }
    };
}

/// Options of those that leave a document.
macro_rules! options_of_changes {
    () => {
        options! { command:
            /// Whether a document is inserted where none matches.
            upsert(bool) => "upsert";
        }

        /// Which form of the document is given; the old one unless this is said.
        pub fn return_document(mut self, form: ReturnDocument) -> Self {
            self.command.insert("new", form == ReturnDocument::After);
            self
        }
    };
}

fn command<T>(collection: &Collection<T>, filter: Document) -> Document {
    doc! { "findAndModify": collection.name(), "query": filter }
}

fn run<T: DeserializeOwned>(collection: &Collection<T>, command: Document) -> Result<Option<T>, Error> {
    let reply = collection.database().write_for_bytes(command)?;
    value_of(&reply, collection)
}

/// An update of the first document that matches.
#[must_use = "an action does nothing until it is run"]
pub struct FindOneAndUpdate<'c, T> {
    collection: Cow<'c, Collection<T>>,
    command: Document,
    modifications: UpdateModifications,
}

impl<'c, T> FindOneAndUpdate<'c, T> {
    pub(crate) fn new(
        collection: &'c Collection<T>,
        filter: Document,
        modifications: UpdateModifications,
    ) -> FindOneAndUpdate<'c, T> {
        FindOneAndUpdate {
            collection: Cow::Borrowed(collection),
            command: command(collection, filter),
            modifications,
        }
    }

    in_session! { collection }

    shared_options! {}
    options_of_changes! {}

    options! { command:
        /// The filters of `$[name]` in the update.
        array_filters(Vec<Document>) => "arrayFilters";
    }
}

impl<T: DeserializeOwned> FindOneAndUpdate<'_, T> {
    /// Updates. Gives `None` where there is no such form of the document.
    ///
    /// # Errors
    /// As [`Update::run`](super::Update::run); and a document that does not fit `T`.
    pub fn run(mut self) -> Result<Option<T>, Error> {
        self.command.insert("update", self.modifications.checked()?);
        run(&self.collection, self.command)
    }
}

/// A replacement of the first document that matches.
#[must_use = "an action does nothing until it is run"]
pub struct FindOneAndReplace<'c, T> {
    collection: Cow<'c, Collection<T>>,
    command: Document,
    replacement: Result<Document, Error>,
}

impl<'c, T> FindOneAndReplace<'c, T> {
    pub(crate) fn new(
        collection: &'c Collection<T>,
        filter: Document,
        replacement: Result<Document, Error>,
    ) -> FindOneAndReplace<'c, T> {
        FindOneAndReplace {
            collection: Cow::Borrowed(collection),
            command: command(collection, filter),
            replacement,
        }
    }

    in_session! { collection }

    shared_options! {}
    options_of_changes! {}
}

impl<T: DeserializeOwned> FindOneAndReplace<'_, T> {
    /// Replaces. Gives `None` where there is no such form of the document.
    ///
    /// # Errors
    /// As [`ReplaceOne::run`](super::ReplaceOne::run); and a document that does not fit `T`.
    pub fn run(mut self) -> Result<Option<T>, Error> {
        self.command.insert("update", checked_replacement(self.replacement?)?);
        run(&self.collection, self.command)
    }
}

/// A delete of the first document that matches.
#[must_use = "an action does nothing until it is run"]
pub struct FindOneAndDelete<'c, T> {
    collection: Cow<'c, Collection<T>>,
    command: Document,
}

impl<'c, T> FindOneAndDelete<'c, T> {
    pub(crate) fn new(collection: &'c Collection<T>, filter: Document) -> FindOneAndDelete<'c, T> {
        let mut command = command(collection, filter);
        command.insert("remove", true);
        FindOneAndDelete { collection: Cow::Borrowed(collection), command }
    }

    in_session! { collection }

    shared_options! {}
}

impl<T: DeserializeOwned> FindOneAndDelete<'_, T> {
    /// Deletes. Gives the document, or `None` where none matches.
    ///
    /// # Errors
    /// A filter or hint that is refused; a document that does not fit `T`; a closed store.
    pub fn run(self) -> Result<Option<T>, Error> {
        run(&self.collection, self.command)
    }
}
