//! Index builds.

use std::borrow::Cow;

use bson::{Bson, Document, doc};

use super::in_session;
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
    collection: &'c str,
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
        CreateIndexes { database: Cow::Borrowed(database), collection, indexes }
    }

    in_session! { database }

    /// Builds the indexes, and gives their names. None is built if one of them fails.
    ///
    /// # Errors
    /// As [`CreateIndex::run`].
    pub fn run(self) -> Result<CreateIndexesResult, Error> {
        let indexes: Vec<Document> =
            self.indexes.iter().map(IndexModel::specification).collect::<Result<_, _>>()?;
        let name = |index: &Document| index.get_str("name").unwrap_or_default().to_owned();
        let index_names = indexes.iter().map(name).collect();
        let indexes: Vec<Bson> = indexes.into_iter().map(Bson::Document).collect();
        self.database.command(doc! { "createIndexes": self.collection, "indexes": indexes })?;
        Ok(CreateIndexesResult { index_names })
    }
}
