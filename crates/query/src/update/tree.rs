//! The operators of one update, ordered as a tree by their paths.
//!
//! `{$set: {"a.b": 1, c: 2}, $inc: {"a.d": 1}}` becomes
//!
//! ```text
//! fields ─┬─ a: fields ─┬─ b: $set 1
//!         │             └─ d: $inc 1
//!         └─ c: $set 2
//! ```
//!
//! Invariants: children stand in the order in which new fields are added to a document (numbers first by
//! value, then by their bytes); a leaf is nobody's parent, so two operators never write the same place: the
//! tree refuses that (`ConflictingUpdateOperators`). Places that only meet in a document (`a.$` and `a.0`)
//! are found by `apply`.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

pub(super) use pando_document::patch::compare_names;

use super::operator::Operator;
use super::path::{Step, UpdatePath};
use crate::error::{ErrorCode, QueryError};

/// One place of the update.
#[derive(Debug)]
pub(super) enum Node {
    /// Children by field name or array index.
    Fields(FieldsNode),
    /// Children by array filter.
    Elements(ElementsNode),
    /// An operator, and the path that its user wrote.
    Leaf(Leaf),
}

/// Children by name, and at most one under `$`.
#[derive(Debug, Default)]
pub(super) struct FieldsNode {
    pub(super) children: BTreeMap<FieldName, Node>,
    pub(super) positional: Option<Box<Node>>,
}

/// Children by array filter identifier; the empty one is `$[]`.
#[derive(Debug, Default)]
pub(super) struct ElementsNode {
    pub(super) children: BTreeMap<String, Node>,
}

/// A field name, ordered as [`compare_names`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldName(String);

impl FieldName {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl PartialOrd for FieldName {
    fn partial_cmp(&self, other: &FieldName) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for FieldName {
    fn cmp(&self, other: &FieldName) -> Ordering {
        compare_names(&self.0, &other.0)
    }
}

/// An operator at its place.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) operator: Box<dyn Operator>,
    pub(super) path: String,
}

impl FieldsNode {
    /// Adds an operator at a path, or says with what it collides.
    pub(super) fn insert(
        &mut self,
        path: &UpdatePath,
        operator: Box<dyn Operator>,
    ) -> Result<(), QueryError> {
        insert_into_fields(self, path, 0, operator)
    }
}

fn insert_into_fields(
    node: &mut FieldsNode,
    path: &UpdatePath,
    depth: usize,
    operator: Box<dyn Operator>,
) -> Result<(), QueryError> {
    let is_last = depth + 1 == path.steps().len();
    let slot = match &path.steps()[depth] {
        Step::Field(name) => match node.children.entry(FieldName(name.clone())) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(vacant) => {
                vacant.insert(fresh(path, depth, operator));
                return Ok(());
            }
        },
        Step::Positional => match &mut node.positional {
            Some(known) => Some(known.as_mut()),
            None => {
                node.positional = Some(Box::new(fresh(path, depth, operator)));
                return Ok(());
            }
        },
        Step::Elements(_) => None,
    };
    match slot {
        Some(existing) if !is_last => descend(existing, path, depth + 1, operator),
        Some(_) => Err(conflict(path, depth + 1)),
        None => Err(conflict(path, depth)),
    }
}

/// The operator goes below `existing`, whose step is already taken.
fn descend(
    existing: &mut Node,
    path: &UpdatePath,
    depth: usize,
    operator: Box<dyn Operator>,
) -> Result<(), QueryError> {
    match (existing, &path.steps()[depth]) {
        (Node::Fields(fields), Step::Field(_) | Step::Positional) => {
            insert_into_fields(fields, path, depth, operator)
        }
        (Node::Elements(elements), Step::Elements(identifier)) => {
            match elements.children.entry(identifier.clone()) {
                Entry::Occupied(_) if depth + 1 == path.steps().len() => Err(conflict(path, depth + 1)),
                Entry::Occupied(known) => descend(known.into_mut(), path, depth + 1, operator),
                Entry::Vacant(vacant) => {
                    vacant.insert(fresh(path, depth, operator));
                    Ok(())
                }
            }
        }
        _ => Err(conflict(path, depth)),
    }
}

/// The subtree under step `depth`, for a path that meets nothing on its way.
fn fresh(path: &UpdatePath, depth: usize, operator: Box<dyn Operator>) -> Node {
    if depth + 1 == path.steps().len() {
        return Node::Leaf(Leaf { operator, path: path.text().to_owned() });
    }
    let child = fresh(path, depth + 1, operator);
    match &path.steps()[depth + 1] {
        Step::Field(name) => {
            let children = BTreeMap::from([(FieldName(name.clone()), child)]);
            Node::Fields(FieldsNode { children, positional: None })
        }
        Step::Positional => {
            Node::Fields(FieldsNode { children: BTreeMap::new(), positional: Some(Box::new(child)) })
        }
        Step::Elements(identifier) => {
            Node::Elements(ElementsNode { children: BTreeMap::from([(identifier.clone(), child)]) })
        }
    }
}

/// `steps` is how many steps of the path lead to the place of the collision.
fn conflict(path: &UpdatePath, steps: usize) -> QueryError {
    QueryError::new(
        ErrorCode::ConflictingUpdateOperators,
        format!(
            "Updating the path '{}' would create a conflict at '{}'",
            path.text(),
            path.prefix_text(steps.max(1))
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_fields_are_ordered_by_leading_number_and_then_by_bytes() {
        let mut names = vec!["a10", "a2", "b", "1", "-5", "A", "a", "é", "01", "a02", "10b", "2b"];
        names.sort_by(|a, b| compare_names(a, b));
        assert_eq!(names, ["-5", "01", "1", "2b", "10b", "A", "a", "a02", "a10", "a2", "b", "é"]);
    }
}
