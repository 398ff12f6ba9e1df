//! The frame of an evaluation: the document, and the values of the variables.

use std::sync::Arc;

use pando_document::{DocumentError, RawDocument, RawValue};

use super::array_table::{ArrayTable, ArrayTables};
use super::evaluated::Evaluated;
use super::field_path::FieldPath;
use super::watch::Steps;
use crate::error::QueryError;
use crate::field_tables::{Direct, FieldSource, FieldTables};

/// One evaluation, or several of one document: the root, the slots, and tables of what is asked often. Making
/// one allocates nothing.
#[derive(Debug)]
pub struct Frame<'a> {
    root: &'a RawDocument,
    /// A field that has another value than in the root.
    replaced: Option<Replaced<'a>>,
    slots: Vec<Evaluated<'a>>,
    fields: FieldTables<'a>,
    arrays: ArrayTables<'a>,
    steps: Steps,
}

#[derive(Debug)]
struct Replaced<'a> {
    name: &'a str,
    value: Option<RawValue<'a>>,
}

impl<'a> Frame<'a> {
    /// A frame without variables.
    pub fn new(root: &'a RawDocument) -> Frame<'a> {
        Frame {
            root,
            replaced: None,
            slots: Vec::new(),
            fields: FieldTables::default(),
            arrays: ArrayTables::default(),
            steps: Steps::default(),
        }
    }

    /// Counts the work on a value. True: it is time to check the operation.
    #[inline]
    pub(super) fn count_step(&mut self, value: &Evaluated<'_>) -> bool {
        self.steps.count(value)
    }

    /// Puts another value, or none, in the place of a field of the root: for expressions that read the root
    /// by paths only ([`Expression::reads_paths_only`](super::Expression::reads_paths_only)).
    pub(crate) fn replace_field(&mut self, name: &'a str, value: Option<RawValue<'a>>) {
        self.replaced = Some(Replaced { name, value });
    }

    /// The document that expressions start from.
    pub fn root(&self) -> &'a RawDocument {
        self.root
    }

    /// A field of the root, or of a document within it.
    pub(crate) fn field(
        &self,
        document: &'a RawDocument,
        name: &str,
    ) -> Result<Option<RawValue<'a>>, DocumentError> {
        (&self.fields).field(document, name)
    }

    /// The table of an array, where it is asked for often.
    pub(super) fn array_table(&self, value: &Evaluated<'a>) -> Result<Option<Arc<ArrayTable>>, QueryError> {
        match value {
            Evaluated::Raw(RawValue::Array(array)) => self.arrays.ask(array),
            Evaluated::Shared(shared) => shared.array_table(),
            _ => Ok(None),
        }
    }

    /// Sets `$$ROOT` where it is a variable ([`ParseScope::with_root`](super::ParseScope::with_root)).
    pub(crate) fn set_root(&mut self, slot: usize, root: Evaluated<'a>) {
        self.write(slot, root);
    }

    /// Sets a variable. Slots are numbered by nesting, so an inner one never overwrites an outer one.
    pub(crate) fn write(&mut self, slot: usize, value: Evaluated<'a>) {
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, Evaluated::Missing);
        }
        // A variable may be read for each element of an array: a computed value is not copied each time.
        self.slots[slot] = value.shared();
    }

    /// The variable's value, or the part of it below a path.
    pub(super) fn read(&self, slot: usize, path: Option<&FieldPath>) -> Result<Evaluated<'a>, QueryError> {
        let Some(value) = self.slots.get(slot) else {
            unreachable!("the scope gives out slots that their operator sets before use")
        };
        match (value, path) {
            (value, None) => Ok(value.clone()),
            (Evaluated::Raw(value), Some(path)) => path.evaluate_below(*value, &self.fields),
            (computed, Some(path)) => {
                let below = path.evaluate_below(computed.raw().unwrap_or(RawValue::Null), Direct)?;
                Ok(below.raw().map_or(Evaluated::Missing, Evaluated::owned))
            }
        }
    }

    /// The value at a path of the root.
    pub(super) fn at_path(&self, path: &FieldPath) -> Result<Evaluated<'a>, QueryError> {
        match &self.replaced {
            Some(Replaced { name, value }) if path.first() == *name => {
                value.map_or(Ok(Evaluated::Missing), |value| path.evaluate_from(value, &self.fields))
            }
            _ => path.evaluate_in(self.root, &self.fields),
        }
    }
}
