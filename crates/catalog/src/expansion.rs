//! Expansion of paths through arrays: the values of several paths in one document, for the keys of an index
//! or a sort.
//!
//! # Terms
//! - *End*: the result of one path in one place of the document: a value, an empty array, or nothing.
//! - *Combination*: one end for each path. A document without arrays has one combination.
//!
//! # Rules (observed on MongoDB 6.0)
//! 1. An array on a path gives a combination for each of its elements. Paths through the same array (`a.b`
//!    and `a.c` through `a`) go through it together. Paths through two different arrays are refused:
//!    *parallel arrays*.
//! 2. An array at the end of a path gives its elements, but not the elements of an
//!    element: `[[1]]` gives `[1]`.
//! 3. An index behind an array (`a.0`) leads to that element, if it exists, whichever element the other paths
//!    are at. An array reached by an index at the end of a path is one value, unless it is empty. If an
//!    element of the array is a document with that number as a field name, the path is ambiguous, and the
//!    document is refused.
//! 4. Elements that are no documents have no fields. A path does not go through an array within an array.
//!
//! # Worked example
//! `{a: [{b: 1, c: 2}, {b: 3}], d: 9}` with the paths `a.b`, `a.c`, `d` has the combinations `(1, 2, 9)` and
//! `(3, nothing, 9)`.
//!
//! # Steps, for one level of expansion
//! 1. Follow each path through documents until it ends, leads nowhere, or meets an array.
//! 2. If no path met an array, the combination is complete.
//! 3. If all paths that met an array met the same, put each of its elements in its
//!    place, and go back to step 1.
//! 4. Otherwise the arrays are parallel.

use pando_document::{DocumentError, RawArray, RawDocument, RawValue};

/// The end of a path in one place.
#[derive(Clone, Copy, Debug)]
pub enum End<'d> {
    /// A value.
    Value(RawValue<'d>),
    /// An array without elements.
    EmptyArray,
    /// No value.
    Missing,
}

/// Why a document has no combinations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpansionError {
    /// Two paths go through different arrays.
    #[error("parallel arrays [{second}] [{first}]")]
    ParallelArrays {
        /// The field that one array stands in.
        first: String,
        /// The field of the other.
        second: String,
    },
    /// A number in a path is both an index into an array and a field of one of its documents.
    #[error(
        "Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), field: \
         '{field}'"
    )]
    AmbiguousField {
        /// The number.
        field: String,
    },
    /// The bytes are not a document.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

/// The end of one path, if it meets no array on its way.
pub fn end_without_arrays<'d>(
    document: &'d RawDocument,
    path: &str,
) -> Result<Option<End<'d>>, DocumentError> {
    let (mut document, mut rest) = (document, path);
    loop {
        let (name, beyond) = split(rest);
        match (document.get(name)?, beyond) {
            (Some(RawValue::Document(inner)), Some(beyond)) => (document, rest) = (inner, beyond),
            (Some(RawValue::Array(_)), _) => return Ok(None),
            (Some(value), None) => return Ok(Some(End::Value(value))),
            (_, _) => return Ok(Some(End::Missing)),
        }
    }
}

/// Gives every combination of the paths' ends to `emit`. Where a path goes through the elements of an array,
/// `multiply` gets the path's place and the component of the path that the array stands at.
///
/// `E` is the caller's error.
pub fn expand<'d, E: From<ExpansionError>>(
    document: &'d RawDocument,
    paths: &[&'d str],
    multiply: &mut dyn FnMut(usize, usize),
    emit: &mut dyn FnMut(&[End<'d>]) -> Result<(), E>,
) -> Result<(), E> {
    let walks = paths.iter().map(|path| Walk::Inside { document, rest: path }).collect();
    Expansion { paths, multiply, emit }.level(walks)
}

/// How far one path has been followed.
#[derive(Clone, Copy)]
enum Walk<'d> {
    /// Inside a document, with this much of the path to go.
    Inside {
        document: &'d RawDocument,
        rest: &'d str,
    },
    Before(Stop<'d>),
    Ended(End<'d>),
}

/// A path before an array.
#[derive(Clone, Copy)]
struct Stop<'d> {
    array: &'d RawArray,
    /// The path beyond the array; `None` if it ends here.
    rest: Option<&'d str>,
    reached: Reached,
    /// The name or index of the array.
    name: &'d str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reached {
    ByName,
    ByIndex,
}

/// The way of a path into each element of the array.
#[derive(Clone, Copy)]
enum Entry<'d> {
    /// The path has ended.
    Done(Walk<'d>),
    /// The path goes on the same way whatever the element is, unless the element has a field of this name.
    Fixed { walk: Walk<'d>, index: Option<&'d str> },
    /// The path goes on in the element.
    Through(Option<&'d str>),
}

struct Expansion<'c, 'd, E> {
    paths: &'c [&'d str],
    multiply: &'c mut dyn FnMut(usize, usize),
    emit: &'c mut dyn FnMut(&[End<'d>]) -> Result<(), E>,
}

