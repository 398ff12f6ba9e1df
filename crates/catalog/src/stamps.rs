//! The stamp of a document: the time in the first field of its primary key.
//!
//! That is a date. Where `_id` is the primary key, it may be an `ObjectId`, which holds a time in seconds.

use pando_document::{ObjectId, RawDocument, RawValue, Value};

/// The type of stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampKind {
    /// Dates.
    Date,
    /// The times in `ObjectId`s.
    ObjectId,
}

impl StampKind {
    /// The time of a value in milliseconds since 1970; `None` for a value of another type.
    pub fn time_of(self, value: RawValue<'_>) -> Option<i64> {
        match (self, value) {
            (StampKind::Date, RawValue::DateTime(time)) => Some(time),
            (StampKind::ObjectId, RawValue::ObjectId(id)) => Some(i64::from(id.seconds()) * 1000),
            _ => None,
        }
    }

    /// The first value at a time. A time beyond the range of `ObjectId`s gives the nearest one.
    pub fn first_at(self, time_ms: i64) -> Value {
        match self {
            StampKind::Date => Value::DateTime(time_ms),
            StampKind::ObjectId => {
                let seconds = time_ms.div_euclid(1000).clamp(0, i64::from(u32::MAX));
                let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
                Value::ObjectId(ObjectId::from_parts(seconds, [0; 5], 0))
            }
        }
    }

    /// The type in the words of a message.
    pub fn name(self) -> &'static str {
        match self {
            StampKind::Date => "a date",
            StampKind::ObjectId => "an ObjectId",
        }
    }
}

/// The value at a path that meets no array; `None` where there is none.
pub(crate) fn value_at<'d>(document: &'d RawDocument, path: &str) -> Option<RawValue<'d>> {
    path.split('.').try_fold(RawValue::Document(document), |value, name| match value {
        RawValue::Document(inner) => inner.get(name).ok().flatten(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use pando_document::Document;

    use super::*;

    #[test]
    fn a_time_comes_back_from_the_first_value_at_it() {
        for (kind, time) in [(StampKind::Date, -5), (StampKind::Date, i64::MAX), (StampKind::ObjectId, 7_000)]
        {
            let mut document = Document::new();
            document.push("at", kind.first_at(time));
            assert_eq!(value_at(&document.to_raw(), "at").and_then(|value| kind.time_of(value)), Some(time));
        }
        assert_eq!(StampKind::Date.time_of(RawValue::Int64(5)), None);
        assert_eq!(StampKind::ObjectId.time_of(RawValue::DateTime(5)), None);
    }

    #[test]
    fn times_outside_of_the_range_of_object_ids_give_the_nearest() {
        let first = |time| StampKind::ObjectId.first_at(time);
        assert_eq!(first(i64::MAX), first(i64::from(u32::MAX) * 1000));
        assert_eq!(first(-5), first(0));
    }
}
