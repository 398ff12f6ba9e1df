//! The optimiser: it makes of a parsed pipeline one that gives the same and does less.
//!
//! Each rule has a file:
//!
//! | rule | effect |
//! |---|---|
//! | [ `match_places`] | `$match` moves forward, also past a window by its partition; its paths follow renames; into `$unionWith` and a joined `$lookup` |
//! | [`match_merges`] | `$match` stages side by side become one; one that holds for all documents goes |
//! | [`count_places`] | `$skip` and `$limit` move in front of stages of one document each, and merge |
//! | [`sort_places`] | `$sort` moves in front of `$unwind`, `$lookup` and `$addFields` that leave its fields alone |
//! | [`sort_limits`] | a `$sort` with a `$limit` behind it holds only so many documents |
//! | [`unwind_groups`] | an `$unwind` in front of a `$group` becomes part of it |
//! | [`sort_groups`] | a `$sort` in front of a `$group` that asks for the ends of its order becomes part of it |
//! | [`lookup_unwinds`] | an `$unwind` of the array that a `$lookup` makes becomes part of it |
//!
//! The fields that later stages look at are no rule: each run asks for them ([`Pipeline::needs`]). MongoDB
//! does the same, so a stage that would fail may see fewer documents here as there.
//!
//! # Invariants
//! - Stages move forward only, so the rewriting ends.
//! - Variables of the request are constants by now; a moved filter is parsed in the same scope.
//! - [`Optimisation::Off`] leaves the stages as they are written, for tests.
//!
//! [`Pipeline::needs`]: super::Pipeline::needs

mod count_places;
mod filter_paths;
mod lookup_unwinds;
mod match_merges;
mod match_places;
mod sort_groups;
mod sort_limits;
mod sort_places;
mod unwind_groups;

use pando_document::{DocumentWriter, RawDocument, RawDocumentBuf, RawValue};

pub(super) use self::filter_paths::{Nulls, renamed, with_root_check};
use super::{ParsedStage, stage};
use crate::error::QueryError;
use crate::expression::{Optimisation, ParseScope};

/// Rewrites the stages of a pipeline.
pub(super) fn optimised(
    stages: Vec<ParsedStage>,
    scope: &ParseScope,
) -> Result<Vec<ParsedStage>, QueryError> {
    if scope.optimisation() == Optimisation::Off {
        return Ok(stages);
    }
    let mut rewritten: Vec<ParsedStage> = Vec::with_capacity(stages.len());
    for stage in stages {
        match stage.name() {
            "$match" => match_places::place(stage, &mut rewritten, scope)?,
            "$skip" | "$limit" => count_places::place(stage, &mut rewritten),
            "$sort" => sort_places::place(stage, &mut rewritten),
            "$unwind" => lookup_unwinds::place(stage, &mut rewritten),
            _ => rewritten.push(stage),
        }
    }
    match_merges::merge(&mut rewritten, scope)?;
    count_places::merge(&mut rewritten, scope)?;
    sort_limits::limit(&mut rewritten);
    sort_groups::take_in(&mut rewritten);
    unwind_groups::take_in(&mut rewritten);
    Ok(rewritten)
}

/// The stage `{name: argument}`, parsed.
fn stage_of(name: &str, argument: RawValue<'_>, scope: &ParseScope) -> Result<ParsedStage, QueryError> {
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    writer.append(name, argument);
    writer.finish();
    let text = RawDocumentBuf::from_vec(bytes)?;
    let definition = stage::parse(name, argument, scope)?.swap_remove(0);
    Ok(ParsedStage { text, definition })
}

/// The stage `$match` of these filters together, in the order in which they were written.
fn match_of(filters: &[RawDocumentBuf], scope: &ParseScope) -> Result<ParsedStage, QueryError> {
    let filter = all_of(filters)?;
    stage_of("$match", RawValue::Document(&filter), scope)
}

/// One filter for several. Those that ask about different fields stand side by side; else they are the parts
/// of an `$and`.
pub(super) fn all_of(filters: &[RawDocumentBuf]) -> Result<RawDocumentBuf, QueryError> {
    if let [only] = filters {
        return Ok(only.clone());
    }
    let mut names = Vec::new();
    for field in filters.iter().flat_map(|filter| filter.iter()) {
        names.push(field?.0);
    }
    names.sort_unstable();
    let are_different = names.windows(2).all(|pair| pair[0] != pair[1]);
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    if are_different {
        for field in filters.iter().flat_map(|filter| filter.iter()) {
            let (name, value) = field?;
            writer.append(name, value);
        }
    } else {
        let mut parts = writer.array("$and");
        filters.iter().for_each(|filter| parts.push_document(filter));
        parts.finish();
    }
    writer.finish();
    Ok(RawDocumentBuf::from_vec(bytes)?)
}

/// Whether two dotted paths lie apart: neither is the other or leads to it.
pub(super) fn lie_apart(one: &str, other: &str) -> bool {
    let leads = |short: &str, long: &str| {
        long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    !leads(one, other) && !leads(other, one)
}

/// Whether a value that is put at a path leaves another path alone. It takes the place of an array on its
/// way, and of all that the array holds; so the first names have to differ.
pub(super) fn leaves_alone(target: &str, path: &str) -> bool {
    target.split('.').next() != path.split('.').next()
}

/// A document of one field.
fn single(name: &str, value: RawValue<'_>) -> Result<RawDocumentBuf, QueryError> {
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    writer.append(name, value);
    writer.finish();
    Ok(RawDocumentBuf::from_vec(bytes)?)
}

/// The parts of a conjunction.
fn parts_of(filter: &RawDocument) -> Result<Vec<RawDocumentBuf>, QueryError> {
    let mut parts = Vec::new();
    for field in filter {
        match field? {
            ("$and", RawValue::Array(inner)) if !inner.is_empty() => {
                for part in inner.iter() {
                    // The filter has been parsed, so each part is a document.
                    let Some(part) = part?.as_document() else { continue };
                    parts.extend(parts_of(part)?);
                }
            }
            (name, value) => parts.push(single(name, value)?),
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests;
