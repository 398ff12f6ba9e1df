//! The tree of a projection, and carrying it out on bytes.
//!
//! A node says of some fields what becomes of them; the others are kept or dropped, as the *fallback* says.
//! Inclusion is a tree of kept fields that drops the rest; exclusion the reverse; `$addFields` keeps the rest
//! and computes some.
//!
//! 1. Walk the old document; write what is kept, enter what is nested.
//! 2. Where the rest is kept, a computed field takes the place of the old one. Else it comes after all kept
//!    fields, in the order in which the projection names them. A computed value that is missing leaves no
//!    field.
//! 3. Nested fields that compute something are made where the document lacks them.
//!
//! Through an array a nested node applies to each element, arrays in it included. An element that is no
//! document stays if the rest is kept, goes if not, and becomes a document where something is computed below.

use std::collections::HashMap;

use pando_document::{ArrayWriter, DocumentWriter, RawArray, RawDocument, RawDocumentBuf, RawValue};

use crate::error::QueryError;
use crate::expression::{Evaluated, Expression, Frame};
use crate::filter::Filter;
use crate::needs::Needs;

/// The rule for the fields that a node does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fallback {
    Keep,
    Drop,
}

/// A node: fields by name, in the order of the projection.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    children: Vec<(String, Child)>,
    /// The place of each child, once they are more than a few.
    places: HashMap<String, usize>,
    /// Whether anything below is computed.
    computes: bool,
}

/// So many names are found faster by comparison than by a table.
const FEW_NAMES: usize = 16;

/// The name of a path at which it meets another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Collision {
    /// How many names stand before it.
    pub(super) depth: usize,
}

/// The rule for one field.
#[derive(Clone, Debug)]
pub(super) enum Child {
    Keep,
    Drop,
    Nested(Fields),
    Computed(Computed),
}

/// A value that the old field does not have.
#[derive(Clone, Debug)]
pub(super) enum Computed {
    Expression(Expression),
    /// The first element of the array `name` for which the filter, which speaks of `name`, holds.
    ElementMatch {
        name: String,
        test: ElementFilter,
    },
}

/// The condition of a projection's `$elemMatch`: on elements that are documents, or on their values.
#[derive(Clone, Debug)]
pub(super) enum ElementFilter {
    Documents(Filter),
    /// The filter speaks of a field of this name.
    Values(Filter, &'static str),
}

impl Fields {
    /// The children in their order.
    pub(super) fn children(&self) -> &[(String, Child)] {
        &self.children
    }

    /// The child of a name.
    pub(super) fn child(&self, name: &str) -> Option<&Child> {
        self.place(name).map(|at| &self.children[at].1)
    }

    /// Whether there is a child of a name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.place(name).is_some()
    }

    /// Puts a child at the end of a path. Paths may not lie on one another.
    pub(super) fn insert(&mut self, path: &[String], child: Child) -> Result<(), Collision> {
        let computes = matches!(child, Child::Computed(_));
        let (last, way) = path.split_last().expect("a path has at least one name");
        let mut fields = self;
        for (depth, name) in way.iter().enumerate() {
            fields.computes |= computes;
            let at =
                fields.place(name).unwrap_or_else(|| fields.push(name, Child::Nested(Fields::default())));
            match &mut fields.children[at].1 {
                Child::Nested(below) => fields = below,
                Child::Keep | Child::Drop | Child::Computed(_) => return Err(Collision { depth }),
            }
        }
        fields.computes |= computes;
        if fields.has(last) {
            return Err(Collision { depth: way.len() });
        }
        fields.push(last, child);
        Ok(())
    }

    /// Fails where a field of its own stands at a path or above it, so that no fields can be put below.
    pub(super) fn check_below(&self, path: &[String]) -> Result<(), Collision> {
        let mut fields = self;
        for (depth, name) in path.iter().enumerate() {
            let Some(at) = fields.place(name) else { return Ok(()) };
            match &fields.children[at].1 {
                Child::Nested(below) => fields = below,
                Child::Keep | Child::Drop | Child::Computed(_) => return Err(Collision { depth }),
            }
        }
        Ok(())
    }

    /// Puts a child before all others.
    pub(super) fn prepend(&mut self, name: &str, child: Child) {
        self.children.insert(0, (name.to_owned(), child));
        self.places.clear();
        self.fill_places();
    }

    fn push(&mut self, name: &str, child: Child) -> usize {
        let place = self.children.len();
        self.children.push((name.to_owned(), child));
        if !self.places.is_empty() {
            self.places.insert(name.to_owned(), place);
        } else {
            self.fill_places();
        }
        place
    }

