//! A `$match` moves as far to the front as it may stand. The parts of a conjunction move one by one.
//!
//! 1. A part passes a stage that tells which filter of its input is the same
//!    ([`Definition::filter_in_front`]): the part itself, or one with other paths where the stage renames.
//! 2. It passes a `$unionWith` by going into both collections.
//! 3. A part about the documents that a `$lookup` joins and unwinds becomes part of the search for them.
//!
//! [`Definition::filter_in_front`]: super::super::stage::Definition::filter_in_front

use pando_document::{ArrayWriter, DocumentWriter, RawArray, RawDocument, RawDocumentBuf, RawValue};

use super::{ParsedStage, match_of, parts_of, stage_of};
use crate::error::QueryError;
use crate::expression::ParseScope;
use crate::filter::Filter;
use crate::needs::Needs;
use crate::pipeline::stage::FilterInFront;

/// Puts each part of a filter as far to the front as it may stand.
pub(super) fn place(
    stage: ParsedStage,
    rewritten: &mut Vec<ParsedStage>,
    scope: &ParseScope,
) -> Result<(), QueryError> {
    // Most often there is no stage that it could pass.
    let passes_nothing = rewritten.last().is_none_or(|before| !before.definition.lets_filters_pass());
    let Some(filter) = stage.argument_document().filter(|_| !passes_nothing) else {
        rewritten.push(stage);
        return Ok(());
    };
    let parts = parts_of(&filter)?;
    let mut places: Vec<(usize, Vec<RawDocumentBuf>)> = Vec::new();
    for part in &parts {
        let Some((at, part)) = front_place(part, rewritten, scope)? else { continue };
        match places.iter_mut().find(|(place, _)| *place == at) {
            Some((_, together)) => together.push(part),
            None => places.push((at, vec![part])),
        }
    }
    // A filter that stays whole stays as it was written.
    if let [(only, together)] = places.as_slice()
        && *together == parts
    {
        rewritten.insert(*only, stage);
        return Ok(());
    }
    // From the back, so that the places in front stay what they were.
    places.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    for (at, parts) in places {
        rewritten.insert(at, match_of(&parts, scope)?);
    }
    Ok(())
}

/// The place of a part, and the part as it has to be there; `None` where a stage has taken it in.
fn front_place(
    part: &RawDocument,
    rewritten: &mut [ParsedStage],
    scope: &ParseScope,
) -> Result<Option<(usize, RawDocumentBuf)>, QueryError> {
    let mut part = part.to_owned();
    let mut at = rewritten.len();
    while let Some(before) = at.checked_sub(1) {
        let mut needs = Needs::nothing();
        Filter::parse(&part, scope)?.add_needs(&mut needs);
        let Needs::Paths(paths) = needs else { break };
        let stage = &mut rewritten[before];
        if stage.name() == "$unionWith" {
            *stage = union_with_part(stage, &part, scope)?;
            at = before;
            continue;
        }
        match stage.definition.filter_in_front(&part, &paths)? {
            FilterInFront::Same => {}
            FilterInFront::Other(other) => part = other,
            FilterInFront::None => {
                let joined = stage.definition.as_lookup().map(|lookup| lookup.matching(&part, &paths, scope));
                let Some(Some(joined)) = joined.transpose()? else { break };
                stage.definition = joined;
                return Ok(None);
            }
        }
        at = before;
    }
    Ok(Some((at, part)))
}

/// A `$unionWith` whose other documents pass a filter, too.
fn union_with_part(
    union: &ParsedStage,
    part: &RawDocument,
    scope: &ParseScope,
) -> Result<ParsedStage, QueryError> {
    let mut bytes = Vec::new();
    let mut writer = DocumentWriter::begin(&mut bytes);
    let mut stages = Vec::new();
    let mut list = ArrayWriter::begin(&mut stages);
    match union.field() {
        Some((_, RawValue::Document(options))) => {
            for option in options {
                match option? {
                    ("pipeline", RawValue::Array(pipeline)) => {
                        for stage in pipeline.iter() {
                            list.push(stage?);
                        }
                    }
                    (name, value) => writer.append(name, value),
                }
            }
        }
        Some((_, name)) => writer.append("coll", name),
        None => {}
    }
    list.push_document(&super::single("$match", RawValue::Document(part))?);
    list.finish();
    let stages = RawDocumentBuf::from_vec(stages)?;
    writer.append("pipeline", RawValue::Array(RawArray::from_document(&stages)));
    writer.finish();
    let options = RawDocumentBuf::from_vec(bytes)?;
    stage_of("$unionWith", RawValue::Document(&options), scope)
}
