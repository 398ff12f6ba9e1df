//! The walk of an update over one document: it reads the old bytes once and writes the new ones once.
//!
//! 1. Walk the old document's fields in their order. A field that no operator names is copied as bytes.
//! 2. A field with a leaf of the tree is given to its operator, whose *effect* says what to write.
//! 3. A field with further nodes below it is entered: documents by name, arrays by index or by array filter.
//! 4. A field that the tree names and the document lacks is created after the old fields, in the order of the
//!    tree, where the operators there create anything (`$set` does, `$unset` does not).
//!
//! Terms: *overlay*: the nodes of the tree that fall on one place. It is one node, except where `$`, `$[]`,
//! `$[x]` and plain indexes meet on one array element; then all must be inner nodes, or the operators
//! conflict.
//!
//! Invariants: untouched values keep their bytes; nothing is changed unless [`Application::changed`] says so.
//! Not here: whether `_id` survived (see `immutable_id`), the size of the result (see the parent module).

use std::borrow::Cow;

use pando_document::{ArrayWriter, DOCUMENT_BYTES_MAX, DocumentWriter, RawArray, RawDocument, RawValue};

use super::UpdateContext;
use super::array_filter::ArrayFilters;
use super::fault::UpdateFault;
use super::operator::{Effect, OnBlockedPath, Surroundings};
use super::path::NESTING_MAX;
use super::slot::Slot;
use super::trail::Trail;
use super::tree::{ElementsNode, FieldsNode, Leaf, Node, compare_names};
use crate::error::{ErrorCode, QueryError};
use crate::field_tables::FieldTables;

/// MongoDB fills at most so many missing elements of an array with null.
const PADDING_MAX: usize = 1_500_000;

/// More nulls than this, in all arrays together, make a document that is too large in any case.
const PADDING_TOTAL_MAX: usize = 2_500_000;

/// So many children are found faster one by one than by their order.
const FEW_CHILDREN: usize = 16;

/// The application of one update to one document.
pub(super) struct Application<'a> {
    surroundings: Surroundings<'a>,
    filters: &'a ArrayFilters,
    changed: bool,
    /// Nulls put into arrays so far.
    padded: usize,
}

/// The nodes that fall on one place.
enum Overlay<'a> {
    One(&'a Node),
    Many(Vec<&'a Node>),
}

/// A child of the current place: its name, and what the tree has for it.
struct Child<'a> {
    name: Cow<'a, str>,
    overlay: Overlay<'a>,
}

