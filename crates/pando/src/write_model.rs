//! The writes of a bulk write.

use bson::{Bson, Document, doc};

use crate::index_model::builder;
use crate::update_modifications::checked_replacement;
use crate::{Error, Hint, Namespace, UpdateModifications};

/// One write of a bulk write.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum WriteModel {
    /// Inserts a document.
    InsertOne(InsertOneModel),
    /// Updates the first document that matches.
    UpdateOne(UpdateOneModel),
    /// Updates every document that matches.
    UpdateMany(UpdateManyModel),
    /// Replaces the first document that matches.
    ReplaceOne(ReplaceOneModel),
    /// Deletes the first document that matches.
    DeleteOne(DeleteOneModel),
    /// Deletes every document that matches.
    DeleteMany(DeleteManyModel),
}

/// Models, and their place among the writes.
macro_rules! models {
    ($($(#[$doc:meta])* $type:ident as $variant:ident { $($(#[$field_doc:meta])* $name:ident: $value:ty,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Default, PartialEq)]
            #[non_exhaustive]
            pub struct $type {
                /// The collection.
                pub namespace: Namespace,
                $($(#[$field_doc])* pub $name: $value,)*
            }

            builder! { $type:
                /// Sets the collection.
                namespace(Namespace);
                $($(#[$field_doc])* $name($value);)*
            }

            impl From<$type> for WriteModel {
                fn from(model: $type) -> WriteModel {
                    WriteModel::$variant(model)
                }
            }
        )*
    };
}

models! {
    /// An insert.
    InsertOneModel as InsertOne {
        /// The document.
        document: Document,
    }
    /// An update of the first document that matches.
    UpdateOneModel as UpdateOne {
        /// The filter.
        filter: Document,
        /// The changes.
        update: UpdateModifications,
        /// The filters of `$[name]` in the update.
        array_filters: Option<Vec<Document>>,
        /// The rules of a language by which strings compare.
        collation: Option<Document>,
        /// The index to use.
        hint: Option<Hint>,
        /// Whether a document is inserted where none matches.
        upsert: Option<bool>,
        /// The order that says which document is the first.
        sort: Option<Document>,
    }
    /// An update of every document that matches.
    UpdateManyModel as UpdateMany {
        /// The filter.
        filter: Document,
        /// The changes.
        update: UpdateModifications,
        /// The filters of `$[name]` in the update.
        array_filters: Option<Vec<Document>>,
        /// The rules of a language by which strings compare.
        collation: Option<Document>,
        /// The index to use.
        hint: Option<Hint>,
        /// Whether a document is inserted where none matches.
        upsert: Option<bool>,
    }
    /// A replacement of the first document that matches.
    ReplaceOneModel as ReplaceOne {
        /// The filter.
        filter: Document,
        /// The new document.
        replacement: Document,
        /// The rules of a language by which strings compare.
        collation: Option<Document>,
        /// The index to use.
        hint: Option<Hint>,
        /// Whether the document is inserted where none matches.
        upsert: Option<bool>,
        /// The order that says which document is the first.
        sort: Option<Document>,
    }
    /// A delete of the first document that matches.
    DeleteOneModel as DeleteOne {
        /// The filter.
        filter: Document,
        /// The rules of a language by which strings compare.
        collation: Option<Document>,
        /// The index to use.
        hint: Option<Hint>,
    }
    /// A delete of every document that matches.
    DeleteManyModel as DeleteMany {
        /// The filter.
        filter: Document,
        /// The rules of a language by which strings compare.
        collation: Option<Document>,
        /// The index to use.
        hint: Option<Hint>,
    }
}

/// The command of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatementKind {
    Insert,
    Update,
    Delete,
}

impl StatementKind {
    /// The name of the command, and that of its list.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            StatementKind::Insert => ("insert", "documents"),
            StatementKind::Update => ("update", "updates"),
            StatementKind::Delete => ("delete", "deletes"),
        }
    }
}

/// A write as a command has it.
pub(crate) struct Statement {
    pub kind: StatementKind,
    pub namespace: Namespace,
    pub document: Document,
}

/// Options that a statement may have; an absent one is left out.
#[derive(Default)]
struct StatementOptions {
    array_filters: Option<Vec<Document>>,
    collation: Option<Document>,
    hint: Option<Hint>,
    upsert: Option<bool>,
    sort: Option<Document>,
}

impl StatementOptions {
    fn add_to(self, statement: &mut Document) {
        let filters = self.array_filters.map(|all| all.into_iter().map(Bson::Document).collect::<Vec<_>>());
        let values = [
            ("arrayFilters", filters.map(Bson::Array)),
            ("collation", self.collation.map(Bson::Document)),
            ("hint", self.hint.map(Bson::from)),
            ("upsert", self.upsert.map(Bson::Boolean)),
            ("sort", self.sort.map(Bson::Document)),
        ];
        for (name, value) in values {
            if let Some(value) = value {
                statement.insert(name, value);
            }
        }
    }
}

impl WriteModel {
    /// The write as a command has it.
    ///
    /// # Errors
    /// An update without operators, a replacement with one, a model without a collection.
    pub(crate) fn into_statement(self) -> Result<Statement, Error> {
        let none = StatementOptions::default;
        let (kind, namespace, mut document, options) = match self {
            WriteModel::InsertOne(InsertOneModel { namespace, document }) => {
                (StatementKind::Insert, namespace, document, none())
            }
            WriteModel::UpdateOne(model) => {
                let UpdateOneModel {
                    namespace,
                    filter,
                    update,
                    array_filters,
                    collation,
                    hint,
                    upsert,
                    sort,
                } = model;
                let options = StatementOptions { array_filters, collation, hint, upsert, sort };
                let document = doc! { "q": filter, "u": update.checked()? };
                (StatementKind::Update, namespace, document, options)
            }
            WriteModel::UpdateMany(model) => {
                let UpdateManyModel { namespace, filter, update, array_filters, collation, hint, upsert } =
                    model;
                let options = StatementOptions { array_filters, collation, hint, upsert, sort: None };
                let document = doc! { "q": filter, "u": update.checked()?, "multi": true };
                (StatementKind::Update, namespace, document, options)
            }
            WriteModel::ReplaceOne(model) => {
                let ReplaceOneModel { namespace, filter, replacement, collation, hint, upsert, sort } = model;
                let options = StatementOptions { collation, hint, upsert, sort, ..none() };
                let document = doc! { "q": filter, "u": checked_replacement(replacement)? };
                (StatementKind::Update, namespace, document, options)
            }
            WriteModel::DeleteOne(DeleteOneModel { namespace, filter, collation, hint }) => {
                let document = doc! { "q": filter, "limit": 1 };
                (StatementKind::Delete, namespace, document, StatementOptions { collation, hint, ..none() })
            }
            WriteModel::DeleteMany(DeleteManyModel { namespace, filter, collation, hint }) => {
                let document = doc! { "q": filter, "limit": 0 };
                (StatementKind::Delete, namespace, document, StatementOptions { collation, hint, ..none() })
            }
        };
        if namespace.db.is_empty() || namespace.coll.is_empty() {
            let message = "it has no collection: set `namespace`, for which there is `Collection::namespace`";
            return Err(Error::InvalidArgument(message.to_owned()));
        }
        options.add_to(&mut document);
        Ok(Statement { kind, namespace, document })
    }
}
