//! The path of one field in an update: `items.0.name`, `items.$.name`, `items.$[].name`, `items.$[low].name`.
//!
//! A path is cut at its dots once, when the update is parsed; applying an update never looks at dots again.

use crate::error::{ErrorCode, QueryError};

/// How deep an update may nest a document.
pub(super) const NESTING_MAX: usize = 180;

/// A path with more steps could only make a document that is refused; the bound keeps recursion shallow.
const STEPS_MAX: usize = 200;

/// One step of an update path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A field name, or the index of an array element where the document has an array there.
    Field(String),
    /// `$`: the array element that the filter matched.
    Positional,
    /// `$[]` (empty identifier) or `$[identifier]`: every element that the array filter accepts.
    Elements(String),
}

/// A path of at least one step, the first of them a [`Step::Field`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UpdatePath {
    steps: Vec<Step>,
    text: String,
}

impl UpdatePath {
    /// Cuts `text` and checks what can be checked without a document.
    pub(super) fn parse(text: &str) -> Result<UpdatePath, QueryError> {
        if text.is_empty() {
            return Err(QueryError::new(
                ErrorCode::EmptyFieldName,
                "An empty update path is not valid.".to_owned(),
            ));
        }
        let mut steps = Vec::with_capacity(4);
        for part in text.split('.') {
            if part.is_empty() {
                return Err(QueryError::new(
                    ErrorCode::EmptyFieldName,
                    format!("The update path '{text}' contains an empty field name, which is not allowed."),
                ));
            }
            steps.push(step_of(part));
        }
        if steps.len() > STEPS_MAX {
            return Err(QueryError::new(
                ErrorCode::Overflow,
                format!("Document exceeds maximum nesting depth of {NESTING_MAX}"),
            ));
        }
        let path = UpdatePath { steps, text: text.to_owned() };
        path.check_positions()?;
        Ok(path)
    }

    /// The dynamic steps may not come first, and `$` only once.
    fn check_positions(&self) -> Result<(), QueryError> {
        let text = &self.text;
        match &self.steps[0] {
            Step::Field(name) if name.starts_with('$') => {
                return Err(QueryError::new(
                    ErrorCode::DollarPrefixedFieldName,
                    format!(
                        "The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context of an \
                         update's replacement document. Consider using an aggregation pipeline with $replaceWith."
                    ),
                ));
            }
            Step::Field(_) => {}
            Step::Positional => {
                return Err(bad_value(format!(
                    "Cannot have positional (i.e. '$') element in the first position in path '{text}'"
                )));
            }
            Step::Elements(_) => {
                return Err(bad_value(format!(
                    "Cannot have array filter identifier (i.e. '$[<id>]') element in the first position in path '{text}'"
                )));
            }
        }
        if self.steps.iter().filter(|step| **step == Step::Positional).count() > 1 {
            return Err(bad_value(format!("Too many positional (i.e. '$') elements found in path '{text}'")));
        }
        Ok(())
    }

    /// The steps, in order; never empty.
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The path as it was written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether a step depends on the document (`$`, `$[]`, `$[identifier]`).
    pub(super) fn is_dynamic(&self) -> bool {
        self.steps.iter().any(|step| !matches!(step, Step::Field(_)))
    }

    /// Whether one path is the other, or leads to it.
    pub(super) fn overlaps(&self, other: &UpdatePath) -> bool {
        let shorter = self.steps.len().min(other.steps.len());
        self.steps[..shorter] == other.steps[..shorter]
    }

    /// The first `count` steps as text, for messages.
    pub(super) fn prefix_text(&self, count: usize) -> String {
        self.text.split('.').take(count).collect::<Vec<_>>().join(".")
    }
}

fn step_of(part: &str) -> Step {
    if part == "$" {
        return Step::Positional;
    }
    match part.strip_prefix("$[").and_then(|rest| rest.strip_suffix(']')) {
        Some(identifier) => Step::Elements(identifier.to_owned()),
        None => Step::Field(part.to_owned()),
    }
}

fn bad_value(message: String) -> QueryError {
    QueryError::new(ErrorCode::BadValue, message)
}
