//! Dotted paths, followed through raw documents with MongoDB's rules for arrays.
//!
//! # Terms
//! - *Component*: the text between two dots. Any text is a path, the empty one too.
//! - *Leaf*: the value at the end of the path in one place of the document; `None` where the path leads
//!   nowhere.
//! - *Outermost index*: the place in the first array that the path went through, which the positional `$` of
//!   updates and projections stands for.
//!
//! # Rules (observed on MongoDB 6.0)
//! 1. Through a document, a component is a field name.
//! 2. Through an array, the rest of the path is tried on each element that is a document. An element that is
//!    itself an array is not unwound again.
//! 3. A component that is a number is besides an index into the array. That element is taken, and the rest of
//!    the path goes on inside it, be it a document or an array.
//! 4. A path that ends at an array gives each element and then the array itself ([`Leaves::Unwound`]), or the
//!    array alone ([`Leaves::Whole`]). An element reached by index at the end of the path is given as it is.
//! 5. A path that meets a scalar or a missing field before its end leads nowhere: one missing leaf. But an
//!    array's scalar elements give no leaf at all.
//!
//! # Cost
//! A walk allocates no memory. Each visit walks the document's fields up to the ones it needs.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use pando_document::{RawArray, RawDocument, RawValue};

use crate::QueryError;

/// Whether it is a field of a reference to a document (a DBRef): the only names with a `$` that paths may
/// have.
pub fn is_reference_name(name: &str) -> bool {
    matches!(name, "$id" | "$ref" | "$db")
}
use crate::field_tables::{Direct, FieldSource};

/// One component of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Component {
    start: u32,
    end: u32,
    /// The component as an array index, where it is written as one.
    index: Option<u32>,
}

/// A dotted path, taken apart once. Copies share it.
#[derive(Clone, Debug)]
pub struct Path {
    text: Arc<str>,
    components: Arc<[Component]>,
}

/// Paths are what their texts are.
impl PartialEq for Path {
    fn eq(&self, other: &Path) -> bool {
        Arc::ptr_eq(&self.text, &other.text) || self.text == other.text
    }
}

impl Eq for Path {}

impl Hash for Path {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl Borrow<str> for Path {
    fn borrow(&self) -> &str {
        &self.text
    }
}

/// The leaves of a path that ends at an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// Each element, then the array itself.
    Unwound,
    /// The array itself.
    Whole,
}

/// One leaf.
#[derive(Clone, Copy, Debug)]
pub struct Leaf<'d> {
    /// The value, or `None` where the path leads nowhere.
    pub value: Option<RawValue<'d>>,
    /// Where in the first array of the path this leaf was found.
    pub outermost_index: Option<usize>,
}

impl Path {
    /// The path that a text spells. Every text spells one.
    pub fn new(text: &str) -> Path {
        let mut start = 0;
        let components = text
            .split('.')
            .map(|part| {
                let component = Component {
                    start: offset(start),
                    end: offset(start + part.len()),
                    index: index_of(part),
                };
                start += part.len() + 1;
                component
            })
            .collect();
        Path { text: text.into(), components }
    }

    /// The path as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Components, at least 1.
    pub fn len(&self) -> usize {
        self.components.len()
    }

    /// Never: the empty text is one empty component.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The first component.
    pub fn first(&self) -> &str {
        self.component(0)
    }

    /// The component at a place below [`len`](Path::len).
    pub fn component(&self, at: usize) -> &str {
        let Component { start, end, .. } = self.components[at];
        &self.text[start as usize..end as usize]
    }

    /// Whether some component could be an array index.
    pub fn has_index(&self) -> bool {
        self.components.iter().any(|component| component.index.is_some())
    }

