//! The documents of another collection by the values at a path: the table of a hash join.
//!
//! 1. Each document stands in the list of each value that a filter could find at the path: the value itself,
//!    the elements of arrays on the way and at its end, and null where the way leads nowhere.
//! 2. A search looks up its value, or those of its array, and gives the documents in the order that a search
//!    without the table has: in which they came, or by their values as an index has them.
//! 3. Where no array and no gap is on the way, an equal key is an equal value. Else the caller asks its
//!    filter.
//!
//! Keys are the order-preserving bytes of values, so 1, 1.0 and NumberLong(1) are one. Under a collation they
//! have the sort keys of strings.
//!
//! # Invariants
//! - The table holds a document for a value whenever `{path: value}` matches it.
//! - It is *full* when the reservation does not grow, or at [`BYTES_MAX`]; then it is of no use.

use hashbrown::{HashMap, HashSet};
use pando_catalog::Reservation;
use pando_collation::TextOrder;
use pando_document::{RawArray, RawDocument, RawValue};
use pando_keyorder::{Direction, TypeBits};

use super::joined::{Joined, Wanted};
use crate::error::QueryError;

/// Most bytes of one table.
pub(super) const BYTES_MAX: usize = 100 << 20;
/// Bytes of an entry beside its key.
const ENTRY_OVERHEAD: usize = 64;

/// Whether equal keys are equal values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Certainty {
    Certain,
    /// The filter has to be asked.
    Possible,
}

/// The order of the documents that belong to an array of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// As they came.
    Arrival,
    /// By the values, as an index gives them.
    Value,
}

/// Documents that may belong to a value.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Their numbers.
    pub numbers: Vec<u32>,
    pub certainty: Option<Certainty>,
}

/// See the module's head.
pub(super) struct HashTable {
    names: Vec<String>,
    documents: Joined,
    certainties: Vec<Certainty>,
    lists: HashMap<Box<[u8]>, Vec<u32>>,
    key: Vec<u8>,
    entry_bytes: usize,
    reservation: Reservation,
    order: Order,
    text_order: TextOrder,
    is_full: bool,
}

impl HashTable {
    pub fn new(path: &str, order: Order, text_order: &TextOrder, reservation: Reservation) -> HashTable {
        HashTable {
            order,
            text_order: text_order.clone(),
            names: path.split('.').map(str::to_owned).collect(),
            documents: Joined::default(),
            certainties: Vec::new(),
            lists: HashMap::new(),
            key: Vec::new(),
            entry_bytes: 0,
            reservation,
            is_full: false,
        }
    }

    /// Whether a document did not find room.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Takes a document in.
    ///
    /// # Errors
    /// It is malformed, or the table is full.
    pub fn push(&mut self, document: &RawDocument) -> Result<(), QueryError> {
        let bytes = self.documents.held_bytes() + self.entry_bytes + document.as_bytes().len();
        if bytes > BYTES_MAX || (bytes > self.reservation.bytes() && !self.reservation.grow_to(bytes)) {
            self.is_full = true;
        }
        let number = u32::try_from(self.certainties.len());
        let (false, Ok(number)) = (self.is_full, number) else {
            self.is_full = true;
            return Err(QueryError::bad_value("the table of a hash join is full"));
        };
        let mut walk = Walk::new();
        walk.follow(RawValue::Document(document), &self.names)?;
        for value in &walk.values {
            self.key.clear();
            self.text_order.encode(*value, Direction::Ascending, &mut self.key, &mut TypeBits::discarded());
            let list = match self.lists.get_mut(self.key.as_slice()) {
                Some(list) => list,
                None => {
                    self.entry_bytes += self.key.len() + ENTRY_OVERHEAD;
                    self.lists.entry(self.key.clone().into_boxed_slice()).or_default()
                }
            };
            if list.last() != Some(&number) {
                self.entry_bytes += size_of::<u32>();
                list.push(number);
            }
        }
        self.certainties.push(walk.certainty);
        // The table has its own limit, which was asked before.
        self.documents.push(document.as_bytes(), "the hash join", &mut self.reservation, Wanted::Array)
    }

    /// The documents that may belong to a local value.
    pub fn find(&mut self, value: RawValue<'_>) -> Result<Found, QueryError> {
        let mut found = Found::default();
        match value {
            RawValue::Array(array) if array.is_empty() => self.add(RawValue::Null, &mut found),
            RawValue::Array(array) => {
                let mut elements = array.iter().collect::<Result<Vec<_>, _>>()?;
                if self.order == Order::Value {
                    elements.sort_by(|one, other| self.text_order.compare(*one, *other));
                }
                elements.into_iter().for_each(|element| self.add(element, &mut found));
                if self.order == Order::Arrival {
                    found.numbers.sort_unstable();
                }
                let mut seen = HashSet::with_capacity(found.numbers.len());
                found.numbers.retain(|number| seen.insert(*number));
            }
            single => self.add(single, &mut found),
        }
        Ok(found)
    }

    fn add(&mut self, value: RawValue<'_>, found: &mut Found) {
        self.key.clear();
        self.text_order.encode(value, Direction::Ascending, &mut self.key, &mut TypeBits::discarded());
        let Some(list) = self.lists.get(self.key.as_slice()) else { return };
        let is_certain = value.as_array().is_none()
            && list.iter().all(|number| self.certainties[*number as usize] == Certainty::Certain);
        if !is_certain {
            found.certainty = Some(Certainty::Possible);
        }
        found.numbers.extend_from_slice(list);
    }

