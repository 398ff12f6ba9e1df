//! The schedule of partitions that come and go as time passes: the option `partitionBy` of a collection.
//!
//! ```text
//! partitionBy: { field: "ts", every: "1d", keep: "30d" }
//! ```
//!
//! # Terms
//! - *Stamp*: the time of a document, by the first field of its primary key (`stamps`).
//! - *Slot*: a span of `every`. Slots begin at multiples of their length since 1970 in UTC.
//! - *Ahead*: so many slots behind the present one have their partitions already.
//! - *Horizon*: the time before which documents have expired, as far as whole slots go.
//!
//! Everything here is a function of options and times. The changes of partitions are made by
//! `catalog::partition_keeping`.
//!
//! # Invariants
//! - Each document of the collection has a stamp: an insert of another is refused. So a partition whose bound
//!   is before the horizon has expired documents alone.

use pando_document::{Document, RawDocument, RawDocumentBuf, RawValue, Value};
use pando_keyorder::Direction;

use crate::layout::Layout;
use crate::partitions::PARTITIONS_MAX;
use crate::stamps::StampKind;

/// Slots behind the present one whose partitions are made already.
const SLOTS_AHEAD: i64 = 2;

/// The most slots that documents are kept for. The rest of the partitions that there can be is for slots
/// ahead, and for those that wait to be dropped.
const SLOTS_KEPT_MAX: i64 = PARTITIONS_MAX as i64 - 100;

/// The longest `every` and `keep`: a hundred years.
const SPAN_MS_MAX: i64 = 100 * 366 * 86_400_000;

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionSchedule {
    path: String,
    kind: StampKind,
    every_ms: i64,
    /// `None` where nothing is dropped.
    keep_ms: Option<i64>,
}

impl PartitionSchedule {
    /// The schedule that the options of a collection ask for; `None` where they ask for none. `Err` says what
    /// is wrong with them.
    pub fn of_options(options: &RawDocument) -> Result<Option<PartitionSchedule>, String> {
        let given = match options.get("partitionBy").map_err(|error| error.to_string())? {
            None => return Ok(None),
            Some(RawValue::Document(given)) => given,
            Some(_) => return Err("'partitionBy' has to be a document".to_owned()),
        };
        let (path, kind) = match Layout::of_options(options)? {
            Layout::Clustered => ("_id".to_owned(), StampKind::ObjectId),
            Layout::Fields(fields) if fields[0].direction == Direction::Ascending => {
                (fields[0].path.clone(), StampKind::Date)
            }
            Layout::Fields(_) => {
                return Err("'partitionBy' needs a 'primaryKey' whose first field is ascending".to_owned());
            }
            Layout::Heap => return Err("'partitionBy' needs a 'primaryKey'".to_owned()),
        };
        let (mut every, mut keep) = (None, None);
        for option in given.iter() {
            match option.map_err(|error| error.to_string())? {
                ("field", RawValue::String(field)) if field == path => {}
                ("field", _) => {
                    return Err(format!(
                        "'partitionBy.field' has to be the first field of the primary key, which is '{path}'"
                    ));
                }
                ("every", value) => every = Some(span("every", value)?),
                ("keep", value) => keep = Some(span("keep", value)?),
                (other, _) => return Err(format!("'partitionBy' has no field '{other}'")),
            }
        }
        let every_ms = every.ok_or("'partitionBy' needs 'every', such as \"1d\"")?;
        if let Some(keep_ms) = keep
            && !(every_ms..=every_ms.saturating_mul(SLOTS_KEPT_MAX)).contains(&keep_ms)
        {
            return Err(format!(
                "'partitionBy.keep' has to be between one and {SLOTS_KEPT_MAX} times 'partitionBy.every'"
            ));
        }
        Ok(Some(PartitionSchedule { path, kind, every_ms, keep_ms: keep }))
    }

    /// The path of stamps.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The type of stamps.
    pub fn kind(&self) -> StampKind {
        self.kind
    }

    /// The length of a slot.
    pub fn every_ms(&self) -> i64 {
        self.every_ms
    }

    /// The horizon at a time; `None` where nothing is dropped.
    pub fn horizon(&self, now_ms: i64) -> Option<i64> {
        Some(self.slot_of(now_ms.saturating_sub(self.keep_ms?)))
    }

    /// The ends of the present slot and of those ahead.
    pub(crate) fn ends_wanted(&self, now_ms: i64) -> Vec<i64> {
        let present = self.slot_of(now_ms);
        (1..=1 + SLOTS_AHEAD).map(|slots| present.saturating_add(slots * self.every_ms)).collect()
    }

    /// The same, and before them the ends of all slots whose documents are kept: those of a new collection.
    pub(crate) fn ends_of_new(&self, now_ms: i64) -> Vec<i64> {
        let mut ends = Vec::new();
        let present = self.slot_of(now_ms);
        let mut end = self.horizon(now_ms).map_or(present, |horizon| horizon.saturating_add(self.every_ms));
        while end <= present {
            ends.push(end);
            end = end.saturating_add(self.every_ms);
        }
        ends.extend(self.ends_wanted(now_ms).into_iter().filter(|wanted| *wanted >= end));
        ends
    }

