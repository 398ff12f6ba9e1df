//! Directories of arrays that one evaluation, or one operator, asks again and again.
//!
//! An array's bytes have no directory: its length, its i-th element and the place of a value take a walk. An
//! operator in a `$map` over the same array would walk n² elements. After a number of walks an array
//! therefore gets a table of its elements' offsets, and one of its values' key bytes if values are sought.
//!
//! # Owners of tables
//! - The [`Frame`](super::Frame) has those of arrays that stand in the document, by address
//!   ([`ArrayTables`]).
//! - A call has that of its constant argument, a variable that of its computed value ([`TableOnDemand`]).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use pando_collation::TextOrder;
use pando_document::{RawArray, RawValue};
use pando_keyorder::{Direction, TypeBits};

use crate::error::QueryError;

/// Walks through an array before it gets a table.
const WALKS_BEFORE_TABLE: u32 = 16;

/// Arrays of fewer bytes are walked: a table costs more.
const LONG_BYTES_MIN: usize = 256;

/// The offsets of an array's elements, and the places of its values.
#[derive(Debug)]
pub(super) struct ArrayTable {
    offsets: Vec<u32>,
    /// The first place of each value, by its key bytes.
    places: OnceLock<HashMap<Vec<u8>, usize>>,
}

impl ArrayTable {
    fn of(array: &RawArray) -> Result<ArrayTable, QueryError> {
        let mut offsets = Vec::new();
        let mut elements = array.as_document().iter();
        loop {
            let offset = elements.offset();
            match elements.next() {
                Some(element) => element?,
                None => break,
            };
            offsets.push(u32::try_from(offset).expect("an array stays below 2 GiB"));
        }
        Ok(ArrayTable { offsets, places: OnceLock::new() })
    }

    /// The number of elements.
    pub(super) fn length(&self) -> usize {
        self.offsets.len()
    }

    /// The elements from a place on; `array` is the one that the table is of.
    pub(super) fn elements_from<'v>(
        &self,
        array: &'v RawArray,
        place: usize,
    ) -> impl Iterator<Item = Result<RawValue<'v>, QueryError>> + use<'v> {
        let start = self.offsets.get(place).map(|offset| *offset as usize);
        let elements = start.map(|start| array.as_document().iter_from(start));
        elements.into_iter().flatten().map(|element| Ok(element?.1))
    }

    /// The first place of a value; `array` is the one that the table is of, and `order` is the same at each
    /// call.
    pub(super) fn place_of(&self, array: &RawArray, value: RawValue<'_>, order: &TextOrder) -> Option<usize> {
        let places = self.places.get_or_init(|| {
            let mut places = HashMap::with_capacity(self.offsets.len());
            for (place, element) in array.iter().flatten().enumerate() {
                places.entry(key_of(element, order)).or_insert(place);
            }
            places
        });
        places.get(&key_of(value, order)).copied()
    }
}

/// The bytes that stand for a value and all that are equal to it.
fn key_of(value: RawValue<'_>, order: &TextOrder) -> Vec<u8> {
    let mut key = Vec::with_capacity(16);
    order.encode(value, Direction::Ascending, &mut key, &mut TypeBits::discarded());
    key
}

/// The table of one array, made when it was asked for often.
#[derive(Debug, Default)]
pub(super) struct TableOnDemand {
    walks: AtomicU32,
    table: OnceLock<Arc<ArrayTable>>,
}

impl TableOnDemand {
    /// The table of `array`, which is the same at each call; `None` while walks are cheaper.
    pub(super) fn ask(&self, array: &RawArray) -> Result<Option<Arc<ArrayTable>>, QueryError> {
        if array.as_bytes().len() < LONG_BYTES_MIN {
            return Ok(None);
        }
        if let Some(table) = self.table.get() {
            return Ok(Some(Arc::clone(table)));
        }
        if self.walks.fetch_add(1, Ordering::Relaxed) < WALKS_BEFORE_TABLE {
            return Ok(None);
        }
        let table = Arc::new(ArrayTable::of(array)?);
        Ok(Some(Arc::clone(self.table.get_or_init(|| table))))
    }
}

/// A copy starts without a table.
impl Clone for TableOnDemand {
    fn clone(&self) -> TableOnDemand {
        TableOnDemand::default()
    }
}

/// Tables of the arrays that live for `'a`, by their addresses.
#[derive(Debug, Default)]
pub(super) struct ArrayTables<'a> {
    walks: Cell<u32>,
    tables: RefCell<Option<Box<TablesByAddress>>>,
    /// Arrays of shorter lives may not come in: their addresses could be taken by others.
    arrays: PhantomData<Cell<&'a RawArray>>,
}

type TablesByAddress = HashMap<*const u8, TableOnDemand>;

impl<'a> ArrayTables<'a> {
    /// The table of an array; `None` while walks are cheaper.
    pub(super) fn ask(&self, array: &'a RawArray) -> Result<Option<Arc<ArrayTable>>, QueryError> {
        let walks = self.walks.get();
        if walks < WALKS_BEFORE_TABLE || array.as_bytes().len() < LONG_BYTES_MIN {
            self.walks.set(walks.saturating_add(1));
            return Ok(None);
        }
        let mut tables = self.tables.borrow_mut();
        let tables = tables.get_or_insert_default();
        tables.entry(array.as_bytes().as_ptr()).or_default().ask(array)
    }
}
