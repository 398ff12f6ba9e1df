//! The picks of a scan that steps from value to value: which entries it gives, and how far it jumps then.

use pando_document::RawValue;
use pando_keyorder::{Direction, TypeBits};

/// See the module's head.
#[derive(Debug)]
pub(super) struct Picking {
    /// The first fields, of which each combination has one pick.
    fields: usize,
    /// The field in which null and undefined do not count.
    valued: Option<Valued>,
    directions: Vec<Direction>,
    /// The combination that has its pick.
    picked: Option<Vec<u8>>,
}

#[derive(Debug)]
struct Valued {
    at: usize,
    /// The parts of keys that do not count.
    nulls: [Vec<u8>; 2],
}

/// The verdict on an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is given, and the scan is over.
    Last,
    /// It is given, and those that are like it in so many first fields are passed over.
    Given(usize),
    /// It is not given: its combination of so many first fields has its pick.
    Had(usize),
}

impl Picking {
    pub fn new(fields: usize, valued: Option<usize>, directions: &[Direction]) -> Picking {
        let valued = valued.map(|at| {
            let part = |value: RawValue<'_>| {
                let mut bytes = Vec::new();
                pando_keyorder::encode(value, directions[at], &mut bytes, &mut TypeBits::new());
                bytes
            };
            Valued { at, nulls: [part(RawValue::Null), part(RawValue::Undefined)] }
        });
        Picking { fields, valued, directions: directions.to_vec(), picked: None }
    }

    /// Looks at the next entry within bounds.
    pub fn look(&mut self, field_bytes: &[u8]) -> Verdict {
        // Field bytes that do not decode are those of a damaged key; its document tells.
        let Ok(length) = pando_keyorder::parts_length(field_bytes, &self.directions[..self.fields]) else {
            return Verdict::Given(self.fields);
        };
        let combination = &field_bytes[..length];
        if self.picked.as_deref() == Some(combination) {
            return Verdict::Had(self.fields);
        }
        if let Some(valued) = &self.valued
            && valued.is_null(field_bytes, &self.directions)
        {
            return Verdict::Given(valued.at + 1);
        }
        let picked = self.picked.get_or_insert_default();
        picked.clear();
        picked.extend_from_slice(combination);
        if self.fields == 0 { Verdict::Last } else { Verdict::Given(self.fields) }
    }
}

impl Valued {
    fn is_null(&self, field_bytes: &[u8], directions: &[Direction]) -> bool {
        let before = pando_keyorder::parts_length(field_bytes, &directions[..self.at]);
        let behind = pando_keyorder::parts_length(field_bytes, &directions[..=self.at]);
        let (Ok(before), Ok(behind)) = (before, behind) else { return false };
        self.nulls.iter().any(|null| null == &field_bytes[before..behind])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(values: [RawValue<'_>; 2], directions: [Direction; 2]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (value, direction) in values.into_iter().zip(directions) {
            pando_keyorder::encode(value, direction, &mut bytes, &mut TypeBits::new());
        }
        bytes
    }

    #[test]
    fn each_combination_has_one_pick_and_nulls_are_none_where_values_are_wanted() {
        let directions = [Direction::Ascending, Direction::Descending];
        let one = |value| key([RawValue::Int32(1), value], directions);
        let mut plain = Picking::new(1, None, &directions);
        assert_eq!(plain.look(&one(RawValue::Null)), Verdict::Given(1));
        assert_eq!(plain.look(&one(RawValue::Int32(5))), Verdict::Had(1));
        assert_eq!(plain.look(&key([RawValue::Int32(2), RawValue::Null], directions)), Verdict::Given(1));
        let mut valued = Picking::new(1, Some(1), &directions);
        assert_eq!(valued.look(&one(RawValue::Null)), Verdict::Given(2));
        assert_eq!(valued.look(&one(RawValue::Undefined)), Verdict::Given(2));
        assert_eq!(valued.look(&one(RawValue::Int32(5))), Verdict::Given(1));
        assert_eq!(valued.look(&one(RawValue::Int32(4))), Verdict::Had(1));
        let mut whole = Picking::new(0, Some(0), &directions);
        assert_eq!(whole.look(&key([RawValue::Null, RawValue::Null], directions)), Verdict::Given(1));
        assert_eq!(whole.look(&one(RawValue::Null)), Verdict::Last);
    }
}
