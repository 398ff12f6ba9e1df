//! The last step of a projection of `find`: arrays of the included document are cut by `$slice` and by the
//! positional `$`.

use std::collections::HashMap;

use pando_document::{ArrayWriter, DocumentError, DocumentWriter, RawArray, RawDocument, RawValue};

use super::fault::ProjectionFault;
use crate::error::QueryError;

/// The cuts of a projection by their paths, none of which lies on another. One pass carries all of them out.
#[derive(Clone, Debug, Default)]
pub(super) struct Finish {
    by_name: HashMap<String, Step>,
    /// Whether one of the cuts is positional.
    has_positional: bool,
}

/// A name of a path.
#[derive(Clone, Debug)]
enum Step {
    /// The path ends.
    Cut(Cut),
    /// It goes on.
    Through(Finish),
}

/// Which elements stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// `$slice: limit`; negative counts from the end.
    Limit(i64),
    /// `$slice: [skip, limit]`; a negative skip counts from the end.
    Window(i64, i64),
    /// `path.$`: the element by which the filter matched, of the first array on the path.
    Positional,
}

/// The positional cut of a walk.
#[derive(Clone, Copy)]
enum Positional {
    /// No array was met yet: the first is cut to the element of this index.
    Ahead(Option<usize>),
    /// An array around this place was cut.
    Done,
}

impl Finish {
    /// Adds a cut at the end of a path.
    pub(super) fn insert(&mut self, path: &[String], cut: Cut) {
        self.has_positional |= cut == Cut::Positional;
        match path {
            [] => unreachable!("a path has at least one name"),
            [last] => {
                self.by_name.insert(last.clone(), Step::Cut(cut));
            }
            [name, below @ ..] => {
                let step =
                    self.by_name.entry(name.clone()).or_insert_with(|| Step::Through(Finish::default()));
                match step {
                    Step::Through(finish) => finish.insert(below, cut),
                    Step::Cut(_) => unreachable!("the parser refuses a path below another"),
                }
            }
        }
    }

    /// Whether there are no cuts.
    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Whether one of the cuts is positional.
    pub(super) fn has_positional(&self) -> bool {
        self.has_positional
    }

    /// Writes a document with the arrays at the paths cut.
    pub(super) fn apply(
        &self,
        document: &RawDocument,
        matched_index: Option<usize>,
        writer: &mut DocumentWriter<'_>,
    ) -> Result<(), QueryError> {
        self.walk(document, Positional::Ahead(matched_index), writer)
    }

    fn walk(
        &self,
        document: &RawDocument,
        positional: Positional,
        writer: &mut DocumentWriter<'_>,
    ) -> Result<(), QueryError> {
        for element in document.iter() {
            let (name, value) = element?;
            match (self.by_name.get(name), value) {
                (Some(Step::Cut(cut)), RawValue::Array(array)) => {
                    let mut inner = writer.array(name);
                    for element in kept(*cut, array, positional)? {
                        inner.push(element?);
                    }
                    inner.finish();
                }
                (Some(Step::Through(below)), RawValue::Document(nested)) => {
                    let mut inner = writer.document(name);
                    below.walk(nested, positional, &mut inner)?;
                    inner.finish();
                }
                (Some(Step::Through(below)), RawValue::Array(array)) => {
                    let mut inner = writer.array(name);
                    below.walk_elements(array, positional, &mut inner)?;
                    inner.finish();
                }
                (_, other) => writer.append(name, other),
            }
        }
        Ok(())
    }

    /// `$slice` on a path through an array cuts the array in each of its elements; a positional cut leaves
    /// one of them.
    fn walk_elements(
        &self,
        array: &RawArray,
        positional: Positional,
        writer: &mut ArrayWriter<'_>,
    ) -> Result<(), QueryError> {
        let (elements, below) = match positional {
            Positional::Ahead(_) if self.has_positional => {
                (kept(Cut::Positional, array, positional)?, Positional::Done)
            }
            other => (kept(Cut::Limit(i64::MAX), array, positional)?, other),
        };
        for element in elements {
            match element? {
                RawValue::Document(nested) => {
                    let mut inner = writer.document();
                    self.walk(nested, below, &mut inner)?;
                    inner.finish();
                }
                other => writer.push(other),
            }
        }
        Ok(())
    }
}

/// The elements that a cut leaves.
fn kept(
    cut: Cut,
    array: &RawArray,
    positional: Positional,
) -> Result<impl Iterator<Item = Result<RawValue<'_>, DocumentError>>, QueryError> {
    let length = array.iter().count();
    let (skip, take) = match (cut, positional) {
        (Cut::Limit(limit), _) if limit >= 0 => (0, clamp(limit)),
        (Cut::Limit(limit), _) => (length.saturating_sub(clamp(limit)), usize::MAX),
        (Cut::Window(skip, limit), _) if skip >= 0 => (clamp(skip), clamp(limit)),
        (Cut::Window(skip, limit), _) => (length.saturating_sub(clamp(skip)), clamp(limit)),
        (Cut::Positional, Positional::Ahead(index)) => (position(index, length)?, 1),
        (Cut::Positional, Positional::Done) => (0, usize::MAX),
    };
    Ok(array.iter().skip(skip).take(take))
}

fn position(matched_index: Option<usize>, length: usize) -> Result<usize, QueryError> {
    match matched_index {
        None => Err(ProjectionFault::PositionalWithoutMatch
            .error("positional operator '.$' couldn't find a matching element in the array")),
        Some(index) if index >= length => {
            Err(ProjectionFault::PositionalMismatch.error("positional operator '.$' element mismatch"))
        }
        Some(index) => Ok(index),
    }
}

fn clamp(count: i64) -> usize {
    usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX)
}
