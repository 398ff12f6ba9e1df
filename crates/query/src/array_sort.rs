//! The sort of array elements, for `$push` with `$sort` and for `$sortArray`: whole elements (`1`, `-1`) or
//! fields of elements (`{score: -1, name: 1}`).
//!
//! Elements that lack a field, or are no documents, count as null there.

use std::cmp::Ordering;

use pando_collation::TextOrder;
use pando_document::RawValue;

use crate::error::{ErrorCode, QueryError};
use crate::field_tables::{FieldSource, FieldTables};

/// Elements that are sorted or merged between two checks: some milliseconds.
const PIECE_ELEMENTS: usize = 8 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Ascending,
    Descending,
}

/// A parsed `$sort`.
#[derive(Debug)]
pub(crate) struct ArraySort {
    /// Paths cut at their dots; one empty path means the element itself.
    parts: Vec<(Vec<String>, Direction)>,
    order: TextOrder,
}

impl ArraySort {
    pub(crate) fn parse(value: RawValue<'_>, order: &TextOrder) -> Result<ArraySort, QueryError> {
        let pattern = match value {
            RawValue::Document(pattern) => pattern,
            number if number.is_number() => {
                let direction = direction_of(number)
                    .ok_or_else(|| bad_value("The $sort element value must be either 1 or -1".to_owned()))?;
                return Ok(ArraySort { parts: vec![(Vec::new(), direction)], order: order.clone() });
            }
            _ => {
                return Err(bad_value(
                    "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields"
                        .to_owned(),
                ));
            }
        };
        let mut parts = Vec::new();
        for part in pattern.iter() {
            let (path, direction) = part?;
            parts.push(parse_part(path, direction)?);
        }
        if parts.is_empty() {
            return Err(bad_value("The sort pattern is empty when it should be a set of fields.".to_owned()));
        }
        Ok(ArraySort { parts, order: order.clone() })
    }

    /// Sorts stably.
    pub(crate) fn sort(&self, elements: &mut [RawValue<'_>]) {
        let fields = FieldTables::default();
        elements.sort_by(|a, b| self.compare(*a, *b, &fields));
    }

    /// Sorts stably, and checks between pieces of a long array.
    ///
    /// # Errors
    /// That of the check.
    pub(crate) fn sort_checked(
        &self,
        elements: &mut Vec<RawValue<'_>>,
        check: &mut dyn FnMut() -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let fields = FieldTables::default();
        for piece in elements.chunks_mut(PIECE_ELEMENTS) {
            check()?;
            piece.sort_by(|a, b| self.compare(*a, *b, &fields));
        }
        let mut sorted = PIECE_ELEMENTS;
        while sorted < elements.len() {
            let mut merged = Vec::with_capacity(elements.len());
            for pair in elements.chunks(2 * sorted) {
                let (mut left, mut right) = pair.split_at(sorted.min(pair.len()));
                while let ([first, rest_of_left @ ..], [second, rest_of_right @ ..]) = (left, right) {
                    let is_left = self.compare(*first, *second, &fields) != Ordering::Greater;
                    let next = if is_left { first } else { second };
                    if is_left {
                        left = rest_of_left
                    } else {
                        right = rest_of_right
                    }
                    merged.push(*next);
                    if merged.len().is_multiple_of(PIECE_ELEMENTS) {
                        check()?;
                    }
                }
                merged.extend_from_slice(left);
                merged.extend_from_slice(right);
            }
            *elements = merged;
            sorted *= 2;
        }
        Ok(())
    }

    fn compare<'v>(&self, a: RawValue<'v>, b: RawValue<'v>, fields: &FieldTables<'v>) -> Ordering {
        for (path, direction) in &self.parts {
            let order = self.order.compare(value_at(a, path, fields), value_at(b, path, fields));
            let order = match direction {
                Direction::Ascending => order,
                Direction::Descending => order.reverse(),
            };
            if order != Ordering::Equal {
                return order;
            }
        }
        Ordering::Equal
    }
}

fn parse_part(path: &str, direction: RawValue<'_>) -> Result<(Vec<String>, Direction), QueryError> {
    if path.is_empty() {
        return Err(bad_value("The sort field cannot be empty".to_owned()));
    }
    if path.split('.').any(str::is_empty) {
        return Err(bad_value(format!("The sort field is a dotted field but has an empty part: {path}")));
    }
    let direction = direction_of(direction)
        .ok_or_else(|| bad_value("The sort element value must be either 1 or -1".to_owned()))?;
    Ok((path.split('.').map(str::to_owned).collect(), direction))
}

fn direction_of(value: RawValue<'_>) -> Option<Direction> {
    match value.as_i64_exact() {
        Some(1) => Some(Direction::Ascending),
        Some(-1) => Some(Direction::Descending),
        _ => None,
    }
}

fn value_at<'v>(value: RawValue<'v>, path: &[String], fields: &FieldTables<'v>) -> RawValue<'v> {
    let mut here = value;
    for name in path {
        let RawValue::Document(document) = here else { return RawValue::Null };
        match fields.field(document, name) {
            Ok(Some(value)) => here = value,
            _ => return RawValue::Null,
        }
    }
    here
}

fn bad_value(message: String) -> QueryError {
    QueryError::new(ErrorCode::BadValue, message)
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    #[test]
    fn a_sort_in_pieces_gives_the_same_order_and_ends_at_a_failed_check() {
        let pattern = doc! { "p": { "n": 1 } }.to_raw();
        let sort = ArraySort::parse(pattern.get("p").unwrap().unwrap(), &TextOrder::SIMPLE).unwrap();
        for count in [0, 1, PIECE_ELEMENTS, PIECE_ELEMENTS + 1, 5 * PIECE_ELEMENTS + 3] {
            let count = i32::try_from(count).unwrap();
            let documents: Vec<_> =
                (0..count).map(|i| doc! { "n": (i * 7919 % 1009), "i": i }.to_raw()).collect();
            let mut whole: Vec<RawValue<'_>> =
                documents.iter().map(|document| RawValue::Document(document)).collect();
            let mut pieces = whole.clone();
            sort.sort(&mut whole);
            sort.sort_checked(&mut pieces, &mut || Ok(())).unwrap();
            let shown = |elements: &[RawValue<'_>]| -> Vec<String> {
                elements.iter().map(|element| crate::shell_text::value_text(*element)).collect()
            };
            assert_eq!(shown(&pieces), shown(&whole), "{count} elements");
            let mut checks = 0;
            let outcome = sort.sort_checked(&mut pieces, &mut || {
                checks += 1;
                if checks < 7 { Ok(()) } else { Err(bad_value("stop".to_owned())) }
            });
            assert_eq!(outcome.is_err(), checks == 7, "{count} elements");
        }
    }
}