    fn fill_places(&mut self) {
        if self.children.len() > FEW_NAMES {
            let names = self.children.iter().enumerate();
            self.places = names.map(|(place, (name, _))| (name.clone(), place)).collect();
        }
    }

    fn place(&self, name: &str) -> Option<usize> {
        match self.places.is_empty() {
            true => self.children.iter().position(|(known, _)| known == name),
            false => self.places.get(name).copied(),
        }
    }

    /// The place of the child whose name has these bytes.
    pub(super) fn place_of(&self, name: &[u8]) -> Option<usize> {
        match self.places.is_empty() {
            true => self.children.iter().position(|(known, _)| known.as_bytes() == name),
            false => std::str::from_utf8(name).ok().and_then(|name| self.place(name)),
        }
    }

    /// Changes every expression.
    pub(super) fn fold(
        &mut self,
        change: &dyn Fn(Expression) -> Result<Expression, QueryError>,
    ) -> Result<(), QueryError> {
        for (_, child) in &mut self.children {
            match child {
                Child::Nested(fields) => fields.fold(change)?,
                Child::Computed(Computed::Expression(expression)) => {
                    *expression = change(expression.clone())?;
                }
                Child::Computed(Computed::ElementMatch { .. }) | Child::Keep | Child::Drop => {}
            }
        }
        Ok(())
    }

    /// Whether anything below is computed.
    pub(super) fn computes(&self) -> bool {
        self.computes
    }

    /// Whether every child is kept whole: a projection of plain top-level fields.
    pub(super) fn is_plain(&self) -> bool {
        self.children.iter().all(|(_, child)| matches!(child, Child::Keep))
    }

    /// Whether every child is a computed field at the top, and they are few.
    pub(super) fn is_computed_at_top(&self) -> bool {
        self.children.len() <= FEW_NAMES
            && self.children.iter().all(|(_, child)| matches!(child, Child::Computed(_)))
    }

