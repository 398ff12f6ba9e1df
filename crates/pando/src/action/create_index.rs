//! Index builds.

use std::borrow::Cow;
use std::time::Duration;

use bson::{Bson, Document, doc};

use super::{in_session, options};
use crate::results::{CreateIndexResult, CreateIndexesResult};
use crate::{ClientSession, Database, Error, IndexModel};

/// A build of one index.
#[must_use = "an action does nothing until it is run"]
pub struct CreateIndex<'c> {
    indexes: CreateIndexes<'c>,
}

/// A build of several indexes in one pass over the documents.
#[must_use = "an action does nothing until it is run"]
pub struct CreateIndexes<'c> {
    database: Cow<'c, Database>,
    command: Document,
    indexes: Vec<IndexModel>,
}

impl<'c> CreateIndex<'c> {
    pub(crate) fn new(database: &'c Database, collection: &'c str, index: IndexModel) -> CreateIndex<'c> {
        CreateIndex { indexes: CreateIndexes::new(database, collection, vec![index]) }
    }

    /// Makes it a call of the session. An index of a new collection can be built in a transaction.
    pub fn session(self, session: &mut ClientSession) -> Self {
        CreateIndex { indexes: self.indexes.session(session) }
    }

    /// The time after which the build ends with an error, and leaves nothing behind. Zero is no limit.
    pub fn max_time(self, value: impl Into<Duration>) -> Self {
        CreateIndex { indexes: self.indexes.max_time(value) }
    }

    /// Builds the index, and gives its name. An index that is there already is left as it is.
    ///
    /// # Errors
    /// Documents that a unique index cannot have; an index of that name with other keys; a closed store.
    pub fn run(self) -> Result<CreateIndexResult, Error> {
        let mut names = self.indexes.run()?.index_names;
        Ok(CreateIndexResult { index_name: names.pop().unwrap_or_default() })
    }
}

impl<'c> CreateIndexes<'c> {
    pub(crate) fn new(
        database: &'c Database,
        collection: &'c str,
        indexes: Vec<IndexModel>,
    ) -> CreateIndexes<'c> {
        CreateIndexes {
            database: Cow::Borrowed(database),
            command: doc! { "createIndexes": collection },
            indexes,
        }
    }

    in_session! { database }

    options! { command:
        /// The time after which the build ends with an error, and leaves nothing behind. Zero is no limit.
        max_time(Duration) => "maxTimeMS";
    }

    /// Builds the indexes, and gives their names. None is built if one of them fails.
    ///
    /// # Errors
    /// As [`CreateIndex::run`].
    pub fn run(mut self) -> Result<CreateIndexesResult, Error> {
        let indexes: Vec<Document> =
            self.indexes.iter().map(IndexModel::specification).collect::<Result<_, _>>()?;
        let name = |index: &Document| index.get_str("name").unwrap_or_default().to_owned();
        let index_names = indexes.iter().map(name).collect();
        let indexes: Vec<Bson> = indexes.into_iter().map(Bson::Document).collect();
        self.command.insert("indexes", indexes);
        self.database.command(self.command)?;
        Ok(CreateIndexesResult { index_names })
    }
}