    /// Whether `test` holds for any leaf of this path. Stops at the first.
    pub fn any<'d, F>(
        &self,
        document: &'d RawDocument,
        leaves: Leaves,
        test: &mut F,
    ) -> Result<bool, QueryError>
    where
        F: FnMut(Leaf<'d>) -> Result<bool, QueryError>,
    {
        self.any_in(document, leaves, Direct, test)
    }

    /// The same with fields from another source than the documents.
    pub(crate) fn any_in<'d, F>(
        &self,
        document: &'d RawDocument,
        leaves: Leaves,
        fields: impl FieldSource<'d>,
        test: &mut F,
    ) -> Result<bool, QueryError>
    where
        F: FnMut(Leaf<'d>) -> Result<bool, QueryError>,
    {
        Walk { path: self, leaves, fields, outermost_index: None }.through_document(document, 0, test)
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

fn offset(at: usize) -> u32 {
    u32::try_from(at).expect("a field name is part of a document of at most 48 MB")
}

/// The number that a component spells without sign or leading zero.
pub(crate) fn index_of(component: &str) -> Option<u32> {
    let canonical = component == "0" || component.starts_with(|first: char| matches!(first, '1'..='9'));
    if canonical && component.bytes().all(|byte| byte.is_ascii_digit()) {
        component.parse().ok()
    } else {
        None
    }
}

/// A walk in progress. Recursion goes one level down in the document for each call, so
/// valid documents bound it.
#[derive(Clone, Copy)]
struct Walk<'p, S> {
    path: &'p Path,
    leaves: Leaves,
    fields: S,
    outermost_index: Option<usize>,
}

impl<'p, 'd, S: FieldSource<'d>> Walk<'p, S> {
    /// Follows the components from `at` on inside a document.
    fn through_document<F>(
        self,
        document: &'d RawDocument,
        at: usize,
        test: &mut F,
    ) -> Result<bool, QueryError>
    where
        F: FnMut(Leaf<'d>) -> Result<bool, QueryError>,
    {
        let value = self.fields.field(document, self.path.component(at))?;
        if at + 1 == self.path.len() {
            return self.end_at(value, test);
        }
        match value {
            Some(RawValue::Document(inner)) => self.through_document(inner, at + 1, test),
            Some(RawValue::Array(array)) => self.through_array(array, at + 1, test),
            _ => test(self.leaf(None)),
        }
    }

    /// Follows the components from `at` on inside an array: rules 2 and 3.
    fn through_array<F>(self, array: &'d RawArray, at: usize, test: &mut F) -> Result<bool, QueryError>
    where
        F: FnMut(Leaf<'d>) -> Result<bool, QueryError>,
    {
        if at + 1 == self.path.len() && self.path.component(at).is_empty() {
            // `a.` over an array is the array itself.
            return self.end_at(Some(RawValue::Array(array)), test);
        }
        let index = self.path.components[at].index.map(|index| index as usize);
        for (place, element) in array.iter().enumerate() {
            let element = element?;
            let walk = self.inside(place);
            if let RawValue::Document(inner) = element
                && walk.through_document(inner, at, test)?
            {
                return Ok(true);
            }
            if index != Some(place) {
                continue;
            }
            let found = match element {
                _ if at + 1 == self.path.len() => test(walk.leaf(Some(element)))?,
                RawValue::Document(inner) => walk.through_document(inner, at + 1, test)?,
                RawValue::Array(inner) => walk.through_array(inner, at + 1, test)?,
                _ => false,
            };
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Gives the leaf or leaves at the end of the path: rule 4.
    fn end_at<F>(self, value: Option<RawValue<'d>>, test: &mut F) -> Result<bool, QueryError>
    where
        F: FnMut(Leaf<'d>) -> Result<bool, QueryError>,
    {
        if let (Some(RawValue::Array(array)), Leaves::Unwound) = (value, self.leaves) {
            for (place, element) in array.iter().enumerate() {
                if test(self.inside(place).leaf(Some(element?)))? {
                    return Ok(true);
                }
            }
        }
        test(self.leaf(value))
    }

    fn inside(self, place: usize) -> Walk<'p, S> {
        Walk { outermost_index: self.outermost_index.or(Some(place)), ..self }
    }

    fn leaf(self, value: Option<RawValue<'d>>) -> Leaf<'d> {
        Leaf { value, outermost_index: self.outermost_index }
    }
}

#[cfg(test)]
mod tests {
    use pando_document::doc;

    use super::*;

    /// The leaves as text, in the order of the walk.
    fn leaves_of(document: &RawDocument, path: &str, leaves: Leaves) -> Vec<String> {
        let mut seen = Vec::new();
        let found = Path::new(path)
            .any(document, leaves, &mut |leaf| {
                seen.push(leaf.value.map_or("missing".to_owned(), crate::shell_text::value_text));
                Ok(false)
            })
            .unwrap();
        assert!(!found);
        seen
    }

    #[test]
    fn arrays_on_the_way_are_gone_through_once() {
        let document = doc! { "a": [{ "b": 1 }, { "b": [2, 3] }, 4, [{ "b": 5 }]] }.to_raw();
        assert_eq!(leaves_of(&document, "a.b", Leaves::Unwound), ["1", "2", "3", "[ 2, 3 ]"]);
        assert_eq!(leaves_of(&document, "a.b", Leaves::Whole), ["1", "[ 2, 3 ]"]);
    }

    #[test]
    fn numbers_are_indexes_into_arrays_and_names_in_documents() {
        let document = doc! { "a": [{ "0": 9 }, [{ "b": 5 }]] }.to_raw();
        assert_eq!(leaves_of(&document, "a.0", Leaves::Unwound), ["9", "{ 0: 9 }"]);
        assert_eq!(leaves_of(&document, "a.1.b", Leaves::Unwound), ["missing", "5"]);
        assert_eq!(leaves_of(&document, "a.01", Leaves::Unwound), ["missing"]);
    }

    #[test]
    fn a_path_that_meets_a_scalar_leads_nowhere_but_scalar_elements_give_no_leaf() {
        let document = doc! { "s": 1, "a": [1, 2], "e": [] }.to_raw();
        assert_eq!(leaves_of(&document, "s.b", Leaves::Unwound), ["missing"]);
        assert_eq!(leaves_of(&document, "none", Leaves::Unwound), ["missing"]);
        assert!(leaves_of(&document, "a.b", Leaves::Unwound).is_empty());
        assert!(leaves_of(&document, "e.b", Leaves::Unwound).is_empty());
        assert_eq!(leaves_of(&document, "e", Leaves::Unwound), ["[]"]);
    }

    #[test]
    fn the_outermost_index_is_remembered() {
        let document = doc! { "a": [{ "b": [7, 8] }, { "b": [9] }] }.to_raw();
        let mut at = None;
        let found = Path::new("a.b").any(&document, Leaves::Unwound, &mut |leaf| {
            at = leaf.outermost_index;
            Ok(leaf.value.and_then(|value| value.as_i64_exact()) == Some(9))
        });
        assert!(found.unwrap());
        assert_eq!(at, Some(1));
    }
}
