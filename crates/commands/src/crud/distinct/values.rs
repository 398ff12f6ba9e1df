//! The values of a `distinct`, each once, in the order of values.
//!
//! 1. A table keeps the values by their order-preserving keys, which tell which values are equal: 1 and 1.0
//!    are.
//! 2. When its reservation cannot grow, its values go to a sorter, and it begins anew.
//! 3. At the end the rest goes to the sorter as well. Of values with one key, which come one behind the
//!    other, the first that was met counts.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use pando_catalog::{QueryAccount, Reservation, Sorter};
use pando_collation::TextOrder;
use pando_document::{ArrayWriter, DocumentWriter, RawDocument, RawValue};
use pando_keyorder::{Direction, TypeBits};
use pando_query::path::{Leaves, Path};

use crate::{CommandError, ErrorCode};

/// Bytes of values at most: they have to fit one reply.
const VALUES_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Memory of a value in the table beside its bytes, about.
const ENTRY_BYTES: usize = 112;
/// Values between two looks at the reservation while the table is emptied.
const VALUES_A_LOOK: usize = 256;

/// Elements of one array between two checks.
const ELEMENTS_A_CHECK: u32 = 1024;

type Check<'c> = &'c mut dyn FnMut() -> Result<(), CommandError>;

/// See the module's head.
pub(super) struct Values {
    /// By key: a document with the value as its only field.
    table: HashMap<Box<[u8]>, Box<[u8]>>,
    table_bytes: usize,
    reservation: Reservation,
    sorter: Sorter,
    /// Bytes of the keys in the table.
    keys_bytes: usize,
    key: Vec<u8>,
    /// Values since the last check: one document may have a million.
    unchecked: u32,
    order: TextOrder,
}

impl Values {
    pub fn new(account: &QueryAccount, order: &TextOrder) -> Values {
        Values {
            table: HashMap::new(),
            table_bytes: 0,
            reservation: account.reserve(),
            sorter: Sorter::new(account),
            keys_bytes: 0,
            key: Vec::new(),
            unchecked: 0,
            order: order.clone(),
        }
    }

    /// Adds the values at a path, those in an array one by one.
    pub fn add_leaves(
        &mut self,
        document: &RawDocument,
        path: &Path,
        check: Check<'_>,
    ) -> Result<(), CommandError> {
        let mut failed = None;
        path.any(document, Leaves::Whole, &mut |leaf| {
            let outcome = match leaf.value {
                Some(RawValue::Array(array)) => {
                    array.iter().try_for_each(|element| self.add(element?, &mut *check))
                }
                Some(value) => self.add(value, &mut *check),
                None => Ok(()),
            };
            failed = outcome.err();
            Ok(failed.is_some())
        })?;
        failed.map_or(Ok(()), Err)
    }

    /// Adds a value that is equal to none in the table.
    fn add(&mut self, value: RawValue<'_>, check: Check<'_>) -> Result<(), CommandError> {
        self.unchecked += 1;
        if self.unchecked >= ELEMENTS_A_CHECK {
            self.unchecked = 0;
            check()?;
        }
        self.key.clear();
        self.order.encode(value, Direction::Ascending, &mut self.key, &mut TypeBits::new());
        if self.table.contains_key(self.key.as_slice()) {
            return Ok(());
        }
        self.keys_bytes += self.key.len();
        if self.keys_bytes > VALUES_BYTES_MAX {
            return Err(too_big());
        }
        let mut document = Vec::new();
        let mut writer = DocumentWriter::begin(&mut document);
        writer.append("", value);
        writer.finish();
        let bytes = self.table_bytes + self.key.len() + document.len() + ENTRY_BYTES;
        if !self.reservation.grow_to(bytes) && !self.table.is_empty() {
            self.empty_table(check)?;
            self.sorter.spill(check)?;
        }
        self.table_bytes += self.key.len() + document.len() + ENTRY_BYTES;
        if let Entry::Vacant(vacant) = self.table.entry(self.key.as_slice().into()) {
            vacant.insert(document.into());
        }
        Ok(())
    }

    /// Moves all values into the sorter. The table's reservation shrinks as the sorter's grows.
    fn empty_table(&mut self, check: Check<'_>) -> Result<(), CommandError> {
        let table = std::mem::take(&mut self.table);
        let bytes_a_value = self.table_bytes / table.len().max(1);
        for (count, (key, value)) in table.into_iter().enumerate() {
            self.sorter.push(&key, &value, check)?;
            if count.is_multiple_of(VALUES_A_LOOK) {
                check()?;
                self.reservation.shrink_to(self.table_bytes.saturating_sub(count * bytes_a_value));
            }
        }
        self.reservation.shrink_to(0);
        (self.table_bytes, self.keys_bytes) = (0, 0);
        Ok(())
    }

    /// Appends all values in order.
    pub fn write(mut self, list: &mut ArrayWriter<'_>, check: Check<'_>) -> Result<(), CommandError> {
        self.empty_table(check)?;
        self.sorter.finish(check)?;
        let (mut last, mut keys_bytes) = (None::<Vec<u8>>, 0);
        while let Some((key, value)) = self.sorter.next(check)? {
            if last.as_deref() == Some(key) {
                continue;
            }
            keys_bytes += key.len();
            if keys_bytes > VALUES_BYTES_MAX {
                return Err(too_big());
            }
            let last = last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key);
            if let Some((_, value)) = RawDocument::from_bytes(value)?.iter().next().transpose()? {
                list.push(value);
            }
        }
        Ok(())
    }
}

fn too_big() -> CommandError {
    CommandError::failed(ErrorCode::Location(17217), "distinct too big, 16mb cap")
}
