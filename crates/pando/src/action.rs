//! Actions: the calls of a collection or a database, with their options.
//!
//! A method such as [`Collection::find`](crate::Collection::find) only describes a call. Options are added by
//! further methods, and `run` carries the call out. The names are those of the official crate `mongodb`
//! (its module `sync`), so that a program moves between the two with few changes.

mod aggregate;
mod backup;
mod bulk_write;
mod count;
mod create_collection;
mod create_index;
mod delete;
mod distinct;
mod find;
mod find_and_modify;
mod insert;
mod plain;
mod replace;
mod update;

pub use aggregate::Aggregate;
pub use backup::Backup;
pub use bulk_write::BulkWrite;
pub use count::CountDocuments;
pub use create_collection::CreateCollection;
pub use create_index::{CreateIndex, CreateIndexes};
pub use delete::Delete;
pub use distinct::Distinct;
pub use find::{Find, FindOne};
pub use find_and_modify::{FindOneAndDelete, FindOneAndReplace, FindOneAndUpdate};
pub use insert::{InsertMany, InsertOne};
pub use plain::Action;
pub use replace::ReplaceOne;
pub use update::Update;

/// Methods that set a field of the action's document `$place`.
macro_rules! options {
    ($place:ident: $($(#[$doc:meta])* $name:ident($($value:tt)+) => $field:literal;)*) => {
        $(
            $(#[$doc])*
            #[must_use = "an action does nothing until it is run"]
            pub fn $name(mut self, value: crate::action::accepted!($($value)+)) -> Self {
                let value: $($value)+ = value.into();
                self.$place.insert($field, crate::action::FieldValue::field_value(value));
                self
            }
        )*
    };
}
use options;

/// The type of the argument of an option. Numbers stand there by their own type: `skip(5)` has no type to
/// convert from.
macro_rules! accepted {
    (u64) => { u64 };
    (u32) => { u32 };
    (bool) => { bool };
    ($($value:tt)+) => { impl Into<$($value)+> };
}
use accepted;

/// The method that makes the action one of a session: `database` or `collection` is its place.
macro_rules! in_session {
    (database) => {
        /// Makes it a call of the session: it belongs to the transaction that the session has open.
        #[must_use = "an action does nothing until it is run"]
        pub fn session(mut self, session: &mut crate::ClientSession) -> Self {
            self.database = Cow::Owned(crate::Database::clone(&self.database).in_session(session.state()));
            self
        }
    };
    (collection) => {
        /// Makes it a call of the session: it belongs to the transaction that the session has open.
        #[must_use = "an action does nothing until it is run"]
        pub fn session(mut self, session: &mut crate::ClientSession) -> Self {
            self.collection = Cow::Owned(session.collection(&self.collection));
            self
        }
    };
}
use in_session;

/// The value of an option as a command has it.
pub(crate) trait FieldValue {
    fn field_value(self) -> bson::Bson;
}

macro_rules! field_values {
    ($($type:ty),*) => {
        $(impl FieldValue for $type {
            fn field_value(self) -> bson::Bson {
                self.into()
            }
        })*
    };
}

field_values!(bool, i64, String, bson::Bson, bson::Document, crate::Hint);

impl FieldValue for u32 {
    fn field_value(self) -> bson::Bson {
        i64::from(self).into()
    }
}

impl FieldValue for u64 {
    fn field_value(self) -> bson::Bson {
        i64::try_from(self).unwrap_or(i64::MAX).into()
    }
}

impl FieldValue for Vec<bson::Document> {
    fn field_value(self) -> bson::Bson {
        self.into_iter().map(bson::Bson::Document).collect::<Vec<_>>().into()
    }
}

/// A time in milliseconds; one below a millisecond is not 0, which would mean no limit.
impl FieldValue for std::time::Duration {
    fn field_value(self) -> bson::Bson {
        i64::try_from(self.as_millis()).unwrap_or(i64::MAX).max(1).into()
    }
}
