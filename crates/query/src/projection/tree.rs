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

use pando_document::{ArrayWriter, DocumentWriter, RawArray, RawDocument, RawDocumentBuf, RawValue};

use crate::error::QueryError;
use crate::expression::{Evaluated, Expression};
use crate::filter::Filter;

/// The rule for the fields that a node does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fallback {
    Keep,
    Drop,
}

/// A node: fields by name, in the order of the projection.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    pub(super) children: Vec<(String, Child)>,
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
    /// The child of a name.
    pub(super) fn get(&self, name: &str) -> Option<&Child> {
        self.children.iter().find(|(known, _)| known == name).map(|(_, child)| child)
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
        self.children.iter().any(|(_, child)| match child {
            Child::Computed(_) => true,
            Child::Nested(fields) => fields.computes(),
            Child::Keep | Child::Drop => false,
        })
    }

    /// Whether every child is kept whole: a projection of plain top-level fields.
    pub(super) fn is_plain(&self) -> bool {
        self.children.iter().all(|(_, child)| matches!(child, Child::Keep))
    }

    /// Writes the projected document's fields.
    pub(super) fn apply(
        &self,
        document: &RawDocument,
        root: &RawDocument,
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
            let Some(at) = self.children.iter().position(|(known, _)| known == name) else {
                if fallback == Fallback::Keep {
                    writer.append_raw_fields(&bytes[start..elements.offset()]);
                }
                continue;
            };
            match &self.children[at].1 {
                Child::Keep => writer.append_raw_fields(&bytes[start..elements.offset()]),
                Child::Drop => {}
                Child::Nested(fields) => {
                    fields.apply_to_field(name, value, root, fallback, writer)?;
                    done[at] = true;
                }
                Child::Computed(computed) if fallback == Fallback::Keep => {
                    if !done[at] {
                        computed.write(name, root, writer)?;
                    }
                    done[at] = true;
                }
                // Comes after the kept fields.
                Child::Computed(_) => {}
            }
        }
        for ((name, child), _) in self.children.iter().zip(done).filter(|(_, done)| !done) {
            match child {
                Child::Computed(computed) => computed.write(name, root, writer)?,
                Child::Nested(fields) if fields.computes() => {
                    let mut nested = writer.document(name);
                    fields.apply(RawDocument::empty(), root, fallback, &mut nested)?;
                    nested.finish();
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn apply_to_field(
        &self,
        name: &str,
        value: RawValue<'_>,
        root: &RawDocument,
        fallback: Fallback,
        writer: &mut DocumentWriter<'_>,
    ) -> Result<(), QueryError> {
        match value {
            RawValue::Document(document) => {
                let mut nested = writer.document(name);
                self.apply(document, root, fallback, &mut nested)?;
                nested.finish();
            }
            RawValue::Array(array) => {
                let mut nested = writer.array(name);
                self.apply_to_array(array, root, fallback, &mut nested)?;
                nested.finish();
            }
            _ if self.computes() => {
                let mut nested = writer.document(name);
                self.apply(RawDocument::empty(), root, fallback, &mut nested)?;
                nested.finish();
            }
            scalar if fallback == Fallback::Keep => writer.append(name, scalar),
            _ => {}
        }
        Ok(())
    }

    fn apply_to_array(
        &self,
        array: &RawArray,
        root: &RawDocument,
        fallback: Fallback,
        writer: &mut ArrayWriter<'_>,
    ) -> Result<(), QueryError> {
        for element in array.iter() {
            match element? {
                RawValue::Document(document) => {
                    let mut nested = writer.document();
                    self.apply(document, root, fallback, &mut nested)?;
                    nested.finish();
                }
                RawValue::Array(inner) => {
                    let mut nested = writer.array();
                    self.apply_to_array(inner, root, fallback, &mut nested)?;
                    nested.finish();
                }
                _ if self.computes() => {
                    let mut nested = writer.document();
                    self.apply(RawDocument::empty(), root, fallback, &mut nested)?;
                    nested.finish();
                }
                scalar if fallback == Fallback::Keep => writer.push(scalar),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Computed {
    fn write(
        &self,
        name: &str,
        root: &RawDocument,
        writer: &mut DocumentWriter<'_>,
    ) -> Result<(), QueryError> {
        if let Some(value) = self.evaluate(root)?.raw() {
            writer.append(name, value);
        }
        Ok(())
    }

    fn evaluate<'a>(&'a self, root: &'a RawDocument) -> Result<Evaluated<'a>, QueryError> {
        match self {
            Computed::Expression(expression) => expression.evaluate(root),
            Computed::ElementMatch { name, test } => {
                let Some(RawValue::Array(array)) = root.get(name)? else { return Ok(Evaluated::Missing) };
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
