//! Collections with options.

use std::borrow::Cow;

use bson::{Document, doc};

use super::{in_session, options};
use crate::{Database, Error};

/// A new collection.
///
/// ```
/// # use pandodb::{Pando, bson::Document, doc};
/// # fn main() -> Result<(), pandodb::Error> {
/// # let store = Pando::open_in_memory()?;
/// let shop = store.database("shop");
/// shop.create_collection("orders").validator(doc! { "sum": { "$gte": 0 } }).run()?;
/// assert!(shop.collection("orders").insert_one(doc! { "sum": -1 }).run().is_err());
/// // The last thousand entries stay.
/// shop.create_collection("log").capped(true).size(1 << 20).max(1_000).run()?;
/// # Ok(())
/// # }
/// ```
#[must_use = "an action does nothing until it is run"]
pub struct CreateCollection<'d> {
    database: Cow<'d, Database>,
    command: Document,
}

impl<'d> CreateCollection<'d> {
    pub(crate) fn new(database: &'d Database, name: &str) -> CreateCollection<'d> {
        CreateCollection { database: Cow::Borrowed(database), command: doc! { "create": name } }
    }

    in_session! { database }

    options! { command:
        /// Whether the oldest documents make room for new ones; needs a size.
        capped(bool) => "capped";
        /// The most bytes of a capped collection.
        size(u64) => "size";
        /// The most documents of a capped collection.
        max(u64) => "max";
        /// The filter that each new or changed document must match.
        validator(Document) => "validator";
        /// The rules of a language by which strings compare where a call names none. Needs the feature
        /// `collation`.
        collation(Document) => "collation";
        /// The fields of a time series: `doc! { "timeField": "at", "metaField": "sensor" }`.
        timeseries(Document) => "timeseries";
        /// The collection that a view reads.
        view_on(String) => "viewOn";
        /// The stages of a view.
        pipeline(Vec<Document>) => "pipeline";
        /// Options of the engine: `doc! { "betree": { "compression": "zstd" } }`.
        storage_engine(Document) => "storageEngine";
    }

    /// Adds options by the names that the command `create` has for them, such as `validationAction`.
    pub fn further_options(mut self, options: Document) -> Self {
        self.command.extend(options);
        self
    }

    /// Makes the collection.
    ///
    /// # Errors
    /// A collection or view of that name, whatever its options: [`Error::Command`] with the code 48
    /// (`NamespaceExists`). An option that is refused. A closed store.
    pub fn run(self) -> Result<(), Error> {
        self.database.write(self.command).map(drop)
    }
}