    /// The document of a number.
    pub fn document(&self, number: u32) -> Result<&RawDocument, QueryError> {
        self.documents.get(number as usize).unwrap_or_else(|| Ok(RawDocument::empty()))
    }
}

/// A way along a path through one document.
pub(super) struct Walk<'d> {
    pub certainty: Certainty,
    /// The values under which the document stands.
    pub values: Vec<RawValue<'d>>,
}

impl<'d> Walk<'d> {
    pub fn new() -> Walk<'d> {
        Walk { certainty: Certainty::Certain, values: Vec::new() }
    }

    pub fn follow(&mut self, value: RawValue<'d>, names: &[String]) -> Result<(), QueryError> {
        let Some((name, rest)) = names.split_first() else { return self.end(value) };
        match value {
            RawValue::Document(document) => match document.get(name)? {
                Some(value) => self.follow(value, rest),
                None => self.gap(),
            },
            RawValue::Array(array) => self.follow_elements(array, names),
            _ => self.gap(),
        }
    }

    fn follow_elements(&mut self, array: &'d RawArray, names: &[String]) -> Result<(), QueryError> {
        self.gap()?;
        let index = names.first().and_then(|name| crate::path::index_of(name));
        for (at, element) in array.iter().enumerate() {
            let element = element?;
            if matches!(element, RawValue::Document(_) | RawValue::Array(_)) {
                self.follow(element, names)?;
            }
            if index.is_some_and(|index| usize::try_from(index) == Ok(at)) {
                self.follow(element, &names[1..])?;
            }
        }
        Ok(())
    }

    fn end(&mut self, value: RawValue<'d>) -> Result<(), QueryError> {
        match value {
            RawValue::Array(array) => {
                self.certainty = Certainty::Possible;
                self.values.push(value);
                for element in array.iter() {
                    match element? {
                        RawValue::Undefined => self.values.push(RawValue::Null),
                        element => self.values.push(element),
                    }
                }
            }
            RawValue::Undefined => self.gap()?,
            single => self.values.push(single),
        }
        Ok(())
    }

    /// There is no value, which null may find.
    fn gap(&mut self) -> Result<(), QueryError> {
        self.certainty = Certainty::Possible;
        self.values.push(RawValue::Null);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use pando_catalog::QueryAccount;
    use pando_document::{Document, Value, doc};

    use super::*;
    use crate::expression::ParseScope;
    use crate::filter::Filter;

    fn values() -> Vec<Value> {
        let array = |values: Vec<Value>| Value::Array(values);
        vec![
            Value::Null,
            Value::Int32(1),
            Value::Double(1.0),
            Value::Int64(2),
            Value::Double(f64::NAN),
            Value::from("x"),
            Value::Boolean(true),
            Value::Document(doc! { "b": 1 }),
            Value::Document(doc! { "b": { "c": 1 } }),
            array(vec![]),
            array(vec![Value::Int32(1), Value::from("x")]),
            array(vec![
                Value::Document(doc! { "b": 1 }),
                Value::Document(doc! { "b": (array(vec![Value::Int64(2)])) }),
            ]),
            array(vec![array(vec![Value::Document(doc! { "b": 1 })]), Value::Null]),
            array(vec![array(vec![Value::Int32(1)])]),
        ]
    }

    /// Strings of one key under a collation, and values with such strings.
    fn texts() -> Vec<Value> {
        vec![
            Value::from("X"),
            Value::from("ä"),
            Value::from("A"),
            Value::Document(doc! { "b": "X" }),
            Value::Array(vec![Value::from("X"), Value::from("a")]),
        ]
    }

    /// The filter finds no document that the table would not give, and all that are certain.
    #[test]
    fn the_table_gives_all_documents_that_a_filter_finds() {
        check_table(&TextOrder::SIMPLE);
        let primary = doc! { "locale": "en", "strength": 1 }.to_raw();
        check_table(&TextOrder::parse(&primary, "collation").expect("it is a sound one"));
    }

    fn check_table(order: &TextOrder) {
        let values = || values().into_iter().chain(texts()).collect::<Vec<_>>();
        let mut documents: Vec<Document> = values().into_iter().map(|value| doc! { "a": (value) }).collect();
        documents.extend(values().into_iter().map(|value| doc! { "a": { "b": (value) } }));
        documents.push(doc! { "z": 1 });
        for path in ["a", "a.b", "a.0", "a.0.b", "a.b.c"] {
            let mut table = HashTable::new(path, Order::Arrival, order, QueryAccount::unlimited().reserve());
            for document in &documents {
                table.push(&document.to_raw()).expect("there is room");
            }
            for value in values() {
                if value.as_array().is_some() {
                    continue;
                }
                let holder = doc! { "v": (value.clone()) }.to_raw();
                let local = holder.get("v").expect("valid").expect("there");
                let found = table.find(local).expect("valid");
                let mut condition = Document::new();
                condition.push("$eq", value.clone());
                let mut filter = Document::new();
                filter.push(path, condition);
                let scope = ParseScope::at(0).collated_by(order);
                let filter = Filter::parse(&filter.to_raw(), &scope).expect("it parses");
                for (number, document) in documents.iter().enumerate() {
                    let number = u32::try_from(number).expect("few");
                    let matches = filter.matches(&document.to_raw()).expect("it is valid");
                    let is_found = found.numbers.contains(&number);
                    assert!(is_found || !matches, "{path}: {value:?} in {document:?}");
                    assert!(
                        matches || !is_found || found.certainty.is_some(),
                        "{path}: {value:?} in {document:?}"
                    );
                }
            }
        }
    }
}
