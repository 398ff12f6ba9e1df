//! The description of an index.

use std::time::Duration;

use bson::{Bson, Document};
use serde::{Deserialize, Serialize};

use crate::Error;

/// An index: its keys and its options. `doc! { "people": -1 }` becomes one without options.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct IndexModel {
    /// The fields of the index with their directions: 1 ascending, -1 descending.
    #[serde(rename = "key")]
    pub keys: Document,
    /// The options.
    #[serde(flatten)]
    pub options: Option<IndexOptions>,
}

/// The options of an index.
///
/// ```
/// # use pandodb::{IndexModel, IndexOptions, Pando, bson::Document, doc};
/// # fn main() -> Result<(), pandodb::Error> {
/// # let store = Pando::open_in_memory()?;
/// # let users = store.database("shop").collection::<Document>("users");
/// let unique = IndexOptions::builder().unique(true).build();
/// users.create_index(IndexModel::builder().keys(doc! { "mail": 1 }).options(unique).build()).run()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct IndexOptions {
    /// Its name; `people_-1` for `doc! { "people": -1 }` unless it is said here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether no two documents may have the same keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unique: Option<bool>,
    /// Whether documents without the fields have no entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sparse: Option<bool>,
    /// Whether searches pass the index over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<bool>,
    /// The time after which a document is deleted, from the date in the indexed field; in whole seconds, to
    /// which it is rounded up.
    #[serde(rename = "expireAfterSeconds", with = "whole_seconds", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expire_after: Option<Duration>,
    /// The filter of documents that have an entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial_filter_expression: Option<Document>,
    /// Which fields a wildcard index has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wildcard_projection: Option<Document>,
    /// The rules of a language by which strings compare: `doc! { "locale": "de", "strength": 2 }`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collation: Option<Document>,
    /// The weights of the fields of a text index: `doc! { "title": 10, "text": 1 }`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<Document>,
    /// The language of a text index, such as `german`.
    #[serde(rename = "default_language", skip_serializing_if = "Option::is_none")]
    pub default_language: Option<String>,
    /// The field of a document that names its own language.
    #[serde(rename = "language_override", skip_serializing_if = "Option::is_none")]
    pub language_override: Option<String>,
    /// Options of the engine: `doc! { "betree": { "compression": "zstd" } }`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_engine: Option<Document>,
    /// Options by the names that the command `createIndexes` has for them, such as `bits`, `min` and `max` of
    /// a `2d` index, `2dsphereIndexVersion` or `prepareUnique`. A listed index has its version `v` here.
    #[serde(flatten)]
    pub further: Document,
}

/// Methods that set a field, and `build`, so that a description reads as with the official crate.
macro_rules! builder {
    ($type:ident: $($(#[$doc:meta])* $name:ident($value:ty);)*) => {
        impl $type {
            /// An empty description, to be filled by further methods.
            pub fn builder() -> $type {
                $type::default()
            }

            $(
                $(#[$doc])*
                #[must_use = "the description is changed and given back"]
                pub fn $name(mut self, value: impl Into<$value>) -> $type {
                    self.$name = value.into();
                    self
                }
            )*

            /// The description.
            #[must_use = "the description is given back"]
            pub fn build(self) -> $type {
                self
            }
        }
    };
}
pub(crate) use builder;

builder! { IndexModel:
    /// Sets the fields of the index.
    keys(Document);
    /// Sets the options.
    options(Option<IndexOptions>);
}

builder! { IndexOptions:
    /// Sets its name.
    name(Option<String>);
    /// Sets whether no two documents may have the same keys.
    unique(Option<bool>);
    /// Sets whether documents without the fields have no entry.
    sparse(Option<bool>);
    /// Sets whether searches pass the index over.
    hidden(Option<bool>);
    /// Sets the time after which a document is deleted.
    expire_after(Option<Duration>);
    /// Sets the filter of documents that have an entry.
    partial_filter_expression(Option<Document>);
    /// Sets which fields a wildcard index has.
    wildcard_projection(Option<Document>);
    /// Sets the rules of a language by which strings compare.
    collation(Option<Document>);
    /// Sets the weights of the fields of a text index.
    weights(Option<Document>);
    /// Sets the language of a text index.
    default_language(Option<String>);
    /// Sets the field of a document that names its own language.
    language_override(Option<String>);
    /// Sets options of the engine.
    storage_engine(Option<Document>);
    /// Sets options by the names that the command `createIndexes` has for them.
    further(Document);
}

impl From<Document> for IndexModel {
    fn from(keys: Document) -> IndexModel {
        IndexModel { keys, options: None }
    }
}

impl IndexModel {
    /// The description as the command takes it, with a name.
    pub(crate) fn specification(&self) -> Result<Document, Error> {
        let mut specification = bson::serialize_to_document(self)?;
        if !specification.contains_key("name") {
            let parts: Vec<String> =
                self.keys.iter().map(|(path, order)| format!("{path}_{}", plain(order))).collect();
            specification.insert("name", parts.join("_"));
        }
        Ok(specification)
    }
}

/// A number of a key pattern as index names show it.
fn plain(order: &Bson) -> String {
    match order {
        Bson::Int32(number) => number.to_string(),
        Bson::Int64(number) => number.to_string(),
        Bson::Double(number) => number.to_string(),
        Bson::String(kind) => kind.clone(),
        other => other.to_string(),
    }
}

/// A time as a whole number of seconds.
mod whole_seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// A part of a second counts as a whole one, so that nothing is deleted too early.
    pub fn serialize<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        let rounded_up = |time: Duration| time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
        time.map(|time| i64::try_from(rounded_up(time)).unwrap_or(i64::MAX)).serialize(to)
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Option<Duration>, D::Error> {
        let seconds = Option::<f64>::deserialize(from)?;
        Ok(seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_time_of_less_than_a_second_is_no_time_at_once() {
        for (milliseconds, seconds) in [(0, 0), (1, 1), (500, 1), (1_000, 1), (1_500, 2)] {
            let options = IndexOptions::builder().expire_after(Duration::from_millis(milliseconds)).build();
            let model = IndexModel::builder().keys(bson::doc! { "at": 1 }).options(options).build();
            assert_eq!(model.specification().unwrap().get_i64("expireAfterSeconds").unwrap(), seconds);
        }
    }
}
