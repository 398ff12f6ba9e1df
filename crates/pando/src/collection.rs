//! A typed collection.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;

use bson::{Document, RawDocument, doc};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::action::{
    Action, Aggregate, CountDocuments, CreateIndex, CreateIndexes, Delete, Distinct, Find, FindOne,
    FindOneAndDelete, FindOneAndReplace, FindOneAndUpdate, InsertMany, InsertOne, ReplaceOne, Update,
};
use crate::documents_with_ids::DocumentsWithIds;
use crate::write_model::InsertOneModel;
use crate::{Cursor, Database, Error, IndexModel, Namespace, UpdateModifications, reply};

/// MongoDB's code for a collection that does not exist.
const NAMESPACE_NOT_FOUND: i32 = 26;

/// A collection whose documents are `T`s. Its methods describe calls; `run` carries them out.
pub struct Collection<T> {
    database: Database,
    name: String,
    documents: PhantomData<fn() -> T>,
}

impl<T> Clone for Collection<T> {
    fn clone(&self) -> Collection<T> {
        self.clone_with_type()
    }
}

impl<T> fmt::Debug for Collection<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Collection").field(&format_args!("{}", self.namespace())).finish()
    }
}

impl<T> Collection<T> {
    pub(crate) fn new(database: Database, name: String) -> Collection<T> {
        Collection { database, name, documents: PhantomData }
    }

    /// The same collection with documents of another type.
    pub fn clone_with_type<U>(&self) -> Collection<U> {
        Collection::new(self.database.clone(), self.name.clone())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its full name.
    pub fn namespace(&self) -> Namespace {
        Namespace::new(self.database.name(), self.name())
    }

    /// Updates the first document that matches. Operators as in MongoDB: `doc! { "$inc": { "n": 1 } }`.
    pub fn update_one(&self, filter: Document, update: impl Into<UpdateModifications>) -> Update<'_> {
        Update::new(&self.database, &self.name, doc! { "q": filter }, update.into())
    }

    /// Updates every document that matches. Up to some 10,000 documents change all at once or not at all; a
    /// larger update commits in parts, and one that fails leaves the parts before. In
    /// [`ClientSession::with_transaction`](crate::ClientSession::with_transaction) all is one commit.
    pub fn update_many(&self, filter: Document, update: impl Into<UpdateModifications>) -> Update<'_> {
        Update::new(&self.database, &self.name, doc! { "q": filter, "multi": true }, update.into())
    }

    /// Deletes the first document that matches.
    pub fn delete_one(&self, filter: Document) -> Delete<'_> {
        Delete::new(&self.database, &self.name, doc! { "q": filter, "limit": 1 })
    }

    /// Deletes every document that matches. Up to some 10,000 documents go all at once or not at all; a
    /// larger deletion commits in parts, and one that fails leaves the rest. In
    /// [`ClientSession::with_transaction`](crate::ClientSession::with_transaction) all is one commit.
    pub fn delete_many(&self, filter: Document) -> Delete<'_> {
        Delete::new(&self.database, &self.name, doc! { "q": filter, "limit": 0 })
    }

    /// Counts the documents that match. Without a filter this costs no scan.
    pub fn count_documents(&self, filter: Document) -> CountDocuments<'_> {
        CountDocuments::new(&self.database, &self.name, filter)
    }

    /// Counts all documents. The count is exact.
    pub fn estimated_document_count(&self) -> CountDocuments<'_> {
        self.count_documents(Document::new())
    }

    /// Gives the different values of a field in the documents that match.
    pub fn distinct(&self, field: impl AsRef<str>, filter: Document) -> Distinct<'_> {
        Distinct::new(&self.database, &self.name, field.as_ref().to_owned(), filter)
    }

    /// Runs a pipeline over the collection.
    pub fn aggregate(&self, pipeline: impl IntoIterator<Item = Document>) -> Aggregate<'_> {
        Aggregate::new(&self.database, &self.name, pipeline)
    }

    /// Builds an index: of `doc! { "a": 1, "b": -1 }`, or of an [`IndexModel`] with options.
    pub fn create_index(&self, index: impl Into<IndexModel>) -> CreateIndex<'_> {
        CreateIndex::new(&self.database, &self.name, index.into())
    }

    /// Builds several indexes in one pass over the documents.
    pub fn create_indexes(&self, indexes: impl IntoIterator<Item = IndexModel>) -> CreateIndexes<'_> {
        CreateIndexes::new(&self.database, &self.name, indexes.into_iter().collect())
    }

    /// Lists its indexes. The first is that of `_id`.
    pub fn list_indexes(&self) -> Action<'_, Cursor<IndexModel>> {
        let command = doc! { "listIndexes": &self.name };
        Action::new(move || Cursor::begin(&self.database, &self.name, command))
    }

    /// Lists the names of its indexes.
    pub fn list_index_names(&self) -> Action<'_, Vec<String>> {
        let command = doc! { "listIndexes": &self.name };
        Action::new(move || Ok(reply::names_of(&self.database.command(command)?)))
    }

    /// Drops the index of this name.
    pub fn drop_index(&self, name: impl AsRef<str>) -> Action<'_, ()> {
        let name = name.as_ref();
        // The command would take it for all indexes.
        let is_all = name == "*";
        let command = doc! { "dropIndexes": &self.name, "index": name };
        Action::new(move || {
            if is_all {
                let message = "drop_index takes the name of one index; drop_indexes drops all of them";
                return Err(Error::InvalidArgument(message.to_owned()));
            }
            self.database.command(command).map(|_| ())
        })
    }

    /// Drops all its indexes but that of `_id`.
    pub fn drop_indexes(&self) -> Action<'_, ()> {
        let command = doc! { "dropIndexes": &self.name, "index": "*" };
        Action::new(move || self.database.command(command).map(|_| ()))
    }

    /// Drops the collection with its indexes. One that does not exist is no error.
    pub fn drop(&self) -> Action<'_, ()> {
        let command = doc! { "drop": &self.name };
        Action::new(move || match self.database.command(command) {
            Ok(_) | Err(Error::Command { code: NAMESPACE_NOT_FOUND, .. }) => Ok(()),
            Err(error) => Err(error),
        })
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }
}

