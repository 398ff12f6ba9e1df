//! The place in the document where an update is at work: a chain of names from the root, kept on the stack
//! and only turned into text when an error message needs it.

use pando_document::{RawDocument, RawValue};

use crate::shell_text;

/// The container that the last step of a trail leads through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepName<'t> {
    Field(&'t str),
    Index(usize),
}

/// One step, and the steps before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trail<'t> {
    parent: Option<&'t Trail<'t>>,
    name: StepName<'t>,
    depth: usize,
}

impl<'t> Trail<'t> {
    /// The trail of a top-level field.
    pub(super) fn top(name: &'t str) -> Trail<'t> {
        Trail { parent: None, name: StepName::Field(name), depth: 1 }
    }

    /// One step further, to a field of a document.
    pub(super) fn field<'s>(&'s self, name: &'s str) -> Trail<'s> {
        Trail { parent: Some(self), name: StepName::Field(name), depth: self.depth + 1 }
    }

    /// One step further, to an element of an array.
    pub(super) fn element(&self, index: usize) -> Trail<'_> {
        Trail { parent: Some(self), name: StepName::Index(index), depth: self.depth + 1 }
    }

    /// The number of steps.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// The last name alone, as messages show it.
    pub(super) fn last_name(&self) -> String {
        match self.name {
            StepName::Field(name) => name.to_owned(),
            StepName::Index(index) => index.to_string(),
        }
    }

    /// The whole dotted path.
    pub(super) fn path(&self) -> String {
        match self.parent {
            Some(parent) => format!("{}.{}", parent.path(), self.last_name()),
            None => self.last_name(),
        }
    }

    /// `{a: [ 1, 2 ]}`, as messages show the value at this place.
    pub(super) fn element_text(&self, value: RawValue<'_>) -> String {
        format!("{{{}: {}}}", self.last_name(), shell_text::value_text(value))
    }
}

/// `{_id: 1}`, or `{no id}`, as messages name a document.
pub(super) fn document_text(document: &RawDocument) -> String {
    match document.get("_id") {
        Ok(Some(id)) => format!("{{_id: {}}}", shell_text::value_text(id)),
        _ => "{no id}".to_owned(),
    }
}