    /// The begin of the slot of a time.
    fn slot_of(&self, time_ms: i64) -> i64 {
        time_ms.saturating_sub(time_ms.rem_euclid(self.every_ms))
    }

    /// The values of the bound that ends a slot, for the fields of the primary key in their order.
    pub(crate) fn bound_values(&self, end_ms: i64, fields: &[(&str, Direction)]) -> RawDocumentBuf {
        let mut values = Document::new();
        for (at, (path, direction)) in fields.iter().enumerate() {
            let value = match (at, direction) {
                (0, _) => self.kind.first_at(end_ms),
                (_, Direction::Ascending) => Value::MinKey,
                (_, Direction::Descending) => Value::MaxKey,
            };
            values.push(*path, value);
        }
        values.to_raw()
    }
}

/// A length of time such as "90m", in milliseconds.
fn span(name: &str, value: RawValue<'_>) -> Result<i64, String> {
    let parsed = value.as_str().and_then(|text| {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let unit_ms = match unit {
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        let number: i64 = number.parse().ok().filter(|_| digits)?;
        number.checked_mul(unit_ms).filter(|span| (1..=SPAN_MS_MAX).contains(span))
    });
    parsed.ok_or_else(|| {
        format!(
            "'partitionBy.{name}' has to be a number with a unit (s, m, h or d), such as \"1d\", of a hundred years at most"
        )
    })
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    const DAY: i64 = 86_400_000;

    fn schedule(by: Document, primary: Option<Document>) -> Result<PartitionSchedule, String> {
        let mut options = doc! { "partitioned": true, "partitionBy": (Value::Document(by)) };
        if let Some(primary) = primary {
            options.push("primaryKey", Value::Document(primary));
        }
        PartitionSchedule::of_options(&options.to_raw()).map(|schedule| schedule.unwrap())
    }

    fn by_day() -> PartitionSchedule {
        schedule(doc! { "every": "1d", "keep": "3d" }, Some(doc! { "ts": 1, "_id": 1 })).unwrap()
    }

    #[test]
    fn the_first_field_of_the_primary_key_tells_the_kind_of_stamps() {
        let by_date = by_day();
        assert_eq!((by_date.path(), by_date.kind()), ("ts", StampKind::Date));
        let by_id = schedule(doc! { "every": "2h" }, None).unwrap();
        assert_eq!((by_id.path(), by_id.kind(), by_id.horizon(5 * DAY)), ("_id", StampKind::ObjectId, None));
        assert!(schedule(doc! { "every": "2h", "field": "_id" }, None).is_ok());
        assert!(
            schedule(doc! { "every": "2h", "field": "a.b" }, Some(doc! { "a.b": 1, "c": -1, "_id": 1 }))
                .is_ok()
        );
    }

    #[test]
    fn schedules_that_cannot_be_kept_are_refused() {
        let key = || Some(doc! { "ts": 1, "_id": 1 });
        for refused in [
            doc! {},
            doc! { "keep": "1d" },
            doc! { "every": 1 },
            doc! { "every": "" },
            doc! { "every": "d" },
            doc! { "every": "1" },
            doc! { "every": "0d" },
            doc! { "every": "-1d" },
            doc! { "every": "+1d" },
            doc! { "every": "1.5d" },
            doc! { "every": "1w" },
            doc! { "every": "1é" },
            doc! { "every": "99999999999999999999d" },
            doc! { "every": "9999999999d" },
            doc! { "every": "1d", "keep": "1h" },
            doc! { "every": "1s", "keep": "1d" },
            doc! { "every": "1d", "field": "other" },
            doc! { "every": "1d", "field": 1 },
            doc! { "every": "1d", "more": 1 },
        ] {
            assert!(schedule(refused.clone(), key()).is_err(), "{refused:?}");
        }
        assert!(schedule(doc! { "every": "1d" }, Some(doc! { "ts": -1, "_id": 1 })).is_err());
    }

    #[test]
    fn the_slots_of_a_new_collection_reach_from_the_horizon_to_those_ahead() {
        let schedule = by_day();
        let now = 100 * DAY + 5;
        assert_eq!(schedule.horizon(now), Some(97 * DAY));
        assert_eq!(schedule.ends_wanted(now), [101 * DAY, 102 * DAY, 103 * DAY]);
        let all: Vec<_> = (98..=103).map(|day| day * DAY).collect();
        assert_eq!(schedule.ends_of_new(now), all);
        let unlimited = PartitionSchedule { keep_ms: None, ..schedule };
        assert_eq!(unlimited.ends_of_new(now), [100 * DAY, 101 * DAY, 102 * DAY, 103 * DAY]);
    }

    #[test]
    fn times_at_the_ends_of_their_range_stay_within_it() {
        let schedule = by_day();
        for now in [i64::MIN, -1, 0, i64::MAX] {
            assert!(schedule.ends_wanted(now).is_sorted());
            assert!(schedule.ends_of_new(now).len() <= PARTITIONS_MAX);
        }
        assert_eq!(schedule.horizon(-1), Some(-4 * DAY));
    }
}