impl<T: Serialize> Collection<T> {
    /// Inserts a document.
    pub fn insert_one(&self, document: impl Borrow<T>) -> InsertOne<'_> {
        InsertOne::new(&self.database, &self.name, with_ids([document]))
    }

    /// Inserts documents in order, up to the first that fails.
    pub fn insert_many(&self, documents: impl IntoIterator<Item = impl Borrow<T>>) -> InsertMany<'_> {
        InsertMany::new(&self.database, &self.name, with_ids(documents))
    }

    /// Replaces the first document that matches by a whole new one, which keeps its `_id`.
    pub fn replace_one(&self, filter: Document, replacement: impl Borrow<T>) -> ReplaceOne<'_> {
        ReplaceOne::new(&self.database, &self.name, filter, document_of(replacement.borrow()))
    }

    /// An insert for [`Pando::bulk_write`](crate::Pando::bulk_write).
    ///
    /// # Errors
    /// A value that cannot become BSON.
    pub fn insert_one_model(&self, document: impl Borrow<T>) -> Result<InsertOneModel, Error> {
        let document = document_of(document.borrow())?;
        Ok(InsertOneModel { namespace: self.namespace(), document })
    }
}

impl<T: DeserializeOwned> Collection<T> {
    /// Finds the first document that matches.
    pub fn find_one(&self, filter: Document) -> FindOne<'_, T> {
        FindOne::new(self, filter)
    }

    /// Finds the documents that match, as of one moment. Without a sort they come by `_id`, or in the order
    /// of the index that finds them.
    ///
    /// ```
    /// # use pandodb::{Pando, bson::Document, doc};
    /// # fn main() -> Result<(), pandodb::Error> {
    /// let store = Pando::open_in_memory()?;
    /// let lines = store.database("book").collection::<Document>("lines");
    /// lines.insert_many((1..=20).map(|number| doc! { "_id": number })).run()?;
    /// let page = lines.find(doc! {}).sort(doc! { "_id": -1 }).skip(5).limit(2).batch_size(100).run()?;
    /// let page: Vec<Document> = page.collect::<Result<_, _>>()?;
    /// assert_eq!(page, [doc! { "_id": 15 }, doc! { "_id": 14 }]);
    /// assert_eq!(lines.count_documents(doc! {}).skip(5).limit(10).run()?, 10);
    /// # Ok(())
    /// # }
    /// ```
    pub fn find(&self, filter: Document) -> Find<'_, T> {
        Find::new(self, filter)
    }

    /// Updates the first document that matches, and gives it.
    pub fn find_one_and_update(
        &self,
        filter: Document,
        update: impl Into<UpdateModifications>,
    ) -> FindOneAndUpdate<'_, T> {
        FindOneAndUpdate::new(self, filter, update.into())
    }

    /// Deletes the first document that matches, and gives it.
    pub fn find_one_and_delete(&self, filter: Document) -> FindOneAndDelete<'_, T> {
        FindOneAndDelete::new(self, filter)
    }
}

impl<T: Serialize + DeserializeOwned> Collection<T> {
    /// Replaces the first document that matches, and gives it.
    pub fn find_one_and_replace(
        &self,
        filter: Document,
        replacement: impl Borrow<T>,
    ) -> FindOneAndReplace<'_, T> {
        FindOneAndReplace::new(self, filter, document_of(replacement.borrow()))
    }
}

/// A value in the form in which inserts store it and reads expect it. `serialize_to_document` would take the
/// form for people, which is another one for an `IpAddr` or a `Uuid`.
fn document_of<T: Serialize>(value: &T) -> Result<Document, Error> {
    let bytes = bson::serialize_to_vec(value)?;
    Ok(Document::try_from(RawDocument::from_bytes(&bytes)?)?)
}

fn with_ids<T: Serialize>(
    documents: impl IntoIterator<Item = impl Borrow<T>>,
) -> Result<DocumentsWithIds, Error> {
    let mut with_ids = DocumentsWithIds::default();
    for document in documents {
        with_ids.push(document.borrow())?;
    }
    Ok(with_ids)
}
