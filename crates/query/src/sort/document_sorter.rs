//! The sorter of documents by a pattern: it makes their keys, and refuses at once those that come too late.
//!
//! Of a sort that wants few documents nearly all come too late. Where the bound begins with a number or a
//! date, a document is refused by a comparison of that value alone, without a key.

use std::sync::Arc;

use pando_document::{RawDocument, RawValue, Value};
use pando_keyorder::Direction;

use super::sorter::{Check, Sorted, Sorter};
use super::{SortPart, SortPattern};
use crate::QueryError;
use crate::memory::StageMemory;

/// See the module's head.
#[derive(Debug)]
pub struct DocumentSorter {
    pattern: Arc<SortPattern>,
    sorter: Sorter,
    /// Documents with this key or a greater one are refused; empty for none.
    bound: Vec<u8>,
    first: Option<FirstValue>,
    key: Vec<u8>,
    /// All documents that came, and their bytes.
    total: u64,
    total_bytes: u64,
}

impl DocumentSorter {
    /// An empty sorter; `limit` is how many documents will be taken out at most.
    pub fn new(pattern: Arc<SortPattern>, limit: Option<u64>, memory: &StageMemory) -> DocumentSorter {
        let sorter = Sorter::new(limit, memory);
        DocumentSorter {
            pattern,
            sorter,
            bound: Vec::new(),
            first: None,
            key: Vec::new(),
            total: 0,
            total_bytes: 0,
        }
    }

    /// Takes a document in, unless it comes too late to be among those that are wanted. `check` is called
    /// between long steps.
    ///
    /// # Errors
    /// As for [`Sorter::push`], and those of sort keys.
    pub fn take(
        &mut self,
        document: &RawDocument,
        primary_key: &[u8],
        check: Check<'_>,
    ) -> Result<(), QueryError> {
        self.total += 1;
        self.total_bytes += document.as_bytes().len() as u64;
        if let Some(first) = &self.first
            && first.is_before(document, &self.pattern.parts()[0])
        {
            return Ok(());
        }
        self.key.clear();
        self.pattern.append_key(document, &mut self.key)?;
        if !self.sorter.admits(&self.key) {
            return Ok(());
        }
        self.sorter.push(&self.key, primary_key, document.as_bytes(), check)?;
        if let Some(bound) = self.sorter.bound()
            && bound != self.bound
        {
            self.bound.clear();
            self.bound.extend_from_slice(bound);
            self.first = FirstValue::of_key(bound, self.pattern.parts());
        }
        Ok(())
    }

    /// The next document in order. The first call ends the input.
    ///
    /// # Errors
    /// As for [`Sorter::next`].
    pub fn next(&mut self, check: Check<'_>) -> Result<Option<Sorted<'_>>, QueryError> {
        self.sorter.next(check)
    }

    /// All documents that came, for `explain`.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes of all documents that came, for `explain`.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }
}

/// The first value of the bound, of a type whose order is that of its machine type.
#[derive(Clone, Copy, Debug, PartialEq)]
enum FirstValue {
    Number(f64),
    Date(i64),
}

impl FirstValue {
    /// The first value of a sort key. None of a path into documents, which may meet arrays on its way.
    fn of_key(key: &[u8], parts: &[SortPart]) -> Option<FirstValue> {
        if parts[0].path.len() > 1 {
            return None;
        }
        let directions: Vec<Direction> = parts.iter().map(|part| part.direction).collect();
        let values = pando_keyorder::decode(key, &[], &directions).ok()?;
        FirstValue::of(match values.first()? {
            Value::Int32(number) => RawValue::Int32(*number),
            Value::Int64(number) => RawValue::Int64(*number),
            Value::Double(number) => RawValue::Double(*number),
            Value::DateTime(date) => RawValue::DateTime(*date),
            _ => return None,
        })
    }

    /// `None` of other types, and of integers that a double does not have.
    #[inline]
    fn of(value: RawValue<'_>) -> Option<FirstValue> {
        const EXACT_MAX: u64 = 1 << 53;
        match value {
            RawValue::Int32(number) => Some(FirstValue::Number(f64::from(number))),
            RawValue::Double(number) => Some(FirstValue::Number(number)),
            RawValue::Int64(number) if number.unsigned_abs() < EXACT_MAX => {
                Some(FirstValue::Number(number as f64))
            }
            RawValue::DateTime(date) => Some(FirstValue::Date(date)),
            _ => None,
        }
    }

    /// Whether it comes before the value of a document for sure. NaN comes before nothing here: its document
    /// gets a key, which tells.
    #[inline]
    fn is_before(&self, document: &RawDocument, part: &SortPart) -> bool {
        let Ok(Some(value)) = document.get(part.path.as_str()) else { return false };
        let is_ascending = part.direction == Direction::Ascending;
        match (*self, FirstValue::of(value)) {
            (FirstValue::Number(bound), Some(FirstValue::Number(number))) => {
                if is_ascending {
                    number > bound
                } else {
                    number < bound
                }
            }
            (FirstValue::Date(bound), Some(FirstValue::Date(date))) => {
                if is_ascending {
                    date > bound
                } else {
                    date < bound
                }
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use pando_document::{Document, doc};

    use super::*;
    use crate::memory::DiskUse;

    /// Values of several types, in no order.
    fn documents() -> Vec<Document> {
        let values = (0..400_i64).map(|at| {
            let number = (at * 7_919) % 401;
            match at % 8 {
                0 => Value::Int32(number as i32 - 200),
                1 => Value::Int64((1 << 53) + number - 200),
                2 => Value::Double(number as f64 / 3.0),
                3 => Value::DateTime(number - 100),
                4 => Value::Double(if number % 2 == 0 { f64::NAN } else { -0.0 }),
                5 => Value::Array(vec![Value::Int32(number as i32), Value::Int32(-5)]),
                6 => Value::String(number.to_string()),
                _ => Value::Null,
            }
        });
        values
            .enumerate()
            .map(|(id, value)| doc! { "_id": (id as i32), "v": value, "w": (id as i32 % 5) })
            .collect()
    }

    fn first(pattern: &RawDocument, limit: Option<u64>, wanted: usize) -> Vec<Vec<u8>> {
        let memory = StageMemory::unlimited(DiskUse::Forbidden);
        let pattern = Arc::new(SortPattern::parse(pattern).expect("a pattern"));
        let mut sorter = DocumentSorter::new(pattern, limit, &memory);
        let mut check = || Ok(());
        for document in documents() {
            sorter.take(&document.to_raw(), b"", &mut check).expect("it fits");
        }
        let mut found = Vec::new();
        while found.len() < wanted
            && let Some(sorted) = sorter.next(&mut check).expect("it is in memory")
        {
            found.push(sorted.document.to_vec());
        }
        found
    }

    #[test]
    fn the_first_documents_are_those_of_a_whole_sort_whatever_their_types() {
        for pattern in [doc! { "v": 1 }, doc! { "v": -1 }, doc! { "v": -1, "w": 1 }, doc! { "w": 1, "v": 1 }]
        {
            let pattern = pattern.to_raw();
            for wanted in [1, 3, 20, 60, 130, 200, 300, 390] {
                let all = first(&pattern, None, wanted);
                assert_eq!(all.len(), wanted);
                assert_eq!(first(&pattern, Some(wanted as u64), wanted), all, "{wanted} of {pattern:?}");
            }
        }
    }
}
