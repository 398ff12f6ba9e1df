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

use std::fmt;

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
                crate::action::set_field(&mut self.$place, $field, value);
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

/// The value of an option as a command has it; `None` where the command goes without the field.
pub(crate) trait FieldValue {
    fn field_value(self) -> Option<bson::Bson>;
}

/// Sets a field, or takes it out where the value is none.
fn set_field(place: &mut bson::Document, name: &str, value: impl FieldValue) {
    match value.field_value() {
        Some(value) => drop(place.insert(name, value)),
        None => drop(place.remove(name)),
    }
}

macro_rules! field_values {
    ($($type:ty),*) => {
        $(impl FieldValue for $type {
            fn field_value(self) -> Option<bson::Bson> {
                Some(self.into())
            }
        })*
    };
}

field_values!(bool, i64, String, bson::Bson, bson::Document, crate::Hint);

impl FieldValue for u32 {
    fn field_value(self) -> Option<bson::Bson> {
        Some(i64::from(self).into())
    }
}

impl FieldValue for u64 {
    fn field_value(self) -> Option<bson::Bson> {
        Some(i64::try_from(self).unwrap_or(i64::MAX).into())
    }
}

impl FieldValue for Vec<bson::Document> {
    fn field_value(self) -> Option<bson::Bson> {
        Some(self.into_iter().map(bson::Bson::Document).collect::<Vec<_>>().into())
    }
}

/// A time limit in milliseconds. One below a millisecond is a millisecond, because 0 would be no limit. One
/// that a command cannot have, beyond 24 days, is none.
impl FieldValue for std::time::Duration {
    fn field_value(self) -> Option<bson::Bson> {
        if self.is_zero() {
            return None;
        }
        i32::try_from(self.as_millis().max(1)).ok().map(bson::Bson::Int32)
    }
}

/// Actions print as their names: what they hold may be many documents.
macro_rules! printed_as_names {
    ($($name:ident),*; $($generic:ident<T>),*) => {
        $(impl fmt::Debug for $name<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        })*
        $(impl<T> fmt::Debug for $generic<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($generic)).finish_non_exhaustive()
            }
        })*
    };
}

printed_as_names! {
    Backup, BulkWrite, CountDocuments, CreateCollection, CreateIndex, CreateIndexes, Delete, Distinct,
    InsertMany, InsertOne, ReplaceOne, Update;
    Action<T>, Aggregate<T>, Find<T>, FindOne<T>, FindOneAndDelete<T>, FindOneAndReplace<T>,
    FindOneAndUpdate<T>
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bson::Bson;

    use super::FieldValue;

    #[test]
    fn a_time_limit_that_a_command_cannot_have_is_left_out() {
        let most = Duration::from_millis(i32::MAX.unsigned_abs().into());
        let table = [
            (Duration::ZERO, None),
            (Duration::from_nanos(1), Some(Bson::Int32(1))),
            (Duration::from_secs(2), Some(Bson::Int32(2_000))),
            (most, Some(Bson::Int32(i32::MAX))),
            (most + Duration::from_millis(1), None),
            (Duration::MAX, None),
        ];
        for (limit, field) in table {
            assert_eq!(limit.field_value(), field, "{limit:?}");
        }
    }
}