impl<'d, E: From<ExpansionError>> Expansion<'_, 'd, E> {
    fn level(&mut self, mut walks: Vec<Walk<'d>>) -> Result<(), E> {
        for walk in &mut walks {
            *walk = follow(*walk).map_err(ExpansionError::from)?;
        }
        let Some(array) = common_array(&walks)? else {
            let ends: Vec<End<'d>> = walks.iter().map(|walk| walk.end()).collect();
            return (self.emit)(&ends);
        };
        let entries: Vec<Entry<'d>> =
            walks.iter().map(|walk| walk.entry()).collect::<Result<_, _>>().map_err(ExpansionError::from)?;
        for (at, entry) in entries.iter().enumerate() {
            if let Entry::Through(rest) = entry {
                (self.multiply)(at, last_component(self.paths[at], *rest));
            }
        }
        if array.is_empty() {
            return self.level(walks.into_iter().map(Walk::in_empty_array).collect());
        }
        let is_fixed = entries.iter().all(|entry| !matches!(entry, Entry::Through(_)));
        for (place, element) in array.iter().enumerate() {
            let element = element.map_err(ExpansionError::from)?;
            let entered: Vec<Walk<'d>> =
                entries.iter().map(|entry| entry.enter(element)).collect::<Result<_, _>>()?;
            // Where no path goes through the elements, each gives the same.
            if place == 0 || !is_fixed {
                self.level(entered)?;
            }
        }
        Ok(())
    }
}

impl<'d> Walk<'d> {
    fn end(self) -> End<'d> {
        match self {
            Walk::Ended(end) => end,
            Walk::Inside { .. } | Walk::Before(_) => {
                unreachable!("paths are followed to their ends before a combination is given")
            }
        }
    }

    fn entry(self) -> Result<Entry<'d>, DocumentError> {
        let Walk::Before(stop) = self else { return Ok(Entry::Done(self)) };
        let Some(rest) = stop.rest else {
            let whole = Walk::Ended(End::Value(RawValue::Array(stop.array)));
            return Ok(match stop.reached {
                Reached::ByIndex => Entry::Fixed { walk: whole, index: None },
                Reached::ByName => Entry::Through(None),
            });
        };
        let (index, beyond) = split(rest);
        if !index.starts_with(|first: char| first.is_ascii_digit()) {
            return Ok(Entry::Through(Some(rest)));
        }
        Ok(match stop.array.as_document().get(index)? {
            Some(element) => {
                Entry::Fixed { walk: step(element, beyond, index, Reached::ByIndex), index: Some(index) }
            }
            None => Entry::Through(Some(rest)),
        })
    }

    /// The end of a path that stands before an empty array.
    fn in_empty_array(self) -> Walk<'d> {
        match self {
            Walk::Before(Stop { rest: None, .. }) => Walk::Ended(End::EmptyArray),
            Walk::Before(_) => Walk::Ended(End::Missing),
            finished => finished,
        }
    }
}

impl<'d> Entry<'d> {
    /// Puts an element of the array in the place of the path.
    fn enter(self, element: RawValue<'d>) -> Result<Walk<'d>, ExpansionError> {
        match (self, element) {
            (Entry::Fixed { index: Some(index), .. }, RawValue::Document(document))
                if document.get(index)?.is_some() =>
            {
                Err(ExpansionError::AmbiguousField { field: index.to_owned() })
            }
            (Entry::Done(walk) | Entry::Fixed { walk, .. }, _) => Ok(walk),
            (Entry::Through(None), element) => Ok(Walk::Ended(End::Value(element))),
            (Entry::Through(Some(rest)), RawValue::Document(document)) => Ok(Walk::Inside { document, rest }),
            (Entry::Through(Some(_)), _) => Ok(Walk::Ended(End::Missing)),
        }
    }
}

/// The one array that paths stand before; an error if there are two, `None` if there is none.
fn common_array<'d>(walks: &[Walk<'d>]) -> Result<Option<&'d RawArray>, ExpansionError> {
    let mut common: Option<Stop<'d>> = None;
    for walk in walks {
        let Walk::Before(stop) = walk else { continue };
        match common {
            Some(have) if !std::ptr::eq(have.array, stop.array) => {
                return Err(ExpansionError::ParallelArrays {
                    first: have.name.to_owned(),
                    second: stop.name.to_owned(),
                });
            }
            _ => common = Some(*stop),
        }
    }
    Ok(common.map(|stop| stop.array))
}

/// Follows a path down through documents until it ends, leads nowhere or meets an array.
fn follow(mut walk: Walk<'_>) -> Result<Walk<'_>, DocumentError> {
    while let Walk::Inside { document, rest } = walk {
        let (name, beyond) = split(rest);
        walk = match document.get(name)? {
            Some(value) => step(value, beyond, name, Reached::ByName),
            None => Walk::Ended(End::Missing),
        };
    }
    Ok(walk)
}

fn step<'d>(value: RawValue<'d>, beyond: Option<&'d str>, name: &'d str, reached: Reached) -> Walk<'d> {
    match (value, beyond) {
        (RawValue::Document(document), Some(rest)) => Walk::Inside { document, rest },
        (RawValue::Array(array), rest) => Walk::Before(Stop { array, rest, reached, name }),
        (value, None) => Walk::Ended(End::Value(value)),
        (_, Some(_)) => Walk::Ended(End::Missing),
    }
}

/// The component of a path before the rest that is still to go.
fn last_component(path: &str, rest: Option<&str>) -> usize {
    let components = |path: &str| path.split('.').count();
    components(path) - rest.map_or(0, components) - 1
}

/// The first component of a path, and what follows it.
fn split(path: &str) -> (&str, Option<&str>) {
    match path.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (path, None),
    }
}