    /// Writes a document's fields with values in the places of the children, of which each is
    /// [computed at the top](Fields::is_computed_at_top): as [`apply`](Fields::apply) does where the rest is
    /// kept.
    pub(super) fn place_at_top(
        &self,
        document: &RawDocument,
        values: &[Evaluated<'_>],
        writer: &mut DocumentWriter<'_>,
    ) -> Result<(), QueryError> {
        let bytes = document.as_bytes();
        let mut elements = document.iter();
        let mut placed = 0_u64;
        // Fields without a value of their own are copied in runs.
        let mut run_start = elements.offset();
        loop {
            let start = elements.offset();
            let Some(name) = elements.step().transpose()? else { break };
            let Some(at) = self.place_of(name) else { continue };
            writer.append_raw_fields(&bytes[run_start..start]);
            run_start = elements.offset();
            if placed & bit_of(at) == 0 {
                append_present(&self.children[at].0, values.get(at), writer);
            }
            placed |= bit_of(at);
        }
        writer.append_raw_fields(&bytes[run_start..bytes.len() - 1]);
        for (at, (name, _)) in self.children.iter().enumerate() {
            if placed & bit_of(at) == 0 {
                append_present(name, values.get(at), writer);
            }
        }
        Ok(())
    }

    /// Adds the fields that are kept or computed from; `prefix` is the way down to this node, with its dot.
    pub(super) fn add_needs(&self, prefix: &str, needs: &mut Needs) {
        for (name, child) in &self.children {
            match child {
                Child::Keep => needs.add(&format!("{prefix}{name}")),
                Child::Drop => {}
                // Below an array or a scalar a computed field makes documents of the elements.
                Child::Nested(fields) if fields.computes() => needs.add_everything(),
                Child::Nested(fields) => fields.add_needs(&format!("{prefix}{name}."), needs),
                Child::Computed(Computed::Expression(expression)) => expression.add_needs(needs),
                Child::Computed(Computed::ElementMatch { .. }) => needs.add_everything(),
            }
        }
    }

    /// Writes the projected document's fields.
    pub(super) fn apply<'r>(
        &'r self,
        document: &RawDocument,
        frame: &mut Frame<'r>,
        fallback: Fallback,
        writer: &mut DocumentWriter<'_>,
    ) -> Result<(), QueryError> {
        let mut done = vec![false; self.children.len()];
        let bytes = document.as_bytes();
        let mut elements = document.iter();
        loop {
            let start = elements.offset();
            let Some(element) = elements.next() else { break };
            let (name, value) = element?;
            let Some(at) = self.place(name) else {
                if fallback == Fallback::Keep {
                    writer.append_raw_fields(&bytes[start..elements.offset()]);
                }
                continue;
            };
            match &self.children[at].1 {
                Child::Keep => writer.append_raw_fields(&bytes[start..elements.offset()]),
                Child::Drop => {}
                Child::Nested(fields) => {
                    fields.apply_to_field(name, value, frame, fallback, writer)?;
                    done[at] = true;
                }
                Child::Computed(computed) if fallback == Fallback::Keep => {
                    if !done[at] {
                        computed.write(name, frame, writer)?;
                    }
                    done[at] = true;
                }
                // Comes after the kept fields.
                Child::Computed(_) => {}
            }
        }
        for ((name, child), _) in self.children.iter().zip(done).filter(|(_, done)| !done) {
            match child {
                Child::Computed(computed) => computed.write(name, frame, writer)?,
                Child::Nested(fields) if fields.computes() => {
                    let mut nested = writer.document(name);
                    fields.apply(RawDocument::empty(), frame, fallback, &mut nested)?;
                    nested.finish();
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn apply_to_field<'r>(
        &'r self,
        name: &str,
        value: RawValue<'_>,
        frame: &mut Frame<'r>,
        fallback: Fallback,
        writer: &mut DocumentWriter<'_>,
    ) -> Result<(), QueryError> {
        match value {
            RawValue::Document(document) => {
                let mut nested = writer.document(name);
                self.apply(document, frame, fallback, &mut nested)?;
                nested.finish();
            }
            RawValue::Array(array) => {
                let mut nested = writer.array(name);
                self.apply_to_array(array, frame, fallback, &mut nested)?;
                nested.finish();
            }
            _ if self.computes() => {
                let mut nested = writer.document(name);
                self.apply(RawDocument::empty(), frame, fallback, &mut nested)?;
                nested.finish();
            }
            scalar if fallback == Fallback::Keep => writer.append(name, scalar),
            _ => {}
        }
        Ok(())
    }

    fn apply_to_array<'r>(
        &'r self,
        array: &RawArray,
        frame: &mut Frame<'r>,
        fallback: Fallback,
        writer: &mut ArrayWriter<'_>,
    ) -> Result<(), QueryError> {
        for element in array.iter() {
            match element? {
                RawValue::Document(document) => {
                    let mut nested = writer.document();
                    self.apply(document, frame, fallback, &mut nested)?;
                    nested.finish();
                }
                RawValue::Array(inner) => {
                    let mut nested = writer.array();
                    self.apply_to_array(inner, frame, fallback, &mut nested)?;
                    nested.finish();
                }
                _ if self.computes() => {
                    let mut nested = writer.document();
                    self.apply(RawDocument::empty(), frame, fallback, &mut nested)?;
                    nested.finish();
                }
                scalar if fallback == Fallback::Keep => writer.push(scalar),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The bit of one of [few](FEW_NAMES) children.
fn bit_of(child: usize) -> u64 {
    1 << child
}

/// Appends a field, unless its value is missing.
fn append_present(name: &str, value: Option<&Evaluated<'_>>, writer: &mut DocumentWriter<'_>) {
    if let Some(value) = value.and_then(Evaluated::raw) {
        writer.append(name, value);
    }
}

impl Computed {
    fn write<'r>(
        &'r self,
        name: &str,
        frame: &mut Frame<'r>,
        writer: &mut DocumentWriter<'_>,
    ) -> Result<(), QueryError> {
        if let Some(value) = self.evaluate(frame)?.raw() {
            writer.append(name, value);
        }
        Ok(())
    }

    fn evaluate<'a>(&'a self, frame: &mut Frame<'a>) -> Result<Evaluated<'a>, QueryError> {
        match self {
            Computed::Expression(expression) => expression.run(frame),
            Computed::ElementMatch { name, test } => {
                let Some(RawValue::Array(array)) = frame.field(frame.root(), name)? else {
                    return Ok(Evaluated::Missing);
                };
                for element in array.iter() {
                    let element = element?;
                    if test.accepts(element)? {
                        let found = crate::array_build::build_array([element]);
                        return Ok(Evaluated::Array(found));
                    }
                }
                Ok(Evaluated::Missing)
            }
        }
    }
}

impl ElementFilter {
    fn accepts(&self, element: RawValue<'_>) -> Result<bool, QueryError> {
        match (self, element) {
            (ElementFilter::Documents(filter), RawValue::Document(document)) => filter.matches(document),
            (ElementFilter::Documents(filter), RawValue::Array(array)) => filter.matches(array.as_document()),
            (ElementFilter::Documents(_), _) => Ok(false),
            (ElementFilter::Values(filter, name), element) => {
                let mut bytes = Vec::with_capacity(64);
                let mut writer = DocumentWriter::begin(&mut bytes);
                writer.append(name, element);
                writer.finish();
                filter.matches(&RawDocumentBuf::from_vec(bytes)?)
            }
        }
    }
}
