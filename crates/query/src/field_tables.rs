//! Lookups of fields by name, for a caller that asks the same documents for many fields.
//!
//! A document's bytes have no directory, so a lookup walks the fields before the one it wants. An operation
//! with n paths on a document of n fields would walk n² of them. After a number of lookups a wide document
//! therefore gets a hash table of its fields, which serves all later ones.
//!
//! # Invariants
//! - Of several fields with one name the first counts, as for [`RawDocument::get`].
//! - Tables are known by the addresses of their documents. The lifetime `'d` keeps all of them borrowed, so
//!   that no address is taken by another document.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use pando_document::{DocumentError, RawDocument, RawValue};

/// Lookups that walk, before any table is made, and then those in each document.
const WALKS_BEFORE_TABLE: u32 = 16;

/// Documents of fewer bytes are walked: a table costs more.
const WIDE_BYTES_MIN: usize = 256;

/// A source of fields: the documents themselves, or tables of them.
pub(crate) trait FieldSource<'d>: Copy {
    /// The value of the first field with this name.
    fn field(self, document: &'d RawDocument, name: &str) -> Result<Option<RawValue<'d>>, DocumentError>;
}

/// The documents themselves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Direct;

impl<'d> FieldSource<'d> for Direct {
    #[inline]
    fn field(self, document: &'d RawDocument, name: &str) -> Result<Option<RawValue<'d>>, DocumentError> {
        document.get(name)
    }
}

/// Tables of the documents that were asked often.
#[derive(Debug, Default)]
pub(crate) struct FieldTables<'d> {
    walks: Cell<u32>,
    tables: RefCell<Option<Box<Tables<'d>>>>,
}

/// Tables by the addresses of their documents.
type Tables<'d> = HashMap<*const u8, Table<'d>>;

#[derive(Debug)]
enum Table<'d> {
    /// None yet, after so many walks.
    Awaited(u32),
    Made(HashMap<&'d str, RawValue<'d>>),
}

impl<'d> FieldSource<'d> for &FieldTables<'d> {
    #[inline]
    fn field(self, document: &'d RawDocument, name: &str) -> Result<Option<RawValue<'d>>, DocumentError> {
        let walks = self.walks.get();
        if walks < WALKS_BEFORE_TABLE || document.as_bytes().len() < WIDE_BYTES_MIN {
            self.walks.set(walks.saturating_add(1));
            return document.get(name);
        }
        self.look_up(document, name)
    }
}

impl<'d> FieldTables<'d> {
    fn look_up(&self, document: &'d RawDocument, name: &str) -> Result<Option<RawValue<'d>>, DocumentError> {
        let mut tables = self.tables.borrow_mut();
        let tables = tables.get_or_insert_default();
        let table = tables.entry(document.as_bytes().as_ptr()).or_insert(Table::Awaited(0));
        match table {
            Table::Made(fields) => Ok(fields.get(name).copied()),
            Table::Awaited(walks) if *walks < WALKS_BEFORE_TABLE => {
                *walks += 1;
                document.get(name)
            }
            Table::Awaited(_) => {
                let mut fields = HashMap::new();
                for field in document {
                    let (known, value) = field?;
                    fields.entry(known).or_insert(value);
                }
                let found = fields.get(name).copied();
                *table = Table::Made(fields);
                Ok(found)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pando_document::Document;

    use super::*;

    #[test]
    fn a_table_gives_the_first_field_of_a_name_as_the_document_does() {
        let mut document = Document::new();
        for number in 0..100 {
            document.push(format!("field{}", number % 90), number);
        }
        let raw = document.to_raw();
        let tables = FieldTables::default();
        for _ in 0..3 {
            for number in 0..100 {
                let name = format!("field{number}");
                let found = (&tables).field(&raw, &name).unwrap().and_then(|value| value.as_i64_exact());
                assert_eq!(found, raw.get(&name).unwrap().and_then(|value| value.as_i64_exact()), "{name}");
            }
        }
        assert!(tables.tables.borrow().is_some(), "so many lookups make a table");
    }
}
