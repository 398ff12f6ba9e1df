//! The frame of an evaluation: the document, and the values of the variables.

use pando_document::{RawDocument, RawValue};

use super::evaluated::Evaluated;
use super::field_path::FieldPath;
use crate::error::QueryError;

/// One evaluation: the root and the slots. Making one allocates nothing.
#[derive(Debug)]
pub struct Frame<'a> {
    root: &'a RawDocument,
    slots: Vec<Evaluated<'a>>,
}

impl<'a> Frame<'a> {
    /// A frame without variables.
    pub fn new(root: &'a RawDocument) -> Frame<'a> {
        Frame { root, slots: Vec::new() }
    }

    /// The document that expressions start from.
    pub fn root(&self) -> &'a RawDocument {
        self.root
    }

    /// Sets a variable. Slots are numbered by nesting, so an inner one never overwrites an outer one.
    pub(super) fn write(&mut self, slot: usize, value: Evaluated<'a>) {
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, Evaluated::Missing);
        }
        self.slots[slot] = value;
    }

    /// The variable's value, or the part of it below a path.
    pub(super) fn read(&self, slot: usize, path: Option<&FieldPath>) -> Result<Evaluated<'a>, QueryError> {
        let Some(value) = self.slots.get(slot) else {
            unreachable!("the scope gives out slots that their operator sets before use")
        };
        match (value, path) {
            (value, None) => Ok(value.clone()),
            (Evaluated::Raw(value), Some(path)) => path.evaluate_below(*value),
            (computed, Some(path)) => {
                let below = path.evaluate_below(computed.raw().unwrap_or(RawValue::Null))?;
                Ok(below.raw().map_or(Evaluated::Missing, Evaluated::owned))
            }
        }
    }
}
