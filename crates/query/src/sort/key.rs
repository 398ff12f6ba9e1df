//! The sort key of a document.
//!
//! # Rules (observed on MongoDB 6.0)
//! - A missing field sorts as null, an empty array before null.
//! - An array sorts by its least element, descending by its greatest. It is unwound once: `[[1]]` sorts as the array `[1]`.
//! - Where several paths go through one array they go through it together, and the least key of all elements counts. Two
//!   different arrays in one pattern have no meaning.
//!
//! # Steps
//! 1. Each path is followed through documents. While none meets an array, the parts are encoded at once: no allocation.
//! 2. Else the array is gone through element by element, each giving a whole key; the least one stays.

use pando_document::{RawArray, RawDocument, RawValue};
use pando_keyorder::{TypeBits, encode, encode_empty_array};

use super::SortPart;
use crate::QueryError;
use crate::path::index_of;

/// How far one path has been followed.
#[derive(Clone, Copy)]
enum Walk<'d> {
    /// Inside a document, with this much of the path to go.
    Inside { document: &'d RawDocument, rest: &'d str },
    /// Before an array, with this much of the path to go beyond it; `None` where the path ends.
    Before { array: &'d RawArray, rest: Option<&'d str> },
    /// At a value.
    Ended(RawValue<'d>),
    /// At an array without elements.
    EndedEmpty,
    /// The path leads nowhere.
    Nowhere,
}

/// Appends the sort key of a document.
pub(super) fn append(
    parts: &[SortPart],
    document: &RawDocument,
    out: &mut Vec<u8>,
) -> Result<(), QueryError> {
    let start = out.len();
    let mut type_bits = TypeBits::new();
    for part in parts {
        let walk = follow(Walk::Inside { document, rest: part.path.as_str() })?;
        if matches!(walk, Walk::Before { .. }) {
            out.truncate(start);
            let walks =
                parts.iter().map(|part| Walk::Inside { document, rest: part.path.as_str() }).collect();
            let mut least = None;
            expand(parts, walks, &mut least)?;
            out.extend_from_slice(&least.expect("an expansion gives at least one key"));
            return Ok(());
        }
        encode_part(walk, part, out, &mut type_bits);
    }
    Ok(())
}

/// Gives every key of the walks to `least`, which keeps the smallest.
fn expand<'d>(
    parts: &[SortPart],
    mut walks: Vec<Walk<'d>>,
    least: &mut Option<Vec<u8>>,
) -> Result<(), QueryError> {
    for walk in &mut walks {
        *walk = follow(*walk)?;
    }
    let Some(array) = common_array(&walks)? else {
        let mut key = Vec::with_capacity(32);
        let mut type_bits = TypeBits::new();
        for (walk, part) in walks.iter().zip(parts) {
            encode_part(*walk, part, &mut key, &mut type_bits);
        }
        if least.as_ref().is_none_or(|have| key < *have) {
            *least = Some(key);
        }
        return Ok(());
    };
    if array.is_empty() {
        return expand(parts, walks.into_iter().map(leave_empty).collect(), least);
    }
    for element in array {
        let element = element?;
        expand(parts, walks.iter().map(|walk| enter(*walk, element)).collect(), least)?;
    }
    Ok(())
}

fn common_array<'d>(walks: &[Walk<'d>]) -> Result<Option<&'d RawArray>, QueryError> {
    let mut common: Option<&'d RawArray> = None;
    for walk in walks {
        let Walk::Before { array, .. } = walk else { continue };
        match common {
            Some(have) if !std::ptr::eq(have, *array) => {
                return Err(QueryError::bad_value("cannot sort with keys that are parallel arrays"));
            }
            _ => common = Some(array),
        }
    }
    Ok(common)
}

fn encode_part(walk: Walk<'_>, part: &SortPart, out: &mut Vec<u8>, type_bits: &mut TypeBits) {
    match walk {
        Walk::Ended(value) => encode(value, part.direction, out, type_bits),
        Walk::Nowhere => encode(RawValue::Null, part.direction, out, type_bits),
        Walk::EndedEmpty => encode_empty_array(part.direction, out),
        Walk::Inside { .. } | Walk::Before { .. } => {
            unreachable!("paths are followed to their ends before their parts are encoded")
        }
    }
}

/// Follows a path down through documents until it ends, leads nowhere or meets an array.
fn follow(mut walk: Walk<'_>) -> Result<Walk<'_>, QueryError> {
    while let Walk::Inside { document, rest } = walk {
        let (name, beyond) = split(rest);
        walk = step(document.get(name)?, beyond)?;
    }
    Ok(walk)
}

fn step<'d>(value: Option<RawValue<'d>>, beyond: Option<&'d str>) -> Result<Walk<'d>, QueryError> {
    Ok(match (value, beyond) {
        (Some(RawValue::Document(document)), Some(rest)) => Walk::Inside { document, rest },
        (Some(RawValue::Array(array)), Some(rest)) => at_array(array, rest)?,
        (Some(RawValue::Array(array)), None) => Walk::Before { array, rest: None },
        (Some(value), None) => Walk::Ended(value),
        (None, _) | (Some(_), Some(_)) => Walk::Nowhere,
    })
}

/// A path that meets an array with an index next (`a.0`) goes to that element, where it is there.
fn at_array<'d>(array: &'d RawArray, rest: &'d str) -> Result<Walk<'d>, QueryError> {
    let (name, beyond) = split(rest);
    if let Some(index) = index_of(name)
        && let Some(element) = array.iter().nth(index as usize)
    {
        return step(Some(element?), beyond);
    }
    Ok(Walk::Before { array, rest: Some(rest) })
}

/// Puts an element of the array in the place of a path that stands before it.
fn enter<'d>(walk: Walk<'d>, element: RawValue<'d>) -> Walk<'d> {
    match (walk, element) {
        (Walk::Before { rest: None, .. }, element) => Walk::Ended(element),
        (Walk::Before { rest: Some(rest), .. }, RawValue::Document(document)) => {
            Walk::Inside { document, rest }
        }
        (Walk::Before { rest: Some(_), .. }, _) => Walk::Nowhere,
        (finished, _) => finished,
    }
}

fn leave_empty(walk: Walk<'_>) -> Walk<'_> {
    match walk {
        Walk::Before { rest: None, .. } => Walk::EndedEmpty,
        Walk::Before { rest: Some(_), .. } => Walk::Nowhere,
        finished => finished,
    }
}

fn split(path: &str) -> (&str, Option<&str>) {
    match path.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (path, None),
    }
}
