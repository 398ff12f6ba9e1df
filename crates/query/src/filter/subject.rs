//! The document that a filter is asked about, with tables for filters of many tests.
//!
//! n tests of n fields would walk the document n times, and n tests of one array would walk the array n
//! times. A filter of more than a few tests therefore looks fields up in [`FieldTables`], and a path that
//! many of its tests share gets a [`LeafTable`].

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use pando_document::{RawArray, RawDocument};

use super::leaf_table::LeafTable;
use super::{FieldTest, Node, Test};
use crate::QueryError;
use crate::field_tables::FieldTables;
use crate::path::{Leaf, Leaves};

/// A filter of more tests uses tables, and so does a path with more tests.
pub(super) const FEW_TESTS: usize = 16;

/// How many tests a filter has, as far as its evaluation depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TestCount {
    Few,
    Many,
}

impl TestCount {
    /// The count of a tree, of which only so much is looked at as decides.
    pub(super) fn of(node: &Node) -> TestCount {
        let mut left = FEW_TESTS;
        match uses_up(node, &mut left) {
            true => TestCount::Many,
            false => TestCount::Few,
        }
    }
}

/// Whether a tree has more than so many tests.
fn uses_up(node: &Node, left: &mut usize) -> bool {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().any(|node| uses_up(node, left)),
        Node::Not(node) => uses_up(node, left),
        Node::Field(_) | Node::Expression(_) | Node::Schema(_) | Node::Text(_) | Node::Never => {
            match left.checked_sub(1) {
                Some(fewer) => {
                    *left = fewer;
                    false
                }
                None => true,
            }
        }
    }
}

/// A document and the tables of one evaluation.
pub(crate) struct Subject<'d> {
    document: &'d RawDocument,
    tables: Option<Box<Tables<'d>>>,
}

#[derive(Default)]
struct Tables<'d> {
    fields: FieldTables<'d>,
    /// By the address of the path, which all tests of one path share.
    leaves: RefCell<HashMap<*const u8, PathLeaves<'d>>>,
    /// By the address of the array.
    lengths: RefCell<HashMap<*const u8, usize>>,
}

impl<'d> Tables<'d> {
    fn length_of(&self, array: &'d RawArray) -> usize {
        let mut lengths = self.lengths.borrow_mut();
        *lengths.entry(array.as_bytes().as_ptr()).or_insert_with(|| array.iter().count())
    }
}

enum PathLeaves<'d> {
    /// No table yet, after so many walks.
    Awaited(usize),
    Made(Rc<LeafTable<'d>>),
}

impl<'d> Subject<'d> {
    /// The subject of a filter with so many tests.
    pub(super) fn new(document: &'d RawDocument, tests: TestCount) -> Subject<'d> {
        let tables = match tests {
            TestCount::Few => None,
            TestCount::Many => Some(Box::default()),
        };
        Subject { document, tables }
    }

    pub(super) fn document(&self) -> &'d RawDocument {
        self.document
    }

    /// Whether a field test holds. `position` receives what the positional `$` stands for.
    pub(super) fn meets(
        &self,
        field: &'d FieldTest,
        position: &mut Option<usize>,
    ) -> Result<bool, QueryError> {
        let FieldTest { path, test } = field;
        if let Some(tables) = &self.tables
            && LeafTable::can_answer(test)
            && let Some(leaves) = self.leaves(tables, field)?
        {
            let found = leaves.first_that_meets(test);
            if let Some(index) = found.and_then(|found| found.index) {
                *position = Some(index);
            }
            return Ok(found.is_some());
        }
        let mut holds = |leaf: Leaf<'d>| {
            let mut element = None;
            let holds = test.holds(leaf.value, &mut element)?;
            if holds && let Some(index) = leaf.outermost_index.or(element) {
                *position = Some(index);
            }
            Ok(holds)
        };
        match &self.tables {
            None => path.any(self.document, test.leaves(), &mut holds),
            Some(tables) => match test {
                // To count an array is a walk of its own.
                Test::Size(Some(size)) => {
                    path.any_in(self.document, test.leaves(), &tables.fields, &mut |leaf| {
                        let has_size = |array: &'d RawArray| tables.length_of(array) == *size;
                        let is_found = leaf.value.and_then(|value| value.as_array()).is_some_and(has_size);
                        if is_found && let Some(index) = leaf.outermost_index {
                            *position = Some(index);
                        }
                        Ok(is_found)
                    })
                }
                _ => path.any_in(self.document, test.leaves(), &tables.fields, &mut holds),
            },
        }
    }

    /// The table of a path's leaves, once it was walked often.
    fn leaves(
        &self,
        tables: &Tables<'d>,
        FieldTest { path, test }: &'d FieldTest,
    ) -> Result<Option<Rc<LeafTable<'d>>>, QueryError> {
        let mut by_path = tables.leaves.borrow_mut();
        let leaves = by_path.entry(path.as_str().as_ptr()).or_insert(PathLeaves::Awaited(0));
        match leaves {
            PathLeaves::Made(table) => {
                let is_fit = LeafTable::order_of(test).is_none_or(|order| table.has_order(order));
                Ok(is_fit.then(|| Rc::clone(table)))
            }
            PathLeaves::Awaited(walks) if *walks < FEW_TESTS => {
                *walks += 1;
                Ok(None)
            }
            PathLeaves::Awaited(_) => {
                let mut all = Vec::new();
                path.any_in(self.document, Leaves::Unwound, &tables.fields, &mut |leaf| {
                    all.push(leaf);
                    Ok(false)
                })?;
                let order = LeafTable::order_of(test).cloned().unwrap_or_default();
                let table = Rc::new(LeafTable::of(&all, &order));
                *leaves = PathLeaves::Made(Rc::clone(&table));
                Ok(Some(table))
            }
        }
    }
}
