//! The last step of a projection of `find`: arrays of the included document are cut by `$slice` and by the
//! positional `$`.

use pando_document::{ArrayWriter, DocumentWriter, RawArray, RawDocument, RawValue};

use super::fault::ProjectionFault;
use crate::error::QueryError;

/// A cut at the end of a path.
#[derive(Clone, Debug)]
pub(super) struct Finish {
    pub(super) path: Vec<String>,
    pub(super) cut: Cut,
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

impl Finish {
    /// Writes a document with the array at the path cut.
    pub(super) fn apply(
        &self,
        document: &RawDocument,
        matched_index: Option<usize>,
        writer: &mut DocumentWriter<'_>,
    ) -> Result<(), QueryError> {
        self.walk(document, &self.path, matched_index, writer)
    }

    fn walk(
        &self,
        document: &RawDocument,
        path: &[String],
        matched_index: Option<usize>,
        writer: &mut DocumentWriter<'_>,
    ) -> Result<(), QueryError> {
        for element in document.iter() {
            let (name, value) = element?;
            let below = match path {
                [first, below @ ..] if first == name => below,
                _ => {
                    writer.append(name, value);
                    continue;
                }
            };
            match value {
                RawValue::Document(nested) if !below.is_empty() => {
                    let mut inner = writer.document(name);
                    self.walk(nested, below, matched_index, &mut inner)?;
                    inner.finish();
                }
                RawValue::Array(array) if below.is_empty() || self.cut == Cut::Positional => {
                    let mut inner = writer.array(name);
                    self.cut(array, matched_index, &mut inner)?;
                    inner.finish();
                }
                RawValue::Array(array) => {
                    let mut inner = writer.array(name);
                    self.walk_elements(array, below, matched_index, &mut inner)?;
                    inner.finish();
                }
                other => writer.append(name, other),
            }
        }
        Ok(())
    }

    /// `$slice` on a path through an array cuts the array in each of its elements.
    fn walk_elements(
        &self,
        array: &RawArray,
        path: &[String],
        matched_index: Option<usize>,
        writer: &mut ArrayWriter<'_>,
    ) -> Result<(), QueryError> {
        for element in array.iter() {
            match element? {
                RawValue::Document(nested) => {
                    let mut inner = writer.document();
                    self.walk(nested, path, matched_index, &mut inner)?;
                    inner.finish();
                }
                other => writer.push(other),
            }
        }
        Ok(())
    }

    fn cut(
        &self,
        array: &RawArray,
        matched_index: Option<usize>,
        writer: &mut ArrayWriter<'_>,
    ) -> Result<(), QueryError> {
        let length = array.iter().count();
        let (skip, take) = match self.cut {
            Cut::Limit(limit) if limit >= 0 => (0, clamp(limit)),
            Cut::Limit(limit) => (length.saturating_sub(clamp(limit)), usize::MAX),
            Cut::Window(skip, limit) if skip >= 0 => (clamp(skip), clamp(limit)),
            Cut::Window(skip, limit) => (length.saturating_sub(clamp(skip)), clamp(limit)),
            Cut::Positional => (position(matched_index, length)?, 1),
        };
        for element in array.iter().skip(skip).take(take) {
            writer.push(element?);
        }
        Ok(())
    }
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