/// The demand of an overlay, after the check that its nodes go together.
enum Demand<'a> {
    Leaf(&'a Leaf),
    Fields(Vec<Child<'a>>),
    Elements(Vec<&'a ElementsNode>),
}

impl<'a> Application<'a> {
    pub(super) fn new(
        root: &'a RawDocument,
        fields: &'a FieldTables<'a>,
        context: &'a UpdateContext,
        filters: &'a ArrayFilters,
    ) -> Application<'a> {
        Application {
            surroundings: Surroundings { root, fields, context },
            filters,
            changed: false,
            padded: 0,
        }
    }

    /// Writes the new document to `out`; true if it differs from the old one.
    pub(super) fn run(mut self, tree: &'a FieldsNode, out: &mut Vec<u8>) -> Result<bool, QueryError> {
        let children = self.children_of(&[tree], None)?;
        let mut writer = DocumentWriter::begin(out);
        if let Err(error) = self.rewrite_fields(self.surroundings.root, &children, &mut writer, None) {
            return Err(self.first_error(&children).unwrap_or(error));
        }
        writer.finish();
        Ok(self.changed)
    }

    /// Of several errors MongoDB reports the first in the order of the tree, not of the document.
    fn first_error(&mut self, children: &[Child<'a>]) -> Option<QueryError> {
        // The first field of each name that the update names.
        let mut olds: Vec<Option<RawValue<'a>>> = vec![None; children.len()];
        for (name, value) in self.surroundings.root.iter().flatten() {
            if let Some(at) = place_of(children, name) {
                olds[at].get_or_insert(value);
            }
        }
        children.iter().zip(olds).find_map(|(child, old)| {
            let mut unused = Vec::new();
            let mut writer = DocumentWriter::begin(&mut unused);
            let (slot, here) = (Slot::Field(&mut writer, &child.name), Trail::top(&child.name));
            let error = match old {
                Some(old) => self.rewrite_value(&child.overlay, old, slot, &here).err(),
                None => self.create(&child.overlay, slot, &here).err(),
            };
            writer.finish();
            error
        })
    }

    /// The children of fields nodes on one place, merged and ordered.
    fn children_of(
        &self,
        nodes: &[&'a FieldsNode],
        trail: Option<&Trail<'_>>,
    ) -> Result<Vec<Child<'a>>, QueryError> {
        let count: usize = nodes.iter().map(|node| node.children.len()).sum();
        let mut children: Vec<Child<'a>> = Vec::with_capacity(count + 1);
        for (name, node) in nodes.iter().flat_map(|node| &node.children) {
            children.push(Child { name: Cow::Borrowed(name.as_str()), overlay: Overlay::One(node) });
        }
        let mut is_merged = nodes.len() == 1;
        for positional in nodes.iter().filter_map(|node| node.positional.as_deref()) {
            let Some(index) = self.surroundings.context.matched_index else {
                return Err(QueryError::new(
                    ErrorCode::BadValue,
                    "The positional operator did not find the match needed from the query.".to_owned(),
                ));
            };
            let name = Cow::Owned(index.to_string());
            children.push(Child { name, overlay: Overlay::One(positional) });
            is_merged = false;
        }
        if !is_merged {
            children = merged(children);
        }
        debug_assert!(trail.is_some() || nodes.len() == 1, "only one node can stand at the root");
        Ok(children)
    }

    fn demand(&self, overlay: &Overlay<'a>, trail: &Trail<'_>) -> Result<Demand<'a>, QueryError> {
        let one;
        let nodes: &[&'a Node] = match overlay {
            Overlay::One(node) => {
                one = [*node];
                &one
            }
            Overlay::Many(nodes) => nodes,
        };
        let mut fields = Vec::new();
        let mut elements = Vec::new();
        for node in nodes {
            match node {
                Node::Leaf(leaf) if nodes.len() == 1 => return Ok(Demand::Leaf(leaf)),
                Node::Leaf(_) => return Err(conflict(trail)),
                Node::Fields(node) => fields.push(node),
                Node::Elements(node) => elements.push(node),
            }
        }
        match (fields.is_empty(), elements.is_empty()) {
            (false, true) => Ok(Demand::Fields(self.children_of(&fields, Some(trail))?)),
            (true, false) => Ok(Demand::Elements(elements)),
            _ => Err(conflict(trail)),
        }
    }

    fn rewrite_fields(
        &mut self,
        document: &'a RawDocument,
        children: &[Child<'a>],
        writer: &mut DocumentWriter<'_>,
        trail: Option<&Trail<'_>>,
    ) -> Result<(), QueryError> {
        let bytes = document.as_bytes();
        let mut found = vec![false; children.len()];
        let mut fields = document.iter();
        // Fields that no operator names are copied in runs.
        let mut run_start = fields.offset();
        loop {
            let start = fields.offset();
            let Some(field) = fields.next() else { break };
            let (name, value) = field?;
            // Of two fields with one name, the first is the one that counts.
            let named = place_of(children, name).filter(|at| !found[*at]);
            let Some(at) = named else { continue };
            writer.append_raw_fields(&bytes[run_start..start]);
            run_start = fields.offset();
            found[at] = true;
            let here = step(trail, name);
            self.rewrite_value(&children[at].overlay, value, Slot::Field(writer, name), &here)?;
        }
        writer.append_raw_fields(&bytes[run_start..bytes.len() - 1]);
        for (child, _) in children.iter().zip(found).filter(|(_, found)| !found) {
            let here = step(trail, &child.name);
            self.create(&child.overlay, Slot::Field(writer, &child.name), &here)?;
        }
        Ok(())
    }

    fn rewrite_value(
        &mut self,
        overlay: &Overlay<'a>,
        value: RawValue<'a>,
        slot: Slot<'_, '_>,
        trail: &Trail<'_>,
    ) -> Result<(), QueryError> {
        match self.demand(overlay, trail)? {
            Demand::Leaf(leaf) => {
                let effect = leaf.operator.apply(value, &self.surroundings, trail)?;
                self.carry_out(effect, Some(value), slot, trail)
            }
            Demand::Fields(children) => match value {
                RawValue::Document(document) => {
                    let mut writer = slot.document();
                    self.rewrite_fields(document, &children, &mut writer, Some(trail))?;
                    writer.finish();
                    Ok(())
                }
                RawValue::Array(array) => self.rewrite_by_index(array, &children, slot, trail),
                scalar => {
                    self.check_blocked(&children, scalar, trail)?;
                    slot.put(scalar);
                    Ok(())
                }
            },
            Demand::Elements(nodes) => match value {
                RawValue::Array(array) => self.rewrite_by_filter(array, &nodes, slot, trail),
                other => {
                    let element = trail.element_text(other);
                    let element = &element[1..element.len() - 1];
                    Err(bad_value(format!("Cannot apply array updates to non-array element {element}")))
                }
            },
        }
    }

    /// An array whose elements are named by index.
    fn rewrite_by_index(
        &mut self,
        array: &'a RawArray,
        children: &[Child<'a>],
        slot: Slot<'_, '_>,
        trail: &Trail<'_>,
    ) -> Result<(), QueryError> {
        let mut indexed: Vec<(usize, &Child<'a>)> = Vec::with_capacity(children.len());
        for child in children {
            match array_index(&child.name) {
                Some(index) => indexed.push((index, child)),
                None => self.check_blocked(std::slice::from_ref(child), RawValue::Array(array), trail)?,
            }
        }
        indexed.sort_by_key(|(index, _)| *index);
        if indexed.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(conflict(trail));
        }
        let mut writer = slot.array();
        let mut pending = indexed.into_iter().peekable();
        let mut length = 0;
        for (index, value) in array.iter().enumerate() {
            let value = value?;
            match pending.next_if(|(at, _)| *at == index) {
                Some((_, child)) => {
                    let here = trail.element(index);
                    self.rewrite_value(&child.overlay, value, Slot::Element(&mut writer), &here)?;
                }
                None => writer.push(value),
            }
            length = index + 1;
        }
        for (index, child) in pending {
            if !self.creates(&child.overlay) {
                continue;
            }
            self.padded += index.saturating_sub(length);
            length = pad(&mut writer, length, index)?;
            if self.padded > PADDING_TOTAL_MAX {
                return Err(too_large());
            }
            let here = trail.element(index);
            self.create(&child.overlay, Slot::Element(&mut writer), &here)?;
            length += 1;
        }
        writer.finish();
        Ok(())
    }

    /// An array whose elements are named by `$[]` and `$[identifier]`.
    fn rewrite_by_filter(
        &mut self,
        array: &'a RawArray,
        nodes: &[&'a ElementsNode],
        slot: Slot<'_, '_>,
        trail: &Trail<'_>,
    ) -> Result<(), QueryError> {
        let mut writer = slot.array();
        for (index, value) in array.iter().enumerate() {
            let value = value?;
            let mut chosen = Vec::new();
            for (identifier, child) in nodes.iter().flat_map(|node| &node.children) {
                if self.filters.accepts(identifier, value)? {
                    chosen.push(child);
                }
            }
            if writer.bytes_so_far() > DOCUMENT_BYTES_MAX {
                // Each of many elements may gain many fields: this ends before the memory does.
                return Err(too_large());
            }
            let overlay = match chosen.as_slice() {
                [] => {
                    writer.push(value);
                    continue;
                }
                [only] => Overlay::One(only),
                _ => Overlay::Many(chosen),
            };
            let here = trail.element(index);
            self.rewrite_value(&overlay, value, Slot::Element(&mut writer), &here)?;
        }
        writer.finish();
        Ok(())
    }

    /// The place does not exist: make it, if an operator below wants that.
    fn create(
        &mut self,
        overlay: &Overlay<'a>,
        slot: Slot<'_, '_>,
        trail: &Trail<'_>,
    ) -> Result<(), QueryError> {
        match self.demand(overlay, trail)? {
            Demand::Leaf(leaf) => {
                let effect = leaf.operator.create(&self.surroundings, trail)?;
                self.carry_out(effect, None, slot, trail)
            }
            Demand::Fields(children) => {
                if !children.iter().any(|child| self.creates(&child.overlay)) {
                    return Ok(());
                }
                let mut writer = slot.document();
                for child in &children {
                    let here = trail.field(&child.name);
                    self.create(&child.overlay, Slot::Field(&mut writer, &child.name), &here)?;
                }
                writer.finish();
                Ok(())
            }
            Demand::Elements(_) => Err(no_array_at(trail)),
        }
    }

    fn carry_out(
        &mut self,
        effect: Effect<'_>,
        old: Option<RawValue<'_>>,
        slot: Slot<'_, '_>,
        trail: &Trail<'_>,
    ) -> Result<(), QueryError> {
        match (effect, old) {
            (Effect::Keep, Some(old)) => slot.put(old),
            (Effect::Keep, None) => {}
            (Effect::Remove, old) => {
                self.changed |= old.is_some();
                slot.clear();
            }
            (Effect::Put(value), _) => {
                check_nesting(trail, nesting_of(value)?)?;
                self.changed = true;
                slot.put(value);
            }
            (Effect::PutValue(value), _) => {
                check_nesting(trail, 0)?;
                self.changed = true;
                slot.put_value(&value);
            }
            (Effect::PutArray(array), _) => {
                let array = RawArray::from_document(&array);
                check_nesting(trail, nesting_of(RawValue::Array(array))?)?;
                self.changed = true;
                slot.put_array(array);
            }
        }
        Ok(())
    }

    /// The paths of `children` end at a value that has no children: an error for most operators.
    fn check_blocked(
        &self,
        children: &[Child<'a>],
        value: RawValue<'_>,
        trail: &Trail<'_>,
    ) -> Result<(), QueryError> {
        for child in children {
            let nodes: &[&Node] = match &child.overlay {
                Overlay::One(node) => &[*node],
                Overlay::Many(nodes) => nodes,
            };
            for node in nodes {
                self.check_blocked_node(node, &child.name, value, trail, &trail.field(&child.name))?;
            }
        }
        Ok(())
    }

    /// `wanted` is the place of the node, below the field `name` that `value` at `trail` cannot have.
    fn check_blocked_node(
        &self,
        node: &Node,
        name: &str,
        value: RawValue<'_>,
        trail: &Trail<'_>,
        wanted: &Trail<'_>,
    ) -> Result<(), QueryError> {
        match node {
            Node::Fields(fields) => {
                for (below, child) in &fields.children {
                    self.check_blocked_node(child, name, value, trail, &wanted.field(below.as_str()))?;
                }
                match &fields.positional {
                    Some(child) => self.check_blocked_node(child, name, value, trail, &wanted.field("$")),
                    None => Ok(()),
                }
            }
            Node::Elements(_) => Err(no_array_at(wanted)),
            Node::Leaf(leaf) => match leaf.operator.on_blocked_path(&self.surroundings)? {
                OnBlockedPath::Ignore => Ok(()),
                OnBlockedPath::CannotCreate => Err(path_not_viable(format!(
                    "Cannot create field '{name}' in element {}",
                    trail.element_text(value)
                ))),
                OnBlockedPath::CannotTraverse => Err(path_not_viable(format!(
                    "Cannot use the part ({name}) of ({}) to traverse the element ({})",
                    leaf.path,
                    trail.element_text(value)
                ))),
            },
        }
    }

    /// Whether anything under an overlay would write to a place that does not exist.
    fn creates(&self, overlay: &Overlay<'a>) -> bool {
        match overlay {
            Overlay::One(node) => self.node_creates(node),
            Overlay::Many(nodes) => nodes.iter().any(|node| self.node_creates(node)),
        }
    }

    fn node_creates(&self, node: &Node) -> bool {
        match node {
            Node::Leaf(leaf) => leaf.operator.creates(&self.surroundings),
            Node::Fields(fields) => {
                fields.children.iter().any(|(_, child)| self.node_creates(child))
                    || fields.positional.as_deref().is_some_and(|child| self.node_creates(child))
            }
            // Array filters on nothing are an error, which `create` reports.
            Node::Elements(_) => true,
        }
    }
}

/// The children in their order; those of one name become one.
fn merged(mut children: Vec<Child<'_>>) -> Vec<Child<'_>> {
    children.sort_by(|a, b| compare_names(&a.name, &b.name));
    let mut merged: Vec<Child<'_>> = Vec::with_capacity(children.len());
    for child in children {
        match merged.last_mut() {
            Some(last) if last.name == child.name => last.overlay.extend(child.overlay),
            _ => merged.push(child),
        }
    }
    merged
}

impl<'a> Overlay<'a> {
    fn extend(&mut self, other: Overlay<'a>) {
        let mut nodes = std::mem::replace(self, Overlay::Many(Vec::new())).into_nodes();
        nodes.append(&mut other.into_nodes());
        *self = Overlay::Many(nodes);
    }

    fn into_nodes(self) -> Vec<&'a Node> {
        match self {
            Overlay::One(node) => vec![node],
            Overlay::Many(nodes) => nodes,
        }
    }
}

/// The place of a name among children in their order.
fn place_of(children: &[Child<'_>], name: &str) -> Option<usize> {
    if children.len() <= FEW_CHILDREN {
        return children.iter().position(|child| child.name == name);
    }
    children.binary_search_by(|child| compare_names(&child.name, name)).ok()
}

fn step<'s>(trail: Option<&'s Trail<'s>>, name: &'s str) -> Trail<'s> {
    match trail {
        Some(trail) => trail.field(name),
        None => Trail::top(name),
    }
}

/// Appends nulls until the array has `index` elements.
fn pad(writer: &mut ArrayWriter<'_>, length: usize, index: usize) -> Result<usize, QueryError> {
    if index.saturating_sub(length) > PADDING_MAX {
        return Err(QueryError::new(
            ErrorCode::CannotBackfillArray,
            format!("can't backfill more than {PADDING_MAX} elements"),
        ));
    }
    for _ in length..index {
        writer.push(RawValue::Null);
    }
    Ok(index.max(length))
}

/// A name as the index of an array element: digits only, and small enough for any array.
fn array_index(name: &str) -> Option<usize> {
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    name.parse::<u32>().ok().filter(|index| *index <= i32::MAX.unsigned_abs()).map(|index| index as usize)
}

/// How many documents and arrays lie inside one another under `value`.
fn nesting_of(value: RawValue<'_>) -> Result<usize, QueryError> {
    let document = match value {
        RawValue::Document(document) => document,
        RawValue::Array(array) => array.as_document(),
        _ => return Ok(0),
    };
    let mut deepest = 0;
    for element in document.iter() {
        deepest = deepest.max(nesting_of(element?.1)?);
    }
    Ok(deepest + 1)
}

fn check_nesting(trail: &Trail<'_>, below: usize) -> Result<(), QueryError> {
    if trail.depth() + below <= NESTING_MAX {
        return Ok(());
    }
    Err(QueryError::new(
        ErrorCode::Overflow,
        format!("Document exceeds maximum nesting depth of {NESTING_MAX}"),
    ))
}

fn conflict(trail: &Trail<'_>) -> QueryError {
    QueryError::new(
        ErrorCode::ConflictingUpdateOperators,
        format!("Update created a conflict at '{}'", trail.path()),
    )
}

fn too_large() -> QueryError {
    UpdateFault::DocumentTooLarge
        .error(format!("Resulting document after update is larger than {DOCUMENT_BYTES_MAX}"))
}

fn no_array_at(trail: &Trail<'_>) -> QueryError {
    bad_value(format!(
        "The path '{}' must exist in the document in order to apply array updates.",
        trail.path()
    ))
}

fn bad_value(message: String) -> QueryError {
    QueryError::new(ErrorCode::BadValue, message)
}

fn path_not_viable(message: String) -> QueryError {
    QueryError::new(ErrorCode::PathNotViable, message)
}
