//! The ends of a group in the order of a sort that nobody carries out: its least and its greatest sort key.
//!
//! Of equal keys the earliest document is the first and the latest one the last, as in a sort that keeps the
//! order of equal documents.

use pando_document::{ArrayWriter, RawBinary, RawValue};

use crate::error::QueryError;
use crate::expression::accumulator::not_saved;
use crate::pipeline::accumulator::Takes;

/// The sort keys of the first and the last document of a group so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Ends {
    first: Vec<u8>,
    last: Vec<u8>,
}

/// The place of a document among those of its group that came before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The only one, or of a group without an order.
    Only,
    First,
    Between,
    Last,
}

impl Place {
    /// Whether an accumulator takes the document.
    #[inline]
    pub fn is_for(self, takes: Takes) -> bool {
        match takes {
            Takes::All => true,
            Takes::NewFirst => matches!(self, Place::Only | Place::First),
            Takes::NewLast => matches!(self, Place::Only | Place::Last),
        }
    }
}

impl Ends {
    /// The ends of one document.
    pub fn of(key: &[u8]) -> Ends {
        Ends { first: key.to_vec(), last: key.to_vec() }
    }

    /// Adds a later document.
    pub fn add(&mut self, key: &[u8]) -> Place {
        if key >= self.last.as_slice() {
            replace(&mut self.last, key);
            return Place::Last;
        }
        if key < self.first.as_slice() {
            replace(&mut self.first, key);
            return Place::First;
        }
        Place::Between
    }

    /// Adds the ends of later documents; the places of their first and their last.
    pub fn merge(&mut self, later: &Ends) -> [Place; 2] {
        let is_first = later.first < self.first;
        if is_first {
            replace(&mut self.first, &later.first);
        }
        let is_last = later.last >= self.last;
        if is_last {
            replace(&mut self.last, &later.last);
        }
        [
            if is_first { Place::First } else { Place::Between },
            if is_last { Place::Last } else { Place::Between },
        ]
    }

    /// Memory of the keys.
    pub fn held_bytes(&self) -> usize {
        self.first.capacity() + self.last.capacity()
    }

    /// Appends the ends as a state of the group.
    pub fn save(&self, out: &mut ArrayWriter<'_>) {
        for bytes in [&self.first, &self.last] {
            out.push(RawValue::Binary(RawBinary { subtype: 0, bytes }));
        }
    }

    /// The ends that were saved.
    pub fn saved(first: RawValue<'_>, last: RawValue<'_>) -> Result<Ends, QueryError> {
        match (first, last) {
            (RawValue::Binary(first), RawValue::Binary(last)) => {
                Ok(Ends { first: first.bytes.to_vec(), last: last.bytes.to_vec() })
            }
            _ => Err(not_saved()),
        }
    }
}

fn replace(known: &mut Vec<u8>, key: &[u8]) {
    known.clear();
    known.extend_from_slice(key);
}
